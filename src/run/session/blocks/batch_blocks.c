/* batch_blocks: consecutive steps that compute each batch index separately run block by block if their intermediate values would leave the
 * cache: a block runs through all of them before the next one starts. Values that only they read have memory for one block.
 *
 * Every block reads the weights again, so the sequence of steps ends where that costs more than it saves. */
#include "op/op.h"
#include "op/runtime/runtime.h"
#include "run/session/session.h"

#include <string.h>

/* How much of its recent results a core keeps in its cache. */
enum { CACHE_BYTES = 1 << 22 };

struct batch_run {
    int first, last;
    int64_t images, each; /* each: images per block */
};
struct batch_blocks {
    bool **sliced;              /* by step and operand: it has the batch dimension; NULL: not computed by image */
    int *made;                  /* by value id: its step; -1: none */
    VEC(struct batch_run) runs; /* of this plan */
    int *begins;                /* by step: the run that starts there; -1: none */
    int *within;                /* by item of the slab: the run that alone makes and reads it; -1: none */
    bool told;
};

/* ---- at load ------------------------------------------------------------------------------------------------------------------------ */

static bool *sliced_operands(struct session *s, const struct session_step *step)
{
    const unsigned not_by_image = OP_COLLECTIVE | OP_CONTROL | OP_DRAWS | OP_CAPACITY | OP_RECURS | OP_IN_PLACE;
    const struct node *n = step->node;
    if ((step->kind != STEP_KERNEL && step->kind != STEP_VIEW) || step->sum || step->units || n->op->flags & not_by_image || n->nout < 1 ||
        !n->out[0] || n->out[0]->type.rank < 1)
        return NULL;
    const struct rule *r = rule_of(s->graph, n);
    if (!r || !rule_cuts_anywhere(r, 0))
        return NULL;
    bool *sliced = NEWN(s->arena, bool, n->nin + 1), any = false;
    for (int k = 0; k < n->nin; k++) {
        int d = row_block_operand_dim(r, k, 0);
        if (d > 0 || (d == 0 && step->in_constant[k]))
            return NULL;
        sliced[k] = d == 0;
        any |= sliced[k];
    }
    return any ? sliced : NULL;
}

void batch_blocks_prepare(struct session *s)
{
    if (s->overlap || kenv_deterministic(s->env) || s->gradients.go != GRADIENTS_STAY || s->stage.pause < s->nstep)
        return;
    struct batch_blocks *b = s->blocks = NEW(s->arena, struct batch_blocks);
    b->sliced = NEWN(s->arena, bool *, s->nstep + 1);
    b->begins = NEWN(s->arena, int, s->nstep + 1);
    b->made = NEWN(s->arena, int, s->graph->values.n + 1);
    b->within = NEWN(s->arena, int, s->slab.life.nitem + 1);
    for (int i = 0; i < s->graph->values.n; i++)
        b->made[i] = -1;
    for (int i = 0; i < s->nstep; i++) {
        const struct node *n = s->step[i].node;
        b->sliced[i] = sliced_operands(s, &s->step[i]);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                b->made[n->out[k]->id] = i;
    }
}

/* ---- at every plan ------------------------------------------------------------------------------------------------------------------ */

static bool has_images(const struct tensor *t, int64_t images)
{
    return t->dtype != DT_NONE && t->rank > 0 && t->dim[0] == images && !t->room && !t->packed;
}

/* Whether the step can join the run that starts at `first`, with the sizes of this plan. */
static bool step_cuts(const struct session *s, int at, int first, int64_t images)
{
    const struct session_step *step = &s->step[at];
    const struct node *n = step->node;
    const bool *sliced = s->blocks->sliced[at];
    if (!sliced || step->dynamic)
        return false;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && !has_images(&s->tensor[n->out[k]->id], images))
            return false;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && (sliced[k] ? !has_images(&s->tensor[n->in[k]->id], images) : s->blocks->made[n->in[k]->id] >= first))
            return false;
    return true;
}

/* Bytes that a step reads and writes: per image, or without the batch. */
static int64_t step_bytes(const struct session *s, int at, bool with)
{
    const struct node *n = s->step[at].node;
    int64_t bytes = 0;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && s->blocks->sliced[at][k] == with)
            bytes += (int64_t)tensor_bytes(&s->tensor[n->in[k]->id]);
    for (int k = 0; with && k < n->nout; k++)
        if (n->out[k])
            bytes += (int64_t)tensor_bytes(&s->tensor[n->out[k]->id]);
    return bytes;
}

/* Bytes that a run from `first` saves from being written to and read from memory, of values that this step reads last. */
static int64_t bytes_kept(const struct session *s, int first, int at)
{
    const struct node *n = s->step[at].node;
    int64_t bytes = 0;
    for (int k = 0; k < n->nin; k++) {
        int item = n->in[k] ? s->slab.life.item[s->slab.life.root[n->in[k]->id]] : -1;
        int64_t size = item >= 0 ? (int64_t)tensor_bytes(&s->tensor[n->in[k]->id]) : 0;
        if (size > CACHE_BYTES && s->slab.found[item].first >= first && s->slab.found[item].last == at)
            bytes += 2 * size;
    }
    return bytes;
}

