/* match: the product of each adapter. */
#include "job/adapters/adapters.h"

#include <string.h>

bool adapter_is_of(const struct adapter *p, const char *module)
{
    size_t n = strlen(module), own = strlen(p->module);
    return n >= own && strcmp(module + n - own, p->module) == 0 && (n == own || module[n - own - 1] == '.');
}

void adapter_check(const struct adapters *s, const struct adapter *p, const char *what, int64_t rows, int64_t columns)
{
    const int64_t expected[2][2] = {{adapter_rank(p), rows}, {columns, adapter_rank(p)}};
    for (int k = 0; k < 2; k++) {
        const struct tensor *t = p->tensor[k];
        if (memcmp(t->dim, expected[k], sizeof expected[k]) != 0)
            fail("%s: '%s' is [%lld, %lld], expected [%lld, %lld] for '%s' of %s", s->path, p->name[k], (long long)t->dim[0],
                 (long long)t->dim[1], (long long)expected[k][0], (long long)expected[k][1], p->module, what);
    }
}

static _Noreturn void fail_unknown(struct arena *a, const struct adapters *s, const struct adapter *p, const char *what,
                                   const struct lora_products *products)
{
    int n = products->list.n;
    const char **names = NEWN(a, const char *, n + 1);
    for (int i = 0; i < n; i++)
        names[i] = products->list.at[i].module;
    int near = did_you_mean(arena_printf(a, "*%s", p->module), n, names);
    fail("%s: '%s' is for a module that %s lacks%s%s%s", s->path, p->name[0], what,
         near < 0 ? ": it has no product with a weight" : ": the nearest is '", near < 0 ? "" : names[near], near < 0 ? "" : "'");
}

/* How well a module is that of an adapter: by its whole name, by its end, or not at all. */
enum { NOT_ITS, BY_END, BY_NAME };

static int fit_of(const struct adapter *p, const char *module)
{
    return strcmp(module, p->module) == 0 ? BY_NAME : adapter_is_of(p, module) ? BY_END : NOT_ITS;
}

static int best_fit(const struct adapter *p, const struct lora_products *products)
{
    int best = NOT_ITS;
    EACH (const struct lora_product, x, products->list) {
        int fit = fit_of(p, x->module);
        best = fit > best ? fit : best;
    }
    return best;
}

/* The best fit of each adapter on any rank. */
static int64_t *best_fits(struct arena *a, const struct adapters *s, const struct lora_products *products, struct comm *all)
{
    int64_t *own = NEWN(a, int64_t, s->list.n + 1), *best = all ? NEWN(a, int64_t, s->list.n + 1) : own;
    for (int k = 0; k < s->list.n; k++)
        own[k] = best_fit(&s->list.at[k], products);
    if (all)
        comm_allreduce(all, own, best, s->list.n, DT_I64, RED_MAX);
    return best;
}

/* Fails if two stages have modules of different names for an adapter. found: by adapter, this rank's module; NULL: it has none. */
static void check_one_module(struct arena *a, struct comm *all, const struct adapters *s, const char *const *found)
{
    uint64_t *ends = NEWN(a, uint64_t, 2 * s->list.n + 1), *most = NEWN(a, uint64_t, 2 * s->list.n + 1);
    for (int k = 0; k < s->list.n; k++)
        if (found[k]) {
            ends[2 * k] = digest_bytes(found[k], strlen(found[k]));
            ends[2 * k + 1] = ~ends[2 * k];
        }
    comm_allreduce(all, ends, most, 2 * s->list.n, DT_U64, RED_MAX);
    for (int k = 0; k < s->list.n; k++) {
        if (most[2 * k] == ~most[2 * k + 1])
            continue;
        if (all->rank)
            all->barrier(all);
        fail("%s: '%s' may be for several modules, in several stages: expected a longer name", s->path, s->list.at[k].name[0]);
    }
}

/* Its module among the products of this rank; NULL: it has none of that fit. */
static const char *module_of(const struct adapters *s, const struct adapter *p, int64_t fit, const char *what,
                             const struct lora_products *products)
{
    const char *found = NULL;
    EACH (const struct lora_product, x, products->list) {
        if (fit_of(p, x->module) != fit)
            continue;
        if (found && strcmp(found, x->module) != 0)
            fail("%s: '%s' may be for '%s' or '%s' of %s", s->path, p->name[0], found, x->module, what);
        found = x->module;
    }
    return found;
}

static void assign(const struct adapters *s, const struct adapter *p, const char *module, const char *what,
                   const struct lora_products *products, const struct adapter **of)
{
    for (int i = 0; i < products->list.n; i++) {
        if (strcmp(products->list.at[i].module, module) != 0)
            continue;
        if (of[i])
            fail("%s: '%s' and '%s' are both for '%s' of %s", s->path, of[i]->name[0], p->name[0], module, what);
        of[i] = p;
    }
}

const struct adapter **adapters_match(struct arena *a, const struct adapters *s, const char *what, const struct lora_products *products,
                                      struct comm *all)
{
    const struct adapter **of = NEWN(a, const struct adapter *, products->list.n + 1);
    const char **found = NEWN(a, const char *, s->list.n + 1);
    const int64_t *fit = best_fits(a, s, products, all);
    for (int k = 0; k < s->list.n; k++) {
        if (fit[k] == NOT_ITS && all && all->rank)
            all->barrier(all);
        if (fit[k] == NOT_ITS)
            fail_unknown(a, s, &s->list.at[k], what, products);
        found[k] = module_of(s, &s->list.at[k], fit[k], what, products);
    }
    if (all)
        check_one_module(a, all, s, found);
    for (int k = 0; k < s->list.n; k++)
        if (found[k])
            assign(s, &s->list.at[k], found[k], what, products, of);
    return of;
}
