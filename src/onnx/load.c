/* A model file to the IR: the graph's inputs, constants, nodes and outputs; names and versions of the domains it uses.
 *
 * Declared shapes of outputs and intermediate values are ignored, except for results of ops without a row, which have no other type.
 * Dimensions of inputs are the only source of symbols; a dim_param may be an expression. */
#include "ir/rank_meta.h"
#include "onnx/compose/compose.h"
#include "onnx/upgrade/upgrade.h"
#include "op/op.h"

#include <string.h>

/* ---- a node: attribute references of function bodies are resolved, functions inlined, old and composed forms rewritten ---- */

static Onnx__AttributeProto *argument(const struct name_scope *scope, const char *name)
{
    for (size_t i = 0; i < scope->nargument; i++)
        if (strcmp(proto_text_or(scope->argument[i]->name, ""), name) == 0)
            return scope->argument[i];
    return NULL;
}

static bool is_parameter(const Onnx__FunctionProto *f, const char *name)
{
    if (NAMED_AT(f->attribute, f->n_attribute, name) >= 0)
        return true;
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (strcmp(proto_text_or(f->attribute_proto[i]->name, ""), name) == 0)
            return true;
    return false;
}

/* The attribute a reference stands for, under its own name; NULL: the call leaves it out. */
static Onnx__AttributeProto *resolve(struct import *im, const struct name_scope *scope, const Onnx__NodeProto *node,
                                     Onnx__AttributeProto *a)
{
    if (!a->ref_attr_name || !*a->ref_attr_name)
        return a;
    if (!scope->function || !is_parameter(scope->function, a->ref_attr_name))
        fail("%s: %s refers to attribute '%s', which its function does not have", im->path, proto_node_label(im->tmp, node),
             a->ref_attr_name);
    const Onnx__AttributeProto *given = argument(scope, a->ref_attr_name);
    if (!given)
        return NULL;
    Onnx__AttributeProto *copy = NEW(im->tmp, Onnx__AttributeProto);
    *copy = *given;
    copy->name = a->name;
    copy->ref_attr_name = NULL;
    return copy;
}

/* A shallow copy whose attributes hold no reference. */
static Onnx__NodeProto *resolve_attributes(struct import *im, const struct name_scope *scope, const Onnx__NodeProto *node)
{
    Onnx__NodeProto *copy = NEW(im->tmp, Onnx__NodeProto);
    *copy = *node;
    copy->attribute = NEWN(im->tmp, Onnx__AttributeProto *, node->n_attribute + 1);
    copy->n_attribute = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        Onnx__AttributeProto *a = resolve(im, scope, node, node->attribute[i]);
        if (a)
            copy->attribute[copy->n_attribute++] = a;
    }
    return copy;
}

/* An operand that a call omits is absent in the body of its function, too. */
static void drop_absent(struct import *im, const struct name_scope *scope, Onnx__NodeProto *node)
{
    char **in = NEWN(im->tmp, char *, node->n_input + 1);
    for (size_t i = 0; i < node->n_input; i++)
        in[i] = *node->input[i] && name_scope_lacks(scope, node->input[i]) ? arena_strdup(im->tmp, "") : node->input[i];
    node->input = in;
}

/* Names that begin with a control character are reserved for tpc. */
static void check_names(struct import *im, const Onnx__NodeProto *node, size_t n, char **list)
{
    for (size_t i = 0; i < n && node != im->own; i++)
        if (*list[i] && (unsigned char)*list[i] < ' ')
            fail("%s: a node (%s) has an operand or result whose name begins with a control character", im->path, node->op_type);
}

static void load_node(struct import *im, struct name_scope *scope, const Onnx__NodeProto *from)
{
    if (!from->op_type || !*from->op_type)
        fail("%s: %s has no op_type", im->path, proto_node_label(im->tmp, from));
    if (scope->function && ++im->inlined > MAX_INLINED)
        fail("%s: its functions have more than %d nodes when inlined", im->path, MAX_INLINED);
    check_names(im, from, from->n_input, from->input);
    check_names(im, from, from->n_output, from->output);
    if (!scope->caller && !scope->outer)
        read_shardings(im, from);
    const char *domain = proto_domain(from->domain);
    const Onnx__FunctionProto *function = op_find(domain, from->op_type) ? NULL : inline_find(im, from);
    Onnx__NodeProto *node = resolve_attributes(im, scope, from);
    drop_absent(im, scope, node);
    if (function) {
        inline_call(im, scope, node, function);
        return;
    }
    int opset = name_scope_opset(im, scope, domain, proto_node_label(im->tmp, from));
    if (!*domain && opset > NEWEST_OPSET)
        fail("%s: %s is of opset %d, tpc knows opsets up to %d", im->path, proto_node_label(im->tmp, from), opset, NEWEST_OPSET);
    upgrade_node(im, scope, node, opset);
    compose_node(im, scope, node);
    read_plain_node(im, scope, node, opset);
}