/* The run that starts at `first`; false: none pays off. */
static bool find_run(const struct session *s, int first, struct batch_run *run)
{
    const struct node *n = s->step[first].node;
    if (!s->blocks->sliced[first] || s->step[first].kind != STEP_KERNEL)
        return false;
    int64_t images = s->tensor[n->out[0]->id].dim[0], bytes;
    if (images < 2 || !step_cuts(s, first, first, images) || (bytes = step_bytes(s, first, true)) <= CACHE_BYTES)
        return false;
    int64_t each = (int64_t)CACHE_BYTES * kenv_threads(s->env) / (bytes / images + 1), best = 0, saved = 0;
    *run = (struct batch_run){first, first, images, each < 1 ? 1 : each};
    int64_t again = (images + run->each - 1) / run->each - 1;
    for (int i = first; again > 0 && i < s->nstep && step_cuts(s, i, first, images); i++) {
        saved += bytes_kept(s, first, i) - again * step_bytes(s, i, false);
        if (saved > best) {
            best = saved;
            run->last = i;
        }
    }
    return best > 0;
}

/* Operands of a run, and results that others read, live throughout it. */
static void live_through(struct session *s, int number)
{
    const struct batch_run *run = &s->blocks->runs.at[number];
    for (int i = 0; i < s->slab.life.nitem; i++) {
        struct slab_item *item = &s->slab.life.items[i];
        if (item->first >= run->first && item->last <= run->last)
            s->blocks->within[i] = number;
        else
            lifetime_stretch(item, run->first, run->last);
    }
}

static void forget_runs(struct session *s)
{
    struct batch_blocks *b = s->blocks;
    b->runs.n = 0;
    for (int i = 0; i < s->nstep; i++)
        b->begins[i] = -1;
    for (int i = 0; i < s->slab.life.nitem; i++)
        b->within[i] = -1;
}

bool batch_blocks_plan(struct session *s)
{
    struct batch_blocks *b = s->blocks;
    struct batch_run run;
    int before = b ? b->runs.n : 0;
    if (!b)
        return false;
    forget_runs(s);
    for (int i = 0; i < s->nstep; i++) {
        if (!find_run(s, i, &run))
            continue;
        b->begins[i] = b->runs.n;
        VEC_PUSH(s->arena, &b->runs, run);
        live_through(s, b->runs.n - 1);
        i = run.last;
    }
    if (b->runs.n && !b->told && s->comm->rank == 0)
        explain("%s: %d chains of operators take the batch in blocks", s->sig.path, b->runs.n);
    b->told |= b->runs.n > 0;
    return b->runs.n || before;
}

int64_t batch_blocks_bytes(const struct session *s, int item, int64_t bytes)
{
    int number = s->blocks ? s->blocks->within[item] : -1;
    const struct batch_run *run = number >= 0 ? &s->blocks->runs.at[number] : NULL;
    return run ? bytes / run->images * run->each : bytes;
}

/* ---- running ------------------------------------------------------------------------------------------------------------------------ */

/* A value inside the run has memory for one block, in which each block is written. */
static struct tensor block_of(const struct session *s, const struct value *v, const struct batch_run *run, int64_t from)
{
    int item = s->slab.life.item[s->slab.life.root[v->id]];
    int64_t n = run->each < run->images - from ? run->each : run->images - from;
    if (item >= 0 && s->blocks->within[item] >= 0)
        from = 0;
    return row_block_of(&s->tensor[v->id], 0, (struct row_range){from, from + n, run->images});
}

static void run_block(struct session *s, int at, const struct batch_run *run, int64_t from)
{
    struct session_step *step = &s->step[at];
    const struct node *n = step->node;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k])
            step->in[k] = s->blocks->sliced[at][k] ? block_of(s, n->in[k], run, from) : s->tensor[n->in[k]->id];
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            step->out[k] = block_of(s, n->out[k], run, from);
    session_run_kernel(s, step);
}

int batch_blocks_run(struct session *s, int first, double began)
{
    int number = s->blocks ? s->blocks->begins[first] : -1;
    if (number < 0)
        return 0;
    const struct batch_run *run = &s->blocks->runs.at[number];
    row_blocks_point_views(s, first, run->last);
    for (int64_t from = 0; from < run->images; from += run->each)
        for (int i = first; i <= run->last; i++) {
            double start = s->profile ? clock_seconds() : 0;
            if (s->step[i].kind == STEP_KERNEL)
                run_block(s, i, run, from);
            if (s->profile)
                profile_part(s, i, began, start, from == 0);
        }
    return run->last + 1 - first;
}
