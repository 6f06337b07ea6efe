/* emit: rank graphs become files. Ops that exist only inside are expanded, size operands are made again, and each graph is saved with
 * its weights streamed from the source tensors. Beside them: the source graph without weight bytes, and plan.json. The folder appears whole or not at all (src/plan/folder.c). */
#include "onnx/onnx.h"
#include "passes/pass.h"
#include "plan/plan.h"

#include <errno.h>
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
        graph_append(g, expand_operands(g, ranks, rank, peers_at(g->arena, lists, ranks, i)));
    graph_sort(g);
}

/* Behind a weight that is stored in another type, a Cast to the one that the graph computes in. */
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

/* From canonical form to the form of files, alike on all ranks. */
static void to_file_form(struct arena *a, struct graph **graphs, int ranks)
{
    struct node ***lists = NEWN(a, struct node **, ranks);
    int n = 0;
    for (int r = 0; r < ranks; r++) {
        widen_stored(graphs[r]);
        expand_nodes(graphs[r]);
        lists[r] = graphs[r]->nodes.at;
        if (r > 0 && graphs[r]->nodes.n != n)
            bug("rank %d has %d nodes, rank 0 has %d", r, graphs[r]->nodes.n, n);
        n = graphs[r]->nodes.n;
    }
    for (int r = 0; r < ranks; r++)
        make_operands(graphs, ranks, r, lists, n);
}

static void import_domain(struct graph *g, const char *domain, int version)
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
    import_domain(g, "", g->opset);
    for (int i = 0; i < g->nodes.n; i++)
        if (*g->nodes.at[i]->domain)
            import_domain(g, g->nodes.at[i]->domain, 1);
    if (g->ir_version < 10)
        g->ir_version = 10;
}

/* ---- metadata: what tpc-run needs to know about the whole ------------------------------------------------------------------------- */

static void note_value(struct graph *g, const char *kind, const struct value *global)
{
    graph_set_meta(g, arena_printf(g->arena, "tpc.%s.%s", kind, global->name),
                   arena_printf(g->arena, "%s|%s", type_str(g->arena, &global->type), placement_str(g->arena, global->place)));
}

static void note_symbols(struct graph *g, const struct dim *d)
{
    if (d->kind == DIM_SYM)
        graph_set_meta(g, arena_printf(g->arena, "tpc.dims.%s", d->name), arena_printf(g->arena, "%" PRId64, d->lo));
    for (int i = 0; i < d->n; i++)
        note_symbols(g, d->arg[i]);
}

static void note_assumptions(struct graph *g)
{
    const struct equation *eq;
    int n = alg_equations(g->alg, &eq);
    for (int i = 0; i < n; i++) {
        graph_set_meta(g, arena_printf(g->arena, "tpc.assume.%d", i),
                       arena_printf(g->arena, "%s == %s # %s", dim_str(g->arena, eq[i].left), dim_str(g->arena, eq[i].right), eq[i].why));
        note_symbols(g, eq[i].left);
        note_symbols(g, eq[i].right);
    }
}

static void note_ends(struct graph *g, const struct graph *global)
{
    for (int i = 0; i < global->inputs.n; i++) {
        note_value(g, "input", global->inputs.at[i]);
        for (int d = 0; d < global->inputs.at[i]->type.rank; d++)
            note_symbols(g, global->inputs.at[i]->type.dim[d]);
    }
    for (int i = 0; i < global->outputs.n; i++)
        note_value(g, "output", global->outputs.at[i]);
    for (int i = 0; i < global->states.n; i++) {
        const struct state *s = &global->states.at[i];
        graph_set_meta(g, arena_printf(g->arena, "tpc.state.%d", i),
                       arena_printf(g->arena, "%s|%s|%d%s%s", s->past ? s->past->name : "", s->present ? s->present->name : "", s->dim,
                                    s->from ? "|" : "", s->from ? s->from : ""));
    }
}

static void note_all(const struct compile *c, struct graph *g)
{
    graph_set_meta(g, "tpc.plan", c->plan->hash);
    graph_set_meta(g, "tpc.rank", arena_printf(g->arena, "%d", g->rank));
    graph_set_meta(g, "tpc.ranks", arena_printf(g->arena, "%d", g->ranks));
    note_assumptions(g);
    note_ends(g, c->graph);
}

/* ---- files -------------------------------------------------------------------------------------------------------------------------- */

struct stream { struct arena *tmp; int rank; };

/* A constant that was cut already, or that is whole, is taken as it is. */
static bool taken_whole(const struct value *v)
{
    for (int d = 0; d < v->constant->rank; d++)
        if (!dim_equals(v->type.dim[d], v->constant->dim[d]))
            return false;
    return true;
}

static int ranges_of(void *data, const struct value *v, const struct byte_range **out)
{
    struct stream *s = data;
    struct placement place = v->place.kind == PLACE_S && !taken_whole(v) ? v->place : placement_whole;
    return weight_ranges(s->tmp, v->constant, place, s->rank, out);
}

static void save_rank(const struct compile *c, struct graph *g, const char *dir, struct progress *progress)
{
    struct stream s = {arena_new(), g->rank};
    const struct save_options options = {
        .data_path = path_join(c->arena, dir, arena_printf(c->arena, "rank-%d.data", g->rank)),
        .ranges = ranges_of, .ranges_data = &s, .producer = "tpc", .progress = progress};
    note_all(c, g);
    set_versions(g);
    onnx_save(g, path_join(c->arena, dir, arena_printf(c->arena, "rank-%d.onnx", g->rank)), &options);
    arena_free(s.tmp);
}

static void save_ranks(const struct compile *c, const char *dir)
{
    struct progress progress;
    int64_t total = 0;
    for (int r = 0; r < c->graph->ranks; r++)
        total += c->plan->use[r].weights;
    progress_start(&progress, "writing weights", total);
    for (int r = 0; r < c->graph->ranks; r++)
        save_rank(c, c->rank_graphs[r], dir, &progress);
    progress_end(&progress);
}

static void save_source(const struct compile *c, const char *dir)
{
    struct graph *g = graph_copy(c->arena, c->source);
    const struct save_options options = {
        .data_path = path_join(c->arena, dir, "model.data"), .skip_data = true, .producer = "tpc"};
    to_file_form(c->arena, &g, 1);
    set_versions(g);
    onnx_save(g, path_join(c->arena, dir, "model.onnx"), &options);
}

static void save_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    bool good = f && fputs(text, f) >= 0;
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        fail("%s: cannot be written: %s", path, strerror(errno));
}

void pass_emit(struct compile *c)
{
    require(c->options && c->plan && c->source && c->rank_graphs);
    folder_check(c->options->out, c->options->force);
    char *json = plan_json(c->source, c->graph, c->rank_graphs, c->options, c->plan);
    c->plan->hash = arena_printf(c->arena, "%016" PRIx64, (uint64_t)XXH3_64bits(json, strlen(json)));
    to_file_form(c->arena, c->rank_graphs, c->graph->ranks);
    char *dir = folder_begin(c->arena, c->options->out);
    save_ranks(c, dir);
    save_source(c, dir);
    save_text(path_join(c->arena, dir, "plan.json"), json);
    folder_commit(c->arena, dir, c->options->out);
}
