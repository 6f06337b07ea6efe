#!/usr/bin/env python3
"""What GET /metrics tells, in the text form of Prometheus: metrics.py PORT MODEL RANKS. Before and after a few texts."""
import math
import re
import sys
import time

from calls import ask, call, expect

LINE = re.compile(r'tpc_([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)')


def page():
    """Types by name, and values by name and labels. Every line is read, and each name has a help and a type before its values."""
    status, text = call("GET", "/metrics")
    expect("status", status, 200)
    types, helps, values = {}, set(), {}
    for line in text.decode().splitlines():
        words = line.split(" ", 3)
        if words[:2] == ["#", "HELP"]:
            helps.add(words[2][4:])
        elif words[:2] == ["#", "TYPE"]:
            types[words[2][4:]] = words[3]
        else:
            found = LINE.fullmatch(line)
            expect(f"line {line}", found is not None, True)
            name, labels, value = found.groups()
            base = re.sub("_(bucket|sum|count)$", "", name)
            base = base if types.get(base) == "histogram" else name
            expect(f"a help and a type of {name}", (base in helps, base in types), (True, True))
            expect(f"{line}: once", (name, labels) in values, False)
            values[name, labels] = float(value)
    return types, values


def histogram(types, values, name):
    """Its counts by limit, which grow; their sum and number."""
    expect(f"type of {name}", types[name], "histogram")
    at = [(float(labels[4:-1].replace("+Inf", "inf")), n) for (key, labels), n in values.items() if key == f"{name}_bucket"]
    expect(f"{name}: limits and counts grow", (at, at[-1][0]), (sorted(at), math.inf))
    expect(f"{name}: counts grow", [n for _, n in at], sorted(n for _, n in at))
    expect(f"{name}: all are counted", at[-1][1], values[f"{name}_count", None])
    return values[f"{name}_sum", None], values[f"{name}_count", None]


types, values = page()
info = [labels for (name, labels) in values if name == "model_info"]
model = sys.argv[2].replace("\\", "\\\\").replace('"', '\\"')
expect("the model", [label.rsplit(",", 1)[0] for label in info], [f'model="{model}",ranks="{sys.argv[3]}"'])
expect("the build", [bool(re.fullmatch(r'version="[0-9.]+"', labels)) for (name, labels) in values if name == "build_info"], [True])
before = [histogram(types, values, name) for name in ("first_token_seconds", "next_token_seconds")]
runs = lambda values: values["step_seconds_total", None] + values["prompt_seconds_total", None]
TEXTS, TOKENS = 4, 9
spent = -runs(values)
began = time.monotonic()
for seed in range(TEXTS):
    ask(prompt="abcabcabcabc", max_tokens=TOKENS, temperature=0, seed=seed)
wall = time.monotonic() - began
types, values = page()
after = [histogram(types, values, name) for name in ("first_token_seconds", "next_token_seconds")]
expect("first and further tokens", [b[1] - a[1] for a, b in zip(before, after)], [TEXTS, TEXTS * (TOKENS - 1)])
spent += runs(values)
seconds = sum(b[0] - a[0] for a, b in zip(before, after))
expect(f"{seconds} s of {wall} s, of which {spent} s in runs", 0 < spent <= wall and 0 < seconds <= wall, True)
drafted, kept = values["drafted_tokens_total", None], values["drafted_tokens_kept_total", None]
expect(f"{kept} of {drafted} drafted tokens", 0 < kept <= drafted, True)
