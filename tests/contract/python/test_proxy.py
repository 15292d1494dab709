# SPDX-License-Identifier: Apache-2.0
"""Working for clients by the ids of their jobs."""

import os
import select
import subprocess
import sys

from unittest import mock

from segments import BOUND, ROOT, OnQueue, eventually

import ojs_shm


class ByIds(OnQueue):
    def setUp(self):
        super().setUp()
        self.proxy = self.queue.proxy()
        self.addCleanup(self.proxy.close)

    def test_a_client_fetches_and_ends_its_job(self):
        task = self.queue.submit("far", {"n": 1}, priority=3)
        [job] = self.proxy.fetch(count=5)
        self.assertEqual((job.id, job.input, job.priority, job.state, job.attempt),
                         (task.id, {"n": 1}, 3, "active", 1))
        self.assertGreater(job.fence, 0)
        self.assertEqual(self.proxy.fetch(), [])
        until = self.proxy.heartbeat(job.id, 60, fence=job.fence)
        self.assertGreater(until, job.started_at)
        self.proxy.progress(job.id, 0.5, "half", fence=job.fence)
        self.assertEqual(task.info().progress_message, "half")
        self.proxy.ack(job.id, {"pages": 3}, fence=job.fence)
        self.assertEqual(task.result(), {"pages": 3})
        with self.assertRaises(ojs_shm.WrongState):
            self.proxy.ack(job.id)

    def test_a_job_that_cannot_be_shown_fails_and_the_others_are_fetched(self):
        good, bad = self.queue.submit("far", 1), self.queue.submit("far", "bad", retry=1)
        last = self.queue.submit("far", 2)

        def shown(raw):
            if raw["args"] == ["bad"]:
                raise ValueError("what is this?")
            return ojs_shm.JobInfo(raw)

        with mock.patch("ojs_shm.proxy.JobInfo", shown):
            self.assertEqual([job.id for job in self.proxy.fetch(count=5)], [good.id, last.id])
        info = bad.info()
        self.assertEqual((info.state, info.error.message), ("discarded", "the job cannot be shown: what is this?"))

    def test_one_text_is_no_list_of_texts(self):
        for call in (lambda: self.proxy.fetch("mail"), lambda: self.proxy.await_jobs("mail"),
                     lambda: self.proxy.await_jobs(["mail"], "pool"), lambda: self.proxy.report("far", queues="mail")):
            with self.assertRaisesRegex(TypeError, "is a list of texts"):
                call()

    def test_an_old_fence_is_lost_and_none_means_the_present_attempt(self):
        task = self.queue.submit("far", retry=ojs_shm.Retry(delay=0.001, jitter=False))
        [job] = self.proxy.fetch()
        self.proxy.requeue(job.id, fence=job.fence)
        [again] = self.proxy.fetch()
        self.assertEqual(again.attempt, 1)
        for late in (self.proxy.ack, self.proxy.nack, self.proxy.requeue, self.proxy.heartbeat):
            with self.assertRaises(ojs_shm.Lost):
                late(job.id, fence=job.fence)
        outcome = self.proxy.nack(job.id, "no\0", code="busy", details={"at": 1})
        self.assertEqual((outcome.state, outcome.retry_delay), ("retryable", 0.001))
        error = task.info().error
        self.assertEqual((error.code, error.message, error.details), ("busy", "no\\0", {"at": 1}))
        with self.assertRaises(ojs_shm.NotFound):
            self.proxy.ack("018f0000-0000-7000-8000-000000000000")

    def test_what_was_not_handed_over_comes_back(self):
        kept, back = self.queue.submit("kept"), self.queue.submit("back")
        with self.queue.proxy() as passing:
            first, second = passing.fetch(count=2, held=True)
            self.assertEqual((first.id, second.id), (kept.id, back.id))
            passing.hand_over(first.id, first.fence)
            with self.assertRaises(ojs_shm.Lost):
                passing.hand_over(first.id, first.fence)
        self.assertEqual((kept.info().state, back.info().state, back.info().attempt), ("active", "available", 0))
        self.proxy.ack(kept.id, fence=first.fence)

    def test_of_a_process_that_dies_as_well(self):
        task = self.queue.submit("held")
        holds = ("import os, sys, ojs_shm\n"
                 "queue = ojs_shm.connect_sync(sys.argv[1], dir=sys.argv[2], queue=sys.argv[3])\n"
                 "os._exit(0 if len(queue.proxy().fetch(held=True)) == 1 else 1)\n")
        where = self.broker.where
        subprocess.run([sys.executable, "-c", holds, where["name"], where["dir"], self.queue_name], check=True,
                       env={**os.environ, "PYTHONPATH": str(ROOT / "worker_api" / "python")})
        [job] = eventually(self.proxy.fetch)
        self.assertEqual((job.id, job.attempt), (task.id, 1))
        self.proxy.ack(job.id)

    def test_shares_tenants_and_pools(self):
        for number in range(4):
            self.queue.submit("shared", queue="a", meta={"tenant_id": f"t{number}"})
            self.queue.submit("shared", queue="b")
        [mine] = self.proxy.fetch(["b", "a"], tenant="t2", count=3)
        self.assertEqual((mine.queue, mine.meta), ("a", {"tenant_id": "t2"}))
        queues = [job.queue for job in self.proxy.fetch({"a": 1, "b": 3}, count=4)]
        self.assertEqual((queues.count("a"), queues.count("b")), (1, 3))
        with self.assertRaises(ojs_shm.NotFound):
            self.proxy.fetch(pool="none")
        with self.assertRaises(ojs_shm.InvalidArgument) as caught:
            self.proxy.fetch({"a": 1001})
        self.assertEqual(caught.exception.subject, "weights")

    def test_a_descriptor_says_when_jobs_come(self):
        descriptor = self.proxy.await_jobs([self.queue_name])
        task = self.queue.submit("comes")
        self.assertEqual(select.select([descriptor], [], [], BOUND)[0], [descriptor])
        os.eventfd_read(descriptor)
        self.assertEqual([job.id for job in self.proxy.fetch()], [task.id])
        self.assertEqual(self.proxy.await_jobs([]), descriptor)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.proxy.await_jobs(["Not a name"])

    def test_a_descriptor_says_when_jobs_come_into_the_queues_of_a_pool(self):
        self.queue.configure_pool("awaited", queues=["of-a-pool"])
        self.addCleanup(self.queue.remove_pool, "awaited")
        descriptor = self.proxy.await_jobs([], ["awaited"])
        task = self.queue.submit("comes", queue="of-a-pool")
        self.assertEqual(select.select([descriptor], [], [], BOUND)[0], [descriptor])
        self.assertEqual([job.id for job in self.proxy.fetch(pool="awaited")], [task.id])

    def hear(self, descriptor, look):
        """What `look` finds once the descriptor was readable, as an event loop asks."""
        def heard():
            if not select.select([descriptor], [], [], 0)[0]:
                return None
            os.eventfd_read(descriptor)
            return look()
        return eventually(heard)

    def test_the_same_one_says_when_jobs_end_and_events_are_told(self):
        with ojs_shm.connect_sync(**self.broker.where) as queue:
            queue.set_events(True)
        task, forgotten = self.queue.submit("ends"), self.queue.submit("ends")
        events = self.queue.events()
        self.addCleanup(events.close)
        descriptor = self.proxy.await_end(task.id)
        self.assertEqual(self.proxy.await_end(forgotten.id), descriptor)
        self.assertEqual(self.proxy.await_events(), descriptor)
        self.proxy.forget_end(forgotten.id)
        for job in self.proxy.fetch(count=2):
            self.proxy.ack(job.id)
        self.assertEqual(self.hear(descriptor, self.proxy.take_ended), [task.id])
        self.assertEqual(self.proxy.take_ended(), [])
        self.proxy.report("far-2", queues=["mail"], concurrency=6)
        told = eventually(lambda: next((each for each in iter(events.poll, None) if each["type"] == "worker.started"), None))
        self.assertEqual(told["data"], {"worker_id": "far-2", "queues": ["mail"], "concurrency": 6})
        self.assertEqual(self.proxy.await_events(False), descriptor)
        with self.assertRaises(ojs_shm.NotFound):
            self.proxy.await_end("not-an-id")

    def test_workers_report_and_are_directed(self):
        known = self.proxy.report("far-1", queues=["mail"], concurrency=6, labels={"zone": "b"}, registers=True)
        self.assertEqual((known["id"], known["queues"], known["concurrency"], known["labels"]),
                         ("far-1", ["mail"], 6, {"zone": "b"}))
        self.queue.direct_worker("far-1", "quiet")
        self.queue.submit("far")
        self.assertEqual(self.proxy.fetch(worker="far-1"), [])
        known = self.proxy.report("far-1", active_jobs=2)
        self.assertEqual((known["directive"], known["concurrency"], known["active_jobs"]), ("quiet", 6, 2))
        self.assertEqual(self.proxy.report("far-1", registers=True)["directive"], "running")
        self.assertEqual(len(self.proxy.fetch(worker="far-1")), 1)

    def test_the_connection_ends_it(self):
        self.queue.close()
        with self.assertRaises(ojs_shm.Closed):
            self.proxy.fetch()
