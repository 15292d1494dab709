# SPDX-License-Identifier: Apache-2.0
"""What a connection does to many jobs at once, and how it looks at them."""

from segments import OnQueue

import ojs_shm


class Bulk(OnQueue):
    def test_cancels_clears_promotes_and_counts(self):
        name = self.queue_name
        for _ in range(3):
            self.queue.submit("a", meta={"tenant_id": "x"}, priority=1)
        later = self.queue.submit("b", delay=3600)
        self.assertEqual(self.queue.cancel_all(queue=name, tenant="x", priority=1), 3)
        self.assertEqual(self.queue.promote_all(queue=name, type="b"), 1)
        self.assertEqual(self.queue.get(later.id).state, "available")
        with self.assertRaises(ojs_shm.WrongState):
            self.queue.promote(later.id)
        self.assertEqual([job.id for job in self.queue.jobs(queue=name, waiting=True)], [later.id])
        self.assertEqual(self.queue.jobs(queue=name, older_than=3600), [])
        self.assertEqual(self.queue.clear(), 1)
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.cancel_all(queue="nobody")

    def test_a_page_of_a_sorted_list_is_picked(self):
        low, high, middle = (self.queue.submit("any", priority=priority) for priority in (9, 0, 5))
        page, total = self.queue.page(queue=self.queue_name, limit=2)
        self.assertEqual(([job.id for job in page], total), ([middle.id, high.id], 3))
        page, total = self.queue.page(queue=self.queue_name, sort="priority", falling=False, offset=1)
        self.assertEqual(([job.id for job in page], total), ([middle.id, low.id], 3))
        page, total = self.queue.page(queue=self.queue_name, priority=9)
        self.assertEqual(([job.id for job in page], total), ([low.id], 1))
        with self.assertRaises(ValueError):
            self.queue.page(sort="colour")

    def test_dead_letters_go_again_or_away(self):
        policy = ojs_shm.Retry(max_attempts=1, dead_letter=True)
        for _ in range(2):
            self.queue.submit("a", retry=policy)
        with self.queue.worker() as worker:
            for _ in range(2):
                worker.fetch(0).nack("broken")
        self.assertEqual(self.queue.retry_all_dead(queue=self.queue_name, limit=1), 1)
        self.assertEqual(self.queue.drop_all_dead(queue=self.queue_name), 1)

    def test_lost_jobs_are_tried_again(self):
        policy = ojs_shm.Retry(max_attempts=1)
        lost, off = self.queue.submit("a", retry=policy), self.queue.submit("a", delay=3600)
        with self.queue.worker() as worker:
            worker.fetch(0).nack("broken")
        off.cancel()
        mine = {"queue": self.queue_name}
        self.assertEqual(self.queue.retry_all(**mine), 1)
        self.assertEqual((lost.state, off.state), ("available", "cancelled"))
        self.assertEqual(self.queue.retry_all(state="cancelled", **mine), 1)
        self.assertEqual(off.state, "available")
        with self.assertRaises(ojs_shm.WrongState):
            self.queue.retry(off.id)
        off.cancel()
        self.queue.retry(off.id)
        self.assertEqual(off.state, "available")

    def test_jobs_that_are_over_are_chosen_by_their_end_and_go(self):
        policy = ojs_shm.Retry(max_attempts=1)
        tasks = [self.queue.submit("a", retry=policy) for _ in range(3)]
        with self.queue.worker() as worker:
            worker.fetch(0).ack()
            worker.fetch(0).nack("no", type="broken")
        with self.assertRaises(ojs_shm.WrongState):
            self.queue.drop(tasks[2].id)
        mine = {"queue": self.queue_name}
        self.assertEqual([job.id for job in self.queue.jobs(error_type="broken", **mine)], [tasks[1].id])
        self.assertEqual(self.queue.drop_all(ended_ago=3600, **mine), 0)
        for ages in ({"ended_ago": 10 ** 11}, {"older_than": 10 ** 11}):
            self.assertEqual(self.queue.drop_all(**ages, **mine), 0, "longer ago than there was time")
        self.assertEqual(len(self.queue.jobs(ended_ago=0, **mine)), 2)
        self.queue.drop(tasks[0].id)
        self.assertEqual(self.queue.drop_all(**mine), 1)
        self.assertEqual([job.id for job in self.queue.jobs(**mine)], [tasks[2].id])

    def test_strict_envelopes_are_a_switch_of_the_segment(self):
        self.queue.set_strict_envelopes(True)
        self.queue.set_strict_envelopes(False)
