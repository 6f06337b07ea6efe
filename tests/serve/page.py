#!/usr/bin/env python3
"""The page of the server at PORT in a headless Chromium: page.py PORT files, or PORT BROWSER WORK chat|thoughts KEY|text|embeddings."""
import http.client
import re
import sys

from calls import PORT, call, expect, metric, until

URL = f"http://127.0.0.1:{PORT}/"

# ---- without a browser


def files():
    """What is served, and to whom."""
    whole = 0
    for path, kind in [("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")]:
        for method in ("GET", "HEAD"):
            c = http.client.HTTPConnection("127.0.0.1", PORT)
            c.request(method, path)
            r = c.getresponse()
            text = r.read().decode()
            expect(f"{method} {path}", (r.status, r.headers["Content-Type"]), (200, f"{kind}; charset=utf-8"))
            for directive in ("default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"):
                expect(directive, directive in r.headers["Content-Security-Policy"], True)
            expect("headers", (r.headers["X-Content-Type-Options"], r.headers["Referrer-Policy"]), ("nosniff", "no-referrer"))
            expect("a body", bool(text), method == "GET")
            whole += len(text.encode())
            expect("no other address", re.findall(r"(?:https?:)?//[a-z]+\.|@import|url\(|innerHTML|insertAdjacentHTML|document\.write", text), [])
            expect("no script or style in attributes", re.findall(r"\s(?:on[a-z]+|style)=", text) if path == "/" else [], [])
        expect(f"POST {path}", call("POST", path, {})[0], 405)
    expect(f"{whole} bytes", whole < 60000, True)
    for path in ("//", "/page", "/page.js/", "/index.html"):
        expect(path, call("GET", path)[0] in (401, 404), True)
    c = http.client.HTTPConnection("127.0.0.1", PORT)
    c.request("GET", "/", headers={"Host": "evil.example"})
    expect("another host", c.getresponse().status, 403)


# ---- with one

def at(b, name):
    return f"document.getElementById('{name}')"


def words(b, name):
    return b.run(f"{at(b, name)}.textContent")


def answers(b):
    return b.run("[...document.querySelectorAll('article.model > div')].map(e => e.textContent)")


def whole(b):
    """An answer is there, and so is its speed."""
    b.until(f"{at(b, 'stop')}.disabled && {at(b, 'told')}.textContent")
    return words(b, "told")


def setting(b, name, value):
    b.run(f"document.getElementById('settings').open = true; document.querySelector('[name={name}]').select()")
    b.type(value)


def check_look(b):
    """Wide and narrow, light and dark: nothing beyond the right edge, every text stands out (WCAG AA)."""
    for width in (400, 1280):
        for dark in (False, True):
            b.look(width, 800, dark)
            beyond = b.run("""[...document.querySelectorAll('body *')].filter(e => e.getClientRects().length &&
                e.getBoundingClientRect().right > innerWidth + 1).map(e => e.outerHTML.slice(0, 80))""")
            expect(f"{width}: beyond the edge", (beyond, b.run("document.documentElement.scrollWidth <= innerWidth")), ([], True))
            faint = b.run("""(() => {
                const rgb = c => c.match(/[\\d.]+/g).map(Number);
                const light = c => c.slice(0, 3).map(x => x / 255).map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4)
                    .reduce((s, x, i) => s + x * [.2126, .7152, .0722][i], 0);
                const paper = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c[3] !== 0) return c; } };
                return [...document.querySelectorAll('body *')].filter(e => e.getClientRects().length && [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()))
                    .map(e => { const [x, y] = [light(rgb(getComputedStyle(e).color)), light(paper(e))].sort((a, b) => b - a); return [(x + .05) / (y + .05), e.outerHTML.slice(0, 60)]; })
                    .filter(r => r[0] < 4.5);
            })()""")
            expect(f"{width}, {'dark' if dark else 'light'}: faint texts", faint, [])
            paper = sum(map(int, re.findall(r"\d+", b.run("getComputedStyle(document.body).backgroundColor"))[:3]))
            expect("paper", paper < 200, dark)


