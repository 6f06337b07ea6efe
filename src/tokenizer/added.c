/* added: tokens that are cut out of the text before the model sees it: special ones, and words added to a vocabulary. At each position the
 * longest one wins. */
#include "tokenizer/tokenizer.h"

#include <inttypes.h>
#include <stdlib.h>

struct added_token_row {
    struct text content, sought; /* as written; as matched */
    int64_t id;
    bool special, normalized, single_word, strips_left, strips_right;
};
struct added_tokens {
    VEC(struct added_token_row) list;
    struct arena *arena;
    struct vocab *vocab; /* as written */
    VEC(bool) special;   /* by id */
    /* By first byte: tokens of each kind, longest first; -1 ends. */
    int *starting[2][256];
};

static int row_before(const void *a, const void *b)
{
    const struct added_token_row *x = a, *y = b;
    if (x->sought.n != y->sought.n)
        return x->sought.n > y->sought.n ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void index_rows(struct added_tokens *t)
{
    if (t->list.n)
        qsort(t->list.at, (size_t)t->list.n, sizeof *t->list.at, row_before);
    for (int kind = 0; kind < 2; kind++)
        for (int byte = 0; byte < 256; byte++) {
            VEC(int) of = {0};
            for (int i = 0; i < t->list.n; i++)
                if (t->list.at[i].sought.n && t->list.at[i].normalized == (bool)kind && (uint8_t)t->list.at[i].sought.at[0] == byte)
                    VEC_PUSH(t->arena, &of, i);
            VEC_PUSH(t->arena, &of, -1);
            t->starting[kind][byte] = of.at;
        }
}

static void read_row(struct added_tokens *t, const char *where, const json_t *v)
{
    const json_t *id = json_object_get(v, "id"), *content = json_object_get(v, "content");
    if (!json_is_integer(id) || !json_is_string(content) || json_integer_value(id) < 0)
        fail("%s: an added token has no id or no content", where);
    struct added_token_row row = {.content = member_text(t->arena, content),
                                  .id = json_integer_value(id),
                                  .special = member_bool(where, v, "special", false),
                                  .single_word = member_bool(where, v, "single_word", false),
                                  .strips_left = member_bool(where, v, "lstrip", false),
                                  .strips_right = member_bool(where, v, "rstrip", false)};
    row.normalized = member_bool(where, v, "normalized", !row.special);
    row.sought = row.content;
    if (!vocab_add(t->vocab, row.content, row.id))
        fail("%s: added token '%.*s' has id %" PRId64, where, (int)row.content.n, row.content.at, row.id);
    while (t->special.n <= row.id)
        VEC_PUSH(t->arena, &t->special, false);
    t->special.at[row.id] = row.special;
    VEC_PUSH(t->arena, &t->list, row);
}

struct added_tokens *added_read(struct arena *a, const char *where, const json_t *list)
{
    struct added_tokens *t = NEW(a, struct added_tokens);
    size_t i;
    json_t *v;
    t->arena = a;
    t->vocab = vocab_new(a);
    if (list && !json_is_array(list) && !json_is_null(list))
        fail("%s: expected an array for 'added_tokens'", where);
    json_array_foreach((json_t *)(uintptr_t)list, i, v) read_row(t, where, v);
    index_rows(t);
    return t;
}

void added_normalize(struct added_tokens *t, const struct normalizer *n)
{
    for (int i = 0; n && i < t->list.n; i++)
        if (t->list.at[i].normalized)
            t->list.at[i].sought = normalizer_apply(n, t->arena, t->list.at[i].content);
    index_rows(t);
}

/* ---- looking for them ---- */

static bool word_before(struct text t, size_t at)
{
    size_t start;
    return at > 0 && char_is_word(text_before(t, at, &start));
}

static bool word_behind(struct text t, size_t at)
{
    return at < t.n && char_is_word(text_next(t, &at));
}

/* The longest token that begins at a position. */
static const struct added_token_row *token_at(const struct added_tokens *t, struct text in, size_t at, bool normalized,
                                              struct text_spans untrusted)
{
    for (const int *i = t->starting[normalized][(uint8_t)in.at[at]]; *i >= 0; i++) {
        const struct added_token_row *row = &t->list.at[*i];
        bool begins = text_starts((struct text){in.at + at, in.n - at}, row->sought);
        if (begins && !(row->special && spans_touch(untrusted, at, at + row->sought.n)))
            return row;
    }
    return NULL;
}

static size_t strip_left(struct text in, size_t at, size_t least)
{
    for (size_t start; at > least && char_is_space(text_before(in, at, &start)); at = start)
        continue;
    return at;
}

static size_t strip_right(struct text in, size_t at)
{
    for (size_t next = at; at < in.n && char_is_space(text_next(in, &next)); at = next)
        continue;
    return at;
}

static void give_between(const struct added_use *use, struct piece in, size_t from, size_t to)
{
    if (to > from)
        use->between(use->data, text_piece(in, from, to));
}

void added_split(const struct added_tokens *t, struct piece in, bool normalized, struct text_spans untrusted, const struct added_use *use)
{
    size_t given = 0;
    for (size_t at = 0; at < in.text.n;) {
        const struct added_token_row *row = token_at(t, in.text, at, normalized, untrusted);
        size_t end = row ? at + row->sought.n : 0;
        if (row && row->single_word && (word_before(in.text, at) || word_behind(in.text, end))) {
            at = end;
            continue;
        }
        if (!row) {
            at++;
            continue;
        }
        size_t start = row->strips_left ? strip_left(in.text, at, given) : at;
        end = row->strips_right ? strip_right(in.text, end) : end;
        give_between(use, in, given, start);
        use->token(use->data, row->id);
        at = given = end;
    }
    give_between(use, in, given, in.text.n);
}

bool added_has_normalized_special(const struct added_tokens *t)
{
    bool has = false;
    for (int i = 0; i < t->list.n; i++)
        has |= t->list.at[i].special && t->list.at[i].normalized;
    return has;
}

int64_t added_special_at(const struct added_tokens *t, struct text in)
{
    int64_t id = -1;
    size_t longest = 0;
    for (int i = 0; i < t->list.n; i++)
        if (t->list.at[i].special && t->list.at[i].content.n > longest && text_starts(in, t->list.at[i].content)) {
            longest = t->list.at[i].content.n;
            id = t->list.at[i].id;
        }
    return id;
}

bool added_token(const struct added_tokens *t, int64_t id, struct text *out)
{
    return vocab_token(t->vocab, id, out);
}

/* By its text: a model may have the same token under another id. */
bool added_is_special(const struct added_tokens *t, struct text token)
{
    int64_t id = vocab_id(t->vocab, token);
    return id >= 0 && t->special.at[id];
}

int64_t added_id(const struct added_tokens *t, struct text token)
{
    return vocab_id(t->vocab, token);
}
