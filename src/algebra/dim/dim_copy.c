/* dim_copy: rebuilds expressions in another interner or with other symbols. */
#include "algebra/dim/cell.h"

struct replacing {
    struct alg *alg;
    const struct dim *(*symbol)(void *data, const struct dim *);
    void *data;
};

static const struct dim *replace(const struct replacing *, const struct dim *);

static const struct dim *replace_list(const struct replacing *r, const struct dim *d,
                                      const struct dim *(*make)(struct alg *, const struct dim *, const struct dim *))
{
    const struct dim *out = replace(r, d->arg[0]);
    for (int i = 1; out && i < d->n; i++) {
        const struct dim *next = replace(r, d->arg[i]);
        out = next ? make(r->alg, out, next) : NULL;
    }
    return out;
}

static const struct dim *replace(const struct replacing *r, const struct dim *d)
{
    switch (d->kind) {
    case DIM_INT: return dim_int(r->alg, d->k);
    case DIM_SYM: return r->symbol(r->data, d);
    case DIM_ADD: return replace_list(r, d, dim_add);
    case DIM_MUL: return replace_list(r, d, dim_mul);
    case DIM_DIV: return replace_list(r, d, dim_div);
    case DIM_MOD: return replace_list(r, d, dim_mod);
    case DIM_MIN: return replace_list(r, d, dim_min);
    case DIM_MAX: return replace_list(r, d, dim_max);
    }
    bug("dimension expression of kind %d", (int)d->kind);
}

const struct dim *dim_replace(struct alg *alg, const struct dim *d, const struct dim *(*symbol)(void *data, const struct dim *), void *data)
{
    return replace(&(struct replacing){alg, symbol, data}, d);
}

static const struct dim *copied_symbol(void *alg, const struct dim *symbol)
{
    return dim_at_least(alg, dim_sym(alg, symbol->name, symbol->usual), symbol->lo);
}

const struct dim *dim_copy(struct alg *alg, const struct dim *d)
{
    return dim_replace(alg, d, copied_symbol, alg);
}
