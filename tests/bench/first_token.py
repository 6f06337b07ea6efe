#!/usr/bin/env python3
"""Measure what the prefix cache of tpc-run --serve saves: first_token.py TPC-RUN MODEL [OPTION...], with a tokenizer.json beside MODEL whose tokens are bytes.

Prints the least times until the first token of ROUNDS (3) questions behind PREFIX (1500) new tokens, and of a second question of other QUESTION (24) tokens behind the
same ones; with the cache, then without it. All take turns, so that a busy machine disturbs them alike.
"""
import json
import os
import random
import re
import subprocess
import sys
import time
import urllib.request

ROUNDS, PREFIX, QUESTION = (int(os.environ.get(k, v)) for k, v in (("ROUNDS", 3), ("PREFIX", 1500), ("QUESTION", 24)))
draw = random.Random(1)


def text(n):
    return "".join(draw.choice("etaoin shrdlu") for _ in range(n))


def start(*more):
    server = subprocess.Popen([*sys.argv[1:], "--serve", "--port", "0", *more], stderr=subprocess.PIPE, text=True)
    line = ""
    while "serving" not in line:
        line = server.stderr.readline()
        if not line:
            sys.exit("the server did not start")
    return server, re.search(r"http://[^/]*:(\d+)/", line).group(1)


def ask(port, prompt):
    """Milliseconds until the first token, and how many tokens of the prompt were stored."""
    body = json.dumps({"prompt": prompt, "max_tokens": 1, "temperature": 0}).encode()
    began = time.time()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", body) as answer:
        reply = json.load(answer)
    return 1e3 * (time.time() - began), reply["usage"]["prompt_tokens_details"]["cached_tokens"]


servers = {"with": start(), "without": start("--prefix-cache", "0")}
times = {name: ([], []) for name in servers}
for _, port in servers.values():
    ask(port, text(200))
for _ in range(ROUNDS):
    prefix = text(PREFIX)
    for name, (_, port) in servers.items():
        for of in times[name]:
            of.append(ask(port, prefix + text(QUESTION)))
for server, _ in servers.values():
    server.terminate()
    server.wait()
for name, (first, second) in times.items():
    a, b = min(first), min(second)
    print(f"{name:7}  first question {a[0]:8.1f} ms   second {b[0]:8.1f} ms, {b[1]} tokens stored   ratio {b[0] / a[0]:.3f}")
