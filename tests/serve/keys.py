#!/usr/bin/env python3
"""A server with keys, and its log of requests: keys.py PORT LOG KEY..."""
import http.client
import json
import sys

from calls import PORT, expect, until

log, keys = sys.argv[2], sys.argv[3:]


def reply(method, path, authorization=None, body=None):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    c.request(method, path, body, {} if authorization is None else {"Authorization": authorization})
    r = c.getresponse()
    return r.status, r.getheader("WWW-Authenticate"), r.read()


ask = json.dumps({"prompt": "Hello", "max_tokens": 2})
bad = [None, "", "Bearer", "Bearer ", f"Basic {keys[0]}", keys[0], f"Bearer {keys[0]}x", f"Bearer {keys[0][:-1]}", f"Bearer {keys[0]} ", f"Bearer  {keys[0]}",
       "Bearer " + keys[0] * 50, f"Bearer {keys[0].upper()}", f"Bearer {keys[0]},{keys[1]}"]
for authorization in bad[:8] + bad[9:]:
    for method, path, body in [("POST", "/v1/completions", ask), ("GET", "/v1/models", None), ("GET", "/metrics", None), ("GET", "/nowhere", None), ("POST", "/v1/completions", "x" * 2**21)]:
        status, scheme, answer = reply(method, path, authorization, body)
        expect(f"{authorization!r:.40} {path}", (status, scheme, json.loads(answer)["error"]["code"]), (401, "Bearer", "invalid_api_key"))
    expect("health", reply("GET", "/health", authorization)[0], 200)
    expect("what a browser asks before", reply("OPTIONS", "/v1/completions", authorization)[0], 204)
for key in keys:
    for scheme in ["Bearer", "bearer"]:
        expect(f"{scheme} and a key", reply("POST", "/v1/completions", f"{scheme} {key}", ask)[0], 200)
        expect("metrics", reply("GET", "/metrics", f"{scheme} {key}")[0], 200)
reply("GET", "/odd%0a%1b%5b31m%22\\" + "y" * 300, f"Bearer {keys[0]}")


def lines():
    with open(log, encoding="utf-8", errors="surrogateescape") as f:
        return f.read().splitlines()


until("the last line of the log", lambda: any("/odd" in line for line in lines()))
text = "\n".join(lines())
for key in keys:
    expect("a key in the log", key in text, False)
if any(ord(c) < 32 or ord(c) > 126 for line in lines() for c in line):
    sys.exit("the log has raw characters of a request")
odd = next(line for line in lines() if "/odd" in line)
expect("an odd path", '127.0.0.1 "GET /odd\\x0a\\x1b[31m\\x22\\x5cyyy' in odd and '..." 404 ' in odd, True)
made = [line for line in lines() if '127.0.0.1 "POST /v1/completions" 200 ' in line]
expect("lines of texts", (len(made), all(" bytes, 5+2 tokens, " in line and line.endswith(" s") for line in made)), (4, True))
expect("lines without a key", sum('"GET /v1/models" 401 ' in line for line in lines()), len(bad) - 1)