/* ---- the parts of the graph ---- */

/* Since version 4 of the IR an initializer that is listed as an input is its default. Before, all of them had to be listed. */
enum { IR_OF_DEFAULTS = 4 };

static struct text_table *inputs_with_defaults(const struct import *im)
{
    struct text_table *names = NULL;
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; im->model->ir_version >= IR_OF_DEFAULTS && i < g->n_input; i++)
        if (g->input[i]->name && !text_table_find(names, g->input[i]->name))
            text_table_add(im->tmp, &names, g->input[i]->name, g->input[i]);
    return names;
}

/* True if the run gives the input: it stays one. If not, the metadata records that it could have been given. */
static bool is_replaced(struct import *im, const struct text_table *inputs, const char *name)
{
    const struct load_options *o = im->external.options;
    if (!text_table_find(inputs, name))
        return false;
    if (o && o->given && o->given(o->bound_data, im->tmp, name))
        return true;
    rank_meta_set_default(im->graph, arena_strdup(im->arena, name));
    return false;
}

static void load_initializers(struct import *im, struct name_scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    struct text_table *inputs = inputs_with_defaults(im);
    for (size_t i = 0; i < g->n_initializer; i++) {
        const Onnx__TensorProto *t = g->initializer[i];
        if (!t->name || !*t->name)
            fail("%s: initializer %zu has no name", im->path, i);
        if (is_replaced(im, inputs, t->name))
            continue;
        const char *what = arena_printf(im->tmp, "initializer '%s'", t->name);
        struct value *value = name_scope_define(im, scope, t->name, what);
        import_constant(im, value, tensor_constant(im, t, what));
    }
    sparse_initializers(im, scope, g);
}

static void load_inputs(struct import *im, struct name_scope *scope)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_input; i++) {
        const Onnx__ValueInfoProto *info = g->input[i];
        if (!info->name || !*info->name)
            fail("%s: graph input %zu has no name", im->path, i);
        struct value *known = name_scope_find(scope, info->name);
        if (known && known->constant)
            continue;
        if (sequence_is_type(info->type)) {
            sequence_enter(im, scope, info);
            continue;
        }
        struct value *value = name_scope_define(im, scope, info->name, arena_printf(im->tmp, "graph input '%s'", info->name));
        if (!declared_type(im, info, &value->type))
            fail("%s: graph input '%s' is %s, expected a tensor with its dimensions", im->path, info->name, declared_kind(info->type));
        VEC_PUSH(im->arena, &im->graph->inputs, value);
    }
}

/* Before the nodes, so that outputs keep their names despite inlining. */
static void load_outputs(struct import *im, struct name_scope *scope)
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
        graph_add_output(im->graph, name_scope_read(im, scope, info->name, "the list of graph outputs"));
    }
    if (!g->n_output && !rank_meta_is_stage(im->graph)) /* a stage may have nothing to do */
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

static void load_versions(struct import *im, const struct name_scope *scope)
{
    struct graph *g = im->graph;
    int opset = name_scope_imports(im, "") ? name_scope_opset(im, scope, "", "the graph") : FORM_OPSET;
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
    struct name_scope scope = {.prefix = "", .nopset = im->model->n_opset_import, .opset = im->model->opset_import, .graph = im->graph};
    load_versions(im, &scope);
    load_metadata(im);
    read_configurations(im);
    inline_collect(im);
    collect_declared(im);
    load_initializers(im, &scope);
    load_inputs(im, &scope);
    load_outputs(im, &scope);
    for (size_t i = 0; i < im->model->graph->n_node; i++)
        load_node(im, &scope, im->model->graph->node[i]);
    sequence_leave(im);
    name_scope_close(im, &scope);
    graph_sort_read(im->graph);
}

/* ---- the file ---- */

static const Onnx__ModelProto *read_model(struct arena *tmp, const char *path, bool *stripped)
{
    struct wire_index index = {.stripped = false};
    struct map file = map_file(path);
    other_format_refuse(path, file);
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
    struct import im = {.arena = arena, .tmp = arena_new(), .alg = alg, .node = load_node, .form_changed = upgrade_form_changed};
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
