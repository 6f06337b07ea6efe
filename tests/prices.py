"""prices.py BUILD SOURCE [--update]: compares what schemas/prices.def says with the schema of a machine profile, the reference profile, the
profile that fuzzing starts from, and the table in docs/calibrate.md; --update writes them anew."""
import json
import os
import subprocess
import sys

ABOVE_ZERO = {"exclusiveMinimum": 0}
FROM_ZERO = {"minimum": 0}
UNITS = {
    "PRICE_OPERATIONS": ("operations per second", ABOVE_ZERO), "PRICE_BYTES": ("bytes per second", ABOVE_ZERO),
    "PRICE_SECONDS": ("seconds", FROM_ZERO), "PRICE_SPEED": ("times `flops`", ABOVE_ZERO),
    "PRICE_LANES": ("numbers", ABOVE_ZERO), "PRICE_COUNT": ("", ABOVE_ZERO), "PRICE_TIMES": ("", FROM_ZERO),
}
BEGIN, END = "<!-- numbers: tests/prices.py -->\n", "<!-- end -->\n"
MOST_PRICES, MOST_LEVELS, MOST_RANKS = 18, 7, 4096
SPEEDS = "of each rank, relative to the numbers of this file; absent: all ranks are alike"
MEMORY = "bytes that each rank may hold, the limits of plans without --memory; absent: no limit"
LEVELS = "links beyond the first level, from the inside out"
HEAD = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "tpc machine profile",
  "description": "The numbers of the cost model of tpc-shard: a file for --machine, as tpc-run --calibrate writes it; made from schemas/prices.def.",
  "type": "object",
"""


def rows(build):
    """The rows, and the version of their list."""
    text = subprocess.run([os.path.join(build, "tests", "prices")], capture_output=True, text=True, check=True).stdout
    every = [line.split("\t") for line in text.splitlines()]
    return [row for row in every if row[0] != "version"], next(int(row[3]) for row in every if row[0] == "version")


def meaning(kind, says):
    return f"`{says}` of all ranks of a machine at once" if kind == "together" else says


def number(kind, unit, says):
    words, limit = UNITS[unit]
    return {"description": f"{words}: {meaning(kind, says)}" if words else says, "type": "number", **limit}


# A profile has the numbers of its first level, and a list of those of the others.
def schema(table):
    numbers = [key for kind, key, *_ in table if kind not in ("about", "level")]
    properties = []
    for kind, key, unit, _, says in table:
        if kind != "level":
            of = {"description": says, "type": unit} if kind == "about" else number(kind, unit, says)
            properties.append(f"    {json.dumps(key)}: {json.dumps(of)}")
    link = {key: number(kind, unit, says) for kind, key, unit, _, says in table if kind in ("level", "link")}
    levels = {"description": LEVELS, "type": "array", "maxItems": MOST_LEVELS,
              "items": {"type": "object", "required": list(link), "additionalProperties": False, "properties": link}}
    properties.append(f'    "levels": {json.dumps(levels)}')
    speeds = {"description": SPEEDS, "type": "array", "minItems": 1, "maxItems": MOST_RANKS, "items": {"type": "number", "minimum": 0.001, "maximum": 1000}}
    properties.append(f'    "speeds": {json.dumps(speeds)}')
    memory = {"description": MEMORY, "type": "array", "minItems": 1, "maxItems": MOST_RANKS, "items": {"type": "number", "minimum": 1, "maximum": 10**18}}
    properties.append(f'    "memory": {json.dumps(memory)}')
    required = json.dumps(["version", *numbers])
    return HEAD + f'  "required": {required},\n  "additionalProperties": false,\n  "properties": {{\n' + ",\n".join(properties) + "\n  }\n}\n"


def reference(table, version):
    numbers = [f'  "{key}": {value}' for kind, key, _, value, _ in table if kind not in ("about", "level")]
    return "{\n" + ",\n".join(['  "name": "reference"', f'  "version": {version}', *numbers]) + "\n}\n"


def page(table, old):
    head, rest = old.split(BEGIN)
    text = "\n| key | | in the reference | |\n|---|---|---|---|\n"
    for kind, key, unit, value, says in table:
        if kind != "about":
            told = f"{float(value):.4g}" if kind != "level" else "-"
            text += f"| `{key}` | {UNITS[unit][0]} | {told} | {'of `levels`: ' if kind == 'level' else ''}{meaning(kind, says)} |\n"
    return head + BEGIN + text + "\n" + END + rest.split(END)[1]


def main():
    build, source = sys.argv[1:3]
    (table, version), failed = rows(build), False
    prices = sum(kind == "price" for kind, *_ in table)
    if prices > MOST_PRICES:
        print(f"{prices} prices of kernels, expected at most {MOST_PRICES}: what a kernel's own description says is not measured")
        failed = True
    made = {
        "schemas/machine.schema.json": lambda old: schema(table),
        "schemas/machines/reference.json": lambda old: reference(table, version),
        "tests/fuzz/corpus/plan/machine.txt": lambda old: "machine" + reference(table, version),
        "docs/calibrate.md": lambda old: page(table, old),
    }
    for name, make in made.items():
        path = os.path.join(source, name)
        with open(path, encoding="utf-8") as f:
            old = f.read()
        new = make(old)
        if new == old:
            continue
        if "--update" in sys.argv:
            with open(path, "w", encoding="utf-8") as f:
                f.write(new)
        else:
            print(f"{name} is not what schemas/prices.def says; UPDATE=--update sh tests/prices.tap writes it")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
