# SPDX-License-Identifier: Apache-2.0
"""The blocking worker: by hand and with handlers on threads."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import unittest
import unittest.mock

from segments import BOUND, ROOT, OnQueue, eventually

import ojs_shm
from ojs_shm import Failure, InvalidArgument, JobFailed, Priority, Retry


class ByHand(OnQueue):
    def test_a_job_tells_everything_of_itself(self):
        task = self.queue.submit("any", {"n": 1}, priority=7, meta={"trace": "abc"}, tags=["x"], lease=60, retry=5)
        with self.queue.worker() as worker:
            job = worker.fetch(BOUND)
            self.assertEqual((job.id, job.type, job.queue, job.priority), (task.id, "any", self.queue_name, 7))
            self.assertEqual((job.attempt, job.max_attempts, job.meta, job.tags), (1, 5, {"trace": "abc"}, ["x"]))
            self.assertEqual((job.deadline - job.started_at).total_seconds(), 60)
            self.assertGreater(job.fence, 0)
            self.assertLessEqual(job.created_at, job.started_at)
            job.ack()

    def test_a_workflow_passes_results_on(self):
        step = {"type": "any", "args": [], "queue": self.queue_name}
        with self.assertRaises(ojs_shm.InvalidArgument) as caught:
            self.queue.create_workflow({"type": "chain", "steps": [step, {"type": "any"}]})
        self.assertEqual(caught.exception.subject, "$.steps[1].args")
        made = self.queue.create_workflow({"type": "chain", "steps": [step, step]})
        with self.queue.worker() as worker:
            first = worker.fetch(BOUND)
            self.assertEqual((first.workflow_id, first.parent_results), (made, []))
            first.ack({"n": 1})
            second = worker.fetch(BOUND)
            self.assertEqual(second.parent_results, [{"n": 1}])
            second.ack()
        self.assertEqual(self.queue.workflow(made)["state"], "completed")
        self.assertIn(made, [each["id"] for each in self.queue.workflows("completed")])
        with self.assertRaises(ojs_shm.WrongState):
            self.queue.cancel_workflow(made)

    def test_a_registered_worker_is_seen_and_obeys(self):
        with self.queue.worker(id="py-1", labels={"zone": "a"}, concurrency=3) as worker:
            self.assertIsNone(worker.fetch(0))
            seen = self.queue.registered_worker("py-1")
            self.assertEqual((seen["labels"], seen["concurrency"], seen["state"], seen["queues"]),
                             ({"zone": "a"}, 3, "running", [self.queue_name]))
            self.assertIn("py-1", [each["id"] for each in self.queue.registered_workers()])
            with self.assertRaises(ojs_shm.InvalidArgument):
                self.queue.direct_worker("py-1", "sleep")
            self.queue.direct_worker("py-1", "quiet")
            self.queue.submit("any")
            self.assertIsNone(worker.fetch(0), "it takes no more")
            self.queue.direct_worker("py-1", "running")
            worker.fetch(BOUND).ack()
            self.queue.direct_worker("py-1", "terminate")
            with self.assertRaises(ojs_shm.Closed):
                worker.fetch(BOUND)
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.registered_worker("py-1")
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.remove_worker("py-1")

    def test_an_empty_queue_gives_none(self):
        with self.queue.worker() as worker:
            self.assertIsNone(worker.fetch(0))
            self.assertIsNone(worker.fetch(0.01))

    def test_a_waiting_fetch_is_woken_by_a_submit(self):
        taken = []
        with self.queue.worker() as worker:
            thread = threading.Thread(target=lambda: taken.append(worker.fetch(BOUND)))
            thread.start()
            task = self.queue.submit("any")
            thread.join()
            self.assertEqual(taken[0].id, task.id)
            taken[0].ack()

    def test_closing_ends_a_waiting_fetch(self):
        worker, caught = self.queue.worker(), []

        def wait():
            try:
                worker.fetch()
            except ojs_shm.Closed as error:
                caught.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        worker.close()
        thread.join(BOUND)
        self.assertEqual(len(caught), 1)

    def test_a_settled_job_is_lost_to_its_worker(self):
        self.queue.submit("any")
        with self.queue.worker() as worker:
            job = worker.fetch(0)
            self.assertFalse(job.cancel_requested)
            job.ack({"done": True})
            self.assertTrue(job.cancel_requested)
            for again in (job.ack, job.nack, job.requeue, job.heartbeat):
                with self.subTest(again.__name__), self.assertRaises(ojs_shm.Lost):
                    again()

    def test_requeue_gives_it_back_uncounted(self):
        first, second = self.queue.submit("any", 1), self.queue.submit("any", 2)
        with self.queue.worker() as worker:
            worker.fetch(0).requeue()
            job = worker.fetch(0)
            self.assertEqual((job.id, job.attempt), (first.id, 1))
            job.ack()
        second.cancel()

    def test_what_a_closed_worker_held_goes_back(self):
        task = self.queue.submit("any")
        with self.queue.worker() as worker:
            worker.fetch(0)
            self.assertEqual(task.state, "active")
        self.assertEqual(task.state, "available")
        task.cancel()

    def test_heartbeat_extends_and_progress_is_seen(self):
        task = self.queue.submit("any", lease=60)
        with self.queue.worker() as worker:
            job = worker.fetch(0)
            before = job.deadline
            self.assertGreater((job.heartbeat(120) - before).total_seconds(), 30)
            job.progress(0.25)
            self.assertEqual(task.info().progress, 0.25)
            job.progress(0.5, "half", {"rows": 50})
            self.assertEqual((task.info().progress, task.info().progress_message, task.info().progress_data),
                             (0.5, "half", {"rows": 50}))
            job.progress(0.3, "behind")
            self.assertEqual((task.info().progress, task.info().progress_message), (0.5, "half"))
            with self.assertRaises(ojs_shm.InvalidArgument):
                job.progress(2)
            job.ack()

    def test_a_checkpoint_is_there_for_the_next_attempt(self):
        task = self.queue.submit("any", retry=ojs_shm.Retry(delay=0.001, jitter=False))
        with self.queue.worker() as worker:
            job = worker.fetch(0)
            self.assertIsNone(job.last_checkpoint)
            job.checkpoint({"row": 7})
            job.progress(0.5, "half")
            self.assertEqual(task.info().last_checkpoint, {"row": 7})
            job.nack("broken")
            job = worker.fetch(10)
            self.assertEqual((job.last_checkpoint, job.attempt), ({"row": 7}, 2))
            with self.queue.proxy() as proxy:
                proxy.checkpoint(job.id, [8])
            self.assertEqual(job.last_checkpoint, [8])
            with self.assertRaises(ValueError):
                job.checkpoint(float("nan"))
            job.ack()

    def test_queues_are_tried_in_order(self):
        low = self.queue.submit("any", queue="second", priority=255)
        high = self.queue.submit("any", queue="first", priority=0)
        with self.queue.worker(queues=["first", "second"]) as worker:
            for expected in (high, low):
                job = worker.fetch(0)
                self.assertEqual(job.id, expected.id)
                job.ack()

    def test_queues_take_turns_by_weight(self):
        for queue in ("wc", "wd", "wl"):
            for _ in range(8):
                self.queue.submit("any", queue=queue)
        served = []
        with self.queue.worker(queues={"wc": 5, "wd": 2, "wl": 1}) as worker:
            for _ in range(8):
                job = worker.fetch(0)
                served.append(job.queue)
                job.ack()
        self.assertEqual([served.count(queue) for queue in ("wc", "wd", "wl")], [5, 2, 1])
        with self.assertRaises(ojs_shm.InvalidArgument) as caught, self.queue.worker(queues={"wc": 0}) as worker:
            worker.fetch(0)
        self.assertEqual(caught.exception.subject, "weights")


class Handlers(OnQueue):
    def test_handlers_by_type_with_results(self):
        worker = self.queue.worker(concurrency=2)

        @worker.task("double")
        def double(input):
            return input * 2

        @worker.task("tell")
        def tell(input, job):
            return {"id": job.id, "input": input}

        @worker.task("tick")
        def tick():
            return "tock"

        @worker.task("later")
        async def later(input):
            return input

        with self.running(worker):
            told = self.queue.submit("tell", [1])
            self.assertEqual(self.queue.submit("double", 21).result(BOUND), 42)
            self.assertEqual(told.result(BOUND), {"id": told.id, "input": [1]})
            self.assertEqual(self.queue.submit("tick").result(BOUND), "tock")
            self.assertEqual(self.queue.submit("later", "on").result(BOUND), "on")

    def test_as_many_handlers_run_at_once_as_there_are_threads(self):
        worker, together = self.queue.worker(concurrency=4), threading.Barrier(4)
        worker.task("meet")(lambda: together.wait(BOUND) >= 0)
        with self.running(worker):
            tasks = [self.queue.submit("meet") for _ in range(4)]
            self.assertEqual([task.result(BOUND) for task in tasks], [True] * 4)

    def test_QO_18_the_best_job_is_chosen_when_a_handler_has_ended(self):
        worker, order, begun, go_on = self.queue.worker(), [], threading.Event(), threading.Event()

        @worker.task("step")
        def step(input):
            order.append(input)
            begun.set()
            go_on.wait(BOUND)

        with self.running(worker):
            self.queue.submit("step", "first", priority=Priority.LOW)
            begun.wait(BOUND)
            low = self.queue.submit("step", "low", priority=Priority.BACKGROUND)
            self.queue.submit("step", "urgent", priority=Priority.URGENT)
            go_on.set()
            low.wait(BOUND)
        self.assertEqual(order, ["first", "urgent", "low"])

    def test_an_exception_is_recorded_and_retried(self):
        worker = self.queue.worker()

        @worker.task("odd")
        def odd(input, job):
            if job.attempt == 1:
                raise KeyError("one too many")
            return job.attempt

        with self.running(worker):
            task = self.queue.submit("odd", retry=Retry(delay=0.001, jitter=False))
            self.assertEqual(task.result(BOUND), 2)
        error = task.info().error
        self.assertEqual((error.code, error.type, error.message), ("error", "KeyError", "'one too many'"))
        self.assertTrue(any("raise KeyError" in frame for frame in error.backtrace), error.backtrace)

    def test_a_failure_chooses_its_code_and_forbids_the_retry(self):
        worker = self.queue.worker()

        @worker.task("strict")
        def strict(input):
            raise Failure("nobody lives there", code="bad_address", retryable=False, details={"line": 7})

        with self.running(worker):
            with self.assertRaises(ojs_shm.JobFailed) as caught:
                self.queue.submit("strict").result(BOUND)
        error = caught.exception.job.error
        self.assertEqual((error.code, error.message, error.details), ("bad_address", "nobody lives there", {"line": 7}))

    def test_a_failure_closes_the_limit_of_its_job(self):
        worker, ran = self.queue.worker(), []

        @worker.task("calls")
        def calls(input):
            ran.append(input)
            raise Failure("429", rate_limit_until=4_070_908_800)  # 2099

        limit = {"key": "api", "concurrency": 5}
        first, second = (self.queue.submit("calls", n, rate_limit=limit, retry=1) for n in (1, 2))
        with self.running(worker):
            with self.assertRaises(ojs_shm.JobFailed):
                first.result(BOUND)
        self.assertEqual((ran, second.info().state), ([1], "available"))

    def test_an_unknown_type_and_a_result_that_is_no_json_are_discarded(self):
        worker = self.queue.worker()
        worker.task("strange")(lambda: object())
        with self.running(worker):
            for type, code in (("unknown", "no_handler"), ("strange", "invalid_result")):
                with self.assertRaises(ojs_shm.JobFailed) as caught:
                    self.queue.submit(type).result(BOUND)
                self.assertEqual(caught.exception.job.error.code, code)
                self.assertEqual(caught.exception.job.attempt, 1)

    def test_a_running_handler_sees_its_cancellation(self):
        worker, begun = self.queue.worker(), threading.Event()
        seen = []

        @worker.task("long")
        def long(input, job):
            begun.set()
            seen.append(eventually(lambda: job.cancel_requested))

        with self.running(worker):
            task = self.queue.submit("long")
            begun.wait(BOUND)
            task.cancel()
            eventually(lambda: seen)
        self.assertEqual(task.state, "cancelled")

    # Two jobs with the same short lease, of which the one that nobody looks after is fetched later: when its lease has
    # ended the other would have been lost as well, had the worker not extended it.
    def test_a_lease_lasts_as_long_as_its_handler(self):
        worker, begun, go_on = self.queue.worker(), threading.Event(), threading.Event()

        @worker.task("work")
        def work(input, job):
            begun.set()
            go_on.wait(BOUND)
            return job.cancel_requested

        with self.running(worker), self.queue.worker(queues=["neglected"]) as careless:
            held = self.queue.submit("work", lease=4)
            begun.wait(BOUND)
            self.queue.submit("work", queue="neglected", lease=4)
            job = careless.fetch(BOUND)
            eventually(lambda: job.cancel_requested)
            self.assertEqual((held.state, held.info().attempt), ("active", 1))
            go_on.set()
            self.assertIs(held.result(BOUND), False)

    def test_stop_lets_handlers_finish_and_fetches_nothing_more(self):
        worker, begun, go_on = self.queue.worker(id="py-ends"), threading.Event(), threading.Event()

        @worker.task("slow")
        def slow(input):
            begun.set()
            go_on.wait(BOUND)
            return "done"

        with self.running(worker) as raised:
            first = self.queue.submit("slow")
            begun.wait(BOUND)
            second = self.queue.submit("slow")
            self.assertEqual(self.queue.registered_worker("py-ends")["state"], "running")
            worker.stop()
            eventually(lambda: self.queue.registered_worker("py-ends")["state"] == "terminate")
            go_on.set()
        self.assertEqual(raised, [])
        self.assertEqual(first.result(BOUND), "done")
        self.assertEqual((second.state, second.info().attempt), ("available", 0))

    def test_closing_beside_run_ends_it(self):
        for id in (None, "py-closes"):
            worker = self.queue.worker(id=id)
            with self.running(worker) as raised:
                eventually(lambda: id is None or id in [each["id"] for each in self.queue.registered_workers()])
                worker.close()
            self.assertEqual(raised, [])

    def test_what_still_runs_after_the_grace_time_is_given_back(self):
        worker, begun, go_on = self.queue.worker(grace=0.02), threading.Event(), threading.Event()
        ended = []

        @worker.task("stuck")
        def stuck(input, job):
            begun.set()
            go_on.wait(BOUND)
            ended.append(job.cancel_requested)

        with self.running(worker) as raised:
            task = self.queue.submit("stuck")
            begun.wait(BOUND)
            worker.stop()
            eventually(lambda: raised)
        self.assertIsInstance(raised[0], ojs_shm.TimedOut)
        self.assertEqual((task.state, task.info().attempt), ("available", 0))
        go_on.set()
        self.assertEqual(eventually(lambda: ended), [True])
        self.assertEqual(task.state, "available")
        task.cancel()

    def test_registering_wrongly_is_refused(self):
        worker = self.queue.worker()
        worker.task("once")(lambda: None)
        with self.assertRaises(ojs_shm.InUse):
            worker.task("once")(lambda: None)
        with self.assertRaises(TypeError):
            worker.task("three")(lambda a, b, c: None)
        with self.assertRaises(ojs_shm.InvalidArgument):
            worker.task("wrong", default_priority=256)(lambda: None)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.worker(concurrency=0)


PROGRAM = """
import sys, ojs_shm
queue = ojs_shm.connect_sync(queue=sys.argv[1])
worker = queue.worker(id=sys.argv[1])

