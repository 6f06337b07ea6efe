#!/usr/bin/env python3
"""Texts with a form, of tpc-run --serve: server.py PORT FILE. FILE has the texts of a server on other ranks, or gets them. server.py PORT blanks:
of a tokenizer whose texts lose a blank at their beginning. server.py PORT thoughts TOKEN...: of a template that begins with thoughts; these
tokens are liked, and end them."""
import concurrent.futures
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from calls import ask, call, events, expect

PERSON = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0, "maximum": 150},
                                           "tags": {"type": "array", "items": {"enum": ["a", "ab", "é"]}, "maxItems": 3}}, "required": ["name", "tags"]}
NUMBERS = {"type": "array", "items": {"type": "number", "minimum": -1, "maximum": 5}, "minItems": 2, "maxItems": 4}
HOW = [{"temperature": 0}, {"seed": 1}, {"seed": 2, "top_k": 5}, {"seed": 3, "top_p": 0.8, "temperature": 1.5}, {"seed": 4, "presence_penalty": 1.5, "logit_bias": {"40": 5}},
       {"seed": 5, "min_p": 0.01, "repetition_penalty": 1.3}]


def form(schema):
    return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}}


def chat(**fields):
    status, answer = call("POST", "/v1/chat/completions", dict({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 200}, **fields))
    return status, json.loads(answer)


def said(**fields):
    status, answer = chat(**fields)
    expect(f"status of {answer}", status, 200)
    return [(c["message"]["content"], c["finish_reason"]) for c in answer["choices"]]


def check_person(text):
    v = json.loads(text)
    good = set(v) <= {"name", "age", "tags"} and len(v["name"]) <= 6 and 0 <= v.get("age", 0) <= 150 and len(v["tags"]) <= 3 and set(v["tags"]) <= {"a", "ab", "é"}
    expect(f"a person in {text}", good, True)


def check_numbers(text):
    v = json.loads(text)
    expect(f"numbers in {text}", 2 <= len(v) <= 4 and all(-1 <= x <= 5 for x in v), True)


def texts():
    """By form and settings; all at once, as well."""
    asked = [(check, dict(how, **form(schema), n=2)) for check, schema in [(check_person, PERSON), (check_numbers, NUMBERS)] for how in HOW]
    alone = [said(**fields) for _, fields in asked]
    for (check, _), found in zip(asked, alone):
        for text, finish in found:
            expect("the end", finish, "stop")
            check(text)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        expect("texts at once", list(pool.map(lambda a: said(**a[1]), asked)), alone)
    return alone


def objects():
    ended = 0
    for seed in range(12):
        for text, finish in said(seed=seed, response_format={"type": "json_object"}, logit_bias={"93": 4}):
            ended += finish == "stop"
            expect("an object", finish != "stop" or isinstance(json.loads(text), dict), True)
    expect("some objects end", ended > 3, True)


def grammars():
    yes = ask(prompt="Hello", grammar='root ::= "yes" | "no" [!?]+', max_tokens=50, seed=1)["choices"][0]
    expect("a word", bool(re.fullmatch(r"yes|no[!?]+", yes["text"])) or yes["finish_reason"] == "length", True)
    blank = ask(prompt="Hello", grammar='root ::= "  x" "é"', max_tokens=50, temperature=0)["choices"][0]
    expect("blanks", (blank["text"], blank["finish_reason"]), ("  xé", "stop"))
    cut = ask(prompt="Hello", grammar="root ::= [a-z]{30}", max_tokens=4, temperature=0)["choices"][0]
    expect("a text that is cut", cut["finish_reason"], "length")
    many = [c["text"] for c in ask(prompt=["a", "b"], n=3, json_schema=NUMBERS, max_tokens=200, seed=3)["choices"]]
    for text in many:
        check_numbers(text)
    stop = ask(prompt="Hello", grammar='root ::= "abcabc"', stop="ca", temperature=0)["choices"][0]
    expect("a stop", (stop["text"], stop["finish_reason"]), ("ab", "stop"))
    found = events(prompt="Hello", json_schema=NUMBERS, max_tokens=200, seed=3)
    expect("a stream", "".join(e["choices"][0]["text"] for e in found), ask(prompt="Hello", json_schema=NUMBERS, max_tokens=200, seed=3)["choices"][0]["text"])
    shown = ask(prompt="Hello", grammar='root ::= "q"', logprobs=2, temperature=0)["choices"][0]["logprobs"]
    expect("log-probabilities are the model's", (shown["tokens"], shown["token_logprobs"][0] < max(shown["top_logprobs"][0].values())), (["q"], True))
    empty = ask(prompt="Hello", grammar="root ::= \"\"", max_tokens=5, temperature=0)["choices"][0]
    expect("an empty text", (empty["text"], empty["finish_reason"]), ("", "stop"))


