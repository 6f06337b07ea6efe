/* complete_sums: for --deterministic: the node that makes a partial sum completes it. In a rank file a partial value passes through linear
 * nodes until a collective adds it up, so the order of additions follows the plan. Here it is the order of chunks (kern/chunk/chunk.h), and
 * later nodes work on replicated values, as on one rank:
 *
 *   a node that sums over a sharded dimension     gets the other ranks' addends (ordered_sum.c); splits move to chunk boundaries
 *   its integer sum, a lookup in a split table    gets an AllReduce after it
 *   a replicated value as addend of a sum         becomes the value
 *   AllReduce of a partial value                  becomes the value; a ReduceScatter takes its shard (collective.c)
 *
 * The metadata names these nodes (src/plan/apply/partial_sums.c). */
#include "ir/rank_meta.h"
#include "kern/chunk/chunk.h"
#include "lower/lower.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"

#include <string.h>

struct completion {
    struct graph *g;
    int at, found;
}; /* at: of the current node; found: entries of the metadata so far */

const struct split *complete_sums_split(struct graph *g, const struct node *n, int *dim)
{
    const struct rank_sum sum = rank_meta_sum(g, n);
    *dim = sum.dim;
    return sum.split;
}

/* ---- bounds of chunks ------------------------------------------------------------------------------------------------------- */

static int64_t nearest_chunk(int64_t bound, int64_t step, int64_t size)
{
    int64_t at = (bound + step / 2) / step * step;
    return bound == size || at > size ? size : at;
}

/* The split with its boundaries moved to multiples of step; the split itself if they are. */
static const struct split *aligned_split(struct graph *g, const struct split *s, int64_t size, int64_t step)
{
    int *count = NEWN(g->arena, int, s->ranks);
    const struct interval **list = NEWN(g->arena, const struct interval *, s->ranks);
    for (int r = 0; r < s->ranks; r++) {
        struct interval *at = NEWN(g->arena, struct interval, s->count[r]);
        for (int i = 0; i < s->count[r]; i++) {
            struct interval x = {nearest_chunk(s->list[r][i].lo, step, size), nearest_chunk(s->list[r][i].hi, step, size)};
            if (x.lo < x.hi)
                at[count[r]++] = x;
        }
        list[r] = at;
    }
    return split_list(g->alg, s->ranks, size, count, list);
}

static int position_in(const struct rule_dim *d, int factor)
{
    for (int i = 0; d->n == 1 && i < d->part[0].n; i++)
        if (d->part[0].factor[i] == factor)
            return i;
    return -1;
}

static void add_redistribute(struct completion *c, struct node *n, const struct rule *r, int operand, int dim, int at,
                             const struct split *from, const struct split *to)
{
    struct graph *g = c->g;
    const struct rule_part *part = &r->in[operand].dim[dim].part[0];
    const struct dim *outer = rule_sizes(g, r, part->factor, 0, at), *inner = rule_sizes(g, r, part->factor, at + 1, part->n);
    const struct split *before = split_scale(g->alg, from, outer, inner), *after = split_scale(g->alg, to, outer, inner);
    if (!before || !after)
        fail("%s: its parts of operand %d can't be moved to bounds of chunks", node_where(g, n), operand);
    const struct dim *extent = split_size(g->alg, before);
    struct node *move = graph_node(g, op_find("tpc", "Redistribute"), arena_printf(g->arena, "%s/chunks%d", n->name, operand), 1,
                                   &n->in[operand], 1);
    attr_set_int(move, "axis", dim);
    attr_set_string(move, "from", split_str(g->arena, before));
    attr_set_string(move, "to", split_str(g->arena, after));
    attr_set_dims(g, move, "extent", 1, &extent);
    node_output(g, move, 0, graph_value(g, move->name, &n->in[operand]->type));
    op_infer(g, move);
    n->in[operand] = move->out[0];
    graph_insert(g, c->at++, move);
}

/* Reshards every operand with the factor to the other split of it. */
static void move_bounds(struct completion *c, struct node *n, int dim, const struct split *from, const struct split *to)
{
    struct graph *g = c->g;
    const struct rule *r = rule_of(g, n);
    int factor = -1;
    for (int i = 0; r && i < r->nfactor; i++)
        if (r->factor[i].red == RED_SUM && position_in(&r->in[0].dim[dim], i) >= 0)
            factor = i;
    if (factor < 0)
        fail("%s: its metadata says that it sums over dimension %d of its first operand, which it does not", node_where(g, n), dim);
    for (int i = 0; i < n->nin; i++)
        for (int d = 0; n->in[i] && d < r->in[i].rank; d++) {
            int at = position_in(&r->in[i].dim[d], factor);
            if (at >= 0)
                add_redistribute(c, n, r, i, d, at, from, to);
        }
    rank_meta_set_sum(g, n->name, &(struct rank_sum){RANK_SUM_SPLIT, dim, to});
}