def check_quiet(b):
    expect("console", b.console, [])
    expect("requests to others", [u for u in b.asked if not u.startswith((URL, "data:"))], [])


def chat(b):
    """A model that says <img src=x> without an end: two turns, markup, streaming, stop, settings, keyboard, roles and names."""
    b.until("document.activeElement.id === 'text'")
    expect("title", b.run("document.title"), "endless.2 · tpc")
    check_look(b)
    setting(b, "max_tokens", "22")
    setting(b, "temperature", "0")
    b.run("text.focus()")
    b.type("<b>one</b>")
    b.enter(shift=True)
    b.type("two")
    expect("a line is begun", b.run("text.value"), "<b>one</b>\ntwo")
    b.enter()
    first = whole(b)
    expect("an answer", answers(b), ["<img src=x>" * 2])
    expect("a question", b.run("document.querySelector('article.user div').textContent"), "<b>one</b>\ntwo")
    expect("markup is text", b.run("document.querySelectorAll('#log img, #log b').length"), 0)
    expect(f"speed: {first}", bool(re.fullmatch(r"22 tokens, [\d.]+ tokens/s, first after [\d.]+ s, prompt of \d+", first)), True)
    expect("it tells why it ends", "at the most tokens" in b.run("document.querySelector('.told').textContent"), True)
    expect("focus stays", b.run("document.activeElement.id"), "text")
    size = int(first.split()[-1])
    b.type("go on")
    b.enter()
    second = whole(b)
    expect(f"the conversation goes on: {second}", int(second.split()[-1]) > size + 22, True)
    # settings: a system prompt makes the prompt longer; a wrong number is told
    b.run("document.getElementById('new').click()")
    expect("a new chat", (b.run("document.querySelectorAll('article').length"), words(b, "told"), b.run("document.activeElement.id")), (0, "", "text"))
    setting(b, "system", "You are a test.")
    b.run("text.focus()")
    b.type("<b>one</b>\ntwo")
    b.enter()
    longer = whole(b)
    expect(f"a system prompt: {longer}", int(longer.split()[-1]) > size + len("You are a test."), True)
    setting(b, "top_p", "2")
    b.run("text.focus()")
    b.type("kept")
    b.enter()
    b.until(f"{at(b, 'error')}.textContent.startsWith('Top p: ')")
    expect("the message is kept, and the field has the focus", (b.run("text.value"), b.run("document.activeElement.name")), ("kept", "top_p"))
    b.run("document.activeElement.value = ''")
    # a stream that is seen to grow, by the keyboard alone
    b.run("document.querySelector('[name=max_tokens]').value = ''; text.focus()")
    b.enter()
    lengths = [len(b.until(f"[...document.querySelectorAll('article.model > div')].pop().textContent.length > {n} && "
                           "[...document.querySelectorAll('article.model > div')].pop().textContent")) for n in (0, 200, 600)]
    expect(f"it grows: {lengths}", (lengths == sorted(set(lengths)), b.run(f"{at(b, 'log')}.getAttribute('aria-busy')")), (True, "true"))
    expect("while it does, nothing else is sent", b.run(f"{at(b, 'send')}.disabled"), True)
    b.press("Escape", 27)
    told = whole(b)
    expect(f"it was stopped: {told}", bool(re.match(r"stopped: about \d+ tokens, [\d.]+ tokens/s", told)), True)
    expect("it can be read", b.run(f"{at(b, 'log')}.getAttribute('aria-busy')"), "false")
    until("its row is free", lambda: metric("rows") == 0)
    b.type("again")
    b.tab()
    b.enter()  # on the button
    b.until(f"!{at(b, 'stop')}.disabled && [...document.querySelectorAll('article.model > div')].pop().textContent")
    b.run(f"{at(b, 'stop')}.focus()")
    b.enter()
    expect(f"stopped by its button: {whole(b)}", words(b, "told").startswith("stopped: "), True)
    expect("the focus is back", b.run("document.activeElement.id"), "text")
    # from the message back to the settings, which open without a mouse
    b.run(f"{at(b, 'settings')}.open = false; text.focus()")
    b.tab(shift=True)
    expect("the settings are before the message", b.run("document.activeElement.tagName"), "SUMMARY")
    b.enter()
    expect("they open", b.run(f"{at(b, 'settings')}.open"), True)
    tree = b.tree()
    for role, name in [("textbox", "Message"), ("button", "Send"), ("button", "Stop"), ("button", "New chat"), ("log", "Conversation"),
                       ("textbox", "System prompt"), ("spinbutton", "Temperature"), ("spinbutton", "Most tokens"), ("heading", "You"), ("heading", "Model")]:
        expect(f"{role} {name}", (role, name) in tree, True)
    expect("what has no name", [r for r, n in tree if r in ("textbox", "spinbutton", "button", "log", "heading", "DisclosureTriangle") and not n], [])
    expect("what is told", sorted({r for r, _ in tree} & {"log", "status", "alert"}), ["alert", "log", "status"])
    check_look(b)
    check_quiet(b)
    b.run("""for (const [kind, words] of [['script', 'window.ran = true'], ['style', 'body{margin-left:77px}']]) {
        const e = document.createElement(kind); e.textContent = words; document.head.append(e); }""")
    expect("other scripts and styles do not run", b.run("[window.ran, getComputedStyle(document.body).marginLeft === '77px']"), [None, False])
    expect("requests elsewhere", b.run("fetch('http://localhost:9/').then(() => 'sent', e => e.name)"), "TypeError")
    expect("for the page forbids it", any("Content Security Policy" in line and "localhost:9" in line for line in b.console), True)


