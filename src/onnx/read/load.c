/* A model file to the IR: the graph's inputs, constants, nodes and outputs; names and versions of what it uses.
 *
 * Declared shapes of outputs and intermediate values are ignored, except for results of ops without a row, which have no other type.
 * Dimensions of inputs are the only source of symbols; a dim_param may be an expression. */
#include "onnx/read/read.h"

#include <string.h>

/* ---- the parts of the graph ---- */

static void load_initializers(struct import *im, struct scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (!t->name || !*t->name)
            fail("%s: initializer %zu has no name", im->path, i);
        const char *what = arena_printf(im->tmp, "initializer '%s'", t->name);
        struct value *value = scope_define(im, scope, t->name, what);
        import_constant(im, value, tensor_constant(im, t, what));
    }
    if (g->n_sparse_initializer)
        fail("%s: the graph has a sparse initializer, which tpc does not handle", im->path);
}

static void load_inputs(struct import *im, struct scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__ValueInfoProto *info = g->input[i];
        if (!info->name || !*info->name)
            fail("%s: graph input %zu has no name", im->path, i);
        struct value *known = scope_find(scope, info->name);
        if (known && known->constant)
            continue;
        if (sequence_is_type(info->type)) {
            sequence_enter(im, scope, info);
            continue;
        }
        struct value *value = scope_define(im, scope, info->name, arena_printf(im->tmp, "graph input '%s'", info->name));
        if (!declared_type(im, info, &value->type))
            fail("%s: graph input '%s' is %s, expected a tensor with its dimensions", im->path, info->name, declared_kind(info->type));
        VEC_PUSH(im->arena, &im->graph->inputs, value);
    }
}

/* Before the nodes: outputs keep their names whatever inlining makes. */
static void load_outputs(struct import *im, struct scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    struct text_table *seen = NULL;
    for (size_t i = 0; i < g->n_output; i++) {
        const Onnx__ValueInfoProto *info = g->output[i];
        if (!info->name || !*info->name)
            fail("%s: graph output %zu has no name", im->path, i);
        if (text_table_find(seen, info->name))
            fail("%s: graph output '%s' is listed twice", im->path, info->name);
        if (!sequence_is_type(info->type))
            declared_check_tensor(im, info, "the list of graph outputs");
        text_table_add(im->tmp, &seen, info->name, info);
        graph_add_output(im->graph, scope_read(im, scope, info->name, "the list of graph outputs"));
    }
    if (!g->n_output)
        fail("%s: the graph has no outputs", im->path);
}

static void collect_declared(struct import *im)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_value_info + g->n_output; i++) {
        const Onnx__ValueInfoProto *info = i < g->n_value_info ? g->value_info[i] : g->output[i - g->n_value_info];
        if (info->name && !text_table_find(im->declared, info->name))
            text_table_add(im->tmp, &im->declared, info->name, info);
    }
}

static void load_versions(struct import *im, const struct scope *scope)
{
    struct graph *g = im->graph;
    int opset = scope_imports(im, "") ? scope_opset(im, scope, "", "the graph") : FORM_OPSET;
    g->opset = opset > FORM_OPSET ? opset : FORM_OPSET;
    g->ir_version = im->model->has_ir_version ? im->model->ir_version : 0;
    for (size_t i = 0; i < im->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = im->model->opset_import[i];
        struct meta item = {arena_strdup(im->arena, proto_domain(o->domain)), arena_printf(im->arena, "%lld", (long long)o->version)};
        VEC_PUSH(im->arena, &g->opsets, item);
    }
}

static void load_metadata(struct import *im)
{
    for (size_t i = 0; i < im->model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *p = im->model->metadata_props[i];
        if (p->key)
            graph_set_meta(im->graph, arena_strdup(im->arena, p->key), arena_strdup(im->arena, proto_text_or(p->value, "")));
    }
}

static void load_graph(struct import *im)
{
    struct scope scope = {.prefix = "", .nopset = im->model->n_opset_import, .opset = im->model->opset_import, .graph = im->graph};
    load_versions(im, &scope);
    load_metadata(im);
    read_configurations(im);
    inline_collect(im);
    collect_declared(im);
    load_initializers(im, &scope);
    load_inputs(im, &scope);
    load_outputs(im, &scope);
    for (size_t i = 0; i < im->model->graph->n_node; i++)
        read_node(im, &scope, im->model->graph->node[i]);
    sequence_leave(im);
    scope_close(im, &scope);
    graph_sort(im->graph);
}

/* ---- the file ---- */

/* Its head: 8 bytes with the length of the JSON that follows. */
static void refuse_safetensors(const char *path, struct map file)
{
    uint64_t length = 0;
    for (size_t i = 0; file.bytes > 8 && i < 8; i++)
        length |= (uint64_t)file.at[i] << 8 * i;
    if (length > 0 && length <= file.bytes - 8 && file.at[8] == '{')
        fail("%s: holds weights in safetensors, no graph: 'optimum-cli export onnx --model FOLDER OUT' makes an ONNX model of both", path);
}

static const Onnx__ModelProto *read_model(struct arena *tmp, const char *path, bool *stripped)
{
    struct wire_index index = {.stripped = false};
    struct map file = map_file(path);
    refuse_safetensors(path, file);
    wire_check(tmp, path, MODEL_FILE, file, &onnx__model_proto__descriptor, &index);
    const Onnx__ModelProto *model = wire_unpack(tmp, path, MODEL_FILE, strip_weights(tmp, file, &index), &onnx__model_proto__descriptor);
    map_close(file);
    if (!model->graph)
        fail("%s: not %s: it holds no graph", path, MODEL_FILE);
    *stripped = index.stripped;
    return model;
}

struct graph *onnx_load(struct arena *arena, struct alg *alg, const char *path, const struct load_options *options)
{
    struct import im = {.arena = arena, .tmp = arena_new(), .alg = alg, .node = read_node};
    bool stripped;
    im.model = read_model(im.tmp, path, &stripped);
    struct graph *g = graph_new(arena, alg, arena_strdup(arena, proto_text_or(im.model->graph->name, "graph")));
    g->path = arena_strdup(arena, path);
    im.graph = g;
    im.path = g->path;
    im.external = (struct external_files){.arena = arena, .tmp = im.tmp, .path = g->path, .options = options, .stripped = stripped};
    load_graph(&im);
    arena_free(im.tmp);
    return g;
}
