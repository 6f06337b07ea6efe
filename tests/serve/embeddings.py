#!/usr/bin/env python3
"""Embeddings of the server at PORT: embeddings.py PORT same MODEL mean|last|cls|whole, or refused, only, zero, beside, vanish.
same: every form of a request has the vectors that ONNX Runtime's outputs of each text alone give, pooled and normalised by numpy."""
import base64
import json
import random
import sys
import threading

from calls import PORT, ask, call, expect, metric, until


def embed(texts, status=200, **body):
    got, text = call("POST", "/v1/embeddings", dict(body, input=texts))
    expect(f"status of {str(texts)[:60]} {body}: {text[:300]}", got, status)
    return json.loads(text)


def vectors(texts, **body):
    import numpy as np
    reply = embed(texts, **body)
    expect("indices", [d["index"] for d in reply["data"]], list(range(len(reply["data"]))))
    return np.array([d["embedding"] for d in reply["data"]], np.float64)


# ---- what ONNX Runtime gives

def reference(path, pooling):
    import numpy as np
    import onnxruntime
    session = onnxruntime.InferenceSession(path)
    names = ("sentence_embedding", "last_hidden_state", "hidden_states")
    name = next(n for n in names if n in [o.name for o in session.get_outputs()])

    def feed(i, n):
        if i.name == "input_ids":
            return None
        if i.name.startswith("past"):
            return np.zeros([1 if k == 0 else 0 if isinstance(d, str) else d for k, d in enumerate(i.shape)], np.float32)
        one = {"attention_mask": np.ones, "token_type_ids": np.zeros, "position_ids": lambda s, _: np.arange(s[1])[None]}[i.name]
        return one([1, n], np.int64).astype(np.int64)

    def of(tokens):
        inputs = {i.name: feed(i, len(tokens)) for i in session.get_inputs()}
        inputs["input_ids"] = np.array([tokens], np.int64)
        x = session.run([name], inputs)[0][0].astype(np.float64)
        v = {"mean": lambda: x.mean(0), "last": lambda: x[-1], "cls": lambda: x[0], "whole": lambda: x}[pooling]()
        return v / np.linalg.norm(v)

    return of


def close(what, got, wanted):
    import numpy as np
    worst = np.abs(got - wanted).max() if got.shape == wanted.shape else np.inf
    if not worst < 1e-5:
        sys.exit(f"{what}: {got.shape}, {wanted.shape}, worst difference {worst}")


def same(path, pooling):
    import numpy as np
    of, dice = reference(path, pooling), random.Random(3)
    tokens = [[dice.randrange(33, 127) for _ in range(dice.choice([1, 2, 3, 9, 20, 33, 60]))] for _ in range(70)]
    texts, want = ["".join(map(chr, t)) for t in tokens], np.array([of(t) for t in tokens])
    runs = metric("prompt_runs_total")
    close("texts", vectors(texts), want)
    runs = metric("prompt_runs_total") - runs
    if runs >= len(texts):
        sys.exit(f"{len(texts)} texts took {runs} runs")
    close("tokens", vectors(tokens), want)
    close("texts and tokens", vectors(texts[:3] + tokens[3:5]), want[:5])
    for i in (0, 7):
        close("one text", vectors(texts[i]), want[i:i + 1])
        close("its tokens", vectors(tokens[i]), want[i:i + 1])
    short = want[:4, :5] / np.linalg.norm(want[:4, :5], axis=1, keepdims=True)
    close("fewer dimensions", vectors(texts[:4], dimensions=5), short)
    for n in (3, 4, 5, want.shape[1]):  # 12 to 20 bytes and all: each way that base64 ends
        coded = embed(texts[:4], dimensions=n, encoding_format="base64")["data"]
        plain = vectors(texts[:4], dimensions=n, encoding_format="float")
        close("base64", np.array([np.frombuffer(base64.b64decode(d["embedding"], validate=True), "<f4") for d in coded]), plain)
    reply = embed(texts[:3])
    n = sum(map(len, texts[:3]))
    expect("usage", reply["usage"], {"prompt_tokens": n, "total_tokens": n})
    expect("kinds", (reply["object"], reply["data"][1]["object"]), ("list", "embedding"))


