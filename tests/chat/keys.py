#!/usr/bin/env python3
"""Types on a terminal: keys.py COMMAND... is a chat whose answers, "a", a bell and "b", never end. ^C stops one, and the conversation continues; ^D ends it."""
import os
import pty
import re
import select
import sys
import time

child, terminal = pty.fork()
if child == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = ""


def wait_for(pattern, seconds=60):
    """Forgets what was printed up to it."""
    global seen
    end = time.monotonic() + seconds
    while not (found := re.search(pattern, seen)):
        if time.monotonic() > end or not select.select([terminal], [], [], 1)[0] and os.waitpid(child, os.WNOHANG)[0]:
            sys.exit(f"no {pattern!r} in {seen[-300:]!r}")
        if select.select([terminal], [], [], 0)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    seen = seen[found.end():]


wait_for(">>> ")
for message in (b"hi\n", b"again\n"):
    os.write(terminal, message)
    wait_for("a\ufffdba\ufffdb")
    os.write(terminal, b"\x03")
    wait_for(">>> ", 10)
os.write(terminal, b"x" * 5000 + b"\n")
wait_for("it may be cut")
wait_for(">>> ", 10)
os.write(terminal, b"unfinished\x03")
wait_for("/exit or .D ends the program")
wait_for(">>> ", 10)
os.write(terminal, b"\x04")
end = time.monotonic() + 20
while True:
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        sys.exit(os.waitstatus_to_exitcode(status))
    if time.monotonic() > end:
        sys.exit("it did not end")
    if select.select([terminal], [], [], 0.1)[0]:
        try:
            os.read(terminal, 65536)
        except OSError:
            pass
