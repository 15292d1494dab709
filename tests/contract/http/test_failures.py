# SPDX-License-Identifier: Apache-2.0
"""What is kept of a failed attempt. Source: ojs-core 8.1, 8.3, ojs-retry 8.1."""

from gateways import OnGateway


class Failures(OnGateway):
    def failed_with(self, expect=200, **members):
        """The error of a job of which an attempt failed so."""
        job = self.put_job(retry={"max_attempts": 1})
        self.fetch()
        self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"code": "boom", "message": "no"} | members}, expect=expect)
        return self.get(job).get("error")

    def test_a_backtrace_comes_back_beside_the_details(self):
        frames = ["at a.py:1", "at b.py:2"]
        error = self.failed_with(backtrace=frames, details={"sku": 7})
        self.assertEqual((error["backtrace"], error["details"]), (frames, {"sku": 7}))
        self.assertEqual(self.failed_with(backtrace=frames)["backtrace"], frames)
        self.assertNotIn("details", self.failed_with(backtrace=frames))
        self.assertNotIn("backtrace", self.failed_with(details={"sku": 7}))

    def test_a_backtrace_is_cut_after_fifty_frames_and_ten_thousand_characters(self):
        self.assertEqual(len(self.failed_with(backtrace=["frame"] * 60)["backtrace"]), 50)
        self.assertEqual(len(self.failed_with(backtrace=["f" * 3000] * 10)["backtrace"]), 3)

    def test_what_is_no_backtrace_is_refused_and_the_job_is_still_held(self):
        for wrong in ("at a.py:1", [1], {}):
            self.assertIsNone(self.failed_with(backtrace=wrong, expect=400), wrong)

    def test_a_policy_lists_what_is_not_tried_again_by_type_or_by_code(self):
        for error in ({"code": "card_declined"}, {"code": "card_declined", "type": "PaymentError"}, {"code": "x", "type": "card_declined"},
                      {"code": "x", "details": {"error_class": "card_declined"}}, {"code": "auth.expired", "type": "PaymentError"}):
            job = self.put_job(retry={"max_attempts": 5, "non_retryable_errors": ["card_declined", "auth.*"]})
            self.fetch()
            nacked = self.call("POST", "workers/nack", {"job_id": job["id"], "error": {"message": "no"} | error}, expect=200).json
            self.assertEqual(nacked["state"], "discarded", error)

    def test_details_that_are_too_long_stay_json(self):
        self.assertEqual(self.failed_with(details={"a": "x" * 20_000})["details"], {"truncated": True})

    def test_a_partial_policy_comes_back_with_the_defaults_that_hold_beside_it(self):
        policy = self.put_job(retry={"max_attempts": 5, "jitter": None, "note": 1})["retry"]
        self.assertEqual((policy["max_attempts"], policy["initial_interval"], policy["backoff_coefficient"], policy["max_interval"],
                          policy["jitter"], policy["non_retryable_errors"], policy["on_exhaustion"], policy["note"]),
                         (5, "PT1S", 2, "PT5M", True, [], "discard", 1))
        self.assertEqual(self.put_job()["retry"]["non_retryable_errors"], [])