def refused():
    cases = [("response_format", dict(form({"not": {}})), "#: 'not' is not supported"), ("response_format", {"response_format": {"type": "xml"}}, "expected an object with the type"),
             ("response_format", {"response_format": {"type": "json_schema"}}, "a schema in json_schema.schema"), ("grammar", {"grammar": "root ::= x"}, "no rule 'x'"),
             ("grammar", {"grammar": 3}, "a text in GBNF"), ("json_schema", {"json_schema": [1]}, "an object"), ("json_schema", {"json_schema": PERSON, "grammar": "root ::= \"a\""}, "give one"),
             ("grammar", {"grammar": "root ::= root \"a\" | \"b\""}, "begins with itself"), ("grammar", {"grammar": "root ::= " + "(" * 5000}, "groups within each other"),
             ("response_format", dict(form({"type": "string", "maxLength": 10**9})), "too large"),
             ("json_schema", {"json_schema": {"type": "string", "pattern": "^(a?){500}a{500}$"}}, "too many ways to read a text")]
    for param, fields, words in cases:
        for request in [fields, dict(fields, stream=True)]:
            status, answer = chat(**request)
            expect(f"status of {answer}", (status, answer["error"]["param"], words in answer["error"]["message"]), (400, param, True))


def stuck():
    """No token has this byte."""
    status, answer = chat(grammar='root ::= "a" [\\U00100000-\\U0010FFFF]')
    expect(f"a text that can't go on: {answer}", (status, answer["error"]["message"][:24]), (400, "the text can't go on: th"))
    status, answer = call("POST", "/v1/completions", {"prompt": "Hello", "grammar": 'root ::= "\\U0010FFFF"', "stream": True, "max_tokens": 9})
    expect("a stream that can't go on", "can't go on" in answer.decode(), True)


def main(path):
    found = texts()
    if os.path.exists(path):
        with open(path) as f:
            expect("texts of other ranks", json.loads(json.dumps(found)), json.load(f))
    else:
        with open(path, "w") as f:
            json.dump(found, f)
    objects()
    grammars()
    refused()
    stuck()


def blanks():
    """The grammar holds for the text that is returned: a chat begins with its first token, a completion continues after its prompt."""
    status, answer = chat(grammar='root ::= " a"')
    expect(f"a blank that would be lost: {answer}", (status, "can't go on" in json.dumps(answer)), (400, True))
    for seed in range(6):
        text, finish = said(grammar='root ::= " "? "a b"', seed=seed)[0]
        expect(f"a chat {text!r}", (text, finish), ("a b", "stop"))
    texts = [ask(prompt="Hello", grammar='root ::= " "? "a b"', logit_bias={"32": liked})["choices"][0]["text"] for liked in [-100, 100]]
    expect("completions", texts, ["a b", " a b"])


def thoughts(*tokens):
    bias = dict.fromkeys(tokens, 8)
    seen = thought = 0
    for seed in range(6):
        status, answer = chat(seed=seed, logit_bias=bias, max_tokens=1000, **form(NUMBERS))
        message, finish = answer["choices"][0]["message"], answer["choices"][0]["finish_reason"]
        seen += finish == "stop"
        if finish == "stop":
            check_numbers(message["content"])
            thought += "reasoning_content" in message
    expect("answers behind thoughts", seen > 1 and thought > 0, True)


cases = {"blanks": blanks, "thoughts": thoughts}
cases.get(sys.argv[2], lambda: main(sys.argv[2]))(*sys.argv[3:])
