#!/usr/bin/env -S python3 -SE
# SPDX-License-Identifier: Apache-2.0
"""Stands in for curl: does what it does, and adds a line to the file $NOTED of what was sent and what came."""

import json
import os
import subprocess
import sys

arguments = sys.argv[1:]
noted = os.environ["NOTED"]
headers = f"{noted}.{os.getpid()}"


def after(*flags):
    return next((arguments[i + 1] for i, each in enumerate(arguments) if each in flags), None)


done = subprocess.run([os.environ["REAL_CURL"], *arguments, "--dump-header", headers], stdout=subprocess.PIPE)
with open(headers) as file:
    head = file.read().splitlines()
os.unlink(headers)
target = next((each.split("/", 3)[-1] for each in arguments if each.startswith(("http://", "https://"))), None)
sent = after("--json", "-d")
if target is not None and head and after("-o") is None:
    note = {"method": after("-X") or ("POST" if sent else "GET"), "target": "/" + target, "sent": sent,
            "status": int(head[0].split()[1]), "received": done.stdout.decode(),
            "media_type": next((line.partition(": ")[2] for line in head if line.lower().startswith("content-type:")), "")}
    with open(noted, "a") as file:
        file.write(json.dumps(note) + "\n")
sys.stdout.buffer.write(done.stdout)
sys.exit(done.returncode)
