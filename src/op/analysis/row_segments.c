/* row_segments: consecutive nodes that compute each row from the same row of their operands, with collectives in between: a row-parallel
 * product, its AllReduce, a norm, the next products; under --sp the product, a ReduceScatter of rows, the norm on a rank's rows, an
 * AllGather, the next products. Such nodes can run in blocks of rows, so that the collective of one block overlaps with the computation of
 * the next.
 *
 * Rows are the leading dimensions of a value: all but the last of a product's result; views may change their number. */
#include "op/analysis/analysis.h"
#include "op/infer/infer.h"
#include "op/op.h"

struct row_walk {
    struct arena *arena;
    struct graph *g;
    struct row_segments *s;
};

/* ---- one node ----------------------------------------------------------------------------------------------------------------------- */

bool row_segment_ends_stage(const struct node *n)
{
    return op_is_tpc(n, "AllReduce") || op_is_tpc(n, "ReduceScatter") || op_is_tpc(n, "AllGather");
}

/* Whether the collective scatters rows to ranks, or gathers them. */
static bool scatters(const struct graph *g, const struct node *n, int rows)
{
    return op_is_tpc(n, "ReduceScatter") && op_axis(g, n, attr_int(n, "axis"), n->in[0]->type.rank) < rows;
}

static bool gathers(const struct graph *g, const struct node *n, int rows)
{
    return op_is_tpc(n, "AllGather") && op_axis(g, n, attr_int(n, "axis"), n->in[0]->type.rank) < rows;
}

static const struct dim *leading_product(struct graph *g, const struct type *t, int dims)
{
    const struct dim *n = dim_int(g->alg, 1);
    for (int d = 0; d < dims; d++)
        n = dim_mul(g->alg, n, t->dim[d]);
    return dim_rewrite(g->alg, n);
}

/* The number of leading dimensions of the result that count the same rows; 0: none. */
static int rows_through_view(struct row_walk *w, const struct node *n)
{
    const struct dim *rows = leading_product(w->g, &n->in[0]->type, w->s->rows[n->in[0]->id]);
    for (int d = 1; d <= n->out[0]->type.rank; d++)
        if (leading_product(w->g, &n->out[0]->type, d) == rows)
            return d;
    return 0;
}

/* Leading dimensions of size 1 have no factor. */
static bool cuts_rows(const struct rule *r, const struct node *n, int rows)
{
    if (rows >= n->out[0]->type.rank)
        return false;
    for (int d = 0; d < rows; d++)
        if (!dim_equals(n->out[0]->type.dim[d], 1) && !rule_cuts_anywhere(r, d))
            return false;
    return true;
}

/* Whether an operand from the segment has its rows in the same dimensions as the result. */
static bool reads_rows(const struct row_walk *w, const struct rule *r, const struct node *n, int rows)
{
    for (int k = 0; k < n->nin; k++) {
        int have = n->in[k] ? w->s->rows[n->in[k]->id] : 0;
        if (have && have != rows)
            return false;
        for (int d = 0; d < have; d++)
            if (rule_factor_at(&r->in[k], d) != rule_factor_at(&r->out[0], d))
                return false;
    }
    return true;
}

static int rows_of_operands(const struct row_walk *w, const struct node *n)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && w->s->rows[n->in[k]->id])
            return w->s->rows[n->in[k]->id];
    return 0;
}

static void set_rows(struct row_walk *w, const struct node *n, int rows)
{
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            w->s->rows[n->out[k]->id] = rows;
}

/* Whether no segment may contain the node. */
static bool stops_rows(const struct node *n)
{
    if (!n->op || n->nout < 1 || !n->out[0])
        return true;
    return !row_segment_ends_stage(n) && !(n->op->flags & OP_VIEW) &&
        n->op->flags & (OP_COLLECTIVE | OP_CONTROL | OP_DRAWS | OP_CAPACITY | OP_RECURS);
}

/* The row dimensions of the result; 0: the node belongs to no segment. begins: it is the first of one. */
static int rows_of_node(struct row_walk *w, int at, bool begins)
{
    const struct node *n = w->g->nodes.at[at];
    if (stops_rows(n))
        return 0;
    int rows = begins ? n->out[0]->type.rank - 1 : rows_of_operands(w, n);
    if (rows < 1 || row_segment_ends_stage(n))
        return rows;
    if (n->op->flags & OP_VIEW)
        return w->s->rows[n->in[0]->id] ? rows_through_view(w, n) : 0;
    struct rule *r = w->s->rule[at] ? w->s->rule[at] : (w->s->rule[at] = rule_of(w->g, n));
    return r && cuts_rows(r, n, rows) && reads_rows(w, r, n, rows) ? rows : 0;
}

/* ---- all nodes ---------------------------------------------------------------------------------------------------------------------- */

static void forget(struct row_walk *w, int first, int last)
{
    for (int i = first; i <= last; i++)
        set_rows(w, w->g->nodes.at[i], 0);
}

static bool multiplies(const struct node *n)
{
    return n->op && n->op->flags & OP_PRODUCT;
}

