/* weight_inputs: weights that change from step to step (tpc-run --train). As inputs they are read where they lie at every run: nothing
 * folds, packs or copies them. Each is an input of the type that this rank has, so a shard is passed as it is. */
#include "ir/rank_meta.h"
#include "job/job.h"

#include <string.h>

static const char ending[] = ".grad";

/* The weight that an output is the gradient of; NULL: it is none. */
static struct value *weight_of(const struct graph *g, const char *output)
{
    size_t n = strlen(output), end = strlen(ending);
    if (n <= end || strcmp(output + n - end, ending) != 0)
        return NULL;
    struct value *v = graph_find(g, arena_strndup(g->arena, output, n - end));
    return v && v->constant ? v : NULL;
}

static void become_input(struct graph *g, struct value *v, int output)
{
    struct trained t = {v, output, v->constant};
    if (v->constant->dtype != DT_F32)
        fail("%s: weight '%s' is %s: only f32 is trained", graph_file(g), v->name, dtype_name(v->constant->dtype));
    v->constant = NULL;
    VEC_PUSH(g->arena, &g->inputs, v);
    VEC_PUSH(g->arena, &g->trained, t);
    if (g->rank_meta)
        rank_meta_set_value(g, RANK_INPUT, v->name, &v->type, placement_replicated);
}

void job_weights_as_inputs(struct graph *g)
{
    for (int i = 0; i < g->outputs.n; i++) {
        struct value *v = weight_of(g, g->outputs.at[i]->name);
        if (v)
            become_input(g, v, i);
    }
    if (!g->trained.n)
        fail("%s: has no gradients: 'tpc-shard MODEL.onnx --train --tp N -o DIR' makes a folder that can be trained", graph_file(g));
}
