#!/usr/bin/env python3
"""bytes.py: a tokenizer.json whose 256 tokens are bytes, for models with as many."""
import json

prints = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
others = [b for b in range(256) if b not in prints]
char = {b: chr(b) for b in prints} | {b: chr(256 + i) for i, b in enumerate(others)}
byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
print(json.dumps({"pre_tokenizer": byte_level, "decoder": byte_level,
                  "model": {"type": "BPE", "vocab": {char[b]: b for b in range(256)}, "merges": []}}))
