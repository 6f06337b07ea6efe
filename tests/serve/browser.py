"""A headless Chromium that is driven over its own protocol (CDP), for tests of pages and for screenshots."""
import base64
import json
import os
import socket
import struct
import subprocess
import time


class Browser:
    """One tab. What the console says is in `console`, each request's address in `asked`."""

    def __init__(self, program, profile, size=(1280, 900)):
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0", f"--user-data-dir={profile}",
                 f"--window-size={size[0]},{size[1]}", "--disable-background-networking", "--no-first-run", "about:blank"]
        self.process = subprocess.Popen([program, *flags], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.console, self.asked, self.number, self.replies, self.rest = [], [], 0, {}, b""
        self.socket = self.connect(os.path.join(profile, "DevToolsActivePort"))
        target = next(t["targetId"] for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    # ---- the protocol

    session = None

    def connect(self, path):
        end = time.time() + 60
        while not (os.path.exists(path) and len(open(path).read().split()) == 2):
            if time.time() > end or self.process.poll() is not None:
                raise SystemExit("the browser does not start")
            time.sleep(0.05)
        port, address = open(path).read().split()
        s = socket.create_connection(("127.0.0.1", int(port)), timeout=60)
        s.sendall(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                  f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.rest:
            self.rest += s.recv(4096)
        self.rest = self.rest.split(b"\r\n\r\n", 1)[1]
        return s

    def take(self, n):
        while len(self.rest) < n:
            more = self.socket.recv(1 << 16)
            if not more:
                raise SystemExit("the browser has gone")
            self.rest += more
        taken, self.rest = self.rest[:n], self.rest[n:]
        return taken

    def receive(self):
        """A message; frames of one that comes in several are joined."""
        whole = b""
        while True:
            first, n = self.take(2)
            n = struct.unpack(">H", self.take(2))[0] if n == 126 else struct.unpack(">Q", self.take(8))[0] if n == 127 else n
            whole += self.take(n)
            if first & 128:
                return json.loads(whole)

    def call(self, method, **parameters):
        self.number += 1
        data = json.dumps({"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})).encode()
        head = struct.pack(">BB", 129, 128 | len(data)) if len(data) < 126 else struct.pack(">BBH", 129, 254, len(data)) if len(data) < 65536 else \
            struct.pack(">BBQ", 129, 255, len(data))
        self.socket.sendall(head + b"\0\0\0\0" + data)  # masked with zeros
        while True:
            m = self.receive()
            if m.get("id") == self.number:
                if "error" in m:
                    raise SystemExit(f"{method}: {m['error']}")
                return m["result"]
            self.note(m)

    def note(self, m):
        kind, p = m.get("method"), m.get("params", {})
        if kind == "Network.requestWillBeSent":
            self.asked.append(p["request"]["url"])
        elif kind == "Runtime.exceptionThrown":
            self.console.append(str(p["exceptionDetails"].get("exception", {}).get("description") or p["exceptionDetails"]["text"]))
        elif kind == "Log.entryAdded" and p["entry"]["level"] in ("warning", "error"):
            self.console.append(p["entry"]["text"])
        elif kind == "Runtime.consoleAPICalled":
            self.console.append(str(p["args"]))

    # ---- what a user does

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script):
        r = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in r:
            raise SystemExit(f"{script}: {r['exceptionDetails']}")
        return r["result"].get("value")

    def until(self, script, seconds=60):
        end = time.time() + seconds
        while not (value := self.run(script)):
            if time.time() > end:
                raise SystemExit(f"not within {seconds} s: {script}\n{self.run('document.body.innerText')}\n{self.console}")
            time.sleep(0.02)
        return value

    def type(self, text):
        self.call("Input.insertText", text=text)

    def press(self, key, code=0, shift=False, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, modifiers=8 if shift else 0,
                      **({"text": text} if text and kind == "keyDown" else {}))

    def enter(self, shift=False):
        self.press("Enter", 13, shift, "\r")

    def tab(self, shift=False):
        self.press("Tab", 9, shift)

    def look(self, width, height, dark):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def picture(self):
        return base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])

    def tree(self):
        """What screen readers are told: (role, name) of all that is not ignored."""
        nodes = self.call("Accessibility.getFullAXTree")["nodes"]
        return [(n["role"]["value"], n.get("name", {}).get("value", "")) for n in nodes if not n["ignored"]]

    def close(self):
        self.process.terminate()
        self.process.wait(30)
