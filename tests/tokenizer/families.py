#!/usr/bin/env python3
"""Tokenizers of many families: ids and text equal those of Hugging Face's tokenizers.

families.py TOKENIZE [FILE...] [--lines N]. Small tokenizers, one for each way that models split and spell text, are trained here on
this repository's own text and on random characters of many scripts; or those in FILE, tokenizer.json of real models. Every line is turned
into ids, back into text, and into text id by id. Exit status 77 (skipped) where the package tokenizers is missing.
"""
import argparse
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    from tokenizers import AddedToken, Regex, Tokenizer, decoders as D, models as M, normalizers as N, pre_tokenizers as P
    from tokenizers import processors, trainers
except ImportError as error:
    print("skipped:", error)
    sys.exit(77)

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPTS = [(0x20, 0x7E), (0xA0, 0x24F), (0x370, 0x3FF), (0x400, 0x4FF), (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F),
           (0x1100, 0x11FF), (0x3040, 0x30FF), (0x4E00, 0x4FFF), (0xAC00, 0xACFF), (0x1F300, 0x1F6FF), (0x2000, 0x206F), (0xFF00, 0xFFEF),
           (0x300, 0x36F), (0x1F1E6, 0x1F1FF), (0x2190, 0x21FF), (0x0, 0x1F)]
BETWEEN = [" ", "  ", "\n", "\t", "\r\n", " \u3000", "'s ", "'LL ", "123", "</s>", "<s>", "\u00a0"]
ODD = ["", " ", "  a", "Hello, world!", "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "e\u0301 \xe9 \u0130I \xdf \u03a3\u0391\u03a3",
       "<s>x</s> y<pad>", "\u1e9e \u01c5 \ufb01 \u2460 \xb2 \u2122", "a" * 300, "-" * 90, "kernel kernels Tensor tensor"]
CASED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|%s| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
O200K = "|".join([rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}*{LOWER}+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
                  rf"[^\r\n\p{{L}}\p{{N}}]?{UPPER}+{LOWER}*(?i:'s|'t|'re|'ve|'m|'ll|'d)?", r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+",
                  r"\s+(?!\S)", r"\s+"])


def random_line(rng):
    text = ""
    for _ in range(rng.randint(1, 12)):
        lo, hi = rng.choice(SCRIPTS)
        text += "".join(chr(rng.randint(lo, hi)) for _ in range(rng.randint(1, 6)))
        text += rng.choice(BETWEEN) if rng.random() < 0.6 else ""
    return text


def lines_of(n):
    rng = random.Random(3)
    own = []
    for path in sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")) + glob.glob(os.path.join(ROOT, "src", "*", "*.c"))):
        with open(path, encoding="utf-8") as f:
            own += [line for line in f.read().split("\n") if line]
    rng.shuffle(own)
    return own[: n // 2] + [random_line(rng) for _ in range(n // 2)] + ODD


# ---- one small tokenizer of each family ----------------------------------------------------------------------------------------------

def byte_level(split, lines, normalizer=None, prefix=False, post=None, **options):
    t = Tokenizer(M.BPE(**options))
    t.pre_tokenizer = P.Sequence(split + [P.ByteLevel(add_prefix_space=prefix, use_regex=not split)]) if split else P.ByteLevel(add_prefix_space=prefix)
    if normalizer:
        t.normalizer = normalizer
    t.decoder = D.ByteLevel()
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1000, show_progress=False, special_tokens=["<s>", "</s>", "<unk>", "<pad>"],
                                                     initial_alphabet=P.ByteLevel.alphabet()))
    if post:
        t.post_processor = post
    return t


def isolated(pattern):
    return P.Split(Regex(pattern), "isolated")


def sentence_piece(lines, normalizer, split, decoder):
    """As converted from SentencePiece's BPE: unknown characters become bytes."""
    def model():
        return M.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    trained = Tokenizer(model())
    trained.normalizer, trained.pre_tokenizer = normalizer, split or P.Metaspace(prepend_scheme="never")
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{b:02X}>" for b in range(256)]
    trained.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=special, limit_alphabet=300, max_token_length=16))
    t = Tokenizer(model())
    t.normalizer, t.decoder = normalizer, decoder
    if split:
        t.pre_tokenizer = split
    made, learned = json.loads(t.to_str()), json.loads(trained.to_str())
    made["model"], made["added_tokens"] = learned["model"], learned["added_tokens"][:3]
    t = Tokenizer.from_str(json.dumps(made))
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)])
    return t


