"""Faults of all kinds, many times, while four clients ask a supervised server for texts without a pause: many.py same|free COMMAND...

COMMAND is tpc-run with --serve --restart. KILLS (20) times a rank is killed, LINKS (20) times a link goes down (LINK: a command of the shell that gets the number of
a host, of HOSTS, and with TPC_UNDO=1 makes it come up again), STOPS (5) times a rank is stopped: hosts, ranks, their order and moments are drawn by SEED.

same: COMMAND has --deterministic: each text equals an undisturbed server's. free: after each restart a text continues as a fresh run of as many ranks
continues what it had (PLAIN: the command of one, in which {ranks} stands for the number), or as that run might: two scores were within NEAR of each other.

Prints a row of a table for each kind of fault. Exit status 1: a request was refused or lost, a text is wrong, a process or a file of /dev/shm is left, or a loss
was seen after 3 s, or the server was back after LIMIT (10) s."""
import json
import os
import random
import re
import statistics
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
import restart  # noqa: E402

LIMIT, SEEN, NEAR = float(os.environ.get("LIMIT", "10")), 3.0, 1e-3
HOSTS = int(os.environ.get("HOSTS", "3"))
GREEDY = [{"prompt": p, "temperature": 0, "stream": True, "logprobs": 2} for p in ("Hello", restart.LONG, "A name: ", restart.LONG + "as JSON")]


class Asker(threading.Thread):
    """Asks for the same text again and again, until it is told to stop."""

    def __init__(self, server, body):
        super().__init__()
        self.server, self.body, self.stops, self.done, self.lost, self.current = server, body, False, [], [], None

    def run(self):
        while not self.stops:
            self.current = Text(self.server, self.body)
            self.current.run()
            if self.current.wrong:
                self.lost.append(self.current.wrong)
                time.sleep(0.2)
            else:
                self.done.append(self.current)


class Text(restart.Client):
    """cuts: (tokens that it had when a job began, ranks of that job)."""

    def __init__(self, server, body):
        super().__init__(server, body)
        self.tokens, self.best, self.cuts = [], [], []

    def take(self, choices):
        super().take(choices)
        if not self.body.get("stream"):
            return
        for c in choices:
            self.tokens += (c["logprobs"] or {}).get("tokens", [])
            self.best += (c["logprobs"] or {}).get("top_logprobs") or []


def streams(askers):
    return [a.current for a in askers if a.current and a.body.get("stream")]


def progress(askers):
    return sum(len(a.done) * restart.TOKENS for a in askers) + sum(t.progress for t in streams(askers))


def await_more(server, askers, more, seconds):
    start, end = progress(askers), time.monotonic() + seconds
    while progress(askers) < start + more:
        if time.monotonic() > end:
            restart.stop(f"no {more} tokens within {seconds} s: {server.log()}")
        time.sleep(0.005)


def state(server):
    return json.loads(server.get("/health")[1])


def ranks_of(server):
    return int(re.search(r'^tpc_model_info{.*ranks="(\d+)"', server.get("/metrics")[1], re.M)[1])


def strike(server, kind):
    """(what undoes it, what it was in words)"""
    if kind == "link":
        host = random.randint(1, HOSTS)
        subprocess.run(f"{os.environ['LINK']} {host}", shell=True, check=True)
        return lambda: subprocess.run(f"{os.environ['LINK']} {host}", shell=True, check=True, env=dict(os.environ, TPC_UNDO="1")), f"link {host}"
    pid = random.choice(sorted(server.ranks()))
    os.kill(pid, restart.SIGNALS[kind])
    return lambda: None, f"{kind} {pid}"


def one(server, askers, kind, n, files):
    """Times from the fault: until it is seen, until the server serves again, until the next token."""
    await_more(server, askers, random.randint(20, 200), 60)
    before = set(server.ranks())
    files |= restart.shared(before)
    at = time.monotonic()
    undo, what = strike(server, kind)
    while state(server)["status"] != "restarting":
        if time.monotonic() - at > 30:
            restart.stop(f"{what} is not seen: {server.log()}")
        time.sleep(0.02)
    seen = time.monotonic() - at
    while server.log().count("serving again") < n:
        for t in streams(askers):
            t.had = len(t.tokens)
        if time.monotonic() - at > 120 or server.process.poll() is not None:
            restart.stop(f"{what}: not served again: {server.log()}")
        time.sleep(0.01)
    back = time.monotonic() - at
    for t in streams(askers):
        t.cuts.append((getattr(t, "had", 0), ranks_of(server)))
    await_more(server, askers, 1, 60)
    went = time.monotonic() - at
    undo()
    orphans = await_gone(before)
    print(f"# {n}: {what}: seen after {seen:.2f} s, served after {back:.2f} s, next token after {went:.2f} s, {len(orphans)} orphans: {state(server)['last_restart']}", flush=True)
    return seen, back, went, len(orphans)


def await_gone(pids):
    """Those that are still there after 10 s: a launcher of another host has been out of reach."""
    end = time.monotonic() + 10
    while (left := pids & set(restart.marked())) and time.monotonic() < end:
        time.sleep(0.05)
    for pid in left:
        os.kill(pid, restart.signal.SIGKILL)
    return left


def token_ids(tokens):
    """Of the tokenizer of tests/tokenizer/bytes.py: as the server writes them."""
    ids = []
    for t in tokens:
        ids += bytes.fromhex(t[6:].replace("\\x", "")) if t.startswith("bytes:") else t.encode()
    return ids


