/* overlap_blocks: collectives overlap with compute. Where nodes compute rows independently (op/analysis/row_segments.c), each stage of them
 * runs in blocks of rows: the collective of a block starts as soon as the block is computed, on its own communicator (comm/behind.c), and
 * the next stage waits for it. Between machines only: within one, the computing core does the addition. */
#include "ir/rank_meta.h"
#include "op/op.h"
#include "run/session/session.h"

#include <string.h>
#include <xxhash.h>

static const struct row_stage *last_stage(const struct row_segment *s)
{
    return &s->stages.at[s->stages.n - 1];
}

/* ---- at load ------------------------------------------------------------------------------------------------------------------------ */

/* Whether all collectives that move rows have the same split. */
static bool one_split(const struct session *s, const struct row_segments *all, const struct row_segment *x)
{
    const struct session_step *mover = row_blocks_mover(s, all, x);
    for (int k = 0; k < x->stages.n; k++) {
        const struct session_step *last = &s->step[x->stages.at[k].last];
        if (row_blocks_move(s, all, x->stages.at[k].last) &&
            (row_blocks_split(last) != row_blocks_split(mover) || row_blocks_own(last) != row_blocks_own(mover)))
            return false;
    }
    return true;
}

static void drop_unlike(const struct session *s, struct row_segments *all)
{
    int kept = 0;
    for (int i = 0; i < all->list.n; i++)
        if (one_split(s, all, &all->list.at[i]))
            all->list.at[kept++] = all->list.at[i];
    all->list.n = kept;
}

static uint64_t segment_hash(const struct session *s, const struct row_segments *all, const struct row_segment *x, uint64_t hash)
{
    const struct dim *own = row_blocks_own(row_blocks_mover(s, all, x));
    for (int k = 0; k < x->stages.n; k++)
        hash = XXH3_64bits_withSeed((int[]){x->stages.at[k].first, x->stages.at[k].last}, 2 * sizeof(int), hash);
    for (int k = x->stages.at[0].first; k <= last_stage(x)->last; k++) {
        const struct value *v = s->step[k].node->out[0];
        for (int d = 0; d < all->rows[v->id]; d++) {
            const char *size = v->type.dim[d] == own ? "own" : dim_str(s->arena, v->type.dim[d]);
            hash = XXH3_64bits_withSeed(size, strlen(size), hash);
        }
    }
    return hash;
}

/* Rank files may differ: then no rank overlaps anything. */
static bool ranks_agree(struct session *s, const struct row_segments *all, int64_t least)
{
    uint64_t hash = (uint64_t)least;
    for (int i = 0; i < all->list.n; i++)
        hash = segment_hash(s, all, &all->list.at[i], hash);
    const uint64_t *of = comm_gather(s->comm, s->arena, "comparison of what ranks overlap", &hash, sizeof hash);
    for (int r = 1; r < s->comm->size; r++)
        if (of[r] != of[0])
            return false;
    return true;
}

