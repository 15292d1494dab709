# SPDX-License-Identifier: Apache-2.0
"""Two gateways and native programs of one segment: what one was told, the others know, also when it is dead."""

import datetime
import http.client
import json
import signal
import subprocess
import unittest

from gateways import BOUND, Up, end_with_parent, program


class TwoGateways(unittest.TestCase):
    def setUp(self):
        self.up = self.enterContext(Up())
        self.second = subprocess.Popen(
            [program("ojs-shm-gateway"), "--name", "test", "--dir", self.up.dir, "--listen", "127.0.0.1:0", "--threads", "1"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, preexec_fn=end_with_parent)
        self.addCleanup(self.second.stdout.close)
        self.addCleanup(self.second.wait, BOUND)
        self.addCleanup(self.second.kill)
        self.host, self.port = self.second.stdout.readline().split()[1].removeprefix("http://").split(":")

    def first(self, method, path, body=None):
        reply = self.up.call(method, path, body)
        self.assertLess(reply.status, 300, reply.body)
        return reply.json

    def other(self, method, path, body=None):
        spoken = http.client.HTTPConnection(self.host, int(self.port), timeout=BOUND)
        self.addCleanup(spoken.close)
        spoken.request(method, "/ojs/v1/" + path, json.dumps(body), {"Content-Type": "application/json"})
        answer = spoken.getresponse()
        text = answer.read()
        self.assertLess(answer.status, 300, text)
        return json.loads(text)

    def kill_the_other(self):
        self.second.send_signal(signal.SIGKILL)
        self.second.wait(BOUND)

    def native(self, *words):
        done = self.up.native(*words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_progress_with_words_is_the_segments(self):
        self.first("POST", "jobs", {"type": "test.http", "args": []})
        job = self.other("POST", "workers/fetch", {"queues": ["default"]})["jobs"][0]["id"]
        said = self.other("PUT", f"jobs/{job}/progress", {"progress": 0.25, "message": "a quarter", "data": {"rows": 25}})
        self.assertEqual((said["progress"], said["message"], said["data"]), (0.25, "a quarter", {"rows": 25}))
        self.assertEqual(self.first("GET", f"jobs/{job}/progress"), said)
        self.assertEqual(self.first("PUT", f"jobs/{job}/progress", {"data": {"rows": 50}})["data"], {"rows": 50})
        self.assertEqual(self.other("GET", f"jobs/{job}/progress")["progress"], 0.25, "data alone moves nothing")
        self.other("PUT", f"jobs/{job}/progress", {"progress": 0.5, "message": "half"})
        self.kill_the_other()
        self.assertEqual(self.first("GET", f"jobs/{job}/progress")["message"], "half")
        shown = json.loads(self.native("get", job, "--json"))
        self.assertEqual((shown["progress"], shown["progress_message"]), (0.5, "half"))
        self.first("POST", "workers/ack", {"job_id": job})
        done = self.first("GET", f"jobs/{job}/progress")
        self.assertEqual((done["progress"], done["message"]), (1.0, "half"))

    def test_maintenance_is_the_segments(self):
        self.first("POST", "jobs", {"type": "test.http", "args": []})
        told = self.other("POST", "admin/system/maintenance", {"enabled": True, "reason": "moving house"})
        self.assertEqual((told["enabled"], told["maintenance"], told["reason"]), (True, True, "moving house"))
        self.assertEqual(self.first("GET", "admin/maintenance"), told)
        self.kill_the_other()
        self.assertEqual(self.first("GET", "admin/maintenance"), told)
        self.assertEqual(self.first("POST", "workers/fetch", {"queues": ["default"]})["jobs"], [])
        self.assertIn("moving house", self.native("maintenance", "show"))
        self.native("work", "--until-empty", "--", "true")
        self.assertEqual(json.loads(self.native("list", "--json"))["state"], "available")
        self.native("maintenance", "off")
        self.assertFalse(self.first("GET", "admin/maintenance")["enabled"])
        self.assertEqual(len(self.first("POST", "workers/fetch", {"queues": ["default"]})["jobs"]), 1)

    def test_maintenance_says_when_it_is_meant_to_end(self):
        told = self.other("POST", "admin/system/maintenance", {"enabled": True, "estimated_duration": "PT30M"})
        span = [datetime.datetime.fromisoformat(told[name]) for name in ("enabled_at", "estimated_end")]
        self.assertAlmostEqual((span[1] - span[0]).total_seconds(), 1800, delta=30)
        self.assertEqual(self.first("GET", "admin/maintenance"), told)
        self.assertIn("until about", self.native("maintenance", "show"))
        end = "2099-01-01T00:00:00.000Z"
        self.assertEqual(self.first("POST", "admin/maintenance", {"enabled": True, "estimated_end": end})["estimated_end"], end)
        for wrong in ({"estimated_end": "soon"}, {"estimated_duration": "P1X"}, {"estimated_duration": "PT1H", "estimated_end": end}):
            self.assertEqual(self.up.call("POST", "admin/maintenance", {"enabled": True, **wrong}).status, 400, wrong)
        self.native("maintenance", "on", "--estimated-duration", "1h")
        self.assertIn("estimated_end", self.first("GET", "admin/maintenance"))
        self.assertNotIn("estimated_end", self.first("POST", "admin/maintenance", {"enabled": False}))

    def test_a_reason_that_is_too_long_is_refused(self):
        refused = self.up.call("POST", "admin/maintenance", {"enabled": True, "reason": "x" * 257})
        self.assertEqual(refused.status, 400, refused.body)
        self.assertFalse(self.other("GET", "admin/maintenance")["enabled"])


if __name__ == "__main__":
    unittest.main()
