# SPDX-License-Identifier: Apache-2.0
"""The asyncio client and its worker."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
import unittest
import uuid
from unittest import mock

from segments import BOUND, ROOT, OnAsyncQueue

import ojs_shm
from ojs_shm import Failure, NewJob, Priority, Retry


async def eventually(done):
    end = time.monotonic() + BOUND
    while not (answer := await done()):
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")
        await asyncio.sleep(0.002)
    return answer


class Client(OnAsyncQueue):
    async def test_QO_02_QO_05_submitting_with_and_without_a_priority(self):
        given = (None, 200, "urgent", Priority.URGENT)
        tasks = [await self.queue.submit("any", priority=each) for each in given]
        self.assertEqual([(await task.info()).priority for task in tasks], [128, 200, 200, 200])
        self.assertEqual(tasks[1].priority, 200)

    async def test_every_error_has_its_class(self):
        await self.queue.configure(max_depth=1)
        task = await self.queue.submit("any")
        for expected, asked in ((ojs_shm.QueueFull, lambda: self.queue.submit("any")),
                                (ojs_shm.InvalidArgument, lambda: self.queue.submit("any", priority=256)),
                                (ojs_shm.NotFound, lambda: self.queue.get("0190a5b0-0000-7000-8000-00000000ffff")),
                                (ojs_shm.WrongState, lambda: task.activate()),
                                (ojs_shm.TimedOut, lambda: task.result(0.01)),
                                (ojs_shm.NotFound,
                                 lambda: self.queue.result("0190a5b0-0000-7000-8000-00000000ffff", 5))):
            with self.subTest(expected.__name__), self.assertRaises(expected):
                await asked()
        self.assertEqual((await task.cancel()).state, "cancelled")
        with self.assertRaises(ojs_shm.JobCancelled):
            await task.result(BOUND)

    async def test_BP_T05_BP_T09_many_wait_for_room_at_once_in_their_order(self):
        await self.queue.configure(max_depth=1, strategy="block")
        first = await self.queue.submit("any", 0)
        waiting = [asyncio.create_task(self.queue.submit("any", n + 1, block_timeout=BOUND)) for n in range(200)]
        late = asyncio.create_task(self.queue.submit("any", block_timeout=0.001))
        with self.assertRaises(ojs_shm.QueueFull):
            await late
        waiting.pop(100).cancel()
        await first.cancel()
        for each in waiting:
            task = await asyncio.wait_for(each, BOUND)
            self.assertEqual((await self.queue.stats()).depth, 1)
            await task.cancel()
        self.assertEqual((await self.queue.stats()).raw["waiting"], 0)

    async def test_events_are_followed(self):
        await self.queue.set_events(True)
        task = await self.queue.submit("any")

        async def own_types():
            types = []
            async for event in self.queue.events(from_start=True, types=["job.*"]):
                if event["subject"] == task.id:
                    types.append(event["type"])
                if len(types) == 2:
                    return types

        following = asyncio.create_task(own_types())
        await task.cancel()
        self.assertEqual(await asyncio.wait_for(following, BOUND), ["job.enqueued", "job.cancelled"])

    async def test_a_registered_worker_ends_when_it_is_told(self):
        worker = self.queue.worker(id="aio-1", concurrency=2)
        done = []
        worker.task("any")(done.append)
        running = asyncio.create_task(worker.run(signals=False))
        task = await self.queue.submit("any", 1)
        await task.result(BOUND)
        seen = await self.queue.registered_worker("aio-1")
        self.assertEqual((seen["concurrency"], seen["state"]), (2, "running"))
        await self.queue.direct_worker("aio-1", "terminate")
        await asyncio.wait_for(running, BOUND)
        worker.close()
        self.assertEqual(done, [1])
        self.assertEqual([each["id"] for each in await self.queue.registered_workers() if each["id"] == "aio-1"], [])

    async def test_many_are_submitted_together_and_listed_in_order(self):
        await self.queue.submit_many([NewJob("any", n, priority=n) for n in (1, 3, 2)])
        jobs = await self.queue.jobs(queue=self.queue_name)
        self.assertEqual([job.input for job in jobs], [3, 2, 1])
        self.assertEqual((await self.queue.stats()).depth, 3)
        self.assertIn(self.queue_name, [each.name for each in await self.queue.queues()])
        self.assertEqual((await self.queue.segment_stats())["segment"]["convention"], "qo")
        self.assertEqual(await self.queue.audit(), [])

    async def test_hundreds_of_results_are_waited_for_at_once_while_the_loop_runs(self):
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        tasks = await self.queue.submit_many([NewJob("any", n) for n in range(300)])
        waiting = [asyncio.create_task(task.result(BOUND)) for task in tasks]
        ticking = asyncio.create_task(tick())

        def work():
            with self.queue.sync.worker() as worker:
                for _ in tasks:
                    job = worker.fetch(BOUND)
                    job.ack(job.input)

        worker = threading.Thread(target=work)
        worker.start()
        self.assertEqual(await asyncio.gather(*waiting), list(range(300)))
        worker.join()
        ticking.cancel()
        self.assertGreater(ticks, 1)

    async def test_a_cancelled_wait_leaves_the_job_alone(self):
        task = await self.queue.submit("any")
        waiting = asyncio.create_task(task.result())
        await asyncio.sleep(0)
        waiting.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await waiting
        self.assertEqual(task.state, "available")

    async def test_what_is_not_an_id_ends_no_other_wait(self):
        task = await self.queue.submit("any")
        waiting = asyncio.create_task(task.wait(BOUND))
        for wrong in (uuid.uuid4(), b"id", "\ud800", [task.id]):
            with self.assertRaises((TypeError, ValueError)):
                await self.queue.wait(wrong, BOUND)
        await task.cancel()
        self.assertEqual((await waiting).state, "cancelled")

    async def test_a_job_that_cannot_be_read_ends_no_other_wait(self):
        task, wrong = await self.queue.submit("any"), await self.queue.submit("any")
        wait = self.queue.sync.wait

        def waits(id, timeout):
            if id == wrong.id:
                raise ValueError("what is this?")
            return wait(id, timeout)

        with mock.patch.object(self.queue.sync, "wait", waits):
            waiting = asyncio.create_task(task.wait(BOUND))
            with self.assertRaisesRegex(ValueError, "what is this?"):
                await wrong.wait(BOUND)
            await task.cancel()
            self.assertEqual((await waiting).state, "cancelled")

    async def test_closing_ends_a_wait(self):
        queue = await ojs_shm.connect(**self.broker.where)
        waiting = asyncio.create_task(queue.result((await self.queue.submit("any")).id))
        await asyncio.sleep(0)
        await queue.close()
        with self.assertRaises(ojs_shm.Closed):
            await waiting
        with self.assertRaises(ojs_shm.Closed):
            await queue.submit("any")

    async def test_async_with(self):
        async with await ojs_shm.connect(**self.broker.where) as queue:
            await queue.submit("any")
        with self.assertRaises(ojs_shm.Closed):
            await queue.submit("any")


class OjsConvention(OnAsyncQueue):
    convention = "ojs"

    async def test_reprioritise_moves_a_waiting_job(self):
        task = await self.queue.submit("any", priority=Priority.LOW)
        self.assertEqual(await task.reprioritize("critical"), 3)
        self.assertEqual(task.priority, 0)


class Worker(OnAsyncQueue):
    async def test_handlers_in_the_loop_and_in_threads(self):
        worker = self.queue.worker()

        @worker.task("double")
        async def double(input):
            await asyncio.sleep(0)
            return input * 2

        @worker.task("blocking")
        def blocking(input, job):
            return [threading.current_thread() is not threading.main_thread(), job.attempt]

        async with worker:
            doubled = await self.queue.submit("double", 21)
            blocked = await self.queue.submit("blocking")
            self.assertEqual(await doubled.result(BOUND), 42)
            self.assertEqual(await blocked.result(BOUND), [True, 1])

    async def test_handlers_run_together_up_to_the_concurrency(self):
        worker, together, most, running = self.queue.worker(concurrency=5), asyncio.Event(), 0, 0

        @worker.task("meet")
        async def meet(input):
            nonlocal most, running
            running += 1
            most = max(most, running)
            if running == 5:
                together.set()
            await together.wait()
            await asyncio.sleep(0)
            running -= 1

        async with worker:
            tasks = await self.queue.submit_many([NewJob("meet") for _ in range(40)])
            await asyncio.gather(*(task.result(BOUND) for task in tasks))
        self.assertEqual(most, 5)

    async def test_jobs_submitted_while_all_places_are_taken_run_when_one_is_free(self):
        worker, order, begun, go_on = self.queue.worker(concurrency=1), [], asyncio.Event(), asyncio.Event()

        @worker.task("step")
        async def step(input):
            order.append(input)
            begun.set()
            await go_on.wait()

        async with worker:
            await self.queue.submit("step", "first", priority=Priority.LOW)
            await begun.wait()
            low = await self.queue.submit("step", "low", priority=Priority.BACKGROUND)
            await self.queue.submit("step", "urgent", priority=Priority.URGENT)
            go_on.set()
            await low.wait(BOUND)
        self.assertEqual(order, ["first", "urgent", "low"])

    async def test_failures_are_recorded_and_retried(self):
        worker = self.queue.worker()

        @worker.task("odd")
        async def odd(input, job):
            if job.attempt == 1:
                raise KeyError("one too many")
            raise Failure("no use", code="hopeless", retryable=False)

        async with worker:
            task = await self.queue.submit("odd", retry=Retry(delay=0.001, jitter=False))
            with self.assertRaises(ojs_shm.JobFailed) as caught:
                await task.result(BOUND)
            self.assertEqual([(error.code, error.type) for error in caught.exception.job.errors],
                             [("error", "KeyError"), ("hopeless", "hopeless")])
            with self.assertRaises(ojs_shm.JobFailed) as caught:
                await (await self.queue.submit("unknown")).result(BOUND)
            self.assertEqual(caught.exception.job.error.code, "no_handler")

    async def test_cancelling_a_job_cancels_its_handler(self):
        worker, begun, ended = self.queue.worker(), asyncio.Event(), asyncio.Event()

        @worker.task("long")
        async def long(input):
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        async with worker:
            task = await self.queue.submit("long")
            await begun.wait()
            await task.cancel()
            await asyncio.wait_for(ended.wait(), BOUND)
        self.assertEqual(task.state, "cancelled")

    # As for the blocking worker: beside a neglected job with the same lease, which is lost. Meanwhile the
    # handler blocks the whole loop, which must not cost it its lease.
    async def test_a_lease_lasts_though_the_handler_blocks_the_loop(self):
        worker = self.queue.worker()
        begun, go_on = threading.Event(), threading.Event()
        neglected = []

        @worker.task("work")
        async def work(input, job):
            begun.set()
            go_on.wait(BOUND)
            return job.cancel_requested

        def neglect():
            begun.wait(BOUND)
            try:
                self.queue.sync.submit("work", queue="neglected", lease=4)
                with self.queue.sync.worker(queues=["neglected"]) as careless:
                    job = careless.fetch(BOUND)
                    end = time.monotonic() + BOUND
                    while not job.cancel_requested and time.monotonic() < end:
                        time.sleep(0.002)
                    neglected.append(job.cancel_requested)
            finally:
                go_on.set()

        thread = threading.Thread(target=neglect)
        thread.start()
        async with worker:
            held = await self.queue.submit("work", lease=4)
            self.assertIs(await held.result(BOUND), False)
        thread.join()
        self.assertEqual(neglected, [True])
        self.assertEqual((await held.info()).attempt, 1)

    async def test_stop_drains_and_fetches_nothing_more(self):
        worker, begun, go_on = self.queue.worker(concurrency=1, id="aio-ends"), asyncio.Event(), asyncio.Event()

        @worker.task("slow")
        async def slow(input):
            begun.set()
            await go_on.wait()
            return "done"

        running = asyncio.create_task(worker.run(signals=False))
        first = await self.queue.submit("slow")
        await begun.wait()
        second = await self.queue.submit("slow")
        worker.stop()
        while (await self.queue.registered_worker("aio-ends"))["state"] != "terminate":
            await asyncio.sleep(0.01)
        go_on.set()
        await asyncio.wait_for(running, BOUND)
        self.assertEqual(await first.result(BOUND), "done")
        self.assertEqual((await second.info()).attempt, 0)
        with self.assertRaises(ojs_shm.WrongState):
            await worker.run(signals=False)

    async def test_what_keeps_a_worker_from_beginning_is_raised_at_once(self):
        begun = []
        for options, error in (({"pool": "typo"}, ojs_shm.NotFound), ({"queues": ["Mail"]}, ojs_shm.InvalidArgument)):
            with self.assertRaises(error):
                async with self.queue.worker(**options):
                    begun.append(options)
        self.assertEqual(begun, [])

    async def held_while(self, end):
        """Whether run() returns after `end(queue, worker)`, while one handler waits; and what became of its job and of the one
        behind it."""
        queue = await ojs_shm.connect(**self.broker.where, queue=self.queue_name)
        self.addAsyncCleanup(queue.close)
        worker, begun, go_on = queue.worker(concurrency=2), asyncio.Event(), asyncio.Event()

        @worker.task("slow")
        async def slow(input):
            begun.set()
            await go_on.wait()

        running = asyncio.create_task(worker.run(signals=False))
        held = await self.queue.submit("slow")
        await begun.wait()
        await end(queue, worker)
        behind = await self.queue.submit("slow")
        go_on.set()
        await asyncio.wait_for(running, BOUND)
        return held.state, behind.state

    async def test_a_worker_that_is_closed_while_it_runs_ends_as_by_stop(self):
        async def close(_, worker):
            worker.close()

        self.assertEqual(await self.held_while(close), ("completed", "available"))

    async def test_a_worker_ends_with_its_connection(self):
        async def close(queue, _):
            await queue.close()

        self.assertEqual(await self.held_while(close), ("available", "available"))

    async def test_a_worker_ends_with_its_connection_that_a_thread_closes(self):
        async def close(queue, _):
            await asyncio.to_thread(queue.sync.close)

        self.assertEqual(await self.held_while(close), ("available", "available"))

    async def test_the_end_of_the_loop_gives_running_jobs_back(self):
        async def main():
            async with await ojs_shm.connect(**self.broker.where, queue=self.queue_name) as queue:
                worker, begun = queue.worker(grace=0.1), asyncio.Event()

                @worker.task("long")
                async def long(input):
                    begun.set()
                    await asyncio.Event().wait()

                running.append(asyncio.create_task(worker.run(signals=False)))
                await begun.wait()
                for task in asyncio.all_tasks() - {asyncio.current_task()}:  # as asyncio.run() does at its end
                    task.cancel()
                await asyncio.wait(running)

        running = []
        task = await self.queue.submit("long")
        await asyncio.to_thread(asyncio.run, main())
        info = await task.info()
        self.assertEqual((info.state, info.attempt, info.errors), ("available", 0, []))

    async def left_running(self, end):
        """The task of run(), one handler of which goes on after `end(worker, task)`."""
        worker, begun = self.queue.worker(grace=0.02), asyncio.Event()
        ended = []

        @worker.task("stuck")
        async def stuck(input):
            begun.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise

        running = asyncio.create_task(worker.run(signals=False))
        task = await self.queue.submit("stuck")
        await begun.wait()
        end(worker, running)
        await asyncio.wait([running], timeout=BOUND)
        self.assertEqual(ended, ["cancelled"])
        info = await task.info()
        self.assertEqual((info.state, info.attempt), ("available", 0))
        return running

    async def test_what_still_runs_after_the_grace_time_is_given_back(self):
        running = await self.left_running(lambda worker, _: worker.stop())
        self.assertIsInstance(running.exception(), ojs_shm.TimedOut)

    async def test_a_run_that_is_cancelled_ends_as_cancelled_though_jobs_were_given_back(self):
        running = await self.left_running(lambda _, running: running.cancel())
        self.assertTrue(running.cancelled())


PROGRAM = """
import asyncio, sys, ojs_shm

