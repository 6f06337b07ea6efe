#!/usr/bin/env python3
"""expressions.py RENDER FILE...: each line of the files as an expression, or as a template if it has a tag, by RENDER and by Jinja2.

A line that begins with "refused: " is refused here and rendered by Jinja2: what is not supported. All others give the same text, or both
refuse. Of disguised variables no character may stay unmarked, and all that is marked must come from them."""
import sys

try:
    from beside import Ours, disguise, theirs, unmarked
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)

VARIABLES = {
    "a": "Hello, World", "b": "  padded text\t\n", "empty": "", "u": "Grüße an Ωmega ΣΑΣ ﬁn ǆ İstanbul 日本語 🙂", "n": 42, "m": -7, "f": 2.5,
    "t": True, "no": None, "lines": "one\ntwo\r\nthree\n\nfive", "words": ["delta", "Alpha", "charlie", "bravo", "alpha"],
    "numbers": [3, 1, 4, 1, 5, 9, 2, 6], "mixed": [1, "a", None, True, 2.5, [1, 2], {"k": "v"}],
    "d": {"b": 2, "a": 1, "C": 3, "items": "hidden", "key with space": "x", "nested": {"x": [1, {"y": "deep"}]}},
    "people": [{"name": "Ann", "age": 31, "tags": ["x", "y"]}, {"name": "bob", "age": 25}, {"name": "Cid", "age": 31, "tags": []}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi <|im_end|> there"},
                 {"role": "assistant", "content": "Yes: <think>hm</think>answer", "tool_calls": [
                     {"type": "function", "function": {"name": "get", "arguments": {"city": "Zürich", "n": 1}}}]}],
    "quote": "it's \"quoted\" \\ and\ttabbed", "big": 9007199254740993, "json": {"a": [1, 2.0, 1e20, 1e-7, -0.0], "é": "ü\u2028\u007f\u0001"},
    "html": "<b>&amp;</b>"}


def main(program, files):
    ours = Ours(program)
    count = bad = refused = 0
    for path in files:
        for number, line in enumerate(open(path, encoding="utf-8"), 1):
            line = line.rstrip("\n")
            if not line or line.startswith("## "):
                continue
            count += 1
            unsupported = line.startswith("refused: ")
            line = line.removeprefix("refused: ")
            template = line.replace("\\n", "\n") if "{%" in line or "{{" in line or "{#" in line else "{{ " + line + " }}"
            text, why = theirs(template, VARIABLES)
            reply = ours(template, VARIABLES, VARIABLES)
            refused += "fault" in reply
            fault = None
            if unsupported:
                if "fault" not in reply or text is None:
                    fault = f"expected that only Jinja2 renders it: here {reply}, there {text!r} {why}"
            elif (reply.get("text") != text) if text is not None else "fault" not in reply:
                fault = f"here {reply.get('text', reply.get('fault'))!r}, there {text!r} {why or ''}"
            masked = ours(template, disguise(VARIABLES), VARIABLES)
            if "text" in masked and unmarked(masked):
                fault = f"not marked: {unmarked(masked)!r} of {masked['text']!r}"
            plain = ours(template, disguise(VARIABLES))
            if plain.get("untrusted"):
                fault = f"marked, and nothing is untrusted: {plain}"
            if fault:
                bad += 1
                print(f"{path}:{number}: {line}\n    {fault}")
    print(f"{count} lines, {refused} refused, {bad} bad")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
