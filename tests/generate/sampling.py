#!/usr/bin/env python3
"""What tests/sampling.tap compares draws with: the probabilities of tokens, as transformers' generate() defines them.

    sampling.py make DIR                   writes scores.graph, whose logits are rows of a table, and ids.npy, ROWS equal prompts
    sampling.py check TOKENS [NAME=X ...]  reads a token per line: are they distributed so, by chi-square, and is none drawn that may not be?
    sampling.py made TOKENS NAME=X ...     reads a row of tokens after token 1, with seed 3, of the table by token modulo 8: are they those?
"""
import math
import random
import struct
import sys

import sampler

ROWS, TOKENS = 1500, 300
PROMPT = (1, 7, 7)


def table():
    """Scores with many that are equal, in no order."""
    draw = random.Random(3)
    return [[round(4 * draw.gauss(0, 2)) / 4 for _ in range(TOKENS)] for _ in range(8)]


def make(folder):
    rows = ",\n".join(", ".join(f"{x:g}" for x in row) for row in table())
    with open(f"{folder}/scores.graph", "w") as f:
        f.write(f"graph scores {{\n  opset 23\n  dim B >= 1\n  dim S >= 1\n  input ids: i64[B, S]\n  const above: f32[8, {TOKENS}] = [{rows}]\n"
                "  node first: logits: ? = Gather(above, ids)\n  output logits\n}\n")
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({ROWS}, {len(PROMPT)}), }}".encode()
    head += b" " * (117 - len(head)) + b"\n"
    with open(f"{folder}/ids.npy", "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + struct.pack(f"<{ROWS * len(PROMPT)}q", *PROMPT * ROWS))


def probabilities(temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0):
    score = list(table()[PROMPT[-1]])
    for t in set(PROMPT):
        score[t] = score[t] / repetition_penalty if score[t] > 0 else score[t] * repetition_penalty
    order = sorted(range(TOKENS), key=lambda t: (-score[t], t))[:int(top_k) or TOKENS]
    weight = {t: math.exp((score[t] - score[order[0]]) / temperature) for t in order}
    total, kept, before = sum(weight.values()), [], 0.0
    for t in order:
        if kept and (before >= top_p * total or weight[t] < min_p):
            break
        kept.append(t)
        before += weight[t]
    return {t: weight[t] / before for t in kept}


def check(tokens, settings):
    p = probabilities(**settings)
    count = {}
    for t in tokens:
        count[t] = count.get(t, 0) + 1
    wrong = sorted(set(count) - set(p))
    if wrong or len(tokens) != ROWS:
        sys.exit(f"{len(tokens)} tokens, of which these have no probability: {wrong}")
    square, bins, rest, rest_found = 0.0, 0, 0.0, 0
    for t, x in p.items():
        if x * ROWS < 5:
            rest, rest_found = rest + x * ROWS, rest_found + count.get(t, 0)
            continue
        square, bins = square + (count.get(t, 0) - x * ROWS) ** 2 / (x * ROWS), bins + 1
    if rest >= 5:
        square, bins = square + (rest_found - rest) ** 2 / rest, bins + 1
    limit = bins - 1 + 4 * math.sqrt(2 * bins)
    print(f"{len(p)} tokens, chi-square {square:.1f} of {bins} bins, at most {limit:.1f}")
    if square > limit:
        sys.exit(1)


def made(tokens, temperature, top_k=0.0, **penalties):
    rows, wanted = table(), []
    for position in range(1, len(tokens) + 1):
        last = wanted[-1] if wanted else 1
        scores = sampler.adjusted(rows[last % 8], [1], wanted, **{k.split("_")[0]: x for k, x in penalties.items()})
        wanted.append(sampler.pick(scores, position, temperature, 3, top_k=int(top_k)))
    if tokens != wanted or len(tokens) != 20:
        sys.exit(f"{tokens}, expected {wanted}")


def settings():
    return {k.replace("-", "_"): float(v) for k, v in (x.split("=") for x in sys.argv[3:])}


if sys.argv[1] == "make":
    make(sys.argv[2])
elif sys.argv[1] == "made":
    with open(sys.argv[2]) as f:
        made([int(t) for t in f.read().split()], **settings())
else:
    with open(sys.argv[2]) as f:
        check([int(line) for line in f], settings())
