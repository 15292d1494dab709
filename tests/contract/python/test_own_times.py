# SPDX-License-Identifier: Apache-2.0
"""Jobs that say of their own time, limits for a time, and a maintenance that is meant to end."""

import datetime

from segments import OnQueue

import ojs_shm
from ojs_shm.times import moment


class OwnTimes(OnQueue):
    def test_they_are_kept_with_the_job(self):
        info = self.queue.submit("timed", enqueue_ttl=datetime.timedelta(hours=1), total_timeout=7200, grace_period=4.5).info()
        self.assertEqual((info.enqueue_ttl, info.total_timeout, info.grace_period), (3600, 7200, 5))
        info = self.queue.submit("timed").info()
        self.assertEqual((info.enqueue_ttl, info.total_timeout, info.grace_period), (None, None, None))

    def test_what_is_no_time_is_refused(self):
        for name in ("enqueue_ttl", "total_timeout", "grace_period"):
            with self.subTest(name), self.assertRaises(ojs_shm.InvalidArgument):
                self.queue.submit("timed", **{name: -5})
        with self.assertRaises(ojs_shm.InvalidArgument) as caught:
            self.queue.submit("timed", timeout=11, total_timeout=10)
        self.assertEqual(caught.exception.subject, "total_timeout")

    def test_a_clients_own_word_for_a_time_reads_as_none(self):
        for word in ("tomorrow", 1e300, 10 ** 30, -(10 ** 30), [1], {"at": 1}, True, None):
            with self.subTest(repr(word)):
                self.assertIsNone(moment(word))
                info = self.queue.submit("timed", extra={"scheduled_at": word}).info()
                self.assertIsNone(info.scheduled_at)

    def test_a_limit_may_hold_for_a_time(self):
        end = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0) + datetime.timedelta(hours=1)
        self.queue.set_limit("api", concurrency=0, expires_at=end)
        self.assertEqual(datetime.datetime.fromisoformat(self.queue.limit("api")["expires_at"]), end)

    def test_a_maintenance_says_when_it_is_meant_to_end(self):
        self.queue.set_maintenance(True, "moving", estimated_end=4_000_000_000)
        self.assertEqual(self.queue.segment_stats()["segment"]["maintenance"]["estimated_end"], "2096-10-02T07:06:40.000Z")
