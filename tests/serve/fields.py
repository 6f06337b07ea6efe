#!/usr/bin/env python3
"""Fields of requests to tpc-run --serve: fields.py PORT LOG FIELD... with all that steer the text and are not supported."""
import http.client
import json
import sys

from calls import PORT, call, expect, text_of

log, steering = sys.argv[2], sys.argv[3:]
BASE = {"prompt": "Hello", "max_tokens": 2, "temperature": 0}
NOTHING = [None, False, 0, 0.0, "", {}, []]
MUST = {"repeat_penalty", "length_penalty", "typical_p", "tfs_z", "do_sample", "num_beams", "skip_special_tokens", "n_predict", "max_new_tokens", "add_generation_prompt", "web_search_options"}
NEUTRAL = {"repeat_penalty": [1, 1.0], "length_penalty": [1], "typical_p": [1.0], "tfs_z": [1], "top_n_sigma": [-1], "do_sample": [True], "num_beams": [1],
           "skip_special_tokens": [True], "t_max_predict_ms": [-1], "response_format": [{"type": "text"}, None], "json_schema": [{}, None], "grammar": ["", None], "tool_choice": ["none", "auto"], "modalities": [["text"]], "add_generation_prompt": [True],
           "best_of": [1, None, 0], "n": [1, None], "stop": [None, []], "logprobs": [None, False], "top_logprobs": [None, 0, False], "echo": [None, False], "stream": [None, False], "seed": [None], "logit_bias": [{}, None, {"7": 0}], "presence_penalty": [0, None], "frequency_penalty": [0], "stream_options": [None, {}],
           "max_completion_tokens": [2, None], "temperature": [0], "top_k": [0, -1, None], "top_p": [1, None], "min_p": [0], "repetition_penalty": [1], "model": ["any", "", None]}
STEERS = [("response_format", {"type": "xml"}), ("json_schema", [1]), ("logprobs", 0.5), ("best_of", 2), ("presence_penalty", -2.1), ("tool_choice", "required"), ("do_sample", False),
          ("typical_p", 0), ("skip_special_tokens", False), ("max_new_tokens", 0), ("guided_json", {"type": "object"}), ("ignore_eos", True), ("min_tokens", 1),
          ("max_completion_tokens", 3), ("max_completion_tokens", "x"), ("grammar", "root ::= x")]


def reply(body):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    c.request("POST", "/v1/completions", json.dumps(dict(BASE, **body)))
    r = c.getresponse()
    return r.status, r.getheader("X-Ignored-Fields"), r.read()


text = text_of(**BASE)
for name in steering:
    status, answer = call("POST", "/v1/completions", dict(BASE, **{name: {"x": 5}}))
    expect(name, status, 400)
    error = json.loads(answer)["error"]
    expect("error", error, {"message": f"this server does not support '{name}': leave it out, or set it to null", "type": "invalid_request_error", "param": name, "code": None})
    for value in [None] if name in MUST else NOTHING:
        expect(f"{name}: {value!r}", reply({name: value})[:2], (200, None))
for name, values in NEUTRAL.items():
    for value in values:
        expect(f"{name}: {value!r}", text_of(**dict(BASE, **{name: value})), text)
for name, value in STEERS:
    status, answer = call("POST", "/v1/completions", dict(BASE, **{name: value}))
    expect(f"{name}: {value!r}", status, 400)
    param = json.loads(answer)["error"]["param"]
    expect("param", param, "max_tokens" if value == 3 else name)

hostile = {"user": "me", "a\r\nX-Evil: 1": 1, "é\u202e": [], "x" * 5000: 0, "": 2, "\x1b[31m": True, "nothing": None}
for _ in range(3):
    expect("ignored", reply(hostile)[:2], (200, f"user, a%0D%0AX-Evil%3A%201, %C3%A9%E2%80%AE, {'x' * 48}..., , %1B%5B31m"))
status, ignored, _ = reply({f"field{i}": i for i in range(2000)})
expect("many fields", (status, ignored), (200, ", ".join(f"field{i}" for i in range(16)) + ", ..."))
expect("in a stream", reply({"stream": True, "user": "me"})[1], "user")
for i in range(100):
    reply({f"other{i}": 1})
with open(log) as f:
    lines = [line for line in f.read().splitlines() if "has no effect" in line]
expect("lines of the log about user", sum("'user'" in line for line in lines), 1)
expect("lines of the log", (len(lines), lines[-1].endswith("further ones are not named")), (64, True))
if any(ord(c) < 32 or ord(c) > 126 for line in lines for c in line):
    sys.exit("the log has raw characters of a request")
