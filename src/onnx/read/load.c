/* A model file to the IR: the graph's inputs, constants, nodes and outputs; names and versions of what it uses.
 *
 * Declared shapes of outputs and intermediate values are not read, except as the only type there is for results of ops without a
 * row. Dimensions of inputs are the only source of symbols; a dim_param may be an expression. */
#include "onnx/private.h"

#include <string.h>

/* ---- small things shared by this folder ---- */

const char *text_or(const char *text, const char *otherwise)
{
    return text ? text : otherwise;
}

const char *plain_domain(const char *domain)
{
    return !domain || !strcmp(domain, "ai.onnx") ? "" : domain;
}

const void *keyed_find(const struct text_key *table, const char *text)
{
    struct text_key *found = NULL;
    HASH_FIND_STR(table, text, found);
    return found ? found->item : NULL;
}

void keyed_add(struct arena *arena, struct text_key **table, const char *text, const void *item)
{
    struct arena *hash_arena = arena;
    struct text_key *entry = NEW(arena, struct text_key);
    entry->text = text;
    entry->item = item;
    HASH_ADD_KEYPTR(hh, *table, entry->text, strlen(entry->text), entry);
}

/* ---- declared types ---- */

/* A '-' or '/' between letters is part of a name ("batch-size"), not arithmetic. */
static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_hyphenated(const char *text)
{
    for (const char *at = text; *at; at++)
        if (at > text && strchr("-/.", *at) && is_word(at[-1]) && is_word(at[1]))
            return true;
    return false;
}

const struct dim *dim_param_parse(struct alg *alg, const char *text)
{
    const char *error = NULL;
    const struct dim *dim = is_hyphenated(text) ? NULL : dim_parse(alg, text, 1, &error);
    return dim ? dim : dim_sym(alg, text, 1);
}

static const struct dim *declared_dim(struct import *im, const Onnx__TensorShapeProto__Dimension *d, const char *name, size_t axis)
{
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE) {
        if (d->dim_value < 0)
            fail("%s: '%s' has dimension %zu of size %lld, expected 0 or more", im->path, name, axis, (long long)d->dim_value);
        return dim_int(im->alg, d->dim_value);
    }
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM && d->dim_param && *d->dim_param)
        return dim_param_parse(im->alg, d->dim_param);
    return dim_sym(im->alg, arena_printf(im->arena, "%s_%zu", name, axis), 1);
}

bool declared_type(struct import *im, const Onnx__ValueInfoProto *info, struct type *out)
{
    const Onnx__TypeProto *type = info->type;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type->shape)
        return false;
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    const char *name = text_or(info->name, "");
    if (shape->n_dim > MAX_RANK)
        fail("%s: '%s' has %zu dimensions, at most %d are handled", im->path, name, shape->n_dim, MAX_RANK);
    *out = (struct type){.dtype = (enum dtype)type->tensor_type->elem_type, .rank = (int)shape->n_dim};
    if (!dtype_size(out->dtype) && !dtype_is_packed(out->dtype))
        fail("%s: '%s' has data type %s, which tpc does not handle", im->path, name, data_type_text(im->tmp, type->tensor_type->elem_type));
    for (size_t i = 0; i < shape->n_dim; i++)
        out->dim[i] = declared_dim(im, shape->dim[i], name, i);
    return true;
}

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

static const char *kind_of(const Onnx__TypeProto *type)
{
    switch (type ? (int)type->value_case : 0) {
    case ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE: return "a tensor of unknown rank";
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE: return "a sequence";
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE: return "a map";
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE: return "an optional";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE: return "a sparse tensor";
    default: return "of no known type";
    }
}

void check_tensor_type(const struct import *im, const Onnx__ValueInfoProto *info, const char *where)
{
    int kind = info->type ? (int)info->type->value_case : 0;
    if (kind && kind != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        fail("%s: %s: '%s' is %s, expected a tensor", im->path, where, text_or(info->name, ""), kind_of(info->type));
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
        struct value *value = scope_define(im, scope, info->name, arena_printf(im->tmp, "graph input '%s'", info->name));
        if (!declared_type(im, info, &value->type))
            fail("%s: graph input '%s' is %s, expected a tensor with its dimensions", im->path, info->name, kind_of(info->type));
        VEC_PUSH(im->arena, &im->graph->inputs, value);
    }
}

