/* Sequences and optionals that enter or leave a graph. --bind or the inputs of the run give the number of tensors of each. It becomes that
 * many inputs or outputs: NAME.0, NAME.1 and so on. An optional tensor keeps its name.
 *
 * As text: "[3, N],[4]", the sizes of each element; "2", the number of elements whose sizes the file declares; "none", an absent
 * optional. */
#include "ir/rank_meta.h"
#include "onnx/compose/compose.h"
#include "onnx/onnx.h"
#include "op/canon/canon.h"

#include <string.h>

enum { MOST_ELEMENTS = 4096 };

bool sequence_is_type(const Onnx__TypeProto *type)
{
    int kind = type ? (int)type->value_case : 0;
    return kind == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE || kind == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
}

static const char *told(struct import *im, const char *name, bool tensor)
{
    const struct load_options *o = im->external.options;
    return o && o->bound ? o->bound(o->bound_data, im->arena, name, tensor) : NULL;
}

bool sequence_bind_input(struct import *im, struct value *v)
{
    bool is_input = false;
    for (int i = 0; i < im->graph->inputs.n; i++)
        is_input = is_input || im->graph->inputs.at[i] == v;
    const char *text = is_input && (dtype_is_integer(v->type.dtype) || v->type.dtype == DT_BOOL) ? told(im, v->name, true) : NULL;
    if (text)
        op_bind_input(im->graph, arena_printf(im->arena, "%s=%s", v->name, text));
    return text != NULL;
}

/* ---- inputs ----------------------------------------------------------------------------------------------------------------------- */

struct entering {
    struct import *im;
    struct name_scope *scope;
    const char *name;
    Onnx__ValueInfoProto element; /* as declared */
    size_t n;
    char **part; /* n names */
};

static void tensor_input(const struct entering *e, const char *name, const struct type *type)
{
    struct import *im = e->im;
    struct value *v = name_scope_define(im, e->scope, name, arena_printf(im->tmp, "graph input '%s'", e->name));
    v->type = *type;
    VEC_PUSH(im->arena, &im->graph->inputs, v);
}

static void element_input(struct entering *e, const struct type *type)
{
    char *name = e->part[e->n] = arena_printf(e->im->tmp, "%s.%zu", e->name, e->n);
    tensor_input(e, name, type);
    e->n++;
}

/* A node that assembles it from its parts. */
static void make_of_parts(struct entering *e, const char *op)
{
    Onnx__NodeProto *node = NEW(e->im->tmp, Onnx__NodeProto);
    onnx__node_proto__init(node);
    char **result = NEWN(e->im->tmp, char *, 1);
    result[0] = arena_strdup(e->im->tmp, e->name);
    node->op_type = arena_strdup(e->im->tmp, op);
    node->n_input = e->n;
    node->input = e->part;
    node->n_output = 1;
    node->output = result;
    e->im->node(e->im, e->scope, node);
}

static _Noreturn void bad_text(const struct entering *e, const char *text, const char *why)
{
    fail("%s: '%s' for '%s': %s: expected the sizes of each element, as \"[2, 3],[4]\", or the number of elements", e->im->path, text,
         e->name, why);
}

