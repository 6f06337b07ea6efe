/* tokenizer: tokenizers by Hugging Face's tokenizer.json: text to token ids, and ids to text.
 *
 * Text becomes ids in four steps: added tokens are cut out; normalizers rewrite the rest; pre-tokenizers split it; the model turns each
 * piece into tokens. A template adds special tokens around them. Decoders turn tokens back into text. Any other part of a file is refused
 * by name when the file is read. https://huggingface.co/docs/tokenizers */
#ifndef TPC_TOKENIZER_H
#define TPC_TOKENIZER_H

#include "base/base.h"

#include <jansson.h>

/* ---- tokenizer.c ---- */
/* Bytes of UTF-8; not terminated. */
struct text {
    const char *at;
    size_t n;
};
struct tokenizer;
/* Of a tokenizer.json; everything is in the arena. A file in another format, or with unsupported parts, is a failure. */
struct tokenizer *tokenizer_read(struct arena *, const char *path);
/* A JSON file next to a model; the caller releases it. Keys and strings may have U+FDD0 for a zero. */
json_t *tokenizer_json(const char *path);
struct token_ids {
    VEC(int64_t) list;
};
/* The ids of a text (UTF-8; other bytes are a failure), with the special tokens of the template or without. */
struct token_ids tokenizer_encode(const struct tokenizer *, struct arena *, const char *text, size_t bytes, bool special);
/* Bytes [from, to) of a text. */
struct text_span {
    size_t from, to;
};
struct text_spans {
    const struct text_span *at; /* sorted and disjoint */
    int n;
};
/* The same without the template, for a text with untrusted parts: no special token is cut out of untrusted bytes. */
struct token_ids tokenizer_encode_mixed(const struct tokenizer *, struct arena *, struct text, struct text_spans untrusted);
/* The text of ids; unknown ids are skipped. special: those tokens are written, too. */
struct text tokenizer_decode(const struct tokenizer *, struct arena *, const int64_t *id, int n, bool special);
/* The bytes of a token, also a special one, within a text: perhaps part of a character. Unknown ids have none. */
struct text tokenizer_token(const struct tokenizer *, struct arena *, int64_t id);
/* The id of a token by its text; -1: none. */
int64_t tokenizer_id(const struct tokenizer *, const char *token);
/* The special token at the beginning of a text; -1: none. */
int64_t tokenizer_special_at(const struct tokenizer *, struct text);
/* A token that only the template or others insert, never text. */
bool tokenizer_is_special(const struct tokenizer *, int64_t id);
/* The text of ids is the concatenation of their bytes, except for leading blanks. */
bool tokenizer_joins(const struct tokenizer *);

/* ---- texts.c: all tokens by id, their bytes concatenated ---- */
struct token_texts {
    int64_t n, bytes;
    const char *at;
    const uint8_t *length; /* 0: not a text, but special, or too long */
    const bool *loses;     /* at the beginning of a text it loses its leading blank */
};
/* Of n tokens. shown: special tokens that count as text. */
struct token_texts tokenizer_texts(const struct tokenizer *, struct arena *, int64_t n, const struct token_ids *shown);

/* ---- stream.c: text that grows with its ids ---- */
struct text_stream {
    int from, written; /* ids to decode again; ids already written */
};
/* The text that ids up to n add to the text returned so far: as far as no later id can change it, or, with last, all of it. */
struct text tokenizer_stream(const struct tokenizer *, struct arena *, struct text_stream *, const int64_t *id, int n, bool last);

/* ==== internal ==== */

/* ---- spans.c: untrusted bytes of a text ---- */
/* Some of the bytes [from, to) are in a span. */
bool spans_touch(struct text_spans, size_t from, size_t to);
/* The spans of bytes [from, to), relative to from. */
struct text_spans spans_within(struct arena *, struct text_spans, size_t from, size_t to);
struct normalizer;
/* The spans of the normalized text; they may be too wide. */
struct text_spans spans_normalized(struct arena *, const struct normalizer *, struct text raw, struct text normalized, struct text_spans);

struct piece {
    struct text text;
    size_t head; /* bytes that come from the first character of the input */
};
/* Bytes [from, to) of it. */
struct piece text_piece(struct piece, size_t from, size_t to);
struct pieces {
    VEC(struct piece) list;
};

/* ---- text.c ---- */
bool text_is_utf8(const char *at, size_t n, size_t *bad);
/* The character at *i, which moves past it. */
int32_t text_next(struct text, size_t *i);
/* The character that ends before i > 0; *start: where it begins. */
int32_t text_before(struct text, size_t i, size_t *start);
/* A growable string. */
struct text_builder {
    struct arena *arena;
    VEC(char) to;
};
void text_put(struct text_builder *, const char *, size_t);
void text_put_char(struct text_builder *, int32_t);
struct text text_built(const struct text_builder *);
struct text text_of(const char *); /* of a terminated string */
bool text_eq(struct text, struct text);
bool text_starts(struct text, struct text with);
struct text text_replace(struct arena *, struct text, struct text sought, struct text by);
/* Byte b of GPT-2's alphabet, in which every byte is a printable character; the byte of a character; -1: none. */
int32_t text_byte_char(uint8_t);
int text_byte_of(int32_t c);
struct text text_byte_alphabet(struct arena *, struct text);

/* ---- char.c: classes of characters ---- */
bool char_is_space(int32_t); /* White_Space */
bool char_is_punctuation(int32_t);
bool char_is_number(int32_t);
bool char_is_control(int32_t);    /* control, format, private use, surrogate */
bool char_is_mark(int32_t);       /* any category M */
bool char_is_nonspacing(int32_t); /* zero-width marks */
bool char_is_cjk(int32_t);        /* ideographs */
bool char_is_word(int32_t);       /* letters, marks, digits, connectors */

