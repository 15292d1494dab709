# SPDX-License-Identifier: Apache-2.0
"""The programs of one segment as the demonstration uses them."""

import http.client
import json
import pathlib
import signal
import subprocess
import time
import urllib.parse

BATCH = 250  # jobs, or results, in one request


class Segment:
    """Everything it started is gone when it is left."""

    def __init__(self, programs: pathlib.Path, folder: pathlib.Path, name: str):
        self.programs, self.folder = programs, folder
        self.where = ["--name", name, "--dir", str(folder)]
        self.broker: subprocess.Popen | None = None
        self.gateway: subprocess.Popen | None = None
        self.address = ""  # where the gateway listens
        self.workers: list[subprocess.Popen] = []
        self.watchers: list[subprocess.Popen] = []

    def __enter__(self) -> "Segment":
        return self

    def __exit__(self, *_) -> None:
        for process in [*self.workers, *self.watchers, self.gateway, self.broker]:
            if process and process.poll() is None:
                process.kill()
                process.wait()

    def start_broker(self) -> None:
        with open(self.folder / "broker.log", "w") as log:
            self.broker = subprocess.Popen([self.programs / "ojs-shm-broker", *self.where], stdout=subprocess.PIPE,
                                           stderr=log, text=True)
        if not self.broker.stdout.readline().startswith("READY"):
            raise RuntimeError("the broker did not start: " + (self.folder / "broker.log").read_text().strip())

    def stop_broker(self) -> int:
        self.broker.send_signal(signal.SIGTERM)
        return self.broker.wait(30)

    def start_gateway(self) -> None:
        with open(self.folder / "gateway.log", "w") as log:
            self.gateway = subprocess.Popen(
                [self.programs / "ojs-shm-gateway", *self.where, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE,
                stderr=log, text=True)
        ready = self.gateway.stdout.readline().split()
        if ready[:1] != ["READY"]:
            raise RuntimeError("the gateway did not start: " + (self.folder / "gateway.log").read_text().strip())
        self.address = urllib.parse.urlsplit(ready[1]).netloc

    def stop_gateway(self) -> int:
        self.gateway.send_signal(signal.SIGTERM)
        return self.gateway.wait(30)

    def ask(self, path: str, body: dict, expected: int) -> dict:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/openjobspec+json"})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        if reply.status != expected:
            raise RuntimeError(f"POST {path}: status {reply.status} {text[:200]!r}")
        return json.loads(text)

    def enqueue_by_http(self, lines: str) -> list[str]:
        jobs = [json.loads(line) for line in lines.splitlines()]
        ids = []
        for first in range(0, len(jobs), BATCH):
            made = self.ask("/ojs/v1/jobs/batch", {"jobs": jobs[first:first + BATCH]}, 201)
            ids += [job["id"] for job in made["jobs"]]
        return ids

    def results_by_http(self, ids: list[str]) -> dict[str, object]:
        results = {}
        for first in range(0, len(ids), BATCH):
            answer = self.ask("/ojs/v1/jobs/results", {"job_ids": ids[first:first + BATCH]}, 200)
            results |= {job: each["result"] for job, each in answer["results"].items()}
        return results

    def command(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([self.programs / "ojs-shm", *words, *self.where], input=given, stdout=subprocess.PIPE,
                              text=True)

    def answer(self, *words: str, given: str | None = None) -> str:
        done = self.command(*words, given=given)
        if done.returncode != 0:
            raise RuntimeError(f"ojs-shm {' '.join(words)}: status {done.returncode}")
        return done.stdout

    def enqueue(self, lines: str) -> list[str]:
        return self.answer("enqueue", given=lines).split()

    def jobs(self) -> list[dict]:
        return [json.loads(line) for line in self.answer("list", "--queue", "hash", "--json").splitlines()]

    def totals(self) -> dict[str, int]:
        """The sums over all queues that ojs-shm-top shows."""
        look = subprocess.run([self.programs / "ojs-shm-top", "--json", "--once", *self.where], stdout=subprocess.PIPE,
                              text=True, check=True)
        return json.loads(look.stdout)["totals"]

    def unfinished(self) -> tuple[int, int]:
        queue = json.loads(self.answer("queue", "get", "hash", "--json"))
        return queue["depth"], queue["counts"]["active"]

    def start_worker(self, command: list[str]) -> None:
        self.workers.append(subprocess.Popen(
            [self.programs / "ojs-shm", "work", "--queue", "hash", *self.where, "--", *command],
            stdout=subprocess.DEVNULL))

    def stop_workers(self) -> list[int]:
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        return [worker.wait(30) for worker in self.workers]

    def kill_a_busy_worker(self) -> bool:
        """A stopped process can let go of nothing: what it is seen to hold then, it holds when it is killed."""
        victim = self.workers.pop(0)
        if victim.poll() is not None:
            raise RuntimeError(f"a worker ended by itself with status {victim.returncode}")
        victim.send_signal(signal.SIGSTOP)
        self.wait_until_stopped(victim.pid)
        if self.held_by(victim.pid) == 0:
            victim.send_signal(signal.SIGCONT)
            self.workers.append(victim)
            return False
        victim.kill()
        victim.wait()
        return True

    def held_by(self, pid: int) -> int:
        stats = json.loads(self.answer("stats", "--json"))
        return sum(process["active_jobs"] for process in stats["processes"] if process["pid"] == pid)

    @staticmethod
    def wait_until_stopped(pid: int) -> None:
        """Every thread: one that still runs could still ack."""
        states = [None]
        while any(state not in ("T", "Z", "X") for state in states):
            states = []
            for stat in pathlib.Path(f"/proc/{pid}/task").glob("*/stat"):
                try:
                    states.append(stat.read_text().rsplit(")", 1)[1].split()[0])
                except OSError:
                    continue  # a thread that just ended
            time.sleep(0.001)