/* Before the nodes: outputs keep their names whatever inlining makes. */
static void load_outputs(struct import *im, struct scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    struct text_key *seen = NULL;
    for (size_t i = 0; i < g->n_output; i++) {
        const Onnx__ValueInfoProto *info = g->output[i];
        if (!info->name || !*info->name)
            fail("%s: graph output %zu has no name", im->path, i);
        if (keyed_find(seen, info->name))
            fail("%s: graph output '%s' is listed twice", im->path, info->name);
        keyed_add(im->tmp, &seen, info->name, info);
        VEC_PUSH(im->arena, &im->graph->outputs, scope_read(im, scope, info->name, "the list of graph outputs"));
    }
    if (!g->n_output)
        fail("%s: the graph has no outputs", im->path);
}

static void collect_declared(struct import *im)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_value_info + g->n_output; i++) {
        const Onnx__ValueInfoProto *info = i < g->n_value_info ? g->value_info[i] : g->output[i - g->n_value_info];
        if (info->name && !keyed_find(im->declared, info->name))
            keyed_add(im->tmp, &im->declared, info->name, info);
    }
}

static void load_versions(struct import *im, const struct scope *scope)
{
    struct graph *g = im->graph;
    int opset = scope_opset(im, scope, "", "the graph");
    g->opset = opset > FORM_OPSET ? opset : FORM_OPSET;
    g->ir_version = im->model->has_ir_version ? im->model->ir_version : 0;
    for (size_t i = 0; i < im->model->n_opset_import; i++) {
        const Onnx__OperatorSetIdProto *o = im->model->opset_import[i];
        struct meta item = {arena_strdup(im->arena, plain_domain(o->domain)), arena_printf(im->arena, "%lld", (long long)o->version)};
        VEC_PUSH(im->arena, &g->opsets, item);
    }
}

static void load_metadata(struct import *im)
{
    for (size_t i = 0; i < im->model->n_metadata_props; i++) {
        const Onnx__StringStringEntryProto *p = im->model->metadata_props[i];
        if (p->key)
            graph_set_meta(im->graph, arena_strdup(im->arena, p->key), arena_strdup(im->arena, text_or(p->value, "")));
    }
}

static void load_graph(struct import *im)
{
    struct scope scope = {.prefix = "", .nopset = im->model->n_opset_import, .opset = im->model->opset_import, .graph = im->graph};
    load_versions(im, &scope);
    load_metadata(im);
    import_configurations(im);
    collect_functions(im);
    collect_declared(im);
    load_initializers(im, &scope);
    load_inputs(im, &scope);
    load_outputs(im, &scope);
    for (size_t i = 0; i < im->model->graph->n_node; i++)
        import_node(im, &scope, im->model->graph->node[i]);
    scope_close(im, &scope);
    graph_sort(im->graph);
}

/* ---- the file ---- */

static const Onnx__ModelProto *read_model(struct arena *tmp, const char *path, bool *light)
{
    struct wire_index index = {.light = false};
    struct map file = map_file(path);
    wire_check(tmp, path, MODEL_FILE, file, &onnx__model_proto__descriptor, &index);
    const Onnx__ModelProto *model = wire_unpack(tmp, path, MODEL_FILE, light_model(tmp, file, &index), &onnx__model_proto__descriptor);
    unmap(file);
    if (!model->graph)
        fail("%s: not %s: it holds no graph", path, MODEL_FILE);
    *light = index.light;
    return model;
}

struct graph *onnx_load(struct arena *arena, struct alg *alg, const char *path, const struct load_options *options)
{
    struct import im = {.arena = arena, .tmp = arena_new(), .alg = alg, .options = options};
    im.model = read_model(im.tmp, path, &im.light);
    struct graph *g = graph_new(arena, alg, arena_strdup(arena, text_or(im.model->graph->name, "graph")));
    g->path = arena_strdup(arena, path);
    im.graph = g;
    im.path = g->path;
    load_graph(&im);
    arena_free(im.tmp);
    return g;
}