@worker.task("slow")
def slow(input, job):
    print("begun", flush=True)
    sys.stdin.readline()
    return "done"

worker.run()
print("drained", flush=True)
"""


class OddEnds(OnQueue):
    def test_a_handler_may_end_in_any_way(self):
        class Unspeakable(Exception):
            def __str__(self):
                raise RuntimeError("no text")

        def deep():
            value = inner = []
            for _ in range(5000):
                inner.append([])
                inner = inner[0]
            return value

        def failing(error):
            raise error

        ends = {"number": lambda: failing(Failure(5)), "error": lambda: failing(Failure(ValueError("x"))),
                "mute": lambda: failing(Unspeakable()), "deep": deep, "nan": lambda: float("nan"),
                "code": lambda: failing(Failure("x", code=7)), "exit": lambda: failing(SystemExit(3)),
                "discard": lambda: failing(Failure("no use", code="DISCARD", details={1})),
                "when": lambda: failing(Failure("x", rate_limit_until="soon"))}
        worker = self.queue.worker()
        for name, end in ends.items():
            worker.task(name)(lambda input, end=end: end())
        thread = threading.Thread(target=worker.run)
        thread.start()
        for name in ends:
            task = self.queue.submit(name, retry=9 if name == "discard" else 1)
            with self.assertRaises(JobFailed, msg=name) as caught:
                task.result(BOUND)
            if name == "discard":
                error = caught.exception.job.error
                self.assertEqual((error.code, error.message), ("DISCARD", "no use"))
        worker.stop()
        thread.join(BOUND)
        self.assertFalse(thread.is_alive())

    def test_text_that_is_none_is_read_as_far_as_it_is(self):
        from ojs_shm import _abi
        data = ctypes.create_string_buffer(b'["\xff"]')
        text = _abi.Text(ctypes.cast(data, ctypes.c_void_p), 5)
        self.assertEqual(text.read(), '["\ufffd"]')

    def test_a_job_whose_fetch_was_broken_off_goes_back(self):
        class Late(Exception):
            pass

        task = self.queue.submit("x")
        with self.queue.worker() as worker:
            # As when the handler of a signal raises while the job is there already.
            with unittest.mock.patch("ojs_shm.worker.Job", side_effect=Late), self.assertRaises(Late):
                worker.fetch(BOUND)
            job = worker.fetch(BOUND)
            self.assertEqual((job.id, job.attempt), (task.id, 1))
            job.ack()

    def test_one_queue_may_be_given_as_a_text_and_none_is_that_of_the_connection(self):
        task = self.queue.submit("x", queue="a-queue-of-many-letters")
        with self.queue.worker(queues="a-queue-of-many-letters") as worker:
            job = worker.fetch(BOUND)
            self.assertEqual(job.id, task.id)
            job.ack()
        task = self.queue.submit("x")
        with self.queue.worker(queues=[]) as worker:
            job = worker.fetch(BOUND)
            self.assertEqual(job.id, task.id)
            job.ack()
        with self.assertRaises(InvalidArgument):
            self.queue.worker(concurrency=2**32 + 1)


class Signals(OnQueue):
    def start(self, program, **more):
        environment = {**os.environ, "OJS_SHM_NAME": self.broker.name, "OJS_SHM_DIR": self.broker.dir,
                       "PYTHONPATH": str(ROOT / "worker_api" / "python")}
        started = subprocess.Popen([sys.executable, "-c", program, self.queue_name], env=environment, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, **more)
        self.addCleanup(started.kill)
        return started

    def becomes(self, state):
        eventually(lambda: self.queue.registered_worker(self.queue_name)["state"] == state)

    def test_ctrl_c_ends_all_that_waits(self):
        self.queue.configure(self.queue_name + ".full", max_depth=1, strategy="block")
        self.queue.submit("x", queue=self.queue_name + ".full")
        full = "queue.queue += '.full'; queue.on_full = ojs_shm.OnFull(buffer=5); "
        for call in ("queue.worker().fetch()", "queue.submit('x', delay=3600).result()",
                     full + "queue.submit('x', block_timeout=3600)", full + "queue.submit('x'); queue.flush()"):
            program = ("import signal, sys, ojs_shm; queue = ojs_shm.connect_sync(queue=sys.argv[1]); "
                       # a shell's background job is born without it
                       "signal.signal(signal.SIGINT, signal.default_int_handler); print(flush=True); ") + call
            with self.start(program, stderr=subprocess.PIPE) as child:
                child.stdout.readline()
                time.sleep(0.1)  # so that it mostly waits by then
                child.send_signal(signal.SIGINT)
                self.assertIn("KeyboardInterrupt", child.communicate(timeout=BOUND)[1], call)
        self.assertEqual(self.queue.stats(self.queue_name + ".full").raw["waiting"], 0)

    def test_sigcont_right_behind_sigtstp_resumes_and_a_forked_child_has_signals_of_its_own(self):
        program = PROGRAM.replace("sys.stdin.readline()", """
    there = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(there[1], b"x")
        time.sleep(600)
    os.read(there[0], 1)
    os.kill(child, signal.SIGTERM)
    print(os.waitpid(child, 0)[1], flush=True)
    sys.setswitchinterval(10)  # the main thread gets both at once
    os.kill(os.getpid(), signal.SIGTSTP)
    for _ in range(200000): pass  # until it has got the one: the kernel drops it for the other
    os.kill(os.getpid(), signal.SIGCONT)
    sys.stdin.readline()""").replace("import sys,", "import os, signal, sys, time,")
        with self.start(program) as worker:
            for _ in range(3):
                task = self.queue.submit("slow")
                self.assertEqual(worker.stdout.readline().strip(), "begun")
                self.assertEqual(int(worker.stdout.readline()), signal.SIGTERM)
                worker.stdin.write("go on\n")
                worker.stdin.flush()
                self.assertEqual(task.result(BOUND), "done")
            worker.send_signal(signal.SIGTERM)
            self.assertEqual(worker.stdout.readline().strip(), "drained")
            self.assertEqual(worker.wait(BOUND), 0)

    def test_sigterm_drains_a_worker_program(self):
        with self.start(PROGRAM) as program:
            task = self.queue.submit("slow")
            self.assertEqual(program.stdout.readline().strip(), "begun")
            program.send_signal(signal.SIGTERM)
            program.stdin.write("go on\n")
            program.stdin.flush()
            self.assertEqual(program.stdout.readline().strip(), "drained")
            self.assertEqual(program.wait(BOUND), 0)
        self.assertEqual(task.result(BOUND), "done")

    def test_sigtstp_makes_a_worker_program_quiet_until_sigcont(self):
        with self.start(PROGRAM) as program:
            for turn in range(2):  # while its handler runs, and while it waits for a job
                if turn == 0:
                    self.queue.submit("slow")
                    self.assertEqual(program.stdout.readline().strip(), "begun")
                program.send_signal(signal.SIGTSTP)
                self.becomes("quiet")
                if turn == 0:
                    program.stdin.write("go on\n")
                    program.stdin.flush()
                next = self.queue.submit("slow")
                with self.queue.worker() as other:
                    job = other.fetch(BOUND)
                    self.assertEqual(job.id, next.id)
                    job.requeue()
                program.send_signal(signal.SIGCONT)
                self.becomes("running")  # of two that come together the SIGCONT counts
                self.assertEqual(program.stdout.readline().strip(), "begun")
                program.stdin.write("go on\n")
                program.stdin.flush()
                self.assertEqual(next.result(BOUND), "done")
            program.send_signal(signal.SIGTERM)
            self.assertEqual(program.stdout.readline().strip(), "drained")
            self.assertEqual(program.wait(BOUND), 0)

    def test_a_killed_workers_job_runs_again(self):
        with self.start(PROGRAM) as program:
            task = self.queue.submit("slow", retry=Retry(delay=0.001, jitter=False))
            self.assertEqual(program.stdout.readline().strip(), "begun")
            program.kill()
        with self.queue.worker() as worker:
            job = worker.fetch(BOUND)
            self.assertEqual((job.id, job.attempt), (task.id, 2))
            job.ack()
        self.assertEqual(task.info().error.code, "holder_died")


if __name__ == "__main__":
    unittest.main()
