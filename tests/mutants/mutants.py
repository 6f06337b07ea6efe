#!/usr/bin/env python3
"""Mutation check: every mutation of tests/mutants/list is made, one at a time, and the test it names must fail.

usage: mutants.py [--check] [--fast] [--every N] [--jobs N] [--trust] [WORD...]     run in the build folder; srcdir as in the tests

A mutation replaces one piece of text, which its file has once; blanks and line breaks do not count, so that a formatter may move them. The
mutated file is compiled alone and linked in front of the library into the programs that the test runs; nothing else is built and no file of
the source or build folder changes. --every N: each Nth mutation; --fast: of those whose test takes a
few seconds at most; WORD: only those whose title, file or test has it. Prints TAP. A test that
fails on the sources as they are, a text that is not found, and a mutation that does not compile are failures, too. --trust: the tests are
not run on the sources as they are, for the suite around does that. --check builds and runs nothing: one line for each text that its file
does not have exactly once and for each test that does not exist; needs no build folder.
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
LIST = os.path.join(SRC, "tests/mutants/list")
LIMIT = 300                                            # seconds; a mutation that makes its test hang is found, too


def read_list():
    for block in re.split(r"\n\s*\n", open(LIST).read()):
        lines = [line for line in block.split("\n") if line and not line.startswith("#")]
        if not lines:
            continue
        if len(lines) != 5 or lines[2][:2] != "- " or lines[3][:2] not in ("+ ", "+") or not lines[4].startswith("killed by "):
            sys.exit(f"{LIST}: expected a title, a file, '- old', '+ new' and 'killed by TEST' in\n{block}")
        yield dict(title=lines[0], file=lines[1], old=lines[2][2:], new=lines[3][2:], test=lines[4][len("killed by "):])


def found(text, old):
    """Where text has old: a blank must stand only between two words, any number may stand elsewhere. A macro's \\ at an end of line is one."""
    blank = r"(?:\s|\\\n)"
    tokens = re.findall(r"\w+|[^\w\s]", old)
    pattern = re.escape(tokens[0])
    for before, token in zip(tokens, tokens[1:]):
        pattern += blank + ("+" if re.match(r"\w", before) and re.match(r"\w", token) else "*") + re.escape(token)
    return [m.span() for m in re.finditer(pattern, text)]


def mutated(mutant):
    """The file's text with the mutation, and what is wrong."""
    path = os.path.join(SRC, mutant["file"])
    if not os.path.isfile(path):
        return None, "there is no such file"
    text = open(path).read()
    places = found(text, mutant["old"])
    if len(places) != 1:
        return None, f"has '{mutant['old'].strip()}' {len(places)} times, expected once"
    return text[:places[0][0]] + mutant["new"].strip() + text[places[0][1]:], ""


