#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Producers at ten times the worker's speed, for each strategy of a bounded queue: runs ojs_shm_overload, judges, draws.

Every run counts its jobs itself and fails when one is missing. A pair in which the worker had its core for less than nine
tenths of the time was disturbed and is set aside. Judged are the median over the pairs of served jobs, under
overload and alone, with its 95 % interval; the deepest sample; and the memory of the producer's process, without the
segment's pages, and of the segment's file, at the end and before. Producers that wait bring less than they would: of `block` the wanted is held against
the ten times, and what was offered, accepted and refused is what was brought.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

from report import interval_of_median, number

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 640, 260, 64, 40, 30, 16
COLOURS = ("#2458a6", "#d98200", "#2f7d32", "#b3261e")
AT_LEAST = 0.9
OVERLOAD_REACHED = 9
OWN_CORE = 0.9
RESIDENT_BOUND = 1 << 20


def picture(runs: dict[str, dict]) -> str:
    """Depth over the time of one run of each strategy."""
    seconds = max(run["seconds"] for run in runs.values())
    highest = max(max(*run["depth"], run["bound"]) for run in runs.values()) * 1.1

    def x(second: float) -> float:
        return LEFT + second / seconds * (WIDTH - LEFT - RIGHT)

    def y(depth: float) -> float:
        return HEIGHT - BOTTOM - depth / highest * (HEIGHT - BOTTOM - TOP)

    title = "depth of a bounded queue while ten times as much is offered as the worker does"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
        f'<title>{title}</title>',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="18" font-size="13">{title}</text>',
    ]
    for share in (0, 0.25, 0.5, 0.75, 1):
        lines.append(f'<text x="{x(share * seconds):.0f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">'
                     f'{share * seconds:g}</text>')
    for bound in sorted({0, *(run["bound"] for run in runs.values())}):
        lines.append(f'<path d="M{LEFT} {y(bound):.0f}H{WIDTH - RIGHT}" stroke="#dddddd"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y(bound) + 4:.0f}" text-anchor="end">{bound:,}</text>')
    lines.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">seconds</text>')
    lines.append(f'<text transform="translate(14 {HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">jobs</text>')
    for place, ((strategy, run), colour) in enumerate(zip(runs.items(), COLOURS)):
        step = run["seconds"] / len(run["depth"])
        points = " ".join(f"{x(index * step):.1f},{y(depth):.1f}" for index, depth in enumerate(run["depth"]))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colour}"/>')
        lines.append(f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - BOTTOM - 8 - 14 * place}" text-anchor="end" '
                     f'fill="{colour}">{strategy}: {run["served"]:,} of {run["offered"]:,} served</text>')
    return "\n".join(lines + ["</svg>"]) + "\n"


def judge(strategy: str, runs: list[dict]) -> list[tuple[bool | None, str]]:
    """Whether it is met, None when that could not be seen, and the sentence."""
    kept = [run for run in runs if run["worker_share"] >= OWN_CORE]
    ratios = [run["served_per_second"] / run["unloaded_per_second"] for run in kept]
    asked = "wanted" if strategy == "block" else "offered"
    reached = statistics.median(run[asked] / run["seconds"] / run["unloaded_per_second"] for run in runs)
    low, high = interval_of_median(ratios) if kept else (0, 0)
    keeps = f"{statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}], {len(kept)} pairs" if kept else "not undisturbed"
    aside = f", {len(runs) - len(kept)} set aside: core shared" if len(kept) < len(runs) else ""
    deepest, bound = max(max(run["depth"]) for run in runs), runs[0]["bound"]
    resident = statistics.median(run["resident_growth"] for run in runs)
    segment = max(run["segment_growth"] for run in runs)
    return [
        (reached >= OVERLOAD_REACHED, f"{strategy}: {asked} {reached:.3g} times what the worker does; at least "
                                      f"{OVERLOAD_REACHED}"),
        (low >= AT_LEAST if kept else None, f"{strategy}: the worker keeps {keeps}{aside}; at least {AT_LEAST}"),
        (deepest <= bound, f"{strategy}: at most {deepest:,} waiting; bound {bound:,}"),
        (resident <= RESIDENT_BOUND and segment == 0, f"{strategy}: memory grew by {number(resident)} B in the producer, "
                                                      f"{number(segment)} B in the segment's file; 1 MiB, none"),
    ]


def table(strategies: dict[str, list[dict]]) -> None:
    print(f"\n{'strategy':<14}{'alone/s':>10}{'served/s':>10}{'wanted/s':>12}{'offered/s':>12}{'accepted':>10}{'rejected':>10}{'dropped':>10}")
    for strategy, runs in strategies.items():
        seconds = sum(run["seconds"] for run in runs)
        row = [statistics.median(run["unloaded_per_second"] for run in runs),
               statistics.median(run["served_per_second"] for run in runs)]
        offered = sum(run["offered"] for run in runs)
        shares = [sum(run[what] for run in runs) / offered for what in ("accepted", "rejected", "dropped")]
        print(f"{strategy:<14}{row[0]:>10,.0f}{row[1]:>10,.0f}"
              f"{sum(run['wanted'] for run in runs) / seconds:>12,.0f}{offered / seconds:>12,.0f}"
              + "".join(f"{share:>10.1%}" for share in shares))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/ojs_shm_overload")
    parser.add_argument("--pairs", type=int, default=31)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each run of a pair")
    parser.add_argument("--quick", action="store_true", help="a smoke run: one short pair, only the counts are judged")
    parser.add_argument("--results", default="bench/results", metavar="DIR", help="where figures and picture are kept")
    parser.add_argument("--tally", metavar="FILE", help="add to the 'passed failed skipped' and notes there (for ./dev)")
    args = parser.parse_args()
    if args.quick:
        args.pairs, args.seconds, args.results = 1, 0.05, "build/results"
    done = subprocess.run([args.program, str(args.seconds), str(args.pairs)], capture_output=True, text=True, check=False)
    strategies: dict[str, list[dict]] = {}
    for line in done.stdout.splitlines():
        run = json.loads(line)
        strategies.setdefault(run["strategy"], []).append(run)
    verdicts = []
    if done.returncode != 0 or not strategies:
        verdicts.append((False, f"{args.program} ended with {done.returncode}: {done.stderr.strip()}"))
    for strategy, runs in strategies.items():
        verdicts += [(True, f"{strategy} ran, and every job was counted")] if args.quick else judge(strategy, runs)
    if strategies:
        table(strategies)
        folder = pathlib.Path(args.results)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "overload.svg").write_text(picture({strategy: runs[0] for strategy, runs in strategies.items()}))
        kept = {strategy: [dict(run, depth=run["depth"] if run is runs[0] else []) for run in runs]
                for strategy, runs in strategies.items()}
        (folder / "overload.json").write_text(json.dumps(kept, separators=(",", ":")) + "\n")
        print(f"depth over time: {folder / 'overload.svg'}")
    for met, text in verdicts:
        print(f"  {'NOT RUN' if met is None else 'met' if met else 'MISSED':<8} {text}")
    if args.tally:
        path = pathlib.Path(args.tally)
        first, *notes = path.read_text().splitlines() if path.exists() else ["0 0 0"]
        passed, failed, skipped = map(int, first.split())
        passed += sum(met is True for met, _ in verdicts)
        failed += sum(met is False for met, _ in verdicts)
        skipped += sum(met is None for met, _ in verdicts)
        notes += [f"{'NOT RUN' if met is None else 'FAILED missed'} {text}" for met, text in verdicts if not met]
        path.write_text("\n".join([f"{passed} {failed} {skipped}", *notes]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
