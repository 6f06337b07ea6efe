#!/usr/bin/env python3
"""Pages that ask tpc-run --serve: origins.py PORT CASE."""
import http.client
import json
import sys

from calls import PORT, expect

EVIL = "http://evil.example"


def reply(method="POST", path="/v1/completions", **headers):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    c.putrequest(method, path, skip_host=True)
    body = json.dumps({"prompt": "Hello", "max_tokens": 2}).encode() if method == "POST" else b""
    for name, value in headers.items():
        if value is not None:
            c.putheader(name.replace("_", "-"), value)
    c.putheader("Content-Length", str(len(body)))
    c.endheaders(body)
    r = c.getresponse()
    text = r.read()
    if r.status == 403 and len(json.loads(text)["error"]["message"]) < 20:
        sys.exit(f"no sentence: {text}")
    return r.status, r.getheader("Access-Control-Allow-Origin"), r


def table(cases):
    for host, origin, status, allowed in cases:
        got = reply(Host=host, Origin=origin, Content_Type="text/plain")
        expect(f"Host {host}, Origin {origin}", got[:2], (status, allowed))


def local():
    """On this machine alone: names of it, at any port."""
    own = [f"127.0.0.1:{PORT}", "127.0.0.1", "localhost", f"LocalHost:{PORT}", "localhost:1", "127.9.9.9", "[::1]:80", "[::1]", "model.localhost", "[::ffff:127.0.0.1]"]
    others = ["evil.example", f"evil.example:{PORT}", "localhost.evil.example", "127.0.0.1.evil.example", "evillocalhost", "10.0.0.1", "[::2]", "[::1", "[::1]x", "localhost:80x", "", "0.0.0.0",
              "x" * 3000, "localhost@evil.example", "127.0.0.1:80:80", "::1"]
    table([(h, None, 200, None) for h in own] + [(h, None, 403, None) for h in others])
    table([("localhost", f"http://{h}", 200, None) for h in own] + [("localhost", f"https://{h}", 403, None) for h in others])
    table([("localhost", o, 403, None) for o in [EVIL, "null", "", "file://", "localhost", "chrome-extension://abc", "http://"]])
    for path in ["/v1/models", "/health", "/metrics", "/nothing"]:
        expect(path, reply("GET", path, Host="evil.example")[0], 403)
    status, _, r = reply("OPTIONS", Host="localhost")
    expect("OPTIONS", (status, r.getheader("Allow")), (204, "POST, OPTIONS"))
    expect("OPTIONS of a page", reply("OPTIONS", Host="localhost", Origin=EVIL)[:2], (403, None))


def preflight(origin, allowed):
    status, found, r = reply("OPTIONS", Host="localhost", Origin=origin, Access_Control_Request_Method="POST", Access_Control_Request_Headers="authorization,content-type,x-stainless-os")
    names = ["Access-Control-Allow-Methods", "Access-Control-Allow-Headers", "Access-Control-Max-Age"]
    expect("preflight", (status, found, [r.getheader(n) for n in names]), (204, allowed, ["POST, OPTIONS", "authorization,content-type,x-stainless-os", "600"]))


def named():
    """--cors https://page.example --cors http://other.example:3000"""
    page, other = "https://page.example", "http://other.example:3000"
    table([("localhost", page, 200, page), ("localhost", other, 200, other), ("localhost", EVIL, 403, None), ("localhost", "http://other.example", 403, None), ("localhost", "http://page.example", 403, None),
           ("localhost", "http://localhost:5173", 200, None), ("page.example", None, 200, None), ("PAGE.example:443", page, 200, page), ("evil.example", None, 403, None), ("evil.example", page, 403, page)])
    preflight(page, page)
    status, _, r = reply("GET", "/v1/models", Host="localhost", Origin=page)
    expect("headers", (status, r.getheader("Vary"), r.getheader("Access-Control-Expose-Headers")), (200, "Origin", "X-Ignored-Fields"))
    expect("an error", reply("GET", "/nothing", Host="localhost", Origin=page)[:2], (404, page))


def anyone():
    """--cors '*'"""
    table([("localhost", EVIL, 200, "*"), ("evil.example", None, 200, None), ("evil.example", EVIL, 200, "*"), ("localhost", "null", 200, "*")])
    preflight(EVIL, "*")


def open_to_all():
    """--host names another address: any name leads there."""
    table([("evil.example", None, 200, None), ("evil.example", EVIL, 200, None)])


globals()[sys.argv[2]](*sys.argv[3:])
