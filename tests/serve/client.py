#!/usr/bin/env python3
"""Clients of tpc-run --serve, for tests/serve.tap: client.py PORT CASE [FILE...]. Exit status 1 and a sentence where an answer is not as it must be."""
import concurrent.futures
import http.client
import json
import select
import socket
import sys
import urllib.parse

from calls import PORT, ask, call, events, expect, metric, text_of, until


# ---- cases ----

def same(prompts, texts, most, runs="whole"):
    """Each of many texts at once is what it is alone, and prompts run whole, or in parts."""
    with open(prompts) as f:
        prompts = f.read().splitlines()
    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as pool:
        got = list(pool.map(lambda p: text_of(prompt=p, max_tokens=int(most)), prompts))
    with open(texts, "rb") as f:
        wanted = f.read()
    expect("texts", "".join(t + "\n" for t in got).encode(), wanted)
    expect("prompts that run in parts", metric("prompt_runs_total") > len(prompts), runs == "parts")


def seeded(texts):
    """By file: the text after Hello, as the command line draws it with seed 5."""
    with open(texts, "rb") as f:
        wanted = f.read()
    body = {"prompt": "Hello", "max_tokens": 9, "temperature": 1.5, "top_p": 0.9, "seed": 5}
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for t in pool.map(lambda _: text_of(**body), range(4)):
            expect("a text drawn", (t + "\n").encode(), wanted)
    unseeded = {text_of(prompt="Hello", max_tokens=9, temperature=3) for _ in range(4)}
    if len(unseeded) < 2:
        sys.exit("texts without a seed are the same")
    several = ask(**body, n=3)["choices"]
    expect("the first of several", (several[0]["text"] + "\n").encode(), wanted)
    expect("indices", [c["index"] for c in several], [0, 1, 2])
    if several[1]["text"] == several[2]["text"]:
        sys.exit("two texts of one prompt are the same")


def forms():
    """Prompts as text, ids and lists; streams; stops; usage."""
    whole = ask(prompt="Hello", max_tokens=12, temperature=0)
    text = whole["choices"][0]["text"]
    expect("usage", whole["usage"], {"prompt_tokens": 5, "completion_tokens": 12, "total_tokens": 17, "prompt_tokens_details": {"cached_tokens": 0}})
    expect("finish", whole["choices"][0]["finish_reason"], "length")
    expect("ids", text_of(prompt=list(b"Hello"), max_tokens=12, temperature=0), text)
    both = ask(prompt=["Hello", list(b"Hi")], max_tokens=12, temperature=0)["choices"]
    expect("no special tokens", text_of(prompt="Hello", max_tokens=12, temperature=0, add_special_tokens=False), text)
    expect("lists", (both[0]["text"], both[1]["text"]), (text, text_of(prompt="Hi", max_tokens=12, temperature=0)))
    found = events(prompt="Hello", max_tokens=12, temperature=0, stream_options={"include_usage": True})
    expect("usage of a stream", found[-1]["usage"], whole["usage"])
    expect("a stream", "".join(e["choices"][0]["text"] for e in found[:-1]), text)
    expect("finish of a stream", [e["choices"][0]["finish_reason"] for e in found[-2:-1]], ["length"])
    for k in range(1, 5):
        stop = text[k:k + 2]
        cut = text[:text.index(stop)]
        stopped = ask(prompt="Hello", max_tokens=12, temperature=0, stop=["never in it", stop])["choices"][0]
        expect("a text that stops", (stopped["text"], stopped["finish_reason"]), (cut, "stop"))
        found = events(prompt="Hello", max_tokens=12, temperature=0, stop=stop)
        expect("a stream that stops", "".join(e["choices"][0]["text"] for e in found), cut)
    empty = {"choices": [("", "length")] * 2, "usage": {"prompt_tokens": 5, "completion_tokens": 0, "total_tokens": 5, "prompt_tokens_details": {"cached_tokens": 0}}}
    nothing = ask(prompt="Hello", max_tokens=0, n=2)
    expect("no token", {"choices": [(c["text"], c["finish_reason"]) for c in nothing["choices"]], "usage": nothing["usage"]}, empty)
    found = events(prompt="Hello", max_completion_tokens=0, n=2, stream_options={"include_usage": True})
    expect("a stream of no token", {"choices": [(c["text"], c["finish_reason"]) for e in found for c in e["choices"]], "usage": found[-1]["usage"]}, empty)
    expect("health", call("GET", "/health"), (200, b'{"status":"ok"}'))
    expect("models", json.loads(call("GET", "/v1/models")[1])["object"], "list")


