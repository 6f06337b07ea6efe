#!/usr/bin/env python3
"""Texts of a server against scores of ONNX Runtime: scores.py PORT MODEL CASE. The model is samples/llama, unsharded, with tokens of bytes."""
import concurrent.futures
import json
import os
import sys

import numpy
import onnxruntime

from calls import ask, call, events, expect, metric

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "generate"))
import sampler  # noqa: E402

session = sys.argv[2] and onnxruntime.InferenceSession(sys.argv[2])


def scores_of(tokens):
    """Of all positions."""
    feed = {"input_ids": numpy.array([tokens]), "attention_mask": numpy.ones((1, len(tokens)), numpy.int64), "position_ids": numpy.arange(len(tokens))[None]}
    for i in session.get_inputs():
        if i.name not in feed:
            feed[i.name] = numpy.zeros((1, i.shape[1], 0, i.shape[3]), numpy.float32)
    return session.run(["logits"], feed)[0][0]


def text_of(tokens):
    return bytes(tokens).decode("utf-8", "replace")


def made(prompt, n, bias=None, penalties=None, **how):
    """The tokens that the formulas make."""
    tokens = []
    for _ in range(n):
        s = sampler.adjusted(scores_of(prompt + tokens)[-1], prompt, tokens, bias, **(penalties or {}))
        tokens.append(sampler.pick(s, len(prompt) + len(tokens), **how))
    return tokens


PROMPT, MOST = list(b"Hello"), 16
CASES = [({}, {}), ({"presence_penalty": 1.5}, {}), ({"frequency_penalty": 2}, {}), ({"frequency_penalty": -0.7, "presence_penalty": -0.4}, {}),
         ({"logit_bias": {"72": 100}}, {}), ({"logit_bias": {str(i): -100 for i in range(128, 256)}}, {}), ({"logit_bias": {"101": 3, "0": -1.5}}, {}),
         ({"presence_penalty": 1, "frequency_penalty": 0.5, "repetition_penalty": 1.4, "logit_bias": {"32": 2}}, {}), ({}, {"temperature": 0})]