/* Indices per chunk of the summed factor; 1 if a unit of the split consists of whole chunks. */
static int64_t chunk_step_of(struct graph *g, const struct node *n, const struct split *s)
{
    int64_t size;
    if (!(n->op->flags & OP_PRODUCT) || *n->domain)
        return 1;
    if (s->balanced || !dim_is_int(split_size(g->alg, s), &size))
        fail("%s: it sums over a dimension of size %s, split as '%s', and bounds that change with sizes don't lie on chunks: "
             "--deterministic can't run this plan",
             node_where(g, n), dim_str(g->arena, split_size(g->alg, s)), split_str(g->arena, s));
    return chunk_width(size);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------------------ */

static void add_up_behind(struct completion *c, struct node *n)
{
    struct graph *g = c->g;
    struct value *partial = n->out[0];
    const char *name = arena_printf(g->arena, "%s/sum", n->name);
    struct value *sum = graph_value(g, name, &partial->type);
    graph_replace(g, partial, sum, true);
    struct node *all = graph_node(g, op_find("tpc", "AllReduce"), name, 1, &partial, 1);
    node_output(g, all, 0, sum);
    graph_insert(g, ++c->at, all);
}

static void complete_sum(struct completion *c, struct node *n)
{
    struct graph *g = c->g;
    int dim;
    const struct split *s = complete_sums_split(g, n, &dim);
    enum dtype t = node_result(n, 0) ? n->out[0]->type.dtype : DT_NONE;
    int64_t size, step;
    if (!s || !dtype_is_float(t)) {
        add_up_behind(c, n);
        return;
    }
    if (!(n->op->flags & OP_CHUNKS) || (t == DT_F64 && (n->op->flags & OP_PRODUCT)))
        fail("%s: it makes a partial sum of %s, split as '%s', and has no kernel that adds them in one order: --deterministic "
             "can't run this plan",
             node_where(g, n), dtype_name(t), split_str(g->arena, s));
    step = chunk_step_of(g, n, s);
    const struct split *to = step > 1 && dim_is_int(split_size(g->alg, s), &size) ? aligned_split(g, s, size, step) : s;
    if (to != s)
        move_bounds(c, n, dim, s, to);
}

static void replace_by_identity(struct completion *c, struct node *n, struct value *x)
{
    struct node *same = graph_node(c->g, op_find("", "Identity"), n->name, 1, &x, 1);
    node_output(c->g, same, 0, n->out[0]);
    c->g->nodes.at[c->at] = same;
}

static bool adds_up(const struct graph *g, const struct node *n)
{
    bool all = op_is_tpc(n, "AllReduce");
    if (!all && !op_is_tpc(n, "ReduceScatter"))
        return false;
    if (strcmp(attr_string(n, "op"), "prod") == 0 && dtype_is_float(n->in[0]->type.dtype))
        fail("%s: a partial product of floats has no fixed order: --deterministic can't run this plan", node_where(g, n));
    return all && strcmp(attr_string(n, "op"), "sum") == 0;
}

static void complete_node(struct completion *c)
{
    struct node *n = c->g->nodes.at[c->at];
    if (n->op && adds_up(c->g, n)) {
        replace_by_identity(c, n, n->in[0]);
        return;
    }
    const struct rank_sum sum = n->op ? rank_meta_sum(c->g, n) : (struct rank_sum){.kind = RANK_SUM_NONE};
    c->found += sum.kind != RANK_SUM_NONE;
    switch (sum.kind) {
    case RANK_SUM_NONE: return;
    case RANK_SUM_SPLIT:
    case RANK_SUM_ONCE: complete_sum(c, n); return;
    case RANK_SUM_EACH:
        fail("%s: a running sum over a sharded dimension is added up rank by rank: --deterministic can't run this plan",
             node_where(c->g, n));
    case RANK_SUM_TERM:
        if (!op_is_onnx(n, "Where"))
            fail("%s: its metadata calls it an addend, expected a Where", node_where(c->g, n));
        replace_by_identity(c, n, n->in[1]);
        return;
    }
}

/* Partial outputs become replicated. */
static void complete_outputs(struct graph *g)
{
    for (int i = 0; i < g->outputs.n; i++) {
        const char *name = g->outputs.at[i]->name;
        struct placement place;
        if (rank_meta_placement(g, RANK_OUTPUT, name, &place) && placement_eq(place, placement_partial(RED_SUM)))
            rank_meta_set_placement(g, RANK_OUTPUT, name, placement_replicated);
    }
}

void complete_sums(struct graph *g)
{
    struct completion c = {.g = g};
    int64_t want = rank_meta_sum_count(g);
    if (!g->keeps_sums || g->ranks < 2)
        return;
    if (want < 0)
        fail("%s: its metadata has no number of partial sums, which --deterministic needs: write the folder again with this tpc-shard",
             g->path);
    for (; c.at < g->nodes.n; c.at++)
        complete_node(&c);
    if (c.found != want)
        fail("%s: its metadata names %lld nodes that make partial sums, and %d of them are in the graph", g->path, (long long)want,
             c.found);
    complete_outputs(g);
    graph_prune(g);
}
