#!/usr/bin/env python3
"""Health of a server one of whose processes is stopped while it is idle: health.py PORT PID"""
import json
import os
import signal
import sys
import time

from calls import ask, call, expect, until

pid = int(sys.argv[2])


def health():
    status, text = call("GET", "/health", timeout=5)
    return status, json.loads(text)


ask(prompt="Hello", max_tokens=2)
time.sleep(1)
for _ in range(2):
    expect("health", health(), (200, {"status": "ok"}))
    os.kill(pid, signal.SIGSTOP)
    until("the stopped rank shows", lambda: health()[0] == 503, 10)
    expect("health", health(), (503, {"status": "error", "message": "rank 1 does not run"}))
    os.kill(pid, signal.SIGCONT)
    until("it runs again", lambda: health()[0] == 200, 10)
    ask(prompt="Hello", max_tokens=2)
with open(f"/proc/{pid}/stat") as f:
    before = f.read().rsplit(")", 1)[1].split()
time.sleep(1)
with open(f"/proc/{pid}/stat") as f:
    after = f.read().rsplit(")", 1)[1].split()
busy = (int(after[11]) + int(after[12]) - int(before[11]) - int(before[12])) / os.sysconf("SC_CLK_TCK")
if busy > 0.5:
    sys.exit(f"an idle rank computes for {busy} s in a second")
