/* weight_inputs: weights that change between steps (tpc-run --train). As inputs they are read in place in every run: nothing folds, packs
 * or copies them. Each is an input of this rank's local type, so a shard is passed directly. */
#include "ir/rank_meta.h"
#include "job/job.h"

#include <stdlib.h>
#include <string.h>

static const char ending[] = ".grad";

const char *job_weight_of_gradient(struct arena *a, const char *output)
{
    size_t n = strlen(output), end = strlen(ending);
    return n <= end || strcmp(output + n - end, ending) != 0 ? NULL : arena_strndup(a, output, n - end);
}

/* The weight whose gradient an output is; NULL: none. */
static struct value *weight_of(const struct graph *g, const char *output)
{
    const char *name = job_weight_of_gradient(g->arena, output);
    struct value *v = name ? graph_find(g, name) : NULL;
    return v && v->constant ? v : NULL;
}

static struct constant *become_input(struct graph *g, struct value *v)
{
    struct constant *initial = v->constant;
    if (initial->dtype != DT_F32 && initial->dtype != DT_BF16)
        fail("%s: weight '%s' is %s: only f32 and bf16 are trained", graph_file(g), v->name, dtype_name(initial->dtype));
    v->constant = NULL;
    VEC_PUSH(g->arena, &g->inputs, v);
    if (g->rank_meta)
        rank_meta_set_value(g, RANK_INPUT, v->name, &v->type, placement_replicated);
    return initial;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct followed *)a)->weight->name, ((const struct followed *)b)->weight->name);
}

/* Weights that other stages train, in the order of names. */
static void follow(struct graph *g)
{
    for (int i = 0; i < g->values.n; i++) {
        struct followed f = {.weight = g->values.at[i], .stage = rank_meta_sender(g, g->values.at[i]->name)};
        if (!f.weight->constant || f.stage < 0)
            continue;
        if (f.stage == g->rank_meta->stage || !rank_meta_value(g, RANK_INPUT, f.weight->name, &f.type, &f.place))
            fail("%s: metadata of weight '%s' does not say how it is placed, or which other stage trains it", graph_file(g),
                 f.weight->name);
        if (f.type.rank != f.weight->type.rank || f.type.dtype != f.weight->type.dtype || f.place.kind == PLACE_P)
            fail("%s: metadata of weight '%s' says %s, the graph %s", graph_file(g), f.weight->name, type_str(g->arena, &f.type),
                 type_str(g->arena, &f.weight->type));
        f.initial = become_input(g, f.weight);
        VEC_PUSH(g->arena, &g->followed, f);
    }
    if (g->followed.n)
        qsort(g->followed.at, (size_t)g->followed.n, sizeof *g->followed.at, by_name);
}

/* Whether another stage has gradients. */
static bool trains_elsewhere(struct graph *g)
{
    struct rank_result r;
    for (int i = 0; g->rank_meta && rank_meta_result(g, i, &r); i++)
        if (job_weight_of_gradient(g->arena, r.name))
            return true;
    return false;
}

void job_weights_as_inputs(struct graph *g)
{
    for (int i = 0; i < g->outputs.n; i++) {
        struct value *v = weight_of(g, g->outputs.at[i]->name);
        if (v)
            VEC_PUSH(g->arena, &g->trained, ((struct trained){v, i, become_input(g, v)}));
    }
    if (g->rank_meta)
        follow(g);
    if (!g->trained.n && !trains_elsewhere(g))
        fail("%s: has no gradients: 'tpc-shard MODEL.onnx --train --tp N -o DIR' makes a folder that can be trained", graph_file(g));
}
