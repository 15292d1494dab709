# SPDX-License-Identifier: Apache-2.0
"""The blocking client: its segment, and what is of the segment as a whole."""

import os
import select
import subprocess
import sys
import threading
import unittest
from queue import SimpleQueue

from segments import BOUND, ROOT, Broker, OnSegment

import ojs_shm
from ojs_shm import Priority


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

    def old_and_new(self):
        """The names of two segments without a broker, which end with the test."""
        both = [{"name": f"{self.broker.name}-{which}", "dir": self.broker.dir} for which in ("old", "new")]
        for where in both:
            ojs_shm.create_segment(**where, slots=64)
            self.addCleanup(ojs_shm.remove_segment, **where, force=True)
        return both

    def test_QO_17_an_export_goes_into_another_segment(self):
        path = os.path.join(self.broker.dir, "export")
        old, new = self.old_and_new()
        with ojs_shm.connect_sync(**old) as queue:
            moved = [queue.submit("any", n).id for n in range(3)]
            queue.set_cron("nightly", "30 4 * * *", "any")
        self.assertGreater(ojs_shm.export_segment(path, **old), 3)
        report = ojs_shm.import_segment(path, **new)
        self.assertEqual((report["jobs"], report["crons"]), (3, 1))
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

    def test_an_import_goes_on_behind_a_job_whose_key_another_has(self):
        path = os.path.join(self.broker.dir, "export")
        old, new = self.old_and_new()
        for where in (old, new):
            with ojs_shm.connect_sync(**where) as queue:
                queue.submit("any", unique={"keys": ["type"]})
                queue.submit("other", 1)
        ojs_shm.export_segment(path, **old)
        report = ojs_shm.import_segment(path, **new)
        self.assertEqual((report["jobs"], report["refused"]), (1, 1))

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

    def test_events_are_chosen_and_go_on_behind_one(self):
        where = {"name": self.broker.name + "-chosen", "dir": self.broker.dir}
        ojs_shm.create_segment(**where, slots=64)
        with ojs_shm.connect_sync(**where, queue="told") as queue:
            queue.set_events(True)
            task = queue.submit("told.once", priority=3)
            task.reprioritize(1)
            task.cancel()
            with queue.events(from_start=True, follow=False, types=["job.*"], jobs=[task.id]) as events:
                first = next(events)
                place = {"after": first["id"], "after_position": events.position}
                self.assertEqual([event["type"] for event in (first, *events)], ["job.enqueued", "job.cancelled"])
                self.assertEqual(events.position, 3)
                self.assertFalse(events.resumed)
            with queue.events(follow=False, queues=["told"], job_types=["told.once"], **place) as events:
                self.assertEqual([event["type"] for event in events], ["priority.changed", "job.cancelled"])
                self.assertEqual((events.resumed, events.lost), (True, 0))
            with queue.events(follow=False, tenant="nobody", **place) as events:
                self.assertEqual(list(events), [])
            for wrong in ({"types": ["job.faild"]}, {"after": "evt_x"}):
                with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument):
                    queue.events(**wrong)
            with self.assertRaises(TypeError):
                queue.events(types="job.failed")
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

    def test_a_signals_handler_may_close_the_events_that_its_thread_follows(self):
        program = ("import ojs_shm, signal; events = ojs_shm.connect_sync().events()\n"
                   "signal.signal(signal.SIGALRM, lambda *_: events.close()); signal.setitimer(signal.ITIMER_REAL, 0.1)\n"
                   "print(sum(1 for event in events))")
        environment = {**os.environ, "OJS_SHM_NAME": self.broker.name, "OJS_SHM_DIR": self.broker.dir,
                       "PYTHONPATH": str(ROOT / "worker_api" / "python")}
        shown = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True,
                               timeout=BOUND)
        self.assertEqual((shown.stdout.strip(), shown.returncode), ("0", 0), shown.stderr)

    def test_events_that_are_closed_while_a_thread_looks_end_when_it_leaves(self):
        with ojs_shm.connect_sync(**self.broker.where) as queue:
            events = queue.events()
            with events._inside():
                events.close()
                self.assertIsNotNone(events._handle)
            self.assertIsNone(events._handle)

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


    def test_what_a_child_ends_goes_on_in_its_parent(self):
        with Broker() as broker, ojs_shm.connect_sync(**broker.where) as queue, queue.events() as events:
            worker = queue.worker()
            child = os.fork()
            if child == 0:
                try:
                    events.close()
                    worker.stop()
                    worker.quiet()
                finally:
                    os._exit(0)
            self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
            self.assertEqual(select.select([events._bell._ended, worker._stop, worker._changed], [], [], 0)[0], [])
            worker.stop()
            self.assertEqual(select.select([worker._stop], [], [], 0)[0], [worker._stop])


if __name__ == "__main__":
    unittest.main()
