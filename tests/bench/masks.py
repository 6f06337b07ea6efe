#!/usr/bin/env python3
"""Times of the masks of grammars: masks.py BUILD TOKENIZER.json [--train FOLDER...]. Of a byte-level tokenizer, as those of GPT-2, Llama 3 and Qwen are;
--train makes one of 151000 tokens first, from the texts in folders (4 minutes; needs the package tokenizers). One line for each grammar:
the median, the 99th percentile and the most, of the texts together and of the first text alone, whose states are all new."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

SCHEMAS = {
    "any object": {"type": "object"},
    "a record": {"type": "object", "properties": {
        "name": {"type": "string", "maxLength": 40}, "age": {"type": "integer", "minimum": 0, "maximum": 150}, "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
        "address": {"type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}, "required": ["street"]},
        "when": {"type": "string", "format": "date-time"}, "kind": {"enum": ["one", "two", "three"]}}, "required": ["name", "age", "tags", "address", "when", "kind"]},
    "a tree": {"anyOf": [{"type": "string", "pattern": "^[a-z]+( [a-z]+)*$"}, {"type": "array", "items": {"$ref": "#"}, "minItems": 1}]},
}


def train(folders, path):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    def texts():
        for folder in folders:
            for where, _, names in sorted(os.walk(folder)):
                for name in sorted(n for n in names if n.endswith((".py", ".md", ".txt", ".h", ".c", ".json", ".pm"))):
                    try:
                        with open(os.path.join(where, name), encoding="utf-8") as f:
                            yield f.read(2 << 20)
                    except (OSError, UnicodeDecodeError):
                        pass

    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(texts(), trainers.BpeTrainer(vocab_size=151000, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))
    t.save(path)


def bytes_of(path):
    prints = [b for b in range(256) if 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b]
    others = [b for b in range(256) if b not in prints]
    byte = {chr(b): b for b in prints} | {chr(256 + i): b for i, b in enumerate(others)}
    with open(path, encoding="utf-8") as f:
        vocab = json.load(f)["model"]["vocab"]
    return [bytes(byte[c] for c in t) for t in sorted(vocab, key=vocab.get) if all(c in byte for c in t)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("tokenizer")
    p.add_argument("--train", nargs="+", metavar="FOLDER")
    o = p.parse_args()
    if o.train:
        train(o.train, o.tokenizer)
    with tempfile.TemporaryDirectory() as work:
        tokens, schema = os.path.join(work, "tokens"), os.path.join(work, "schema")
        with open(tokens, "w", encoding="ascii") as f:
            f.writelines(t.hex() + "\n" for t in bytes_of(o.tokenizer))
        for name, value in SCHEMAS.items():
            with open(schema, "w", encoding="utf-8") as f:
                json.dump(value, f)
            for texts in ("40", "1"):
                done = subprocess.run([os.path.join(o.build, "tests/grammar/masks"), tokens, "schema", schema, texts, "1"], capture_output=True, text=True, check=False)
                if done.returncode:
                    sys.exit(done.stderr)
                print(f"{name}, {texts} text{'s' * (texts != '1')}: {done.stdout}", end="")


main()