def word_piece(lines, lowercase):
    t = Tokenizer(M.WordPiece(unk_token="[UNK]"))
    t.normalizer, t.pre_tokenizer, t.decoder = N.BertNormalizer(lowercase=lowercase), P.BertPreTokenizer(), D.WordPiece()
    t.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=2000, show_progress=False, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    t.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def unigram(lines, normalizer, split):
    t = Tokenizer(M.Unigram())
    t.normalizer, t.pre_tokenizer, t.decoder = normalizer, split, D.Metaspace()
    t.train_from_iterator(lines, trainers.UnigramTrainer(vocab_size=5000, show_progress=False, special_tokens=["<pad>", "</s>", "<unk>"], unk_token="<unk>"))
    t.add_special_tokens([AddedToken("<extra_id_0>", lstrip=True, rstrip=True)])
    t.add_tokens([AddedToken("kernel", single_word=True), AddedToken("Tensor", normalized=True)])
    return t


def prefixed(lines):
    t = Tokenizer(M.BPE(unk_token="<unk>", continuing_subword_prefix="##"))
    t.pre_tokenizer, t.decoder = P.Whitespace(), D.WordPiece()
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"], continuing_subword_prefix="##", limit_alphabet=400))
    return t


def suffixed(lines):
    t = Tokenizer(M.BPE(unk_token="<unk>", end_of_word_suffix="</w>"))
    t.normalizer = N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()])
    words = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
    t.pre_tokenizer = P.Sequence([P.Split(Regex(words), "removed", True), P.ByteLevel(add_prefix_space=False)])
    t.decoder = D.BPEDecoder("</w>")
    t.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"], end_of_word_suffix="</w>"))
    return t


def word_level(lines):
    t = Tokenizer(M.WordLevel(unk_token="<unk>"))
    t.normalizer = N.Sequence([N.NFD(), N.StripAccents(), N.Strip()])
    t.pre_tokenizer = P.Sequence([P.WhitespaceSplit(), P.Punctuation("contiguous")])
    t.train_from_iterator(lines, trainers.WordLevelTrainer(vocab_size=1500, show_progress=False, special_tokens=["<unk>"]))
    return t


