# SPDX-License-Identifier: Apache-2.0
"""The blocking client: priorities, submitting, asking, changing, and the errors of each."""

import concurrent.futures
import datetime
import os
import subprocess
import sys
import threading
import time
import unittest
from queue import SimpleQueue

from segments import BOUND, ROOT, Broker, OnQueue, OnSegment

import ojs_shm
from ojs_shm import NewJob, Priority, Retry


def eventually(done):
    end = time.monotonic() + BOUND
    while not done():
        if time.monotonic() > end:
            raise AssertionError("it did not happen in time")


class Priorities(OnQueue):
    def test_QO_02_a_job_without_a_priority_gets_128(self):
        self.assertEqual(self.queue.submit("plain").priority, 128)

    def test_QO_05_a_priority_is_a_number_a_name_or_a_constant(self):
        submitted = [self.queue.submit("any", priority=given).priority
                     for given in (200, "urgent", "URGENT", Priority.URGENT, 0, "bulk", Priority.BULK)]
        self.assertEqual(submitted, [200] * 4 + [0] * 3)

    def test_QO_01_only_0_to_255(self):
        for wrong in (-1, 256, 2 ** 62, -2 ** 62):
            with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.submit("any", priority=wrong)
            self.assertIn("255", str(caught.exception))
        # More than the library's 64 bits, which nobody may cut down to a valid priority.
        for wrong in (2 ** 63, -2 ** 63 - 1, 2 ** 64 + 7):
            with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.submit("any", priority=wrong)
            self.assertEqual(str(caught.exception), f"priority {wrong} is out of range: the minimum is 0 and the "
                                                    "maximum is 255")
            self.assertEqual((caught.exception.subject, caught.exception.bound), ("priority", 255))
        for wrong in (1.5, True, [1]):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.queue.submit("any", priority=wrong)
        self.assertEqual(self.queue.jobs(queue=self.queue_name), [])

    def test_QO_05_an_unknown_name_is_refused_with_the_known_ones(self):
        with self.assertRaises(ojs_shm.OjsError) as caught:
            self.queue.submit("any", priority="pressing")
        self.assertIn("background", str(caught.exception))

    def test_QO_07_the_order_is_priority_and_then_time(self):
        for label, priority in (("a", 50), ("b", 200), ("c", 50), ("d", 255), ("e", 200)):
            self.queue.submit("step", label, priority=priority)
        with self.queue.worker() as worker:
            order = []
            while (job := worker.fetch(0)) is not None:
                order.append(job.input)
                job.ack()
        self.assertEqual(order, ["d", "b", "e", "a", "c"])

    def test_QO_09_a_priority_is_immutable(self):
        task = self.queue.submit("any", priority=50)
        with self.assertRaises(ojs_shm.WrongState):
            task.reprioritize(200)
        self.assertEqual(task.priority, 50)
        self.queue.set_immutable_priorities(False)
        try:
            self.assertEqual(task.reprioritize(200), 50)
        finally:
            self.queue.set_immutable_priorities(True)
        with self.assertRaises(ojs_shm.WrongState):
            task.reprioritize(50)

    def test_QO_16_a_default_priority_belongs_to_the_type_and_can_be_overridden(self):
        self.queue.set_default_priority("sweep", "low")
        self.assertEqual(self.queue.default_priority("sweep"), 50)
        self.assertEqual(self.queue.submit("sweep").priority, 50)
        self.assertEqual(self.queue.submit("sweep", priority=Priority.HIGH).priority, 175)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.set_default_priority("sweep", 256)
        self.queue.set_default_priority("sweep", None)
        self.assertIsNone(self.queue.default_priority("sweep"))
        self.assertEqual(self.queue.submit("sweep").priority, 128)


