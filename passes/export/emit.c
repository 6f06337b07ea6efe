/* emit: writes the rank graphs to files. It expands internal ops, makes size operands again, and saves each graph with its weights,
 * which it streams from the source tensors. The folder also gets the weight-stripped model, plan.json and manifest.json. It appears
 * complete or not at all (src/plan/folder/folder.c). */
#include "op/emit/emit.h"

#include "ir/rank_meta.h"
#include "onnx/onnx.h"
#include "op/analysis/analysis.h"
#include "op/op.h"
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

static struct node *const *peers_at(struct arena *a, struct node ***lists, int ranks, int i)
{
    struct node **peers = NEWN(a, struct node *, ranks);
    for (int r = 0; r < ranks; r++)
        peers[r] = lists[r][i];
    return peers;
}

static void make_operands(struct graph **graphs, int ranks, int rank, struct node ***lists, int n)
{
    struct graph *g = graphs[rank];
    g->nodes.at = NULL;
    g->nodes.n = g->nodes.cap = 0;
    for (int i = 0; i < n; i++)
        graph_append(g, size_operands_restore(g, ranks, rank, peers_at(g->arena, lists, ranks, i)));
    graph_sort(g);
}

/* Puts a Cast to the computed type behind each weight that is stored in another type. */
static void widen_stored(struct graph *g)
{
    int values = g->values.n;
    for (int i = 0; i < values; i++) {
        struct value *v = g->values.at[i];
        if (v->stored == DT_NONE)
            continue;
        struct value *wide = graph_value(g, arena_printf(g->arena, "%s/%s", v->name, dtype_name(v->type.dtype)), &v->type);
        graph_replace(g, v, wide, false);
        struct node *cast = graph_node(g, op_find("", "Cast"), arena_printf(g->arena, "%s/Cast", v->name), 1, &v, 1);
        attr_set_int(cast, "to", (int64_t)v->type.dtype);
        node_output(g, cast, 0, wide);
        graph_insert(g, 0, cast);
        wide->place = v->place;
        wide->placed = v->placed;
        v->type.dtype = v->stored;
    }
}

/* From the canonical form to the form of files. All ranks get the same nodes. */
static void to_file_form(struct arena *a, struct graph **graphs, int ranks)
{
    struct node ***lists = NEWN(a, struct node **, ranks);
    int n = 0;
    for (int r = 0; r < ranks; r++) {
        widen_stored(graphs[r]);
        expand_nodes(graphs[r], 0);
        lists[r] = graphs[r]->nodes.at;
        if (r > 0 && graphs[r]->nodes.n != n)
            bug("rank %d has %d nodes, rank 0 has %d", r, graphs[r]->nodes.n, n);
        n = graphs[r]->nodes.n;
    }
    for (int r = 0; r < ranks; r++)
        make_operands(graphs, ranks, r, lists, n);
}

/* Lists the all-reduces that compute the full size of a sharded input when no other input has it. No placement requires them. */
static void list_sizes(struct compile *c)
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

static void declare_opset(struct graph *g, const char *domain, int version)
{
    const char *text = arena_printf(g->arena, "%d", version);
    for (int i = 0; i < g->opsets.n; i++)
        if (strcmp(g->opsets.at[i].key, domain) == 0) {
            if (!*domain)
                g->opsets.at[i].text = text;
            return;
        }
    VEC_PUSH(g->arena, &g->opsets, ((struct meta){arena_strdup(g->arena, domain), text}));
}

static void set_versions(struct graph *g)
{
    declare_opset(g, "", g->opset);
    for (int i = 0; i < g->nodes.n; i++)
        if (*g->nodes.at[i]->domain)
            declare_opset(g, g->nodes.at[i]->domain, 1);
    if (g->ir_version < 10)
        g->ir_version = 10;
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------- */

struct emission {
    const struct compile *compile;
    const char *dir;
    struct manifest *manifest;
    struct written model; /* model.onnx */
};
struct stream {
    int rank;
    const struct emission *to;
};

/* True if the constant is the rank's shard: after cut_weights has cut it, or if the shard has all indices. Those are in ascending order,
 * so such a shard is the tensor itself. */
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
    return weight_ranges(tmp, v->constant, held_as(v), s->rank, out);
}