def named(name):
    """The model by its name, in lists, completions and streams."""
    model = json.loads(call("GET", "/v1/models")[1])["data"][0]
    expect("name", model["id"], name)
    address = "/v1/models/" + urllib.parse.quote(name)
    expect("the model", (call("GET", address)[0], json.loads(call("GET", address)[1])), (200, model))
    status, answer = call("GET", "/v1/models/another%00%ff")
    error = json.loads(answer)["error"]
    expect("another model", (status, name in error["message"], error["param"], error["code"]), (404, True, "model", "model_not_found"))
    expect("a completion", ask(prompt="Hello", max_tokens=2)["model"], name)
    expect("a stream", {e["model"] for e in events(prompt="Hello", max_tokens=2)}, {name})


def hostile():
    """Invalid requests are refused with a sentence, and the server continues."""
    text = text_of(prompt="Hello", max_tokens=5, temperature=0)
    bodies = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"prompt": "\xff"}', b'{"prompt": "x"}}', b'{"prompt": "\\ud800"}', b"[" * 100000, b'{"a":' * 5000]
    objects = [{}, {"prompt": None}, {"prompt": ""}, {"prompt": []}, {"prompt": [[]]}, {"prompt": {}}, {"prompt": 5}, {"prompt": [1, "x"]}, {"prompt": [-1]}, {"prompt": [256]},
               {"prompt": [2**62]}, {"prompt": "x" * 5000}, {"prompt": ["x"] * 1000}, {"prompt": "x", "n": 0}, {"prompt": "x", "n": 10**6},
               {"prompt": "x", "n": 1.5}, {"prompt": "x", "max_tokens": -1}, {"prompt": "x", "max_completion_tokens": -1}, {"prompt": "x", "max_tokens": "9"}, {"prompt": "x", "temperature": -1},
               {"prompt": "x", "temperature": "hot"}, {"prompt": "x", "top_p": 0}, {"prompt": "x", "top_p": 1.1}, {"prompt": "x", "min_p": 2},
               {"prompt": "x", "repetition_penalty": 0}, {"prompt": "x", "stop": 5}, {"prompt": "x", "stop": ""}, {"prompt": "x", "stop": ["a", ""]}, {"prompt": "x", "stop": ["a", None]}, {"prompt": "x", "stop": ["a"] * 99},
               {"prompt": "x", "stream": 1}, {"prompt": "x", "add_special_tokens": 1}, {"prompt": "x", "logprobs": 21}, {"prompt": "x", "logprobs": True}, {"prompt": "x", "top_logprobs": 1}, {"prompt": "x", "echo": 1}, {"prompt": "x", "suffix": "y"},
               {"prompt": "x", "logit_bias": {"256": 5}}, {"prompt": "x", "logit_bias": {"01": 5}}, {"prompt": "x", "logit_bias": {"-1": 5}}, {"prompt": "x", "logit_bias": {"1": 101}},
               {"prompt": "x", "logit_bias": {"1": "5"}}, {"prompt": "x", "logit_bias": [[1, 5]]}, {"prompt": "x", "logit_bias": 5},
               {"prompt": "x", "logit_bias": {str(i): 1 for i in range(1025)}}, {"prompt": "x", "presence_penalty": 2.1}, {"prompt": "x", "presence_penalty": "1"},
               {"prompt": "x", "frequency_penalty": -2.1}, {"prompt": "x", "seed": "s"}, {"prompt": "x", "model": 5},
               {"prompt": "x", "stream_options": 3}, {"prompt": "x", "best_of": 2}, {"prompt": "x", "top_k": -2}, {"prompt": "x", "top_k": 1e300}, {"prompt": "x", "temperature": 1e300}]
    for body in bodies + objects:
        status, answer = call("POST", "/v1/completions", body)
        expect(f"{body!r:.60}", status, 400)
        error = json.loads(answer)["error"]
        expect("type", error["type"], "invalid_request_error")
        expect(f"{body!r:.60}: param", error["param"], None if isinstance(body, bytes) else (list(body) or ["prompt"])[-1])
        if len(error["message"]) < 10:
            sys.exit(f"{body!r:.60}: {error['message']}")
    expect("a field of a field", json.loads(call("POST", "/v1/completions", {"prompt": "x", "stream_options": {"include_usage": 1}})[1])["error"]["param"],
           "stream_options.include_usage")
    expect("a long prompt", json.loads(call("POST", "/v1/completions", {"prompt": "x" * 5000})[1])["error"],
           {"message": "This model's maximum context length is 4096 tokens, and the prompt has 5000: it may have 4095, for at least one token is made",
            "type": "invalid_request_error", "param": "prompt", "code": "context_length_exceeded"})
    status, answer = call("POST", "/v1/completions", b'{"prompt": "x", "seed": 9223372036854775808}')
    expect("a number beyond 64 bits", (status, b"whole numbers have 64 bits" in answer), (400, True))
    expect("a long body", call("POST", "/v1/completions", b'{"prompt": "' + b"x" * 2**21 + b'"}')[0], 413)
    expect("another address", call("POST", "/v2", {})[0], 404)
    for method, path, allowed in [("GET", "/v1/completions", "POST, OPTIONS"), ("POST", "/health", "GET, HEAD, OPTIONS")]:
        connection = http.client.HTTPConnection("127.0.0.1", PORT)
        connection.request(method, path)
        reply = connection.getresponse()
        expect("another method", (reply.status, reply.headers["Allow"]), (405, allowed))
    status, answer = call("POST", "/v1/chat/completions", {"messages": []})
    expect("chat", (status, "chat template" in json.loads(answer)["error"]["message"]), (400, True))
    for raw in [b"\x00" * 100, b"GET\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nContent-Length: -5\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{"]:
        with socket.create_connection(("127.0.0.1", PORT)) as s:
            s.sendall(raw)
    expect("the same text after all", text_of(prompt="Hello", max_tokens=5, temperature=0), text)
    expect("zero bytes", len(ask(prompt="a\0b", max_tokens=3)["choices"]), 1)


def crowd(n):
    """So many requests at once, of unequal lengths, some as streams."""
    def one(i):
        body = {"prompt": "word " * (1 + i % 7), "max_tokens": 1 + i % 9, "temperature": 1}
        if i % 3 == 0:
            return len(events(**body)) >= 1
        return ask(**body)["usage"]["completion_tokens"] == 1 + i % 9
    with concurrent.futures.ThreadPoolExecutor(int(n)) as pool:
        expect("answers", sum(pool.map(one, range(int(n)))), int(n))
    expect("rows that stay in use", metric("rows"), 0)


def rows():
    """More texts than rows, of which all are in use at once."""
    before = metric("steps_total")
    several = ask(prompt="Hello", n=int(metric("rows_most")) + 6, max_tokens=20)
    expect("texts", len(several["choices"]), 70)
    expect("steps", metric("steps_total") - before < 200, True)


def request(body):
    s = socket.create_connection(("127.0.0.1", PORT))
    text = json.dumps(body).encode()
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
    return s


def vanish():
    """Clients that leave free their rows, whether they read, wait for all of the text, or wait for a row."""
    before, text = metric("clients_vanished_total"), text_of(prompt="Hello", max_tokens=5, temperature=0)
    clients = [request({"prompt": "Hello", "max_tokens": 4000, "stream": i % 2 == 0}) for i in range(12)]
    until("rows in use", lambda: metric("rows") == metric("rows_most"))
    for s in select.select(clients, [], [], 0.2)[0]:
        s.recv(100)
    for s in clients:
        s.close()
    until("no row in use", lambda: metric("rows") == 0 and metric("waiting") == 0)
    expect("clients that left", metric("clients_vanished_total") - before, 12)
    expect("the same text after all", text_of(prompt="Hello", max_tokens=5, temperature=0), text)


def full():
    """Texts beyond the queue are refused until there is room."""
    clients = [request({"prompt": "Hello", "max_tokens": 4000, "n": 128}) for _ in range(2)]
    until("a full queue", lambda: metric("waiting") > 200)
    status, answer = call("POST", "/v1/completions", {"prompt": "Hello", "n": 128})
    expect("beyond", (status, json.loads(answer)["error"]["message"]), (429, "too many texts wait already"))
    for s in clients:
        s.close()
    until("room", lambda: metric("waiting") == 0)
    ask(prompt="Hello", n=20, max_tokens=1)


def library():
    """The openai package."""
    import openai
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    expect("one model", client.models.retrieve(model).id, model)
    whole = client.completions.create(model=model, prompt="Hello", max_tokens=9, temperature=0)
    parts = list(client.completions.create(model=model, prompt="Hello", max_tokens=9, temperature=0, stream=True))
    expect("a stream", "".join(p.choices[0].text for p in parts), whole.choices[0].text)
    expect("usage", whole.usage.completion_tokens, 9)
    try:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "Hello"}])
        sys.exit("chat was not refused")
    except openai.BadRequestError as e:
        expect("chat", "chat template" in e.body["message"], True)


globals()[sys.argv[2]](*sys.argv[3:])
