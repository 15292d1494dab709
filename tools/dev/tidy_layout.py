# SPDX-License-Identifier: Apache-2.0
"""docs/segment_layout.md against the code: offsets of members, sizes and counts of the regions of a default segment."""

import pathlib
import re
import subprocess
import tempfile
from typing import Iterator

from tidy_source import ROOT, Source

Found = tuple[str, int, str]
LAYOUT = "docs/segment_layout.md"
STRUCTS = {"Header": "shm/layout.hpp", "ProcessRecord": "shm/layout.hpp", "Lane": "shm/layout.hpp",
           "CatalogueRow": "shm/catalogue.hpp", "JobRecord": "engine/tables/layout.hpp", "QueueRecord": "engine/tables/layout.hpp",
           "EngineHeader": "engine/tables/layout.hpp"}
# A map: the name of its struct, and below it, further in, offsets and members.
MAP = re.compile(r"^    (\w+)\n((?:      \S.*\n)+)", re.M)
PAIR = re.compile(r"(\d+) ([a-z]\w*)")

# The rows of the table of regions, by the first name in each: the sizes of one, the counts, and the bytes of all.
REGIONS = {
    "Header": ("sizeof(Header)", "1", "o.processes"),
    "ProcessRecord": ("sizeof(ProcessRecord)", "g.processes", "o.lanes - o.processes"),
    "Lane": ("sizeof(Lane)", "g.lanes", "o.area - o.lanes"),
    "EngineHeader": ("kEngineHeaderBytes, sizeof(TypeDefault), sizeof(QueueRecord), sizeof(PartRings), sizeof(QueueTally)",
                     "1, kTypeDefaults, queues, spare, queues, g.lanes",
                     "kEngineHeaderBytes + kTypeDefaults * sizeof(TypeDefault) + queues * sizeof(QueueRecord) + "
                     "spare * sizeof(PartRings) + queues * g.lanes * sizeof(QueueTally)"),
    "WaitPage": ("sizeof(WaitPage), sizeof(EventPage), sizeof(Word)", "waits, events", "page_bytes(waits, events)"),
    "PoolRecord": ("sizeof(PoolRecord), sizeof(Word), sizeof(Word), sizeof(SampleTimes), sizeof(QueueSamples)",
                   "kPools, busy_words(queues), queues, 1, queues",
                   "kPools * sizeof(PoolRecord) + (busy_words(queues) + queues) * sizeof(Word) + sizeof(SampleTimes) + "
                   "queues * sizeof(QueueSamples)"),
    "FlowRecord": ("sizeof(FlowRecord), sizeof(TenantRule), sizeof(AccountRecord), sizeof(AccountTally)",
                   "flows, kTenantRules, accounts, g.lanes, accounts",
                   "flows * sizeof(FlowRecord) + kTenantRules * sizeof(TenantRule) + "
                   "accounts * (sizeof(AccountRecord) + g.lanes * sizeof(AccountTally))"),
    "SharedTurn": ("sizeof(SharedTurn)", "kSharedTurns", "kSharedTurns * sizeof(SharedTurn)"),
    "CronTable": ("sizeof(CronTable) - kCrons * sizeof(CronRecord), sizeof(CronRecord)", "kCrons", "sizeof(CronTable)"),
    "WorkerRecord": ("sizeof(WorkerRecord), sizeof(WorkerMark)", "workers_for(g.slots)",
                     "workers_for(g.slots) * (sizeof(WorkerRecord) + sizeof(WorkerMark))"),
    "LimitKey": ("sizeof(LimitKey), sizeof(ParkingLot), sizeof(PermitPage), sizeof(Word), sizeof(RoomTicket)",
                 "keys, lots, permits, room_tickets(g.lanes)",
                 "keys * sizeof(LimitKey) + lots * sizeof(ParkingLot) + permits * (sizeof(PermitPage) + sizeof(Word)) + "
                 "room_tickets(g.lanes) * sizeof(RoomTicket)"),
    "TransitionRecord": ("sizeof(TransitionRecord)", "records_per_lane(g.slots) + 1, g.lanes",
                         "recorder_bytes(g.lanes, g.slots)"),
    "up to a multiple": ("", "", "g.area_bytes - used"),
    "bitmaps": ("1", "", "o.rings - o.slot_map"),
    "RingEnds": ("sizeof(RingEnds)", "g.rings", "o.chunks - o.rings"),
    "Chunk": ("sizeof(Chunk)", "g.chunks", "o.keys - o.chunks"),
    "key cells": ("8", "g.key_cells", "o.slots - o.keys"),
    "Slot": ("sizeof(Slot)", "g.slots", "o.block_words - o.slots"),
    "block words": ("8, 4", "g.blocks", "o.blocks - o.block_words"),
    "Block": ("sizeof(Block)", "g.blocks", "o.end - o.blocks"),
    "file": ("", "", "o.end"),
    # what one more costs, without the rounding of regions
    "a queue": ("", "", "sizeof(QueueRecord), sizeof(QueueSamples), g.lanes, sizeof(QueueTally), sizeof(Word), "
                        "(area(queues + 16, g) - area(queues, g)) / 16"),
    "a handle": ("", "", "(fixed(2 * kDefaultHandles) - fixed(kDefaultHandles)) / kDefaultHandles - "
                         "queues * sizeof(QueueTally) - accounts * sizeof(AccountTally), "
                         "sizeof(QueueTally), sizeof(AccountTally)"),
}
PROGRAM = """
#include <cstdio>
#include "engine/tables/make.cpp"
using namespace ojs_shm::engine;
using namespace ojs_shm::shm;
using ojs_shm::engine::Word;
using Numbers = std::initializer_list<std::uint64_t>;
constexpr std::uint64_t queues = kDefaultQueues, spare = spare_parts(kDefaultQueues);
std::uint64_t area(std::uint32_t of, const Geometry& g) {
  const std::uint32_t flows = flows_for(kDefaultTenants);
  return area_bytes(of, g.lanes, wait_pages_for(g.lanes), event_pages_for(g.lanes, g.slots), flows, permit_pages_for(g.slots),
                    limit_keys_for(g.slots), lots_for(g.slots), accounts_for(flows, g.slots), room_tickets(g.lanes), g.slots);
}
std::uint64_t fixed(std::uint32_t handles) {
  Plan plan;
  plan.max_handles = handles;
  Geometry g = measure(plan).geometry;
  g.blocks = 1;
  return offsets_of(g).end;
}
void row(const char* name, Numbers one, Numbers count, Numbers all) {
  std::printf("%s", name);
  for (const Numbers& numbers : {one, count, all}) {
    std::printf("|");
    for (const std::uint64_t number : numbers) std::printf("%llu ", static_cast<unsigned long long>(number));
  }
  std::printf("\\n");
}
int main() {
  const Geometry g = measure(Plan{}).geometry;
  const Offsets o = offsets_of(g);
  const std::uint32_t waits = wait_pages_for(g.lanes), events = event_pages_for(g.lanes, g.slots);
  const std::uint64_t flows = flows_for(kDefaultTenants), accounts = accounts_for(flows_for(kDefaultTenants), g.slots),
                      keys = limit_keys_for(g.slots), lots = lots_for(g.slots), permits = permit_pages_for(g.slots),
                      used = area(kDefaultQueues, g);
"""


