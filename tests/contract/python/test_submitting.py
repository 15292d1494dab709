# SPDX-License-Identifier: Apache-2.0
"""The blocking client: what a job may be submitted with, and what a queue refuses."""

import concurrent.futures
import datetime
import unittest

from segments import BOUND, Broker, OnQueue, eventually

import ojs_shm
from ojs_shm import NewJob, Retry


class Submitting(OnQueue):
    def test_a_time_that_is_no_number_is_refused_by_name(self):
        for member in ("delay", "timeout", "lease", "scheduled_at", "expires_at"):
            for wrong in ("5s", [5], True):
                with self.subTest(member, wrong=wrong), self.assertRaises(TypeError) as caught:
                    self.queue.submit("any", **{member: wrong})
                self.assertRegex(str(caught.exception), rf"^{member} must be (Unix )?seconds or a \w+, not "
                                                        rf"{type(wrong).__name__} ")
        self.assertEqual(self.queue.jobs(queue=self.queue_name), [])

    def test_the_input_comes_back_as_it_was(self):
        with self.queue.worker() as worker:
            for given in ({"to": "ü\u0000ñ"}, [1, 2], [], "text", 0, False, None, {"deep": [{"er": None}]}):
                with self.subTest(given):
                    self.queue.submit("any", given)
                    job = worker.fetch(0)
                    self.assertEqual((job.input, job.args), (given, [given]))
                    job.ack()
            self.queue.submit("any")
            job = worker.fetch(0)
            self.assertEqual((job.input, job.args), (None, []))
            job.ack()
            self.queue.submit("any", args=[1, "two"])
            job = worker.fetch(0)
            self.assertEqual((job.input, job.args), ([1, "two"], [1, "two"]))
            job.ack()

    def test_everything_that_can_be_said_of_a_job_is_kept(self):
        soon = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
        task = self.queue.submit(
            "many.things", {"n": 1}, priority=7, queue="elsewhere", scheduled_at=soon,
            expires_at=soon + datetime.timedelta(hours=1), timeout=2.5, lease=60, meta={"trace": "abc"},
            tags=["a", "b"], extra={"owner": "me"}, retry=Retry(max_attempts=9, delay=0.25, backoff="linear"))
        job = task.info()
        self.assertEqual((job.type, job.queue, job.priority, job.state), ("many.things", "elsewhere", 7, "scheduled"))
        self.assertEqual((job.meta, job.tags, job.raw["owner"]), ({"trace": "abc"}, ["a", "b"], "me"))
        self.assertEqual((job.max_attempts, job.raw["timeout_ms"]), (9, 2500))
        self.assertLess(abs(job.scheduled_at - soon), datetime.timedelta(milliseconds=2))
        task.cancel()

    def test_an_id_of_ones_own_is_taken_once(self):
        id = "0190a5b0-0000-7000-8000-000000000001"
        self.assertEqual(self.queue.submit("any", id=id).id, id)
        with self.assertRaises(ojs_shm.Duplicate):
            self.queue.submit("any", id=id)

    def test_many_are_submitted_together_or_not_at_all(self):
        tasks = self.queue.submit_many(NewJob("step", n, priority=n) for n in (1, 2, 3))
        self.assertEqual([task.info().input for task in tasks], [1, 2, 3])
        before = self.queue.stats().depth
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.submit_many([NewJob("step", 4), NewJob("No Type", 5)])
        self.assertEqual(self.queue.stats().depth, before)
        self.assertEqual(self.queue.submit_many([]), [])

    def test_many_may_go_to_several_queues(self):
        tasks = self.queue.submit_many([NewJob("step", 1), NewJob("step", 2, queue="across"), NewJob("step", 3)])
        self.assertEqual([task.info().queue for task in tasks], [self.queue_name, "across", self.queue_name])
        self.queue.configure(max_depth=2)
        with self.assertRaises(ojs_shm.QueueFull):
            self.queue.submit_many([NewJob("step", 4, queue="across"), NewJob("step", 5)])
        self.assertEqual([job.input for job in self.queue.jobs(queue="across")], [2])
        tasks[1].cancel()

    def test_a_full_queue_tells_depth_and_bound(self):
        self.queue.configure(max_depth=2)
        self.queue.submit("any")
        self.queue.submit("any")
        with self.assertRaises(ojs_shm.QueueFull) as caught:
            self.queue.submit("any")
        full = caught.exception
        self.assertEqual((full.code, full.depth, full.bound, full.unit), ("QUEUE_FULL", 2, 2, "jobs"))
        self.assertEqual((full.subject, full.strategy, full.retry_after), (self.queue_name, "reject", 1))
        self.assertEqual(self.queue.stats().raw["rejected_total"], 1)

    def test_PRI_T22_limits_are_brought_by_jobs_set_read_and_cleared(self):
        self.queue.submit("any", rate_limit={"key": "api", "concurrency": 2, "throttle": {"limit": 5, "period": "PT1S"}})
        brought = self.queue.limit("api")
        self.assertEqual((brought["concurrency"]["limit"], brought["throttle"]["limit"]), (2, 5))
        self.assertFalse(brought["override"])
        self.queue.set_limit("api", concurrency=0, on_limit="wait")
        self.assertEqual([limit["override"] for limit in self.queue.limits() if limit["key"] == "api"], [True])
        self.queue.clear_limit("api")
        self.assertNotIn("concurrency", self.queue.limit("api"))
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.limit("none")
        for wrong in ({"concurrency": 1}, {"key": "a b"}, {"key": "k", "rate": {"limit": 1}}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                self.queue.submit("any", rate_limit=wrong)

    def test_BP_T04_BP_T06_BP_T21_a_submit_waits_for_room(self):
        self.queue.configure(max_depth=1, strategy="block", warning_threshold=0.5, clear_threshold=0.25,
                             drop="lowest_priority")
        policy = self.queue.stats().raw["policy"]["backpressure"]
        self.assertEqual((policy["strategy"], policy["warning_threshold"], policy["drop"]),
                         ("block", 0.5, "lowest_priority"))
        first = self.queue.submit("any", block_timeout=1)
        with self.assertRaises(ojs_shm.QueueFull):
            self.queue.submit("any", block_timeout=0.02)
        with self.assertRaises(ojs_shm.QueueFull):  # at once, for it can never fit
            self.queue.submit_many([NewJob("any"), NewJob("any")], block_timeout=60)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.queue.submit, "any", block_timeout=BOUND)
            eventually(lambda: self.queue.stats().raw["waiting"] == 1)
            first.cancel()
            self.assertEqual(waiting.result().state, "available")

    def test_a_submit_waits_for_room_where_no_handle_is_left(self):
        with Broker("qo", "--handles", "4") as broker, ojs_shm.connect_sync(**broker.where) as queue:
            queue.configure(max_depth=2)
            queue.submit("any")
            others = []
            with self.assertRaises(ojs_shm.SegmentFull):
                while True:
                    others.append(ojs_shm.connect_sync(**broker.where))
                    others[-1].submit("other", queue="others")
            self.assertEqual(queue.submit("any", block_timeout=1).state, "available")
            with self.assertRaises(ojs_shm.QueueFull):
                queue.submit("any", block_timeout=0.02)
            for other in others:
                other.close()

    def test_BP_T19_a_full_tenant_is_refused_and_others_are_not(self):
        self.queue.configure(tenant_max_depth=1, tenant_bounds={"big": {"max_depth": 2}})
        policy = self.queue.stats().raw["policy"]["backpressure"]
        self.assertEqual((policy["tenant_max_depth"], policy["tenant_bounds"]), (1, {"big": {"max_depth": 2}}))
        for tenant in ("big", "big", "a"):
            self.queue.submit("any", meta={"tenant_id": tenant})
        for tenant, bound in (("big", 2), ("a", 1)):
            with self.assertRaises(ojs_shm.QueueFull) as refused:
                self.queue.submit("any", meta={"tenant_id": tenant})
            self.assertEqual((refused.exception.tenant, refused.exception.bound), (tenant, bound))
        self.queue.submit("any", meta={"tenant_id": "b"})
        self.queue.configure(max_depth=1)
        with self.assertRaises(ojs_shm.QueueFull) as refused:
            self.queue.submit("any", meta={"tenant_id": "c"})
        self.assertIsNone(refused.exception.tenant)

    def test_BP_T10_a_submit_drops_the_oldest(self):
        self.queue.configure(max_depth=1, strategy="drop_oldest")
        victim, task = self.queue.submit("any"), self.queue.submit("any")
        self.assertEqual((victim.state, task.state), ("discarded", "available"))
        self.assertEqual(self.queue.stats().raw["dropped_total"], 1)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.configure(strategy="hope")

    def test_wrong_arguments_are_refused_before_anything_is_stored(self):
        for wrong in ({"type": ""}, {"type": "Upper"}, {"type": "a", "queue": "No Queue"}, {"type": "a\0b"},
                      {"type": "a", "id": "no-uuid"}, {"type": "a", "delay": -1}, {"type": "a", "lease": 2 ** 40},
                      {"type": "a", "scheduled_at": datetime.datetime.now()}, {"type": "a", "delay": float("nan")},
                      {"type": "a", "retry": Retry(backoff="hopeful")}, {"type": "a", "input": float("nan")}):
            with self.subTest(wrong), self.assertRaises(ValueError):
                self.queue.submit(**wrong)
        for wrong in ({"type": 7}, {"type": "a", "input": object()}, {"type": "a", "input": 1, "args": [2]},
                      {"type": "a", "delay": 1, "scheduled_at": 5}, {"type": "a", "colour": "red"}):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.queue.submit(**wrong)
        self.assertEqual(self.queue.jobs(queue=self.queue_name), [])

    def test_a_body_above_the_maximum_is_too_large(self):
        with self.assertRaises(ojs_shm.TooLarge):
            self.queue.submit("any", "x" * (2 << 20))

    def test_a_long_body_comes_back_whole(self):
        text = "0123456789" * 50_000
        self.assertEqual(self.queue.submit("any", text).info().input, text)


if __name__ == "__main__":
    unittest.main()
