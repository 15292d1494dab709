# SPDX-License-Identifier: Apache-2.0
"""How long results are kept, and jobs that are gone."""

import asyncio
import datetime

from segments import OnAsyncQueue, OnQueue

import ojs_shm


class Results(OnQueue):
    def done(self, **options):
        task = self.queue.submit("kept", **options)
        with self.queue.worker() as worker:
            worker.fetch(0).ack(7)
        return task

    def test_one_is_kept_for_as_long_as_its_job_says(self):
        for given, seconds in ((3600, 3600), (datetime.timedelta(hours=2), 7200), (59.5, 60)):
            info = self.done(result_ttl=given).info()
            self.assertEqual((info.result, info.result_ttl, info.result_pruned), (7, seconds, False))
            self.assertEqual(info.result_expires_at - info.completed_at, datetime.timedelta(seconds=seconds))
        info = self.done(result_ttl=-1).info()
        self.assertEqual((info.result, info.result_ttl, info.result_expires_at), (7, -1, None))
        self.assertIsNone(self.done().info().result_ttl)

    def test_one_that_is_not_kept_is_an_error_of_its_own(self):
        task = self.done(result_ttl=0)
        with self.assertRaises(ojs_shm.ResultPruned) as caught:
            task.result()
        self.assertEqual((caught.exception.job.state, caught.exception.code), ("completed", "result_pruned"))
        self.assertTrue(task.info().result_pruned)

    def test_what_is_no_time_is_refused(self):
        for wrong in (-2, -1.5, 3_153_600_001, float("nan"), float("inf")):
            with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.submit("kept", result_ttl=wrong)
            self.assertEqual(caught.exception.subject, "result_ttl")
        for wrong in ("1h", True, []):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.queue.submit("kept", result_ttl=wrong)

    def test_a_job_that_is_gone_is_told_from_one_that_never_was(self):
        task = self.queue.submit("dies", retry=ojs_shm.Retry(max_attempts=1, dead_letter=True))
        with self.queue.worker() as worker:
            worker.fetch(0).nack("no")
        self.queue.drop_dead(task.id)
        for ask in (task.info, task.result, task.cancel):
            with self.assertRaises(ojs_shm.NotFound) as caught:
                ask()
            self.assertTrue(caught.exception.gone, ask.__name__)
            self.assertIn("is gone", str(caught.exception))
        with self.assertRaises(ojs_shm.NotFound) as caught:
            self.queue.get("0190a5b0-0000-7000-8000-00000000ffff")
        self.assertFalse(caught.exception.gone)


class AsyncResults(OnAsyncQueue):
    async def test_an_event_loop_is_told_alike(self):
        worker = self.queue.worker()

        @worker.task("kept")
        async def kept(input):
            return input

        running = asyncio.create_task(worker.run(signals=False))
        task = await self.queue.submit("kept", 1, result_ttl=0)
        with self.assertRaises(ojs_shm.ResultPruned):
            await task.result(timeout=30)
        worker.stop()
        await running
