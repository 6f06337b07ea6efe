"""prices.py BUILD SOURCE [--update]: compares what schemas/prices.def says with the schema of a machine profile, the reference profile and
the table in docs/calibrate.md; --update writes them anew."""
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
MOST_PRICES = 18
HEAD = """{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "title": "tpc machine profile",
  "description": "The numbers of the cost model of tpc-shard: a file for --machine, as tpc-run --calibrate writes it; made from schemas/prices.def.",
  "type": "object",
"""


def rows(build):
    text = subprocess.run([os.path.join(build, "tests", "prices")], capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in text.splitlines()]


def meaning(kind, says):
    return f"`{says}` of all ranks of a machine at once" if kind == "together" else says


def schema(table):
    numbers = [key for kind, key, *_ in table if kind != "about"]
    properties = []
    for kind, key, unit, _, says in table:
        if kind == "about":
            limits = {"type": unit}
        else:
            words, limit = UNITS[unit]
            limits = {"description": f"{words}: {meaning(kind, says)}" if words else says, "type": "number", **limit}
        properties.append(f"    {json.dumps(key)}: {json.dumps({'description': says, **limits})}")
    required = json.dumps(["version", *numbers])
    return HEAD + f'  "required": {required},\n  "additionalProperties": false,\n  "properties": {{\n' + ",\n".join(properties) + "\n  }\n}\n"


def reference(table, version):
    numbers = [f'  "{key}": {value}' for kind, key, _, value, _ in table if kind != "about"]
    return "{\n" + ",\n".join(['  "name": "reference"', f'  "version": {version}', *numbers]) + "\n}\n"


def page(table, old):
    head, rest = old.split(BEGIN)
    text = "\n| key | | in the reference | |\n|---|---|---|---|\n"
    for kind, key, unit, value, says in table:
        if kind != "about":
            text += f"| `{key}` | {UNITS[unit][0]} | {float(value):.4g} | {meaning(kind, says)} |\n"
    return head + BEGIN + text + "\n" + END + rest.split(END)[1]


def main():
    build, source = sys.argv[1:3]
    table, failed = rows(build), False
    prices = sum(kind == "price" for kind, *_ in table)
    if prices > MOST_PRICES:
        print(f"{prices} prices of kernels, expected at most {MOST_PRICES}: what a kernel's own description says is not measured")
        failed = True
    with open(os.path.join(source, "schemas/machines/reference.json"), encoding="utf-8") as f:
        version = json.load(f)["version"]
    made = {
        "schemas/machine.schema.json": lambda old: schema(table),
        "schemas/machines/reference.json": lambda old: reference(table, version),
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