def steered():
    """Greedy and drawn, each alone and all at once."""
    bodies, wanted = [], []
    for fields, _ in CASES:
        for how in [{"temperature": 0}, {"temperature": 1.3, "seed": 11}, {"temperature": 1.1, "seed": 2**40 + 1, "top_p": 0.8, "top_k": 40}]:
            bodies.append(dict(fields, **how, prompt=PROMPT, max_tokens=MOST))
            penalties = {name.split("_")[0]: x for name, x in fields.items() if name.endswith("_penalty")}
            wanted.append(text_of(made(PROMPT, MOST, fields.get("logit_bias"), penalties, **how)))
    alone = [ask(**body)["choices"][0]["text"] for body in bodies]
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        together = [answer["choices"][0]["text"] for answer in pool.map(lambda body: ask(**body), bodies)]
    for body, text, one, other in zip(bodies, wanted, alone, together):
        expect(f"{body}", (one, other), (text, text))
    expect("texts that differ", len(set(wanted)) > len(wanted) // 2, True)
    banned = ask(prompt=PROMPT, max_tokens=MOST, temperature=1, logit_bias={str(i): -100 for i in range(256) if i != 65})["choices"][0]["text"]
    expect("one token is left", banned, "A" * MOST)


def name_of(token):
    return chr(token) if 0 < token < 128 else f"bytes:\\x{token:02x}"


def check_logprobs(what, found, tokens, first, best):
    """Tokens from `first` on have log-probabilities given the earlier ones, each with this number of best alternatives."""
    expect(f"{what}: tokens", found["tokens"], [name_of(t) for t in tokens])
    every = [sampler.log_softmax(row) for row in scores_of(tokens)] if len(tokens) > 1 else []
    for i, (got, top) in enumerate(zip(found["token_logprobs"], found["top_logprobs"], strict=True)):
        if i < first:
            expect(f"{what}: a token without", (got, top), (None, None))
            continue
        row = every[i - 1]
        order = sorted(range(256), key=lambda t: -row[t])[:best]
        wanted = {name_of(t): row[t] for t in order + [tokens[i]]}
        expect(f"{what}: the best tokens at {i}", set(top), set(wanted))
        for name, x in dict(wanted, **{"": row[tokens[i]]}).items():
            if abs((top[name] if name else got) - x) > 1e-4:
                sys.exit(f"{what}: {name!r} at {i} is {top.get(name)}, {got}, expected {x}")


def joined(parts):
    """The choices of a stream as one reply has them."""
    choice = {"text": "", "logprobs": {key: [] for key in ["tokens", "token_logprobs", "top_logprobs", "text_offset"]}}
    for part in (p["choices"][0] for p in parts):
        choice["text"] += part["text"]
        for key, values in part["logprobs"].items():
            choice["logprobs"][key] += values
        if part["logprobs"]["text_offset"] and part["logprobs"]["text_offset"][-1] > len(choice["text"]):
            sys.exit(f"a token before its text: {part}")
    return choice


PRINTABLE = {str(t): -100 for t in list(range(32)) + list(range(127, 256))}


def logprobs():
    """Of texts and their prompts, alone and together with others, as one reply and as streams."""
    prompt = list(b"What is scored here is long enough for several runs. " * 6)
    body = {"max_tokens": 12, "logprobs": 3, "logit_bias": PRINTABLE, "seed": 4}
    for how in [{"temperature": 0}, {"temperature": 1.2, "presence_penalty": 1}]:
        text = ask(prompt=prompt, **body, **how)["choices"][0]
        made_tokens = list(text["text"].encode())
        echo = ask(prompt=prompt, **body, **how, echo=True)["choices"][0]
        expect("an echo", echo["text"], bytes(prompt).decode() + text["text"])
        check_logprobs("an echo", echo["logprobs"], prompt + made_tokens, 1, 3)
        expect("offsets", echo["logprobs"]["text_offset"], list(range(len(prompt) + 12)))
        expect("offsets without an echo", text["logprobs"]["text_offset"], list(range(12)))
        made_scores = {key: ([None] * len(prompt) if key != "tokens" else [name_of(t) for t in prompt]) + text["logprobs"][key]
                       for key in ["tokens", "token_logprobs", "top_logprobs"]}
        check_logprobs("without an echo", made_scores, prompt + made_tokens, len(prompt), 3)
        for wanted, fields in [(echo, {"echo": True}), (text, {})]:
            got = joined(events(prompt=prompt, **body, **how, **fields))
            expect("a stream", (got["text"], got["logprobs"]), (wanted["text"], wanted["logprobs"]))
        with concurrent.futures.ThreadPoolExecutor(8) as pool: # its prompt runs in parts among the others
            others = pool.map(lambda i: ask(prompt="x" * i, max_tokens=60, logprobs=i, temperature=1)["choices"][0], range(1, 8))
            beside = list(pool.map(lambda _: ask(prompt=prompt, **body, **how, echo=True)["choices"][0], range(3)))
            list(others)
        for other in beside:
            expect("text beside others", other["text"], echo["text"])
            check_logprobs("beside others", other["logprobs"], prompt + made_tokens, 1, 3)


def scored():
    """Prompts alone, as programs that compare models ask for them."""
    prompts = [list(b"Two prompts of one request"), list(b"H"), list(b"and a third, of 137 tokens: " + b"z" * 109)]
    before = metric("generated_tokens_total")
    for most in [0, 1]:
        answer = ask(prompt=prompts, max_tokens=most, logprobs=1, echo=True, temperature=0)
        for prompt, choice in zip(prompts, answer["choices"], strict=True):
            got = choice["logprobs"]
            expect("text", choice["text"][:len(prompt)], bytes(prompt).decode())
            check_logprobs("a prompt", {k: v[:len(prompt)] for k, v in got.items()}, prompt, 1, 1)
            expect("tokens", len(got["tokens"]), len(prompt) + most)
        expect("usage", (answer["usage"]["prompt_tokens"], answer["usage"]["completion_tokens"]), (sum(map(len, prompts)), 3 * most))
    expect("tokens that were made", metric("generated_tokens_total") - before, 3)
    text = ask(prompt="Héllo", max_tokens=0, echo=True)["choices"][0]
    expect("an echo alone", (text["text"], text["logprobs"]), ("Héllo", None))
    got = ask(prompt="Hé!", max_tokens=0, echo=True, logprobs=0, n=2)["choices"]
    expect("two texts", got[0]["logprobs"], got[1]["logprobs"])
    expect("characters", (got[0]["logprobs"]["text_offset"], got[0]["logprobs"]["tokens"]), ([0, 1, 1, 2], ["H", "bytes:\\xc3", "bytes:\\xa9", "!"]))
    expect("ids", ask(prompt=list(b"Hi"), max_tokens=0, echo=True)["choices"][0]["text"], "Hi")
    expect("a stream", "".join(e["choices"][0]["text"] for e in events(prompt="Hi", max_tokens=0, echo=True)), "Hi")
    for fields, param in [({"logprobs": 21}, "logprobs"), ({"logprobs": True}, "logprobs"), ({"logprobs": -1}, "logprobs"), ({"top_logprobs": 2}, "top_logprobs"),
                          ({"echo": 1}, "echo"), ({"logprobs": 20, "n": 128, "max_tokens": 2000}, "logprobs")]:
        status, error = call("POST", "/v1/completions", dict({"prompt": "x", "max_tokens": 2}, **fields))
        expect(f"{fields}", (status, json.loads(error)["error"]["param"]), (400, param))


def chat_answer(**fields):
    status, answer = call("POST", "/v1/chat/completions", dict({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 12, "temperature": 0}, **fields))
    expect(f"{fields}", status, 200)
    if "stream" not in fields:
        return json.loads(answer)["choices"][0]
    return [json.loads(line[6:])["choices"][0] for line in answer.decode().split("\n\n")[:-2]]


def chats():
    """Chats, whose template is the content of the message: the same fields steer them, and log-probabilities have their own form."""
    for fields in [{"logit_bias": PRINTABLE}, {"presence_penalty": 1.5, "logit_bias": PRINTABLE}, {"frequency_penalty": 2, "temperature": 1.3, "seed": 5, "logit_bias": PRINTABLE}]:
        wanted = ask(**dict({"prompt": "Hello", "max_tokens": 12, "temperature": 0}, **fields), logprobs=2)["choices"][0]
        got = chat_answer(**fields, logprobs=True, top_logprobs=2)
        expect("content", got["message"]["content"], wanted["text"])
        content = got["logprobs"]["content"]
        expect("tokens", [(c["token"], c["logprob"], bytes(c["bytes"]).decode()) for c in content],
               list(zip(wanted["logprobs"]["tokens"], wanted["logprobs"]["token_logprobs"], wanted["logprobs"]["tokens"])))
        for c, top in zip(content, wanted["logprobs"]["top_logprobs"], strict=True):
            every = {t["token"]: t["logprob"] for t in c["top_logprobs"]}
            expect("the best tokens", (len(every), every | {c["token"]: c["logprob"]}), (2, top))
            expect("the best comes first", c["top_logprobs"], sorted(c["top_logprobs"], key=lambda t: -t["logprob"]))
        parts = chat_answer(**fields, logprobs=True, top_logprobs=2, stream=True)
        expect("a stream", "".join(p["delta"].get("content", "") for p in parts), wanted["text"])
        expect("tokens of a stream", [c for p in parts for c in (p["logprobs"] or {"content": []})["content"]], content)
    expect("not asked for", chat_answer()["logprobs"], None)
    for fields, param in [({"logprobs": 2}, "logprobs"), ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"), ({"top_logprobs": 2}, "top_logprobs"), ({"echo": True}, "echo")]:
        status, error = call("POST", "/v1/chat/completions", dict({"messages": [{"role": "user", "content": "x"}]}, **fields))
        expect(f"{fields}", (status, json.loads(error)["error"]["param"]), (400, param))


def chooses():
    """A graph that chooses tokens: requests that need scores are refused, and the server continues."""
    text = ask(prompt="Hello", max_tokens=5)["choices"][0]["text"]
    for fields, param in [({"temperature": 1}, "temperature"), ({"logit_bias": {"65": 1}}, None), ({"presence_penalty": 1}, None), ({"logprobs": 0}, "logprobs"),
                          ({"repetition_penalty": 2}, None)]:
        status, error = call("POST", "/v1/completions", dict({"prompt": "Hello", "max_tokens": 5}, **fields))
        expect(f"{fields}", (status, json.loads(error)["error"]["param"], "chooses tokens" in json.loads(error)["error"]["message"]), (400, param, True))
    expect("the same text", ask(prompt="Hello", max_tokens=5, temperature=0)["choices"][0]["text"], text)


def blanks():
    """A decoder that drops the blank at the beginning of a text: a continued text keeps it."""
    blank = {"32": 100}
    for fields, text in [({}, "   "), ({"echo": True}, "Hi   "), ({"n": 2}, "   ")]:
        expect(f"{fields}", {c["text"] for c in ask(prompt=list(b"Hi"), max_tokens=3, temperature=0, logit_bias=blank, **fields)["choices"]}, {text})
    expect("a stream", "".join(e["choices"][0]["text"] for e in events(prompt=list(b"Hi"), max_tokens=3, temperature=0, logit_bias=blank)), "   ")
    got = ask(prompt=list(b"Hi"), max_tokens=2, temperature=0, logit_bias=blank, logprobs=0, echo=True)["choices"][0]["logprobs"]
    expect("tokens", (got["tokens"], got["text_offset"]), (["H", "i", " ", " "], [0, 1, 2, 3]))


def stops():
    """Stop sequences with log-probabilities and echo: across tokens, overlapping, and not in the prompt."""
    base = {"prompt": "Hello", "max_tokens": 16, "temperature": 0, "logit_bias": PRINTABLE}
    text = ask(**base)["choices"][0]["text"]
    for stop in [text[4:7], [text[4:7], text[5:6]], [text[6:8], text[4:9]], ["never", text[15:16]], text[0]]:
        each = [stop] if isinstance(stop, str) else stop
        seen = next(text[:n] for n in range(17) if any(s in text[:n] for s in each)) # the one that ends first counts
        cut = min(seen.find(s) for s in each if s in seen)
        for fields in [{}, {"echo": True}]:
            prompt = "Hello" if fields else ""
            whole = ask(**base, stop=stop, logprobs=1, **fields)["choices"][0]
            expect(f"{stop}", (whole["text"], whole["finish_reason"]), (prompt + text[:cut], "stop"))
            expect(f"{stop}: tokens", "".join(whole["logprobs"]["tokens"]), prompt + text[:cut])
            got = joined(events(**base, stop=stop, logprobs=1, **fields))
            expect(f"{stop}: a stream", (got["text"], got["logprobs"]), (whole["text"], whole["logprobs"]))
    whole = ask(**base, stop=["Hel", "llo", "o" + text[0]], echo=True)["choices"][0]
    expect("a stop in the prompt", (whole["text"], whole["finish_reason"]), ("Hello" + text, "length"))
    got = joined(events(**base, stop=["Hello!"], echo=True, logprobs=0))
    expect("a stop that a prompt begins", got["text"], "Hello" + text)


globals()[sys.argv[3]]()
