/* row_blocks: the rows of a segment's values that belong to a block, and what the block's collective moves. All ranks decide alike, from
 * sizes that they share.
 *
 * If ranks hold parts of the rows in some stages (--sp), a block is a part of each rank's rows: a ReduceScatter's result and an AllGather's
 * operand are one range per rank, and the whole block is one range for each rank. */
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "run/session/session.h"

static const struct row_stage *last_stage(const struct row_segment *s)
{
    return &s->stages.at[s->stages.n - 1];
}

/* ---- rows that collectives move ------------------------------------------------------------------------------------------------------ */

/* Whether the step is a ReduceScatter or an AllGather of rows. */
bool row_blocks_move(const struct session *s, const struct row_segments *all, int at)
{
    const struct session_step *step = &s->step[at];
    if (step->kind != STEP_COLLECTIVE)
        return false;
    const struct collective_node *c = step->collective;
    return (c->kind == COLL_REDUCESCATTER || c->kind == COLL_ALLGATHER) && c->axis < all->rows[step->node->out[0]->id];
}

/* Its operand or result with one rank's rows. */
static const struct value *own_side(const struct session_step *step)
{
    return step->collective->kind == COLL_REDUCESCATTER ? step->node->out[0] : step->node->in[0];
}

const struct split *row_blocks_split(const struct session_step *step)
{
    return step->collective->kind == COLL_REDUCESCATTER ? step->collective->to : step->collective->from;
}

const struct session_step *row_blocks_mover(const struct session *s, const struct row_segments *all, const struct row_segment *x)
{
    for (int k = 0; k < x->stages.n; k++)
        if (row_blocks_move(s, all, x->stages.at[k].last))
            return &s->step[x->stages.at[k].last];
    return NULL;
}

const struct dim *row_blocks_own(const struct session_step *mover)
{
    return mover ? own_side(mover)->type.dim[mover->collective->axis] : NULL;
}

/* ---- blocks of rows ----------------------------------------------------------------------------------------------------------------- */

int row_block_dim(const struct tensor *t, int rows)
{
    for (int d = 0; d < rows; d++)
        if (t->dim[d] != 1)
            return d;
    return -1;
}

/* Whether its elements at one index of dimension d are contiguous. */
static bool is_outermost(const struct tensor *t, int d)
{
    for (int k = 0; k < d; k++)
        if (t->dim[k] != 1)
            return false;
    return !t->room && !t->packed;
}

static int64_t bytes_below(const struct tensor *t, int d)
{
    int64_t n;
    require(type_sizes_product(t->dim + d + 1, t->rank - d - 1, &n));
    return n * (int64_t)dtype_size(t->dtype);
}

static struct tensor block_sizes(const struct tensor *t, int d, struct row_range r)
{
    struct tensor b = *t;
    b.dim[d] = (r.hi - r.lo) * (t->dim[d] / r.of);
    return b;
}

static int64_t block_offset(const struct tensor *t, int d, struct row_range r)
{
    return r.lo * (t->dim[d] / r.of) * bytes_below(t, d);
}

struct tensor row_block_of(const struct tensor *t, int d, struct row_range r)
{
    struct tensor b = block_sizes(t, d, r);
    b.data = (char *)t->data + block_offset(t, d, r);
    return b;
}

int row_block_operand_dim(const struct rule *r, int k, int d)
{
    int f = rule_factor_at(&r->out[0], d);
    for (int i = 0; r->in[k].present && i < r->in[k].rank; i++)
        if (rule_factor_at(&r->in[k], i) == f)
            return i;
    return -1;
}

void row_blocks_point_views(struct session *s, int first, int last)
{
    for (int i = first; i <= last; i++) {
        const struct node *n = s->step[i].node;
        if (s->step[i].kind == STEP_VIEW || n->op->flags & OP_IN_PLACE)
            s->tensor[n->out[0]->id].data = s->tensor[n->in[0]->id].data;
    }
}

/* ---- at every plan: decisions common to all ranks ----------------------------------------------------------------------------------- */

static bool pays(const struct session *s, const struct row_segment *x)
{
    struct row_segment_size size = {0};
    for (int k = 0; k < x->stages.n; k++) {
        const struct session_step *last = &s->step[x->stages.at[k].last];
        if (last->kind != STEP_COLLECTIVE)
            continue;
        const struct value *v = row_segment_full_side(last->node);
        int64_t rows;
        require(type_sizes_product(s->tensor[v->id].dim, s->overlap->segments.rows[v->id], &rows));
        row_segment_count(&size, last->node, rows, (int64_t)tensor_bytes(&s->tensor[v->id]));
    }
    return row_segment_runs(x, size, s->comm->size, s->overlap->least);
}