async def main():
    async with await ojs_shm.connect(queue=sys.argv[1]) as queue:
        worker = queue.worker()

        @worker.task("slow")
        async def slow(input):
            print("begun", flush=True)
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            return "done"

        await worker.run()
    print("drained", flush=True)

asyncio.run(main())
"""


class Signals(OnAsyncQueue):
    async def start(self, program):
        environment = {**os.environ, "OJS_SHM_NAME": self.broker.name, "OJS_SHM_DIR": self.broker.dir,
                       "PYTHONPATH": str(ROOT / "worker_api" / "python")}
        return await asyncio.create_subprocess_exec(sys.executable, "-c", program, self.queue_name, env=environment,
                                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    async def test_a_quiet_worker_takes_nothing_until_it_resumes(self):
        worker = self.queue.worker(id="aio-rests")

        @worker.task("quick")
        async def quick(input):
            return "done"

        async def becomes(state):
            while ("aio-rests", state) not in [(each["id"], each["state"])
                                               for each in await self.queue.registered_workers()]:
                await asyncio.sleep(0.01)

        async with worker:
            for _ in range(2):
                worker.quiet()
                await asyncio.wait_for(becomes("quiet"), BOUND)
                task = await self.queue.submit("quick")
                with self.queue.sync.worker() as other:
                    job = await asyncio.to_thread(other.fetch, BOUND)
                    self.assertEqual(job.id, task.id)
                    job.requeue()
                worker.resume()
                self.assertEqual(await task.result(BOUND), "done")
                await asyncio.wait_for(becomes("running"), BOUND)

    async def test_an_order_that_is_taken_back_at_once_stops_no_worker(self):
        worker = self.queue.worker(id="aio-hears")
        begun, goes_on = asyncio.Event(), asyncio.Event()

        @worker.task("slow")
        async def slow(input):
            begun.set()
            await goes_on.wait()
            return "done"

        async with worker:
            task = await self.queue.submit("slow")
            await asyncio.wait_for(begun.wait(), BOUND)
            await self.queue.direct_worker("aio-hears", "quiet")
            goes_on.set()
            self.assertEqual(await task.result(BOUND), "done")
            await asyncio.sleep(0.2)  # it asks, and hears of the order, before its next sign of life does
            await self.queue.direct_worker("aio-hears", "running")
            self.assertEqual(await (await self.queue.submit("slow")).result(BOUND), "done")

    async def test_sigtstp_and_sigcont_reach_a_worker_program(self):
        program = await self.start(PROGRAM.replace("queue.worker()", 'queue.worker(id="aio-heeds")'))

        async def becomes(state):
            while (await self.queue.registered_worker("aio-heeds"))["state"] != state:
                await asyncio.sleep(0.01)

        try:
            await self.queue.submit("slow")
            self.assertEqual(await asyncio.wait_for(program.stdout.readline(), BOUND), b"begun\n")
            program.send_signal(signal.SIGTSTP)
            await asyncio.wait_for(becomes("quiet"), BOUND)
            program.send_signal(signal.SIGCONT)
            await asyncio.wait_for(becomes("running"), BOUND)
            program.send_signal(signal.SIGTERM)
            program.stdin.write(b"go on\n")
            self.assertEqual(await asyncio.wait_for(program.stdout.readline(), BOUND), b"drained\n")
            self.assertEqual(await asyncio.wait_for(program.wait(), BOUND), 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                program.kill()

    async def test_sigterm_drains_a_worker_program(self):
        program = await self.start(PROGRAM)
        try:
            task = await self.queue.submit("slow")
            self.assertEqual(await asyncio.wait_for(program.stdout.readline(), BOUND), b"begun\n")
            program.send_signal(signal.SIGTERM)
            program.stdin.write(b"go on\n")
            self.assertEqual(await asyncio.wait_for(program.stdout.readline(), BOUND), b"drained\n")
            self.assertEqual(await asyncio.wait_for(program.wait(), BOUND), 0)
        finally:
            with contextlib.suppress(ProcessLookupError):
                program.kill()
        self.assertEqual(await task.result(BOUND), "done")


if __name__ == "__main__":
    unittest.main()
