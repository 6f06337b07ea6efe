#!/usr/bin/env python3
"""Texts as tokens and back, and addresses that there are not: tokens.py PORT, with tokens of bytes."""
import json

from calls import call, expect

for text in ["Hello", "", "Héllo\0\n"]:
    status, answer = call("POST", "/tokenize", {"prompt": text, "model": "any"})
    expect(f"{text!r}", (status, json.loads(answer)), (200, {"count": len(text.encode()), "max_model_len": 4096, "tokens": list(text.encode())}))
    expect(f"{text!r} back", json.loads(call("POST", "/detokenize", {"tokens": list(text.encode())})[1]), {"prompt": text})
expect("without special tokens", json.loads(call("POST", "/tokenize", {"prompt": "Hi", "add_special_tokens": False})[1])["tokens"], [72, 105])
for path, body, param in [("/tokenize", {}, "prompt"), ("/tokenize", {"prompt": 5}, "prompt"), ("/tokenize", {"prompt": "x", "add_special_tokens": 2}, "add_special_tokens"),
                          ("/tokenize", {"messages": []}, "messages"), ("/tokenize", {"prompt": "x", "model": 5}, "model"), ("/detokenize", {}, "tokens"),
                          ("/detokenize", {"tokens": [256]}, "tokens"), ("/detokenize", {"tokens": [-1]}, "tokens"), ("/detokenize", {"tokens": [1.5]}, "tokens"),
                          ("/detokenize", {"tokens": "x"}, "tokens"), ("/tokenize", b"{", None), ("/detokenize", b"[1]", None)]:
    status, answer = call("POST", path, body)
    expect(f"{path} {body}", (status, json.loads(answer)["error"]["param"]), (400, param))
for path, instead, wanted in [("/v1/responses", "/v1/chat/completions", 404), ("/v1/embeddings", "the model's graph returns no last_hidden_state", 400)]:
    status, answer = call("POST", path, {"input": "x"})
    expect(path, (status, instead in json.loads(answer)["error"]["message"]), (wanted, True))
