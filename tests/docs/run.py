"""Runs the commands of a page and compares what they print.

    python3 tests/docs/run.py BUILD PAGE.md             compares; exit status 1 when anything differs
    python3 tests/docs/run.py BUILD PAGE.md --update    writes what differs into the page

In a code block a line that begins with "$ " is a command; a backslash at its end continues it. The lines up to the next command, or to the end of
the block, are what it prints on stdout and stderr. A line "..." stands for any lines. The page's commands run in their order in one fresh folder
that has the programs, also on PATH, and links to samples/, tests/ and schemas/. A command may fail only if the page shows its message.

Speed and rounding differ between machines. So in lines in which tpc-run reports a run (they begin with a word of MEASURED) any number with a decimal
point or an exponent stands for any other, and a digest or the name of the worst output for any other; so in the rows of --bench, whose widths don't count. All else
must match, byte for byte.
Commands that need mpirun are left out, and counted in the last line, if NO_MPI is set.
"""
import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MEASURED = re.compile(r"(  first run|time|token|rank|collective|group|PASSED|FAILED)\b|.* xxh3:|\| .*/s \|$")
VARIES = [(r"\d+(\.\d+)?e[+-]\d+|\d+\.\d+", "#.#"), (r"([\d#.]+ ± )?[\d#.]+ (tokens|runs)/s", "# /s"), (r"  +\| ", " | "), (r"\|  +", "| "), (r"xxh3:\w+", "xxh3:#"), (r"(worst difference \S+ in) '.*'", r"\1 '#'")]
PRECISE = re.compile(r"\b\d+\.\d{14,}")  # the last digits are as the version of jq rounds
MESSAGE = ("tpc-shard: ", "tpc-run: ")


class Command:
    def __init__(self, line, indent, text):
        self.line, self.indent, self.text, self.output, self.end = line, indent, text, [], line


def commands(page):
    """The commands of a page, each with the lines it should print; line and end count from 1."""
    found, fence, current = [], None, None
    for number, line in enumerate(page.read_text().split("\n"), 1):
        mark = re.match(r" *```", line)
        if mark:
            fence, current = (None if fence is not None else mark.group().index("`")), None
            continue
        indent = fence if fence is not None else 4
        inside = fence is not None or line.startswith("    ")
        text = line[indent:]
        if not inside:
            current = None
        elif current and not current.output and current.text.endswith("\\"):
            current.text, current.end = current.text[:-1] + text.lstrip(), number
        elif text.startswith("$ "):
            current = Command(number, indent, text[2:])
            current.end = number
            found.append(current)
        elif current:
            current.output.append(text)
    return found


def alike(line):
    line = PRECISE.sub(lambda number: f"{float(number.group()):.14g}", line.rstrip())
    if MEASURED.match(line):
        for pattern, mark in VARIES:
            line = re.sub(pattern, mark, line)
    return line


def matches(want, got):
    """Do the lines that a page shows stand for those that were printed?"""
    if not want:
        return not got
    if want[0] == "...":
        return any(matches(want[1:], got[i:]) for i in range(len(got) + 1))
    return bool(got) and alike(want[0]) == alike(got[0]) and matches(want[1:], got[1:])


def prepare(folder, build):
    for name in ("samples", "tests", "schemas"):
        (folder / name).symlink_to(SOURCE / name)
    for name in ("tpc-shard", "tpc-run"):
        (folder / name).symlink_to((build / name).resolve(strict=True))
    bin = folder / ".bin"
    bin.mkdir()
    if os.environ.get("MPIRUN"):
        (bin / "mpirun").write_text(f'#!/bin/sh\nexec {os.environ["MPIRUN"]} "$@"\n')
        (bin / "mpirun").chmod(0o755)
    return dict(os.environ, PATH=f"{bin}:{folder}:{os.environ['PATH']}", LC_ALL="C.UTF-8")


def difference(page, command, got, status):
    pairs = itertools.zip_longest(command.output, got, fillvalue="(nothing)")
    want, other = next(((w, g) for w, g in pairs if alike(w) != alike(g)), ("", ""))
    print(f"{page.name}:{command.line}: $ {command.text}")
    print(f"exit status {status}; the first line that differs, on the page and from the program:")
    print(want)
    print(other)


def run(command, folder, env):
    done = subprocess.run(["/bin/sh", "-c", command.text], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=120)
    return done.stdout.decode("utf-8", "replace").rstrip("\n").split("\n") if done.stdout else [], done.returncode


def main():
    build, page = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    update, skipped, wrong = "--update" in sys.argv, 0, []
    with tempfile.TemporaryDirectory() as name:
        env = prepare(pathlib.Path(name), build)
        for command in commands(page):
            if os.environ.get("NO_MPI") and re.search(r"\bmpirun\b", command.text):
                skipped += 1
                continue
            got, status = run(command, name, env)
            while command.output and not command.output[-1]:
                command.output.pop()
            fails = "|" not in command.text and any(line.startswith(MESSAGE) for line in command.output)
            if matches(command.output, got) and (status != 0) == fails:
                continue
            wrong.append((command, got))
            difference(page, command, got, status)
    if update and wrong:
        lines = page.read_text().split("\n")
        for command, got in reversed(wrong):
            lines[command.end : command.end + len(command.output)] = [" " * command.indent + line if line else line for line in got]
        page.write_text("\n".join(lines))
    if skipped:
        print(f"left out: {skipped} of its commands, which need mpirun")
    return bool(wrong) and not update


if __name__ == "__main__":
    sys.exit(main())
