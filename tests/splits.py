"""The text form of splits (docs/rank-files.md), read without tpc."""
import re

PART = re.compile(r"(whole|balanced)\(([^)]*)\)(?:/(\d+))?(?:;outer=(\d+))?(?:;inner=(\d+))?$")


def part(text, ranks, rank, size):
    """What the rank holds of one part, and the size of the part. A name stands for what is left of the dimension."""
    kind, n, group, outer, inner = PART.match(text).groups()
    group, outer, inner = (int(k or 1) for k in (group, outer, inner))
    n = int(n) if n.isdigit() else size // (outer * inner)
    if kind == "whole":
        return [(0, n)], n
    lo, hi = (r * (n // ranks) + min(r, n % ranks) for r in (rank, rank + 1))
    period = n // group * inner
    once = [(lo // group * inner, -(-hi // group) * inner)] if lo < hi else []
    return [(at * period + a, at * period + b) for at in range(outer) for a, b in once], outer * period


def intervals(split, rank, size):
    """The half-open intervals of a dimension of that size that the rank holds."""
    ranks, rest = split[1:].split(":", 1)
    if rest[0].isdigit():
        length, lists = rest.split(":")
        assert int(length) == size, split
        return [tuple(map(int, p.split("-"))) for p in lists.split("/")[rank].split(",") if p != "-"]
    held, at = [], 0
    for text in rest.split("|"):
        mine, n = part(text, int(ranks), rank, size - at)
        held += [(at + lo, at + hi) for lo, hi in mine]
        at += n
    assert at == size, split
    return held
