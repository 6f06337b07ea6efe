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

const struct adapter **adapters_match(struct arena *a, const struct adapters *s, const char *what, const struct lora_products *products)
{
    const struct adapter **of = NEWN(a, const struct adapter *, products->list.n + 1);
    EACH (const struct adapter, p, s->list) {
        const char *found = NULL;
        for (int exact = 1; exact >= 0 && !found; exact--)
            for (int i = 0; i < products->list.n; i++) {
                const char *module = products->list.at[i].module;
                if (exact ? strcmp(module, p->module) != 0 : !adapter_is_of(p, module))
                    continue;
                if (found && strcmp(found, module) != 0)
                    fail("%s: '%s' may be for '%s' or '%s' of %s", s->path, p->name[0], found, module, what);
                if (of[i])
                    fail("%s: '%s' and '%s' are both for '%s' of %s", s->path, of[i]->name[0], p->name[0], module, what);
                found = module;
                of[i] = p;
            }
        if (!found)
            fail_unknown(a, s, p, what, products);
    }
    return of;
}
