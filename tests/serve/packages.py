#!/usr/bin/env python3
"""Clients that people use, each as its package calls a server: packages.py PORT PACKAGE [KEY]. Texts are what a plain request gets."""
import json
import sys

from calls import PORT, ask, call, expect

URL = f"http://127.0.0.1:{PORT}/v1"
PROMPT, MOST = "Hello", 9
BIAS = {str(t): -100 for t in list(range(32)) + list(range(127, 256))}
MESSAGES = [{"role": "user", "content": PROMPT}]  # the template of the model is the content of the messages


def wanted(**fields):
    return ask(prompt=PROMPT, max_tokens=MOST, logit_bias=BIAS, **fields)["choices"][0]


GREEDY = {"temperature": 0}
STEERED = {"temperature": 1.2, "seed": 3, "presence_penalty": 1, "frequency_penalty": 0.5, "top_p": 0.9}


def openai(key="none"):
    import openai
    client = openai.OpenAI(base_url=URL, api_key=key, max_retries=0)
    model = client.models.list().data[0].id
    expect("the model", client.models.retrieve(model).id, model)
    if key != "none":
        expect("a text with a key", client.completions.create(model=model, prompt=PROMPT, max_tokens=2).usage.completion_tokens, 2)
        try:
            openai.OpenAI(base_url=URL, api_key=key + "x", max_retries=0).models.list()
            sys.exit("a wrong key was taken")
        except openai.AuthenticationError as e:
            expect("a wrong key", e.body["code"], "invalid_api_key")
        return
    for fields in [GREEDY, STEERED]:
        text = wanted(**fields, logprobs=2)
        call = dict(fields, model=model, max_tokens=MOST, logit_bias=BIAS)
        got = client.completions.create(**call, prompt=PROMPT, logprobs=2, user="me").choices[0]
        expect("a text", (got.text, got.logprobs.model_dump()), (text["text"], text["logprobs"]))
        parts = list(client.completions.create(**call, prompt=PROMPT, logprobs=2, stream=True, stream_options={"include_usage": True}))
        expect("a stream", "".join(p.choices[0].text for p in parts[:-1]), text["text"])
        expect("its tokens", [t for p in parts[:-1] if p.choices[0].logprobs for t in p.choices[0].logprobs.tokens], text["logprobs"]["tokens"])
        expect("its usage", parts[-1].usage.completion_tokens, MOST)
        echo = client.completions.create(**call, prompt=PROMPT, logprobs=0, echo=True).choices[0]
        expect("an echo", (echo.text, len(echo.logprobs.token_logprobs)), (PROMPT + text["text"], len(PROMPT) + MOST))
        chat = client.chat.completions.create(**call, messages=MESSAGES, logprobs=True, top_logprobs=2).choices[0]
        expect("a chat", (chat.message.content, [t.token for t in chat.logprobs.content]), (text["text"], text["logprobs"]["tokens"]))
        parts = list(client.chat.completions.create(**call, messages=MESSAGES, stream=True, logprobs=True))
        expect("a chat's stream", "".join(p.choices[0].delta.content or "" for p in parts), text["text"])
        expect("its tokens", [t.token for p in parts if p.choices[0].logprobs for t in p.choices[0].logprobs.content], text["logprobs"]["tokens"])
    structured(client)
    try:
        client.responses.create(model=model, input="x")
        sys.exit("an address that there is not was answered")
    except openai.NotFoundError as e:
        expect("what to use instead", "this server has no /v1/" in e.body["message"], True)
    try:
        client.embeddings.create(model=model, input="x")
        sys.exit("embeddings of a model that has none")
    except openai.BadRequestError as e:
        expect("why there are none", "returns no last_hidden_state" in e.body["message"], True)


TEXTS = ["a text", "another one that is longer", "x"]


def plain_vectors(**fields):
    return [d["embedding"] for d in json.loads(call("POST", "/v1/embeddings", dict(fields, input=TEXTS))[1])["data"]]


def near(what, got, wanted):  # a client reads base64, and numbers of f32
    expect(what, [len(v) for v in got], [len(v) for v in wanted])
    worst = max(abs(x - y) for v, w in zip(got, wanted) for x, y in zip(v, w))
    expect(f"{what}: worst difference {worst}", worst < 1e-7, True)


