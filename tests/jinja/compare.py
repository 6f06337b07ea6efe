#!/usr/bin/env python3
"""compare.py RENDER FILE-OR-FOLDER...: chat templates by RENDER and by Jinja2 with the settings of transformers.

A file is a template (*.jinja, *.jinja2, *.j2) or a tokenizer_config.json or chat_template.json that has one or several; a folder is looked
through. Each is rendered with every conversation of conversations.py. A rendering is fine if both sides give the same text, or both refuse.
A template that is refused when it is parsed, while Jinja2 takes it, is listed with the reason. Prints a line for each template that is not
fine and the sums; exit status 1 if a text differs. No character of a message may stay unmarked."""
import collections
import copy
import json
import os
import sys

try:
    from beside import Ours, disguise, theirs, unmarked
    from conversations import renderings
except ImportError as e:
    print(f"skipped: {e}")
    sys.exit(77)


def templates(path):
    """(name, text) of every template below a path."""
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            yield from templates(os.path.join(path, name))
    elif path.endswith((".jinja", ".jinja2", ".j2")):
        yield path, open(path, encoding="utf-8", newline="").read()
    elif path.endswith(("tokenizer_config.json", "chat_template.json")):
        found = json.load(open(path, encoding="utf-8")).get("chat_template")
        if isinstance(found, str):
            yield path, found
        for each in found if isinstance(found, list) else []:
            yield f"{path}:{each['name']}", each["template"]


def hidden(variables):
    """The same conversation with disguised contents."""
    out = copy.deepcopy(variables)
    for message in out["messages"]:
        message["content"] = disguise(message["content"]) if isinstance(message["content"], str) else message["content"]
    return out


def compare(ours, name, text):
    """What came of each rendering, and lines about what is wrong."""
    sums, faults = collections.Counter(), []
    for title, variables in renderings():
        expected, why = theirs(text, variables)
        reply = ours(text, variables, ["messages", "tools"])
        if "fault" in reply:
            place = f"{reply['line']}:{reply['column']}: {reply['fault']}"
            kind = "both refuse" if expected is None else "refused when rendered" if reply["parsed"] else "refused when parsed"
            if expected is not None:
                faults.append(f"{title}: refused at {place}")
        else:
            kind = "equal" if reply["text"] == expected else "differs"
            if kind == "differs":
                faults.append(f"{title}: here {reply['text']!r}\n        there {expected!r} {why or ''}")
        sums[kind] += 1
        masked = ours(text, hidden(variables), ["messages"])
        if "text" in masked and unmarked(masked):
            sums["not marked"] += 1
            faults.append(f"{title}: not marked: {unmarked(masked)!r}")
    if sums["refused when parsed"]:
        faults = faults[:1]
    for fault in faults[:3]:
        print(f"{name}: {fault}")
    return sums


def main(program, paths):
    ours, sums, count = Ours(program), collections.Counter(), collections.Counter()
    for path in paths:
        for name, text in templates(path):
            one = compare(ours, name, text)
            count["fine" if set(one) <= {"equal", "both refuse"} else "refused" if set(one) <= {"equal", "both refuse", "refused when parsed",
                  "refused when rendered"} else "wrong"] += 1
            sums.update(one)
    print(f"{sum(count.values())} templates: {count['fine']} fine, {count['refused']} refused by name, {count['wrong']} wrong")
    pairs = sum(n for kind, n in sums.items() if kind != "not marked")
    print(f"{pairs} renderings: " + ", ".join(f"{sums[kind]} {kind}" for kind in (
        "equal", "both refuse", "refused when parsed", "refused when rendered", "differs", "not marked")))
    return count["wrong"] > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
