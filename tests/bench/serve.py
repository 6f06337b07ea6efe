#!/usr/bin/env python3
"""Measure tpc-run --serve beside --generate: serve.py TPC-RUN MODEL [OPTION...], with a tokenizer.json beside MODEL whose tokens are bytes.

Prints the least times of ROUNDS turns: until the first token, per token after it, and tokens/s of 1 and of 8 clients. The environment sets ROUNDS (3), PROMPT (128
tokens) and TOKENS (32). Both take turns, so that a busy machine disturbs them alike.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys
import time
import urllib.request

ROUNDS, PROMPT, TOKENS = (int(os.environ.get(k, v)) for k, v in (("ROUNDS", 3), ("PROMPT", 128), ("TOKENS", 32)))
command = sys.argv[1:]
text = ("all work and no play makes a dull text " * PROMPT)[:PROMPT]


def generate():
    said = subprocess.run([*command, "--generate", str(TOKENS), "--prompt", text, "--temperature", "0"], capture_output=True, check=True).stderr.decode()
    first, step = re.search(r"first token after ([\d.]+) ms, then ([\d.]+) ms", said).groups()
    return float(first), float(step)


def ask(port):
    """Milliseconds until the first token, and per token after it: of the whole text, as a token may be no whole character."""
    def once(tokens):
        body = json.dumps({"prompt": text, "max_tokens": tokens, "temperature": 0}).encode()
        start = time.time()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", body) as answer:
            json.load(answer)
        return 1e3 * (time.time() - start)
    first = once(1)
    return first, (once(TOKENS) - first) / (TOKENS - 1)


def crowd(port, n):
    """Tokens per second of n clients at once."""
    body = json.dumps({"prompt": text, "max_tokens": TOKENS, "temperature": 0}).encode()
    def one(_):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/completions", body) as answer:
            return json.load(answer)["usage"]["completion_tokens"]
    start = time.time()
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        made = sum(pool.map(one, range(n)))
    return made / (time.time() - start)


server = subprocess.Popen([*command, "--serve", "--port", "0"], stderr=subprocess.PIPE, text=True)
line = ""
while "serving" not in line:
    line = server.stderr.readline()
    if not line:
        sys.exit("the server did not start")
port = re.search(r"http://[^/]*:(\d+)/", line).group(1)
ask(port)
plain, served, crowds = [], [], {1: [], 8: []}
for _ in range(ROUNDS):
    plain.append(generate())
    served.append(ask(port))
    for n, rates in crowds.items():
        rates.append(crowd(port, n))
server.terminate()
server.wait()
for name, times in ("--generate", plain), ("--serve", served):
    print(f"{name:10}  first token {min(t[0] for t in times):8.1f} ms   step {min(t[1] for t in times):7.2f} ms")
for n, rates in crowds.items():
    print(f"{n} client{'s' if n > 1 else ''}: {max(rates):.1f} tokens/s")
