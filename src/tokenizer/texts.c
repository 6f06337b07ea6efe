/* texts: the bytes of all tokens, for lookups of tokens by text. */
#include "tokenizer/tokenizer.h"

#include <string.h>

/* A leading blank may be lost at the beginning of a text: check with the token alone. */
static bool loses_blank(const struct tokenizer *t, struct arena *tmp, int64_t id, struct text token)
{
    return token.n && token.at[0] == ' ' && tokenizer_decode(t, tmp, &id, 1, true).n < token.n;
}

static bool is_among(const struct token_ids *ids, int64_t id)
{
    for (int i = 0; i < ids->list.n; i++)
        if (ids->list.at[i] == id)
            return true;
    return false;
}

struct token_texts tokenizer_texts(const struct tokenizer *t, struct arena *a, int64_t n, const struct token_ids *shown)
{
    struct text_builder all = {.arena = a};
    struct arena *tmp = arena_new();
    uint8_t *length = NEWN(a, uint8_t, n + 1);
    bool *loses = NEWN(a, bool, n + 1);
    for (int64_t id = 0; id < n; id++) {
        struct text token = tokenizer_token(t, tmp, id);
        if (token.n <= UINT8_MAX && (!tokenizer_is_special(t, id) || is_among(shown, id))) {
            length[id] = (uint8_t)token.n;
            loses[id] = loses_blank(t, tmp, id, token);
            text_put(&all, token.at, token.n);
        }
        arena_reset(tmp);
    }
    arena_free(tmp);
    return (struct token_texts){.n = n, .bytes = all.to.n, .at = all.to.at, .length = length, .loses = loses};
}
