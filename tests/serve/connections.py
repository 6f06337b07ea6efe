#!/usr/bin/env python3
"""Connections to tpc-run --serve that are slow, many, endless or half closed: connections.py PORT CASE."""
import concurrent.futures
import http.client
import json
import select
import socket
import sys
import time

from calls import PORT, call, expect, metric, text_of, until

HEAD = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"


def connect(*parts):
    s = socket.create_connection(("127.0.0.1", PORT), timeout=60)
    for p in parts:
        s.sendall(p)
    return s


def is_closed(s):
    look = select.poll()
    look.register(s, select.POLLIN)
    if not look.poll(0):
        return False
    try:
        return s.recv(1000) == b""
    except ConnectionError:
        return True


def slow(limit):
    """A client that sends a byte now and then is cut off after a total time, in headers, bodies, chunks, and between requests."""
    limit = int(limit)
    start = time.time()
    between = connect(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    between.recv(1000)
    drips = [connect(HEAD, b"X: "), connect(HEAD, b"Content-Length: 1000\r\n\r\n{"), connect(HEAD, b"Transfer-Encoding: chunked\r\n\r\n"), connect()]
    byte = [b"x", b" ", b"1\r\n \r\n", b""]
    ended = {}
    while len(ended) <= len(drips) and time.time() < start + limit + 20:
        for i, s in enumerate(drips + [between]):
            if i in ended:
                continue
            if is_closed(s):
                ended[i] = time.time() - start
            elif i < len(drips):
                try:
                    s.sendall(byte[i])
                except ConnectionError:
                    ended[i] = time.time() - start
        time.sleep(0.05)
    if len(ended) <= len(drips) or min(ended.values()) < limit - 0.1 or max(ended.values()) > limit + 5:
        sys.exit(f"cut off after {ended} s, expected {limit}")


def crowd():
    """Connections that send no request do not keep others out, however many they are."""
    clients = []
    for i in range(900):
        clients.append(connect(HEAD, b"X: "))
        if i % 100 == 99:
            start = time.time()
            expect("health", call("GET", "/health", timeout=5)[0], 200)
            for s in clients[-300:]:
                try:
                    s.sendall(b"x")
                except ConnectionError:
                    pass
            if time.time() - start > 3:
                sys.exit(f"{i + 1} connections: health took {time.time() - start:.1f} s")
    expect("those that were closed", 300 < sum(is_closed(s) for s in clients) < 420, True)
    expect("a text", len(text_of(prompt="Hello", max_tokens=3)) > 0, True)
    for s in clients:
        s.close()


def status_of(s):
    got = b""
    try:
        while b"\r\n" not in got:
            part = s.recv(1000)
            if not part:
                break
            got += part
    except ConnectionError:
        pass
    return int(got.split()[1]) if got else 0


def endless():
    """Bodies beyond 1 MiB are refused, by a length or without one; one without end is not read for long."""
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    ok = b'{"prompt": "Hello", "max_tokens": 2}'
    for what, body, wanted in [("chunks", b"%x\r\n%s\r\n0\r\n\r\n" % (len(ok), ok), 200), ("1 MiB of chunks", chunk * 15 + b"%x\r\n%s\r\n0\r\n\r\n" % (len(ok), ok), 200),
                               ("2 MiB of chunks", chunk * 32 + b"0\r\n\r\n", 413)]:
        s = connect(HEAD, b"Transfer-Encoding: chunked\r\n\r\n", body)
        expect(what, status_of(s), wanted)
        s.close()
    for n, sent in [(2**21, 2**21), (2**27, 0), (2**63, 0), (2**64, 0)]:
        s = connect(HEAD, b"Content-Length: %d\r\n\r\n" % n, b" " * sent)
        expect(f"a length of {n}", status_of(s) in ([413] if n < 2**63 else [400, 413]), True)
        s.close()
    s, sent = connect(HEAD, b"Transfer-Encoding: chunked\r\n\r\n"), 0
    try:
        while sent < 2**28:
            s.sendall(chunk)
            sent += len(chunk)
    except ConnectionError:
        pass
    if sent > 2**25:
        sys.exit(f"{sent} bytes of an endless body were taken")
    expect("an endless body", status_of(s), 413)
    expect("a text", len(text_of(prompt="Hello", max_tokens=3)) > 0, True)


def post(body, version=b"1.1"):
    text = json.dumps(body).encode()
    return connect(b"POST /v1/completions HTTP/%s\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % (version, len(text)) + text)


def whole(s):
    got = b""
    while True:
        part = s.recv(65536)
        if not part:
            return got
        got += part


def ended(body):
    s = post(body)
    s.shutdown(socket.SHUT_WR)
    return whole(s)


def half():
    """A client that ends its own side gets its answer; one that closes, whatever it has sent, frees its row."""
    body = {"prompt": "Hello", "max_tokens": 300, "temperature": 0}
    text = text_of(**body)
    for version, interim in [(b"1.1", True), (b"1.0", False)]:
        for stream in [False, True]:
            s = post(dict(body, stream=stream), version)
            s.shutdown(socket.SHUT_WR)
            got = whole(s)
            if not interim and b" 100 Continue" in got:
                sys.exit("an interim reply to HTTP/1.0")
            while got.startswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
                got = got[25:]
            expect("status", got.split()[1], b"200")
            if stream:
                expect("the end of a stream", b"data: [DONE]\n\n" in got, True)
            else:
                expect("text", json.loads(got[got.index(b"\r\n\r\n"):])["choices"][0]["text"], text)
    with concurrent.futures.ThreadPoolExecutor(20) as pool:
        for got in pool.map(lambda i: ended(dict(body, max_tokens=60, stream=i % 2 == 0)), range(80)):
            expect("an answer of many", b"HTTP/1.1 200 OK" in got, True)
    for stream in [False, True]:
        before, made = metric("clients_vanished_total"), metric("generated_tokens_total")
        s = post(dict(body, max_tokens=4000, stream=stream))
        until("a row in use", lambda: metric("generated_tokens_total") > made)
        s.close()
        until("no row in use", lambda: metric("rows") == 0)
        expect("a client that left is seen", metric("clients_vanished_total") - before, 1)
    s = post(dict(body, max_tokens=4000))
    s.shutdown(socket.SHUT_WR)
    until("a row of the half-closed", lambda: metric("rows") == 1)
    time.sleep(0.3)
    expect("it stays", metric("rows"), 1)
    s.close()


def busy():
    """While long prompts become tokens, others are answered."""
    clients = [post({"prompt": "word " * 200000}) for _ in range(24)]
    start, took, left = time.time(), [], len(clients)
    while left and time.time() < start + 0.5:
        before = time.time()
        expect("health", call("GET", "/health")[0], 200)
        left = len(clients) - len(select.select(clients, [], [], 0)[0])
        took += [time.time() - before] * (left > 0)
    for s in clients:
        expect("a long prompt", status_of(s), 400)
    expect("others are answered while some wait", len(took) > 0, True)
    print(f"{left} waited while {len(took)} others were answered, in {max(took):.3f} s at most")


def addresses(host, most):
    """One other address has a limited number of connections."""
    def alive():
        c = http.client.HTTPConnection(host, PORT, timeout=10)
        c.request("GET", "/health")
        c.getresponse().read()
        return c
    def refused():
        try:
            return alive() is None
        except (ConnectionError, http.client.HTTPException):
            return True
    kept = [alive() for _ in range(int(most))]
    expect("one more is refused", refused(), True)
    kept.pop().close()
    until("room for another", lambda: not refused())
    for _ in range(20):
        expect("this machine", call("GET", "/health")[0], 200)


globals()[sys.argv[2]](*sys.argv[3:])
