"""What the clients of tests/serve share: calls of the server at PORT, the first argument, and what they expect."""
import http.client
import json
import sys
import time

PORT = int(sys.argv[1])


def call(method, path, body=None, timeout=120):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout)
    c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body).encode())
    r = c.getresponse()
    text = r.read()
    c.close()
    return r.status, text


def ask(**body):
    status, text = call("POST", "/v1/completions", body)
    if status != 200:
        sys.exit(f"{body}: {status} {text}")
    return json.loads(text)


def text_of(**body):
    return ask(**body)["choices"][0]["text"]


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r}, expected {wanted!r}")


def metric(name):
    lines = call("GET", "/metrics")[1].decode().split("\n")
    return float(next(line.split()[1] for line in lines if line.startswith(f"tpc_{name} ")))


def until(what, true, seconds=30):
    end = time.time() + seconds
    while not true():
        if time.time() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.02)


def events(**body):
    status, text = call("POST", "/v1/completions", dict(body, stream=True))
    expect("status", status, 200)
    lines = text.decode().split("\n\n")
    expect("the end of a stream", lines[-2:], ["data: [DONE]", ""])
    return [json.loads(line[6:]) for line in lines[:-2]]
