#!/usr/bin/env python3
"""page_screenshots.py BUILD OUT: the page of tpc-run --serve in a headless Chromium, with a conversation, light and dark, 400 and 1280 pixels
wide, as OUT/page-WIDTH-light.png and -dark.png. The model is a table that knows one answer, and makes a token for each word of it."""
import pathlib
import re
import subprocess
import sys
import tempfile

TESTS = pathlib.Path(__file__).resolve().parents[1] / "tests"
sys.path.insert(0, str(TESTS / "serve"))
from browser import Browser  # noqa: E402
from screenshots import browser  # noqa: E402

ASKED = "What does tensor parallelism do?"
ANSWER = ("<think>Say it in two sentences.</think>Tensor parallelism cuts every weight matrix into parts, one for each rank. "
          "All ranks work on the same token at once, then add up what they found.")


def serve(build, folder):
    subprocess.run([sys.executable, TESTS / "chat/model.py", folder, ANSWER, "words"], check=True)
    server = subprocess.Popen([build / "tpc-run", folder / "model.graph", "--serve", "--port", "0"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        found = re.search(r"at (http://\S+)/v1,", line)
        if found:
            return server, found[1] + "/"
    sys.exit("the server does not start")


def main():
    build, out = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as work:
        server, url = serve(build.resolve(), pathlib.Path(work) / "table")
        b = Browser(browser(), f"{work}/profile")
        b.open(url)
        b.until("document.activeElement.id === 'text'")
        b.type(ASKED)
        b.enter()
        b.until("document.getElementById('told').textContent")
        b.run("document.querySelector('article details').open = true")
        for width, height in ((400, 700), (1280, 560)):
            for dark in (False, True):
                b.look(width, height, dark)
                (out / f"page-{width}-{'dark' if dark else 'light'}.png").write_bytes(b.picture())
        b.close()
        server.terminate()
        server.wait()


main()
