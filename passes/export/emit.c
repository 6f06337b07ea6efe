/* emit: writes the rank graphs to files. It expands them to standard ops and saves each graph with its weights, streamed from the source
 * tensors. The folder also gets the weight-stripped model, plan.json and manifest.json. It appears complete or not at all
 * (src/plan/folder/folder.c). */
#include "ir/rank_meta.h"
#include "onnx/onnx.h"
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "op/plugin/plugin.h"
#include "passes/pass.h"
#include "plan/apply/apply.h"
#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/plan.h"
#include "plan/report/report.h"

#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

/* ---- the graphs -------------------------------------------------------------------------------------------------------------- */

/* Lists the all-reduces that compute the full size of a sharded input when no other input has it. No placement requires them. */
static void list_sizes(const struct compile *c)
{
    const struct graph *g = c->rank_graphs[0];
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (!op_is_tpc(n, "AllReduce") || !attr_is_set(n, "extent_of"))
            continue;
        struct planned_collective k = {.kind = COLL_ALLREDUCE, .value = n->in[0], .axis = -1, .node = n};
        k.reason = "a size that ranks have in parts; tpc-run knows the full size and leaves this out";
        VEC_PUSH(c->arena, &c->plan->collectives, k);
    }
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------- */

/* One or more stages, each with the same number of ranks. */
struct emission {
    const struct compile *whole;
    int stages;
    const struct compile *stage;
    const char *dir;
    struct manifest *manifest;
    struct written model; /* model.onnx */
};
struct stream {
    int rank; /* over all stages */
    const struct emission *to;
};

static int stage_ranks(const struct emission *e)
{
    return e->stage[0].graph->ranks;
}

static int stage_number(const struct stream *s)
{
    return s->rank / stage_ranks(s->to);
}

static const struct compile *stage_at(const struct stream *s)
{
    return &s->to->stage[stage_number(s)];
}

/* True if the constant is the rank's shard: after cut_weights has cut it, or if the shard has all indices. Indices are ascending, so such a
 * shard is the tensor itself. */
static bool is_shard_itself(const struct value *v)
{
    for (int d = 0; d < v->constant->rank; d++)
        if (!dim_equals(v->type.dim[d], v->constant->dim[d]))
            return false;
    return true;
}

static struct placement held_as(const struct value *v)
{
    return v->place.kind == PLACE_S && !is_shard_itself(v) ? v->place : placement_replicated;
}

static int ranges_of(void *data, struct arena *tmp, const struct value *v, const struct byte_range **out)
{
    struct stream *s = data;
    return weight_ranges(tmp, v->constant, held_as(v), s->rank % stage_ranks(s->to), out);
}

static void note_stored(void *data, const struct value *v, int64_t offset)
{
    struct stream *s = data;
    manifest_stored(s->to->manifest, v, held_as(v), stage_number(s) * stage_ranks(s->to), s->rank, offset);
}

static void append_rest(void *data, struct out *out)
{
    struct stream *s = data;
    manifest_append_rest(s->to->manifest, out, onnx_data_offset);
}

static const char *rank_file_name(const struct compile *c, int rank, const char *kind)
{
    return arena_printf(c->arena, "rank-%d.%s", rank, kind);
}

/* The digest of the source, which the plan holds, is computed while the weights are written. */
static void write_plan(const struct emission *e)
{
    const struct compile *c = e->whole;
    char *json = c->stages.n ? plan_json_stages(c->source, c->options, c->stages.plan)
                             : plan_json(c->source, c->graph, c->options, c->plan);
    c->plan->hash = arena_printf(c->arena, "%016" PRIx64, (uint64_t)XXH3_64bits(json, strlen(json)));
    manifest_wrote(e->manifest, "plan.json", out_write_text(path_join(c->arena, e->dir, "plan.json"), json));
    manifest_wrote(e->manifest, "model.onnx", e->model);
}

static void write_meta(const struct stream *s, struct graph *g)
{
    const struct compile *whole = s->to->whole, *c = stage_at(s);
    rank_meta_write(g, c->graph, whole->plan->hash);
    if (s->to->stages > 1)
        stage_write_meta(g, whole->stages.plan, c->graph, stage_number(s));
    rank_meta_copy_rows(g, whole->source);
    op_note_inputs(c->arena, g, whole->source);
    for (int i = 0; i < c->plan->workloads.n; i++)
        rank_meta_set_workload(g, c->graph, i + 1, &c->plan->workloads.at[i].dims);
    plan_note_partial_sums(g, c->graph);
    plan_note_products(g, c->graph);
    if (c->plan->overlap_bytes > 0)
        rank_meta_set_overlap(g, c->plan->overlap_bytes);
    if (c->options->machine.wire != WIRE_F32)
        rank_meta_set_wire(g, c->options->machine.wire);
    const char *plugins = plugin_list(c->arena, whole->source);
    if (plugins)
        graph_set_meta(g, RANK_META_PLUGINS, plugins);
}