static bool is_sized(const struct session *s, const struct row_segment *x)
{
    for (int i = x->stages.at[0].first; i <= last_stage(x)->last; i++)
        if (s->step[i].dynamic || s->tensor[s->step[i].node->out[0]->id].dtype == DT_NONE)
            return false;
    return true;
}

/* What blocks divide: the greatest common divisor of sizes in stages with all ranks' rows, and in the other stages. */
struct row_units {
    int64_t all, own;
};

/* Whether the dimension that blocks cut is outermost. */
static bool value_cuts(const struct session *s, const struct value *v, int rows, int64_t *units)
{
    const struct tensor *t = &s->tensor[v->id];
    int d = row_block_dim(t, rows);
    if (d < 0 || !is_outermost(t, d))
        return false;
    *units = i64_gcd(*units, t->dim[d]);
    return true;
}

/* The same for each operand that has the dimension. */
static bool operands_cut(const struct session *s, int at)
{
    const struct node *n = s->step[at].node;
    int d = row_block_dim(&s->tensor[n->out[0]->id], s->overlap->segments.rows[n->out[0]->id]);
    for (int k = 0; k < n->nin; k++) {
        int at_dim = n->in[k] ? row_block_operand_dim(s->overlap->segments.rule[at], k, d) : -1;
        if (at_dim >= 0 && (s->step[at].in_constant[k] || !is_outermost(&s->tensor[n->in[k]->id], at_dim)))
            return false;
    }
    return true;
}

static bool step_cuts(const struct session *s, int at, bool scattered, struct row_units *units)
{
    const struct session_step *step = &s->step[at];
    int rows = s->overlap->segments.rows[step->node->out[0]->id];
    if (row_blocks_move(s, &s->overlap->segments, at))
        return value_cuts(s, row_segment_full_side(step->node), rows, &units->all) && value_cuts(s, own_side(step), rows, &units->own);
    int64_t *n = scattered ? &units->own : &units->all;
    return value_cuts(s, step->node->out[0], rows, n) && (step->kind != STEP_KERNEL || operands_cut(s, at)) &&
        (step->kind != STEP_COLLECTIVE || value_cuts(s, step->node->in[0], rows, n));
}

static bool segment_cuts(const struct session *s, const struct row_segment *x, struct row_units *units)
{
    *units = (struct row_units){0, 0};
    for (int k = 0; k < x->stages.n; k++)
        for (int i = x->stages.at[k].first; i <= x->stages.at[k].last; i++)
            if (!step_cuts(s, i, x->stages.at[k].scattered, units))
                return false;
    return true;
}

/* ---- at every plan: blocks ----------------------------------------------------------------------------------------------------------- */

static struct row_range part_of(struct interval x, int64_t of, int block)
{
    return (struct row_range){x.lo + (x.hi - x.lo) * block / ROW_BLOCKS, x.lo + (x.hi - x.lo) * (block + 1) / ROW_BLOCKS, of};
}

/* Every rank has all the rows that blocks cut. */
static bool cut_all(struct session *s, struct block_plan *p, struct row_units units)
{
    int64_t n = i64_gcd(units.all, units.own);
    if (n < ROW_BLOCKS)
        return false;
    p->nall = 1;
    for (int b = 0; b < ROW_BLOCKS; b++) {
        p->all[b] = NEWN(s->plan, struct row_range, 1);
        p->own[b] = *p->all[b] = part_of((struct interval){0, n}, n, b);
    }
    return true;
}

/* Blocks cut scattered rows: rank r has part[r] of them. */
static bool cut_parts(struct session *s, struct block_plan *p, struct row_units units, const struct interval *part, int64_t rows)
{
    struct interval mine = {0, part[s->comm->rank].hi - part[s->comm->rank].lo};
    if (units.all != rows || units.own != mine.hi)
        return false;
    p->nall = s->comm->size;
    for (int b = 0; b < ROW_BLOCKS; b++) {
        p->all[b] = NEWN(s->plan, struct row_range, p->nall);
        for (int r = 0; r < p->nall; r++)
            p->all[b][r] = part_of(part[r], rows, b);
        p->own[b] = part_of(mine, mine.hi, b);
    }
    return true;
}

/* By rank, its rows; NULL: they are not one range each, or too few for all blocks. */
static struct interval *parts_of_ranks(struct session *s, const struct session_step *mover)
{
    struct interval *part = NEWN(s->plan, struct interval, s->comm->size);
    int64_t rows = 0;
    for (int r = 0; r < s->comm->size; r++) {
        struct intervals of = intervals_of(s->plan, row_blocks_split(mover), r, false, &s->bind);
        if (of.n != 1 || intervals_extent(&of) < ROW_BLOCKS)
            return NULL;
        part[r] = of.at[0];
        rows += intervals_extent(&of);
    }
    return rows == s->tensor[row_segment_full_side(mover->node)->id].dim[mover->collective->axis] ? part : NULL;
}

