#!/usr/bin/env python3
"""Clients of a server whose ranks are killed and stopped: restart.py same|free|limit FAULT[,FAULT..] COMMAND...

COMMAND is tpc-run with --serve --restart. Faults strike while texts are made: kill, term and stop strike a process of the ranks that is drawn at random, or, as in
stop:1, the one with that place in their order; any other word is run as a command of the shell, and once more with TPC_UNDO=1 when the server serves again. No request may be refused or lost. same: all texts are what
they are without faults; free: texts hit by a fault may round differently, so only their beginnings are compared; limit: after the last fault, the
supervisor ends with status 1 and a reason. In the end no process and no
file of theirs in /dev/shm may be left. SEED=N draws other ranks."""
import glob
import http.client
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

LIMIT = float(os.environ.get("RESTART_LIMIT", "30"))  # s from a fault to the next token, for a busy machine
TOKENS = int(os.environ.get("TOKENS", "300"))
MARK = f"TPC_RESTART={os.getpid()}."
SCHEMA = {"type": "array", "items": {"type": "integer"}, "minItems": 1000}
SIGNALS = {"kill": signal.SIGKILL, "term": signal.SIGTERM, "stop": signal.SIGSTOP}
LONG = "and so on, " * 30
BODIES = [
    {"prompt": "Hello", "temperature": 0, "stream": True},
    {"prompt": LONG, "temperature": 1.5, "top_p": 0.9, "seed": 7, "stream": True, "logprobs": 2},
    {"prompt": "A name: ", "temperature": 1, "seed": 3, "frequency_penalty": 0.1, "presence_penalty": 0.2, "n": 2},
    {"prompt": LONG + "as JSON", "temperature": 1, "seed": 5, "echo": True, "logprobs": 0, "json_schema": SCHEMA},
]


def shared(pids):
    """Files of /dev/shm that these processes map."""
    found = set()
    for pid in pids:
        try:
            with open(f"/proc/{pid}/maps") as f:
                found |= {line.split(maxsplit=5)[5].strip() for line in f if "/dev/shm/" in line and "(deleted)" not in line}
        except OSError:
            continue
    return found


def marked():
    """Process ids that this test has started, by their parents' ids."""
    found = {}
    for folder in glob.glob("/proc/[0-9]*"):
        try:
            with open(folder + "/environ", "rb") as f:
                if MARK.encode() not in f.read():
                    continue
            with open(folder + "/stat") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
            with open(folder + "/cmdline", "rb") as f:
                name = f.read().split(b"\0")[0]
        except (OSError, IndexError):
            continue
        found[int(folder[6:])] = (parent, name)
    return found


class Server:
    def __init__(self, command):
        self.said = tempfile.NamedTemporaryFile("w+")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.said, env=dict(os.environ, TPC_RESTART=MARK[12:]))
        self.port = int(self.wait_for(r" at http://.*:(\d+)/v1,", 1)[0])

    def log(self):
        with open(self.said.name, errors="replace") as f:
            return f.read()

    def wait_for(self, pattern, times, seconds=60):
        end = time.monotonic() + seconds
        while len(found := re.findall(pattern, self.log())) < times:
            if time.monotonic() > end or self.process.poll() is not None:
                stop(f"no {pattern!r} in: {self.log()}")
            time.sleep(0.02)
        return found

    def get(self, path):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        c.request("GET", path)
        r = c.getresponse()
        return r.status, r.read().decode()

    def metric(self, name):
        return float(re.search(rf"^tpc_{name} (\S+)$", self.get("/metrics")[1], re.M)[1])

    def ranks(self):
        return [pid for pid, (_, name) in marked().items() if name.endswith(b"tpc-run") and pid != self.process.pid]


def stop(sentence):
    for pid in marked():
        os.kill(pid, signal.SIGKILL)
    sys.exit(sentence)


class Client(threading.Thread):
    """Asks for a text; progress counts what came of it."""

    def __init__(self, server, body):
        super().__init__()
        self.server, self.body, self.progress, self.wrong, self.choices = server, dict(body, max_tokens=TOKENS), 0, None, {}

    def take(self, choices):
        for c in choices:
            own = self.choices.setdefault(c["index"], {"text": "", "logprobs": [], "finish": None})
            own["text"] += c["text"]
            own["logprobs"] += (c["logprobs"] or {}).get("token_logprobs", [])
            own["finish"] = c["finish_reason"] or own["finish"]

    def run(self):
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=240)
            c.request("POST", "/v1/completions", json.dumps(self.body))
            r = c.getresponse()
            if r.status != 200:
                self.wrong = f"{r.status} {r.read()}"
            elif not self.body.get("stream"):
                self.take(json.loads(r.read())["choices"])
            else:
                self.read(r)
        except (OSError, http.client.HTTPException, ValueError) as e:
            self.wrong = f"{type(e).__name__}: {e}"
        if not self.wrong and any(c["finish"] is None for c in self.choices.values()):
            self.wrong = "a text has no end"

    def read(self, r):
        for line in r:
            if line.startswith(b"data: {"):
                event = json.loads(line[6:])
                self.wrong = event["error"]["message"] if "error" in event else self.wrong
                self.take(event.get("choices", []))
                self.progress += 1
        if line.strip() and line != b"data: [DONE]\n":
            self.wrong = f"the stream ends with {line}"


