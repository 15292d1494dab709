# SPDX-License-Identifier: Apache-2.0
"""The blocking client: priorities, by number and by name, and the order that they make."""

import unittest

from segments import OnQueue

import ojs_shm
from ojs_shm import Priority


class Priorities(OnQueue):
    def test_QO_02_a_job_without_a_priority_gets_128(self):
        self.assertEqual(self.queue.submit("plain").priority, 128)

    def test_QO_05_a_priority_is_a_number_a_name_or_a_constant(self):
        submitted = [self.queue.submit("any", priority=given).priority
                     for given in (200, "urgent", "URGENT", Priority.URGENT, 0, "bulk", Priority.BULK)]
        self.assertEqual(submitted, [200] * 4 + [0] * 3)

    def test_QO_01_only_0_to_255(self):
        for wrong in (-1, 256, 2 ** 62, -2 ** 62):
            with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.submit("any", priority=wrong)
            self.assertIn("255", str(caught.exception))
        # More than the library's 64 bits, which nobody may cut down to a valid priority.
        for wrong in (2 ** 63, -2 ** 63 - 1, 2 ** 64 + 7):
            with self.subTest(wrong), self.assertRaises(ojs_shm.InvalidArgument) as caught:
                self.queue.submit("any", priority=wrong)
            self.assertEqual(str(caught.exception), f"priority {wrong} is out of range: the minimum is 0 and the "
                                                    "maximum is 255")
            self.assertEqual((caught.exception.subject, caught.exception.bound), ("priority", 255))
        for wrong in (1.5, True, [1]):
            with self.subTest(wrong), self.assertRaises(TypeError):
                self.queue.submit("any", priority=wrong)
        self.assertEqual(self.queue.jobs(queue=self.queue_name), [])

    def test_QO_05_an_unknown_name_is_refused_with_the_known_ones(self):
        with self.assertRaises(ojs_shm.OjsError) as caught:
            self.queue.submit("any", priority="pressing")
        self.assertIn("background", str(caught.exception))

    def test_QO_07_the_order_is_priority_and_then_time(self):
        for label, priority in (("a", 50), ("b", 200), ("c", 50), ("d", 255), ("e", 200)):
            self.queue.submit("step", label, priority=priority)
        with self.queue.worker() as worker:
            order = []
            while (job := worker.fetch(0)) is not None:
                order.append(job.input)
                job.ack()
        self.assertEqual(order, ["d", "b", "e", "a", "c"])

    def test_QO_09_a_priority_is_immutable(self):
        task = self.queue.submit("any", priority=50)
        with self.assertRaises(ojs_shm.WrongState):
            task.reprioritize(200)
        self.assertEqual(task.priority, 50)
        self.queue.set_immutable_priorities(False)
        try:
            self.assertEqual(task.reprioritize(200), 50)
        finally:
            self.queue.set_immutable_priorities(True)
        with self.assertRaises(ojs_shm.WrongState):
            task.reprioritize(50)

    def test_QO_16_a_default_priority_belongs_to_the_type_and_can_be_overridden(self):
        self.queue.set_default_priority("sweep", "low")
        self.assertEqual(self.queue.default_priority("sweep"), 50)
        self.assertEqual(self.queue.submit("sweep").priority, 50)
        self.assertEqual(self.queue.submit("sweep", priority=Priority.HIGH).priority, 175)
        with self.assertRaises(ojs_shm.InvalidArgument):
            self.queue.set_default_priority("sweep", 256)
        self.queue.set_default_priority("sweep", None)
        self.assertIsNone(self.queue.default_priority("sweep"))
        self.assertEqual(self.queue.submit("sweep").priority, 128)


class OjsConvention(OnQueue):
    convention = "ojs"

    def test_names_mean_the_same_in_every_convention(self):
        numbers = [self.queue.submit("any", priority=name).priority
                   for name in (Priority.CRITICAL, Priority.HIGH, Priority.NORMAL, "low", "bulk")]
        self.assertEqual(numbers, [0, 1, 2, 3, 4])
        with self.assertRaises(ojs_shm.OjsError) as caught:
            self.queue.submit("any", priority=Priority.URGENT)
        self.assertIn("critical", str(caught.exception))

    def test_a_waiting_job_can_be_reprioritised(self):
        first, second = self.queue.submit("any", 1), self.queue.submit("any", 2)
        self.assertEqual(second.reprioritize("critical"), 2)
        self.assertEqual(second.priority, 0)
        with self.queue.worker() as worker:
            taken = worker.fetch(0)
            self.assertEqual(taken.id, second.id)
            with self.assertRaises(ojs_shm.WrongState) as caught:
                second.reprioritize(3)
            self.assertEqual(caught.exception.subject, "active")
            taken.ack()
        first.cancel()


if __name__ == "__main__":
    unittest.main()
