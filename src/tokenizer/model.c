/* model: turns a piece of text into tokens; parts that models share. */
#include "tokenizer/tokenizer.h"

#include <string.h>

void model_read_vocab(struct token_model *m, struct arena *a, const char *where, const json_t *v)
{
    const json_t *vocab = json_object_get(v, "vocab");
    const char *token;
    json_t *id;
    if (!json_is_object(vocab))
        fail("%s: the model has no vocabulary", where);
    json_object_foreach((json_t *)(uintptr_t)vocab, token, id)
    {
        if (!json_is_integer(id) || !vocab_add(m->vocab, member_text_of(a, token, strlen(token)), json_integer_value(id)))
            fail("%s: token '%s' has no id that a token can have", where, token);
    }
}

int64_t *model_byte_tokens(const struct vocab *vocab, struct arena *a)
{
    int64_t *id = NEWN(a, int64_t, 256);
    for (int b = 0; b < 256; b++)
        id[b] = vocab_id(vocab, text_of(arena_printf(a, "<0x%02X>", (unsigned)b)));
    return id;
}

bool model_put_bytes(const int64_t *byte_token, struct arena *a, struct text t, struct token_ids *out)
{
    for (size_t i = 0; i < t.n; i++)
        if (byte_token[(uint8_t)t.at[i]] < 0)
            return false;
    for (size_t i = 0; i < t.n; i++)
        VEC_PUSH(a, &out->list, byte_token[(uint8_t)t.at[i]]);
    return true;
}

static const struct model_kind {
    const char *type;
    void (*read)(struct token_model *, struct arena *, const char *where, const json_t *);
} kinds[] = {{"BPE", bpe_read}, {"Unigram", unigram_read}, {"WordPiece", wordpiece_read}, {"WordLevel", wordpiece_read}};

/* Files from before 2020 lack a type: a model's members tell it. */
static const char *model_type(const char *where, const json_t *v)
{
    if (!json_object_get(v, "type"))
        return json_object_get(v, "merges") ? "BPE" : json_object_get(v, "unk_id") ? "Unigram" : "WordPiece";
    return member_type(where, "model", v);
}

struct token_model *model_read(struct arena *a, const char *where, const json_t *v)
{
    if (!json_is_object(v))
        fail("%s: has no model", where);
    const struct model_kind *kind = &kinds[MEMBER_KIND(where, "model", model_type(where, v), kinds)];
    struct token_model *m = NEW(a, struct token_model);
    *m = (struct token_model){.vocab = vocab_new(a), .unknown = -1};
    kind->read(m, a, where, v);
    return m;
}
