/* pack: packs text samples into rows of equal length. In file order, a sample starts a new row if it does not fit into the last one. Its
 * first token is no label, because nothing before it predicts it. */
#include "train/data/samples.h"

struct packing {
    struct arena *arena;
    int64_t row;
    VEC(int64_t) token;
    VEC(bool) silent;
};

static void fill_row(struct packing *p)
{
    while (p->token.n % p->row) {
        VEC_PUSH(p->arena, &p->token, -1);
        VEC_PUSH(p->arena, &p->silent, true);
    }
}

/* Rows of a long sample overlap by a token: a label in the first row, and only read in the second. */
static void put_sample(struct packing *p, const struct samples *s, int64_t from, int64_t to)
{
    int64_t used = p->token.n % p->row;
    if (used && to - from > p->row - used)
        fill_row(p);
    for (int64_t at = from; at < to; at++) {
        if (at > from && p->token.n % p->row == 0)
            at--;
        VEC_PUSH(p->arena, &p->token, s->token.at[at]);
        VEC_PUSH(p->arena, &p->silent, at == from || s->silent.at[at]);
    }
}

struct token_file pack_samples(struct arena *a, const char *path, const struct samples *s, int64_t sequence)
{
    struct packing p = {.arena = a, .row = sequence + 1};
    for (int i = 0; i < s->end.n; i++) {
        put_sample(&p, s, i ? s->end.at[i - 1] : 0, s->end.at[i]);
        if (p.token.n > INT32_MAX / 2 - p.row)
            fail("%s: has too many tokens", path);
    }
    fill_row(&p);
    return (struct token_file){
        .path = path, .dtype = DT_I64, .at = p.token.at, .samples = p.token.n / p.row, .row = p.row, .silent = p.silent.at};
}
