# SPDX-License-Identifier: Apache-2.0
"""What the gateway and `ojs-shm up` log of a signal: which, and who sent it."""

import os
import signal
import unittest

from gateways import BOUND, Up, eventually


def log_of(up):
    with open(os.path.join(up.dir, "log")) as log:
        return log.read()


class Signals(unittest.TestCase):
    def awaits(self, up, *said):
        eventually(lambda: all(each in log_of(up) for each in said))

    def test_a_gateway_names_the_sender(self):
        with Up() as up:
            gateway, sender = up.child("ojs-shm-gateway"), f"from process {os.getpid()} ("
            os.kill(gateway, signal.SIGHUP)
            self.awaits(up, f"SIGHUP {sender}", "no certificate and no token file to read again")
            self.assertEqual(up.call("GET", "health").status, 200)
            os.kill(gateway, signal.SIGTERM)
            self.awaits(up, f"SIGTERM {sender}", "closing; what has begun is answered")
            self.assertEqual(up.process.wait(BOUND), 1)

    def test_a_second_signal_ends_up_beside_a_gateway_that_does_not_end(self):
        with Up() as up:
            os.kill(up.child("ojs-shm-gateway"), signal.SIGSTOP)
            for each in (signal.SIGTERM, signal.SIGINT):
                up.process.send_signal(each)
            self.assertEqual(up.process.wait(BOUND), 0)
            self.awaits(up, "ojs-shm up: ojs-shm-gateway is killed: a second signal came")

    def test_up_names_the_sender_of_what_it_hands_on(self):
        with Up() as up:
            sender = f"from process {os.getpid()} ("
            up.process.send_signal(signal.SIGHUP)
            self.awaits(up, f"ojs-shm up: SIGHUP {sender}", f"SIGHUP from process {up.process.pid} (ojs-shm)")
            up.process.send_signal(signal.SIGINT)
            self.assertEqual(up.process.wait(BOUND), 0)
            self.awaits(up, f"ojs-shm up: SIGINT {sender}", f"SIGTERM from process {up.process.pid} (ojs-shm)")
