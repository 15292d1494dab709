# SPDX-License-Identifier: Apache-2.0
"""Jobs of one kind, checked once."""

from segments import OnQueue

import ojs_shm


class PreparedJobs(OnQueue):
    def test_a_job_has_the_kinds_options_and_its_own_input_and_priority(self):
        kind = self.queue.prepare("mail.send", retry=7, priority=3, timeout=5)
        plain, urgent = kind.submit({"to": "a"}), kind.submit(priority=9)
        first, second = self.queue.get(plain.id), self.queue.get(urgent.id)
        self.assertEqual((first.type, first.queue, first.priority), ("mail.send", self.queue_name, 3))
        self.assertEqual((second.priority, second.args), (9, []))
        self.assertEqual((first.args, first.max_attempts), ([{"to": "a"}], 7))
        long = kind.submit("x" * 1000)
        self.assertEqual(self.queue.get(long.id).args, ["x" * 1000])

    def test_many_are_stored_in_order_or_none(self):
        kind = self.queue.prepare("count")
        tasks = kind.submit_many(range(100))
        with self.queue.worker() as worker:
            got = [worker.fetch(0) for _ in tasks]
            self.assertEqual([job.input for job in got], list(range(100)))
            for job in got:
                job.ack()
        self.assertEqual(kind.submit_many([]), [])
        with self.assertRaises(ojs_shm.TooLarge):
            kind.submit_many([1, "x" * (2 << 20)])
        self.assertEqual(self.queue.jobs(queue=self.queue_name, waiting=True), [])

    def test_what_one_job_has_does_not_make_a_kind(self):
        with self.assertRaises(ojs_shm.InvalidArgument) as caught:
            self.queue.prepare("a", unique={"keys": ["type"]})
        self.assertEqual(caught.exception.subject, "unique")
        with self.assertRaises(TypeError):
            self.queue.prepare("a", delay=1)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.prepare("NOT A TYPE")
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.prepare("a").submit(priority=1000)

    def test_middlewares_see_each_job(self):
        self.queue.middleware.add(lambda job, next: next(job) if job.input != "drop" else None, name="some")
        kind = self.queue.prepare("seen")
        self.assertEqual([task is None for task in kind.submit_many(["keep", "drop"])], [False, True])
        task = self.queue.prepare("seen", args=[1, 2]).submit("own")
        self.assertEqual(task.info().args, ["own"])
