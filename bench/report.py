#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs ojs_shm_bench in rounds, compares within each round, and holds the medians against the targets.

A round runs every benchmark once, so the two sides of a ratio are seconds apart. A repeat is set aside, and counted,
when its two cores were far apart (a cache line there and back took more than 200 ns), or when a part that only spins
did not have its core for itself. Ratios are taken for each round in which both sides were kept; then come their median and
its 95 % interval (order statistics, no assumption about the distribution). A target is met when the unfavourable end of
that interval meets it.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tempfile

from targets import TABLES, TARGETS, Target

FAR_APART_NS = 200
ROUND_SECONDS = 300
OWN_CORE = 0.9
SLOW = r"/(beanstalkd|redis_.*|zeromq_ipc)$"  # a request each: far from any bound, so a few rounds are enough
ONCE = r"^memory_"  # counted, not timed


class Repeats:
    """The kept repeats of every benchmark, by round; and those with the cores far apart, for comparison."""

    def __init__(self, keep_all: bool) -> None:
        self.keep_all = keep_all
        self.kept: dict[str, dict[int, dict]] = {}
        self.far: dict[str, dict[int, dict]] = {}
        self.aside: dict[str, dict[str, int]] = {}
        self.troubles: dict[str, str] = {}

    def add(self, number: int, run: dict) -> None:
        name = run["name"].split("/iterations:")[0]
        if run.get("error_occurred"):
            self.troubles[name] = run["error_message"]
        elif run.get("core_share", 1) < OWN_CORE and not self.keep_all:
            self.put_aside(name, "core shared")
        elif run.get("line_rtt_ns", 0) > FAR_APART_NS and not self.keep_all:
            self.put_aside(name, "cores far apart")
            self.far.setdefault(name, {})[number] = run
        else:
            self.kept.setdefault(name, {})[number] = run

    def put_aside(self, name: str, why: str) -> None:
        counts = self.aside.setdefault(name, {})
        counts[why] = counts.get(why, 0) + 1

    def values(self, name: str, field: str) -> list[float]:
        return [run[field] for run in self.kept.get(name, {}).values() if field in run]

    def ratios(self, ours: str, peer: str, field: str, far: bool = False) -> list[float]:
        runs = self.far if far else self.kept
        mine, others = runs.get(ours, {}), runs.get(peer, {})
        return [mine[number][field] / others[number][field] for number in mine if number in others]


def interval_of_median(values: list[float]) -> tuple[float, float]:
    """The 95 % interval: the widest-spread order statistics that the sign test does not reject."""
    values = sorted(values)
    count, below, rank = len(values), 0.0, 0
    while rank < count // 2:
        below += math.comb(count, rank) * 0.5**count
        if below > 0.025:
            break
        rank += 1
    low = max(rank - 1, 0)
    return values[low], values[count - 1 - low]


class Load:
    """What the machine did beside us, from /proc/stat, between start and stop."""

    def __init__(self) -> None:
        self.ticks = os.sysconf("SC_CLK_TCK")
        self.start = self.read()

    @staticmethod
    def read() -> tuple[float, float, float, float]:
        fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        user, nice, system, idle, iowait, irq, softirq, steal = (float(x) for x in fields[:8])
        ours = resource.getrusage(resource.RUSAGE_CHILDREN)
        return user + nice + system + irq + softirq, idle + iowait, steal, ours.ru_utime + ours.ru_stime

    def shares(self) -> tuple[float, float]:
        """(others' share of all processor time, the hypervisor's share)."""
        busy, idle, steal, ours = (now - then for now, then in zip(self.read(), self.start))
        total = busy + idle + steal
        return max(busy - ours * self.ticks, 0) / total, steal / total


def run_round(program: str, pattern: str, args: argparse.Namespace) -> dict:
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [program, f"--benchmark_filter={pattern}", f"--benchmark_out={out.name}"]
        command += ["--benchmark_out_format=json", *(["--quick"] if args.quick else [])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=ROUND_SECONDS)
        except subprocess.TimeoutExpired:
            done = None
        text = pathlib.Path(out.name).read_text()
    if done is None or done.returncode != 0 or not text.strip():
        why = f"took more than {ROUND_SECONDS} s" if done is None else f"ended with {done.returncode}:\n{done.stderr}"
        print(f"\na round is lost: {program} {why}", file=sys.stderr)
        return {}
    return json.loads(text)


