# SPDX-License-Identifier: Apache-2.0
"""What submit() does when the queue is full: OnFull, blocking and in an event loop."""

import asyncio
import threading
import unittest
import warnings

from segments import BOUND, OnAsyncQueue, OnQueue, eventually

import ojs_shm
from ojs_shm import NewJob, OnFull


class Blocking(OnQueue):
    def setUp(self):
        super().setUp()
        self.queue.configure(max_depth=1)
        self.queue.submit("first")

    def connect(self, **on_full):
        made = ojs_shm.connect_sync(**self.broker.where, queue=self.queue_name, on_full=OnFull(**on_full))
        self.addCleanup(made.close)
        return made

    def rejected(self):
        return self.queue.stats().raw["rejected_total"]

    def test_BP_P1_a_submit_is_retried_and_then_raises(self):
        queue = self.connect(retries=1)
        with self.assertRaises(ojs_shm.QueueFull) as caught:
            queue.submit("any")
        self.assertEqual((caught.exception.depth, caught.exception.bound, self.rejected()), (1, 1, 2))
        with self.assertRaises(ojs_shm.QueueFull):
            self.queue.submit("any")
        self.assertEqual(self.rejected(), 3)

    def test_BP_P2_threads_share_the_circuit(self):
        queue = self.connect(breaker=2)
        raised = []

        def submit():
            with self.assertRaises(ojs_shm.QueueFull) as caught:
                queue.submit("any")
            raised.append(str(caught.exception))

        for _ in range(4):
            thread = threading.Thread(target=submit)
            thread.start()
            thread.join(BOUND)
        self.assertEqual(self.rejected(), 2)
        self.assertIn("2 refusals in a row", raised[-1])

    def test_BP_P3_a_buffered_job_is_brought_when_there_is_room(self):
        queue = self.connect(buffer=10)
        task = queue.submit("any", 7)
        self.assertTrue(task.buffered)
        batch = queue.submit_many([NewJob("any", 8), NewJob("any", 9)])
        self.assertEqual([each.buffered for each in batch], [True, True])
        with self.assertRaises(ojs_shm.TimedOut):
            queue.flush(0)
        self.queue.configure(max_depth=0)
        queue.flush(BOUND)
        self.assertEqual([each.info().args for each in (task, *batch)], [[7], [8], [9]])
        self.assertEqual(queue.close(), [])

    def test_BP_P3_close_gives_back_what_was_not_sent(self):
        queue = self.connect(buffer=2)
        ids = [queue.submit("any", number, priority=7).id for number in (1, 2)]
        with self.assertRaises(ojs_shm.QueueFull) as caught:
            queue.submit("any")
        self.assertIn("local buffer", str(caught.exception))
        unsent = queue.close()
        self.assertEqual([each.job["id"] for each in unsent], ids)
        self.assertEqual([(each.job["args"], each.job["priority"]) for each in unsent], [([1], 7), ([2], 7)])
        self.assertTrue(all(isinstance(each.error, ojs_shm.OjsError) for each in unsent))

    def test_BP_P3_a_block_that_ends_with_unsent_jobs_warns(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", ResourceWarning)
            with ojs_shm.connect_sync(**self.broker.where, queue=self.queue_name, on_full=OnFull(buffer=2)) as queue:
                queue.submit("any")
        self.assertIn("1 jobs", str(caught[-1].message))

    def test_without_a_buffer_there_is_nothing_to_flush_or_to_take(self):
        self.queue.flush()
        self.assertEqual(self.queue.take_failed(), [])
        self.assertEqual(self.queue.close(), [])


class Pressed(OnQueue):
    def test_BP_T24_a_submit_tells_how_full_its_queue_is(self):
        self.queue.configure(max_depth=4, warning_threshold=0.5, strategy="block")
        self.assertIsNone(self.queue.submit("any").pressure)
        self.assertIsNone(self.queue.submit("any").pressure)
        self.assertEqual(self.queue.submit("any").pressure, (3, 4, 0.75, "jobs"))
        self.assertEqual(self.queue.submit("any", block_timeout=1).pressure, (4, 4, 1, "jobs"))
        self.assertIsNone(self.queue.submit("any", queue=self.queue_name + ".free").pressure)

    def test_a_batch_tells_it_of_the_one_queue_that_it_goes_to(self):
        self.queue.configure(max_depth=4, warning_threshold=0.5)
        batch = self.queue.submit_many([NewJob("any")] * 3)
        self.assertEqual([each.pressure for each in batch], [(3, 4, 0.75, "jobs")] * 3)
        batch = self.queue.submit_many([NewJob("any", queue=self.queue_name + ".free"), NewJob("any")])
        self.assertEqual([each.pressure for each in batch], [None, None])

    def test_what_was_prepared_tells_it_too(self):
        self.queue.configure(max_depth=2, warning_threshold=0.5)
        kind = self.queue.prepare("any")
        self.assertEqual([kind.submit(each).pressure for each in (1, 2)], [None, (2, 2, 1, "jobs")])


class InALoop(OnAsyncQueue):
    async def test_BP_T24_a_submit_tells_how_full_its_queue_is(self):
        await self.queue.configure(max_depth=2, warning_threshold=0.5, strategy="block")
        self.assertIsNone((await self.queue.submit("any")).pressure)
        self.assertEqual((await self.queue.submit("any", block_timeout=1)).pressure, (2, 2, 1, "jobs"))
        waiting = asyncio.ensure_future(self.queue.submit("any", block_timeout=BOUND))
        await asyncio.sleep(0)
        await self.queue.configure(max_depth=4)
        self.assertEqual((await waiting).pressure, (3, 4, 0.75, "jobs"))

    async def test_BP_P1_retries_do_not_stop_the_loop(self):
        await self.queue.configure(max_depth=1)
        await self.queue.submit("first")
        queue = await ojs_shm.connect(**self.broker.where, queue=self.queue_name, on_full=OnFull(retries=9))
        self.addAsyncCleanup(queue.close)
        waiting = asyncio.ensure_future(queue.submit("any", 5))
        await asyncio.to_thread(eventually, lambda: self.queue.sync.stats().raw["rejected_total"] > 0)
        self.assertFalse(waiting.done())
        await self.queue.configure(max_depth=0)
        task = await asyncio.wait_for(waiting, BOUND)
        self.assertFalse(task.buffered)
        self.assertEqual((await task.info()).args, [5])

    async def test_BP_P1_a_submit_that_is_cancelled_between_its_retries_stores_nothing(self):
        await self.queue.configure(max_depth=1)
        first = await self.queue.submit("first")
        queue = await ojs_shm.connect(**self.broker.where, queue=self.queue_name, on_full=OnFull(retries=9))
        self.addAsyncCleanup(queue.close)
        waiting = [asyncio.create_task(each) for each in (queue.submit("any"), queue.submit_many([NewJob("any")]))]
        with self.assertRaises(ojs_shm.QueueFull):
            await queue.submit_many([NewJob("any")] * 2)  # more than there can ever be room for
        await asyncio.to_thread(eventually, lambda: self.queue.sync.stats().raw["rejected_total"] > 2)
        for each in waiting:
            each.cancel()
        await asyncio.wait(waiting)
        await self.queue.configure(max_depth=0)
        late = await queue.submit("late")
        await asyncio.sleep(1.1)  # longer than the pause that each of them made
        self.assertEqual({job.id for job in await self.queue.jobs(queue=self.queue_name)}, {first.id, late.id})

    async def test_BP_P3_the_buffer_of_a_loop(self):
        await self.queue.configure(max_depth=1)
        await self.queue.submit("first")
        queue = await ojs_shm.connect(**self.broker.where, queue=self.queue_name, on_full=OnFull(buffer=4))
        self.assertTrue((await queue.submit("any", 5)).buffered)
        self.assertEqual(await queue.take_failed(), [])
        with self.assertRaises(ojs_shm.TimedOut):
            await queue.flush(0)
        self.assertEqual([each.job["args"] for each in await queue.close()], [[5]])


if __name__ == "__main__":
    unittest.main()