def all_of_the_layout(sources: list[Source]) -> Iterator[Found]:
    yield from offsets(sources)
    yield from regions()


def offsets(sources: list[Source]) -> Iterator[Found]:
    """Each map lists every member of its struct at the offset that the compiler gives it."""
    maps = {name: [(int(at), member) for at, member in PAIR.findall(body)]
            for name, body in MAP.findall((ROOT / LAYOUT).read_text())}
    code = {source.path: source.code for source in sources}
    asserts = []
    for name, header in STRUCTS.items():
        room = header.partition("/")[0]
        listed = {member for _, member in maps.get(name, [])}
        declared = set(members_of(code[header], name))
        for member in sorted(declared - listed):
            yield LAYOUT, 0, f"the map of {name} lacks {member}"
        for member in sorted(listed - declared):
            yield LAYOUT, 0, f"{name} has no member {member}"
        asserts += [f'static_assert(offsetof(ojs_shm::{room}::{name}, {member}) == {at}, "{name}: {at} {member}");'
                    for at, member in maps.get(name, []) if member in declared]
    program = "\n".join(['#include "engine/tables/layout.hpp"', '#include "shm/catalogue.hpp"', *asserts])
    ran = subprocess.run(["g++", "-std=c++20", "-fsyntax-only", "-Wno-invalid-offsetof", f"-I{ROOT}", "-x", "c++", "-"],
                         input=program, capture_output=True, text=True)
    wrong = re.findall(r"static assertion failed: (\w+: \d+ \w+)", ran.stderr)
    for what in wrong:
        yield LAYOUT, 0, f"another offset in the code: {what}"
    if ran.returncode != 0 and not wrong:
        yield LAYOUT, 0, "the offsets do not compile: " + (ran.stderr.splitlines() or ["no message"])[0]


