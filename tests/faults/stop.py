"""Stops and kills ranks of jobs that are under way, all jobs at once, and watches how they end.

    stop.py TPC-RUN FOLDER TRAIN-FOLDER ROWS PROMPT TOKENIZER MPIRUN...      the folders are of 3 ranks and of 1; ROWS, PROMPT: .npy; TOKENIZER "": no server

A rank that is stopped ends the job with a sentence that names it, one that resumes does not, and one that is killed ends the job; nothing
is left of it. A rank that only is late, as where rank 0 reads what a user types, ends nothing. Linux only."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from kill import kill, ranks

LIMIT = 40  # seconds, on a busy machine
STOPPED = "does not run: this rank has waited"


def rank_of(pid):
    with open("/proc/%d/environ" % pid, "rb") as f:
        for item in f.read().split(b"\0"):
            name, _, value = item.partition(b"=")
            if name in (b"OMPI_COMM_WORLD_RANK", b"PMI_RANK"):
                return int(value)
    return -1


def read(file):
    return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0).decode(errors="replace")


class Job:
    def __init__(self, mark, command, wanted, environment):
        self.mark = ("TPC_KILL=" + mark).encode()
        self.said, self.out = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        self.wanted = wanted
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=self.out, stderr=self.said, env=dict(os.environ, TPC_KILL=mark, **environment))

    def text(self):
        return read(self.said)

    def said_by_ranks(self):
        return self.text().replace(" on " + os.uname().nodename, "")

    def until(self, what):
        end = time.monotonic() + LIMIT
        while time.monotonic() < end and self.process.poll() is None and what not in self.text():
            time.sleep(0.05)
        return what in self.text()

    def rank(self, number):
        return [pid for pid in ranks(self.mark) if rank_of(pid) == number][0]

    def end(self):
        """(status, ranks left)"""
        try:
            status = self.process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            status = None
        left, end = ranks(self.mark), time.monotonic() + 10
        while left and time.monotonic() < end:
            time.sleep(0.05)
            left = ranks(self.mark)
        for pid in left:
            kill(pid, signal.SIGKILL)
        self.process.kill()
        return status, left


def stop(job, rank):
    time.sleep(1)  # a rank is watched when it has joined
    kill(job.rank(rank), signal.SIGSTOP)
    status, left = job.end()
    return status not in (None, 0) and not left and "rank %d %s" % (rank, STOPPED) in job.said_by_ranks() and "and the timeout is 2 s" in job.text()


def pause(job, rank):
    pid = job.rank(rank)
    time.sleep(1)
    kill(pid, signal.SIGSTOP)
    told = job.until(STOPPED)
    kill(pid, signal.SIGCONT)
    time.sleep(4)
    runs = job.process.poll() is None
    kill(pid, signal.SIGKILL)
    status, left = job.end()
    return told and runs and status not in (None, 0) and not left


def transport_aborted(text):
    """UCX, which MPICH sends by, aborts a rank that copies from the memory of a process when that one is killed: before tpc-run can say anything."""
    return "ended by signal 6" in text and "libucp" in text


def launcher_was_first(job):
    """MPICH's launcher kills all ranks as soon as one is killed, and says so itself: the others may not have come to say anything."""
    return "Killed (signal 9)" in read(job.out)


def die(job, rank):
    time.sleep(0.5)
    kill(job.rank(rank), signal.SIGKILL)
    status, left = job.end()
    named = job.said_by_ranks().count("rank %d ended without a word: it was killed" % rank)
    return status not in (None, 0) and not left and (named == 1 or (named == 0 and (transport_aborted(job.text()) or launcher_was_first(job))))


def crash(job, rank):
    time.sleep(0.5)
    kill(job.rank(rank), signal.SIGFPE)
    status, left = job.end()
    told = "tpc-run: %sended by signal 8 " % ("rank %d: " % rank if rank else "") in job.said_by_ranks() or "Sanitizer" in job.text()
    return status not in (None, 0) and not left and told and "without a word" not in job.text()


def late(job, rank):
    time.sleep(4)
    job.process.stdin.write(b"so\n")
    job.process.stdin.close()
    status, left = job.end()
    return status == 0 and not left and STOPPED not in job.text()


def idle(job, rank):
    time.sleep(4)
    runs = job.process.poll() is None and STOPPED not in job.text()
    return stop(job, rank) and runs


def main():
    run, folder, trained, rows, prompt, tokenizer = sys.argv[1:7]
    launcher = sys.argv[7:] + ["-n", "3", run]
    steps = [folder, "--random", "--dim", "batch_size=1", "--dim", "sequence_length=16", "--dim", "past_sequence_length=8", "--repeat", "100000000"]
    decode = [folder, "--generate", "100000", "--input", "input_ids=" + prompt]
    train = [trained, "--train", "--data", rows, "--steps", "1000000", "--batch", "7", "--groups", "3"]
    messages = {"TPC_MESSAGES": "1"}
    cases = [  # name, what is done to which rank, options, what is waited for before, environment
        ("rank 0 stops", stop, 0, steps + ["--timeout", "2"], "packed", {}),
        ("rank 2 stops while it decodes", stop, 2, decode + ["--timeout", "2"], "packed", {}),
        ("rank 1 stops between messages", stop, 1, steps + ["--timeout", "2"], "packed", messages),
        ("rank 1 stops for a while", pause, 1, steps + ["--timeout", "6"], "packed", {}),
        ("rank 2 of a training is killed between messages", die, 2, train, "operators", messages),
        ("rank 1 of a training stops between messages", stop, 1, train + ["--timeout", "2"], "operators", messages),
        ("rank 2 is killed while it decodes", die, 2, decode, "packed", {}),
        ("rank 0 is killed", die, 0, steps, "packed", {}),
        ("rank 1 crashes", crash, 1, steps, "packed", {}),
    ]
    if tokenizer:
        text = ["--tokenizer", tokenizer, "--timeout", "2"]
        serve = [folder, "--serve", "--port", "0"] + text
        cases += [
            ("rank 0 waits for its user", late, 0, [folder, "--generate", "3", "--prompt-file", "-"] + text, "", {}),
            ("rank 0 of an idle server stops", idle, 0, serve, "serving", {}),
            ("rank 1 of a server is killed", die, 1, serve, "serving", {}),
        ]
    bad = []

    def one(number, name, act, rank, options, before, environment):
        job = Job("stop-%d-%d." % (os.getpid(), number), launcher + options + ["--threads", "1", "-v"], before, environment)
        try:
            good = job.until(before) and act(job, rank)
        except (IndexError, OSError):
            good = False  # it ended too early
        if not good:
            bad.append(name)
            print("bad: %s: status %s: %s" % (name, job.process.poll(), job.text()[-1000:].replace("\n", " | ")))
            job.process.kill()

    threads = [threading.Thread(target=one, args=(number,) + case) for number, case in enumerate(cases)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    print("%d of %d jobs ended as they should" % (len(cases) - len(bad), len(cases)))
    sys.exit(len(bad) > 0)


main()
