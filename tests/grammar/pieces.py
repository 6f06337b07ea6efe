#!/usr/bin/env python3
"""Print a tokenizer of 256 tokens, of which many are several bytes that texts of JSON have, and one ends a text."""
import json

prints = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
others = [b for b in range(256) if b not in prints]
char = {b: chr(b) for b in prints} | {b: chr(256 + i) for i, b in enumerate(others)}
pieces = ['{"', '":', '": ', '","', '", "', '"}', '"]', '["', '": "', '":"', "[]", "{}", "true", "false", "null", ", ", ": ", '\n ', "  ", "    ", "12", "345", "0.", ".5", "e-",
          "}}", "]}", "],", '"},', '},{', "name", '"name', '"a":', "é", "é\"", "ab", "abc", "yes", "no", "on", " the", "x\"", "\\n", "\\\"", "\\u00", "-1", "1]", "1}", "1,", '<', "<tool", "_call>", "</", "think>"]
singles = [bytes([b]) for b in [9, 10, *range(32, 127), *range(0x80, 0xc0), 0xc3, 0xc4, 0xe2, 0xf0]]
tokens = singles + [p.encode() for p in pieces]
tokens = list(dict.fromkeys(tokens))
tokens += [b"w%d" % i for i in range(255 - len(tokens))]
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
end = {"id": 255, "content": "<end>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
vocab = {"".join(char[b] for b in t): i for i, t in enumerate(tokens)}
print(json.dumps({"added_tokens": [end], "pre_tokenizer": byte_level, "decoder": byte_level, "model": {"type": "BPE", "vocab": vocab | {"<end>": 255}, "merges": []}}))
