#!/usr/bin/env python3
"""Print a tokenizer of 256 characters whose decoder drops a blank at the beginning, as SentencePiece's do."""
import json

steps = [{"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}]
vocab = {"\u2581" if i == 32 else chr(i) if 32 < i < 127 else f"<{i}>": i for i in range(256)}
print(json.dumps({"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
                  "decoder": {"type": "Sequence", "decoders": steps}, "model": {"type": "BPE", "vocab": vocab, "merges": []}}))