def members_of(code: str, name: str) -> Iterator[str]:
    """The data members of a struct: declarations at its own depth that call nothing."""
    found = re.search(rf"^struct (?:alignas\([^)]*\) )?{name} \{{\n(.*?)^\}};", code, re.M | re.S)
    body = re.sub(r"\s*=\s*(?:\{\}|[^;,{}]+)(?=[;,])", "", found[1]) if found else ""  # first values
    while (shorter := re.sub(r"[^;{}]*\{[^{}]*\}", ";", body)) != body:  # functions
        body = shorter
    for declaration in body.split(";"):
        text = re.sub(r"alignas\(\w+\)|<[^<>]*>|\[[^\]]*\]", " ", declaration).strip()
        whole = re.fullmatch(r"[\w:]+\s+(\w+(?:\s*,\s*\w+)*)\s*", text)
        if whole:
            yield from re.split(r"\s*,\s*", whole[1])


def regions() -> Iterator[Found]:
    """The table of regions, whose bytes add up to the file, and what one more queue or handle costs."""
    there = {}
    for cells in re.findall(r"^\| (.*) \|$", (ROOT / LAYOUT).read_text().split("\n## Header\n")[0], re.M):
        name, *columns = [cell.strip() for cell in cells.split("|")]
        first = next((key for key in REGIONS if re.search(rf"(?<!\w){key}(?!\w)", name.split(",")[0])), None)
        if first:
            one, count, all_ = ["", "", *columns][-3:]
            there[first] = (numbers_in(one), counts_in(count), numbers_in(all_))
    told = measured()
    for name in REGIONS:
        if name not in there:
            yield LAYOUT, 0, f"no row of sizes begins with {name}"
        elif name not in told:
            yield LAYOUT, 0, "the sizes of the regions do not compile: " + told.get("", "no message")
            return
        elif there[name] != told[name]:
            yield LAYOUT, 0, f"{name}: the page has {there[name]}, the code {told[name]}"
    added = sum(row[2][0] for name, row in there.items() if row[2] and name not in ("file", "a queue", "a handle"))
    if "file" in there and [added] != there["file"][2]:
        yield LAYOUT, 0, f"the regions add up to {added:,}, not to the file's {there['file'][2]}"


def numbers_in(cell: str) -> list[int]:
    return [int(number.replace(",", "")) for number in re.findall(r"\d+(?:,\d{3})*", cell)]


def counts_in(cell: str) -> list[int]:
    """Of each item its number, or that in its parentheses: "16 for each lane (2,048)" is 2048."""
    found = []
    for item in re.split(r", (?![^(]*\))", cell):
        inside = re.search(r"\(([\d, x]+)\)", item)
        if inside or re.fullmatch(r"[\d,]+(?: x [\d,]+)*", item):
            found += numbers_in(inside[1] if inside else item)
    return found


def measured() -> dict[str, tuple[list[int], list[int], list[int]]]:
    """What the code says to each row; what stands under "" is why it says nothing."""
    rows = [f'  row("{name}", {{{one}}}, {{{count}}}, {{{all_}}});' for name, (one, count, all_) in REGIONS.items()]
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "regions"
        # make.cpp names the whole engine; what it computes sizes with stands in headers.
        built = subprocess.run(["g++", "-std=c++20", "-w", "-static", "-Wl,--unresolved-symbols=ignore-all", f"-I{ROOT}",
                                f"-I{ROOT}/worker_api/include", "-x", "c++", "-", "-o", binary],
                               input=PROGRAM + "\n".join(rows) + "\n}\n", capture_output=True, text=True)
        if built.returncode != 0:
            return {"": next((line for line in built.stderr.splitlines() if "error" in line), "no message")}
        out = subprocess.run([binary], capture_output=True, text=True).stdout
    return {name: tuple([int(number) for number in part.split()] for part in parts)
            for name, *parts in (line.split("|") for line in out.splitlines())}