class OjsConvention(OnQueue):
    convention = "ojs"

    def test_names_mean_the_same_in_every_convention(self):
        numbers = [self.queue.submit("any", priority=name).priority
                   for name in (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, "low", "bulk")]
        self.assertEqual(numbers, [0, 1, 2, 3, 4])
        with self.assertRaises(ojs_shm.OjsError) as caught:
            self.queue.submit("any", priority=Priority.URGENT)
        self.assertIn("critical", str(caught.exception))

    def test_a_waiting_job_can_be_reprioritised(self):
        first, second = self.queue.submit("any", 1), self.queue.submit("any", 2)
        self.assertEqual(second.reprioritize("critical"), 2)
        self.assertEqual(second.priority, 0)
        with self.queue.worker() as worker:
            taken = worker.fetch(0)
            self.assertEqual(taken.id, second.id)
            with self.assertRaises(ojs_shm.WrongState) as caught:
                second.reprioritize(3)
            self.assertEqual(caught.exception.subject, "active")
            taken.ack()
        first.cancel()


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


class Connecting(OnSegment, unittest.TestCase):
    def test_there_must_be_a_segment(self):
        with self.assertRaises(ConnectionError) as caught:
            ojs_shm.connect_sync("no-such-segment", dir=self.broker.dir)
        self.assertEqual(caught.exception.code, "cannot_attach")

    def test_the_environment_names_it(self):
        environment = {**os.environ, "OJS_SHM_NAME": self.broker.name, "OJS_SHM_DIR": self.broker.dir,
                       "PYTHONPATH": str(ROOT / "worker_api" / "python")}
        program = "import ojs_shm; print(ojs_shm.connect_sync().path)"
        shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertEqual(shown.stdout.strip(), f"{self.broker.dir}/ojs-shm.{self.broker.name}", shown.stderr)

    def test_a_library_that_is_not_there_says_where_it_was_looked_for(self):
        environment = {**os.environ, "OJS_SHM_LIBRARY": "/nowhere/libojs_shm.so",
                       "PYTHONPATH": str(ROOT / "worker_api" / "python")}
        program = "import ojs_shm\ntry: ojs_shm.connect_sync('x')\nexcept ojs_shm.LibraryNotFound as e: print(e)"
        shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        self.assertIn("/nowhere/libojs_shm.so", shown.stdout, shown.stderr)

    def test_a_closed_queue_answers_closed(self):
        queue = ojs_shm.connect_sync(**self.broker.where)
        with queue:
            queue.submit("any")
        for ask in (lambda: queue.submit("any"), queue.stats, queue.queues):
            with self.assertRaises(ojs_shm.Closed):
                ask()

    def test_a_segment_can_be_made_without_a_broker(self):
        name = self.broker.name + "-own"
        ojs_shm.create_segment(name, dir=self.broker.dir, convention="ojs-core", slots=64)
        with self.assertRaises(ojs_shm.InUse):
            ojs_shm.create_segment(name, dir=self.broker.dir)
        with ojs_shm.connect_sync(name, dir=self.broker.dir) as queue:
            self.assertEqual(queue.submit("any", priority=Priority.LOW).priority, -10)
        with self.assertRaisesRegex(ojs_shm.WrongState, "1 unfinished job;"):
            ojs_shm.remove_segment(name, dir=self.broker.dir)
        ojs_shm.remove_segment(name, dir=self.broker.dir, force=True)
        with self.assertRaises(ojs_shm.NotFound):
            ojs_shm.remove_segment(name, dir=self.broker.dir, force=True)

    def test_QO_17_an_export_goes_into_another_segment(self):
        path = os.path.join(self.broker.dir, "export")
        old, new = ({"name": f"{self.broker.name}-{which}", "dir": self.broker.dir} for which in ("old", "new"))
        for where in (old, new):
            ojs_shm.create_segment(**where, slots=64)
        with ojs_shm.connect_sync(**old) as queue:
            moved = [queue.submit("any", n).id for n in range(3)]
        self.assertGreater(ojs_shm.export_segment(path, **old), 3)
        self.assertEqual(ojs_shm.import_segment(path, **new)["jobs"], 3)
        with open(path, "a") as file:
            file.write("no job\n")
        again = ojs_shm.import_segment(path, **new)
        self.assertEqual((again["jobs"], again["existing"], again["refused"]), (0, 3, 1))
        with ojs_shm.connect_sync(**new) as queue:
            self.assertEqual([job.id for job in queue.jobs()], moved)
        with open(path, "w") as file:
            file.write("no export\n")
        with self.assertRaises(ojs_shm.OtherFormat):
            ojs_shm.import_segment(path, **new)
        for where in (old, new):
            ojs_shm.remove_segment(**where, force=True)

    def test_many_threads_share_one_connection(self):
        with ojs_shm.connect_sync(**self.broker.where, queue="shared") as queue:
            ids, failed = [], []

            def submit():
                try:
                    ids.extend(queue.submit("any", n).id for n in range(100))
                except Exception as error:  # noqa: BLE001
                    failed.append(error)

            threads = [threading.Thread(target=submit) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual((failed, len(set(ids))), ([], 800))
            self.assertEqual(queue.stats().depth, 800)

    def test_PRI_E1_events_tell_a_change_of_priority_once(self):
        where = {"name": self.broker.name + "-told", "dir": self.broker.dir}
        ojs_shm.create_segment(**where, slots=64)  # of a convention whose priorities may be changed
        with ojs_shm.connect_sync(**where, queue="told") as queue:
            queue.set_events(True)
            with queue.events(follow=False) as events:
                task = queue.submit("told.once", priority=3)
                self.assertEqual(task.reprioritize(1), 3)
                self.assertEqual(task.reprioritize(1), 1)
                seen = [event for event in events if event["subject"] == task.id]
                self.assertEqual([event["type"] for event in seen], ["job.enqueued", "priority.changed"])
                self.assertEqual(seen[1]["data"], {"job_id": task.id, "job_type": "told.once", "queue": "told",
                                                   "previous_priority": 3, "new_priority": 1})
                self.assertEqual(events.lost, 0)
                self.assertEqual(queue.worker(queues=["told"]).fetch(timeout=5).id, task.id)
            census = queue.census()
            told = next(one for one in census["queues"] if one["name"] == "told")
            self.assertEqual((told["active"], told["totals"]["dispatched"], census["schema"]), (1, 1, 1))
            dead = ojs_shm.examine_segment(census["segment"]["path"])
            self.assertTrue(dead["segment"]["post_mortem"])
            self.assertEqual(dead["totals"], census["totals"])
            waits = [level for level in queue.waits() if level["queue"] == "told"]
            counts = [(level["priority"], level["from_enqueue"]["count"], level["from_available"]["count"], level["runs"]["count"])
                      for level in waits]
            self.assertEqual(counts, [(1, 1, 1, 0)])
            steps = [(step["from"], step["to"]) for step in queue.recent() if step.get("job") == task.id]
            self.assertEqual(steps, [("new", "available"), ("available", "active")])
        ojs_shm.remove_segment(**where, force=True)

    def test_SUM_07_a_queue_follows_the_ageing_of_the_segment_again(self):
        where = {"name": self.broker.name + "-ages", "dir": self.broker.dir}
        ojs_shm.create_segment(**where, slots=64)
        with ojs_shm.connect_sync(**where, queue="mail") as queue:
            queue.configure_default_aging(interval="PT30S")
            aging = {"enabled": True, "preset": "ojs", "interval": "PT30S", "rate": 1}
            self.assertEqual(queue.segment_stats()["segment"]["aging"], aging)
            queue.configure(aging={"enabled": False})
            self.assertFalse(queue.stats().raw["aging_inherited"])
            queue.configure(aging="default")
            stats = queue.stats().raw
            self.assertEqual((stats["aging_inherited"], stats["policy"]["aging"]), (True, aging))
            self.assertEqual(stats["age_rates"], [])
            with self.assertRaises(ojs_shm.InvalidArgument):
                queue.configure(aging={"floor": 300})
        ojs_shm.remove_segment(**where, force=True)

    def test_SUM_11_tenants_share_across_levels(self):
        where = {"name": self.broker.name + "-across", "dir": self.broker.dir}
        ojs_shm.create_segment(**where, slots=64)
        with ojs_shm.connect_sync(**where, queue="mail") as queue:
            queue.configure(tenant_fairness={"scope": "across"})
            self.assertEqual(queue.stats().raw["policy"]["tenant_fairness"]["scope"], "across")
            with self.assertRaises(ojs_shm.InvalidArgument):
                queue.configure(level_weights={"0": 2})
        ojs_shm.remove_segment(**where, force=True)

    def test_FS_004_FS_T06_FS_H3_a_pool_is_set_served_and_shown(self):
        where = {"name": self.broker.name + "-pools", "dir": self.broker.dir}
        ojs_shm.create_segment(**where, slots=64)
        with ojs_shm.connect_sync(**where, queue="slow") as queue:
            with self.assertRaises(ojs_shm.InvalidArgument) as caught:
                queue.configure_pool("p", queues=["fast"], strategy="fastest")
            self.assertEqual(caught.exception.subject, "strategy")
            self.assertTrue(queue.configure_pool("p", queues=["fast", "slow"], strategy="strict", concurrency=4))
            self.assertFalse(queue.configure_pool("p", queues=["fast", "slow"], weights={"fast": 2},
                                                  strategy="weighted"))
            queue.submit("one")
            queue.submit("two", queue="fast")
            with self.assertRaises(ojs_shm.NotFound):
                queue.worker(pool="nowhere").fetch(timeout=5)
            worker = queue.worker(queues=["slow"], pool="p")
            self.assertEqual([worker.fetch(timeout=5).type for _ in range(2)], ["two", "one"])
            pool = queue.pool("p")
            self.assertEqual((pool["weights"], pool["active_jobs"]), ({"fast": 2, "slow": 1}, 2))
            self.assertEqual([each["name"] for each in queue.pools()], ["p"])
            shown = queue.scheduling()
            self.assertEqual(shown["window"], "PT1M")
            self.assertEqual({each["name"]: each["dispatch_ratio_1m"] for each in shown["queues"]},
                             {"fast": 0.5, "slow": 0.5})
            queue.remove_pool("p")
            with self.assertRaises(ojs_shm.NotFound):
                queue.pool("p")
        ojs_shm.remove_segment(**where, force=True)

    def test_following_events_ends_with_close(self):
        with ojs_shm.connect_sync(**self.broker.where, queue="told") as queue:
            queue.set_events(True)
            events, seen = queue.events(), SimpleQueue()
            follower = threading.Thread(target=lambda: [seen.put(event["subject"]) for event in events])
            follower.start()
            task = queue.submit("told.later")
            while seen.get(timeout=BOUND) != task.id:
                pass
            events.close()
            follower.join(BOUND)
            self.assertFalse(follower.is_alive())
            with self.assertRaises(ojs_shm.Closed):
                events.poll()

    def test_the_version_is_that_of_the_library(self):
        self.assertEqual(ojs_shm.library_version(), ojs_shm.__version__)


class Fork(unittest.TestCase):
    def test_a_forked_child_is_refused_and_may_connect_for_itself(self):
        with Broker() as broker, ojs_shm.connect_sync(**broker.where) as queue:
            queue.submit("any")
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    queue.submit("any")
                except ojs_shm.Closed:
                    code = 0 if ojs_shm.connect_sync(**broker.where).submit("any").id else 2
                finally:
                    os._exit(code)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(queue.stats().depth, 2)


if __name__ == "__main__":
    unittest.main()
