/* parameters: the trained weights of this rank in a flat array; their gradients and moments, in arrays of the same order. Weights that the
 * file has as bf16 come first, and are kept twice: runs read bf16, the optimizer updates f32 (Micikevicius et al. 2018). So replicas can
 * divide them evenly, whatever the weights' sizes (ZeRO stage 1, Rajbhandari et al. 2020), in buckets that they exchange once these are
 * complete. */
#include "ir/rank_meta.h"
#include "kern/core/core.h"
#include "run/collective/collective.h"
#include "train/train.h"

#include <string.h>

enum { ALIGN = 16, PIECE = 1 << 16, BUCKETS = 8, SMALL_BUCKET = 1 << 14, LARGE_BUCKET = 1 << 22 };

struct range parameters_meet(struct range a, struct range b)
{
    return (struct range){a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
}

static void read_parameter(const struct graph *g, const struct session *s, int i, struct parameter *p)
{
    const struct trained *t = &g->trained.at[i];
    const struct type *full = session_output_type(s, t->output);
    int big = 0;
    *p = (struct parameter){.name = t->weight->name, .output = t->output, .rank = full->rank};
    while (g->inputs.at[p->input] != t->weight)
        p->input++;
    p->local = (struct tensor){.dtype = t->initial->dtype, .rank = t->initial->rank};
    memcpy(p->local.dim, t->initial->dim, sizeof p->local.dim);
    for (int d = 0; d < full->rank; d++) {
        if (!dim_is_int(full->dim[d], &p->dim[d]))
            fail("%s: weight '%s' has a size that is not known: %s", graph_file(g), p->name, type_str(g->arena, full));
        big += p->dim[d] > 1;
    }
    if (full->dtype != DT_F32 || full->rank != p->local.rank)
        fail("%s: weight '%s' has the gradient %s, expected one of its own type", graph_file(g), p->name, type_str(g->arena, full));
    p->count = tensor_elements(&p->local);
    p->decays = big > 1;
}

static void check_sizes(const struct graph *g, struct arena *a, const struct replicas *t, const struct session *s,
                        const struct parameter *p)
{
    const struct placement *place = session_output_placement(s, p->output);
    bool same = place->kind != PLACE_P && (place->kind == PLACE_R || place->split->ranks == t->process_group->size);
    for (int d = 0; same && d < p->rank; d++) {
        int64_t size = p->dim[d];
        if (place->kind == PLACE_S && place->dim == d) {
            struct intervals mine = intervals_of(a, place->split, t->process_group->rank, false, session_bindings(s));
            size = intervals_extent(&mine);
        }
        same = size == p->local.dim[d];
    }
    if (!same)
        fail("%s: weight '%s' is not placed as its gradient, %s", graph_file(g), p->name, placement_str(a, *place));
}

/* ---- pieces that count -------------------------------------------------------------------------------------------------------------- */

struct runs {
    struct arena *arena;
    struct range own;
    VEC(struct range) list;
};

/* Adds the part in this replica's own range, in pieces of limited size. */
static void add_run(struct runs *r, int64_t from, int64_t to)
{
    struct range x = parameters_meet((struct range){from, to}, r->own);
    for (; x.from < x.to; x.from += PIECE)
        VEC_PUSH(r->arena, &r->list, ((struct range){x.from, x.to - x.from < PIECE ? x.to : x.from + PIECE}));
}

/* For a split weight, the indices that no lower rank has; for a full one, all on the first rank. */
static void add_owned(struct runs *r, const struct replicas *t, const struct session *s, const struct parameter *p)
{
    const struct placement *place = session_output_placement(s, p->output);
    int rank = t->process_group->rank;
    if (place->kind == PLACE_R) {
        if (rank == 0)
            add_run(r, p->from, p->from + p->count);
        return;
    }
    struct intervals held = intervals_of(r->arena, place->split, rank, false, session_bindings(s)),
                     first = intervals_of(r->arena, place->split, rank, true, session_bindings(s)),
                     mine = intervals_local(r->arena, &first, &held);
    int64_t size = p->local.dim[place->dim], inner = 1;
    for (int d = place->dim + 1; d < p->rank; d++)
        inner *= p->local.dim[d];
    if (intervals_extent(&first) == size) {
        add_run(r, p->from, p->from + p->count);
        return;
    }
    for (int64_t at = p->from; at < p->from + p->count; at += size * inner)
        for (int k = 0; k < mine.n; k++)
            add_run(r, at + mine.at[k].lo * inner, at + mine.at[k].hi * inner);
}

/* ---- making them -------------------------------------------------------------------------------------------------------------------- */

/* How many elements replicas exchange at a time: few, so that the first bucket is complete soon, but enough for a message. */
static int64_t bucket_length(int64_t total)
{
    int64_t n = total / BUCKETS / ALIGN * ALIGN;
    return n < SMALL_BUCKET ? SMALL_BUCKET : n > LARGE_BUCKET ? LARGE_BUCKET : n;
}

/* Each replica owns a part of each bucket. */
static void cut_buckets(const struct replicas *t, struct parameters *p, struct range all, bool narrow)
{
    int64_t length = bucket_length(p->total);
    for (int64_t at = all.from; at < all.to; at += length) {
        int64_t n = all.to - at < length ? all.to - at : length;
        struct range part = {comm_share_start(n, t->count, t->index), comm_share_start(n, t->count, t->index + 1)};
        p->bucket[p->buckets++] = (struct bucket){{at, at + n}, {at + part.from, at + part.to}, p->own, narrow};
        p->own += part.to - part.from;
    }
}

/* The pieces of this replica's parts. */
static void find_pieces(struct arena *a, const struct replicas *t, const struct session *s, struct parameters *p)
{
    struct runs runs = {.arena = a};
    for (int k = 0; k < p->buckets; k++)
        for (int i = 0; i < p->n; i++) {
            struct range mine = parameters_meet(p->bucket[k].own, (struct range){p->at[i].from, p->at[i].from + p->at[i].count});
            runs.own = p->bucket[k].own;
            if (mine.from < mine.to)
                add_owned(&runs, t, s, &p->at[i]);
        }
    p->pieces = runs.list.n;
    p->piece = runs.list.at;
    p->partial = NEWN(a, double, p->pieces);
}

/* ---- of all stages ------------------------------------------------------------------------------------------------------------------ */

static int own_number(const struct parameters *p, const char *name)
{
    for (int i = 0; i < p->n; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return i;
    return -1;
}

static void add_own(struct arena *a, struct parameters *p)
{
    for (int i = 0; i < p->n; i++) {
        struct trained_weight w = {.name = p->at[i].name, .rank = p->at[i].rank, .own = i};
        memcpy(w.dim, p->at[i].dim, sizeof w.dim);
        VEC_PUSH(a, &p->all, w);
    }
}

/* Adds weights of all stages, whose gradients are outputs of the model. */
static void add_of_stages(struct arena *a, struct graph *g, struct parameters *p)
{
    struct rank_result r;
    for (int i = 0; rank_meta_result(g, i, &r); i++) {
        const char *name = job_weight_of_gradient(a, r.name);
        if (!name)
            continue;
        struct trained_weight w = {.name = name, .rank = r.type.rank, .stage = r.stage, .own = own_number(p, name)};
        for (int d = 0; d < w.rank; d++)
            if (!dim_is_int(r.type.dim[d], &w.dim[d]))
                fail("%s: weight '%s' has a size that is not known: %s", graph_file(g), name, type_str(a, &r.type));
        if ((w.own >= 0) != (w.stage == pipeline_number(p->pipeline)))
            fail("%s: its metadata says that stage %d trains '%s', and %s does", graph_file(g), w.stage, name,
                 w.own >= 0 ? "this one" : "no weight of it");
        VEC_PUSH(a, &p->all, w);
    }
}

/* Places the weights of one storage type after those already placed. */
static void place_all(const struct graph *g, struct parameters *p, bool narrow)
{
    for (int i = 0; i < p->n; i++) {
        if ((p->at[i].local.dtype == DT_BF16) != narrow)
            continue;
        p->at[i].from = p->total;
        if (!i64_add(p->total, (p->at[i].count + ALIGN - 1) / ALIGN * ALIGN, &p->total) || p->total / LARGE_BUCKET >= INT32_MAX)
            fail("%s: its weights are too large", graph_file(g));
    }
}

static void make_arrays(struct arena *a, const struct replicas *t, struct parameters *p)
{
    int64_t length = bucket_length(p->total);
    p->bucket = NEWN(a, struct bucket, p->narrow / length + (p->total - p->narrow) / length + 2);
    cut_buckets(t, p, (struct range){0, p->narrow}, true);
    p->rounded = NEWN(a, uint16_t, p->narrow);
    p->master = NEWN(a, float, p->own);
    cut_buckets(t, p, (struct range){p->narrow, p->total}, false);
    p->weight = NEWN(a, float, p->total - p->narrow);
    p->gradient = NEWN(a, float, p->total);
    p->into = NEWN(a, float *, p->n);
    p->moment[0] = NEWN(a, float, p->own);
    p->moment[1] = NEWN(a, float, p->own);
    for (int i = 0; i < p->n; i++) {
        struct parameter *x = &p->at[i];
        bool narrow = x->local.dtype == DT_BF16;
        x->local.data = narrow ? (void *)(p->rounded + x->from) : (void *)(p->weight + (x->from - p->narrow));
        p->into[i] = p->gradient + x->from;
    }
}

/* Reads the file's values to where the gradient will be. */
static void read_initial(const struct graph *g, int i, struct parameters *p)
{
    struct constant *initial = g->trained.at[i].initial;
    const struct parameter *x = &p->at[i];
    if (x->count)
        convert_to_f32(x->local.dtype, constant_data(initial, x->name), x->count, p->gradient + x->from);
    digest_check(initial, x->name, true);
    constant_release(initial);
}

struct parameters parameters_new(struct arena *a, const struct replicas *t, struct pipeline *pipeline, struct graph *g, struct session *s)
{
    struct parameters p = {.n = g->trained.n, .at = NEWN(a, struct parameter, g->trained.n), .pipeline = pipeline};
    for (int i = 0; i < p.n; i++) {
        read_parameter(g, s, i, &p.at[i]);
        check_sizes(g, a, t, s, &p.at[i]);
    }
    place_all(g, &p, true);
    p.narrow = p.total;
    place_all(g, &p, false);
    make_arrays(a, t, &p);
    for (int i = 0; i < p.n; i++)
        read_initial(g, i, &p);
    parameters_set(&p, p.gradient);
    find_pieces(a, t, s, &p);
    if (pipeline)
        add_of_stages(a, g, &p);
    else
        add_own(a, &p);
    return p;
}

int64_t parameters_bytes(const struct parameters *p)
{
    return p->narrow * (int64_t)sizeof *p->rounded + (p->total - p->narrow) * (int64_t)sizeof *p->weight;
}

static int64_t own_narrow(const struct parameters *p)
{
    int64_t n = 0;
    for (int k = 0; k < p->buckets; k++)
        n += p->bucket[k].narrow ? p->bucket[k].own.to - p->bucket[k].own.from : 0;
    return n;
}

int64_t parameters_state_bytes(const struct parameters *p)
{
    return (p->total + 2 * p->own + own_narrow(p)) * (int64_t)sizeof(float);
}

float *parameters_own(const struct parameters *p, const struct bucket *b)
{
    return b->narrow ? p->master + b->moment : p->weight + (b->own.from - p->narrow);
}

struct rounding {
    const float *from;
    uint16_t *to;
};

static void round_part(void *data, int64_t lo, int64_t hi)
{
    const struct rounding *r = data;
    convert_from_f32(DT_BF16, r->from + lo, hi - lo, r->to + lo);
}

void parameters_round(const struct parameters *p, const struct bucket *b, struct range r, struct kenv *env)
{
    struct rounding x = {parameters_own(p, b) + (r.from - b->own.from), p->rounded + r.from};
    if (b->narrow)
        kenv_parallel_for(env, r.to - r.from, 2, round_part, &x);
}

void parameters_set(struct parameters *p, const float *from)
{
    for (int k = 0; k < p->buckets; k++) {
        const struct bucket *b = &p->bucket[k];
        if (b->narrow)
            memcpy(parameters_own(p, b), from + b->own.from, (size_t)(b->own.to - b->own.from) * sizeof(float));
    }
    convert_from_f32(DT_BF16, from, p->narrow, p->rounded);
    memcpy(p->weight, from + p->narrow, (size_t)(p->total - p->narrow) * sizeof(float));
}

void parameters_take_shard(struct arena *a, const struct replicas *t, struct session *s, const struct parameter *p, const void *full,
                           float *shard)
{
    const struct placement *place = session_output_placement(s, p->output);
    if (place->kind == PLACE_R) {
        memcpy(shard, full, (size_t)p->count * sizeof *shard);
        return;
    }
    struct tensor global = {.dtype = DT_F32, .rank = p->rank, .data = (void *)(uintptr_t)full};
    memcpy(global.dim, p->dim, sizeof global.dim);
    struct intervals mine = intervals_of(a, place->split, t->process_group->rank, false, session_bindings(s));
    struct region r = region_of(a, &global, place->dim, &mine, -1, NULL);
    region_pack(&r, full, shard);
}
