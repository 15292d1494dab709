# SPDX-License-Identifier: Apache-2.0
"""Crons from Python, blocking and in asyncio."""

import datetime
import unittest

from segments import BOUND, OnAsyncQueue, OnQueue

import ojs_shm
from ojs_shm import cron_times


class Crons(OnQueue):
    def test_one_is_set_told_of_triggered_and_removed(self):
        name = self.queue_name
        self.assertTrue(self.queue.set_cron(name, "30 4 * * *", "report.night", {"n": 1}, timezone="Europe/Berlin",
                                            priority="high", overlap_policy="allow", meta={"trace": "x"}))
        self.assertFalse(self.queue.set_cron(name, "30 5 * * *", "report.night", {"n": 1}, overlap_policy="allow",
                                             priority="high", meta={"trace": "x"}))
        cron = self.queue.cron(name)
        self.assertEqual((cron["expression"], cron["timezone"], cron["type"], cron["args"], cron["options"]["queue"]),
                         ("30 5 * * *", "UTC", "report.night", [{"n": 1}], name))
        self.assertIn(cron, self.queue.crons())
        id = self.queue.trigger_cron(name)
        with self.queue.worker() as worker:
            job = worker.fetch(BOUND)
            self.assertEqual((job.id, job.input, job.meta["trace"]), (id, {"n": 1}, "x"))
            self.assertEqual((job.cron_name, job.meta["cron_name"]), (name, name))
            self.assertEqual(job.meta, self.queue.get(id).meta)
            self.assertEqual(self.queue.get(id).raw["cron_name"], name)
            job.ack()
            self.assertIsNone(job.cron_name)
            self.queue.submit("any", meta={"trace": "y"})
            job = worker.fetch(BOUND)
            self.assertEqual((job.cron_name, job.meta), (None, {"trace": "y"}))
            job.ack()
        self.queue.enable_cron(name, False)
        self.assertIsNone(self.queue.cron(name)["next_run_at"])
        self.queue.enable_cron(name)
        self.assertEqual(self.queue.cron(name)["run_count"], 1)
        self.queue.remove_cron(name)
        with self.assertRaises(ojs_shm.NotFound):
            self.queue.cron(name)

    def test_what_is_wrong_is_named(self):
        for subject, options in (("expression", {"expression": "99 * * * *"}), ("timezone", {"timezone": "EST"}),
                                 ("overlap_policy", {"overlap_policy": "odd"}), ("name", {"name": "Upper"})):
            with self.subTest(subject), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.set_cron(**{"name": self.queue_name, "expression": "@daily", "type": "a"} | options)
            self.assertEqual(caught.exception.subject, subject)


class Times(unittest.TestCase):
    def test_times_of_an_expression(self):
        after = datetime.datetime(2026, 3, 7, tzinfo=datetime.UTC)
        times = cron_times("30 2 * * *", "America/New_York", after=after, count=2)
        self.assertEqual([each.isoformat() for each in times],
                         ["2026-03-07T07:30:00+00:00", "2026-03-09T06:30:00+00:00"])
        with self.assertRaises(ojs_shm.InvalidArgument):
            cron_times("nothing")


class InAsyncio(OnAsyncQueue):
    async def test_the_same_is_awaited(self):
        self.assertTrue(await self.queue.set_cron(self.queue_name, "@hourly", "any", queue=self.queue_name))
        self.assertEqual((await self.queue.cron(self.queue_name))["options"]["queue"], self.queue_name)
        id = await self.queue.trigger_cron(self.queue_name)
        self.assertEqual((await self.queue.get(id)).type, "any")
        await self.queue.enable_cron(self.queue_name, False)
        self.assertIn(self.queue_name, [each["name"] for each in await self.queue.crons()])
        await self.queue.remove_cron(self.queue_name)


if __name__ == "__main__":
    unittest.main()
