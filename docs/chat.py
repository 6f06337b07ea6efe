#!/usr/bin/env python3
"""Chat with tpc-run --serve: the client fills in the model's chat template. Needs jinja2.

    tpc-run model.tp2 --local 2 --serve &
    python3 docs/chat.py MODEL-FOLDER ["a question"]

MODEL-FOLDER has the model's tokenizer_config.json (and chat_template.jinja, if the template is a file of its own). Without a question it asks for lines
until the input ends, and keeps the conversation.
"""
import argparse
import json
import os
import sys
import urllib.request

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment


def read_template(folder):
    """A function of messages, as transformers' apply_chat_template renders them."""
    with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
        config = json.load(f)
    path = os.path.join(folder, "chat_template.jinja")
    text = open(path, encoding="utf-8").read() if os.path.exists(path) else config.get("chat_template")
    if isinstance(text, list):  # several: by name
        text = next(t["template"] for t in text if t["name"] == "default")
    if not text:
        sys.exit(f"{folder} has no chat template")
    tokens = {k: v["content"] if isinstance(v, dict) else v for k, v in config.items() if k.endswith("_token")}

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda x, **kw: json.dumps(x, ensure_ascii=False)
    env.globals["raise_exception"] = refuse
    template = env.from_string(text)
    return lambda messages: template.render(messages=messages, add_generation_prompt=True, **tokens)


def complete(url, body):
    """Yields the parts of the text as they are made."""
    request = urllib.request.Request(f"{url}/completions", json.dumps(dict(body, stream=True)).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            line = line.decode().strip()
            if line.startswith("data: ") and line != "data: [DONE]":
                yield json.loads(line[6:])["choices"][0]["text"]


def main():
    p = argparse.ArgumentParser(description="chat with tpc-run --serve")
    p.add_argument("folder")
    p.add_argument("question", nargs="?")
    p.add_argument("--url", default="http://127.0.0.1:8080/v1")
    p.add_argument("--max-tokens", type=int, default=512)
    p.add_argument("--temperature", type=float)
    p.add_argument("--top-p", type=float)
    p.add_argument("--seed", type=int)
    o = p.parse_args()
    # the template writes the special tokens itself
    settings = {"max_tokens": o.max_tokens, "temperature": o.temperature, "top_p": o.top_p, "seed": o.seed, "add_special_tokens": False}
    render, messages = read_template(o.folder), []
    for line in [o.question] if o.question else sys.stdin:
        messages.append({"role": "user", "content": line.rstrip("\n")})
        answer = ""
        for part in complete(o.url, dict(settings, prompt=render(messages))):
            answer += part
            print(part, end="", flush=True)
        print()
        messages.append({"role": "assistant", "content": answer})


if __name__ == "__main__":
    main()
