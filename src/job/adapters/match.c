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

static int best_of_all(struct comm *all, int own)
{
    int64_t mine = own, best = own;
    if (all)
        comm_allreduce(all, &mine, &best, 1, DT_I64, RED_MAX);
    return (int)best;
}

/* Two stages have modules of several names that end alike: each knows its own. found NULL: this stage has none. */
static void check_one_module(struct comm *all, const struct adapters *s, const struct adapter *p, const char *found)
{
    uint64_t hash = found ? digest_bytes(found, strlen(found)) : 0, ends[] = {hash, found ? ~hash : 0}, most[2];
    comm_allreduce(all, ends, most, 2, DT_U64, RED_MAX);
    if (most[0] == ~most[1])
        return;
    if (all->rank == 0)
        fail("%s: '%s' may be for several modules, in several stages: expected a longer name", s->path, p->name[0]);
    all->barrier(all);
}

const struct adapter **adapters_match(struct arena *a, const struct adapters *s, const char *what, const struct lora_products *products,
                                      struct comm *all)
{
    const struct adapter **of = NEWN(a, const struct adapter *, products->list.n + 1);
    EACH (const struct adapter, p, s->list) {
        const char *found = NULL;
        int fit = best_of_all(all, best_fit(p, products));
        if (fit == NOT_ITS && all && all->rank)
            all->barrier(all);
        if (fit == NOT_ITS)
            fail_unknown(a, s, p, what, products);
        for (int i = 0; i < products->list.n; i++) {
            const char *module = products->list.at[i].module;
            if (fit_of(p, module) != fit)
                continue;
            if (found && strcmp(found, module) != 0)
                fail("%s: '%s' may be for '%s' or '%s' of %s", s->path, p->name[0], found, module, what);
            if (of[i])
                fail("%s: '%s' and '%s' are both for '%s' of %s", s->path, of[i]->name[0], p->name[0], module, what);
            found = module;
            of[i] = p;
        }
        if (all)
            check_one_module(all, s, p, found);
    }
    return of;
}
