#!/usr/bin/env python3
"""Calls of tools that a model must make, of tpc-run --serve: calls.py PORT FILE TOKENIZER [TOKEN...].
FILE has the answers on other ranks, or gets them. TOKEN: those that lead to calls in free answers."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from calls import call, expect

TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0}, "y": {"enum": [1, 2]}}, "required": ["x", "y"]}}},
         {"type": "function", "function": {"name": "now", "description": "the time"}}]


with open(sys.argv[3], encoding="utf-8") as f:
    TOKENS = json.load(f)["model"]["vocab"]


def chat(**fields):
    status, answer = call("POST", "/v1/chat/completions", dict({"messages": [{"role": "user", "content": "Hello"}], "tools": TOOLS, "max_tokens": 300}, **fields))
    return status, json.loads(answer)


def calls(**fields):
    status, answer = chat(**fields)
    expect(f"status of {answer}", status, 200)
    found = []
    for c in answer["choices"]:
        expect(f"the end of {c}", (c["finish_reason"], c["message"]["content"]), ("tool_calls", None))
        found.append([(t["function"]["name"], json.loads(t["function"]["arguments"])) for t in c["message"]["tool_calls"]])
    return found


def check(name, arguments):
    good = arguments == {} if name == "now" else name == "add" and set(arguments) == {"x", "y"} and arguments["x"] >= 0 and arguments["y"] in (1, 2)
    expect(f"a call of {name} with {arguments}", good, True)


def main(path):
    found = []
    for seed in range(6):
        for must in ["required", {"type": "function", "function": {"name": "add"}}]:
            for one in calls(tool_choice=must, seed=seed, n=2, parallel_tool_calls=False):
                expect("one call", len(one), 1)
                check(*one[0])
                expect("the one that is named", one[0][0] == "add" or must == "required", True)
                found.append(one)
    schema = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "array", "items": {"type": "null"}, "maxItems": 2}}}}
    for seed in range(4):
        status, answer = chat(seed=seed, parallel_tool_calls=False, **schema)
        message = answer["choices"][0]["message"]
        good = [check(t["function"]["name"], json.loads(t["function"]["arguments"])) for t in message["tool_calls"]] if "tool_calls" in message else json.loads(message["content"])
        expect("a call or an answer of the form", isinstance(good, list), True)
    strict = [dict(t, function=dict(t["function"], strict=t["function"]["name"] == "add")) for t in TOOLS]
    bias = {str(TOKENS[t]): 30 for t in sys.argv[4:]}  # so that the model likes to call
    made = 0
    for seed in range(8 if bias else 0):
        status, answer = chat(seed=seed, tools=strict, logit_bias=bias, max_tokens=120)
        for t in answer["choices"][0]["message"].get("tool_calls", []):
            made += 1
            arguments = json.loads(t["function"]["arguments"])
            check("add", arguments) if t["function"]["name"] == "add" else expect("arguments", isinstance(arguments, dict), True)
    expect("some calls in texts", made > 0, bool(bias))
    for fields, param, words in [({"tool_choice": "required", "tools": []}, "tool_choice", "no tools to call"), ({"tool_choice": "maybe"}, "tool_choice", "expected"),
                                 ({"tool_choice": {"type": "function", "function": {"name": "sub"}}}, "tool_choice", "none of the tools"),
                                 ({"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"not": {}}}}]}, "tools", "'not' is not supported"),
                                 *[({"tools": [TOOLS[0], {"type": kind, "function": function}], **more}, "tools", f"tools[1].{words}") for kind, function, more, words in [
                                     ("function", {"name": "f", "parameters": 5}, {}, "function.parameters: expected a schema"),
                                     ("function", {"name": "f", "parameters": {"type": "array"}}, {"tool_choice": "required"}, "function.parameters: expected a schema"),
                                     ("function", {}, {}, "function.name: expected 1 to 64"), ("function", {"name": "a b"}, {}, "function.name: expected 1 to 64"),
                                     ("function", {"name": "f" * 65}, {}, "function.name: expected 1 to 64"), ("function", 3, {}, "function: expected an object"),
                                     ("function", {"name": TOOLS[0]["function"]["name"]}, {}, "function.name: an earlier tool"), ("custom", {"name": "f"}, {}, "type: expected")]]]:
        status, answer = chat(**fields)
        expect(f"{answer}", (status, answer["error"]["param"], words in answer["error"]["message"]), (400, param, True))
    if os.path.exists(path):
        with open(path) as f:
            expect("calls on other ranks", json.loads(json.dumps(found)), json.load(f))
    else:
        with open(path, "w") as f:
            json.dump(found, f)


main(sys.argv[2])