def ask_all(server):
    clients = [Client(server, body) for body in BODIES]
    for c in clients:
        c.start()
    return clients


def join_all(clients):
    for c in clients:
        c.join()
    wrong = [c.wrong for c in clients if c.wrong]
    if wrong:
        stop(f"requests were not answered: {wrong}")
    return [c.choices for c in clients]


def await_progress(client, more):
    start, end = client.progress, time.monotonic() + LIMIT
    while client.progress < start + more and client.is_alive():
        if time.monotonic() > end:
            stop(f"no token within {LIMIT} s: {client.server.log()}")
        time.sleep(0.005)


def strike(server, fault):
    """Returns what undoes it."""
    name, _, place = fault.partition(":")
    if name not in SIGNALS:
        subprocess.run(fault, shell=True, check=True)
        return lambda: subprocess.run(fault, shell=True, check=True, env=dict(os.environ, TPC_UNDO="1"))
    ranks = sorted(server.ranks())
    os.kill(ranks[int(place)] if place else random.choice(ranks), SIGNALS[name])
    return lambda: None


def same_beginning(got, wanted):
    """Rounding may change a token that two choices are close for; what came before the first fault stays."""
    return all(g[i]["text"][:10] == w[i]["text"][:10] for g, w in zip(got, wanted) for i in w)


def differs(got, wanted):
    """Log-probabilities round as the rows of a step are, and which these are is a matter of time."""
    for n, (g, w) in enumerate(zip(got, wanted)):
        for i in w:
            near = [x == y or abs(x - y) < 1e-4 for x, y in zip(g[i]["logprobs"], w[i]["logprobs"])]
            if g[i]["text"] != w[i]["text"] or g[i]["finish"] != w[i]["finish"] or len(g[i]["logprobs"]) != len(w[i]["logprobs"]) or not all(near):
                return f"text {i} of request {n} is {g[i]['text'][:2000]!r}, expected {w[i]['text'][:2000]!r}, log-probabilities alike: {all(near)}"
    return None


def check_end(server, files):
    server.process.terminate()
    if server.process.wait(60) != 0:
        stop(f"the supervisor ends with {server.process.returncode}: {server.log()}")
    left = marked()
    if left:
        stop(f"processes are left: {left}")
    left = [path for path in files if os.path.exists(path)]
    if left:
        stop(f"files are left: {left}")


def await_last(server, clients):
    """One fault more than there may be restarts: what can't go on is answered, too."""
    for c in clients:
        c.join()
        if c.wrong and not c.wrong.startswith("503 ") and c.wrong != "the server ends":
            stop(f"a request of the server that ended: {c.wrong}")
    if server.process.wait(60) != 1 or not re.search("as often as --restart-limit allows, and is not any more", server.log()):
        stop(f"the supervisor ends with {server.process.returncode}: {server.log()}")


def main():
    how, faults, command = sys.argv[1], sys.argv[2].split(","), sys.argv[3:]
    random.seed(int(os.environ.get("SEED", "1")))
    files = set()
    server = Server(command)
    wanted = join_all(ask_all(server))
    clients = ask_all(server)
    slowest = back = 0
    for n, fault in enumerate(faults, 1):
        await_progress(clients[0], 40)
        if not clients[0].is_alive():
            stop(f"the text ended before fault {n}: TOKENS is too small")
        files |= shared(server.ranks())
        start = time.monotonic()
        undo = strike(server, fault)
        if how == "limit" and n == len(faults):
            await_last(server, clients)
            return
        server.wait_for(r": restart \d+\n", n)
        if json.loads(server.get("/health")[1])["restarts"] != n:
            stop(f"health after fault {n}: {server.get('/health')}")
        server.wait_for("serving again", n)
        back = max(back, time.monotonic() - start)
        await_progress(clients[0], 1)
        slowest = max(slowest, time.monotonic() - start)
        undo()
    got = join_all(clients)
    if server.metric("restarts_total") != len(faults) or server.metric("serving") != 1:
        stop(f"metrics: {server.get('/metrics')[1]}")
    if server.get("/health") != (200, server.get("/health")[1]) or json.loads(server.get("/health")[1])["status"] != "ok":
        stop(f"health: {server.get('/health')}")
    if how == "same" and differs(got, wanted):
        stop(differs(got, wanted))
    if got[3][0]["text"][len(BODIES[3]["prompt"]):].count("[") != 1:
        stop(f"the form of a text begins again: {got[3][0]['text']}")
    if not same_beginning(got, wanted):
        stop("texts begin in another way")
    check_end(server, files)
    print(f"{len(faults)} faults: served again after {back:.1f} s at most, the next token came after {slowest:.1f} s")


if __name__ == "__main__":
    main()
