/* vocabulary: checks that two models have the same tokens, by their tokenizers if both have one. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "decode/small/small.h"

#ifdef HAVE_TEXT
#include "tokenizer/tokenizer.h"

static const char *tokenizer_of(struct arena *a, const struct job_options *o)
{
    return o->tokenizer ? o->tokenizer : config_beside(a, o, TEXT_TOKENIZER);
}

/* Printable. */
static const char *quoted(struct arena *a, struct text t)
{
    const char *q = "";
    for (size_t i = 0; i < t.n && i < 40; i++) {
        bool plain = t.at[i] >= ' ' && t.at[i] <= '~' && t.at[i] != '\'' && t.at[i] != '\\';
        q = arena_printf(a, plain ? "%s%c" : "%s\\x%02x", q, (unsigned char)t.at[i]);
    }
    return q;
}

void vocabulary_compare(const struct job_options *large, const struct job_options *small, int64_t n)
{
    struct arena *tmp = arena_new();
    const char *one = tokenizer_of(tmp, large), *other = tokenizer_of(tmp, small);
    const struct tokenizer *x = one && other ? tokenizer_read(tmp, one) : NULL, *y = x ? tokenizer_read(tmp, other) : NULL;
    for (int64_t id = 0; y && id < n; id++) {
        const struct text a = tokenizer_token(x, tmp, id), b = tokenizer_token(y, tmp, id);
        if (!text_eq(a, b))
            fail("%s: token %lld is '%s', and in %s it is '%s': --draft needs a model with the same vocabulary", other, (long long)id,
                 quoted(tmp, b), one, quoted(tmp, a));
    }
    arena_free(tmp);
}

#else

void vocabulary_compare(const struct job_options *large, const struct job_options *small, int64_t n)
{
    (void)large, (void)small, (void)n;
}
#endif
