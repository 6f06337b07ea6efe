"""Hostile files under trial: what a command may take, and what it may say.

BUILD/tests/fuzz/serve runs the commands in children that it forks.
"""
import os
import re
import signal
import subprocess

SECONDS, WALL, ROOM = 10, 120, 2**31


class Server:
    """tests/fuzz/serve, which runs commands and says how they ended."""

    def __init__(self, build, folder):
        env = dict(os.environ, OMP_NUM_THREADS="1", LD_BIND_NOW="1")
        self.folder = folder
        self.process = subprocess.Popen([f"{build}/tests/fuzz/serve", folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)

    def run(self, memory, cpu, wall, command):
        """Status, seconds, bytes of memory, what stdout and stderr hold."""
        words = [str(memory), str(cpu), str(wall), *command, ""]
        self.process.stdin.write(b"".join(word.encode() + b"\0" for word in words))
        self.process.stdin.flush()
        status, us, kib = self.process.stdout.readline().split()
        said = []
        for name in "out", "err":
            with open(f"{self.folder}/{name}", errors="replace") as f:
                said.append(f.read())
        return int(status), int(us) / 1e6, int(kib) * 1024, *said

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Trial:
    """Commands of BUILD in the folder WORK. Those on BYTES bytes of files end within SECONDS and within memory, with a result or one sentence."""

    def __init__(self, build, work):
        self.build, self.work = os.path.abspath(build), work
        with open(os.path.join(build, "Makefile"), encoding="utf-8") as makefile:
            self.sanitized = bool(re.search(r"^TPC_SAN = .", makefile.read(), re.M))
        self.bytes = 0
        self.may_last, self.lasted = False, 0       # the files ask for loops, of any number of turns; runs that were still in them
        os.mkdir(f"{work}/said")
        self.server = Server(self.build, f"{work}/said")

    def run(self, *command):
        """Status, what stdout and stderr hold, a complaint or None."""
        most = (20 * self.bytes + 200 * 2**20) * (3 if self.sanitized else 1)
        slow = SECONDS * (4 if self.sanitized else 1)
        status, seconds, memory, out, err = self.server.run(most + ROOM, slow, WALL, command)
        err = re.sub(r"==\d+==WARNING: AddressSanitizer failed to allocate .*\n", "", err)        # which the command tells of itself
        if "runtime error:" in err or "Sanitizer" in err:
            wrong = "a sanitizer speaks"
        elif status in (-signal.SIGALRM, -signal.SIGKILL) and self.may_last:
            wrong, self.lasted = None, self.lasted + 1
        elif status == -signal.SIGALRM:
            wrong = f"hangs: no end in {WALL} s"
        elif status == -signal.SIGKILL or (seconds > slow and not self.may_last):
            wrong = f"takes {seconds:.1f} s"
        elif status not in (0, 1, 2):
            wrong = f"ends with status {status}"
        elif status and not re.match(r"tpc-(shard|run): .{8,}\n\Z", err):
            wrong = "fails without one sentence"
        else:
            wrong = f"takes {memory // 2**20} MiB" if memory > most else None
        return status, out, err, wrong
