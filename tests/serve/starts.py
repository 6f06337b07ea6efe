#!/usr/bin/env python3
"""Jobs of a supervised server that fail while they start: starts.py TPC-RUN FOLDER OTHER TOKENIZER, folders of two ranks of different models.

A launcher of its own does at each start what the case says: runs the job, or something else. The job of the first start is killed while a text is made. Where another
start succeeds, the text is what it would have been. All cases run at once. Prints a line for each: its name, and "good" or what is wrong."""
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import restart

run, folder, other, tokenizer = (os.path.abspath(word) for word in sys.argv[1:5])
ALL = [run, folder, "--serve", "--restart", "--deterministic", "--port", "0", "--threads", "1", "--tokenizer", tokenizer]
# {work}/down.HOST: a host that does not answer; bad.HOST: one on which no job starts; old.HOST: one that has another build; starts: a line for each start to come.
LAUNCHER = """hosts=$1
shift
for host in $(echo "$hosts" | tr , ' '); do
    [ -e {work}/down.$host ] && exec sleep 100
    [ -e {work}/old.$host ] && [ "$2" = --answer ] && exec "$1" --answer 0 "$4"
done
[ "$2" = --answer ] && exec "$@"
echo "$hosts" >>{work}/began
for host in $(echo "$hosts" | tr , ' '); do [ -e {work}/bad.$host ] && exit 1; done
what=$(sed -n "$(wc -l <{work}/began)p" {work}/starts)
case $what in "") exec "$@" ;; {other}|/missing) program=$1 flag=$2 build=$3; shift 4; exec "$program" "$flag" "$build" "$what" "$@" ;; *) eval "$what" ;; esac
"""
LIMIT = "as often as --restart-limit allows, and is not any more"
FOUR = ["--hosts", "a,b,c,d"]
# Name: what starts do, files of the launcher when the job is killed, options, what the log has in the end, the exit status of the supervisor; None: it serves again
CASES = {
    "status": (["", "exit 1", "exit 1"], "", [], [r"the job ended with status 1: restart 2\n", r"the job ended with status 1: restart 3\n"], None),
    "killed": (["", "kill -9 $$"], "", [], [r"ended by signal 9 \(Killed\): restart 2\n"], None),
    "silent": (["", "exec sleep 100"], "", [], [r"rank 0 has sent no heartbeat within \d+ s of the start: restart 2\n"], None),
    "stopped": (["", "printf '\\00100\\n'; exec sleep 100"], "", [], [r"rank 0 has sent no heartbeat for \d.\d s: restart 2\n"], None),
    "garbled": (["", "printf '\\001zz\\n'; exec sleep 100"], "", [], [r"a message of rank 0 can't be read: restart 2\n"], None),
    "unreadable": (["", "printf '\\0010100\\n'; exec sleep 100"], "", [], [r"what rank 0 says of its model can't be read: restart 2\n"], None),
    "other": (["", other], "", [], [r"the job has another model than before: restart 2\n"], None),
    "says": (["", "/missing"], "", [], [r": /missing: no such file or folder.*: restart 2\n"], None),
    "limit": (["", "exit 1", "exit 1", "exit 1"], "", ["--restart-limit", "2:10"], [f"the job ended with status 1: it was started again 2 times.* {LIMIT}"], 1),
    "usage": (["", "exit 2"], "", [], [r"the job ended with status 2: a restart would not mend it\n"], 2),
    "spare": ([], "down.b bad.c", FOUR, [r"no answer of b\n", r"the job ended with status 1: restart 2\n"], None),
    "build": ([], "down.b old.c", FOUR, [r"no answer of b\n", r"c can't take part: its tpc-run is of another build\n"], None),
    "nobody": ([], "down.a down.b down.c", ["--hosts", "a,b,c", "--restart-limit", "1:10"], [r"no answer of a, b, c\n", f"0 of 2 hosts are left, which is too few: .*{LIMIT}"], 1),
}
HOSTS = {"spare": "a,d", "build": "a,d"}  # of the last start


class Server(restart.Server):
    """Its ranks are those below the supervisor: several servers have one mark."""

    def ranks(self):
        below, marked = {self.process.pid}, restart.marked()
        for _ in marked:
            below |= {pid for pid, (parent, _) in marked.items() if parent in below}
        return [pid for pid in below - {self.process.pid} if marked.get(pid, (0, b""))[1].endswith(b"tpc-run")]


def ask(server):
    c = restart.Client(server, restart.BODIES[0])
    c.start()
    return c


def try_case(name, work):
    starts, files, options, said, status = CASES[name]
    with open(f"{work}/launcher", "w") as f:
        f.write(LAUNCHER.replace("{work}", work).replace("{other}", other))
    with open(f"{work}/starts", "w") as f:
        f.write("".join(line + "\n" for line in starts))
    hosts = "{hosts}" if "--hosts" in options else "x"
    server = Server(ALL + options + ["--launch", f"env ranks={{ranks}} sh {work}/launcher {hosts}" if "--hosts" in options else f"sh {work}/launcher {hosts}"])
    first = ask(server)
    first.join()
    text = ask(server)
    restart.await_progress(text, 40)
    for path in files.split():
        open(f"{work}/{path}", "w").close()
    for pid in server.ranks():
        os.kill(pid, signal.SIGKILL)
    text.join()
    wrong = f"the text is {text.wrong or text.choices}" if (text.choices != first.choices or text.wrong) and status is None else ""
    if status is not None and text.wrong != "the server ends":
        wrong = f"the request was not answered: {text.wrong}"
    if status is None:
        server.process.terminate()
    ended = server.process.wait(60)
    wrong = wrong or (f"exit status {ended}" if ended != (status or 0) else "")
    for pattern in said:
        wrong = wrong or ("" if re.search(pattern, server.log()) else f"nothing is said of {pattern!r}")
    with open(f"{work}/began") as f:
        last = f.read().split()[-1]
    if name in HOSTS and last != HOSTS[name]:
        wrong = wrong or f"the last start is on {last}"
    return f"{wrong}: {server.log()}" if wrong else "good"


def try_port():
    """One that another program has: nothing is started."""
    with socket.create_server(("127.0.0.1", 0)) as taken, tempfile.TemporaryDirectory() as work:
        port = str(taken.getsockname()[1])
        p = subprocess.run([port if word == "0" else word for word in ALL] + ["--launch", f"touch {work}/began;"], capture_output=True, text=True, timeout=60)
        return "good" if p.returncode == 1 and port in p.stderr and not os.listdir(work) else f"{p.returncode}, {os.listdir(work)}: {p.stderr}"


def main():
    results = {}

    def one(name):
        with tempfile.TemporaryDirectory() as work:
            try:
                results[name] = try_port() if name == "port" else try_case(name, work)
            except (Exception, SystemExit) as e:
                results[name] = f"{type(e).__name__}: {e}"

    threads = [threading.Thread(target=one, args=(name,)) for name in [*CASES, "port"]]
    for t in threads:
        t.start()
        time.sleep(0.2)
    for t in threads:
        t.join()
    left = restart.marked()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    results["left"] = f"processes are left: {left}" if left else "good"
    for name, said in results.items():
        print(f"{name} {said!r}" if said != "good" else f"{name} good")
    sys.exit(any(said != "good" for said in results.values()))


main()
