#!/usr/bin/env python3
"""Mutations of requests to tpc-run --serve. Needs no package.

mutate_requests.py SOURCE BUILD WORK FROM-TO SEED

One server of two ranks gets all of them, each on a connection of its own: bodies of completions and chats with changed JSON, and requests with changed lines
and bytes. Each gets one of the expected statuses with a body of JSON, or a closed connection where its framing is broken, within seconds. After
each the server answers /health; at the end no row is taken, and it leaves with status 0 and without a word of a sanitizer.
What breaks this stays in WORK. A request depends on SEED and its number alone.
"""
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

from mutate import other_bytes
from mutate_files import json_mutant

SECONDS = 60
STATUSES = {200, 204, 400, 403, 404, 405, 408, 411, 413, 414, 415, 417, 426, 429, 431, 501, 503, 505}
BODIES = [
    {"prompt": "Hello", "max_tokens": 4},
    {"prompt": ["a", "b c"], "max_tokens": 3, "n": 2, "stop": ["x", "yz"], "temperature": 0.9, "top_p": 0.8, "top_k": 5, "min_p": 0.01, "seed": 7},
    {"prompt": [72, 101, 108], "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}, "repetition_penalty": 1.2},
    {"prompt": [[1, 2], [3]], "max_tokens": 2, "logprobs": None, "echo": False, "best_of": 1, "response_format": {"type": "text"}, "logit_bias": {},
     "add_special_tokens": True, "user": "me", "presence_penalty": 0, "frequency_penalty": 0, "suffix": None},
    {"prompt": "a", "max_tokens": 6, "grammar": "root ::= [a-z]{1,3} (x | \"no\"?)*\nx ::= \"(\" x \")\" | [^a-c] # so\n", "seed": 3},
    {"prompt": "a", "max_tokens": 20, "json_schema": {"$defs": {"n": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"$ref": "#/$defs/n"}, "maxItems": 2}]}},
     "type": "object", "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "string", "pattern": "^[a-c]{2,5}$"}, "c": {"type": "integer", "minimum": -5}},
     "required": ["b"], "additionalProperties": {"enum": ["x", 1, None]}}},
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
     {"role": "tool", "content": "5"}], "max_tokens": 20, "tool_choice": "required", "parallel_tool_calls": False, "stream": True,
     "tools": [{"type": "function", "function": {"name": "f", "strict": True, "parameters": {"type": "object", "properties": {"x": {"type": "number", "maximum": 3}}}}}]},
]
TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}{#- tools, <tool_call> -#}"
LINES = [b"Content-Length: -1", b"Content-Length: 99999999999999999999", b"Content-Length: 1\r\nContent-Length: 2", b"Transfer-Encoding: chunked",
         b"Transfer-Encoding: gzip", b"Expect: 100-continue", b"Connection: close", b"Host: other.example", b"Origin: http://other.example",
         b"X: " + b"y" * 20000, b"X\x00: y", b": y", b"no colon", b"Content-Type: text/plain", b" folded"]
STARTS = [b"GET /v1/models HTTP/1.1", b"GET /metrics HTTP/1.0", b"OPTIONS /v1/completions HTTP/1.1", b"POST /v1/chat/completions HTTP/1.1",
          b"POST /v1/completions HTTP/9.9", b"PUT /v1/completions HTTP/1.1", b"POST /../../etc/passwd HTTP/1.1", b"GET http://other/ HTTP/1.1",
          b"POST /" + b"x" * 9000 + b" HTTP/1.1", b"\x16\x03\x01", b"PRI * HTTP/2.0", b"GET /%00%ff%2e%2e?a=b HTTP/1.1", b""]


def request(r, port):
    fields = r.choice(BODIES)
    body = json.dumps(fields).encode()
    how = r.random()
    if how < 0.7:
        body = json_mutant(r, body)
    start, lines = b"POST /v1/%s HTTP/1.1" % (b"chat/completions" if "messages" in fields else b"completions"), [b"Host: 127.0.0.1:%d" % port, b"Content-Length: %d" % len(body)]
    if how > 0.6:
        lines.insert(r.randrange(3), r.choice(LINES))
    if how > 0.85:
        start = r.choice(STARTS)
    whole = b"\r\n".join([start, *lines, b"", body])
    return other_bytes(r, whole) if how > 0.93 else whole


def exchange(port, data):
    """What comes back until the server closes, or has sent a whole answer; None where nothing ends within SECONDS."""
    with socket.create_connection(("127.0.0.1", port), timeout=SECONDS) as s:
        answer = b""
        try:
            s.sendall(data)
            s.shutdown(socket.SHUT_WR)
            while part := s.recv(65536):
                answer += part
        except TimeoutError:
            return None
        except OSError:                                             # the server has closed, with or without an answer
            pass
    return answer


def complaint(answer):
    """What is wrong with an answer: None if nothing is."""
    if answer is None:
        return f"no end in {SECONDS} s"
    answer = re.sub(rb"\A(HTTP/1\.1 100 Continue\r\n\r\n)+", b"", answer or b"")
    if not answer:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    status = re.match(rb"HTTP/1\.[01] (\d{3}) ", head)
    if not status or int(status.group(1)) not in STATUSES:
        return f"an odd status: {head[:60]!r}"
    length = re.search(rb"(?i)\r\nContent-Length: (\d+)", head)
    if length and b"application/json" in head:
        try:
            json.loads(body[:int(length.group(1))])         # what follows answers another request
        except ValueError:
            return f"no JSON: {body[:300]!r}"
    return None


def start(source, build, work, servers):
    """The server, which servers gets at once, and its port, which it tells on stderr."""
    ranks, err = f"{work}/ranks", f"{work}/err"
    subprocess.run([f"{build}/tpc-shard", f"{source}/samples/llama/model.onnx", "--tp", "2", "-q", "-o", ranks], check=True)
    env = dict(os.environ, OMP_NUM_THREADS="1", ASAN_OPTIONS="abort_on_error=1", UBSAN_OPTIONS="abort_on_error=1:print_stacktrace=1")
    with open(f"{ranks}/chat_template.jinja", "w", encoding="utf-8") as f:
        f.write(TEMPLATE)
    with open(err, "w", encoding="utf-8") as log:
        server = subprocess.Popen([f"{build}/tpc-run", ranks, "--local", "2", "--threads", "1", "--tokenizer", f"{source}/tests/train/bytes.json",
                                   "--serve", "--port", "0", "--context", "64"], stdout=log, stderr=log, env=env)
    servers.append(server)
    while server.poll() is None:
        with open(err, encoding="utf-8") as f:
            found = re.search(r":(\d+)/v1", f.read())
        if found:
            return server, int(found.group(1))
        time.sleep(0.05)
    with open(err, encoding="utf-8") as f:
        sys.exit(f"the server did not start: {f.read()}")


def health(port):
    answer = exchange(port, b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    return answer is not None and answer.startswith(b"HTTP/1.1 200")


def settled(port):
    """Whether no row is taken, soon."""
    for _ in range(200):
        if b"\ntpc_rows 0" in exchange(port, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"):
            return True
        time.sleep(0.1)
    return False


def try_all(numbers, seed, port, kept):
    """How many got which status, and how many broke the rules."""
    counts, wrong = {}, 0
    for i in numbers:
        data = request(random.Random(f"{seed}-{i}"), port)
        answer = exchange(port, data)
        said = complaint(answer) or (None if health(port) else "/health fails")
        status = answer[9:12].decode(errors="replace") if answer else "closed"
        counts[status] = counts.get(status, 0) + 1
        if said:
            wrong += 1
            with open(f"{kept}/request-{seed}-{i}", "wb") as f:
                f.write(data)
            print(f"{kept}/request-{seed}-{i}: {said}", flush=True)
        if said == "/health fails":
            break
    return counts, wrong


def main():
    source, build, kept, numbers, seed = sys.argv[1:]
    first, last = (int(n) for n in numbers.split("-"))
    for which in (signal.SIGTERM, signal.SIGHUP):                   # ends as an exception does
        signal.signal(which, lambda number, _: sys.exit(128 + number))
    with tempfile.TemporaryDirectory(prefix="tpc-requests-") as work, contextlib.ExitStack() as ends:
        begin = time.monotonic()
        servers = []
        ends.callback(lambda: [s.kill() or s.wait() for s in servers if s.poll() is None])
        server, port = start(source, build, work, servers)
        counts, wrong = try_all(range(first, last), seed, port, kept)
        if not settled(port):
            print("rows stay taken")
            wrong += 1
        server.send_signal(signal.SIGTERM)
        status = server.wait(60)
        with open(f"{work}/err", encoding="utf-8", errors="replace") as f:
            said = f.read()
        if status or "runtime error" in said or "Sanitizer" in said:
            print(f"the server ends with status {status}: {said[-2000:]}")
            wrong += 1
    n = sum(counts.values())
    print(f"{n} requests, {n / (time.monotonic() - begin):.1f} a second: {', '.join(f'{k}: {counts[k]}' for k in sorted(counts))}; {wrong} with findings")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