void overlap_prepare(struct session *s)
{
    if (!s->comm->overlaps || s->inner || kenv_deterministic(s->env) || s->gradients.go != GRADIENTS_STAY || s->stage.pause < s->nstep)
        return;
    int64_t least = rank_meta_overlap(s->graph);
    struct row_segments segments = {0};
    if (least >= 0)
        segments = row_segments_find(s->arena, s->graph);
    drop_unlike(s, &segments);
    if (!ranks_agree(s, &segments, least) || segments.list.n == 0)
        return;
    struct overlap *o = s->overlap = NEW(s->arena, struct overlap);
    *o = (struct overlap){.segments = segments, .least = least, .comm = s->comm->split(s->comm, 0)};
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

bool overlap_plan(struct session *s)
{
    struct overlap *o = s->overlap;
    int n = 0, before = o ? o->runs : 0;
    if (!o)
        return false;
    struct arena *tmp = arena_new();
    const struct lifetime_ends *ends = lifetime_ends_find(tmp, &s->slab.life, s->graph->nodes.n);
    for (int i = 0; i < o->segments.list.n; i++) {
        row_blocks_plan(s, &o->segments.list.at[i], &o->plan[i]);
        if (o->plan[i].nall == 0)
            continue;
        row_segment_extend(s->graph, &o->segments.list.at[i], ends, &s->slab.life);
        n++;
    }
    arena_free(tmp);
    o->runs = n;
    if (s->comm->rank == 0 && (n != before || !s->planned))
        explain("%s: %d of %d chains of products overlap with their collectives, in %d blocks of rows", s->sig.path, n, o->segments.list.n,
                ROW_BLOCKS);
    return n || before;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------ */

static void exchange_block(struct comm *c, void *block)
{
    struct block_exchange *b = block;
    double start = clock_seconds();
    int64_t sent = c->bytes_sent;
    collective_run(b->node, b->route, c, &b->overlap->scratch, &b->x, &b->y);
    b->took = clock_seconds() - start;
    b->sent = c->bytes_sent - sent;
}

static void begin_exchange(struct session *s, struct block_exchange *b)
{
    b->x.data = (char *)b->from->data + b->x_at;
    b->y.data = (char *)b->to->data + b->y_at;
    b->count->payload += b->payload;
    b->number = behind_add(s->overlap->behind, exchange_block, b);
}

static void wait_for_exchange(struct session *s, struct block_exchange *b, bool first)
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

static void run_block(struct session *s, int at, struct row_range range)
{
    struct session_step *step = &s->step[at];
    const struct node *n = step->node;
    const struct rule *r = s->overlap->segments.rule[at];
    int d = row_block_dim(&s->tensor[n->out[0]->id], s->overlap->segments.rows[n->out[0]->id]);
    for (int k = 0; k < n->nin; k++) {
        if (!n->in[k])
            continue;
        const struct tensor *t = &s->tensor[n->in[k]->id];
        int of = row_block_operand_dim(r, k, d);
        step->in[k] = of < 0 ? *t : row_block_of(t, of, range);
    }
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            step->out[k] = row_block_of(&s->tensor[n->out[k]->id], d, range);
    session_run_kernel(s, step);
}

/* Runs the stage's kernels on this block. */
static void run_kernels(struct session *s, const struct row_stage *x, const struct block_plan *p, int block)
{
    const struct row_range *at = x->scattered ? &p->own[block] : p->all[block];
    for (int i = x->first; i <= x->last; i++)
        for (int k = 0; s->step[i].kind == STEP_KERNEL && k < (x->scattered ? 1 : p->nall); k++)
            run_block(s, i, at[k]);
}

static void run_stage(struct session *s, const struct row_segment *x, const struct block_plan *p, int stage)
{
    const struct row_stage *now = &x->stages.at[stage];
    bool exchanges = s->step[now->last].kind == STEP_COLLECTIVE;
    for (int b = 0; b < ROW_BLOCKS; b++) {
        if (stage > 0)
            wait_for_exchange(s, &p->exchange[stage - 1][b], b == 0);
        run_kernels(s, now, p, b);
        if (exchanges)
            begin_exchange(s, &p->exchange[stage][b]);
    }
    for (int b = 0; b < ROW_BLOCKS && exchanges && stage + 1 == x->stages.n; b++)
        wait_for_exchange(s, &p->exchange[stage][b], b == 0);
}

int overlap_run(struct session *s, int step)
{
    int i = s->overlap ? s->overlap->begins[step] : -1;
    if (i < 0 || !s->overlap->plan[i].nall)
        return 0;
    const struct row_segment *x = &s->overlap->segments.list.at[i];
    row_blocks_point_views(s, step, last_stage(x)->last);
    for (int k = 0; k < x->stages.n; k++)
        run_stage(s, x, &s->overlap->plan[i], k);
    return last_stage(x)->last + 1 - step;
}
