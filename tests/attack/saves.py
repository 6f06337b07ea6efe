"""Kills trainings while they save, and lets two of them save to one file. Linux only.

    saves.py kills COUNT SEED TPC-RUN FOLDER ROWS WORK      after each kill the checkpoint is whole, and a run goes on from it
    saves.py writers SECONDS SEED TPC-RUN FOLDER ROWS WORK  jobs by twos: who reads the file at any moment finds a whole one, and a file of the user's stays

Prints one line per finding and a summary; exit status 1 if there was any."""
import json
import os
import random
import signal
import struct
import subprocess
import sys
import time


def training(run, folder, rows, save, steps, *more):
    return [run, folder, "--local", "2", "--threads", "1", "--train", "-q", "--data", rows, "--batch", "7", "--steps", str(steps), "--save", save, "--save-every", "1", *more]


def is_whole(path):
    """As long as its header says."""
    with open(path, "rb") as f:
        content = f.read()
    if len(content) < 8:
        return False
    length = struct.unpack("<Q", content[:8])[0]
    if len(content) < 8 + length:
        return False
    header = json.loads(content[8:8 + length])
    return len(content) == 8 + length + max(v["data_offsets"][1] for k, v in header.items() if k != "__metadata__")


def last_step(path):
    with open(path, "rb") as f:
        length = struct.unpack("<Q", f.read(8))[0]
        return int(json.loads(f.read(length))["__metadata__"]["step"])


def kills(count, command, work):
    save, bad, saved, on = work + "/killed.ck", [], 0, []
    for i in range(count):
        job = subprocess.Popen(command(save, 1000000, *on), stderr=subprocess.PIPE)
        time.sleep(random.uniform(0.2, 1.2))
        job.kill()
        job.communicate()
        if not os.path.exists(save):
            continue
        saved += 1
        on = ["--resume", save]
        again = subprocess.run(command(save, last_step(save) + 1, *on), stderr=subprocess.PIPE, timeout=120) if is_whole(save) else None
        if again is None or again.returncode:
            bad.append("kill %d: %s" % (i, again.stderr.decode(errors="replace") if again else "the checkpoint is cut"))
            os.remove(save)
            on = []
    left = [f for f in os.listdir(work) if f.startswith("killed.ck.")]
    if left:
        bad.append("left behind: " + ", ".join(left))
    return bad, "%d kills, %d with a checkpoint: each is whole, and a run goes on from it" % (count, saved), saved > count // 2


def writers(seconds, command, work):
    save, bad, reads, refused, said = work + "/shared.ck", [], 0, 0, set()
    precious = save + ".part"
    with open(precious, "w") as f:
        f.write("precious\n")
    start, jobs = time.monotonic(), []
    while time.monotonic() < start + seconds:
        for job in [j for j in jobs if j.poll() is not None]:
            jobs.remove(job)
            refused += 1
            said.add(job.stderr.read().decode(errors="replace").strip())
        while len(jobs) < 2:
            jobs.append(subprocess.Popen(command(save, 1000000, "--seed", str(random.randrange(9))), stderr=subprocess.PIPE))
        for _ in range(100):
            if os.path.exists(save):
                reads += 1
                if not is_whole(save):
                    bad.append("a read finds a file that is cut")
        time.sleep(0.01)
    for job in jobs:
        job.send_signal(signal.SIGKILL)
        job.wait()
    with open(precious) as f:
        if f.read() != "precious\n":
            bad.append("%s was written to" % precious)
    for text in said:
        if "\n" in text or not text.startswith("tpc-run: " + save):
            bad.append("a second job says: " + text)
    return bad, "%d reads of one checkpoint, %d jobs refused beside the one that writes it" % (reads, refused), reads > 0 and refused > 0


def main():
    what, count, seed, run, folder, rows, work = sys.argv[1:8]
    random.seed(int(seed))
    bad, summary, tried = {"kills": kills, "writers": writers}[what](int(count), lambda *o: training(run, folder, rows, *o), work)
    for line in sorted(set(bad)):
        print("bad: " + line)
    print(summary + "; %d with findings" % len(bad) + ("" if tried else "; too few tried"))
    sys.exit(bool(bad) or not tried)


main()
