# SPDX-License-Identifier: Apache-2.0
"""Runs what the documents show, and compares what they list with what the programs say of themselves."""

import contextlib
import inspect
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from typing import Callable, Iterator

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ["OJS_SHM_BUILD"]).resolve()
PYTHON_PACKAGE = ROOT / "worker_api/python"
sys.path[:0] = [str(PYTHON_PACKAGE), str(ROOT / "tests/contract/http")]
from description import Description  # noqa: E402
SECONDS = 120  # for one program, however slow the machine is

# These every command has; the page says so once.
OF_ALL = {"--name", "--dir", "--json", "--help", "--quiet", "--attach-timeout", "--version"}


def page(name: str) -> str:
    return (ROOT / name).read_text()


def blocks(name: str, language: str) -> list[str]:
    found = re.findall(rf"^```{language}\n(.*?)^```$", page(name), re.M | re.S)
    assert found, f"{name} has no block of {language}"
    return found


@contextlib.contextmanager
def folder() -> Iterator[pathlib.Path]:
    """A folder that looks like the project's to a shell block: build/, headers and package are where it expects them."""
    with tempfile.TemporaryDirectory(prefix="ojs-shm-pages-") as name:
        path = pathlib.Path(name)
        (path / "segments").mkdir()
        (path / "build").symlink_to(BUILD)
        (path / "worker_api").symlink_to(ROOT / "worker_api")
        yield path


def environment(path: pathlib.Path, **more: str) -> dict[str, str]:
    # The manual chooses no directory: what it runs must not meet the segments of this machine.
    return {**os.environ, "OJS_SHM_DIR": str(path / "segments"), **more}


def shell(path: pathlib.Path, script: str, **more: str) -> str:
    """Runs it as one paste; what it started in the background ends with it. `./dev build` has been done already."""
    script = re.sub(r"^\./dev build\b.*$", "", script, flags=re.M)
    # Each line may fail where a stranger would see it fail.
    whole = "set -eu -o pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT\n" + script
    done = subprocess.run(["bash", "-c", whole], cwd=path, env=environment(path, **more), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS)
    assert done.returncode == 0, f"status {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