def wrong_behind(plain, text):
    """Where it does not go on as a fresh run: a sentence; and how often two scores were near."""
    near, prompt = 0, list(text.body["prompt"].encode())
    for i, (had, ranks) in enumerate(text.cuts):
        until = text.cuts[i + 1][0] if i + 1 < len(text.cuts) else len(text.tokens)
        if until <= had:
            continue
        if ranks not in plain:
            plain[ranks] = restart.Server(os.environ["PLAIN"].replace("{ranks}", str(ranks)).split())
        fresh = Text(plain[ranks], dict(text.body, prompt=prompt + token_ids(text.tokens[:had])))
        fresh.body["max_tokens"] = until - had
        fresh.run()
        if fresh.wrong:
            return f"a fresh run: {fresh.wrong}", near
        differs = [k for k, (a, b) in enumerate(zip(text.tokens[had:until], fresh.tokens)) if a != b]
        if not differs and len(fresh.tokens) == until - had:
            continue
        k = differs[0] if differs else len(fresh.tokens)
        scores = sorted((fresh.best[k] if k < len(fresh.best) else {}).values())
        if len(scores) < 2 or scores[-1] - scores[-2] > NEAR:
            return f"token {had + k}, {k} behind a restart with {ranks} ranks: {text.tokens[had + k]!r}, expected {fresh.tokens[k:k + 1]!r} of {scores}", near
        near += 1
    return None, near


def check_texts(how, askers, wanted):
    wrong, texts, near, plain = [], 0, 0, {}
    for n, a in enumerate(askers):
        for t in a.done:
            texts += 1
            why, more = (restart.differs([t.choices], [wanted[n]]), 0) if how == "same" else wrong_behind(plain, t)
            near += more
            wrong += [why] if why else []
    for server in plain.values():
        server.process.terminate()
        server.process.wait()
    return texts, wrong, near


def draw_faults():
    """In their order, and an empty list of times for each kind."""
    count = {kind: int(os.environ.get(name, usual)) for kind, name, usual in (("kill", "KILLS", "20"), ("link", "LINKS", "20"), ("stop", "STOPS", "5"))}
    random.seed(int(os.environ.get("SEED", "1")))
    faults = [kind for kind, n in count.items() for _ in range(n)]
    random.shuffle(faults)
    return faults, {kind: [] for kind in count}


def all_faults(faults, ranks):
    """Where the last restart found fewer hosts, a rank is killed before a link goes down, so that all take part again."""
    for kind in faults:
        if kind == "link" and ranks() < HOSTS:
            yield "kill"
        yield kind


def files_left(present):
    """Files of /dev/shm that have come and that no process maps."""
    mapped = {os.path.basename(path) for path in restart.shared(int(pid) for pid in os.listdir("/proc") if pid.isdigit())}
    return sorted(f for f in set(os.listdir("/dev/shm")) - present - mapped if re.match("vader|osc|open_mpi|tpc", f))


def table(times, last="next token"):
    head = f"| fault | times | seen, s: least, median, most | again, s | {last}, s | orphans |\n|---|---|---|---|---|---|"
    return "\n".join([head] + [row(kind, t) for kind, t in times.items() if t])


def row(name, times):
    cells = [f"{min(x):.1f}, {statistics.median(x):.1f}, {max(x):.1f}" for x in list(zip(*times))[:3]]
    return f"| {name} | {len(times)} | " + " | ".join(cells) + f" | {sum(t[3] for t in times)} |"


def too_late(times):
    every = [t for x in times.values() for t in x]
    return max(t[0] for t in every) > SEEN or max(t[1] for t in every) > LIMIT or sum(t[3] for t in every) > 0


def main():
    how, command = sys.argv[1], sys.argv[2:]
    faults, times = draw_faults()
    present, files = set(os.listdir("/dev/shm")), set()
    server = restart.Server(command)
    bodies = restart.BODIES if how == "same" else GREEDY
    first = [Text(server, body) for body in bodies]
    for c in first:
        c.start()
    wanted = restart.join_all(first)
    askers = [Asker(server, body) for body in bodies]
    for a in askers:
        a.start()
    for kind in all_faults(faults, lambda: ranks_of(server)):
        times[kind].append(one(server, askers, kind, sum(map(len, times.values())) + 1, files))
    for a in askers:
        a.stops = True
    for a in askers:
        a.join()
    total = sum(map(len, times.values()))
    now, lost = state(server), [why for a in askers for why in a.lost]
    counted = (now["status"], now["restarts"], server.metric("restarts_total"), server.metric("serving"))
    server.process.terminate()
    status = server.process.wait(60)
    left = await_gone(set(restart.marked()))
    own = files_left(present)
    texts, wrong, near = check_texts(how, askers, wanted)
    print(table(times))
    print(f"{texts} texts: {len(lost)} lost or refused, {len(wrong)} wrong, {near} on another way for scores that were near; {len(left)} processes and {len(own)} files "
          f"of /dev/shm left")
    for what in lost + wrong + own:
        print(f"bad: {what}")
    good = not (lost or wrong or left or own) and status == 0 and counted == ("ok", total, total, 1)
    if not good:
        print(f"bad: state {counted}, status {status}: {server.log()}")
    sys.exit(not good or too_late(times))


if __name__ == "__main__":
    main()
