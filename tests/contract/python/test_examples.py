# SPDX-License-Identifier: Apache-2.0
"""The Python examples of the proposal "Task Priorities" (qo), as it prints them: only the import and the argument of
connect are changed, here, by the first two lines of run()."""

import ast
import asyncio
import contextlib
import inspect
import io
import unittest

from segments import BOUND, ROOT, OnSegment

SUBMITTING = '''
from qo import connect, Priority

queue = await connect(bucket="my-queue")

# High priority (critical alert)
task = await queue.submit(
    "send_alert",
    {"message": "Server down!"},
    priority=255
)

# Normal priority (default)
task = await queue.submit("send_email", {"to": "user@example.com"})

# Low priority (background job)
task = await queue.submit(
    "cleanup_old_files",
    {"days_old": 30},
    priority=50
)

# Named constants for clarity
task = await queue.submit("urgent_task", data, priority=Priority.URGENT)
task = await queue.submit("background_task", data, priority=Priority.LOW)
'''

CONSTANTS = '''
class Priority:
    CRITICAL = 255
    URGENT = 200
    HIGH = 175
    NORMAL = 128  # default
    LOW = 50
    BACKGROUND = 10
    BULK = 0
'''

REGISTERING = '''
# In worker registration
@worker.task("cleanup_old_files", default_priority=Priority.LOW)
async def handle_cleanup(input):
    ...

@worker.task("send_alert", default_priority=Priority.CRITICAL)
async def handle_alert(input):
    ...
'''


class Examples(OnSegment, unittest.IsolatedAsyncioTestCase):
    async def run_example(self, text, **names):
        text = text.replace("from qo import", "from ojs_shm import")
        text = text.replace('bucket="my-queue"', "**where")
        code = compile(text, "example", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        names["where"] = self.broker.where
        outcome = eval(code, names)
        if inspect.isawaitable(outcome):
            await outcome
        if "queue" in names:
            self.addAsyncCleanup(names["queue"].close)
        return names

    async def test_QO_05_submitting(self):
        names = await self.run_example(SUBMITTING, data={"n": 1})
        waiting = [job for job in await names["queue"].jobs(state="available")]
        self.assertEqual([(job.type, job.priority, job.input) for job in waiting], [
            ("send_alert", 255, {"message": "Server down!"}),
            ("urgent_task", 200, {"n": 1}),
            ("send_email", 128, {"to": "user@example.com"}),
            ("cleanup_old_files", 50, {"days_old": 30}),
            ("background_task", 50, {"n": 1}),
        ])
        self.assertEqual((await names["task"].info()).priority, 50)
        for job in waiting:
            await names["queue"].cancel(job.id)

    async def test_QO_03_the_named_levels(self):
        import ojs_shm
        printed = (await self.run_example(CONSTANTS))["Priority"]
        named = {name: value for name, value in vars(printed).items() if name.isupper()}
        self.assertEqual(len(named), 7)
        self.assertEqual({member.name: member.value for member in ojs_shm.Priority}, named)

    async def test_QO_16_registering_with_a_default_priority(self):
        import ojs_shm
        queue = await ojs_shm.connect(**self.broker.where)
        self.addAsyncCleanup(queue.close)
        worker = queue.worker()
        await self.run_example(REGISTERING, worker=worker, Priority=ojs_shm.Priority)

        cleanup = await queue.submit("cleanup_old_files", {"days_old": 30})
        alert = await queue.submit("send_alert", {"message": "Server down!"})
        quiet = await queue.submit("send_alert", {"message": "All is well"}, priority=ojs_shm.Priority.BACKGROUND)
        self.assertEqual([(await task.info()).priority for task in (cleanup, alert, quiet)], [50, 255, 10])

        async with worker:
            outcomes = await asyncio.gather(*(task.wait(BOUND) for task in (cleanup, alert, quiet)))
        self.assertEqual([job.state for job in outcomes], ["completed"] * 3)
        self.assertEqual(await queue.default_priority("send_alert"), 255)
        self.assertIsNone(await queue.default_priority("send_email"))


class Readme(OnSegment, unittest.TestCase):
    """The asyncio example of the package's README, which the reader copies first, on the
    segment of a broker that was told nothing."""

    convention = "ojs"

    def test_the_asyncio_example_runs_as_printed(self):
        text = (ROOT / "worker_api" / "python" / "README.md").read_text()
        example = text.split("```python\n")[1].split("```")[0]
        self.assertIn('connect("my-segment")', example)
        example = example.replace('"my-segment"', f"{self.broker.name!r}, dir={self.broker.dir!r}")
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example, "README.md", "exec"), {"__name__": "__main__"})
        self.assertEqual(printed.getvalue().strip(), "{'sent_to': 'user@example.com'}")


if __name__ == "__main__":
    unittest.main()
