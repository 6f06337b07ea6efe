/* tokenizer: the pipeline from text to ids and back. */
#include "tokenizer/tokenizer.h"

#include <string.h>

struct tokenizer {
    struct added_tokens *added;
    struct normalizer *normalizer;
    struct pretokenizer *pretokenizer;
    struct token_model *model;
    struct token_template *around;
    struct decoder *decoder;
};

enum { LARGEST_FILE = 1 << 28 };

/* jansson rejects zeros in keys, but a vocabulary may have a zero token: it is read as U+FDD0, a noncharacter, and restored by
 * member_text. */
static struct text zeros_replaced(struct arena *a, struct map file)
{
    char *at = arena_alloc(a, file.bytes + 1);
    memcpy(at, file.at, file.bytes);
    for (size_t i = 0; i + 6 <= file.bytes; i++)
        if (at[i] == '\\' && memcmp(at + i, "\\u0000", 6) == 0)
            memcpy(at + i, "\\uFDD0", 6);
        else if (at[i] == '\\')
            i++;
    return (struct text){at, file.bytes};
}

/* transformers writes 10^30 for an unlimited length, which is not used. Other numbers in such a file become reals, too, so they can't be
 * ids. */
static json_t *load_json(struct text t, json_error_t *error)
{
    json_t *root = json_loadb(t.at, t.n, 0, error);
    if (!root && json_error_code(error) == json_error_numeric_overflow)
        root = json_loadb(t.at, t.n, JSON_DECODE_INT_AS_REAL, error);
    return root;
}

json_t *tokenizer_json(const char *path)
{
    json_error_t error;
    struct arena *tmp = arena_new();
    struct map file = map_file(path);
    if (file.bytes > LARGEST_FILE)
        fail("%s: has %zu bytes, expected at most %d", path, file.bytes, LARGEST_FILE);
    struct text t = zeros_replaced(tmp, file);
    json_t *root = load_json(t, &error);
    arena_free(tmp);
    if (!root)
        fail("%s:%d:%d: expected JSON, found: %s", path, error.line, error.column, error.text);
    map_close(file);
    return root;
}

struct tokenizer *tokenizer_read(struct arena *a, const char *path)
{
    json_t *root = tokenizer_json(path);
    struct tokenizer *t = NEW(a, struct tokenizer);
    if (!json_is_object(json_object_get(root, "model")))
        fail("%s: is no tokenizer.json: it has no model", path);
    *t = (struct tokenizer){.added = added_read(a, path, json_object_get(root, "added_tokens")),
                            .normalizer = normalizer_read(a, path, json_object_get(root, "normalizer")),
                            .pretokenizer = pretokenizer_read(a, path, json_object_get(root, "pre_tokenizer")),
                            .model = model_read(a, path, json_object_get(root, "model")),
                            .around = template_read(a, path, json_object_get(root, "post_processor")),
                            .decoder = decoder_read(a, path, json_object_get(root, "decoder"))};
    added_normalize(t->added, t->normalizer);
    json_decref(root);
    return t;
}

/* ---- text to ids ---- */

struct encoding {
    const struct tokenizer *t;
    struct arena *arena;
    struct text text;
    struct text_spans untrusted;
    struct token_ids ids;
};

static void put_id(void *data, int64_t id)
{
    struct encoding *e = data;
    VEC_PUSH(e->arena, &e->ids.list, id);
}

static bool is_special(const struct tokenizer *t, int64_t id)
{
    struct text token;
    return id != t->model->unknown && added_token(t->added, id, &token) && added_is_special(t->added, token);
}

/* A vocabulary may contain special tokens, and the model may find one in untrusted text: that text is then encoded character by
 * character. */
