# SPDX-License-Identifier: Apache-2.0
"""How far a job is, over HTTP."""

import email.utils

from gateways import OnGateway


class Progress(OnGateway):
    def test_progress_has_headers(self):
        job = self.put_job()
        self.fetch()
        path = f"jobs/{job['id']}/progress"
        headers = self.call("GET", path, expect=200).headers
        self.assertEqual((headers["Cache-Control"], headers["X-OJS-Progress"], headers["Last-Modified"]),
                         ("no-cache", None, None))
        self.call("PUT", path, {"progress": 0.25}, expect=200)
        reply = self.call("GET", path, expect=200)
        self.assertEqual(reply.headers["X-OJS-Progress"], "0.25")
        changed = email.utils.parsedate_to_datetime(reply.headers["Last-Modified"])
        self.assertEqual(changed.strftime("%Y-%m-%dT%H:%M:%S"), reply.json["updated_at"][:19])
