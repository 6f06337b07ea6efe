/* overlap: sums of all ranks go on while a rank computes. Where nodes compute rows one by one (op/analysis/row_segments.c), each stage of
 * them runs in blocks of rows: the sum of a block begins as soon as the block is computed, on a communicator of its own (comm/behind.c),
 * and the next stage waits for it. Between machines only: within one, the core that would compute is the one that adds.
 *
 * What a stage reads and makes lives through all of it, for its nodes run once for each block; the operand of a sum lives through the stage
 * behind it. */
#include "ir/rank_meta.h"
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "run/session/session.h"

#include <string.h>
#include <xxhash.h>

/* The sum of a block. */
struct block_sum {
    struct overlap *overlap;
    const struct collective_node *node;
    struct session_collective *count;
    const struct route *route;
    struct tensor x, y;
    int64_t number; /* behind */
    int64_t sent;
    double took;
};
/* A segment under the sizes of this plan. */
struct block_plan {
    int64_t units;                        /* every tensor of rows has a multiple of it; 0: it runs as a whole */
    struct block_sum (*sums)[ROW_BLOCKS]; /* by stage */
};
struct overlap {
    struct row_segments segments;
    struct block_plan *plan; /* by segment */
    int *begins;             /* by step: the segment that begins there; -1: none */
    int64_t least;           /* bytes of a sum that pays */
    int told;                /* how many segments run in blocks; -1: it was not told yet */
    struct comm *comm;
    struct behind *behind;
    struct buffer scratch;
};

static const struct row_stage *last_stage(const struct row_segment *s)
{
    return &s->stages.at[s->stages.n - 1];
}

/* ---- at load ------------------------------------------------------------------------------------------------------------------------ */

/* Rank files may differ: then no rank overlaps anything. */
static bool ranks_agree(struct session *s, const struct row_segments *all, int64_t least)
{
    uint64_t hash = (uint64_t)least;
    for (int i = 0; i < all->list.n; i++) {
        const struct row_segment *x = &all->list.at[i];
        hash = XXH3_64bits_withSeed(x->stages.at, (size_t)x->stages.n * sizeof *x->stages.at, hash);
        for (int k = x->stages.at[0].first; k <= last_stage(x)->last; k++) {
            const struct value *v = s->step[k].node->out[0];
            for (int d = 0; d < all->rows[v->id]; d++) {
                const char *size = dim_str(s->arena, v->type.dim[d]);
                hash = XXH3_64bits_withSeed(size, strlen(size), hash);
            }
        }
    }
    const uint64_t *of = comm_gather(s->comm, s->arena, "comparison of what ranks overlap", &hash, sizeof hash);
    for (int r = 1; r < s->comm->size; r++)
        if (of[r] != of[0])
            return false;
    return true;
}

void overlap_prepare(struct session *s)
{
    if (!s->comm->overlaps || s->inner || kenv_deterministic(s->env) || s->gradients.go != GRADIENTS_STAY)
        return;
    int64_t least = rank_meta_overlap(s->graph);
    struct row_segments segments = {0};
    if (least >= 0)
        segments = row_segments_find(s->arena, s->graph);
    if (!ranks_agree(s, &segments, least) || segments.list.n == 0)
        return;
    struct overlap *o = s->overlap = NEW(s->arena, struct overlap);
    *o = (struct overlap){.segments = segments, .least = least, .told = -1, .comm = s->comm->split(s->comm, 0)};
    o->behind = behind_start(s->arena, o->comm);
    o->plan = NEWN(s->arena, struct block_plan, segments.list.n);
    o->begins = NEWN(s->arena, int, s->nstep);
    for (int i = 0; i < s->nstep; i++)
        o->begins[i] = -1;
    for (int i = 0; i < segments.list.n; i++)
        o->begins[segments.list.at[i].stages.at[0].first] = i;
}

void overlap_free(struct session *s)
{
    if (!s->overlap)
        return;
    behind_end(s->overlap->behind);
    s->overlap->comm->free(s->overlap->comm);
    buffer_free(&s->overlap->scratch);
}

static void live_through(struct slab_item *item, const struct row_stage *stage)
{
    if (item->first >= stage->first && item->first <= stage->last)
        item->first = stage->first;
    if (item->last >= stage->first && item->last <= stage->last)
        item->last = stage->last;
}

static void sum_lives_on(struct session *s, const struct row_stage *stage, const struct row_stage *next)
{
    const struct node *n = s->step[stage->last].node;
    int item = s->slab.life.item[s->slab.life.root[n->in[0]->id]];
    if (item >= 0 && s->slab.life.items[item].last < next->last)
        s->slab.life.items[item].last = next->last;
}