/* How many of the segment's collectives have rows in blocks. */
static int count_across(const struct session *s, const struct row_segment *x)
{
    const struct row_segments *all = &s->overlap->segments;
    int n = 0;
    for (int k = 0; k < x->stages.n; k++) {
        const struct session_step *last = &s->step[x->stages.at[k].last];
        const struct value *full = row_blocks_move(s, all, x->stages.at[k].last) ? row_segment_full_side(last->node) : NULL;
        n += full && row_block_dim(&s->tensor[full->id], all->rows[full->id]) == last->collective->axis;
    }
    return n;
}

static int count_collectives(const struct session *s, const struct row_segment *x)
{
    int n = 0;
    for (int k = 0; k < x->stages.n; k++)
        n += s->step[x->stages.at[k].last].kind == STEP_COLLECTIVE;
    return n;
}

static bool plan_blocks(struct session *s, const struct row_segment *x, struct block_plan *p)
{
    struct row_units units;
    int across;
    if (!is_sized(s, x) || !pays(s, x) || !segment_cuts(s, x, &units))
        return false;
    if ((across = count_across(s, x)) == 0)
        return cut_all(s, p, units);
    const struct session_step *mover = row_blocks_mover(s, &s->overlap->segments, x);
    const struct interval *part = across == count_collectives(s, x) ? parts_of_ranks(s, mover) : NULL;
    return part && cut_parts(s, p, units, part, s->tensor[row_segment_full_side(mover->node)->id].dim[mover->collective->axis]);
}

/* ---- at every plan: collectives of blocks ------------------------------------------------------------------------------------------- */

static void plan_sum(struct session *s, struct block_exchange *e, int d, struct row_range at)
{
    e->x = block_sizes(e->from, d, at);
    e->y = block_sizes(e->to, d, at);
    e->x_at = block_offset(e->from, d, at);
    e->y_at = block_offset(e->to, d, at);
    e->payload = (int64_t)tensor_bytes(&e->x);
    e->route = collective_route(s->plan, e->node, s->comm, &e->x, &e->y, &s->bind, STRIP_BYTES);
}

/* Of all ranks' rows, it moves the ranges `all`. */
static void plan_move(struct session *s, struct block_exchange *e, const struct row_range *all, struct row_range own)
{
    int d = e->node->axis;
    bool scatter = e->node->kind == COLL_REDUCESCATTER;
    struct interval *part = NEWN(s->plan, struct interval, s->comm->size);
    for (int r = 0; r < s->comm->size; r++)
        part[r] = (struct interval){all[r].lo, all[r].hi};
    e->x = scatter ? *e->from : block_sizes(e->from, d, own);
    e->y = scatter ? block_sizes(e->to, d, own) : *e->to;
    e->x_at = scatter ? 0 : block_offset(e->from, d, own);
    e->y_at = scatter ? block_offset(e->to, d, own) : 0;
    struct route *route = collective_route_parts(s->plan, e->node, s->comm, &e->x, &e->y, part);
    e->payload = scatter ? route->send_total : route->send_bytes[0];
    e->route = route;
}

static void plan_exchange(struct session *s, struct block_plan *p, int stage, int at)
{
    const struct session_step *step = &s->step[at];
    const struct value *out = step->node->out[0];
    const struct tensor *from = &s->tensor[step->node->in[0]->id], *to = &s->tensor[out->id];
    for (int b = 0; b < ROW_BLOCKS; b++) {
        struct block_exchange *e = &p->exchange[stage][b];
        *e = (struct block_exchange){.overlap = s->overlap, .node = step->collective, .count = step->count, .from = from, .to = to};
        if (p->nall > 1)
            plan_move(s, e, p->all[b], p->own[b]);
        else
            plan_sum(s, e, row_block_dim(to, s->overlap->segments.rows[out->id]), p->own[b]);
    }
}

void row_blocks_plan(struct session *s, const struct row_segment *x, struct block_plan *p)
{
    *p = (struct block_plan){0};
    if (!plan_blocks(s, x, p))
        return;
    p->exchange = arena_array(s->plan, (size_t)x->stages.n, sizeof *p->exchange);
    for (int k = 0; k < x->stages.n; k++)
        if (s->step[x->stages.at[k].last].kind == STEP_COLLECTIVE)
            plan_exchange(s, p, k, x->stages.at[k].last);
}
