/* unigram: the tokens with the greatest sum of scores (log probabilities). Kudo, "Subword Regularization", arXiv 1804.10959. */
#include "tokenizer/tokenizer.h"

#include <stdlib.h>
#include <string.h>

struct unigram {
    const double *score; /* by id */
    double unknown_score;
    const int64_t *byte_token; /* NULL: no fallback to bytes */
};

/* The best way to the end of a character. */
struct way {
    bool there;
    double score;
    size_t from;
    int64_t id;
};

static void offer(struct way *to, double score, size_t from, int64_t id)
{
    if (!to->there || score > to->score)
        *to = (struct way){true, score, from, id};
}

static void step(const struct token_model *m, struct text t, size_t at, struct way *way)
{
    const struct unigram *u = m->own;
    size_t one = at;
    bool single = false;
    (void)text_next(t, &one);
    for (size_t end = one; end - at <= vocab_longest(m->vocab); (void)text_next(t, &end)) {
        int64_t id = vocab_id(m->vocab, (struct text){t.at + at, end - at});
        if (id >= 0) {
            offer(&way[end], way[at].score + u->score[id], at, id);
            single |= end == one;
        }
        if (end == t.n)
            break;
    }
    if (!single)
        offer(&way[one], way[at].score + u->unknown_score, at, -1);
}

static void put_token(const struct token_model *m, struct arena *a, struct text t, int64_t id, struct token_ids *out)
{
    const struct unigram *u = m->own;
    int64_t known = id >= 0 ? id : vocab_id(m->vocab, t);
    if (known < 0 && u->byte_token && model_put_bytes(u->byte_token, a, t, out))
        return;
    if (known < 0 && m->unknown < 0)
        fail("the tokenizer has no token for '%.*s', nor one for what is unknown", (int)t.n, t.at);
    VEC_PUSH(a, &out->list, known < 0 ? m->unknown : known);
}

static void unigram_apply(const struct token_model *m, struct arena *a, struct text t, struct token_ids *out)
{
    struct way *way = NEWN(a, struct way, t.n + 1);
    size_t *end = NEWN(a, size_t, t.n + 1), n = 0;
    way[0].there = true;
    for (size_t at = 0; at < t.n; (void)text_next(t, &at))
        step(m, t, at, way);
    for (size_t at = t.n; at > 0; at = way[at].from)
        end[n++] = at;
    while (n > 0) {
        size_t at = end[--n], from = way[at].from;
        bool unknown = way[at].id < 0 || way[at].id == m->unknown;
        while (unknown && n > 0 && (way[end[n - 1]].id < 0 || way[end[n - 1]].id == m->unknown))
            at = end[--n]; /* adjacent unknown characters are one token */
        put_token(m, a, (struct text){t.at + from, at - from}, unknown ? -1 : way[at].id, out);
    }
}

/* The score as Hugging Face reads it: all digits as one integer, rounded, divided by a power of ten, rounded again. The rounding separates
 * otherwise equal sums, so that ties break as there. */
static double rounded_twice(double score)
{
    char text[40];
    uint64_t digits = 0;
    double power = 1;
    bool fraction = false;
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, score);
        if (strtod(text, NULL) == score)
            break;
    }
    if (strpbrk(text, "einf"))
        return score;
    for (const char *p = text + (*text == '-'); *p; p++) {
        fraction |= *p == '.';
        if (*p == '.')
            continue;
        digits = digits * 10 + (uint64_t)(*p - '0');
        power *= fraction ? 10 : 1;
    }
    return (*text == '-' ? -1 : 1) * ((double)digits / power);
}

static const double *read_scores(struct token_model *m, struct arena *a, const char *where, const json_t *list, double *least)
{
    double *score = NEWN(a, double, json_array_size(list) + 1);
    size_t i;
    json_t *v;
    *least = 0;
    json_array_foreach((json_t *)(uintptr_t)list, i, v)
    {
        const json_t *token = json_array_get(v, 0), *k = json_array_get(v, 1);
        if (!json_is_string(token) || !json_is_number(k) || !vocab_add(m->vocab, member_text(a, token), (int64_t)i))
            fail("%s: entry %zu of the vocabulary is not a token with its score", where, i);
        score[i] = rounded_twice(json_number_value(k));
        *least = i == 0 || score[i] < *least ? score[i] : *least;
    }
    return score;
}

void unigram_read(struct token_model *m, struct arena *a, const char *where, const json_t *v)
{
    enum { PENALTY = 10 }; /* below the least likely token, as in SentencePiece */
    struct unigram *u = NEW(a, struct unigram);
    const json_t *unknown = json_object_get(v, "unk_id");
    double least;
    if (!json_is_array(json_object_get(v, "vocab")))
        fail("%s: the model has no vocabulary", where);
    u->score = read_scores(m, a, where, json_object_get(v, "vocab"), &least);
    u->unknown_score = least - PENALTY;
    m->unknown = json_is_integer(unknown) ? json_integer_value(unknown) : -1;
    if (m->unknown >= (int64_t)json_array_size(json_object_get(v, "vocab")))
        fail("%s: unk_id is no token", where);
    if (member_bool(where, v, "byte_fallback", false))
        u->byte_token = model_byte_tokens(m->vocab, a);
    m->own = u;
    m->apply = unigram_apply;
}