static void note_stored(void *data, const struct value *v, int64_t offset)
{
    struct stream *s = data;
    manifest_stored(s->to->manifest, v, held_as(v), s->rank, offset);
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
    const struct compile *c = e->compile;
    char *json = plan_json(c->source, c->graph, c->options, c->plan);
    c->plan->hash = arena_printf(c->arena, "%016" PRIx64, (uint64_t)XXH3_64bits(json, strlen(json)));
    manifest_wrote(e->manifest, "plan.json", out_write_text(path_join(c->arena, e->dir, "plan.json"), json));
    manifest_wrote(e->manifest, "model.onnx", e->model);
}

static void write_meta(const struct compile *c, struct graph *g)
{
    rank_meta_write(g, c->graph, c->plan->hash);
    rank_meta_copy_rows(g, c->source);
    op_note_inputs(c->arena, g, c->source);
    for (int i = 0; i < c->plan->workloads.n; i++)
        rank_meta_set_workload(g, c->graph, i + 1, &c->plan->workloads.at[i].dims);
    plan_note_partial_sums(g, c->graph);
    if (c->plan->overlap_bytes > 0)
        rank_meta_set_overlap(g, c->plan->overlap_bytes);
    if (c->options->machine.wire != WIRE_F32)
        rank_meta_set_wire(g, c->options->machine.wire);
}

/* Called for each rank file, in turn. The plan is written before the first: the metadata has its hash. */
static void after_weights(void *data, struct graph *g)
{
    const struct stream *s = data;
    if (!s->to->compile->plan->hash)
        write_plan(s->to);
    write_meta(s->to->compile, g);
}

static struct save_options rank_options(struct stream *s, struct progress *progress)
{
    const struct compile *c = s->to->compile;
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

static int64_t weights_of_all(const struct compile *c)
{
    int64_t total = 0;
    for (int r = 0; r < c->graph->ranks; r++)
        total += c->plan->use[r].weights;
    return total;
}

/* Writes all rank files. Rank 0 comes last: it takes the bytes that no other rank has. */
static void save_ranks(const struct emission *e)
{
    const struct compile *c = e->compile;
    int n = c->graph->ranks;
    struct graph **graphs = NEWN(c->arena, struct graph *, n);
    struct save_options *options = NEWN(c->arena, struct save_options, n);
    struct saved *saved = NEWN(c->arena, struct saved, n);
    const char **paths = NEWN(c->arena, const char *, n);
    struct progress progress;
    for (int i = 0; i < n; i++) {
        struct stream *s = NEW(c->arena, struct stream);
        *s = (struct stream){n - 1 - i, e};
        graphs[i] = c->rank_graphs[s->rank];
        options[i] = rank_options(s, &progress);
        paths[i] = path_join(c->arena, e->dir, rank_file_name(c, s->rank, "onnx"));
        set_versions(graphs[i]);
    }
    progress_start(&progress, "writing weights", weights_of_all(c));
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

void pass_emit(struct compile *c)
{
    require(c->options && c->plan && c->source && c->rank_graphs);
    folder_check(c->options->out, c->options->force);
    op_note_rows(c->source);
    to_file_form(c->arena, c->rank_graphs, c->graph->ranks);
    list_sizes(c);
    if (c->plan->missing.list.n)
        diag_tell("%s: tpc-run can't run this plan: it has no kernel for %s", c->model_path,
                  missing_kernels_text(c->arena, &c->plan->missing));
    struct folder_part *part = folder_begin(c->arena, c->options->out);
    const char *dir = part->path;
    struct emission e = {c, dir, new_manifest(c), save_source(c, path_join(c->arena, dir, "model.onnx"))};
    (void)folder_copy_texts(c->arena, c->model_path, dir);
    save_ranks(&e);
    out_write_text(path_join(c->arena, dir, "manifest.json"), manifest_json(e.manifest, c->plan->hash));
    map_check_unchanged();
    if (c->options->folder)
        folder_check_data(c->options->folder);
    folder_commit(c->arena, part);
}