def openai_embeddings():
    import openai
    client = openai.OpenAI(base_url=URL, api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    for fields in [{}, {"dimensions": 7}]:
        got = client.embeddings.create(model=model, input=TEXTS, **fields)  # asks for base64
        near("vectors", [d.embedding for d in got.data], plain_vectors(**fields))
        expect("usage", (got.usage.prompt_tokens, got.usage.total_tokens), (sum(map(len, TEXTS)),) * 2)
    got = client.embeddings.create(model=model, input=[ord(c) for c in TEXTS[0]], encoding_format="float")
    near("tokens", [got.data[0].embedding], plain_vectors()[:1])
    try:
        client.embeddings.create(model=model, input="x" * 1000)
        sys.exit("a text that is too long was taken")
    except openai.BadRequestError as e:
        expect("a text that is too long", e.code, "context_length_exceeded")


def langchain_embeddings():
    from langchain_openai import OpenAIEmbeddings
    client = OpenAIEmbeddings(base_url=URL, api_key="none", model="any", check_embedding_ctx_length=False, max_retries=0)
    near("vectors", client.embed_documents(TEXTS), plain_vectors())
    near("a query", [client.embed_query(TEXTS[1])], plain_vectors()[1:2])


def classes():
    import typing

    import pydantic

    class Part(pydantic.BaseModel):
        kind: typing.Literal["a", "b"]
        size: float | None = pydantic.Field(ge=0, le=9, description="how large")

    class Thing(pydantic.BaseModel):
        name: str = pydantic.Field(max_length=4)
        parts: list[Part] = pydantic.Field(min_length=1, max_length=2)
        next: "Thing | None" = None
        day: typing.Literal[1, 2, None] = None

    class Weather(pydantic.BaseModel):
        """The weather."""
        city: typing.Literal["Ulm", "Rom"]
        days: int = pydantic.Field(ge=1, le=9)

    return Thing, Weather


def structured(client):
    import openai
    thing, weather = classes()
    for seed in range(3):
        found = client.chat.completions.parse(model="any", messages=MESSAGES, response_format=thing, seed=seed, max_tokens=2000).choices[0].message.parsed
        expect("an object of a class", isinstance(found, thing), True)
        with client.chat.completions.stream(model="any", messages=MESSAGES, response_format=thing, seed=seed, max_tokens=2000) as stream:
            expect("the same as a stream", stream.get_final_completion().choices[0].message.parsed, found)
    asked = {"model": "any", "messages": MESSAGES, "tools": [openai.pydantic_function_tool(weather)], "max_tokens": 400, "seed": 1, "parallel_tool_calls": False}
    called = client.chat.completions.parse(**asked, tool_choice="required").choices[0]
    made = called.message.tool_calls[0].function.parsed_arguments
    expect("a call of a class", (called.finish_reason, called.message.content, isinstance(made, weather)), ("tool_calls", None, True))
    with client.chat.completions.stream(**asked, tool_choice="required") as stream:
        expect("the same as a stream", stream.get_final_completion().choices[0].message.tool_calls[0].function.parsed_arguments, made)
    try:
        client.chat.completions.create(model="any", messages=MESSAGES, response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": {"not": {}}}})
        sys.exit("a schema that is not supported was taken")
    except openai.BadRequestError as e:
        expect("what is refused", (e.body["param"], "'not' is not supported" in e.body["message"]), ("response_format", True))


def langchain():
    from langchain_openai import ChatOpenAI, OpenAI
    for fields in [GREEDY, STEERED]:
        text = wanted(**fields)["text"]
        common = dict(fields, base_url=URL, api_key="none", model="any", max_tokens=MOST, max_retries=0)
        plain = OpenAI(**common, logit_bias=BIAS)
        expect("a text", plain.invoke(PROMPT), text)
        expect("a stream", "".join(plain.stream(PROMPT)), text)
        several = plain.batch([PROMPT, PROMPT])  # of one request: each draws for itself
        expect("several prompts", several if fields is GREEDY else several[:1], [text] * (2 if fields is GREEDY else 1))
        chat = ChatOpenAI(**common, logit_bias=BIAS)
        expect("a chat", chat.invoke(PROMPT).content, text)
        expect("a chat's stream", "".join(part.content for part in chat.stream(PROMPT)), text)
        bound = chat.bind(logprobs=True, top_logprobs=1).invoke(PROMPT)
        expect("its tokens", "".join(t["token"] for t in bound.response_metadata["logprobs"]["content"]), text)
    _, weather = classes()
    chat = ChatOpenAI(base_url=URL, api_key="none", model="any", max_tokens=400, max_retries=0, seed=1)
    for method in ["json_schema", "function_calling"]:
        expect(method, isinstance(chat.with_structured_output(weather, method=method).invoke(PROMPT), weather), True)
    bound = chat.bind_tools([weather], tool_choice="any", parallel_tool_calls=False)
    calls = bound.invoke(PROMPT).tool_calls
    parts = list(bound.stream(PROMPT))
    expect("calls of a stream", [c["args"] for p in parts for c in p.tool_calls], [c["args"] for c in calls])
    stop = wanted(**GREEDY)["text"][4]
    greedy = OpenAI(base_url=URL, api_key="none", model="any", max_tokens=MOST, logit_bias=BIAS, max_retries=0, **GREEDY)
    expect("a stop", greedy.invoke(PROMPT, stop=[stop]), wanted(**GREEDY, stop=stop)["text"])


def litellm():
    import litellm
    litellm.telemetry = False
    for fields in [GREEDY, STEERED]:
        text = wanted(**fields)["text"]
        common = dict(fields, api_base=URL, api_key="none", max_tokens=MOST, logit_bias=BIAS, num_retries=0)
        expect("a text", litellm.text_completion(model="text-completion-openai/any", prompt=PROMPT, **common).choices[0].text, text)
        parts = litellm.text_completion(model="text-completion-openai/any", prompt=PROMPT, stream=True, **common)
        expect("a stream", "".join(p.choices[0].text or "" for p in parts), text)
        expect("a chat", litellm.completion(model="openai/any", messages=MESSAGES, **common).choices[0].message.content, text)
        parts = litellm.completion(model="openai/any", messages=MESSAGES, stream=True, **common)
        expect("a chat's stream", "".join(p.choices[0].delta.content or "" for p in parts), text)


{"openai": openai, "langchain": langchain, "litellm": litellm, "openai_embeddings": openai_embeddings,
 "langchain_embeddings": langchain_embeddings}[sys.argv[2]](*sys.argv[3:])
