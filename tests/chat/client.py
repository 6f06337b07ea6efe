#!/usr/bin/env python3
"""Chats with tpc-run --serve, for tests/chat.tap: client.py PORT CASE."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "serve"))
from calls import PORT, call, expect

HELLO = [{"role": "user", "content": "hello"}]


def chat(messages=HELLO, **fields):
    status, answer = call("POST", "/v1/chat/completions", dict(fields, messages=messages))
    return status, json.loads(answer)


def ask(messages=HELLO, **fields):
    status, answer = chat(messages, **fields)
    expect(f"status of {answer}", status, 200)
    return answer


def parts(messages=HELLO, **fields):
    """Deltas of a stream joined, by choice."""
    status, answer = call("POST", "/v1/chat/completions", dict(fields, messages=messages, stream=True))
    lines = [line[6:] for line in answer.decode().split("\n") if line.startswith("data: ")]
    expect("a stream", (status, lines[-1]), (200, "[DONE]"))
    found, first = {}, set()
    events = [json.loads(line) for line in lines[:-1]]
    for event in events:
        expect("kind", event["object"], "chat.completion.chunk")
        for c in event["choices"]:
            if c["index"] not in first:
                expect("the first delta", c["delta"], {"role": "assistant", "content": ""})
                first.add(c["index"])
            own = found.setdefault(c["index"], {"content": "", "reasoning_content": "", "finish": None})
            expect("nothing comes behind the end", own["finish"], None)
            for key in ("content", "reasoning_content"):
                own[key] += c["delta"].get(key, "")
            own["finish"] = c["finish_reason"]
    return found, events[-1].get("usage")


def answers(thoughts="why", content="Box"):
    """Whole and streamed, once and several times; usage; limits."""
    whole = ask()
    expect("kind", (whole["object"], whole["id"][:9]), ("chat.completion", "chatcmpl-"))
    message = {"role": "assistant", "content": content} | ({"reasoning_content": thoughts} if thoughts else {})
    expect("an answer", whole["choices"], [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}])
    usage = whole["usage"]
    expect("usage", usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
    found, streamed = parts(stream_options={"include_usage": True}, n=2)
    one = {"content": content, "reasoning_content": thoughts, "finish": "stop"}
    expect("a stream", found, {0: one, 1: one})
    expect("usage of a stream", streamed["prompt_tokens"], usage["prompt_tokens"])
    for most in range(1, usage["completion_tokens"] + 1):
        cut = ask(max_tokens=most)["choices"][0]
        found, _ = parts(max_completion_tokens=most)
        expect(f"{most} tokens", (cut["message"]["content"], cut["message"].get("reasoning_content", ""), cut["finish_reason"]),
               (found[0]["content"], found[0]["reasoning_content"], found[0]["finish"]))
        expect(f"{most} tokens begin the answer", (content.startswith(cut["message"]["content"]), (thoughts + "</think>").startswith(cut["message"].get("reasoning_content", ""))), (True, True))
        expect("finish", cut["finish_reason"], "length" if most < usage["completion_tokens"] else "stop")
    stopped = ask(stop=[content[1:]])["choices"][0]
    expect("a stop", (stopped["message"]["content"], stopped["finish_reason"]), (content[:1], "stop"))


def prompts():
    """Tokens of prompts; what is read of messages."""
    def tokens(messages=HELLO, **fields):
        return ask(messages, **fields)["usage"]["prompt_tokens"]
    base = tokens()
    expect("a prompt", base, len("_user\nhello_\n_assistant\n"))
    expect("parts", tokens([{"role": "user", "content": [{"type": "text", "text": "hel"}, {"type": "text", "text": "o"}]}]), base)
    expect("a special token in a message is text", tokens([{"role": "user", "content": "hello<|im_end|>"}]), base + len("<|im_end|>"))
    expect("a developer is a system", tokens([{"role": "developer", "content": "x"}] + HELLO), base + len("_system\nx_\n"))
    expect("a variable", tokens(chat_template_kwargs={"enable_thinking": False}), base + len("__\n"))
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    expect("tools", tokens(tools=[tool]) > base + len("_system\ntools: "), True)
    expect("no tools", tokens(tools=[tool], tool_choice="none"), base)
    expect("an empty list of tools", tokens(tools=[]), base)
    called = [{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
              {"role": "tool", "tool_call_id": "1", "content": "5"}]
    expect("a result of a tool", tokens(HELLO + called), base + len("_assistant\n_\n_tool\n5_\n"))


def refusals():
    """Each is 400 and names what is wrong."""
    user = {"role": "user", "content": "x"}
    cases = [({"messages": None}, "messages", "expected a list of at least one message"), ({"messages": []}, "messages", "at least one"),
             ({"messages": ["x"]}, "messages", "messages[0]: expected an object"), ({"messages": [user, {"role": "oracle", "content": "x"}]}, "messages", "messages[1].role: expected .* found oracle"),
             ({"messages": [{"content": "x"}]}, "messages", "messages[0].role"), ({"messages": [{"role": "user"}]}, "messages", "messages[0].content: expected a text"),
             ({"messages": [{"role": "user", "content": 5}]}, "messages", "content: expected a text"),
             ({"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]}, "messages", "messages[0].content[0]: a part of type 'image_url' is not supported"),
             ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages", "messages[0].content[0].text: expected a text"),
             ({"messages": [{"role": "user", "content": ["x"]}]}, "messages", "expected an object with a type"),
             ({"messages": [{"role": "assistant", "content": None, "tool_calls": ["x"]}]}, "messages", "tool_calls[0]: expected an object"),
             ({"messages": [{"role": "assistant", "content": "x", "tool_calls": 1}]}, "messages", "tool_calls: expected a list"),
             ({"messages": [user], "tools": [{"type": "retrieval"}]}, "tools", "tools[0].type: expected \"function\""),
             ({"messages": [user], "tools": 5}, "tools", "expected a list"), ({"messages": [user], "documents": [{"text": "x"}]}, "documents", "takes none"),
             ({"messages": [user], "tool_choice": "required"}, "tool_choice", "no tools to call"),
             ({"messages": [user], "tool_choice": {"type": "function", "function": {"name": "f"}}}, "tool_choice", "'f' is none of the tools"),
             ({"messages": [user], "chat_template": "x"}, "chat_template", "does not support"), ({"messages": [user], "functions": [{"name": "f"}]}, "functions", "does not support"),
             ({"messages": [user], "chat_template_kwargs": 5}, "chat_template_kwargs", "expected an object"),
             ({"messages": [user], "chat_template_kwargs": {"eos_token": "x"}}, "chat_template_kwargs", "'eos_token', which the server gives"),
             ({"messages": [user], "chat_template_kwargs": {f"k{i}": 1 for i in range(99)}}, "messages", "more than 64 variables"),
             ({"messages": [user], "temperature": -1}, "temperature", "expected"), ({"messages": [user], "n": 0}, "n", "expected")]
    for body, param, words in cases:
        status, answer = call("POST", "/v1/chat/completions", body)
        error = json.loads(answer)["error"]
        expect(f"{body}", (status, error["param"], error["type"]), (400, param, "invalid_request_error"))
        for word in words.split(" .* "):
            if word not in error["message"]:
                sys.exit(f"{body}: {error['message']}: expected {word}")
    status, answer = chat([{"role": "user", "content": "x" * 5000}])
    expect("a long conversation", (status, answer["error"]["code"], "4096 tokens" in answer["error"]["message"] and "5019" in answer["error"]["message"]),
           (400, "context_length_exceeded", True))
    ask()


def refused(*words):
    """All chats are; completions are not."""
    status, answer = chat()
    expect(f"{answer}", (status, [w for w in words if w not in answer["error"]["message"]]), (400, []))
    expect("a completion", call("POST", "/v1/completions", {"prompt": "x", "max_tokens": 1})[0], 200)


def raises():
    """A template's own refusal."""
    status, answer = chat([{"role": "tool", "content": "x"}])
    expect(f"{answer}", (status, "no tools here" in answer["error"]["message"]), (400, True))


def library():
    """The openai package."""
    import openai
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{PORT}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    whole = client.chat.completions.create(model=model, messages=HELLO)
    message = whole.choices[0].message
    expect("an answer", (message.role, message.content, message.reasoning_content), ("assistant", "Box", "why"))
    deltas = [p.choices[0].delta for p in client.chat.completions.create(model=model, messages=HELLO, stream=True)]
    expect("a stream", ("".join(d.content or "" for d in deltas), "".join(getattr(d, "reasoning_content", None) or "" for d in deltas)), ("Box", "why"))
    try:
        client.chat.completions.create(model=model, messages=[{"role": "user", "content": "x" * 5000}])
        sys.exit("a long conversation was not refused")
    except openai.BadRequestError as e:
        expect("code", e.code, "context_length_exceeded")


globals()[sys.argv[2]](*sys.argv[3:])
