#!/usr/bin/env python3
"""Several clients of a server at once, beside other programs: serve.py TPC-RUN MODEL [OPTION...], a tokenizer.json beside MODEL.

All programs stay loaded and take turns, ROUNDS (3) times, so that a busy machine disturbs them alike; `chrt -f 10` in front of the script is for all. Prints for each number of CLIENTS ("1 4 8
16") tokens/s of all together and milliseconds until the last of them has its first token, both the best of all turns, and our tokens/s over
theirs. Prompts are PROMPT (32) token ids, another first one for each client and turn, so that no cache knows them; TOKENS (64) are decoded.
  THREADS (1)    of every program; tpc-run gets them as --threads, and --slots as many as the most clients
  LLAMA, GGUF    llama-server and its model, as gguf_of.py and llama-quantize make it of the same file
  GENAI          a folder for ONNX Runtime GenAI, as genai_of.py makes it. It has no server: its numbers are of one batch, whose rows begin together
What is missing is left out, and a line says why.
"""
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request

ROUNDS, PROMPT, TOKENS, THREADS = (int(os.environ.get(k, v)) for k, v in (("ROUNDS", 3), ("PROMPT", 32), ("TOKENS", 64), ("THREADS", 1)))
CLIENTS = [int(n) for n in os.environ.get("CLIENTS", "1 4 8 16").split()]
START = 300     # seconds for a model to be loaded
turn = 0


def prompts(n):
    """Ids of n clients."""
    global turn
    turn += 1
    return [[100 + (turn * 17 + 7 * c + i * i) % 150 for i in range(PROMPT)] for c in range(n)]


class Server:
    """A server that talks as OpenAI's does."""

    def __init__(self, name, command, port, extra):
        self.name, self.extra, self.port = name, extra, port
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        self.port = port or self.told_port()
        self.drain = threading.Thread(target=self.process.stderr.read, daemon=True)
        self.drain.start()
        self.wait()

    def told_port(self):
        for line in self.process.stderr:
            found = re.search(r"http://[^/]*:(\d+)/", line)
            if found:
                return int(found.group(1))
        raise RuntimeError("it did not start")

    def wait(self):
        end = time.time() + START
        while time.time() < end and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).close()
                return
            except OSError:
                time.sleep(0.2)
        raise RuntimeError("it did not start")

    def ask(self, prompt, tokens):
        body = json.dumps({"model": "any", "prompt": prompt, "max_tokens": tokens, "temperature": 0, **self.extra}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)["usage"]["completion_tokens"]

    def crowd(self, n, tokens):
        """Seconds, and tokens that came."""
        with concurrent.futures.ThreadPoolExecutor(n) as pool:
            asked = prompts(n)
            start = time.time()
            made = sum(pool.map(lambda p: self.ask(p, tokens), asked))
            return time.time() - start, made

    def close(self):
        self.process.terminate()
        self.process.wait()


class Batch:
    """ONNX Runtime GenAI: rows that begin together."""
    name = "GenAI (a batch)"

    def __init__(self, folder):
        import numpy  # both: where they are installed
        import onnxruntime_genai
        self.module, self.numpy, self.model = onnxruntime_genai, numpy, onnxruntime_genai.Model(folder)

    def crowd(self, n, tokens):
        asked = prompts(n)
        start = time.time()
        params = self.module.GeneratorParams(self.model)
        params.set_search_options(max_length=PROMPT + tokens, batch_size=n, do_sample=False)
        generator = self.module.Generator(self.model, params)
        generator.append_tokens(self.numpy.array(asked, dtype="int32"))
        steps = 0
        while not generator.is_done():
            generator.generate_next_token()
            steps += 1
        return time.time() - start, steps * n

    def close(self):
        del self.model


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_tpc():
    most = str(max(CLIENTS))
    return Server("tpc", [*sys.argv[1:], "--threads", str(THREADS), "--serve", "--port", "0", "--slots", most, "--prefix-cache", "0"], 0, {})


def start_llama():
    program, model, most = os.environ.get("LLAMA", "llama-server"), os.environ.get("GGUF"), max(CLIENTS)
    if not shutil.which(program):
        raise RuntimeError(f"there is no {program} (LLAMA)")
    if not model:
        raise RuntimeError("no model (GGUF)")
    port = free_port()
    threads = ["-t", str(THREADS), "-tb", str(THREADS)]
    room = ["-np", str(most), "-c", str(most * 2 * (PROMPT + TOKENS)), "--no-kv-unified"]
    return Server("llama.cpp", [program, "-m", model, *threads, *room, "--port", str(port), "--no-webui"], port, {"ignore_eos": True, "cache_prompt": False})


def start_genai():
    folder = os.environ.get("GENAI")
    if not folder:
        raise RuntimeError("no folder (GENAI)")
    return Batch(folder)


programs = []
for name, begin in ("tpc", start_tpc), ("llama.cpp", start_llama), ("GenAI", start_genai):
    try:
        programs.append(begin())
    except (RuntimeError, ImportError) as why:
        if name == "tpc":
            sys.exit(f"{name}: {why}")
        print(f"without {name}: {why}")
rates = {(p.name, n): 0.0 for p in programs for n in CLIENTS}
first = {key: float("inf") for key in rates}
try:
    for p in programs:
        p.crowd(1, 2)
    for _ in range(ROUNDS):
        for n in CLIENTS:
            for p in programs:
                first[p.name, n] = min(first[p.name, n], 1e3 * p.crowd(n, 1)[0])
                seconds, made = p.crowd(n, TOKENS)
                if made != n * TOKENS:
                    raise RuntimeError(f"{p.name}: {made} tokens for {n} clients, not {n * TOKENS}")
                rates[p.name, n] = max(rates[p.name, n], made / seconds)
finally:
    for p in programs:
        p.close()
others = [p.name for p in programs[1:]]
print("| clients | " + " | ".join(f"{p.name}: tokens/s | first token, ms" for p in programs) + "".join(f" | over {o}" for o in others) + " |")
print("|" + "---|" * (1 + 2 * len(programs) + len(others)))
for n in CLIENTS:
    cells = " | ".join(f"{rates[p.name, n]:.1f} | {first[p.name, n]:.0f}" for p in programs)
    print(f"| {n} | {cells}" + "".join(f" | {rates['tpc', n] / rates[o, n]:.2f}" for o in others) + " |")