static void encode_piece(struct encoding *e, struct text t)
{
    bool special = false;
    int before = e->ids.list.n;
    e->t->model->apply(e->t->model, e->arena, t, &e->ids);
    for (int i = before; e->untrusted.n && i < e->ids.list.n; i++)
        special |= is_special(e->t, e->ids.list.at[i]);
    if (!special)
        return;
    e->ids.list.n = before;
    for (size_t at = 0, next = 0; at < t.n; at = next) {
        (void)text_next(t, &next);
        e->t->model->apply(e->t->model, e->arena, (struct text){t.at + at, next - at}, &e->ids);
    }
}

static void encode_plain(void *data, struct piece in)
{
    struct encoding *e = data;
    struct pieces pieces = pretokenizer_apply(e->t->pretokenizer, e->arena, in);
    for (int i = 0; i < pieces.list.n; i++)
        if (pieces.list.at[i].text.n)
            encode_piece(e, pieces.list.at[i].text);
}

/* The spans of a piece after normalization. */
static struct text_spans normalized_spans(const struct encoding *e, struct text raw, struct text normalized)
{
    size_t from = (size_t)(raw.at - e->text.at);
    if (!e->untrusted.n || !added_has_normalized_special(e->t->added))
        return (struct text_spans){0};
    return spans_normalized(e->arena, e->t->normalizer, raw, normalized, spans_within(e->arena, e->untrusted, from, from + raw.n));
}

static void encode_normalized(void *data, struct piece in)
{
    struct encoding *e = data;
    const struct text raw = in.text;
    size_t end = 0;
    (void)text_next(in.text, &end);
    if (in.head)
        in.head = normalizer_apply(e->t->normalizer, e->arena, (struct text){in.text.at, end}).n;
    in.text = normalizer_apply(e->t->normalizer, e->arena, in.text);
    added_split(e->t->added, in, true, normalized_spans(e, raw, in.text), &(struct added_use){e, encode_plain, put_id});
}

struct token_ids tokenizer_encode_mixed(const struct tokenizer *t, struct arena *a, struct text text, struct text_spans untrusted)
{
    struct encoding e = {.t = t, .arena = a, .text = text, .untrusted = untrusted};
    size_t bad;
    if (!text_is_utf8(text.at, text.n, &bad))
        fail("the text is not UTF-8 at byte %zu", bad);
    added_split(t->added, (struct piece){text, 1}, false, untrusted, &(struct added_use){&e, encode_normalized, put_id});
    return e.ids;
}

struct token_ids tokenizer_encode(const struct tokenizer *t, struct arena *a, const char *text, size_t bytes, bool special)
{
    struct token_ids ids = tokenizer_encode_mixed(t, a, (struct text){text, bytes}, (struct text_spans){0});
    return special ? template_apply(t->around, a, &ids) : ids;
}

/* ---- ids to text ---- */

struct text tokenizer_decode(const struct tokenizer *t, struct arena *a, const int64_t *id, int n, bool special)
{
    struct text *token = NEWN(a, struct text, n + 1);
    int count = 0;
    for (int i = 0; i < n; i++) {
        bool known = added_token(t->added, id[i], &token[count]) || vocab_token(t->model->vocab, id[i], &token[count]);
        count += known && (special || !added_is_special(t->added, token[count]));
    }
    return decoder_apply(t->decoder, a, count, token);
}

struct text tokenizer_token(const struct tokenizer *t, struct arena *a, int64_t id)
{
    struct text token = text_of("");
    if (!added_token(t->added, id, &token) && !vocab_token(t->model->vocab, id, &token))
        return token;
    return decoder_token(t->decoder, a, token);
}

int64_t tokenizer_id(const struct tokenizer *t, const char *token)
{
    int64_t id = added_id(t->added, text_of(token));
    return id >= 0 ? id : vocab_id(t->model->vocab, text_of(token));
}

int64_t tokenizer_special_at(const struct tokenizer *t, struct text text)
{
    return added_special_at(t->added, text);
}

bool tokenizer_is_special(const struct tokenizer *t, int64_t id)
{
    struct text token;
    return added_token(t->added, id, &token) && added_is_special(t->added, token);
}

bool tokenizer_joins(const struct tokenizer *t)
{
    return decoder_joins(t->decoder);
}
