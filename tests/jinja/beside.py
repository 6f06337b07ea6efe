"""The two sides of a comparison: tests/jinja/render, and Jinja2 set up as transformers does for chat templates."""
import datetime
import functools
import json
import subprocess

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox


class Generation(jinja2.ext.Extension):
    """The tag that marks what an assistant says; for the text it is nothing but a scope."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("said"), [], [], body).set_lineno(line)

    def said(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    def raise_exception(message):
        raise jinja2.TemplateError(message)

    env.filters["tojson"] = tojson
    env.globals.update(raise_exception=raise_exception, strftime_now=lambda form: datetime.datetime.now().strftime(form))
    return env


ENVIRONMENT = environment()


@functools.lru_cache
def compiled(template):
    return ENVIRONMENT.from_string(template)


def theirs(template, variables):
    """(text, None), or (None, the reason)."""
    try:
        return compiled(template).render(**variables), None
    except Exception as e:  # whatever Python raises is a refusal
        return None, f"{type(e).__name__}: {e}"


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, template, variables, untrusted=()):
        """The reply: "text" and "untrusted", or "fault", "line", "column" and "parsed"."""
        line = json.dumps({"template": template, "variables": variables, "untrusted": list(untrusted)})
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()
        reply = self.process.stdout.readline()
        if not reply:
            raise SystemExit(f"render ended with status {self.process.wait()} at {line[:2000]}")
        return json.loads(reply)


PRIVATE = range(0xE000, 0xE400)  # characters that no template has, so they show where text comes from


def disguise(value):
    """Every character of every string becomes a private one."""
    if isinstance(value, str):
        return "".join(chr(PRIVATE[ord(c) % len(PRIVATE)]) for c in value)
    if isinstance(value, list):
        return [disguise(item) for item in value]
    if isinstance(value, dict):
        return {key: disguise(item) for key, item in value.items()}
    return value


def unmarked(reply):
    """What of the text comes from disguised variables and is not marked."""
    text = reply["text"].encode()
    rest, at = b"", 0
    for start, end in reply["untrusted"] + [[len(text), len(text)]]:
        rest += text[at:start] + b" "
        at = end
    return "".join(c for c in rest.decode() if ord(c) in PRIVATE)
