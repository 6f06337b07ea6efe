/* words: placements in words: "columns, 32 of 128". */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/report/report.h"

#include <string.h>

/* Whether a node with this rule sums over dimension d of the operand. */
static bool is_contracted(const struct rule *r, int operand, int d)
{
    int f = r && operand < r->nin && d < r->in[operand].rank ? rule_factor_at(&r->in[operand], d) : -1;
    return f >= 0 && (r->factor[f].flags & FACTOR_CONTRACTED);
}

const char *words_weight_unit(struct graph *g, const struct use *use, const struct value *v, int d)
{
    const struct op *op = use->node ? use->node->op : NULL;
    if (op && (op->flags & OP_ROUTES) && d == 0)
        return "experts";
    if (v->type.rank == 1)
        return "elements";
    if (op && (op->flags & OP_PRODUCT))
        return is_contracted(rule_of(g, use->node), use->index, d) ? "rows" : "columns";
    return d == v->type.rank - 1 ? "columns" : "rows";
}

/* "32 of 128", "42 to 43 of 128". */
static const char *held_text(struct arena *a, struct alg *alg, const struct split *s, const struct bindings *dims)
{
    int64_t least = INT64_MAX, most = 0, size;
    if (!dim_eval(split_size(alg, s), dims, &size))
        return "";
    for (int r = 0; r < s->ranks; r++) {
        struct interval *at;
        int64_t held = 0;
        int n = split_pieces(a, s, r, false, dims, &at);
        for (int i = 0; i < n; i++)
            held += at[i].hi - at[i].lo;
        least = held < least ? held : least;
        most = held > most ? held : most;
    }
    return least == most ? arena_printf(a, "%lld of %lld", (long long)most, (long long)size)
                         : arena_printf(a, "%lld to %lld of %lld", (long long)least, (long long)most, (long long)size);
}

const char *words_placement(struct arena *a, struct graph *g, const struct plan *p, const struct type *type, struct placement place,
                            const char *unit)
{
    if (place.kind == PLACE_R)
        return "replicated";
    if (place.kind == PLACE_P)
        return place.op == RED_SUM ? "partial sums" : arena_printf(a, "partial, %s", placement_str(a, place));
    const struct dim *d = type->dim[place.dim];
    if (!dim_is_int(d, NULL))
        return arena_printf(a, "%s, 1/%d each", dim_str(a, d), place.split->ranks);
    return arena_printf(a, "%s, %s",
                        unit                              ? unit
                            : place.dim == type->rank - 1 ? "columns"
                                                          : arena_printf(a, "dimension %d", place.dim),
                        held_text(a, g->alg, place.split, &p->workloads.at[0].dims));
}