static int element_dtype(const struct entering *e)
{
    const Onnx__TypeProto *t = e->element.type;
    if (!t || t->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        fail("%s: graph input '%s' holds %s, expected tensors", e->im->path, e->name, declared_kind(t));
    return t->tensor_type->elem_type;
}

/* The next "[..]" of a text; false: no more. */
static bool next_sizes(const struct entering *e, const char *text, const char **at, struct type *out)
{
    const char *why = NULL, *end = strchr(*at, ']');
    if (!**at)
        return false;
    if (**at != '[' || !end)
        bad_text(e, text, "it is malformed");
    const char *type = arena_printf(e->im->tmp, "%s%.*s", dtype_name((enum dtype)element_dtype(e)), (int)(end + 1 - *at), *at);
    if (!type_parse(e->im->alg, type, 1, out, &why))
        bad_text(e, text, why);
    *at = end + 1 + (end[1] == ',');
    return true;
}

static void enter_sized(struct entering *e, const char *text)
{
    struct type type;
    for (const char *at = text; next_sizes(e, text, &at, &type);) {
        if (e->n == MOST_ELEMENTS)
            bad_text(e, text, "it has very many elements");
        element_input(e, &type);
    }
}

static void enter_counted(struct entering *e, const char *text)
{
    int64_t n;
    struct type type;
    if (!i64_parse(text, 0, MOST_ELEMENTS, &n))
        bad_text(e, text, "it is malformed");
    if (n && !declared_type(e->im, &e->element, &type))
        bad_text(e, text, "the file does not declare the sizes of an element");
    while (e->n < (size_t)n)
        element_input(e, &type);
}

static void enter_sequence(struct entering *e, const char *text)
{
    (void)element_dtype(e);
    if (!text)
        fail("%s: graph input '%s' is a sequence: give the number of its elements, or their sizes, by --bind %s=N or '--bind %s=[..],[..]'",
             e->im->path, e->name, e->name, e->name);
    e->part = NEWN(e->im->tmp, char *, MOST_ELEMENTS + 1);
    (*text == '[' ? enter_sized : enter_counted)(e, text);
    make_of_parts(e, "SequenceConstruct");
}

/* Present unless stated to be absent. */
static bool enter_optional_tensor(struct entering *e)
{
    struct type type;
    if (!e->element.type || e->element.type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE)
        return false;
    if (!declared_type(e->im, &e->element, &type))
        fail("%s: graph input '%s' is %s, expected a tensor with its dimensions", e->im->path, e->name, declared_kind(e->element.type));
    tensor_input(e, e->name, &type);
    return true;
}

void sequence_enter(struct import *im, struct name_scope *scope, const Onnx__ValueInfoProto *info)
{
    struct entering e = {im, scope, info->name, *info, 0, NULL};
    const char *text = told(im, info->name, false);
    bool optional = info->type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE;
    if (text)
        rank_meta_set_bind(im->graph, arena_strdup(im->arena, info->name), text);
    e.element.type = optional ? info->type->optional_type->elem_type : info->type;
    if (optional && text && strcmp(text, "none") == 0) {
        make_of_parts(&e, "Optional");
    } else if (e.element.type && e.element.type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        e.element.type = e.element.type->sequence_type->elem_type;
        enter_sequence(&e, text);
    } else if (!enter_optional_tensor(&e)) {
        fail("%s: graph input '%s' is an optional of %s, which tpc does not handle", im->path, info->name, declared_kind(e.element.type));
    }
}

/* ---- outputs ---------------------------------------------------------------------------------------------------------------------- */

static void leave(struct import *im, struct value *v, const struct sequence *s)
{
    for (size_t i = 0; s->kind == SEQUENCE_LIST && i < s->n; i++) {
        static const struct type unknown;
        const char *name = arena_printf(im->arena, "%s.%zu", v->name, i);
        struct value *to = graph_value(im->graph, name, &unknown);
        if (strcmp(to->name, name))
            fail("%s: '%s' is an element of graph output '%s' and another value: rename one of them", im->path, name, v->name);
        import_copy(im, name, s->at[i], to);
        graph_add_output(im->graph, to);
    }
}

void sequence_leave(struct import *im)
{
    struct graph *g = im->graph;
    int n = g->outputs.n;
    struct value **stated = NEWN(im->tmp, struct value *, n + 1);
    for (int i = 0; i < n; i++)
        stated[i] = g->outputs.at[i];
    graph_clear_outputs(g);
    for (int i = 0; i < n; i++) {
        const Onnx__ValueInfoProto *info = im->model->graph->output[i];
        struct value *v = stated[i];
        const struct sequence *s = sequence_is_type(info->type) ? compose_sequence_find(im, v) : NULL;
        bool tensor = !sequence_is_type(info->type) || (!s && info->type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE);
        if (tensor)
            graph_add_output(g, v);
        else if (s && (s->kind == SEQUENCE_LIST || s->kind == SEQUENCE_ABSENT))
            leave(im, v, s);
        else
            fail("%s: graph output '%s' is a sequence whose elements are not known when compiling: --bind NAME=VALUE fixes an input that "
                 "decides them",
                 im->path, info->name);
    }
    if (!g->outputs.n && im->model->graph->n_output)
        fail("%s: the outputs of the graph are sequences without elements", im->path);
}

/* Names are unique only within their graph. */
static char *value_key(const struct import *im, const struct value *v)
{
    return arena_printf(im->tmp, "%p", (const void *)v);
}

static bool is_of(const struct graph *g, const struct value *v)
{
    return v->id < g->values.n && g->values.at[v->id] == v;
}

const struct sequence *compose_sequence_find(const struct import *im, const struct value *v)
{
    const struct sequence *s = v ? text_table_find(im->sequences, value_key(im, v)) : NULL;
    for (size_t k = 0; s && s->kind != SEQUENCE_ABSENT && k < (s->kind == SEQUENCE_LIST ? s->n : 1); k++)
        if (!is_of(im->graph, s->at[k]))
            return NULL;
    return s;
}

void compose_sequence_note(struct import *im, const struct value *v, struct sequence made)
{
    struct sequence *s = NEW(im->tmp, struct sequence);
    *s = made;
    text_table_add(im->tmp, &im->sequences, value_key(im, v), s);
}
