# SPDX-License-Identifier: Apache-2.0
"""What the demonstration found, for a person and for the lane that counts."""

import datetime


class Checks:
    def __init__(self) -> None:
        self.failed = 0

    def that(self, holds: object, text: str) -> bool:
        print(f"  {'ok' if holds else 'FAILED'}  {text}", flush=True)
        self.failed += not holds
        return bool(holds)

    def exit_code(self) -> int:
        return 1 if self.failed else 0


def wait_ms(job: dict) -> float:
    begun, ready = (datetime.datetime.fromisoformat(job[name].replace("Z", "+00:00"))
                    for name in ("started_at", "enqueued_at"))
    return (begun - ready).total_seconds() * 1000


def percentile(sorted_values: list[float], share: float) -> float:
    return sorted_values[min(len(sorted_values) - 1, int(share * len(sorted_values)))]


def print_report(jobs: list[dict], levels: list[str], kills: int, retried: int, seconds: float) -> None:
    attempts = sum(job["attempt"] for job in jobs)
    print(f"\n  {len(jobs)} jobs in {seconds:.1f} s: {len(jobs) / seconds:.0f} jobs/s, a process for each")
    print(f"  {kills} workers killed, {retried} jobs retried, {attempts} attempts, at most "
          f"{max(job['attempt'] for job in jobs)} for one job")
    print(f"\n  {'wait':<28}{'jobs':>7}{'p50':>12}{'p99':>12}")
    for level, text in enumerate(levels):
        waits = sorted(wait_ms(job) for job in jobs if job["priority"] == level and "started_at" in job)
        if waits:
            print(f"  {text:<28}{len(waits):>7}{percentile(waits, 0.5):>9.0f} ms{percentile(waits, 0.99):>9.0f} ms")
    print(flush=True)
