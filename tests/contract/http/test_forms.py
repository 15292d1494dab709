# SPDX-License-Identifier: Apache-2.0
"""Older and rarer forms of HTTP: HEAD, HTTP/1.0, targets as proxies write them."""

from gateways import OnGateway


class Forms(OnGateway):
    def said(self, text):
        """The status line, the header by lower-case names, and all that follows until the connection ends; of HEAD what
        comes first, for that is nothing."""
        with self.up.dial() as spoken, spoken.makefile("rb") as file:
            spoken.sendall(text.encode())
            line, header = file.readline().decode().strip(), {}
            while (field := file.readline().decode().strip()):
                name, _, value = field.partition(":")
                header[name.lower()] = value.strip()
            return line, header, (file.read1() if text.startswith("HEAD") else file.read()).decode()

    def ended_job(self):
        job = self.put_job()
        self.fetch()
        self.call("POST", "workers/ack", {"job_id": job["id"]}, expect=200)
        return job["id"]

    def test_HEAD_of_a_stream_is_its_header_alone(self):
        for path in ("events/stream", f"jobs/{self.ended_job()}/events"):
            line, header, body = self.said(f"HEAD /ojs/v1/{path} HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual((line, header["content-type"], body), ("HTTP/1.1 200 OK", "text/event-stream", ""), path)
        line, _, body = self.said("HEAD /ojs/v1/jobs/019539a4-b68c-7def-8000-1a2b3c4d5e6f/events HTTP/1.1\r\nHost: x\r\n"
                                  "Connection: close\r\n\r\n")
        self.assertEqual((line, body), ("HTTP/1.1 404 Not Found", ""))

    def test_a_client_of_HTTP_1_0_gets_a_stream_without_chunks(self):
        job = self.ended_job()
        line, header, body = self.said(f"GET /ojs/v1/jobs/{job}/events HTTP/1.0\r\n\r\n")
        self.assertEqual(line, "HTTP/1.1 200 OK")
        self.assertNotIn("transfer-encoding", header)
        self.assertRegex(body, r"^retry: 3000\n\nid: ")
        self.assertTrue(body.endswith("\n\n"), "no last chunk")

    def test_a_client_of_HTTP_1_0_keeps_its_connection_when_it_asks_to(self):
        asked = "GET /health HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
        line, header, body = self.said(asked + "GET /health HTTP/1.0\r\n\r\n")
        self.assertEqual((line, header["connection"], body.count("HTTP/1.1 200 OK")), ("HTTP/1.1 200 OK", "keep-alive", 1))

    def test_a_target_may_name_the_host(self):
        job = self.put_job()["id"]
        for host in ("http://jobs:80", "https://jobs"):
            line, _, body = self.said(f"GET {host}/ojs/v1/jobs/{job}?x=http://y/z HTTP/1.1\r\nHost: jobs\r\n"
                                      "Connection: close\r\n\r\n")
            self.assertEqual(line, "HTTP/1.1 200 OK")
            self.assertIn(job, body)
