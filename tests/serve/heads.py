#!/usr/bin/env python3
"""Raw requests to tpc-run --serve whose heads may be read in two ways: heads.py PORT. Each is followed by another request, which must not be
seen: there is one reply, and the connection is closed."""
import socket
import sys

from calls import PORT, expect

BODY = b'{"prompt": "Hello", "max_tokens": 1}'
N = len(BODY)
POST = b"POST /v1/completions HTTP/1.1\r\n"
HOST = b"Host: localhost\r\n"
LENGTH = b"Content-Length: %d\r\n" % N
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (N, BODY)
NEXT = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
GET = b"GET /health HTTP/1.1\r\n"

GOOD = {
    "a length": POST + HOST + LENGTH + b"\r\n" + BODY,
    "a length with zeros": POST + HOST + b"Content-Length: 000%d\r\n\r\n" % N + BODY,
    "chunks": POST + HOST + CHUNKED + b"\r\n" + CHUNKS,
    "chunks, in capitals": POST + HOST + b"TRANSFER-ENCODING: Chunked\r\n\r\n" + CHUNKS,
    "chunks with zeros and extensions": POST + HOST + CHUNKED + b"\r\n00%x;a=b\r\n%s\r\n0\r\n\r\n" % (N, BODY),
    "a trailer": POST + HOST + CHUNKED + b"\r\n%x\r\n%s\r\n0\r\nContent-Length: 5\r\n\r\n" % (N, BODY),
    "names like those of lengths": GET + HOST + b"X-Content-Length: 5\r\nContent-Len: 6\r\nX-Transfer-Encoding: x\r\n\r\n",
    "a body of GET": GET + HOST + b"Content-Length: %d\r\n\r\n" % len(NEXT) + NEXT,
}
LENGTHS = [(v, 400) for v in [b"-5", b"+5", b"5,5", b"5, 5", b"0x5", b"", b"5 5", b"5a", b"1e3", b"5.0", b"\x0b5", b"\xc2\xb2"]]
LENGTHS += [(v, 413) for v in [b"9" * 30, b"18446744073709551616", b"18446744073709551615", b"9223372036854775808", b"1073741824"]]
BAD = {f"Content-Length: {v!r}": (POST + HOST + b"Content-Length: " + v + b"\r\n\r\n" + BODY, status) for v, status in LENGTHS}
BAD |= {f"Transfer-Encoding: {v!r}": (POST + HOST + b"Transfer-Encoding: " + v + b"\r\n\r\n" + CHUNKS, 501)
        for v in [b"gzip, chunked", b"chunked, chunked", b"identity", b"xchunked", b"", b"chunked;x"]}
BAD |= {f"a chunk of {v!r}": (POST + HOST + CHUNKED + b"\r\n" + v + b"\r\n" + BODY + b"\r\n0\r\n\r\n", 400)
        for v in [b"-5", b"+24", b"0x24", b"", b" 24", b"24 ", b"24\t", b"2 4", b"g"]}