/* Ends a stage at the collective `last`. False: the stage and the collective disagree about whether they have the rows of all ranks. */
static bool end_stage(const struct row_walk *w, struct row_segment *s, int first, int last, int rows, bool *scattered)
{
    const struct node *n = w->g->nodes.at[last];
    bool gather = gathers(w->g, n, rows), scatter = scatters(w->g, n, rows);
    if (s->stages.n == 0)
        *scattered = gather;
    if (*scattered != gather)
        return false;
    VEC_PUSH(w->arena, &s->stages, ((struct row_stage){first, last, *scattered}));
    *scattered = scatter;
    s->scatters |= scatter || gather;
    return true;
}

/* The segment that begins with the product or collective at `first`. False: it lacks a product or a collective. */
static bool find_segment(struct row_walk *w, int first, struct row_segment *s)
{
    int last = first - 1, end = -1, stage = first;
    bool scattered = false, product = false;
    for (int i = first, rows; i < w->g->nodes.n && (rows = rows_of_node(w, i, i == first)) > 0; last = i++) {
        const struct node *n = w->g->nodes.at[i];
        bool ends = row_segment_ends_stage(n);
        product |= multiplies(n);
        if (ends && !end_stage(w, s, stage, i, rows, &scattered))
            break;
        set_rows(w, n, rows);
        if (ends)
            stage = i + 1;
        if (ends || (multiplies(n) && s->stages.n))
            end = i;
    }
    if (!product)
        end = -1;
    forget(w, end < 0 ? first : end + 1, last);
    if (end >= stage)
        VEC_PUSH(w->arena, &s->stages, ((struct row_stage){stage, end, scattered}));
    return end >= 0;
}

/* ---- whether a segment runs in blocks --------------------------------------------------------------------------- */

const struct value *row_segment_full_side(const struct node *collective)
{
    return op_is_tpc(collective, "ReduceScatter") ? collective->in[0] : collective->out[0];
}

void row_segment_count(struct row_segment_size *size, const struct node *collective, int64_t rows, int64_t bytes)
{
    bytes /= op_is_tpc(collective, "AllReduce") ? 1 : 2;
    size->rows = size->collectives == 0 || rows < size->rows ? rows : size->rows;
    size->bytes = bytes > size->bytes ? bytes : size->bytes;
    size->collectives++;
}

bool row_segment_runs(const struct row_segment *x, struct row_segment_size size, int ranks, int64_t least)
{
    return size.rows / (x->scatters ? ranks : 1) >= ROW_BLOCKS * ROW_BLOCK_LEAST && size.bytes >= least;
}

/* ---- lifetimes ---------------------------------------------------------------------------------------------------------------------- */

static void operand_lives_on(const struct graph *g, const struct row_stage *stage, const struct row_stage *next, struct lifetimes *life)
{
    int item = life->item[life->root[g->nodes.at[stage->last]->in[0]->id]];
    if (item >= 0 && life->items[item].last < next->last)
        life->items[item].last = next->last;
}

void row_segment_extend(const struct graph *g, const struct row_segment *x, const struct lifetime_ends *ends, struct lifetimes *life)
{
    for (int k = 0; k < x->stages.n; k++) {
        lifetime_stretch_all(life, ends, x->stages.at[k].first, x->stages.at[k].last);
        if (k + 1 < x->stages.n)
            operand_lives_on(g, &x->stages.at[k], &x->stages.at[k + 1], life);
    }
}

/* ---- all segments ------------------------------------------------------------------------------------------------------------------- */

/* The last product before the first collective: nodes before it need not wait. */
static int last_product(const struct row_walk *w, const struct row_stage *s)
{
    int at = s->last;
    while (at > s->first && !multiplies(w->g->nodes.at[at]))
        at--;
    return at;
}

/* Whether the node can read its operand block by block as rows arrive. */
static bool begins(const struct node *n)
{
    return multiplies(n) || (row_segment_ends_stage(n) && !op_is_tpc(n, "ReduceScatter"));
}

/* By node: whether a collective that ends a stage comes before any node that stops segments. Otherwise no segment begins there. */
static bool *reach_collectives(struct arena *a, const struct graph *g)
{
    bool *all = NEWN(a, bool, g->nodes.n + 1);
    for (int i = g->nodes.n - 1; i >= 0; i--)
        all[i] = row_segment_ends_stage(g->nodes.at[i]) || (!stops_rows(g->nodes.at[i]) && all[i + 1]);
    return all;
}

struct row_segments row_segments_find(struct arena *a, struct graph *g)
{
    struct row_segments s = {.rows = NEWN(a, int, g->values.n + 1), .rule = NEWN(a, struct rule *, g->nodes.n + 1)};
    struct row_walk w = {a, g, &s};
    const bool *reach = reach_collectives(a, g);
    for (int i = 0; i < g->nodes.n; i++) {
        struct row_segment found = {0};
        if (!reach[i] || !begins(g->nodes.at[i]) || !find_segment(&w, i, &found))
            continue;
        int first = last_product(&w, &found.stages.at[0]);
        forget(&w, i, first - 1);
        found.stages.at[0].first = first;
        VEC_PUSH(a, &s.list, found);
        i = found.stages.at[found.stages.n - 1].last;
    }
    return s;
}
