/* apply: adds the nodes of adapters to a graph before it runs. A rank has its rows of A if its product sums over a shard, and its columns
 * of B if the result is sharded. So the adapter is placed like its product, and needs no communication. */
#include "ir/rank_meta.h"
#include "job/adapters/adapters.h"
#include "run/collective/collective.h"

#include <string.h>

/* A dimension: its global size, and this rank's part. */
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
    v->constant->origin = v->name; /* a weight, so it is not folded */
    return v;
}

struct split_product {
    struct graph *graph;
    const struct lora_product *product;
    struct rank_product split;
    struct cut rows, columns;
};

static struct split_product split_of(struct graph *g, const struct lora_product *p)
{
    struct split_product s = {.graph = g, .product = p};
    if (g->ranks > 1)
        s.split = rank_meta_product(g, p->node);
    s.rows = cut_of(g, s.split.rows, p->rows);
    s.columns = cut_of(g, s.split.columns, p->columns);
    if (intervals_extent(&s.rows.own) != p->rows || intervals_extent(&s.columns.own) != p->columns)
        fail("%s: metadata of its weight says [%lld, %lld], expected [%lld, %lld]", node_where(g, p->node),
             (long long)intervals_extent(&s.rows.own), (long long)intervals_extent(&s.columns.own), (long long)p->rows,
             (long long)p->columns);
    return s;
}

/* a: [rows, rank], b: [rank, columns] of the whole product. */
static void attach(const struct split_product *s, int64_t rank, const float *a, const float *b, const struct lora_factor *factor)
{
    struct graph *g = s->graph;
    const struct lora_product *p = s->product;
    struct cut few = cut_of(g, NULL, rank);
    struct value *own_a = cut_constant(g, arena_printf(g->arena, "%s" LORA_A, p->module), a, &s->rows, &few),
                 *own_b = cut_constant(g, arena_printf(g->arena, "%s" LORA_B, p->module), b, &few, &s->columns);
    const struct node *first = lora_attach(g, p, own_a, own_b, factor);
    if (s->split.rows && rank_meta_sum_count(g) >= 0) {
        rank_meta_set_sum(g, first->name, &(struct rank_sum){RANK_SUM_SPLIT, p->node->in[0]->type.rank - 1, s->split.rows});
        rank_meta_set_sum_count(g, rank_meta_sum_count(g) + 1);
    }
}

/* Rank 0 reads first, so that an error is reported once. */
static struct adapters read_after_first(struct graph *g, const char *path, struct comm *all)
{
    if (all && all->rank)
        all->barrier(all);
    struct adapters s = adapters_read(g->arena, path);
    if (all && !all->rank)
        all->barrier(all);
    return s;
}

static void apply_one(struct graph *g, const char *path, struct comm *all)
{
    const struct adapters s = read_after_first(g, path, all);
    struct lora_products products = lora_products_find(g);
    const struct adapter **of = adapters_match(g->arena, &s, graph_file(g), &products, all);
    for (int i = 0; i < products.list.n; i++) {
        if (!of[i])
            continue;
        struct arena *tmp = arena_new();
        struct split_product p = split_of(g, &products.list.at[i]);
        adapter_check(&s, of[i], graph_file(g), p.rows.size, p.columns.size);
        attach(&p, adapter_rank(of[i]), adapter_turned(tmp, of[i], 0), adapter_turned(tmp, of[i], 1),
               &(struct lora_factor){.number = adapter_factor(&s, of[i])});
        arena_free(tmp);
    }
}

/* ---- several, with at most one per row of the batch ----------------------------------------------------------------- */

struct several {
    struct graph *graph;
    int n;
    struct adapters *file;
    const struct adapter ***of; /* by file and product */
    struct value *row;          /* the input; NULL: not made so far */
};

/* The number of each row's adapter, from 1; 0: none. */
static struct value *row_input(struct several *s, const struct lora_product *p)
{
    struct graph *g = s->graph;
    const struct type *x = &p->node->in[0]->type;
    if (!s->row) {
        const struct type type = {.dtype = DT_I64, .rank = 1, .dim = {x->dim[0]}};
        s->row = graph_value(g, ADAPTERS_INPUT, &type);
        VEC_PUSH(g->arena, &g->inputs, s->row);
        if (g->rank_meta)
            rank_meta_set_value(g, RANK_INPUT, s->row->name, &type, placement_replicated);
    }
    if (x->rank < 2 || x->dim[0] != s->row->type.dim[0])
        fail("%s: its operand is %s, whose rows are not those of the batch: adapters by request can't be for it", node_where(g, p->node),
             type_str(g->arena, x));
    return s->row;
}

/* The adapters of product i, concatenated: A [rows, total], B [total, columns]; row k of the table has the factor of file k - 1 in its
 * columns. */
static void attach_all(struct several *s, const struct lora_product *product, int i, int64_t total)
{
    struct graph *g = s->graph;
    struct arena *tmp = arena_new();
    struct split_product p = split_of(g, product);
    float *a = NEWN(tmp, float, p.rows.size *total), *b = NEWN(tmp, float, total *p.columns.size),
          *table = NEWN(tmp, float, (s->n + 1) * total);
    int64_t at = 0;
    for (int k = 0; k < s->n; k++) {
        const struct adapter *one = s->of[k][i];
        if (!one)
            continue;
        adapter_check(&s->file[k], one, graph_file(g), p.rows.size, p.columns.size);
        int64_t rank = adapter_rank(one);
        const float *from = adapter_turned(tmp, one, 0);
        for (int64_t r = 0; r < p.rows.size; r++)
            memcpy(a + r * total + at, from + r * rank, (size_t)rank * sizeof *a);
        memcpy(b + at * p.columns.size, adapter_turned(tmp, one, 1), (size_t)(rank * p.columns.size) * sizeof *b);
        for (int64_t c = at; c < at + rank; c++)
            table[(k + 1) * total + c] = (float)adapter_factor(&s->file[k], one);
        at += rank;
    }
    const char *name = arena_printf(g->arena, "%s.lora_rows", product->module);
    struct lora_factor factor = {.table = graph_constant(g, name, DT_F32, 2, (const int64_t[]){s->n + 1, total}, table)};
    factor.row = row_input(s, product);
    attach(&p, total, a, b, &factor);
    arena_free(tmp);
}

static void apply_several(struct graph *g, int n, const struct named_adapters *named)
{
    struct several s = {g, n, NEWN(g->arena, struct adapters, n), NEWN(g->arena, const struct adapter **, n), NULL};
    struct lora_products products = lora_products_find(g);
    for (int k = 0; k < n; k++) {
        s.file[k] = adapters_read(g->arena, named[k].path);
        s.of[k] = adapters_match(g->arena, &s.file[k], graph_file(g), &products, NULL);
    }
    for (int i = 0; i < products.list.n; i++) {
        int64_t total = 0;
        for (int k = 0; k < n; k++)
            total += s.of[k][i] ? adapter_rank(s.of[k][i]) : 0;
        if (total)
            attach_all(&s, &products.list.at[i], i, total);
    }
}

void adapters_apply(struct graph *g, const struct text_list *given, struct comm *all)
{
    struct named_adapters *named;
    int n = adapters_named(g->arena, given, &named);
    if (named[0].name && all && all->rank)
        all->barrier(all);
    if (named[0].name && all)
        fail("%s: is of one stage of %d: --lora NAME=FILE does not go with stages yet", graph_file(g), g->rank_meta->stages);
    if (named[0].name)
        apply_several(g, n, named);
    else
        apply_one(g, named[0].path, all);
}
