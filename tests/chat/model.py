#!/usr/bin/env python3
"""A model that says one thing, with a tokenizer and a chat template, for tests of chats: model.py FOLDER [TEXT [TAGS]].

The token after the last one is a fixed one, so the model answers the end of a prompt, a line end, with TEXT ("<think>why</think>Box") and the
special token <|im_end|>. A token is a byte, except for five that UTF-8 never has. TAGS: special, if the tags of thoughts are special tokens;
spelled, if they are bytes; endless, if the answer begins anew instead of ending; words, if each word of TEXT, of which there are no two
alike, is a token of its own; pieces, if TEXT is in pieces that are tokens, marks of calls special ones.
"""
import json
import os
import re
import sys

folder, text, tags = (sys.argv[1:] + ["<think>why</think>Box", "plain"][len(sys.argv) - 2:])[:3]
prints = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
others = [b for b in range(256) if b not in prints]
char = {b: chr(b) for b in prints} | {b: chr(256 + i) for i, b in enumerate(others)}
added = {"<|im_start|>": 248, "<|im_end|>": 249, "<think>": 250, "</think>": 251, "<|pad|>": 252}
if tags == "words":
    words = [word for part in re.split("</?think>", text) for word in re.findall(r"\s?\S+", part)]
    added |= {word: 256 + i for i, word in enumerate(words)}
marks = ["[TOOL_CALLS]", "[ARGS]", "<|python_tag|>"]
if tags == "pieces":
    words = []
    for part in re.split("(" + "|".join(map(re.escape, marks)) + ")", text):
        while part:
            n = len(part) if part in marks else next((n for n in range(1, len(part)) if part[:n] not in words and not "assistant\n".endswith(part[:n])), len(part))
            words.append(part[:n])
            part = part[n:]
        while words and words.count(words[-1]) > 1:
            words[-2:] = ["".join(words[-2:])]
    if len(set(words)) < len(words):
        sys.exit(f"{text!r}: two pieces are alike")
    added |= {word: 256 + i for i, word in enumerate(words)}
size = 256 + sum(i >= 256 for i in added.values())

ids, rest = [10], text
while rest:
    token = next((t for t in sorted(added, key=len, reverse=True) if rest.startswith(t)), None) if tags not in ("spelled", "pieces") else None
    token = words.pop(0) if tags == "pieces" else token
    ids += [added[token]] if token else list(rest[0].encode())
    rest = rest[len(token or rest[0]):]
ids.append(ids[1] if tags == "endless" else added["<|im_end|>"])
after = [added["<|im_end|>"]] * size
for a, b in zip(ids, ids[1:]):
    if after[a] != added["<|im_end|>"]:
        sys.exit(f"{text!r}: what follows token {a} is not one token")
    after[a] = b

byte_level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
tokenizer = {"version": "1.0", "pre_tokenizer": byte_level, "decoder": byte_level, "normalizer": None, "post_processor": None,
             "added_tokens": [{"id": i, "content": t, "special": i < 256 and "think" not in t or tags == "special" or t in marks, "normalized": False, "single_word": False, "lstrip": False,
                               "rstrip": False} for t, i in added.items()],
             "model": {"type": "BPE", "vocab": {char[b]: b for b in range(256) if b not in added.values()}, "merges": []}}
template = """{%- if tools %}<|im_start|>system
tools: {{ tools | tojson }}<|im_end|>
{% endif %}
{%- for m in messages %}
{%- if m.role == 'odd' %}{{ raise_exception('no odd roles') }}{% endif %}
{{- '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% if enable_thinking is defined and not enable_thinking %}{{ '<think></think>\n' }}{% endif %}{% endif %}
"""
config = {"chat_template": template, "eos_token": {"content": "<|pad|>"}, "pad_token": "<|pad|>", "tokenizer_class": "PreTrainedTokenizerFast",
          "model_max_length": 1000000000000000019884624838656}
graph = f"""graph says {{
  opset 23
  dim B >= 1
  dim S >= 1
  input input_ids: i64[B, S]
  const after: i64[{size}] = {after}
  const depth: i64[1] = [{size}]
  const values: f32[2] = [0, 100]
  node next: next: ? = Gather(after, input_ids)
  node scores: logits: ? = OneHot(next, depth, values)
  output logits
}}
"""
os.makedirs(folder, exist_ok=True)
for name, content in [("tokenizer.json", json.dumps(tokenizer)), ("tokenizer_config.json", json.dumps(config)), ("model.graph", graph)]:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(content)
