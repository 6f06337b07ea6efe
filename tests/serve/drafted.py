#!/usr/bin/env python3
"""Texts of a server with --lookup equal those of one without: drafted.py PORT save|compare FILE. compare: a text that is alone takes fewer
steps than it has tokens, several at once are what each is alone."""
import concurrent.futures
import json
import sys

from calls import ask, call, expect, metric

P = "abcabcabcabc abcabc"
ASKED = [dict(prompt=P + end, temperature=0, max_tokens=most) for end, most in [("", 30), ("d", 7), ("a", 1), ("ab", 1000)]] + [
    dict(prompt=P, max_tokens=25, temperature=0.5, seed=3), dict(prompt=P, max_tokens=25, temperature=1, seed=4, top_p=0.6, presence_penalty=0.5),
    dict(prompt=P, max_tokens=25, temperature=0, repetition_penalty=1.3), dict(prompt=P, max_tokens=25, temperature=0, logprobs=2),
    dict(prompt=P, max_tokens=20, temperature=0, grammar='root ::= ("ab" | "ba" | "c")+'), dict(prompt=P, max_tokens=25, temperature=0, n=2)]


def choices(body):
    reply = ask(**body)
    return [[c["text"], c["finish_reason"], c["logprobs"] and c["logprobs"]["tokens"]] for c in reply["choices"]] + [reply["usage"]["completion_tokens"]]


def streamed(body):
    status, text = call("POST", "/v1/completions", dict(body, stream=True))
    expect("status", status, 200)
    events = [json.loads(line[6:]) for line in text.decode().split("\n\n") if line.startswith("data: {")]
    return "".join(e["choices"][0]["text"] for e in events)


if sys.argv[2] == "save":
    json.dump([choices(body) for body in ASKED], open(sys.argv[3], "w"))
    sys.exit()
wanted = json.load(open(sys.argv[3]))
made, steps = metric("generated_tokens_total"), metric("steps_total")
expect("a text", choices(ASKED[0]), wanted[0])
made, steps = metric("generated_tokens_total") - made, metric("steps_total") - steps
expect(f"{made} tokens in {steps} steps", steps * 2 < made, True)
stop = wanted[0][0][0][9:12]
for body, want in zip(ASKED, wanted):
    expect(f"{body}", choices(body), want)
    expect(f"a stream: {body}", streamed(body) == want[0][0] or body.get("n", 1) > 1, True)
cut = ask(**ASKED[0], stop=stop)["choices"][0]
expect("a stop", (cut["text"], cut["finish_reason"]), (wanted[0][0][0].split(stop)[0], "stop"))
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    for _ in range(3):
        expect("several at once", list(pool.map(choices, ASKED)), wanted)