BAD |= {
    "a chunk beyond 64 bits": (POST + HOST + CHUNKED + b"\r\n" + b"f" * 17 + b"\r\n", 413),
    "a chunk without its end": (POST + HOST + CHUNKED + b"\r\n%x\r\n%sXX0\r\n\r\n" % (N, BODY), 400),
    "no Host": (GET + b"\r\n", 400),
    "no Host, with a body": (POST + LENGTH + b"\r\n" + BODY, 400),
    "two hosts": (GET + HOST + HOST + b"\r\n", 400),
    "a length, then chunks": (POST + HOST + LENGTH + CHUNKED + b"\r\n" + CHUNKS, 400),
    "chunks, then a length": (POST + HOST + CHUNKED + LENGTH + b"\r\n" + CHUNKS, 400),
    "chunks twice": (POST + HOST + CHUNKED + CHUNKED + b"\r\n" + CHUNKS, 400),
    "chunks of HTTP/1.0": (POST.replace(b"1.1", b"1.0") + HOST + CHUNKED + b"\r\n" + CHUNKS, 400),
    "a length twice": (POST + HOST + LENGTH + LENGTH + b"\r\n" + BODY, 400),
    "a short length, then a long one": (POST + HOST + b"Content-Length: 5\r\n" + LENGTH + b"\r\n" + BODY, 400),
    "a long length, then a short one": (POST + HOST + LENGTH + b"Content-Length: 5\r\n\r\n" + BODY, 400),
    "a length of GET": (GET + HOST + b"Content-Length: -5\r\n\r\n", 400),
    "a space after Content-Length": (POST + HOST + b"Content-Length : %d\r\n\r\n" % N + BODY, 400),
    "a space after Transfer-Encoding": (POST + HOST + b"Transfer-Encoding : chunked\r\n\r\n" + CHUNKS, 400),
    "a tab after a name": (POST + HOST + LENGTH + b"X\t: y\r\n\r\n" + BODY, 400),
    "a space in a name": (POST + HOST + LENGTH + b"X y: z\r\n\r\n" + BODY, 400),
    "a control character in a name": (POST + HOST + LENGTH + b"X\x01: z\r\n\r\n" + BODY, 400),
    "a zero byte in a name": (POST + HOST + LENGTH + b"a\0b: z\r\n\r\n" + BODY, 400),
    "a name without a colon": (POST + HOST + LENGTH + b"colon\r\n\r\n" + BODY, 400),
    "a folded length": (POST + HOST + b"Content-Length: 3\r\n 6\r\n\r\n" + BODY, 400),
    "a length on the next line": (POST + HOST + b"Content-Length:\r\n %d\r\n\r\n" % N + BODY, 400),
    "a folded encoding": (GET + HOST + b"Transfer-Encoding:\r\n\tchunked\r\n\r\n", 400),
    "a folded first line": (POST + b" X: y\r\n" + HOST + LENGTH + b"\r\n" + BODY, 400),
    "HTTP/2.0": (GET.replace(b"1.1", b"2.0") + HOST + b"\r\n", 505),
    "no version": (b"GET /health\r\n\r\n", 400),
    "another version": (b"GET /health JUNK\r\n\r\n", 400),
    "a long header": (GET + HOST + b"X: " + b"a" * 10**5 + b"\r\n\r\n", 431),
    "a long address": (b"GET /" + b"a" * 10**5 + b" HTTP/1.1\r\n\r\n", 414),
}


def take_reply(got):
    """The status of the first reply, and what is left after it."""
    head, found, rest = got.partition(b"\r\n\r\n")
    if not found:
        return None, got
    n = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    return (int(head.split()[1]), rest[n:]) if len(rest) >= n else (None, got)


def replies(raw, most):
    """The statuses of a number of replies; None if the connection was closed instead."""
    with socket.create_connection(("127.0.0.1", PORT), timeout=60) as s:
        s.sendall(raw)
        got, found = b"", []
        while len(found) < most:
            status, got = take_reply(got)
            if status:
                found.append(status)
                continue
            part = s.recv(65536)
            if not part:
                expect(f"{raw[:300]!r}: bytes after {found}", got, b"")
                return found + [None]
            got += part
        return found


for what, raw in GOOD.items():
    expect(what, replies(raw + NEXT, 2), [200, 200])
expect("HTTP/1.0 has no Host", replies(b"GET /health HTTP/1.0\r\n\r\n", 2), [200, None])
def closed(raw):
    """All that comes until the connection is closed."""
    got = b""
    with socket.create_connection(("127.0.0.1", PORT), timeout=60) as s:
        s.sendall(raw)
        try:
            while part := s.recv(65536):
                got += part
        except ConnectionError:
            pass
    return got


for what, (raw, status) in BAD.items():
    if "ength" in what:  # libmicrohttpd 0.9.75 answers a length that it can't read with the head of a reply twice
        got = closed(raw + NEXT)
        expect(what, (got[:10], b" 200 " in got), (b"HTTP/1.1 4", False))
        continue
    try:
        expect(what, replies(raw + NEXT, 2), [status, None])
    except ConnectionError as e:
        sys.exit(f"{what}: {e}")