def names_in(program: str) -> list[str]:
    listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True, check=True).stdout
    return [line.split("/iterations:")[0] for line in listed.split("\n") if "/iterations:" in line]


def exactly(names: list[str]) -> str:
    return "^(" + "|".join(re.sub(r"([.^$*+?()\[\]{}|\\])", r"\\\1", name) for name in names) + ")/iterations"


def incomplete(repeats: Repeats, names: list[str], wanted: int) -> list[str]:
    """The benchmarks of those targets that have too few pairs."""
    short = set()
    for target in TARGETS:
        sides = [side for side in (target.ours, target.peer) if side]
        if len(sides) < 2 or re.search(SLOW, target.peer):
            continue
        if not set(sides) <= set(names) or set(sides) & set(repeats.troubles):
            continue
        if len(repeats.ratios(target.ours, target.peer, target.field)) < wanted:
            short.update(sides)
    return [name for name in names if name in short]


def measure(args: argparse.Namespace, names: list[str]) -> tuple[Repeats, list[dict], dict]:
    repeats, rounds = Repeats(args.quick), []
    for number in range(args.most_rounds):
        todo = names if number < args.rounds else incomplete(repeats, names, args.rounds)
        todo = [name for name in todo if not (re.search(ONCE, name) and number > 0)]
        todo = [name for name in todo if not (re.search(SLOW, name) and number >= args.server_rounds)]
        todo = [name for name in todo if name not in repeats.troubles]
        if not todo:
            break
        print(f"\rround {number + 1}, {len(todo)} benchmarks ", end="", file=sys.stderr, flush=True)
        result = run_round(args.program, exactly(todo), args)
        if not result:
            continue
        rounds.append(result)
        for run in result["benchmarks"]:
            repeats.add(number, run)
    if not rounds:
        sys.exit("no round came to its end")
    print("\r" + " " * 40 + "\r", end="", file=sys.stderr)
    return repeats, rounds, rounds[0]["context"]


def unfair(context: dict, load: Load, repeats: Repeats) -> list[str]:
    found = []
    if context["build"] not in ("RelWithDebInfo", "Release"):
        found.append(f"the build is {context['build']}")
    if context["two_cores"] != "yes":
        found.append("there are no two cores: producer and worker share one")
    others, stolen = load.shares()
    if others > 0.05:
        found.append(f"other processes took {others:.0%} of the processor time")
    if stolen > 0.02:
        found.append(f"the hypervisor took {stolen:.0%} of the processor time")
    governor = pathlib.Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    if governor.exists() and governor.read_text().strip() != "performance":
        found.append(f"the cores' frequency is governed by '{governor.read_text().strip()}'")
    kept = sum(len(runs) for runs in repeats.kept.values())
    for why in ("cores far apart", "core shared"):
        aside = sum(counts.get(why, 0) for counts in repeats.aside.values())
        if aside > 0.2 * (kept + aside):
            found.append(f"{aside} of {kept + aside} repeats were set aside: {why}")
    return found


def number(value: float) -> str:
    if value >= 10_000:
        return f"{value:,.0f}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def print_tables(repeats: Repeats, names: list[str]) -> None:
    for title, topology, field, unit, reference in TABLES:
        rows = [name for name in names if name.split("/")[0] == topology]
        if not rows:
            continue
        print(f"\n{title}")
        for name in rows:
            peer = name.split("/", 1)[1]
            values = repeats.values(name, field)
            aside = ", ".join(f"{count} set aside: {why}" for why, count in repeats.aside.get(name, {}).items())
            if not values:
                print(f"  {peer:<26} NOT RUN {repeats.troubles.get(name, aside or 'nothing measured')}")
                continue
            ratio = repeats.ratios(name, f"{topology}/{reference}", field) if reference and peer != reference else []
            against = f"{number(statistics.median(ratio))} of {reference}" if ratio else ""
            figure = f"{number(statistics.median(values)):>12} {unit:<7}"
            print(f"  {peer:<26} {figure} {against:<24} {len(values):>3} repeats" + (f" ({aside})" if aside else ""))


def verdict_of(trouble: str) -> str:
    return "NOT RUN" if trouble.startswith("not ") else "FAILED"


