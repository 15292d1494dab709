# SPDX-License-Identifier: Apache-2.0
"""Middlewares around submitting and around handlers, blocking and in asyncio."""

import dataclasses
import unittest

from segments import BOUND, OnAsyncQueue, OnQueue

import ojs_shm
from ojs_shm import Chain, Failure, NewJob


def step(job, next):
    return next(job)


class Arranging(unittest.TestCase):
    def test_a_chain_is_arranged_by_names(self):
        chain = Chain()
        chain.add(step, name="logging")
        chain.add(step, name="timeout")
        chain.insert_before("timeout", step, name="metrics")
        chain.prepend(step, name="reports")
        chain.insert_after("reports", step, name="traces")
        self.assertEqual(chain.names, ["reports", "traces", "logging", "metrics", "timeout"])
        chain.remove("reports")
        self.assertEqual(chain.names, ["traces", "logging", "metrics", "timeout"])
        with self.assertRaises(ojs_shm.InUse):
            chain.add(step, name="timeout")
        with self.assertRaises(ojs_shm.NotFound):
            chain.insert_before("reports", step)
        with self.assertRaises(ojs_shm.NotFound):
            chain.remove("reports")

    def test_functions_and_objects_have_names_and_stand_for_themselves(self):
        class Tracing:
            def call(self, job, next):
                return next(job)

        chain, tracing = Chain(), Tracing()
        chain.add(tracing)
        chain.add(step)
        chain.insert_before(step, step, name="again")
        self.assertEqual(chain.names, ["Tracing", "again", "step"])
        chain.remove(tracing)
        self.assertEqual(chain.names, ["again", "step"])


class Submitting(OnQueue):
    def test_L0_MW_001_a_submit_passes_the_chain_which_may_change_the_job(self):
        order = []

        @self.queue.middleware.add
        def trace(job, next):
            order.append(("trace", job.type, job.queue, job.meta))
            passed = next(dataclasses.replace(job, meta={"traceparent": "00-4b"}))
            order.append(("passed", passed.input))
            return passed

        @self.queue.middleware.add
        def double(job, next):
            order.append(("double", job.meta))
            return next(dataclasses.replace(job, input=job.input * 2))

        info = self.queue.submit("walk", 21).info()
        self.assertEqual(info.input, 42)
        self.assertEqual(info.raw["meta"], {"traceparent": "00-4b"})
        self.assertEqual(order, [("trace", "walk", self.queue_name, None), ("double", {"traceparent": "00-4b"}),
                                 ("passed", 42)])

    def test_a_job_may_be_dropped_or_refused(self):
        after = []

        @self.queue.middleware.add
        def gate(job, next):
            if job.type == "refused":
                raise ValueError("not on Sundays")
            return None if job.type == "dropped" else job  # without next: goes on all the same

        @self.queue.middleware.add
        def last(job, next):
            after.append(job.type)
            return next(job)

        self.assertIsNone(self.queue.submit("dropped"))
        with self.assertRaisesRegex(ValueError, "not on Sundays"):
            self.queue.submit("refused")
        self.assertEqual(after, [])
        self.assertEqual(self.queue.submit("kept").state, "available")
        self.assertEqual(after, ["kept"])
        self.assertEqual(self.queue.stats().depth, 1)

    def test_what_a_middleware_must_not_do_is_an_error(self):
        wrong = {
            "twice": lambda job, next: next(job) and next(job),
            "renames": lambda job, next: next(dataclasses.replace(job, id="019539a4-b68c-7def-8000-1a2b3c4d5e6f")),
            "odd": lambda job, next: next(job.type),
        }
        for name, middleware in wrong.items():
            self.queue.middleware.add(middleware, name=name)
            with self.subTest(name), self.assertRaises((RuntimeError, TypeError, ojs_shm.InvalidArgument)):
                self.queue.submit("any")
            self.queue.middleware.remove(name)

    def test_each_job_of_a_batch_passes_the_chain_and_an_error_refuses_all(self):
        @self.queue.middleware.add
        def gate(job, next):
            if job.type == "refused":
                raise ValueError("not on Sundays")
            return None if job.type == "dropped" else next(dataclasses.replace(job, tags=[job.type]))

        first, dropped, second = self.queue.submit_many([NewJob("first"), NewJob("dropped"), NewJob("second")])
        self.assertIsNone(dropped)
        self.assertEqual([first.info().raw["tags"], second.info().raw["tags"]], [["first"], ["second"]])
        with self.assertRaises(ValueError):
            self.queue.submit_many([NewJob("first"), NewJob("refused")])
        self.assertEqual(self.queue.submit_many([NewJob("dropped")]), [None])
        self.assertEqual(self.queue.stats().depth, 2)


