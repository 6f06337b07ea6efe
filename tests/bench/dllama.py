#!/usr/bin/env python3
"""A llama for distributed-llama, of the sizes of `samples/export.py OUT llama --size bench`, with made-up weights:  dllama.py OUT

Writes OUT/model.m, with weights of Q40, and OUT/tokenizer.t, in which each byte is a token. Needs numpy.
"""
import os
import struct
import sys

import numpy as np

DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCABULARY, POSITIONS = 1024, 2816, 16, 16, 4, 32000, 2048
F32, Q40, LLAMA, SILU = 0, 2, 0xABCD00, 1
# the numbers that stand for version, arch_type, dim and so on
MODEL = {0: 0, 1: LLAMA, 2: DIM, 3: HIDDEN, 4: LAYERS, 5: HEADS, 6: KV_HEADS, 7: 0, 8: 0, 9: VOCABULARY, 10: POSITIONS, 11: SILU,
         12: 10000, 13: Q40, 20: 6}
TOKENIZER = {0: 1, 1: VOCABULARY, 2: 8, 3: VOCABULARY - 2, 9: 1, 10: 1}


def header(magic, pairs):
    numbers = [n for pair in pairs.items() for n in pair]
    return struct.pack(f"{2 + len(numbers)}i", magic, 8 + 4 * len(numbers), *numbers)


def floats(file, n, value=None):
    file.write((random.standard_normal(n, np.float32) * 0.02 if value is None else np.full(n, value, np.float32)).tobytes())


def blocks(file, n):
    """Blocks of 32: a scale of f16, and 4 bits each."""
    block = np.zeros(n // 32, np.dtype([("scale", np.float16), ("codes", np.uint8, 16)]))
    block["scale"] = 0.008
    block["codes"] = random.integers(0, 256, (n // 32, 16), np.uint8)
    file.write(block.tobytes())


out = sys.argv[1]
random = np.random.default_rng(1)
os.makedirs(out, exist_ok=True)
with open(os.path.join(out, "model.m"), "wb") as f:
    f.write(header(0xA00ABCD, MODEL))
    floats(f, VOCABULARY * DIM)
    kv = DIM // HEADS * KV_HEADS
    for _ in range(LAYERS):
        for rows, columns in ((DIM, DIM), (kv, DIM), (kv, DIM), (DIM, DIM), (HIDDEN, DIM), (DIM, HIDDEN), (HIDDEN, DIM)):
            blocks(f, rows * columns)
        floats(f, DIM, 1)
        floats(f, DIM, 1)
    floats(f, DIM, 1)
    blocks(f, VOCABULARY * DIM)
with open(os.path.join(out, "tokenizer.t"), "wb") as f:
    f.write(header(0x567124, TOKENIZER) + struct.pack("i", VOCABULARY - 1))
    for i in range(VOCABULARY):
        word = bytes([i + 1]) if i < 255 else b"\xff%05d" % i
        f.write(struct.pack("fI", 0, len(word)) + word)
