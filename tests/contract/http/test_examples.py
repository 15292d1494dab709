# SPDX-License-Identifier: Apache-2.0
"""The examples of the specifications as they stand, but for the port."""

import re
import shutil
import subprocess
import time

from gateways import BOUND, OnGateway, eventually

CONFIGURE = """
curl -X PUT http://localhost:8080/ojs/v1/admin/queues/email/config \\
  -H "Content-Type: application/json" \\
  -d '{
    "backpressure": {
      "max_depth": 100000,
      "strategy": "reject",
      "warning_threshold": 0.8
    }
  }'
"""

DROP_OLDEST = """
curl -X PUT http://localhost:8080/ojs/v1/admin/queues/notifications/config \\
  -H "Content-Type: application/json" \\
  -d '{
    "backpressure": {
      "max_depth": 10000,
      "strategy": "drop_oldest"
    }
  }'
"""

PRIORITY = """
curl -X POST http://localhost:8080/ojs/v1/jobs \\
  -H "Content-Type: application/openjobspec+json" \\
  -d '{"type":"email.send","args":["user@example.com"],"priority":1}'
curl http://localhost:8080/ojs/v1/queues/default/priority-stats
"""

# The function is the specification's; what surrounds it calls it once.
PRODUCER = """
const sleep = (ms: number) => new Promise((done) => setTimeout(done, ms));

async function enqueueWithBackpressure(type: string, args: any[]) {
  for (let attempt = 0; attempt < 5; attempt++) {
    const response = await fetch('http://localhost:8080/ojs/v1/jobs', {
      method: 'POST',
      headers: { 'Content-Type': 'application/openjobspec+json' },
      body: JSON.stringify({ type, args }),
    });

    if (response.status === 201) return response.json();

    if (response.status === 429) {
      const retryAfter = parseInt(response.headers.get('Retry-After') || '1');
      await sleep(retryAfter * 1000 * (attempt + 1)); // Exponential backoff
      continue;
    }

    throw new Error(`Enqueue failed: ${response.status}`);
  }

  throw new Error('Enqueue failed after 5 attempts (queue full)');
}

enqueueWithBackpressure('a.b', [1]).then((made) => console.log(made.job.state));
"""


class Examples(OnGateway):
    def adapted(self, text):
        return text.replace("localhost:8080", self.up.address)

    def run_shell(self, text):
        done = subprocess.run(["bash", "-ec", self.adapted(text)], capture_output=True, text=True, timeout=BOUND)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_BP_G1_the_curl_line_sets_a_bound(self):
        self.assertIn('"max_depth":100000', self.run_shell(CONFIGURE))

    def test_BP_G3_the_curl_line_sets_drop_oldest(self):
        self.assertIn('"strategy":"drop_oldest"', self.run_shell(DROP_OLDEST))

    def test_SUM_12_enqueue_and_distribution_by_plain_curl(self):
        self.assertIn('"counts_by_priority":{"1":1}', self.run_shell(PRIORITY))
        self.call("POST", "test/reset", expect=200)

    def test_BP_G2_the_producers_loop_waits_and_gets_in(self):
        node = shutil.which("node")
        if node is None:
            self.skipTest("node is missing")
        bound = "admin/queues/default/config"
        self.call("PUT", bound, {"backpressure": {"max_depth": 1}}, expect=200)
        self.addCleanup(self.call, "POST", "test/reset")
        self.addCleanup(self.call, "PUT", bound, {"backpressure": {"max_depth": 0}})
        self.put_job(queue="default")
        # Types are for the reader: node of Debian 12 runs the same without them.
        script = re.sub(r"(\w+): (?:string|number|any\[\])(?=[,)])", r"\1", self.adapted(PRODUCER))
        loop = subprocess.Popen([node, "-e", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            eventually(lambda: self.refused() >= 1)
            begun = time.monotonic()
            self.fetch(queues=["default"])
            out, err = loop.communicate(timeout=BOUND)
            print("# let in after", round(time.monotonic() - begun, 2), "s")
            self.assertEqual((loop.returncode, out), (0, "available\n"), err)
        finally:
            loop.kill()
            loop.communicate()

    def refused(self):
        events = self.call("GET", "events?types=backpressure.rejected&queues=default", expect=200).json["events"]
        return sum(event["data"].get("count", 1) for event in events)
