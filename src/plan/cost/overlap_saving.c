/* overlap_saving: which collectives overlap with compute (run/session/blocks/overlap_blocks.c), and the time that this saves. The solver
 * does not model overlap: it is computed for the chosen plan. */
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <float.h>
#include <math.h>

/* ---- when it pays ------------------------------------------------------------------------------------------------------------------- */

static double sum_seconds(const struct machine *m, int ranks, double bytes)
{
    return collective_seconds(m, &(struct sent){.kind = COLL_ALLREDUCE, .wire = m->wire, .ranks = ranks, .bytes = bytes});
}

/* The least payload whose half takes as long to send as its blocks cost the rank. 0: no sum overlaps; between machines only. */
static int64_t least_bytes(const struct machine *m, int ranks)
{
    const double least = ROW_BLOCKS * m->overlap_overhead / fmax(0.5 - m->overlap_share, DBL_MIN);
    int64_t below = 0, enough = INT64_C(1) << 40;
    if (ranks == 1 || ranks <= m->machine_ranks || m->overlap_overhead <= 0 || sum_seconds(m, ranks, (double)enough) < least)
        return 0;
    while (enough - below > 1) {
        int64_t half = below + (enough - below) / 2;
        if (sum_seconds(m, ranks, (double)half) < least)
            below = half;
        else
            enough = half;
    }
    return enough;
}

/* ---- what it saves ------------------------------------------------------------------------------------------------------------------ */

struct overlapped {
    struct arena *arena;
    struct graph *g;
    struct plan *plan;
    const struct machine *machine;
    struct row_segments segments;
    double **node; /* by node position: seconds by workload; NULL: not known */
};

/* Bytes of the tensor that has the whole axis. */
static int64_t bytes_of(const struct overlapped *o, const struct node *n, const struct bindings *dims)
{
    int64_t local = cost_payload(o->g, n, dims, o->g->ranks), all;
    return op_is_tpc(n, "AllGather") && i64_mul(local, o->g->ranks, &all) ? all : local;
}

int64_t overlap_rows(const struct row_segments *all, const struct value *v, const struct bindings *dims)
{
    int64_t rows = 1, n;
    for (int d = 0; d < all->rows[v->id]; d++)
        if (!dim_eval(v->type.dim[d], dims, &n) || !i64_mul(rows, n, &rows))
            return 0;
    return rows;
}

static double stage_seconds(const struct overlapped *o, const struct row_stage *x, int w)
{
    double seconds = 0;
    for (int i = x->first; i <= x->last; i++)
        if (!row_segment_ends_stage(o->g->nodes.at[i]) && o->node[i])
            seconds += o->node[i][w];
    return seconds;
}

static double sent_seconds(const struct overlapped *o, const struct node *n, double bytes)
{
    const struct value *v = n->in[0];
    enum wire wire = collective_wire(o->machine, v->type.dtype, v->place, o->g->ranks);
    return collective_seconds(o->machine,
                              &(struct sent){.kind = collective_parse(n->op->name), .wire = wire, .ranks = o->g->ranks, .bytes = bytes});
}

/* The time of a rank and of the sums that overlap with it, from the start of the segment. */
struct lanes {
    double rank, behind;
};

/* Adds compute time. An overlapping sum takes its share of the rank's time, spread over its duration. */
static void compute(const struct machine *m, struct lanes *at, double seconds)
{
    double left = 1 - fmin(m->overlap_share / m->overlap_slowdown, 0.9), meanwhile = fmax(at->behind - at->rank, 0);
    at->rank += seconds < meanwhile * left ? seconds / left : seconds + meanwhile * (1 - left);
}

static void run_stage(const struct overlapped *o, struct lanes *at, double ended[ROW_BLOCKS], double seconds, double block)
{
    for (int b = 0; b < ROW_BLOCKS; b++) {
        at->rank = fmax(at->rank, ended[b]);
        compute(o->machine, at, seconds / ROW_BLOCKS);
        if (block <= 0)
            continue;
        at->rank += o->machine->overlap_overhead;
        ended[b] = at->behind = fmax(at->behind, at->rank) + block * o->machine->overlap_slowdown;
    }
}

/* Seconds that a segment saves. */
static double segment_saves(const struct overlapped *o, const struct row_segment *x, int w)
{
    const struct bindings *dims = &o->plan->workloads.at[w].dims;
    struct lanes at = {0, 0};
    double ended[ROW_BLOCKS] = {0}, whole = 0;
    struct row_segment_size size = {0};
    for (int k = 0; k < x->stages.n; k++) {
        const struct node *last = o->g->nodes.at[x->stages.at[k].last];
        double compute = stage_seconds(o, &x->stages.at[k], w), block = 0;
        if (row_segment_ends_stage(last)) {
            int64_t bytes = bytes_of(o, last, dims);
            row_segment_count(&size, last, overlap_rows(&o->segments, row_segment_full_side(last), dims), bytes);
            whole += sent_seconds(o, last, (double)bytes);
            block = sent_seconds(o, last, (double)bytes / ROW_BLOCKS);
        }
        whole += compute;
        run_stage(o, &at, ended, compute, block);
    }
    for (int b = 0; b < ROW_BLOCKS; b++)
        at.rank = fmax(at.rank, ended[b]);
    bool runs = row_segment_runs(x, size, o->g->ranks, o->plan->overlap_bytes);
    return runs && whole > at.rank ? whole - at.rank : 0;
}

static void find_node_seconds(struct overlapped *o)
{
    struct name_index names = {0};
    o->node = NEWN(o->arena, double *, o->g->nodes.n + 1);
    for (int i = 0; i < o->g->nodes.n; i++)
        if (o->g->nodes.at[i]->name)
            name_index_put(o->arena, &names, o->g->nodes.at[i]->name, i);
    for (int i = 0; i < o->plan->step.list.n; i++) {
        const struct step_part *part = &o->plan->step.list.at[i];
        int at = part->to ? -1 : name_index_find(&names, part->name);
        if (at >= 0)
            o->node[at] = part->seconds;
    }
}

void plan_overlap(struct arena *a, struct graph *g, struct plan *p, const struct machine *m)
{
    p->overlap_bytes = least_bytes(m, g->ranks);
    if (p->overlap_bytes == 0)
        return;
    struct overlapped o = {.arena = a, .g = g, .plan = p, .machine = m, .segments = row_segments_find(a, g)};
    find_node_seconds(&o);
    for (int w = 0; w < p->workloads.n; w++) {
        struct workload *load = &p->workloads.at[w];
        for (int i = 0; i < o.segments.list.n; i++)
            load->overlapped += segment_saves(&o, &o.segments.list.at[i], w);
        require(load->overlapped >= 0 && plan_step_seconds(load) >= 0);
        p->overlapped += load->weight * load->overlapped / cost_steps(p);
    }
}
