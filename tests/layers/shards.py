#!/usr/bin/env python3
"""What every rank of a folder holds of each weight is its part of the whole, byte for byte: shards.py TPC-SHARD DIR WHOLE

WHOLE is a folder of one rank of the same model. plan.json says how which dimension is split; a rank's file, as tpc-shard --print shows it,
what lies there. Prints how many weights were cut.
"""
import json
import re
import struct
import subprocess
import sys

sys.path.insert(0, __file__.rsplit("/", 2)[0])
import splits

CONST = re.compile(r'^  const (\S+|"[^"]*"): (\w+)\[([\d, ]*)\].* = (.*?)(?: origin .*)?$')
SIZE = {"f32": 4, "i64": 8}
CODE = {"f32": "f", "i64": "q"}


def content(dtype, text):
    if text.startswith("hex"):
        return bytes.fromhex(text.split('"')[1])
    if text.startswith("file"):
        path, (offset, length) = text.split('"')[1], map(int, text.split('"')[2].split())
        with open(path, "rb") as f:
            f.seek(offset)
            return f.read(length)
    values = text.strip("[]").split(", ")
    return struct.pack("<%d%s" % (len(values), CODE[dtype]), *map(float if dtype == "f32" else int, values))


def weights(program, folder, rank):
    text = subprocess.run([program, "--print", f"{folder}/rank-{rank}.onnx"], check=True, stdout=subprocess.PIPE, text=True).stdout
    for name, dtype, dims, rest in (m.groups() for m in map(CONST.match, text.split("\n")) if m and m.group(2) in SIZE):
        sizes = [int(d) for d in dims.split(",") if d.strip()]
        yield name.strip('"'), (sizes, SIZE[dtype], content(dtype, rest) if 0 not in sizes else b"")


def cut(sizes, size, data, dim, intervals):
    """The rows of dimension dim in the intervals."""
    inner = size
    for n in sizes[dim + 1:]:
        inner *= n
    period = sizes[dim] * inner
    return b"".join(data[at + lo * inner:at + hi * inner] for at in range(0, len(data), period) for lo, hi in intervals)


def main():
    program, folder, one = sys.argv[1:]
    plan, whole = json.load(open(folder + "/plan.json")), dict(weights(program, one, 0))
    held, number = [dict(weights(program, folder, r)) for r in range(plan["tp"])], 0
    for name, w in plan["weights"].items():
        if not w["placement"].startswith("S(") or name not in whole:
            continue
        dim, split = w["placement"][2:-1].split("; ")
        sizes = whole[name][0]
        for r, weights_of in enumerate(held):
            part = cut(*whole[name], int(dim), splits.intervals(split, r, sizes[int(dim)]))
            assert weights_of[name][2] == part, f"rank {r} does not hold its part of {name}"
        number += 1
    print(number)


main()