/* ---- vocab.c: tokens by text, and by id ---- */
struct vocab;
struct vocab *vocab_new(struct arena *);
/* False: not a valid id. */
bool vocab_add(struct vocab *, struct text, int64_t id);
int64_t vocab_id(const struct vocab *, struct text); /* -1: no token */
bool vocab_token(const struct vocab *, int64_t id, struct text *);
size_t vocab_longest(const struct vocab *); /* bytes */

/* ---- json access of tokenizer.json: `where` is the file, for messages ---- */
const char *member_string(const char *where, const json_t *, const char *key, const char *otherwise);
bool member_bool(const char *where, const json_t *, const char *key, bool otherwise);
/* The text of a key or string. U+FDD0 stands for a zero. */
struct text member_text_of(struct arena *, const char *, size_t n);
struct text member_text(struct arena *, const json_t *string);
/* The member "type" of a part of the pipeline; a failure if there is none. */
const char *member_type(const char *where, const char *part, const json_t *);
/* The index of a part's type among n rows that begin with their type; another type is a failure. */
int member_kind(const char *where, const char *part, const char *type, int n, const void *kinds, size_t stride);
#define MEMBER_KIND(where, part, type, kinds) member_kind(where, part, type, (int)(sizeof kinds / sizeof *kinds), kinds, sizeof *kinds)
_Noreturn void member_unsupported(const char *where, const char *part, const char *type);

/* ---- pattern.c: a string or a regular expression ---- */
struct pattern;
/* {"String": ...} or {"Regex": ...}, or a plain string. */
struct pattern *pattern_read(struct arena *, const char *where, const json_t *);
struct pattern *pattern_regex(struct arena *, const char *where, const char *regex);
/* The first match at or after *at, not empty; false: none. */
bool pattern_find(const struct pattern *, struct text, size_t at, size_t *start, size_t *end);
struct text pattern_replace(const struct pattern *, struct arena *, struct text, struct text by);

/* ---- added.c: tokens that are cut out of the text before all else ---- */
struct added_tokens;
struct added_tokens *added_read(struct arena *, const char *where, const json_t *list);
/* Calls between(data, piece) and token(data, id) for the text between tokens and for the tokens, in order. normalized: only tokens that
 * match normalized text, else the others. Special tokens never contain untrusted bytes. */
struct added_use {
    void *data;
    void (*between)(void *data, struct piece);
    void (*token)(void *data, int64_t id);
};
void added_split(const struct added_tokens *, struct piece, bool normalized, struct text_spans untrusted, const struct added_use *);
/* True: special tokens are looked for in normalized text. */
bool added_has_normalized_special(const struct added_tokens *);
/* The special token at the beginning of a text; -1: none. */
int64_t added_special_at(const struct added_tokens *, struct text);
bool added_token(const struct added_tokens *, int64_t id, struct text *);
bool added_is_special(const struct added_tokens *, struct text);
int64_t added_id(const struct added_tokens *, struct text);
/* Normalizes the tokens that match normalized text. */
void added_normalize(struct added_tokens *, const struct normalizer *);

/* ---- normalizer.c, charsmap.c ---- */
struct normalizer *normalizer_read(struct arena *, const char *where, const json_t *); /* NULL or null: none */
struct text normalizer_apply(const struct normalizer *, struct arena *, struct text);
/* charsmap.c: SentencePiece's table of replacements, base64. */
struct charsmap;
struct charsmap *charsmap_read(struct arena *, const char *where, const char *base64);
struct text charsmap_apply(const struct charsmap *, struct arena *, struct text);

/* ---- pretokenizer.c ---- */
struct pretokenizer;
struct pretokenizer *pretokenizer_read(struct arena *, const char *where, const json_t *);
struct pieces pretokenizer_apply(const struct pretokenizer *, struct arena *, struct piece);

/* ---- model_read.c: bpe.c, unigram.c, wordpiece.c ---- */
struct token_model {
    struct vocab *vocab;
    int64_t unknown; /* -1: none */
    void *own;
    void (*apply)(const struct token_model *, struct arena *, struct text, struct token_ids *);
};
struct token_model *model_read(struct arena *, const char *where, const json_t *);
void bpe_read(struct token_model *, struct arena *, const char *where, const json_t *);
void unigram_read(struct token_model *, struct arena *, const char *where, const json_t *);
void wordpiece_read(struct token_model *, struct arena *, const char *where, const json_t *);
/* model.c: the vocabulary {"token": id, ...} of a model. */
void model_read_vocab(struct token_model *, struct arena *, const char *where, const json_t *);
/* Ids of the tokens <0x00> to <0xFF>, -1 where one is missing. */
int64_t *model_byte_tokens(const struct vocab *, struct arena *);
/* Appends the tokens of the bytes; false, and nothing appended, if one is missing. */
bool model_put_bytes(const int64_t *byte_token, struct arena *, struct text, struct token_ids *);

/* ---- template.c: special tokens around a text ---- */
struct token_template;
struct token_template *template_read(struct arena *, const char *where, const json_t *);
struct token_ids template_apply(const struct token_template *, struct arena *, const struct token_ids *);

/* ---- decoder.c ---- */
struct decoder;
struct decoder *decoder_read(struct arena *, const char *where, const json_t *);
/* Joins n tokens. */
struct text decoder_apply(const struct decoder *, struct arena *, int n, const struct text *token);
/* It concatenates bytes without looking at neighbours. NULL: it puts blanks between. */
bool decoder_joins(const struct decoder *);
/* The bytes of a token that follows others. */
struct text decoder_token(const struct decoder *, struct arena *, struct text token);

#endif