/* Called for each rank file, in turn. The plan is written before the first: the metadata has its hash. */
static void after_weights(void *data, struct graph *g)
{
    const struct stream *s = data;
    if (!s->to->whole->plan->hash)
        write_plan(s->to);
    write_meta(s, g);
}

static struct save_options rank_options(struct stream *s, struct progress *progress)
{
    const struct compile *c = stage_at(s);
    return (struct save_options){.data_path = path_join(c->arena, s->to->dir, rank_file_name(c, s->rank, "data")),
                                 .ranges = ranges_of,
                                 .stored = note_stored,
                                 .finish = s->rank == 0 ? append_rest : NULL,
                                 .late = after_weights,
                                 .data = s,
                                 .producer = "tpc",
                                 .planned = c->graph->values.n,
                                 .digests = true,
                                 .progress = progress};
}

static int64_t weights_of_all(const struct emission *e)
{
    int64_t total = 0;
    for (int k = 0; k < e->stages; k++)
        for (int r = 0; r < stage_ranks(e); r++)
            total += e->stage[k].plan->use[r].weights;
    return total;
}

/* Writes all rank files. Rank 0 comes last: it takes the bytes that no other rank has. */
static void save_ranks(const struct emission *e)
{
    const struct compile *c = e->whole;
    int n = e->stages * stage_ranks(e);
    struct graph **graphs = NEWN(c->arena, struct graph *, n);
    struct save_options *options = NEWN(c->arena, struct save_options, n);
    struct saved *saved = NEWN(c->arena, struct saved, n);
    const char **paths = NEWN(c->arena, const char *, n);
    struct progress progress;
    for (int i = 0; i < n; i++) {
        struct stream *s = NEW(c->arena, struct stream);
        *s = (struct stream){n - 1 - i, e};
        graphs[i] = stage_at(s)->rank_graphs[s->rank % stage_ranks(e)];
        options[i] = rank_options(s, &progress);
        paths[i] = path_join(c->arena, e->dir, rank_file_name(c, s->rank, "onnx"));
    }
    progress_start(&progress, "writing weights", weights_of_all(e));
    onnx_save(n, graphs, paths, options, saved);
    progress_end(&progress);
    for (int r = 0; r < n; r++) {
        manifest_wrote(e->manifest, rank_file_name(c, r, "onnx"), saved[n - 1 - r].graph);
        manifest_wrote(e->manifest, rank_file_name(c, r, "data"), saved[n - 1 - r].data);
    }
}

/* A text form is copied; an ONNX file loses its weights. */
static struct written save_source(const struct compile *c, const char *to)
{
    if (!c->text)
        return onnx_save_stripped(c->model_path, to);
    return out_write_text(to, c->text);
}

/* The manifest lists no source bytes for a text form or for converted weights: --merge can't restore these. */
static struct manifest *new_manifest(const struct compile *c)
{
    static const struct spans none;
    const struct folder *f = c->options->folder;
    const struct load_options load = {.need_data = true, .external_roots = c->external_roots};
    bool lost = c->text || weight_converted(c->options);
    return manifest_new(c->arena, lost ? none : f ? f->spans : onnx_spans(c->arena, c->model_path, &load));
}

static void make_files(const struct compile *c)
{
    require(c->rank_graphs && c->plan->use);
    file_form_make(c->arena, c->rank_graphs, c->graph->ranks);
    list_sizes(c);
    if (c->plan->missing.list.n)
        diag_tell("%s: tpc-run can't run this plan: it has no kernel for %s%s", c->model_path,
                  missing_kernels_text(c->arena, &c->plan->missing), missing_kernels_hint(&c->plan->missing));
}

static void emit_folder(struct compile *c, int stages, const struct compile *stage)
{
    require(c->options && c->plan && c->source);
    folder_check(c->options->out, c->options->force);
    op_note_rows(c->source);
    for (int k = 0; k < stages; k++)
        make_files(&stage[k]);
    struct folder_part *part = folder_begin(c->arena, c->options->out);
    const char *dir = part->path;
    struct emission e = {c, stages, stage, dir, new_manifest(c), save_source(c, path_join(c->arena, dir, "model.onnx"))};
    (void)folder_copy_texts(c->arena, c->model_path, dir);
    save_ranks(&e);
    out_write_text(path_join(c->arena, dir, "manifest.json"), manifest_json(e.manifest, c->plan->hash));
    map_check_unchanged();
    if (c->options->folder)
        folder_check_data(c->options->folder);
    folder_commit(c->arena, part);
}

void pass_emit(struct compile *c)
{
    emit_folder(c, 1, c);
}

void emit_stages(struct compile *c)
{
    emit_folder(c, c->stages.n, c->stages.at);
}
