/* model: what the models of tokenizers share: a vocabulary, and tokens for bytes. */
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