def thoughts(b, key):
    """Behind a key; an answer that ends by itself, with thoughts."""
    b.until("document.activeElement.name === 'key'")
    expect("why", "a key is needed" in words(b, "error"), True)
    b.type(key)
    b.tab()
    b.until("!document.getElementById('say').hidden")
    b.run("text.focus()")
    b.type("hello")
    b.enter()
    told = whole(b)
    expect("an answer", (answers(b), b.run("document.querySelector('article details div').textContent")), (["Box"], "why"))
    expect(f"no limit ended it: {told}", b.run("document.querySelectorAll('.told').length"), 0)
    expect("the key is in no address", [u for u in b.asked if key in u], [])


def text(b):
    """A model without a chat template continues a text."""
    b.until("document.activeElement.id === 'text'")
    expect("what it is", "without a chat template" in words(b, "about"), True)
    expect("no system prompt", b.run("document.querySelector('[name=system]').getClientRects().length"), 0)
    setting(b, "max_tokens", "9")
    setting(b, "seed", "4")
    b.run("text.focus()")
    b.type("Hello")
    expect("Enter is a line", (b.enter(), b.run("text.value"))[1], "Hello\n")
    b.run("text.value = 'Hello'")
    b.run(f"{at(b, 'send')}.focus()")
    b.enter()
    whole(b)
    from calls import text_of
    made = text_of(prompt="Hello", max_tokens=9, seed=4)
    shown = lambda s: s.replace("\r\n", "\n").replace("\r", "\n")  # as a field shows line ends
    expect("what follows", answers(b), [made])
    expect("the text", b.run("text.value"), shown("Hello" + made))
    check_look(b)
    check_quiet(b)


def embeddings(b):
    b.until(f"{at(b, 'about')}.textContent.includes('/v1/embeddings')")
    expect("nothing to say", b.run("['say', 'settings', 'new'].map(id => document.getElementById(id).hidden)"), [True] * 3)
    check_quiet(b)


if __name__ == "__main__":
    if sys.argv[2] == "files":
        files()
        sys.exit()
    from browser import Browser
    _, _, program, work, case, *rest = sys.argv
    browser = Browser(program, f"{work}/profile-{case}")
    try:
        browser.open(URL)
        {"chat": chat, "thoughts": thoughts, "text": text, "embeddings": embeddings}[case](browser, *rest)
    finally:
        browser.close()
