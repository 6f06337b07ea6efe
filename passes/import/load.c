/* load: turns a model file into IR. The file may also hold the text form of a graph.
 *
 * It provides PROP_LOADED: attributes are decoded by the ops' rows, nodes have the opset that will be emitted, model functions are
 * inlined, and inputs of --bind are constants. Shape operands are still edges. src/onnx reads the files; a dry run needs no weight data. */
#include "ir/rank_meta.h"
#include "ir/text/text.h"
#include "onnx/onnx.h"
#include "op/canon/canon.h"
#include "op/op.h"
#include "op/plugin/plugin.h"
#include "passes/pass.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"

#include <string.h>

/* Checks the weight files that a text form names. Their paths are absolute or relative to the working directory. */
static void check_external_files(const struct compile *c)
{
    struct arena *tmp = arena_new();
    for (int i = 0; i < c->graph->values.n; i++) {
        const struct value *v = c->graph->values.at[i];
        const char *real = v->constant && v->constant->source.path ? path_real(tmp, v->constant->source.path) : NULL;
        if (real && !sandbox_is_beside(tmp, real, c->model_path) && !sandbox_allows(tmp, real, c->external_roots))
            fail("%s: tensor '%s' is in %s, outside the model's folder; --external-root DIR allows files of another folder", c->model_path,
                 v->name, real);
    }
    arena_free(tmp);
}

/* The value that --bind gives an input; else the value from the run's inputs. */
static const char *bound_value(void *compile, struct arena *arena, const char *input, bool tensor)
{
    const struct compile *c = compile;
    size_t n = strlen(input);
    for (int i = 0; c->fixed && i < c->fixed->list.n; i++)
        if (strncmp(c->fixed->list.at[i], input, n) == 0 && c->fixed->list.at[i][n] == '=')
            return c->fixed->list.at[i] + n + 1;
    return c->sizes.held ? c->sizes.held(c->sizes.data, arena, input, tensor) : NULL;
}

/* By --keep-input, the replayed plan, or the run's inputs. */
static bool is_given(void *compile, struct arena *arena, const char *input)
{
    const struct compile *c = compile;
    const struct options *o = c->options;
    const struct emitted *replayed = o && o->plan_file ? o->plan_file->emitted : NULL;
    if ((o && NAMED_AT(o->kept_inputs.text.at, o->kept_inputs.text.n, input) >= 0) ||
        (replayed && NAMED_AT(replayed->inputs.list.at, replayed->inputs.list.n, input) >= 0))
        return true;
    return c->sizes.given && c->sizes.given(c->sizes.data, arena, input);
}

static void check_kept(const struct compile *c)
{
    for (int i = 0; c->options && i < c->options->kept_inputs.text.n; i++) {
        const char *name = c->options->kept_inputs.text.at[i];
        bool found = false;
        for (int k = 0; k < c->graph->inputs.n; k++)
            found = found || strcmp(c->graph->inputs.at[k]->name, name) == 0;
        if (!found)
            fail("%s: --keep-input '%s': the model lists no such input", c->model_path, name);
    }
}

/* Loading has already bound some. */
static void bind_fixed(struct compile *c)
{
    bool *done = NEWN(c->arena, bool, c->fixed->list.n + 1);
    for (int i = 0; i < c->fixed->list.n; i++) {
        const char *text = c->fixed->list.at[i], *equal = strchr(text, '='), *bound = NULL;
        if (equal)
            bound = rank_meta_bind(c->graph, arena_strndup(c->arena, text, (size_t)(equal - text)));
        done[i] = bound && strcmp(bound, equal + 1) == 0;
    }
    for (int i = 0; i < c->fixed->list.n; i++)
        if (!done[i])
            op_bind_input(c->graph, c->fixed->list.at[i]);
}

/* Their kernels trust the pass that creates them. */
static void refuse_fused(const struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; n->op && k < node_bodies(n); k++)
            if (node_body(n, k)->graph)
                refuse_fused(node_body(n, k)->graph);
        if (n->op && (n->op->flags & OP_INTERNAL) && !n->op->expand)
            fail("%s: no file has this operator: tpc-run makes it when it loads a model", node_where(g, n));
    }
}

void pass_load(struct compile *c)
{
    struct folder *folder = c->options ? c->options->folder : NULL;
    struct load_options options = {.need_data = c->options && !c->options->dry_run,
                                   .external_roots = c->external_roots,
                                   .find = folder ? folder_find : NULL,
                                   .find_data = folder,
                                   .bound = bound_value,
                                   .given = is_given,
                                   .bound_data = c};
    require(c->model_path);
    struct alg *alg = alg_new(c->arena);
    c->text = graph_text(c->arena, c->model_path);
    c->graph = c->text ? graph_parse(c->arena, alg, c->text, c->model_path, op_find) : onnx_load(c->arena, alg, c->model_path, &options);
    if (!c->prints)
        refuse_fused(c->graph);
    c->graph->keeps_sums = c->lower.deterministic;
    rank_meta_read(c->graph);
    if (c->text && !c->graph->outputs.n)
        fail("%s: the graph has no outputs", c->model_path);
    if (c->text) {
        c->graph->properties = 0;
        check_external_files(c);
    }
    check_kept(c);
    if (c->options && plugin_first())
        plugin_check_nodes(c->graph);
    if (c->fixed)
        bind_fixed(c);
}
