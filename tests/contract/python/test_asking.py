# SPDX-License-Identifier: Apache-2.0
"""The blocking client: what it asks of jobs and queues, and what it changes of them."""

import datetime
import threading
import unittest

from segments import BOUND, OnQueue, eventually

import ojs_shm
from ojs_shm import Retry


class Asking(OnQueue):
    def test_unknown_ids_are_not_found(self):
        unknown = "0190a5b0-0000-7000-8000-00000000ffff"
        for ask in (self.queue.get, self.queue.cancel, self.queue.activate, self.queue.result):
            with self.subTest(ask.__name__), self.assertRaises(LookupError):
                ask(unknown)

    def test_one_wording_for_what_is_not_an_id_and_one_for_an_unknown_id(self):
        unknown = "0190a5b0-0000-7000-8000-00000000ffff"
        for ask in (self.queue.get, self.queue.cancel, self.queue.activate, self.queue.promote, self.queue.retry_dead):
            with self.subTest(ask.__name__):
                with self.assertRaisesRegex(ojs_shm.NotFound, f"^no job with id {unknown}$"):
                    ask(unknown)
                with self.assertRaisesRegex(ojs_shm.NotFound, "^'abc' is not a job id: one is a UUIDv7"):
                    ask("abc")
        with self.assertRaisesRegex(ojs_shm.InvalidArgument, "^'abc' is not a job id: one is a UUIDv7"):
            self.queue.submit("any", id="abc")

    def test_a_result_is_waited_for(self):
        task = self.queue.submit("add", [1, 2])
        with self.assertRaises(TimeoutError):
            task.result(timeout=0.01)

        def work():
            with self.queue.worker() as worker:
                job = worker.fetch(BOUND)
                job.ack(sum(job.input))

        worker = threading.Thread(target=work)
        worker.start()
        self.assertEqual(task.result(BOUND), 3)
        worker.join()
        self.assertEqual(task.state, "completed")
        with self.assertRaises(ojs_shm.WrongState) as caught:
            task.cancel()
        self.assertEqual(caught.exception.subject, "completed")

    def test_a_cancelled_or_discarded_job_has_no_result(self):
        cancelled = self.queue.submit("any")
        self.assertEqual(cancelled.cancel().state, "cancelled")
        with self.assertRaises(ojs_shm.JobCancelled):
            cancelled.result(BOUND)

        failed = self.queue.submit("any", retry=1)
        with self.queue.worker() as worker:
            outcome = worker.fetch(0).nack("no such address", code="bad_address", type="LookupError",
                                           details={"line": 7})
        self.assertEqual(outcome.state, "discarded")
        with self.assertRaises(ojs_shm.JobFailed) as caught:
            failed.result(BOUND)
        error = caught.exception.job.error
        self.assertEqual((error.code, error.type, error.message, error.details, error.attempt),
                         ("bad_address", "LookupError", "no such address", {"line": 7}, 1))

    def test_pending_jobs_wait_for_activation_and_paused_queues_give_none(self):
        task = self.queue.submit("any", pending=True)
        with self.queue.worker() as worker:
            self.assertIsNone(worker.fetch(0))
            task.activate()
            self.queue.pause()
            self.assertTrue(self.queue.stats().paused)
            self.assertIsNone(worker.fetch(0))
            self.queue.resume()
            worker.fetch(0).ack()

    def test_dead_letters_are_listed_retried_and_dropped(self):
        policy = Retry(max_attempts=1, dead_letter=True)
        first, second = (self.queue.submit("any", retry=policy) for _ in range(2))
        with self.queue.worker() as worker:
            for _ in range(2):
                worker.fetch(0).nack("broken")
        dead = {job.id for job in self.queue.jobs(queue=self.queue_name, dead_letter=True)}
        self.assertEqual(dead, {first.id, second.id})
        self.queue.retry_dead(first.id)
        self.assertEqual((first.state, first.info().attempt), ("available", 0))
        self.queue.drop_dead(second.id)
        self.assertEqual(self.queue.jobs(queue=self.queue_name, dead_letter=True), [])

    def test_maintenance_hands_out_no_job(self):
        self.queue.set_maintenance(True, "moving")
        self.assertEqual(self.queue.segment_stats()["segment"]["maintenance"]["reason"], "moving")
        _, worker = self.queue.submit("any"), self.enterContext(self.queue.worker())
        self.assertIsNone(worker.fetch(0))
        self.queue.set_maintenance(False)
        worker.fetch(0).ack()

    def test_dead_letters_are_kept_for_a_time_and_up_to_a_number(self):
        segment = lambda: self.queue.segment_stats()["segment"]
        self.assertEqual((segment()["dead_max_age_ms"], segment()["dead_max_count"]), (180 * 86_400_000, 10_000))
        self.queue.set_dead_retention(max_age=datetime.timedelta(days=30))
        self.queue.set_dead_retention(max_count=0)
        self.assertEqual((segment()["dead_max_age_ms"], segment()["dead_max_count"]), (30 * 86_400_000, 0))
        self.addCleanup(self.queue.set_dead_retention, max_age=datetime.timedelta(days=180), max_count=10_000)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.set_dead_retention(max_count=-1)
        policy = Retry(max_attempts=1, dead_letter=True)
        tasks = [self.queue.submit("any", retry=policy) for _ in range(3)]
        with self.queue.worker() as worker:
            for _ in tasks:
                worker.fetch(0).nack("broken")
        self.queue.set_dead_retention(max_count=1)
        eventually(lambda: len(self.queue.jobs(dead_letter=True)) == 1)

    def test_a_queue_is_deleted_and_comes_back(self):
        task = self.queue.submit("any")
        with self.assertRaises(ojs_shm.WrongState):
            self.queue.delete_queue(self.queue_name)
        self.assertEqual(self.queue.delete_queue(self.queue_name, discard=True), 1)
        self.assertEqual((task.state, task.info().errors[0].type), ("discarded", "queue_deleted"))
        self.assertNotIn(self.queue_name, [queue.name for queue in self.queue.queues()])
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.delete_queue(self.queue_name)
        self.queue.submit("any")
        self.assertEqual(self.queue.stats().depth, 1)

    def test_stats_tell_the_oldest_age_dead_letters_and_failed_attempts(self):
        self.queue.submit("any", retry=Retry(max_attempts=1, dead_letter=True))
        with self.queue.worker() as worker:
            worker.fetch(0).nack("broken")
        self.queue.submit("any")
        eventually(lambda: self.queue.stats().oldest_age > 0)
        self.assertEqual((self.queue.stats().dead_letters, self.queue.stats().failed_attempts), (1, 1))

    def test_stats_and_the_audit(self):
        self.queue.submit("any")
        self.queue.submit("any", delay=3600)
        stats = self.queue.stats()
        self.assertEqual((stats.depth, stats.by_state["available"], stats.by_state["scheduled"]), (2, 1, 1))
        self.assertIn(self.queue_name, [each.name for each in self.queue.queues()])
        segment = self.queue.segment_stats()["segment"]
        self.assertEqual((segment["convention"], segment["name"]), ("qo", self.broker.name))
        self.assertEqual(self.queue.audit(), [])
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.jobs(state="happy")


if __name__ == "__main__":
    unittest.main()
