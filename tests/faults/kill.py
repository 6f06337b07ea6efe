"""Kills one rank of a job at a random moment, again and again, and watches how the job ends.

    [LIMIT=SECONDS] [SIGNALS="NAME .."] kill.py COUNT SEED COMMAND...      COMMAND: mpirun -n N tpc-run ..., or tpc-run ... --local N (there the whole process is killed)

A job ends well if its launcher ends within LIMIT seconds (20, for a busy machine) with a status that is not 0, no rank is left, and something was said (where a signal ended the
command itself, the shell that started it says so). A third of the kills come as soon as a rank exists, before it has joined the others. Open MPI's
mpirun may then wait for a lock of its own for ever (PMIx_server_finalize), whatever it started: a launcher that is all that is left is ended, and
another kill takes the place of that one; more than a third of COUNT, and more than one, are bad. Prints one line per bad end and a summary; exit
status 1 if any was bad. Linux only: ranks are found in /proc."""
import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT = float(os.environ.get("LIMIT", "20"))
SIGNALS = [getattr(signal, name) for name in os.environ.get("SIGNALS", "SIGKILL SIGTERM SIGSEGV").split()]


def ranks(mark):
    """Process ids of the job's tpc-run processes."""
    found = []
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/cmdline", "rb") as f:
                program = f.read().split(b"\0")[0]
            with open(folder + "/environ", "rb") as f:
                environment = f.read()
        except OSError:
            continue
        if program.endswith(b"tpc-run") and mark in environment:
            found.append(int(folder[6:]))
    return sorted(found)


def wait_for_ranks(mark):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = ranks(mark)
        if found:
            return found
    return []


def kill(pid, number):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def one(command, mark, delay, number):
    """(seconds until the end or None, status, ranks left, what was said)"""
    with tempfile.TemporaryFile() as said:
        job = subprocess.Popen(command, stdout=said, stderr=said, env=dict(os.environ, TPC_KILL=mark))
        time.sleep(delay)
        found = wait_for_ranks(b"TPC_KILL=" + mark.encode())
        start = time.monotonic()
        if found:
            kill(random.choice(found), number)
        try:
            status = job.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = None
        took = time.monotonic() - start
        left = ranks(b"TPC_KILL=" + mark.encode())
        while left and time.monotonic() < start + LIMIT:
            left = ranks(b"TPC_KILL=" + mark.encode())
        for pid in left:
            kill(pid, signal.SIGKILL)
        job.kill()
        said.seek(0)
        return took if found else None, status, left, said.read().decode(errors="replace").strip()


def main():
    count, seed, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    random.seed(seed)
    launched, done, stuck, bad, worst = not command[0].endswith("tpc-run"), 0, 0, 0, 0.0
    most = max(1, count // 3)
    while done < count and stuck <= most:
        delay = random.choice([0, random.uniform(0, 0.3), random.uniform(0.3, 1.0)])
        number = random.choice(SIGNALS)
        took, status, left, said = one(command, "%d-%d-%d." % (os.getpid(), done, stuck), delay, number)
        if launched and took is not None and status is None and not left:
            stuck += 1
            continue
        done += 1
        worst = max(worst, took or 0)
        silent = not said and (status is None or status >= 0)
        if took is None or status in (None, 0) or left or silent:
            bad += 1
            print("bad end %d: %s after %.2f s, %s s, status %s, %d ranks left: %s" % (done, number.name, delay, took, status, len(left), said[:200].replace("\n", " | ")))
    print("%d of %d kills ended well, the slowest in %.2f s; of %d only the launcher was left" % (done - bad, count, worst, stuck))
    sys.exit(bad > 0 or stuck > most)


if __name__ == "__main__":
    main()