class Handling(OnQueue):
    def test_L0_MW_002_the_first_is_the_outermost_and_tells_the_others(self):
        worker, order = self.queue.worker(), []

        @worker.middleware.add
        def outer(job, next):
            job.metadata["span"] = job.id
            result = next()
            order.append(f"outer {result}")
            return {"wrapped": result}

        @worker.middleware.add
        def inner(job, next):
            order.append(f"inner {job.metadata['span']}")
            return next()

        @worker.task("walk")
        def walk(input, job):
            order.append(f"handler {job.metadata['span']}")
            return input

        task = self.queue.submit("walk", 7)
        with self.running(worker):
            self.assertEqual(task.result(BOUND), {"wrapped": 7})
            with self.assertRaises(ojs_shm.WrongState):
                worker.middleware.add(step)
        self.assertEqual(order, [f"inner {task.id}", f"handler {task.id}", "outer 7"])

    def test_errors_pass_outwards_and_those_of_middlewares_are_told_apart(self):
        worker, seen = self.queue.worker(), []

        @worker.middleware.add
        def report(job, next):
            try:
                return next()
            except ValueError as error:
                seen.append(str(error))
                if job.type == "mended":
                    return "mended"
                raise

        @worker.middleware.add
        def odd(job, next):
            if job.type == "early":
                raise KeyError("mine")
            if job.type == "breaker":
                raise Failure("it is broken", code="open", retryable=False)
            return next() if job.type != "answered" else "answered"

        for type in ("mended", "broken", "early", "breaker", "answered"):
            @worker.task(type)
            def fails(input):
                raise ValueError("no route")

        tasks = {type: self.queue.submit(type, retry=1)
                 for type in ("mended", "broken", "early", "breaker", "answered")}
        with self.running(worker):
            ended = {type: task.wait(BOUND) for type, task in tasks.items()}
        self.assertEqual(ended["mended"].outcome(), "mended")
        self.assertEqual(ended["answered"].outcome(), "answered")
        self.assertEqual({type: ended[type].error.code for type in ("broken", "early", "breaker")},
                         {"broken": "error", "early": "middleware_error", "breaker": "open"})
        self.assertEqual(sorted(seen), ["no route", "no route"])


class InAsyncio(OnAsyncQueue):
    async def test_both_chains_are_awaited(self):
        worker, order = self.queue.worker(), []

        class Tracing:
            async def call(self, job, call_next):
                order.append("submitting")
                return await call_next(dataclasses.replace(job, meta={"traced": True}))

        self.queue.middleware.add(Tracing())
        self.queue.middleware.add(lambda job, next: None if job.type == "dropped" else next(job), name="plain")

        @worker.middleware.add
        async def around(job, next):
            order.append(f"before {job.meta}")
            result = await next()
            order.append(f"after {result}")
            return result

        @worker.task("walk")
        async def walk(input):
            return input

        @worker.task("sit")
        def sit(input):
            raise ValueError("no chair")

        async with worker:
            self.assertEqual(await (await self.queue.submit("walk", 7)).result(BOUND), 7)
            self.assertIsNone(await self.queue.submit("dropped"))
            ended = await (await self.queue.submit("sit", retry=1)).wait(BOUND)
        self.assertEqual(ended.error.code, "error")
        self.assertEqual(order[:3], ["submitting", "before {'traced': True}", "after 7"])
        batch = await self.queue.submit_many([NewJob("walk"), NewJob("dropped")])
        self.assertEqual([each is None for each in batch], [False, True])


if __name__ == "__main__":
    unittest.main()
