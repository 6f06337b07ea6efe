#!/usr/bin/env python3
"""Calls of tools that a model makes, of tpc-run --serve: calls.py PORT CONTENT NAME ARGUMENTS... what it answers: content, and calls."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from calls import call, expect

content, given = sys.argv[2], sys.argv[3:]
wanted = list(zip(given[::2], given[1::2]))
TOOLS = [{"type": "function", "function": {"name": n, "description": "d", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}}}} for n in ["weather", "time"]]
USER = {"role": "user", "content": "hello"}


def chat(**fields):
    status, answer = call("POST", "/v1/chat/completions", dict({"messages": [USER]}, **fields))
    expect(f"status of {answer}", status, 200)
    return answer.decode()


def check_calls(found):
    expect("calls", [(c["function"]["name"], c["function"]["arguments"]) for c in found], wanted)
    expect("their types", {c["type"] for c in found}, {"function"} if wanted else set())
    ids = [c["id"] for c in found]
    expect(f"ids {ids}", (len(set(ids)), all(len(i) == 9 and i.isalnum() for i in ids)), (len(wanted), True))
    return ids


def stream(**fields):
    """The deltas of a stream joined, as clients join them."""
    lines = [line[6:] for line in chat(stream=True, **fields).split("\n") if line.startswith("data: ")]
    text, calls, finish = "", [], None
    for line in lines[:-1]:
        one = json.loads(line)["choices"][0]
        delta, finish = one["delta"], one["finish_reason"]
        text += delta.get("content") or ""
        for c in delta.get("tool_calls", []):
            expect("an index", c.pop("index"), len(calls))
            calls.append(c)
    return text, calls, finish


def main():
    whole = json.loads(chat(tools=TOOLS))["choices"][0]
    message = whole["message"]
    expect("the end", whole["finish_reason"], "tool_calls" if wanted else "stop")
    expect("content", message["content"], content or (None if wanted else ""))
    expect("tool_calls", "tool_calls" in message, bool(wanted))
    check_calls(message.get("tool_calls", []))
    text, calls, finish = stream(tools=TOOLS, tool_choice="auto")
    expect("a stream", (text, finish), (content, whole["finish_reason"]))
    check_calls(calls)
    plain = json.loads(chat(tools=TOOLS, tool_choice="none"))["choices"][0]
    expect("tools that are not to be called", ("tool_calls" in plain["message"], plain["finish_reason"]), (False, "stop"))
    other = json.loads(chat(tools=[dict(TOOLS[0], function={"name": "other"})]))["choices"][0]
    expect("a name that is no tool", ("tool_calls" in other["message"], other["finish_reason"]), (False, "stop"))
    if not wanted:
        return
    answer = json.loads(chat(tools=TOOLS, parallel_tool_calls=False))
    one, made = answer["choices"][0], json.loads(chat(tools=TOOLS))["usage"]["completion_tokens"]
    expect("the answer ends behind it", answer["usage"]["completion_tokens"] < made, True)
    expect("one call alone", [c["function"]["name"] for c in one["message"]["tool_calls"]], [wanted[0][0]])
    several = json.loads(chat(tools=TOOLS, n=2))["choices"]
    ids = [i for c in several for i in check_calls(c["message"]["tool_calls"])[:1]]
    expect("ids of choices", len(set(ids)), 2)
    result = [dict(message, role="assistant"), {"role": "tool", "tool_call_id": ids[0], "content": "warm"}]
    result[0]["content"] = message["content"] or ""
    expect("results are taken", "choices" in json.loads(chat(messages=[USER, *result], tools=TOOLS)), True)
    cut = json.loads(chat(tools=TOOLS, max_tokens=len(content) + 8))["choices"][0]
    expect("a call that is cut", ("tool_calls" in cut["message"], cut["finish_reason"]), (False, "length"))


main()
