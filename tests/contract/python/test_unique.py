# SPDX-License-Identifier: Apache-2.0
"""Unique jobs from Python."""

from segments import OnAsyncQueue, OnQueue

import ojs_shm
from ojs_shm import NewJob


class Unique(OnQueue):
    def test_a_duplicate_names_the_other(self):
        policy = {"keys": ["type", "args"]}
        first = self.queue.submit("once", {"n": 1}, unique=policy)
        with self.assertRaises(ojs_shm.Duplicate) as caught:
            self.queue.submit("once", {"n": 1}, unique=policy)
        self.assertEqual((caught.exception.subject, caught.exception.state), (first.id, "available"))
        self.queue.submit("once", {"n": 2}, unique=policy)

    def test_ignore_returns_the_other(self):
        policy = {"keys": ["type"], "on_conflict": "ignore", "period": "PT1H"}
        first = self.queue.submit("content", unique=policy)
        again = self.queue.submit("content", unique=policy)
        self.assertEqual((again.id, first.deduplicated, again.deduplicated), (first.id, False, True))
        for waits in ({}, {"block_timeout": 1}):
            batch = self.queue.submit_many([NewJob("content"), NewJob("content", unique=policy)], **waits)
            self.assertEqual([each.deduplicated for each in batch], [False, True])

    def test_replace_cancels_the_other(self):
        policy = {"keys": ["type"], "on_conflict": "replace"}
        old = self.queue.submit("newest", unique=policy)
        fresh = self.queue.submit("newest", unique=policy)
        self.assertEqual((self.queue.get(old.id).state, self.queue.get(fresh.id).state), ("cancelled", "available"))

    def test_a_bad_policy_is_refused(self):
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.submit("bad", unique={"keys": ["argz"]})


class UniqueInALoop(OnAsyncQueue):
    async def test_ignore_tells_that_the_other_was_there(self):
        policy = {"keys": ["type"], "on_conflict": "ignore"}
        first = await self.queue.submit("content", unique=policy)
        for waits in ({}, {"block_timeout": 1}):
            again = await self.queue.submit("content", unique=policy, **waits)
            self.assertEqual((again.id, first.deduplicated, again.deduplicated), (first.id, False, True))