@contextlib.contextmanager
def broker(path: pathlib.Path, name: str) -> Iterator[None]:
    process = subprocess.Popen([BUILD / "bin/ojs-shm-broker", "--name", name, "--remove", "--slots", "4096"],
                               env=environment(path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout.readline().startswith("READY")
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)
        process.stdout.close()


def compiled(path: pathlib.Path, source: str, compiler: list[str], ending: str) -> str:
    """Compiles with warnings as errors and runs it beside a broker; what it printed."""
    (path / f"page.{ending}").write_text(source)
    built = subprocess.run([*compiler, "-Wall", "-Wextra", "-Werror", f"page.{ending}", "-I", "worker_api/include", "-L",
                            "build/lib", f"-Wl,-rpath,{BUILD}/lib", "-lojs_shm", "-o", "page"], cwd=path, text=True,
                           capture_output=True, timeout=SECONDS)
    assert built.returncode == 0, built.stderr
    with broker(path, "page"):
        ran = subprocess.run(["./page"], cwd=path, env=environment(path, OJS_SHM_NAME="page"), text=True,
                             capture_output=True, timeout=SECONDS)
    assert ran.returncode == 0, f"status {ran.returncode}\n{ran.stdout}{ran.stderr}"
    return ran.stdout


def readme_runs_from_top_to_bottom() -> None:
    """What a stranger does: each shell block pasted, each program saved under the name that stands above it."""
    with folder() as path:
        script = []
        for language, text in re.findall(r"^```(sh|cpp|c|python)\n(.*?)^```$", page("README.md"), re.M | re.S):
            ending = {"cpp": "cpp", "c": "c", "python": "py"}.get(language)
            if ending:
                assert f"`mail.{ending}`" in page("README.md")
                (path / f"mail.{ending}").write_text(text)
            else:
                script.append(text)
        out = shell(path, "\n".join(script))
        for wanted in ('"to":"a@b.c"', '{"sent":true}', "2 jobs wait"):  # that of C and that of Python
            assert wanted in out, f"{wanted} is not in\n{out}"


def readme_cpp_is_a_program() -> None:
    with folder() as path:
        assert '{"sent":true}' in compiled(path, blocks("README.md", "cpp")[0], ["c++", "-std=c++20"], "cpp")


def readme_c_is_a_program() -> None:
    with folder() as path:
        assert re.match(r"[0-9a-f-]{36}\n", compiled(path, blocks("README.md", "c")[0], ["cc", "-std=c11"], "c"))


def readme_python_is_a_program() -> None:
    with folder() as path, broker(path, "page"):
        more = {"OJS_SHM_NAME": "page", "PYTHONPATH": str(PYTHON_PACKAGE), "OJS_SHM_LIBRARY": f"{BUILD}/lib/libojs_shm.so"}
        ran = subprocess.run([sys.executable, "-c", blocks("README.md", "python")[0]], env=environment(path, **more),
                             text=True, capture_output=True, timeout=SECONDS)
        assert ran.returncode == 0 and "1 jobs wait" in ran.stdout, ran.stdout + ran.stderr


def tutorial_runs_from_top_to_bottom() -> None:
    """Each program is saved as the line above it says, each shell block pasted."""
    with folder() as path:
        for ending, language in (("cpp", "cpp"), ("py", "python")):
            (program,) = blocks("docs/tutorial.md", language)
            assert f"`shout.{ending}`" in page("docs/tutorial.md")
            (path / f"shout.{ending}").write_text(program)
        out = shell(path, "\n".join(blocks("docs/tutorial.md", "sh")))
        for wanted in ('{"greeted":[{"name":"Ada"}]}', "no network", "is kept", "HELLO FROM C++", "HELLO FROM PYTHON"):
            assert wanted in out, f"{wanted} is not in\n{out}"
        left = [file.name for file in (path / "segments").iterdir()]
        assert left == [], f"left behind: {left}"


def gateway_page_runs_and_shows_each_endpoint() -> None:
    """On free ports; each line of curl must succeed, and each route must have one. What is sent and what comes is as the
    gateway's description says."""
    with socket.socket() as plain, socket.socket() as secret:
        for probe in (plain, secret):
            probe.bind(("127.0.0.1", 0))
        ports = {":8080": plain.getsockname()[1], ":8443": secret.getsockname()[1]}
    lines = "\n".join(blocks("docs/gateway.md", "sh"))
    script = re.sub("|".join(ports), lambda port: f":{ports[port[0]]}", lines)
    with folder() as path:
        (path / "curl").symlink_to(ROOT / "tests/documents/pages/noting_curl.py")
        shell(path, f"export PATH={path}:{BUILD}/bin:$PATH\n" + script, REAL_CURL=shutil.which("curl"), NOTED=str(path / "noted"))
        noted = [json.loads(line) for line in (path / "noted").read_text().splitlines()]
    description = Description(json.loads(next(n["received"] for n in noted if n["target"].endswith("/openapi.json"))))
    problems, shown = [], set()
    for note in noted:
        found = description.operation(note["method"], note["target"])
        shown.add(found and (note["method"].lower(), found[0]))
        if note["status"] >= 400 and not note["received"]:  # curl -f shows no body then
            continue
        problems += description.problems(note["method"], note["target"], note["sent"], note["status"],
                                         note["media_type"], note["received"])
    assert not problems, "not as described:\n" + "\n".join(problems)
    missing = [f"{method.upper()} {path}" for path, methods in description.paths.items() for method in methods
               if (method, path) not in shown]
    assert not missing, "no line of curl for " + ", ".join(missing)


def each_program_of_the_cpp_page_runs() -> None:
    programs = blocks("docs/cpp_api.md", "cpp")
    for number, source in enumerate(programs, 1):
        assert "int main()" in source, f"program {number} is not complete"
        with folder() as path:
            compiled(path, source, ["c++", "-std=c++20", "-pthread"], "cpp")


def help_of(*words: str) -> str:
    done = subprocess.run([BUILD / "bin" / words[0], *words[1:], "--help"], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, f"{words}: status {done.returncode}"
    return done.stdout


def flags_in(text: str) -> set[str]:
    return {flag for line in re.findall(r"^ +((?:-\w,)?--[a-z].*)$", text, re.M)
            for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line.split("  ")[0])} - OF_ALL


def subcommands(text: str) -> list[str]:
    listed = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M)
    return re.findall(r"^  ([a-z][a-z-]*)", listed[1], re.M) if listed else []


def operations_lists_each_flag_of_each_command() -> None:
    table = page("docs/operations.md").split("### Flags")[1].split("### Output")[0]
    listed = {name: set(re.findall(r"--[a-z][a-z-]*", flags))
              for name, flags in re.findall(r"^\| `([a-z -]+)` \| (.*) \|$", table, re.M)}
    there: dict[str, set[str]] = {}
    for command in subcommands(help_of("ojs-shm")):
        text = help_of("ojs-shm", command)
        there[command] = flags_in(text)
        for inner in subcommands(text):
            there[f"{command} {inner}"] = flags_in(help_of("ojs-shm", command, inner))
    there = {name: flags for name, flags in there.items() if flags}
    wrong = [f"{name}: lacks {sorted(there.get(name, set()) - listed.get(name, set()))}, "
             f"too many {sorted(listed.get(name, set()) - there.get(name, set()))}"
             for name in sorted(there.keys() | listed.keys()) if there.get(name) != listed.get(name)]
    assert not wrong, "\n".join(wrong)