void overlap_extend_lifetimes(struct session *s)
{
    for (int i = 0; s->overlap && i < s->overlap->segments.list.n; i++) {
        const struct row_segment *x = &s->overlap->segments.list.at[i];
        for (int k = 0; k < x->stages.n; k++) {
            for (int j = 0; j < s->slab.life.nitem; j++)
                live_through(&s->slab.life.items[j], &x->stages.at[k]);
            if (k + 1 < x->stages.n)
                sum_lives_on(s, &x->stages.at[k], &x->stages.at[k + 1]);
        }
    }
}

/* ---- blocks of rows ----------------------------------------------------------------------------------------------------------------- */

/* The first dimension of rows that is not 1; -1: there is none. */
static int block_dim(const struct tensor *t, int rows)
{
    for (int d = 0; d < rows; d++)
        if (t->dim[d] != 1)
            return d;
    return -1;
}

/* Its elements at one index of dimension d are one stretch. */
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

struct block_range {
    int64_t from, to, units;
};

static struct tensor block_of(const struct tensor *t, int d, struct block_range r)
{
    struct tensor b = *t;
    int64_t each = t->dim[d] / r.units;
    b.dim[d] = (r.to - r.from) * each;
    b.data = (char *)t->data + r.from * each * bytes_below(t, d);
    return b;
}

/* The dimension of operand k that goes with dimension d of the result; -1: all blocks read all of it. */
static int operand_dim(const struct rule *r, int k, int d)
{
    int f = rule_factor_at(&r->out[0], d);
    for (int i = 0; r->in[k].present && i < r->in[k].rank; i++)
        if (rule_factor_at(&r->in[k], i) == f)
            return i;
    return -1;
}

/* ---- at every plan ------------------------------------------------------------------------------------------------------------------ */

static bool step_cuts(const struct session *s, int at, int64_t *units)
{
    const struct session_step *step = &s->step[at];
    const struct value *out = step->node->out[0];
    const struct rule *r = s->overlap->segments.rule[at];
    const struct tensor *y = &s->tensor[out->id];
    if (step->dynamic || y->dtype == DT_NONE)
        return false;
    int d = block_dim(y, s->overlap->segments.rows[out->id]);
    if (d < 0 || !is_outermost(y, d))
        return false;
    *units = i64_gcd(*units, y->dim[d]);
    for (int k = 0; step->kind == STEP_KERNEL && k < step->node->nin; k++) {
        int at_dim = step->node->in[k] ? operand_dim(r, k, d) : -1;
        if (at_dim >= 0 && (step->in_constant[k] || !is_outermost(&s->tensor[step->node->in[k]->id], at_dim)))
            return false;
    }
    return true;
}

static struct block_range range_of(const struct block_plan *p, int block)
{
    return (struct block_range){p->units * block / ROW_BLOCKS, p->units * (block + 1) / ROW_BLOCKS, p->units};
}

static void plan_sums(struct session *s, struct block_plan *p, int stage, int at)
{
    const struct session_step *step = &s->step[at];
    const struct tensor *x = &s->tensor[step->node->in[0]->id], *y = &s->tensor[step->node->out[0]->id];
    int d = block_dim(y, s->overlap->segments.rows[step->node->out[0]->id]);
    for (int b = 0; b < ROW_BLOCKS; b++) {
        struct block_sum *sum = &p->sums[stage][b];
        *sum = (struct block_sum){.overlap = s->overlap, .node = step->collective, .count = step->count};
        sum->x = block_of(x, d, range_of(p, b));
        sum->y = block_of(y, d, range_of(p, b));
        sum->route = collective_route(s->plan, step->collective, s->comm, &sum->x, &sum->y, &s->bind, STRIP_BYTES);
    }
}

/* There are rows for all blocks, and some sum is long enough. */
static bool pays(const struct session *s, const struct row_segment *x)
{
    const struct value *v = s->step[x->stages.at[0].first].node->out[0];
    int64_t rows, most = 0;
    require(type_sizes_product(s->tensor[v->id].dim, s->overlap->segments.rows[v->id], &rows));
    for (int k = 0; k < x->stages.n; k++) {
        const struct session_step *last = &s->step[x->stages.at[k].last];
        int64_t bytes = last->kind == STEP_COLLECTIVE ? (int64_t)tensor_bytes(&s->tensor[last->node->out[0]->id]) : 0;
        most = bytes > most ? bytes : most;
    }
    return rows >= ROW_BLOCKS * ROW_BLOCK_LEAST && most >= s->overlap->least;
}