def judge(target: Target, repeats: Repeats) -> tuple[str, str]:
    """(met | MISSED | NOT RUN | FAILED, the sentence)."""
    values = (repeats.ratios(target.ours, target.peer, target.field) if target.peer else
              repeats.values(target.ours, target.field))
    want = f"at {'least' if target.at_least is not None else 'most'} {number(target.bound)}"
    if not values:
        trouble = next((repeats.troubles[name] for name in (target.ours, target.peer) if name in repeats.troubles),
                       "not undisturbed in any round")
        far = repeats.ratios(target.ours, target.peer, target.field, far=True)
        if far:
            trouble += f" ({number(statistics.median(far))} in {len(far)} pairs with the cores far apart)"
        return verdict_of(trouble), f"{target.text}: {want}; {trouble}"
    median = statistics.median(values)
    low, high = interval_of_median(values)
    text = f"{target.text}: {number(median)}"
    if len(values) > 1:
        text += f" [{number(low)}, {number(high)}], {len(values)} {'pairs' if target.peer else 'rounds'}"
    text += f"; {want}"
    if target.met_by(low) and target.met_by(high):
        return "met", text
    if target.met_by(median):
        return "MISSED", f"{text}; the median meets it, the interval does not"
    return "MISSED", f"{text}; by {abs(median / target.bound - 1):.0%}"


def keep(folder: str, context: dict, rounds: list[dict], warnings: list[str], verdicts: list) -> pathlib.Path:
    started = datetime.datetime.fromisoformat(context["date"]).astimezone(datetime.timezone.utc)
    path = pathlib.Path(folder) / f"{started:%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    dull = {"family_index", "per_family_instance_index", "run_type", "run_name", "repetitions", "repetition_index",
            "threads", "iterations", "time_unit", "real_time", "cpu_time"}
    slim = [[{key: run[key] for key in run if key not in dull} for run in one["benchmarks"]] for one in rounds]
    kept = {"machine": context, "warnings": warnings, "targets": verdicts, "rounds": slim}
    path.write_text(json.dumps(kept, separators=(",", ":")) + "\n")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/ojs_shm_bench")
    parser.add_argument("--only", default="", metavar="NAME",
                        help="benchmarks whose name holds this (a regular expression)")
    parser.add_argument("--rounds", type=int, default=30, help="repeats, and pairs wanted for each target (default 30)")
    parser.add_argument("--most-rounds", type=int,
                        help="give up wanting more pairs after so many (default: twice --rounds)")
    parser.add_argument("--server-rounds", type=int, default=5, help="repeats of the servers and ZeroMQ (default 5)")
    parser.add_argument("--quick", action="store_true", help="a smoke run: everything once, very short, nothing judged")
    parser.add_argument("--results", default="bench/results", metavar="DIR", help="where the raw figures are kept")
    parser.add_argument("--tally", metavar="FILE", help="write 'passed failed skipped' and a note a line (for ./dev)")
    args = parser.parse_args()
    if args.quick:
        args.rounds = args.server_rounds = args.most_rounds = 1
    args.most_rounds = args.most_rounds or 2 * args.rounds
    names = [name for name in names_in(args.program) if re.search(args.only, name)]
    if not names:
        parser.error(f"no benchmark's name holds '{args.only}'")

    load = Load()
    repeats, rounds, context = measure(args, names)
    warnings = unfair(context, load, repeats)
    for key in ("processor", "kernel", "cores", "compiler", "build", "time_stamps"):
        print(f"{key:<12} {context[key]}")
    for warning in warnings:
        print(f"WARNING: this run is unfair: {warning}")
    print_tables(repeats, names)

    if args.quick:
        verdicts = [(verdict_of(repeats.troubles[name]), f"{name}: {repeats.troubles[name]}")
                    if name in repeats.troubles else ("ran", name) for name in names]
    else:
        chosen = [t for t in TARGETS if t.ours in names and (not t.peer or t.peer in names)]
        verdicts = [judge(target, repeats) for target in chosen]
        print("\nTargets (median of the ratios taken in each round, its 95 % interval)")
        for verdict, text in verdicts:
            print(f"  {verdict:<8} {text}")
        print(f"\nraw figures: {keep(args.results, context, rounds, warnings, verdicts)}")
    if args.tally:
        kinds = (("met", "ran"), ("MISSED", "FAILED"), ("NOT RUN",))
        counts = [sum(verdict in kind for verdict, _ in verdicts) for kind in kinds]
        notes = [f"{'FAILED missed' if verdict == 'MISSED' else verdict} {text}" for verdict, text in verdicts
                 if verdict in ("MISSED", "FAILED", "NOT RUN")]
        pathlib.Path(args.tally).write_text("\n".join([" ".join(map(str, counts)), *notes]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