def operations_names_each_command() -> None:
    """In the first column of the table: `queue list`, `get` stands for `queue list` and `queue get`."""
    table = page("docs/operations.md").split("## The command line")[1].split("###")[0]
    named: set[str] = set()
    for row in re.findall(r"^\| (`.*?) \|", table, re.M):
        group = ""
        for words in re.findall(r"`([a-z -]+)", row):
            plain = [word for word in words.split() if not word.startswith("-")]
            if len(plain) > 1:
                group = plain[0]
            if plain:
                named.add(f"{group} {plain[-1]}" if group else plain[0])
    there = []
    for command in subcommands(help_of("ojs-shm")):
        inner = subcommands(help_of("ojs-shm", command))
        there += [f"{command} {each}" for each in inner] or [command]
    missing = [name for name in there if name not in named]
    assert not missing, f"not in the table of commands: {missing}"


def each_flag_of_the_other_programs_is_in_a_page() -> None:
    pages = {"ojs-shm-broker": "docs/operations.md", "ojs-shm-exporter": "docs/monitoring.md", "ojs-shm-top": "docs/top.md",
             "ojs-shm-gateway": "docs/gateway.md"}
    for program in sorted(path.name for path in (BUILD / "bin").glob("ojs-shm-*") if os.access(path, os.X_OK)):
        assert program in pages, f"no page for {program}"
        where = page(pages[program]) if (ROOT / pages[program]).exists() else page("docs/operations.md")
        missing = [flag for flag in sorted(flags_in(help_of(program))) if not re.search(rf"`{flag}\b", where)]
        assert not missing, f"{program}: the page lacks {missing}"


def each_flag_that_a_page_gives_to_a_program_exists() -> None:
    """In the tables of the other programs' flags, and wherever a page shows their command lines."""
    programs = sorted(path.name for path in (BUILD / "bin").glob("ojs-shm-*") if os.access(path, os.X_OK))
    has = {program: set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_of(program))) for program in programs}
    tables = {"docs/operations.md": "ojs-shm-broker", "docs/monitoring.md": "ojs-shm-exporter", "docs/top.md": "ojs-shm-top"}
    pages = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md"))),
             *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "worker_api").rglob("*.md")))]
    used = set()
    for name in pages:
        for row in re.findall(r"^\| (`--[^|]*) \|", page(name), re.M):
            used |= {(name, tables[name], flag) for flag in re.findall(r"`(--[a-z][a-z-]*)", row) if name in tables}
        for line in re.findall(r"\bojs-shm-\w[^\n`|;&#]*", page(name)):
            program = line.split()[0]
            used |= {(name, program, flag) for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line) if program in has}
    assert {program for _, program, _ in used} == set(programs), "the pages show no flag of a program"
    wrong = [f"{name}: {program} has no {flag}" for name, program, flag in sorted(used) if flag not in has[program]]
    assert not wrong, "\n".join(wrong)


def python_page_lists_each_option() -> None:
    import ojs_shm
    rows = dict(re.findall(r"^\| `([\w.]+)` \| (.*) \|$", page("worker_api/python/README.md"), re.M))
    calls = {"connect": ojs_shm.connect, "submit": ojs_shm.NewJob, "queue.worker": ojs_shm.Worker,
             "OnFull": ojs_shm.OnFull, "Retry": ojs_shm.Retry, "queue.configure": ojs_shm.Queue.configure,
             "Failure": ojs_shm.Failure, "job.nack": ojs_shm.Job.nack, "AsyncQueue.worker": ojs_shm.AsyncWorker,
             "worker.fetch": ojs_shm.Worker.fetch, "worker.run": ojs_shm.Worker.run}
    assert inspect.signature(ojs_shm.AsyncWorker.run).parameters.keys() == inspect.signature(ojs_shm.Worker.run).parameters.keys()
    for name, call in calls.items():
        has = set(inspect.signature(call).parameters) - {"self"}
        if name == "submit":
            has |= {"block_timeout"}
        if name in ("queue.worker", "AsyncQueue.worker"):
            has -= {"queue"}
        listed = set(re.findall(r"`(\w+)`", rows.get(name, "")))
        assert listed == has, f"{name}: lacks {sorted(has - listed)}, too many {sorted(listed - has)}"


TESTS: list[Callable[[], None]] = [
    readme_runs_from_top_to_bottom, readme_cpp_is_a_program, readme_c_is_a_program, readme_python_is_a_program,
    tutorial_runs_from_top_to_bottom, gateway_page_runs_and_shows_each_endpoint, each_program_of_the_cpp_page_runs,
    operations_lists_each_flag_of_each_command, operations_names_each_command, each_flag_of_the_other_programs_is_in_a_page,
    each_flag_that_a_page_gives_to_a_program_exists, python_page_lists_each_option]


def main() -> int:
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    passed = failed = 0
    for test in TESTS:
        if part not in test.__name__:
            continue
        try:
            test()
        except Exception as wrong:  # a test's own failure, or of what it ran
            failed += 1
            print("  " + str(wrong).strip().replace("\n", "\n  "))
            print(f"not ok {test.__name__}", flush=True)
        else:
            passed += 1
            print(f"ok {test.__name__}", flush=True)
    print(f"PAGES: {passed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