# ---- what is refused

def refused():
    longest = json.loads(call("GET", "/v1/models")[1])["data"][0]["context_length"]
    expect("the longest text", embed([65] * longest)["usage"]["total_tokens"], longest)
    for field, body in [("input", {"input": v}) for v in
                        ["", [], [""], [[]], [1, "a"], ["a", [1, "b"]], [256], [-1], {"a": 1}, None, 5, 1.5, True, ["a"] * 2049, [["a"]]]] + [
            ("dimensions", {"input": "a", "dimensions": v}) for v in [0, -1, 1 << 20, 1.5, "3"]] + [
            ("encoding_format", {"input": "a", "encoding_format": v}) for v in ["int8", 1, []]] + [
            ("truncate_prompt_tokens", {"input": "a", "truncate_prompt_tokens": 3}), ("input", {})]:
        status, text = call("POST", "/v1/embeddings", body)
        expect(f"{str(body)[:60]}: {text[:200]}", (status, json.loads(text)["error"]["param"]), (400, field))
    error = embed([65] * (longest + 1), 400)["error"]
    expect("a text that is too long", (error["param"], error["code"]), ("input", "context_length_exceeded"))
    expect("after these", len(embed(["a"] * 2048)["data"]), 2048)


def zero():
    """Vectors of length 0, of the first text alone."""
    message = embed(["a", "bc"], 500)["error"]["message"]
    expect("a vector of zeros", "text 0 have no direction" in message, True)
    expect("another one", len(embed(["bc"])["data"]), 1)


def only():
    """Of a model that makes no texts."""
    for path, body in [("/v1/completions", {"prompt": "a"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})]:
        status, text = call("POST", path, body)
        expect(path, (status, "this model makes no texts: its output" in json.loads(text)["error"]["message"]), (400, True))
    expect("tokens", json.loads(call("POST", "/tokenize", {"prompt": "ab"})[1])["tokens"], [97, 98])


# ---- together with texts, and clients that leave

def beside():
    """Rows that decode, join and leave are what they are alone, and so are vectors."""
    prompts = ["x" * n for n in (3, 70, 20, 9)]
    alone = [ask(prompt=p, max_tokens=30, temperature=0)["choices"][0]["text"] for p in prompts]
    want, got = embed(["some text", "another"])["data"], []

    def text(i):
        got.append((i, ask(prompt=prompts[i], max_tokens=30, temperature=0)["choices"][0]["text"]))

    threads = [threading.Thread(target=text, args=(i,)) for i in range(4) for _ in range(3)]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        expect("vectors beside texts", embed(["some text", "another"])["data"], want)
    for t in threads:
        t.join()
    expect("texts beside vectors", sorted(set(got)), sorted(enumerate(alone)))


def vanish():
    """A client that leaves while its vectors are made."""
    import socket
    left, before = metric("clients_vanished_total"), metric("prompt_runs_total")
    body = json.dumps({"input": ["a text of some length " * 2] * 2000}).encode()
    for _ in range(3):
        s = socket.create_connection(("127.0.0.1", PORT))
        s.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        runs = metric("prompt_runs_total")
        until("its first run", lambda: metric("prompt_runs_total") > runs)
        s.close()
    until("they are noticed", lambda: metric("clients_vanished_total") >= left + 3)
    expect("another one", len(embed("a")["data"]), 1)
    runs = metric("prompt_runs_total") - before
    if runs > 200:  # all of them are 3 times 2000 / 23
        sys.exit(f"{runs} runs for clients that left")


if __name__ == "__main__":
    {"same": same, "refused": refused, "only": only, "zero": zero, "beside": beside, "vanish": vanish}[sys.argv[2]](*sys.argv[3:])
