"""The faults of many.py for a training run: many_train.py LOG WANTED COMMAND...

COMMAND is tpc-run with --train --restart and --log LOG, a run of as many steps as the log WANTED of an undisturbed one has. In the end the losses are the same."""
import os
import random
import re
import subprocess
import sys
import tempfile
import time

import many

restart = many.restart


class Job:
    """As many.py's server; what it said is in a file."""

    def __init__(self, command, log):
        self.said, self.path = tempfile.NamedTemporaryFile("w+"), log
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.said, env=dict(os.environ, TPC_RESTART=restart.MARK[12:]))

    def log(self):
        with open(self.said.name, errors="replace") as f:
            return f.read()

    def step(self):
        try:
            with open(self.path) as f:
                lines = f.read().split("\n")
        except FileNotFoundError:
            return 0
        return int(lines[-2].split(",")[0]) if len(lines) > 2 else 0

    def ranks(self):
        return [pid for pid, (_, name) in restart.marked().items() if name.endswith(b"tpc-run") and pid != self.process.pid]

    def wait_for(self, true, seconds, what):
        end = time.monotonic() + seconds
        while not true():
            if time.monotonic() > end or self.process.poll() is not None:
                restart.stop(f"no {what} within {seconds} s: {self.log()}")
            time.sleep(0.01)


def one(job, kind, n, files):
    first, more = job.step(), random.randint(5, 60)
    job.wait_for(lambda: job.step() >= first + more, 90, f"{more} steps behind step {first}")
    before = set(job.ranks())
    files |= restart.shared(before)
    said, at = job.log(), time.monotonic()
    undo, what = many.strike(job, kind)
    job.wait_for(lambda: re.search(r"ended|does not run|no heartbeat|restart \d+\n", job.log()[len(said):]), 30, f"word of {what}")
    seen = time.monotonic() - at
    job.wait_for(lambda: job.log().count(": restart ") == n, 60, f"restart {n} ({what})")
    job.wait_for(lambda: set(job.ranks()) - before and os.path.exists(job.path), 60, f"ranks behind {what}")
    job.wait_for(lambda: os.stat(job.path).st_ino != job.inode and job.step() > 0, 60, f"log behind {what}")
    job.inode, size = os.stat(job.path).st_ino, os.stat(job.path).st_size
    job.wait_for(lambda: os.stat(job.path).st_size > size, 60, f"step behind {what}")
    back = time.monotonic() - at
    undo()
    orphans = many.await_gone(before)
    print(f"# {n}: {what}, behind step {first + more}: seen after {seen:.2f} s, the next step after {back:.2f} s, {len(orphans)} orphans", flush=True)
    return seen, back, back, len(orphans)


def losses(path):
    with open(path) as f:
        return [line.split(",")[:5] for line in f.read().split("\n")]


def main():
    log, wanted, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    faults, times = many.draw_faults()
    present, files = set(os.listdir("/dev/shm")), set()
    job = Job(command, log)
    job.wait_for(lambda: job.step() > 0, 60, "step")
    job.inode = os.stat(log).st_ino
    for kind in many.all_faults(faults, lambda: len(job.ranks())):
        times[kind].append(one(job, kind, sum(map(len, times.values())) + 1, files))
    status = job.process.wait(300)
    left, own = many.await_gone(set(restart.marked())), many.files_left(present)
    same = losses(log) == losses(wanted)
    print(many.table(times, "next step"))
    print(f"the losses of {len(losses(log)) - 2} steps are {'' if same else 'NOT '}those of an undisturbed run; {len(left)} processes and {len(own)} files of /dev/shm left")
    if status:
        print(f"bad: status {status}: {job.log()[-2000:]}")
    sys.exit(status != 0 or not same or bool(left or own) or many.too_late(times))


main()
