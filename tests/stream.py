#!/usr/bin/env python3
"""tpc-shard holds little of a model while it writes it: stream.py TPC-SHARD.

A chain of products with weights of zeros, 210 MB in holes of sparse files: external data, and inline in the message. The peak of
resident memory must stay below one weight and 64 MB, for whole weights, rows and columns.
"""
import os
import subprocess
import sys
import tempfile

SIZE, LAYERS = 2560, 8
WEIGHT = 4 * SIZE * SIZE
MOST = WEIGHT + (64 << 20)


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


# A message is a list of bytes and of numbers; a number means that many zeros.
def length(parts):
    return sum(p if isinstance(p, int) else len(p) for p in parts)


def field(number, value):
    if isinstance(value, int):
        return [varint(number << 3) + varint(value)]
    parts = [value.encode()] if isinstance(value, str) else value
    return [varint(number << 3 | 2) + varint(length(parts))] + parts


def entry(key, value):
    return field(13, field(1, key) + field(2, str(value)))


def weight(i, inline):
    head = field(1, SIZE) + field(1, SIZE) + field(2, 1) + field(8, f"w{i}")
    if inline:
        return head + field(9, [WEIGHT])
    return head + field(14, 1) + entry("location", "model.data") + entry("offset", i * WEIGHT) + entry("length", WEIGHT)


def info(name):
    rows = field(1, field(2, "rows"))
    columns = field(1, field(1, SIZE))
    return field(1, name) + field(2, field(1, field(1, 1) + field(2, rows + columns)))


def model(inline):
    graph = []
    for i in range(LAYERS):
        graph += field(1, field(1, f"x{i}") + field(1, f"w{i}") + field(2, f"x{i + 1}") + field(3, f"n{i}") + field(4, "MatMul"))
    graph += field(2, "chain")
    for i in range(LAYERS):
        graph += field(5, weight(i, inline))
    graph += field(11, info("x0")) + field(12, info(f"x{LAYERS}"))
    return field(1, 10) + field(7, graph) + field(8, field(1, "") + field(2, 23))


def write(path, parts):
    with open(path, "wb") as f:
        for part in parts:
            f.seek(part, os.SEEK_CUR) if isinstance(part, int) else f.write(part)


def peak(command):
    """Of one command, in bytes: a process of its own, for the kernel tells the maximum of all children."""
    code = "import resource, subprocess, sys; r = subprocess.call(sys.argv[1:]); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(r)"
    done = subprocess.run([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: status {done.returncode}")
    return 1024 * int(done.stdout.split()[-1])


def main():
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for inline in (False, True):
            path = os.path.join(folder, "model.onnx")
            write(path, model(inline))
            with open(os.path.join(folder, "model.data"), "wb") as f:
                f.truncate(0 if inline else LAYERS * WEIGHT)
            for ranks in (1, 3):
                found = peak([sys.argv[1], path, "--tp", str(ranks), "-q", "--force", "-o", os.path.join(folder, "out")])
                print(f"{'inline' if inline else 'external'}, {ranks} ranks: peak of {found >> 20} MiB, at most {MOST >> 20}")
                bad |= found > MOST
    sys.exit(bad)


main()
