"""Kills a training run at steps of its log: restart.py LOG STEP,STEP.. COMMAND...: the processes right below the supervisor, which must end with status 0. STRIKE:
another fault, a command of the shell, which runs again 15 s later with TPC_UNDO=1."""
import os
import signal
import subprocess
import sys
import time

log, steps, command = sys.argv[1], [int(step) for step in sys.argv[2].split(",")], sys.argv[3:]
job = subprocess.Popen(command)


def last_step():
    try:
        with open(log) as f:
            lines = f.read().split("\n")
    except FileNotFoundError:
        return 0
    done = [line.split(",")[0] for line in lines[1:-1]]
    return int(done[-1]) if done else 0


def kill_children():
    """At once: a program that does it takes longer to start than a busy machine leaves steps."""
    with open(f"/proc/{job.pid}/task/{job.pid}/children") as f:
        children = [int(pid) for pid in f.read().split()]
    if not children:
        sys.exit(f"the run ended before it was killed behind step {step}: {last_step()}")
    for pid in children:
        os.kill(pid, signal.SIGKILL)


for step in steps:
    end = time.monotonic() + 60
    while last_step() < step:
        if time.monotonic() > end or job.poll() is not None:
            job.kill()
            sys.exit(f"no step {step}")
        time.sleep(0.002)
    if strike := os.environ.get("STRIKE"):
        subprocess.run(strike, shell=True, check=True)
        subprocess.Popen(f"sleep 15; {strike}", shell=True, env=dict(os.environ, TPC_UNDO="1"))
    else:
        kill_children()
    time.sleep(0.2)
sys.exit(job.wait(120))
