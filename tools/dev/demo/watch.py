# SPDX-License-Identifier: Apache-2.0
"""ojs-shm-top, which looks at the segment all the time while the demonstration runs."""

import json
import signal
import subprocess

from report import Checks
from segment import Segment


class Watch:
    """Its samples are the totals over all queues."""

    def __init__(self, segment: Segment):
        self._segment = segment
        self._file = segment.folder / "looks.ndjson"
        with open(self._file, "w") as looks:
            self._program = subprocess.Popen([segment.programs / "ojs-shm-top", "--json", "--interval", "200ms", *segment.where],
                                             stdout=looks)
        segment.watchers.append(self._program)

    def end(self) -> list[dict[str, int]]:
        """All samples; the last one was taken now."""
        self._program.send_signal(signal.SIGTERM)
        status = self._program.wait(30)
        if status != 0:
            raise RuntimeError(f"ojs-shm-top ended with status {status}")
        return [json.loads(line)["totals"] for line in self._file.read_text().splitlines()] + [self._segment.totals()]


def judge_samples(samples: list[dict[str, int]], jobs: int, checks: Checks) -> None:
    """Against the ledger: so many jobs were accepted, and all of them completed."""
    under_way = sum(0 < look["completed"] < look["enqueued"] for look in samples)
    checks.that(under_way > 1, f"ojs-shm-top looked {under_way} times while jobs ran")
    fallen = [f"{name} from {before[name]} to {after[name]}" for before, after in zip(samples, samples[1:]) for name in before
              if after.get(name, 0) < before[name]]
    checks.that(not fallen, f"no total fell from one look to the next{': ' + fallen[0] if fallen else ''}")
    ahead = [f"{look['completed']} of {look['enqueued']}" for look in samples
             if not look["completed"] <= look["enqueued"] <= jobs]
    checks.that(not ahead, f"no look showed more jobs completed than enqueued{': ' + ahead[0] if ahead else ''}")
    shown = samples[-1]
    checks.that(shown["enqueued"] == shown["completed"] == jobs,
                f"at the end it shows {shown['completed']} of {shown['enqueued']} jobs completed, as the ledger does")