static void plan_segment(struct session *s, const struct row_segment *x, struct block_plan *p)
{
    *p = (struct block_plan){0};
    int64_t units = 0;
    for (int i = x->stages.at[0].first; i <= last_stage(x)->last; i++)
        if (!step_cuts(s, i, &units))
            return;
    if (units < ROW_BLOCKS || !pays(s, x))
        return;
    p->units = units;
    p->sums = arena_array(s->plan, (size_t)x->stages.n, sizeof *p->sums);
    for (int k = 0; k < x->stages.n; k++)
        if (s->step[x->stages.at[k].last].kind == STEP_COLLECTIVE)
            plan_sums(s, p, k, x->stages.at[k].last);
}

void overlap_plan(struct session *s)
{
    int n = 0, all = s->overlap ? s->overlap->segments.list.n : 0;
    for (int i = 0; i < all; i++) {
        plan_segment(s, &s->overlap->segments.list.at[i], &s->overlap->plan[i]);
        n += s->overlap->plan[i].units > 0;
    }
    if (all && s->comm->rank == 0 && n != s->overlap->told)
        explain("%s: %d of %d chains of products overlap with their sums, in %d blocks of rows", s->sig.path, n, all, ROW_BLOCKS);
    if (all)
        s->overlap->told = n;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------ */

static void sum_block(struct comm *c, void *block)
{
    struct block_sum *b = block;
    double start = clock_seconds();
    int64_t sent = c->bytes_sent;
    collective_run(b->node, b->route, c, &b->overlap->scratch, &b->x, &b->y);
    b->took = clock_seconds() - start;
    b->sent = c->bytes_sent - sent;
}

static void begin_sum(struct session *s, struct block_sum *b)
{
    b->count->payload += (int64_t)tensor_bytes(&b->x);
    b->number = behind_add(s->overlap->behind, sum_block, b);
}

static void wait_for_sum(struct session *s, struct block_sum *b, bool first)
{
    double start = clock_seconds();
    behind_wait(s->overlap->behind, b->number, b->node->name);
    double waited = clock_seconds() - start;
    b->count->calls += first;
    b->count->bytes += b->sent;
    b->count->seconds += waited;
    b->count->behind += b->took > waited ? b->took - waited : 0;
    s->stats.comm_seconds += waited;
    s->comm->bytes_sent += b->sent;
}

static void run_block(struct session *s, int at, struct block_range range)
{
    struct session_step *step = &s->step[at];
    const struct node *n = step->node;
    const struct rule *r = s->overlap->segments.rule[at];
    int d = block_dim(&s->tensor[n->out[0]->id], s->overlap->segments.rows[n->out[0]->id]);
    for (int k = 0; k < n->nin; k++) {
        if (!n->in[k])
            continue;
        const struct tensor *t = &s->tensor[n->in[k]->id];
        int of = operand_dim(r, k, d);
        step->in[k] = of < 0 ? *t : block_of(t, of, range);
    }
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            step->out[k] = block_of(&s->tensor[n->out[k]->id], d, range);
    session_run_kernel(s, step);
}

/* Those that share the memory of another one. */
static void point_views(struct session *s, int first, int last)
{
    for (int i = first; i <= last; i++) {
        const struct node *n = s->step[i].node;
        if (s->step[i].kind == STEP_VIEW || n->op->flags & OP_IN_PLACE)
            s->tensor[n->out[0]->id].data = s->tensor[n->in[0]->id].data;
    }
}

static void run_stage(struct session *s, const struct row_segment *x, const struct block_plan *p, int stage)
{
    const struct row_stage *now = &x->stages.at[stage];
    bool sums = s->step[now->last].kind == STEP_COLLECTIVE;
    for (int b = 0; b < ROW_BLOCKS; b++) {
        if (stage > 0)
            wait_for_sum(s, &p->sums[stage - 1][b], b == 0);
        for (int i = now->first; i <= now->last; i++)
            if (s->step[i].kind == STEP_KERNEL)
                run_block(s, i, range_of(p, b));
        if (sums)
            begin_sum(s, &p->sums[stage][b]);
    }
    for (int b = 0; b < ROW_BLOCKS && sums && stage + 1 == x->stages.n; b++)
        wait_for_sum(s, &p->sums[stage][b], b == 0);
}

int overlap_run(struct session *s, int step)
{
    int i = s->overlap ? s->overlap->begins[step] : -1;
    if (i < 0 || !s->overlap->plan[i].units)
        return 0;
    const struct row_segment *x = &s->overlap->segments.list.at[i];
    point_views(s, step, last_stage(x)->last);
    for (int k = 0; k < x->stages.n; k++)
        run_stage(s, x, &s->overlap->plan[i], k);
    return last_stage(x)->last + 1 - step;
}
