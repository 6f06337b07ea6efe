#!/usr/bin/env python3
"""What copies of popular experts would gain, from a machine's speeds:  hot.py [MACHINE.json]

One mixture of --experts experts, of which a row takes --k, on ranks that are a machine each. Routers choose expert e with a weight of
1 / e^skew. An expert takes a rank the time of reading its matrices, or of its rows' operations, whichever is longer. Times of the slowest
rank in ms, means of --draws drawn routings:

  by width      each rank has a part of every expert, and all rows are gathered and their sums scattered
  travel        each rank has its share of the experts, and rows travel
  copies        the same; each rank holds one expert more: copies of the most popular ones, whose rows are dealt evenly to their holders

Copies know the popularity, as a profile would tell it; the plan without copies does not."""
import argparse
import json
import os
import random
import statistics

HERE = os.path.dirname(os.path.abspath(__file__))


def drawn(a, skew, rows, dice):
    """The number of rows of each expert; a row takes k different ones."""
    count = [0] * a.experts
    weight = [1 / (e + 1) ** skew for e in range(a.experts)]
    for _ in range(rows):  # the k smallest of exponential times: experts without replacement
        times = sorted(range(a.experts), key=lambda e: dice.expovariate(1) / weight[e])
        for e in times[:a.k]:
            count[e] += 1
    return count


def seconds(a, m, rows, part=1.0):
    if rows == 0:
        return 0.0
    numbers = 3 * a.hidden * a.inner * part
    return max(4 * numbers / m["memory_bandwidth"], 2 * numbers * rows / m["flops"])


def slowest(a, m, count, holders):
    time = [0.0] * a.ranks
    for e, ranks in enumerate(holders):
        for r in ranks:
            time[r] += seconds(a, m, count[e] / len(ranks))
    return max(time)


def dealt(a):
    """In turn, in an order that says nothing of popularity."""
    order = random.Random(1).sample(range(a.experts), a.experts)
    return [[order[e] % a.ranks] for e in range(a.experts)]


def with_copies(a, m, mean):
    """One more expert for each rank: the next copy is the one that makes the slowest rank faster by most."""
    holders, room = dealt(a), set(range(a.ranks))
    while room:
        tries = [(slowest(a, m, mean, holders[:e] + [holders[e] + [r]] + holders[e + 1:]), e, r)
                 for e in range(a.experts) for r in room if r not in holders[e]]
        best, e, r = min(tries)
        if best >= slowest(a, m, mean, holders):
            break
        holders[e] = holders[e] + [r]
        room.remove(r)
    return holders


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("machine", nargs="?", default=f"{HERE}/../../schemas/machines/reference.json")
    p.add_argument("--experts", type=int, default=32)
    p.add_argument("--k", type=int, default=4)
    p.add_argument("--hidden", type=int, default=1024)
    p.add_argument("--inner", type=int, default=1024)
    p.add_argument("--link", type=float, default=0.5e9, help="bytes per second")
    p.add_argument("--draws", type=int, default=5)
    a = p.parse_args()
    with open(a.machine, encoding="utf-8") as f:
        m = json.load(f)
    print("| ranks | tokens | skew | by width | travel | copies |\n|---|---|---|---|---|---|")
    for a.ranks in (2, 4, 8):
        for rows in (1, 64, 2048):
            for skew in (0, 0.5, 1):
                dice = random.Random(0)
                counts = [drawn(a, skew, rows, dice) for _ in range(a.draws)]
                mean = [statistics.mean(c[e] for c in counts) for e in range(a.experts)]
                message = 4 * a.hidden * rows / a.link * (a.ranks - 1) / a.ranks
                goes = 1 - (1 - a.k / a.experts) ** (a.experts / a.ranks)
                plain, copied = dealt(a), with_copies(a, m, mean)
                width = statistics.mean(sum(seconds(a, m, n, 1 / a.ranks) for n in c) for c in counts) + 2 * message
                sent = 2 * message * goes / a.ranks
                times = [width] + [statistics.mean(slowest(a, m, c, held) for c in counts) + sent for held in (plain, copied)]
                print(f"| {a.ranks} | {rows} | {skew} | " + " | ".join(f"{1e3 * t:.4g}" for t in times) + " |")


if __name__ == "__main__":
    main()