def families(lines):
    fallback = [D.ByteFallback(), D.Fuse()]
    yield "GPT-2", byte_level([], lines)
    yield "RoBERTa", byte_level([], lines, prefix=True, post=processors.RobertaProcessing(("</s>", 1), ("<s>", 0)))
    yield "Llama 3", byte_level([isolated(CASED % r"\p{N}{1,3}")], lines, ignore_merges=True)
    yield "Qwen 2", byte_level([isolated(CASED % r"\p{N}")], lines, normalizer=N.NFC())
    yield "GPT-4o", byte_level([isolated(O200K)], lines)
    yield "StarCoder", byte_level([P.Digits(individual_digits=True), P.ByteLevel(add_prefix_space=False)][:1], lines)
    yield "DeepSeek", byte_level([isolated(p) for p in (r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[\u4e00-\u9fa5\u0800-\u4e00]+")] + [P.Digits(True)], lines)
    yield "Llama 2", sentence_piece(lines, N.Sequence([N.Prepend("\u2581"), N.Replace(" ", "\u2581")]), None,
                                    D.Sequence([D.Replace("\u2581", " ")] + fallback + [D.Strip(" ", 1, 0)]))
    yield "Gemma", sentence_piece(lines, N.Replace(" ", "\u2581"), P.Split(" ", "merged_with_previous"), D.Sequence([D.Replace("\u2581", " ")] + fallback))
    yield "Mistral", sentence_piece(lines, N.Sequence([]), P.Metaspace(prepend_scheme="first", split=False),
                                    D.Sequence([D.Metaspace(prepend_scheme="first")] + fallback))
    yield "BERT", word_piece(lines, True)
    yield "BERT, cased", word_piece(lines, False)
    yield "T5", unigram(lines, N.Sequence([N.Nmt(), N.NFKC(), N.Replace(Regex(" {2,}"), " ")]), P.Metaspace())
    yield "ALBERT", unigram(lines, N.Sequence([N.NFKD(), N.Lowercase(), N.StripAccents()]), P.Sequence([P.Punctuation("merged_with_previous"), P.Metaspace(prepend_scheme="first")]))
    yield "CLIP", suffixed(lines)
    yield "BPE with a prefix", prefixed(lines)
    yield "words", word_level(lines)


# ---- ours compared with theirs ------------------------------------------------------------------------------------------------------------------

def ours(tool, path, mode, items):
    made = subprocess.run([tool, path, mode], input="".join(json.dumps(i) + "\n" for i in items), capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"{mode}: {made.stderr.strip()}")
    return [json.loads(line) for line in made.stdout.split("\n") if line]


def first_difference(name, what, lines, expected, found):
    for line, e, f in zip(lines, expected, found):
        if e != f:
            print(f"{name}: {what} of {line[:60]!r}: expected {str(e)[:120]}, found {str(f)[:120]}")
            return 1
    return 0


def special_tokens(path):
    """The contents of those that are sought; one that stands for what is unknown may come from any text."""
    with open(path, encoding="utf-8") as f:
        tokenizer = json.load(f)
    unknown = tokenizer["model"].get("unk_token")
    if isinstance(tokenizer["model"].get("unk_id"), int):
        unknown = tokenizer["model"]["vocab"][tokenizer["model"]["unk_id"]][0]
    return {t["content"]: t["id"] for t in tokenizer["added_tokens"] if t["special"] and t["content"] != unknown}


def mixed(tool, name, path, t, lines):
    """Texts by others between special tokens: the ids of the whole, unless they write such tokens, too, which then are text."""
    special = special_tokens(path)
    if not special:
        return 0
    names = sorted(special)
    clean = [line.replace("<", "").replace("[", "") for line in lines]
    parts = [[names[0], a, names[-1] + "\n", b, names[0]] for a, b in zip(clean, clean[1:])]
    whole = ["".join(p) for p in parts]
    wrong = first_difference(name, "the ids of texts by others", whole, [e.ids for e in t.encode_batch(whole, add_special_tokens=False)], ours(tool, path, "mixed", parts))
    forged = [["", f"{a}{x}b {y}"] for a in ["", "a", " "] for x in names for y in names + [n.upper() for n in names]]
    forged += [[x[:k], x[k:]] for x in names for k in range(1, len(x))]
    for line, ids in zip(forged, ours(tool, path, "mixed", forged)):
        if set(ids) & set(special.values()):
            print(f"{name}: {line} has a special token: {ids}")
            wrong += 1
    return wrong


def compare(tool, name, path, lines):
    t = Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    wrong = mixed(tool, name, path, t, lines)
    ids = [e.ids for e in t.encode_batch(lines)]
    plain = [e.ids for e in t.encode_batch(lines, add_special_tokens=False)]
    text, stream = t.decode_batch(ids, skip_special_tokens=False), t.decode_batch(ids, skip_special_tokens=True)
    wrong += first_difference(name, "the ids", lines, ids, ours(tool, path, "encode", lines))
    wrong += first_difference(name, "the ids without special tokens", lines, plain, ours(tool, path, "plain", lines))
    wrong += first_difference(name, "the text", lines, text, ours(tool, path, "decode", ids))
    wrong += first_difference(name, "the streamed text", lines, stream, ours(tool, path, "stream", ids))
    return wrong


def main():
    p = argparse.ArgumentParser()
    p.add_argument("tool")
    p.add_argument("files", nargs="*")
    p.add_argument("--lines", type=int, default=600)
    o = p.parse_args()
    lines, wrong = lines_of(o.lines), 0
    for path in o.files:
        wrong += compare(o.tool, path, path, lines)
    with tempfile.TemporaryDirectory() as work:
        for name, t in families(lines) if not o.files else ():
            path = os.path.join(work, "tokenizer.json")
            t.save(path)
            wrong += compare(o.tool, name, path, lines)
    sys.exit(1 if wrong else 0)


main()
