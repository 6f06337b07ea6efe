"""compatibility.py BUILD PAGE [--update]: compares the table of operators in docs/compatibility.md with what tpc-shard --list-ops and the
rules of tests/selfcheck say; --update writes it anew."""
import os
import re
import subprocess
import sys

BODIES = "its bodies run on every rank"
BEGIN, END = "<!-- operators: tests/compatibility.py -->\n", "<!-- end -->\n"


def run(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()


def sample_rules(build):
    """The rule of each op's first sample; a rule of more than one line's width is cut to its operands."""
    rules = {}
    for line in run(os.path.join(build, "tests", "selfcheck"), "--rules"):
        op, rule = line.split("\t")
        rules.setdefault(op, re.split(r"  ", rule)[0])
    return rules


def rows(build):
    rules = sample_rules(build)
    for line in run(os.path.join(build, "tpc-shard"), "--list-ops")[1:]:
        domain, op, rest = line.split(None, 2)
        if domain == "tpc":
            continue
        if m := re.match(r"(<? ?\d+|all)\s+(composed of|upgraded to) (.*)", rest):
            since = {"all": "all", "<": f"below {m[1][1:].strip()}"}.get(m[1] if m[1] == "all" else m[1][0], m[1])
            yield domain, op, since, f"{m[2]} {m[3]}"
            continue
        since, rule, kernel = rest.split()
        gone = kernel == "none" or op in ("CastLike", "Constant", "Shape", "Size")
        none = "gone before a plan is made" if gone else "replicated"
        split = BODIES if op in ("If", "Loop", "Scan") else f"`{rules[f'{domain}::{op}']}`" if f"{domain}::{op}" in rules else none
        yield domain, op, since, split.replace("|", "\\|")


def table(build):
    text, last = "", None
    for domain, op, since, split in sorted(rows(build), key=lambda r: (r[0], r[1].lower(), r[2].startswith("below"))):
        if domain != last:
            text += f"\n### {domain}\n\n| operator | opset | how it is split |\n|---|---|---|\n"
            last = domain
        text += f"| {op} | {since} | {split} |\n"
    return text + "\n"


def main():
    build, page = sys.argv[1:3]
    text = open(page).read()
    head, rest = text.split(BEGIN)
    new = head + BEGIN + table(build) + END + rest.split(END)[1]
    if "--update" in sys.argv:
        open(page, "w").write(new)
    elif new != text:
        print(f"{page} is not what the table of ops says; UPDATE=--update sh tests/compatibility.tap writes it")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
