#!/usr/bin/env python3
"""Chat templates of several forms, and tokenizers of several kinds: ids equal those of transformers' apply_chat_template.

templates.py RENDER. Exit status 77 (skipped) where transformers is missing.
"""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    from tokenizers import AddedToken, Tokenizer, decoders as D, models as M, normalizers as N, pre_tokenizers as P, trainers
    from transformers import AutoTokenizer
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

MARKS = """{{ bos_token }}{% for m in messages %}{% if m['role'] == 'system' and not loop.first %}{{ raise_exception('a system message comes first') }}{% endif %}
{{- '<|' + m.role + '|>\n' + (m.content | trim) + '<|end|>\n' }}{% endfor %}{% if add_generation_prompt %}<|assistant|>
{% endif %}"""
PAIRS = """{%- set first = messages[0].content + '\n\n' if messages[0].role == 'system' else '' -%}
{%- for m in (messages[1:] if first else messages) -%}
{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{ raise_exception('turns must alternate') }}{%- endif -%}
{%- if m.role == 'user' -%}{{ bos_token + '[INST] ' + (first if loop.first else '') + m.content + ' [/INST]' }}{%- else -%}{{ ' ' + m.content + eos_token }}{%- endif -%}
{%- endfor -%}"""
THINKS = """{%- for m in messages -%}
{%- set text = m.content.split('</think>')[-1].lstrip('\n') if m.role == 'assistant' else m.content -%}
{{ '<|' + m.role + '|>' + text + ('<|end|>' if m.role == 'assistant' else '') }}
{%- endfor -%}{%- if add_generation_prompt -%}{{ '<|assistant|>' }}{%- if enable_thinking is not defined or enable_thinking -%}{{ '<think>\n' }}{%- endif -%}{%- endif -%}"""
LISTS = """{% for m in messages %}{{ '<|' + m.role + '|>' }}{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}{% endfor %}<|end|>
{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
NEXT = """{% for m in messages %}{{ '<|' + m.role + '|>' + m.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"""
SPECIAL = ["<s>", "</s>", "<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
WORDS = ["hello", " world", "\n", "  ", "<", "|end|>", "\u00e9", "\U0001f600", "e\u0301", "42", "</", "s ", "{{ x }}", "\t", "'ll", "\u4f60\u597d"]


def of_bytes():
    t = Tokenizer(M.BPE())
    t.pre_tokenizer, t.decoder, t.normalizer = P.ByteLevel(add_prefix_space=False), D.ByteLevel(), N.NFC()
    t.train_from_iterator([MARKS, PAIRS, THINKS] * 3, trainers.BpeTrainer(vocab_size=400, show_progress=False, initial_alphabet=P.ByteLevel.alphabet()))
    return t


def of_pieces():
    t = Tokenizer(M.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer, t.decoder = N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")]), D.Replace("\u2581", " ")
    t.train_from_iterator([MARKS + "".join(WORDS), PAIRS], trainers.BpeTrainer(vocab_size=300, show_progress=False, special_tokens=["<unk>"]))
    return t


def save(folder, tokenizer, template, in_config, **special):
    tokenizer.add_special_tokens([AddedToken(s, special=True, **special) for s in SPECIAL])
    tokenizer.add_tokens([AddedToken(s, normalized=False, special=False) for s in ("<think>", "</think>")])
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": {"content": "</s>", "__type": "AddedToken", "special": True}}
    if in_config:
        config["chat_template"] = [{"name": "other", "template": "no"}, {"name": "default", "template": template}]
    else:
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write(template)
        config["chat_template"] = "not this one"
    with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)


def conversations(rng, system):
    """Texts by others have no special token."""
    def text():
        return "".join(rng.choice(WORDS) for _ in range(rng.randint(1, 9))).replace("<|end|>", "").replace("</s>", "") + "x"
    for _ in range(25):
        turns = [{"role": "system", "content": text()}] if system and rng.random() < 0.5 else []
        for _ in range(rng.randint(0, 3)):
            turns += [{"role": "user", "content": text()}, {"role": "assistant", "content": text()}]
        yield turns + [{"role": "user", "content": text()}]


def render(tool, folder, items):
    made = subprocess.run([tool, folder], input="".join(json.dumps(i) + "\n" for i in items), capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{folder}: {made.stderr.strip()}")
    return [json.loads(line) for line in made.stdout.split("\n") if line]


def check(tool, name, folder, template, ends, **variables):
    hf = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(name)
    asked = list(conversations(rng, "system" in template))
    lists = template is LISTS
    given = [[{"role": m["role"], "content": [{"type": "text", "text": m["content"]}]} for m in c] if lists else c for c in asked]
    wanted = [hf.apply_chat_template(c, add_generation_prompt=True, tokenize=True, **variables) for c in given]
    found = render(tool, folder, [{"messages": c, **variables} for c in asked])
    for c, w, f in zip(asked, wanted, found):
        if f.get("ids") != w:
            sys.exit(f"{name}: {c}: expected {w}, found {f}")
    thinks = template is THINKS and variables.get("enable_thinking", True)
    if {f["thinks"] for f in found} != {thinks} or {tuple(f["ends"]) for f in found} != {tuple(hf.convert_tokens_to_ids(ends))}:
        sys.exit(f"{name}: expected the ends {ends} and thinks {thinks}, found {found[0]}")
    special = set(hf.convert_tokens_to_ids(SPECIAL))
    plain, forged = render(tool, folder, [{"messages": [{"role": "user", "content": text}], **variables} for text in ("x", "".join(SPECIAL) + "x")])
    if [i for i in plain["ids"] if i in special] != [i for i in forged["ids"] if i in special]:
        sys.exit(f"{name}: a user's message has special tokens: {forged['ids']}")
    return len(asked)


def main():
    tool, n = sys.argv[1], 0
    forms = [("marks", MARKS, ["<|end|>"], {}), ("pairs", PAIRS, ["</s>"], {}), ("thoughts", THINKS, ["<|end|>"], {}), ("no thoughts", THINKS, ["<|end|>"], {"enable_thinking": False}),
             ("lists", LISTS, ["<|end|>"], {}), ("the next turn ends an answer", NEXT, ["<|user|>"], {})]
    for i, (name, template, ends, variables) in enumerate(forms):
        for kind, make in (("bytes", of_bytes), ("pieces", of_pieces)):
            with tempfile.TemporaryDirectory() as folder:
                save(folder, make(), template, i % 2 == 0, normalized=False, rstrip=name == "marks" and kind == "pieces")
                n += check(tool, f"{name}, {kind}", folder, template, ends, **variables)
    print(n, "conversations")


main()
