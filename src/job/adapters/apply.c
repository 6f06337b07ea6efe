/* apply: the nodes of adapters in a graph that is about to run. A rank has its rows of A where its product sums over a shard, and its
 * columns of B where the result is one. So the adapter is placed as the product is, and nothing is sent for it. */
#include "ir/rank_meta.h"
#include "job/adapters/adapters.h"
#include "run/collective/collective.h"

#include <string.h>

/* Of a dimension: its global size, and what this rank has of it. */
struct cut {
    int64_t size;
    struct intervals own;
};

static struct cut cut_of(const struct graph *g, const struct split *s, int64_t local)
{
    static const struct bindings none;
    struct cut c = {.size = local};
    if (s && s->ranks != g->ranks)
        fail("%s: metadata tells of a weight on %d ranks, expected %d", graph_file(g), s->ranks, g->ranks);
    if (s) {
        c.size = intervals_total(g->arena, s, &none);
        c.own = intervals_of(g->arena, s, g->rank, false, &none);
    } else
        c.own = intervals_range(g->arena, 0, local);
    return c;
}

/* The rank's part of a matrix. */
static struct value *cut_constant(struct graph *g, const char *name, const float *full, const struct cut *rows, const struct cut *columns)
{
    const int64_t dim[] = {intervals_extent(&rows->own), intervals_extent(&columns->own)};
    float *own = NEWN(g->arena, float, dim[0] * dim[1]), *to = own;
    for (int i = 0; i < rows->own.n; i++)
        for (int64_t r = rows->own.at[i].lo; r < rows->own.at[i].hi; r++)
            for (int k = 0; k < columns->own.n; k++) {
                const struct interval at = columns->own.at[k];
                memcpy(to, full + r * columns->size + at.lo, (size_t)(at.hi - at.lo) * sizeof *to);
                to += at.hi - at.lo;
            }
    struct value *v = graph_constant(g, name, DT_F32, 2, dim, own);
    v->constant->origin = v->name; /* a weight: it is not folded away */
    return v;
}

static void apply_one(struct graph *g, const struct adapters *s, const struct adapter *p, const struct lora_product *product,
                      const struct rank_product *split, const struct cut *rows, const struct cut *columns)
{
    struct arena *tmp = arena_new();
    struct cut few = cut_of(g, NULL, adapter_rank(p));
    struct value *a = cut_constant(g, arena_printf(g->arena, "%s" LORA_A, product->module), adapter_turned(tmp, p, 0), rows, &few),
                 *b = cut_constant(g, arena_printf(g->arena, "%s" LORA_B, product->module), adapter_turned(tmp, p, 1), &few, columns);
    const struct node *first = lora_attach(g, product, a, b, adapter_factor(s, p));
    if (split->rows && rank_meta_sum_count(g) >= 0) {
        rank_meta_set_sum(g, first->name, &(struct rank_sum){RANK_SUM_SPLIT, product->node->in[0]->type.rank - 1, split->rows});
        rank_meta_set_sum_count(g, rank_meta_sum_count(g) + 1);
    }
    arena_free(tmp);
}

void adapters_apply(struct graph *g, const char *path)
{
    if (g->rank_meta && g->rank_meta->stages > 1)
        fail("%s: is of one stage of %d: --lora does not go with stages yet", graph_file(g), g->rank_meta->stages);
    const struct adapters s = adapters_read(g->arena, path);
    struct lora_products products = lora_products_find(g);
    const struct adapter **of = adapters_match(g->arena, &s, graph_file(g), &products);
    for (int i = 0; i < products.list.n; i++) {
        const struct lora_product *p = &products.list.at[i];
        if (!of[i])
            continue;
        const struct rank_product split = g->ranks > 1 ? rank_meta_product(g, p->node) : (struct rank_product){NULL, NULL};
        struct cut rows = cut_of(g, split.rows, p->rows), columns = cut_of(g, split.columns, p->columns);
        adapter_check(&s, of[i], graph_file(g), rows.size, columns.size);
        if (intervals_extent(&rows.own) != p->rows || intervals_extent(&columns.own) != p->columns)
            fail("%s: metadata of its weight says [%lld, %lld], expected [%lld, %lld]", node_where(g, p->node),
                 (long long)intervals_extent(&rows.own), (long long)intervals_extent(&columns.own), (long long)p->rows,
                 (long long)p->columns);
        apply_one(g, &s, of[i], p, &split, &rows, &columns);
    }
}
