# SPDX-License-Identifier: Apache-2.0
"""What a process can call is called by the visitor of hostile segments and by the hands of the storms, or says why not."""

import re
from typing import Iterator

from tidy_source import Source

HEADERS = "worker_api/include/ojs_shm/"
LANES = {
    "the fuzz visitor": re.compile(r"tests/fuzz/visitor\w*\.cpp"),
    "a hand of the storms": re.compile(r"tests/support/storm/ojs_\w+\.cpp"),
}
RECEIVERS = {  # as those files call what they hold
    "Producer": r"producer_|producer\(\)",
    "WaitingEnqueue": r"begun|one|enqueue",
    "Worker": r"worker_|pooled_",
    "Admin": r"admin_?",
    "Proxy": r"proxy_",
    "Observer": r"observer_?|seen|copied",
    "EventReader": r"events_?",
    "Import": r"import_?",
}
EXEMPT = {
    "segment": "says which segment it is",
    "the fuzz visitor: Worker::event_fd": "starts a thread, and no run would be like another",
    "the fuzz visitor: Worker::fetch": "its first look is try_fetch, and then it sleeps",
    "the fuzz visitor: Worker::interrupt": "ends the handle without a look at the segment",
    "the fuzz visitor: Proxy::await_jobs": "starts a thread, and no run would be like another",
    "the fuzz visitor: Proxy::await_end": "as above",
    "the fuzz visitor: Proxy::await_events": "as above",
    "the fuzz visitor: WaitingEnqueue::deduplicated": "what this process has seen",
    "the fuzz visitor: Proxy::descriptor": "as above",
    "the fuzz visitor: Proxy::begin_enqueue": "as above",
    "the fuzz visitor: Proxy::take_decided": "as above",
    "the fuzz visitor: Proxy::forget_end": "says nothing to a proxy that starts no thread",
    "the fuzz visitor: Proxy::take_ended": "as above",
    "the fuzz visitor: EventReader::holds_young": "what this process has seen",
    "a hand of the storms: EventReader::holds_young": "as above",
    "a hand of the storms: Observer::segment_settings": "a part of segment_info",
    "the fuzz visitor: Admin::producer": "the visitor has one of its own",
    "the fuzz visitor: EventReader::lost": "a number of this process",
    "a hand of the storms: Producer::create_workflow": "tests/stress/workflows_test.cpp is a storm of workflows",
    "a hand of the storms: Producer::cancel_workflow": "as above",
    "a hand of the storms: Observer::workflow": "as above",
    "a hand of the storms: Observer::workflows": "as above",
    "a hand of the storms: Admin::set_cron": "tests/stress/crons_test.cpp is a storm of crons",
    "a hand of the storms: Admin::remove_cron": "as above",
    "a hand of the storms: Admin::enable_cron": "as above",
    "a hand of the storms: Admin::trigger_cron": "as above",
    "a hand of the storms: Observer::crons": "as above",
    "a hand of the storms: Observer::cron": "as above",
    "a hand of the storms: Proxy::fetch": "tests/contract/http/test_storm.py is a storm of gateways, which call it",
    "a hand of the storms: Proxy::await_jobs": "as above",
    "a hand of the storms: Proxy::await_end": "as above",
    "a hand of the storms: Proxy::await_events": "as above",
    "a hand of the storms: Proxy::forget_end": "as above",
    "a hand of the storms: Proxy::take_ended": "as above",
    "a hand of the storms: Proxy::descriptor": "as above",
    "a hand of the storms: Proxy::hand_over": "as above",
    "a hand of the storms: Proxy::ack": "as above",
    "a hand of the storms: Proxy::nack": "as above",
    "a hand of the storms: Proxy::requeue": "as above",
    "a hand of the storms: Proxy::heartbeat": "as above",
    "a hand of the storms: Proxy::progress": "as above",
    "a hand of the storms: Proxy::checkpoint": "as above",
    "a hand of the storms: Proxy::report": "as above",
    "a hand of the storms: Producer::retry": "is Admin::retry_dead also of jobs that the ledger holds for over",
    "a hand of the storms: Proxy::now_ms": "as above",
    "a hand of the storms: Observer::brief_list": "calls what Observer::page calls",
    "a hand of the storms: Admin::set_maintenance": "killed in between, no job would be handed out: a wedge",
    "a hand of the storms: Admin::bulk": "calls what other hands call, one job after the other",
    "a hand of the storms: Import::report": "numbers of this process",
}
Found = tuple[str, int, str]


def everywhere(sources: list[Source]) -> Iterator[Found]:
    used = set()
    classes = dict(public_methods(sources))
    for name in RECEIVERS.keys() - classes.keys():
        yield HEADERS, 0, f"there is no class {name}, which tidy_operations.py knows"
    for name, (path, methods) in sorted(classes.items()):
        for lane, files in LANES.items():
            code = "\n".join(source.code for source in sources if files.fullmatch(source.path))
            for method, line in methods.items():
                called = re.search(rf"\b(?:(?:{RECEIVERS[name]})(?:\.|->)|{name}::){method}\s*\(", code)
                excuses = {method, f"{lane}: {name}::{method}"} & EXEMPT.keys()
                if not called and not excuses:
                    yield path, line, f"no call of {name}::{method} by {lane}"
                used |= excuses if not called else set()
    for excuse in EXEMPT.keys() - used:
        yield "tools/dev/tidy_operations.py", 0, f"'{excuse}' needs no exemption"


def public_methods(sources: list[Source]) -> Iterator[tuple[str, tuple[str, dict[str, int]]]]:
    """Of each class its header, and the names of what can be called, each with its line."""
    for source in sources:
        if not source.path.startswith(HEADERS):
            continue
        for found in re.finditer(r"^class OJS_SHM_API (\w+) \{\n public:\n(.*?)^(?: private:|\};)", source.code, re.M | re.S):
            if found[1] in RECEIVERS:
                yield found[1], (source.path, dict(names_in(source, found.start(2), found[2])))


def names_in(source: Source, start: int, text: str) -> Iterator[tuple[str, int]]:
    """The first name before a bracket in each declaration; constructors and operators have none in small letters."""
    bodies = re.compile(r"\{[^{}]*\}")
    text = bodies.sub(lambda body: ";" + body[0].replace("\n", " ")[1:].translate({i: " " for i in range(33, 127)}), text)
    for declaration in re.finditer(r"[^;]+", text):
        name = re.search(r"(?<![\w:~])([a-z]\w*)\s*\(", declaration[0])
        if name and not name[1].startswith("operator"):
            yield name[1], source.line_of(start + declaration.start() + name.start())
