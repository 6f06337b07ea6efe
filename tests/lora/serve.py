#!/usr/bin/env python3
"""Adapters by request: a server that has several makes the texts of servers that have one each, together and after stored beginnings.

    python serve.py NAME=ADAPTER NAME=ADAPTER -- TPC-RUN OPTION...
"""
import concurrent.futures
import json
import subprocess
import sys
import urllib.error
import urllib.request

PROMPTS = ["Each rank holds", "A", "ranks and " * 8, "of a model. " * 7]  # the last two: more than a block of stored tokens


class Server:
    def __init__(self, options):
        self.process = subprocess.Popen([*command, "--serve", "--port", "0", *options], stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            if "serving" in line:
                self.model, self.url = line.split(" at ")[0].split()[-1], line.split(" at ")[1].split("/v1")[0]
                return
        sys.exit("the server did not start")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.stderr.read()
        if self.process.wait():
            sys.exit("the server failed")

    def get(self, path, **body):
        data = json.dumps(body).encode() if body else None
        try:
            with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=60) as reply:
                return reply.status, json.load(reply)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def text(self, prompt, model):
        status, reply = self.get("/v1/completions", prompt=prompt, max_tokens=8, temperature=0, logprobs=1, **({"model": model} if model else {}))
        assert status == 200, reply
        return reply["model"], reply["choices"][0]["logprobs"]["tokens"], reply["choices"][0]["logprobs"]["token_logprobs"]


def expect(found, tokens, model):
    assert found[0] == model, (found[0], model)
    assert found[1] == tokens[1], (model, found[1], tokens[1])
    assert all(abs(a - b) < 1e-3 for a, b in zip(found[2], tokens[2], strict=True)), (model, found[2], tokens[2])


given, command = sys.argv[1:sys.argv.index("--")], sys.argv[sys.argv.index("--") + 1:]
names = [text.split("=")[0] for text in given]
expected = {}
for name, options in [(None, [])] + [(n, ["--lora", text.split("=")[1]]) for n, text in zip(names, given)]:
    with Server(options) as server:
        for prompt in PROMPTS:
            expected[name, prompt] = server.text(prompt, None)
for prompt in PROMPTS:
    assert len({tuple(expected[name, prompt][2]) for name in [None, *names]}) == 1 + len(names), "adapters change nothing"
with Server([o for text in given for o in ("--lora", text)]) as server:
    asked = [(name, prompt) for prompt in PROMPTS for name in [None, *names, None, *names]]
    for name, prompt in asked:  # one after another
        expect(server.text(prompt, name or server.model), expected[name, prompt], name or server.model)
    with concurrent.futures.ThreadPoolExecutor(len(asked)) as pool:  # together
        for (name, prompt), found in zip(asked, pool.map(lambda a: server.text(a[1], a[0]), asked)):
            expect(found, expected[name, prompt], name or server.model)
    cached = server.get("/v1/completions", prompt=PROMPTS[2], model=names[0], max_tokens=1)[1]["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached == 64, cached
    status, models = server.get("/v1/models")
    assert status == 200 and [m["id"] for m in models["data"]] == [server.model, *names], models
    assert server.get("/v1/models/" + names[1])[1]["id"] == names[1] and server.get("/v1/models/other")[0] == 404
    for path, field in (("/v1/completions", "prompt"), ("/tokenize", "prompt")):
        status, reply = server.get(path, **{field: "a", "model": "other"})
        error = reply["error"]
        assert status == 404 and error["code"] == "model_not_found" and f"model: expected one of '{server.model}', '{names[0]}'" in error["message"], reply
print("as alone, together and behind stored beginnings")
