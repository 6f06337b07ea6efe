#!/usr/bin/env python3
"""Checks an answer of tests/bench/iopddl against the instance, by sums of its own: iopddl.py INSTANCE.json ANSWER.json [BEST]

Prints a row: nodes, edges, the best published cost, the cost of the answer, the ratio, the bound and how far the cost may be above it, the
peak of memory over the limit, seconds. An answer that takes what is not allowed, or more memory than the limit, counts as none. Exits with
1 if the solver said another cost, or a bound above the cost."""
import json
import sys

NOT_ALLOWED = 10**18


def total(problem, answer):
    """What the strategies cost; from NOT_ALLOWED on, one is not allowed."""
    nodes, edges = problem["nodes"], problem["edges"]
    cost = sum(row[x] for row, x in zip(nodes["costs"], answer))
    for (a, b), row in zip(edges["nodes"], edges["costs"]):
        cost += row[answer[a] * len(nodes["costs"][b]) + answer[b]]
    return cost


def peak(problem, answer):
    """The most memory at any time."""
    change = {}
    for interval, row, x in zip(problem["nodes"]["intervals"], problem["nodes"]["usages"], answer):
        if interval and interval[0] < interval[1]:
            change[interval[0]] = change.get(interval[0], 0) + row[x]
            change[interval[1]] = change.get(interval[1], 0) - row[x]
    most = now = 0
    for time in sorted(change):
        now += change[time]
        most = max(most, now)
    return most


def main():
    with open(sys.argv[1]) as f:
        problem = json.load(f)["problem"]
    with open(sys.argv[2]) as f:
        said = json.load(f)
    best = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    limit, answer = problem.get("usage_limit"), said["answer"]
    row = [len(problem["nodes"]["costs"]), len(problem["edges"]["nodes"]), best or "-"]
    wrong = False
    if answer is None or len(answer) != row[0] or total(problem, answer) >= NOT_ALLOWED:
        row += ["none", "-", said["bound"], "-", "-"]
    else:
        cost, most = total(problem, answer), peak(problem, answer)
        wrong = said["cost"] != cost or (said["bound"] > cost)
        fits = not limit or most <= limit
        row += [cost if fits else "none", f"{cost / best:.4f}" if best and fits else "-", said["bound"],
                "proven" if said["bound"] == cost else f"{100 * (cost - said['bound']) / max(cost, 1):.2f} %",
                f"{most / limit:.4f}" if limit else "-"]
    print("| " + " | ".join(str(x) for x in row + [f"{said['seconds']:.0f}"]) + " |")
    sys.exit(1 if wrong else 0)


main()