def make_variable(names):
    """By a make of its own: flags of one that runs this test would have it say where it is."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    rules = "include Makefile\nshow:\n" + "".join(f"\t@echo '$({name})'\n" for name in names)
    return subprocess.run(["make", "-s", "--no-print-directory", "-f", "-", "show"], input=rules, cwd=BUILD, env=env, check=True, text=True,
                          stdout=subprocess.PIPE).stdout.split("\n")


# A test by its first word: the programs it runs, and its command in a folder where they lie.
def test_of(words):
    name = words[0]
    if name == "selfcheck":
        return ["tests/selfcheck"], ["tests/selfcheck"] + words[1:]
    if name == "variants":
        return ["tests/variants/variants"], ["tests/variants/variants"] + words[1:]
    if name == "sample":                              # its outputs are those that it comes with
        at = os.path.join(SRC, "samples", words[1])
        return ["tpc-run"], ["tpc-run", os.path.join(at, "model.onnx"), "--threads", "1", "--test-data", os.path.join(at, "test_data_set_0")]
    if name in ("prove", "graphs"):                   # a sample goes by its name
        models = {m: os.path.join(SRC, "samples", m, "model.onnx") for m in os.listdir(os.path.join(SRC, "samples"))}
        return [f"tests/{name}/{name}"], [f"tests/{name}/{name}"] + [models.get(word, word) for word in words[1:]]
    if name == "collectives":
        return ["tests/comm/collectives"], ["tests/comm/collectives"] + words[1:]
    if name.startswith("test_"):
        return [f"tests/unit/{name}"], [f"tests/unit/{name}"]
    if name.endswith(".tap"):
        more = {"tokenizer.tap": ["tests/tokenizer/tokenize"], "jinja.tap": ["tests/jinja/render"], "prices.tap": ["tests/prices"], "prove.tap": ["tests/prove/prove"], "onnx.tap": ["tests/onnx/roundtrip"]}
        return more.get(name, []) + ["tpc-shard", "tpc-run"], ["sh", os.path.join(SRC, "tests", name)] + words[1:]
    sys.exit(f"{LIST}: no test is called {name}")


def is_fast(mutant):
    words = mutant["test"].split()
    return words[0] in ("variants", "sample", "collectives", "modules.tap") or words[0].startswith("test_") or \
        (words[0] in ("selfcheck", "pass.tap") and len(words) > 1)


def includer(included):
    """The source file of the library that includes a table or a template most."""
    paths = [os.path.join(top, f) for root in ("src", "passes") for top, _, files in os.walk(os.path.join(SRC, root)) for f in files]
    return max((p for p in paths if p.endswith(".c")), key=lambda p: open(p).read().count(f'#include "{included}"'))


def test_exists(words):
    name = words[0]
    if name == "sample":
        return os.path.isdir(os.path.join(SRC, "samples", words[1]))
    files = {"selfcheck": "tests/selfcheck.c", "prove": "tests/prove/main.c", "graphs": "tests/graphs/main.c",
             "variants": "tests/variants/main.c",
             "collectives": "tests/comm/collectives.c"}
    file = files.get(name, f"tests/{name}" if name.endswith(".tap") else f"tests/unit/{name}.c")
    return os.path.isfile(os.path.join(SRC, file))


def unsound(mutants):
    """What is wrong with the list, found without building."""
    errors = [f"{m['file']}: {error}" for m in mutants for error in [mutated(m)[1]] if error]
    return errors + [f"{m['test']}: there is no such test" for m in mutants if not test_exists(m["test"].split())]


class Build:
    def __init__(self, mutants):
        programs = sorted({p for m in mutants for p in test_of(m["test"].split())[0]})
        stems = [p.replace("/", "_").replace("-", "_") for p in programs]
        values = make_variable(["COMPILE", "CCLD", "AM_CFLAGS", "CFLAGS", "AM_LDFLAGS", "LDFLAGS", "LIBS", "SERVE_LIBS"]
                               + [f"{s}_OBJECTS" for s in stems] + [f"{s}_LDADD" for s in stems])
        self.compile = shlex.split(values[0])
        self.link, self.libs = shlex.split(" ".join(values[1:6])), shlex.split(" ".join(values[6:8]))
        n = len(programs)
        self.objects = dict(zip(programs, (v.split() for v in values[8:8 + n])))
        self.ldadd = dict(zip(programs, (shlex.split(v) for v in values[8 + n:8 + 2 * n])))

    def compiled(self, mutant, folder):
        text, error = mutated(mutant)
        if error:
            return None, f"{mutant['file']}: {error}"
        path = os.path.join(SRC, mutant["file"])
        source = os.path.join(folder, os.path.basename(path))
        own = ["-iquote", os.path.dirname(path)]
        if path.endswith((".def", ".h")):                        # what is made of it
            included = re.sub("^src/", "", mutant["file"])
            source, own, path = includer(included), ["-I" + folder], os.path.join(folder, included)
            os.makedirs(os.path.dirname(path))
        else:
            path = source
        open(path, "w").write(text)
        out = os.path.join(folder, "mutant.o")
        at = next(i for i, word in enumerate(self.compile) if word.startswith(("-I", "-D")))
        done = subprocess.run(self.compile[:at] + own + self.compile[at:] + ["-Wno-error", "-w", "-c", "-o", out, source], cwd=BUILD,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return (out, "") if done.returncode == 0 else (None, "does not compile: " + done.stdout[-500:])

    def linked(self, program, mutant, folder, file):
        """A mutant of the library stands in front of it; one of a program's own sources stands for its object there, and in no other."""
        own, objects = os.path.splitext(file)[0] + ".o", self.objects[program]
        if own in objects:
            objects = [mutant if o == own else o for o in objects]
        elif mutant and not any(own in of for of in self.objects.values()):
            objects = [mutant] + objects
        out = os.path.join(folder, program)
        os.makedirs(os.path.dirname(out), exist_ok=True)
        command = self.link + ["-o", out] + objects + self.ldadd[program] + self.libs
        done = subprocess.run(command, cwd=BUILD, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        return "" if done.returncode == 0 else "does not link: " + done.stdout[-500:]


def kill_group(started):
    try:
        os.killpg(started.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


class Running:
    """The commands that run now. None outlives this program: each has a group of processes, which ends with it."""
    def __init__(self):
        self.lock, self.all, self.over = threading.Lock(), set(), False

    def start(self, command, folder, env):
        with self.lock:                                # no command begins after the last kill. If it is not killed, it runs out of seconds
            command = ["false"] if self.over else ["sh", "-c", f'ulimit -t {LIMIT}; exec "$@"', "sh"] + command
            started = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       errors="replace", start_new_session=True)
            self.all.add(started)
            return started

    def end_all(self, number, _):
        self.over = True
        for started in list(self.all):
            kill_group(started)
        sys.exit(128 + number)

    def ended(self, command, folder, env, limit):
        """What a command prints, and its status; None if it takes more seconds than the limit."""
        started = self.start(command, folder, env)
        try:
            return started.communicate(timeout=limit)[0], started.returncode
        except subprocess.TimeoutExpired:
            return "", None
        finally:
            kill_group(started)
            started.wait()
            self.all.discard(started)


running = Running()


def passes(test, folder):
    command = test_of(test.split())[1]
    env = dict(os.environ, srcdir=os.path.abspath(SRC), builddir=folder, OMP_NUM_THREADS="1")
    output, status = running.ended(command, folder, env, LIMIT)
    return status == 0 and not re.search(r"^not ok", output, re.M)


def run(build, mutant):
    with tempfile.TemporaryDirectory() as folder:
        if mutant["file"]:
            made, error = build.compiled(mutant, folder)
            if not made:
                return error
        else:
            made = None
        for program in test_of(mutant["test"].split())[0]:
            error = build.linked(program, made, folder, mutant["file"])
            if error:
                return error
        if passes(mutant["test"], folder) == bool(mutant["file"]):
            return "survived" if mutant["file"] else "fails without a mutation"
    return ""


def main():
    ask = argparse.ArgumentParser(description="mutation check")
    ask.add_argument("--every", type=int, default=1)
    ask.add_argument("--jobs", type=int, default=os.cpu_count())
    ask.add_argument("--check", action="store_true")
    ask.add_argument("--trust", action="store_true")
    ask.add_argument("--fast", action="store_true")
    ask.add_argument("word", nargs="*")
    options = ask.parse_args()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, running.end_all)
    every = list(read_list())
    errors = unsound(every)
    if options.check:
        print("".join(error + "\n" for error in errors), end="")
        return len(errors) > 0
    chosen = [m for m in every if is_fast(m) or not options.fast][::options.every]
    chosen = [m for m in chosen if all(w in m["title"] + m["file"] + m["test"] for w in options.word)]
    sound = [] if options.trust else [dict(title="sound", file="", test=t) for t in sorted({m["test"] for m in chosen})]
    build = Build(chosen)
    work = sound + chosen
    failed = len(errors) > 0
    print(f"1..{len(work) + 1}")
    print(f"{'not ' if errors else ''}ok 1 - every text is found once and every test exists" + "".join("\n# " + error for error in errors))
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for i, (mutant, error) in enumerate(zip(work, pool.map(lambda m: run(build, m), work)), 2):
            title = f"{mutant['title']}: {mutant['test']}"
            print(f"{'not ' if error else ''}ok {i} - {title}" + (f"\n# {mutant['file']}: {error}" if error else ""), flush=True)
            failed += bool(error)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
