/* stages: the external inputs and outputs of a run of a folder of stages: those of the model, on whichever rank. */
#include "ir/rank_meta.h"
#include "job/job.h"

#include <string.h>

static bool is_stage(const struct graph *g)
{
    return g->rank_meta && g->rank_meta->stages > 1;
}

int job_given_inputs(const struct graph *g)
{
    int n = graph_weight_inputs(g);
    while (is_stage(g) && n > 0 && rank_meta_sender(g, g->inputs.at[n - 1]->name) >= 0)
        n--;
    return n;
}

struct graph *job_model_ends(struct arena *a, struct graph *g)
{
    struct rank_result r;
    if (!is_stage(g))
        return g;
    struct graph *ends = graph_new(a, g->alg, g->name);
    ends->path = g->path;
    for (int i = 0; i < job_given_inputs(g); i++)
        VEC_PUSH(a, &ends->inputs, graph_value(ends, g->inputs.at[i]->name, &g->inputs.at[i]->type));
    for (int i = 0; rank_meta_result(g, i, &r); i++)
        graph_add_output(ends, graph_value(ends, r.name, &r.type));
    return ends;
}

/* An output of the model may also be an input. */
static struct tensor own_output(const struct graph *g, const char *name, const struct tensor *own)
{
    int i = graph_output_named(g, name);
    return i < 0 ? (struct tensor){0} : own[i];
}

struct tensor *job_model_outputs(struct arena *a, struct pipeline *p, struct graph *g, const struct tensor *own)
{
    struct rank_result r;
    int n = 0;
    while (rank_meta_result(g, n, &r))
        n++;
    struct tensor *out = NEWN(a, struct tensor, n + 1);
    for (int i = 0; rank_meta_result(g, i, &r); i++) {
        struct tensor mine = own_output(g, r.name, own);
        if (r.stage == g->rank_meta->stage && !mine.dtype)
            fail("%s: its metadata says that stage %d makes output '%s', and it has none of this name", graph_file(g), r.stage, r.name);
        out[i] = pipeline_to_first(p, a, r.name, r.stage, &mine);
    }
    return out;
}

void job_check_stages(const struct graph *g, const char *folder, const struct job_options *o)
{
    const char *other = o->load_state ? "--load-state"
        : o->save_state               ? "--save-state"
        : o->paths.text.n > 1         ? "other graphs"
        : o->generate && o->output    ? "--output of decoding"
        : o->profile                  ? "--profile"
        : o->trace                    ? "--trace"
        : o->write_shards             ? "--pieces"
        : o->dump                     ? "--dump-after"
                                      : NULL;
    for (int i = 0; i < o->input.text.n; i++)
        other = strstr(o->input.text.at[i], "{rank}") ? "{rank} in --input" : other;
    if (is_stage(g) && other)
        fail("%s is in %d stages (--pp), which do not go with %s yet", folder, g->rank_meta->stages, other);
}
