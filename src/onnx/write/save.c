/* A graph to a model file, and its weights to a data file.
 *
 * Everything is ordered by the graph, so the same graph gives the same bytes. Without weights the message is small, so it is packed in
 * memory; weights are streamed (stream.c). */
#include "ir/rank_meta.h"
#include "onnx/write/write.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>

enum { MIN_IR = 10, ALIGN_SMALL = 64, ALIGN_BIG = 4096, LONGEST_SIZE = 64 };
#define BIG_BYTES ((int64_t)1 << 20)
#define INLINE_INTS 65536 /* int64 constants up to this size stay inline: shape inference reads no external data */

struct save {
    struct arena *tmp;
    struct graph *graph;
    const struct body_types *types; /* of a body; NULL: the graph has types itself */
    const char *path;
    int64_t offset;    /* where the next external weight may begin */
    bool *used, *size; /* by value id: read by a node or output; read as a size */
    struct value_names names;
    struct data_file data;
};

#define PROTO(s, type, lower) onnx__##lower##__new((s)->tmp)
#define DEFINE_NEW(type, lower)                                    \
    static Onnx__##type *onnx__##lower##__new(struct arena *arena) \
    {                                                              \
        Onnx__##type *item = NEW(arena, Onnx__##type);             \
        onnx__##lower##__init(item);                               \
        return item;                                               \
    }
DEFINE_NEW(ModelProto, model_proto)
DEFINE_NEW(GraphProto, graph_proto)
DEFINE_NEW(NodeProto, node_proto)
DEFINE_NEW(AttributeProto, attribute_proto)
DEFINE_NEW(TensorProto, tensor_proto)
DEFINE_NEW(ValueInfoProto, value_info_proto)
DEFINE_NEW(TypeProto, type_proto)
DEFINE_NEW(TypeProto__Tensor, type_proto__tensor)
DEFINE_NEW(TensorShapeProto, tensor_shape_proto)
DEFINE_NEW(TensorShapeProto__Dimension, tensor_shape_proto__dimension)
DEFINE_NEW(StringStringEntryProto, string_string_entry_proto)
DEFINE_NEW(OperatorSetIdProto, operator_set_id_proto)

static const char *name_of(const struct save *s, const struct value *v)
{
    return s->names.at[v->id];
}

static char *save_text(struct save *s, const char *from)
{
    return arena_strdup(s->tmp, from);
}

static Onnx__StringStringEntryProto *save_entry(struct save *s, const char *key, const char *value)
{
    Onnx__StringStringEntryProto *e = PROTO(s, StringStringEntryProto, string_string_entry_proto);
    e->key = save_text(s, key);
    e->value = save_text(s, value);
    return e;
}

/* ---- types ---- */

/* A symbol is written by name if that reads back as the same symbol. */
static char *dim_text(struct save *s, const struct dim *d)
{
    if (d->kind == DIM_SYM && dim_param_parse(s->graph->alg, d->name) == d)
        return save_text(s, d->name);
    return dim_str(s->tmp, d);
}

static Onnx__TensorShapeProto__Dimension *save_dim(struct save *s, const struct dim *d)
{
    Onnx__TensorShapeProto__Dimension *out = PROTO(s, TensorShapeProto__Dimension, tensor_shape_proto__dimension);
    int64_t n;
    if (!d)
        return out;
    if (dim_is_int(d, &n)) {
        out->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        out->dim_value = n;
    } else {
        out->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM;
        out->dim_param = dim_text(s, d);
    }
    return out;
}

static Onnx__TypeProto *save_type(struct save *s, const struct type *type)
{
    Onnx__TypeProto *out = PROTO(s, TypeProto, type_proto);
    Onnx__TypeProto__Tensor *tensor = PROTO(s, TypeProto__Tensor, type_proto__tensor);
    Onnx__TensorShapeProto *shape = PROTO(s, TensorShapeProto, tensor_shape_proto);
    shape->dim = NEWN(s->tmp, Onnx__TensorShapeProto__Dimension *, type->rank + 1);
    for (int i = 0; i < type->rank; i++)
        shape->dim[shape->n_dim++] = save_dim(s, type->dim[i]);
    tensor->has_elem_type = 1;
    tensor->elem_type = (int32_t)type->dtype;
    tensor->shape = shape;
    out->value_case = ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE;
    out->tensor_type = tensor;
    return out;
}

static struct type type_of(const struct save *s, const struct value *value)
{
    return s->types && value->type.dtype == DT_NONE ? body_type(s->types, value) : value->type;
}

static Onnx__ValueInfoProto *save_info(struct save *s, const struct value *value)
{
    const struct type type = type_of(s, value);
    Onnx__ValueInfoProto *out = PROTO(s, ValueInfoProto, value_info_proto);
    out->name = save_text(s, name_of(s, value));
    if (type.dtype != DT_NONE)
        out->type = save_type(s, &type);
    return out;
}

/* ---- constants ---- */

static void save_dims(struct save *s, Onnx__TensorProto *t, const struct value *value, const struct constant *c)
{
    bool typed = value && value->type.dtype != DT_NONE;
    int rank = typed ? value->type.rank : c->rank;
    t->dims = NEWN(s->tmp, int64_t, rank + 1);
    t->n_dims = (size_t)rank;
    for (int i = 0; i < rank; i++) {
        t->dims[i] = c->dim[i];
        if (typed && !dim_is_int(value->type.dim[i], &t->dims[i]))
            bug("constant '%s' has a symbolic dimension", value->name);
    }
    t->has_data_type = 1;
    t->data_type = (int32_t)(value && value->stored != DT_NONE ? value->stored : c->dtype);
}

static int64_t tensor_length(const Onnx__TensorProto *t, enum dtype dtype, const char *name)
{
    int64_t elements, bytes;
    if (!type_sizes_product(t->dims, (int)t->n_dims, &elements) || !dtype_packed_bytes(dtype, elements, &bytes))
        bug("constant '%s' has a size out of range", name);
    return bytes;
}

static void put_bytes(void *to, const void *from, size_t bytes)
{
    uint8_t **at = to;
    memcpy(*at, from, bytes);
    *at += bytes;
}

static void put_raw(struct save *s, Onnx__TensorProto *t, const struct saved_weight *w)
{
    uint8_t *out = arena_alloc(s->tmp, w->bytes ? (size_t)w->bytes : 1);
    require(w->value->stored == DT_NONE || w->bytes == 0);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){(size_t)w->bytes, out};
    if (w->bytes > 0)
        stream_weight(&s->data, w, put_bytes, &out);
}

/* Every rank writes the same. */
static void put_strings(struct save *s, Onnx__TensorProto *t, struct constant *c, const char *name)
{
    int64_t n = constant_elements(c);
    t->string_data = NEWN(s->tmp, ProtobufCBinaryData, n + 1);
    for (int64_t i = 0; i < n; i++) {
        char *text = save_text(s, string_text(constant_int(c, name, i)));
        t->string_data[t->n_string_data++] = (ProtobufCBinaryData){strlen(text), (uint8_t *)text};
    }
}

int64_t onnx_data_offset(int64_t end, int64_t bytes)
{
    int64_t align = bytes >= BIG_BYTES ? ALIGN_BIG : ALIGN_SMALL;
    return (end + align - 1) / align * align;
}

static void put_external(struct save *s, Onnx__TensorProto *t, struct saved_weight *w)
{
    w->offset = onnx_data_offset(s->offset, w->bytes);
    s->offset = w->offset + w->bytes;
    t->has_data_location = 1;
    t->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    t->external_data = NEWN(s->tmp, Onnx__StringStringEntryProto *, 3);
    t->external_data[t->n_external_data++] = save_entry(s, "location", path_base(s->data.options->data_path));
    t->external_data[t->n_external_data++] = save_entry(s, "offset", arena_printf(s->tmp, "%lld", (long long)w->offset));
    t->external_data[t->n_external_data++] = save_entry(s, "length", arena_printf(s->tmp, "%lld", (long long)w->bytes));
    w->tensor = t;
    VEC_PUSH(s->tmp, &s->data.weights, *w);
    if (s->data.options->stored)
        s->data.options->stored(s->data.options->data, w->value, w->offset);
}

/* A shard without elements stays inline: some runtimes read no offset at the end of a file. */
static bool stays_inline(const struct save *s, const struct value *value, int64_t bytes)
{
    if (!s->data.options->data_path || value->constant->bytes < WEIGHT_BYTES || value->constant->dtype == DT_STRING || bytes == 0)
        return true;
    return s->size[value->id] || (value->constant->dtype == DT_I64 && bytes < INLINE_INTS);
}

/* For a tensor whose bytes are all in the message. */
static Onnx__TensorProto *with_digest(struct save *s, Onnx__TensorProto *t)
{
    if (s->data.options->digests)
        tensor_digest_put(s->tmp, t, tensor_digest_of(t, t->raw_data.data, (int64_t)t->raw_data.len));
    return t;
}

static Onnx__TensorProto *save_constant(struct save *s, const struct value *value)
{
    Onnx__TensorProto *t = PROTO(s, TensorProto, tensor_proto);
    t->name = save_text(s, name_of(s, value));
    save_dims(s, t, value, value->constant);
    struct saved_weight w = {.value = value, .bytes = tensor_length(t, (enum dtype)t->data_type, value->name)};
    if (value->constant->dtype == DT_STRING)
        put_strings(s, t, value->constant, value->name);
    else if (stays_inline(s, value, w.bytes))
        put_raw(s, t, &w);
    else {
        put_external(s, t, &w);
        return t; /* its digest is known after it is written */
    }
    return with_digest(s, t);
}

static Onnx__TensorProto *save_attribute_tensor(struct save *s, struct constant *c, const char *name)
{
    Onnx__TensorProto *t = PROTO(s, TensorProto, tensor_proto);
    save_dims(s, t, NULL, c);
    if (c->dtype == DT_STRING) {
        put_strings(s, t, c, name);
        return with_digest(s, t);
    }
    uint8_t *out = arena_alloc(s->tmp, c->bytes ? (size_t)c->bytes : 1);
    if (c->bytes)
        memcpy(out, constant_data(c, name), (size_t)c->bytes);
    t->has_raw_data = 1;
    t->raw_data = (ProtobufCBinaryData){(size_t)c->bytes, out};
    return with_digest(s, t);
}

/* ---- attributes and nodes ---- */

static bool is_default(const struct attr *a, const struct op_attr *known)
{
    const struct attr *d = &known->value;
    if (!known->has_default)
        return false;
    switch (a->kind) {
    case ATTR_INT: return a->i == d->i;
    case ATTR_FLOAT: return memcmp(&(float){(float)a->f}, &(float){(float)d->f}, sizeof(float)) == 0;
    case ATTR_STRING: return strcmp(a->s, d->s) == 0;
    case ATTR_INTS: return a->n == d->n && (!a->n || memcmp(a->ints, d->ints, (size_t)a->n * sizeof *a->ints) == 0);
    default: return false;
    }
}

static void set_list(struct save *s, Onnx__AttributeProto *out, const struct attr *a)
{
    if (a->kind == ATTR_INTS) {
        out->ints = NEWN(s->tmp, int64_t, a->n + 1);
        for (int i = 0; i < a->n; i++)
            out->ints[out->n_ints++] = a->ints[i];
        return;
    }
    out->floats = NEWN(s->tmp, float, a->n + 1);
    for (int i = 0; i < a->n; i++)
        out->floats[out->n_floats++] = (float)a->floats[i];
}

static Onnx__AttributeProto *save_attribute(struct save *s, const struct attr *a)
{
    Onnx__AttributeProto *out = PROTO(s, AttributeProto, attribute_proto);
    out->name = save_text(s, a->name);
    out->has_type = 1;
    switch (a->kind) {
    case ATTR_INT:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
        out->has_i = 1;
        out->i = a->i;
        break;
    case ATTR_FLOAT:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
        out->has_f = 1;
        out->f = (float)a->f;
        break;
    case ATTR_STRING:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
        out->has_s = 1;
        out->s = (ProtobufCBinaryData){strlen(a->s), (uint8_t *)save_text(s, a->s)};
        break;
    case ATTR_INTS:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
        set_list(s, out, a);
        break;
    case ATTR_FLOATS:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
        set_list(s, out, a);
        break;
    case ATTR_STRINGS:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS;
        out->strings = NEWN(s->tmp, ProtobufCBinaryData, a->n + 1);
        for (int i = 0; i < a->n; i++)
            out->strings[out->n_strings++] = (ProtobufCBinaryData){strlen(a->strings[i]), (uint8_t *)save_text(s, a->strings[i])};
        break;
    case ATTR_TENSOR:
        out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
        out->t = save_attribute_tensor(s, a->tensor, a->name);
        break;
    default: bug("attribute '%s' of kind %d can't be written", a->name, (int)a->kind);
    }
    return out;
}

static Onnx__AttributeProto *save_body(struct save *, const struct node *, int k);

static Onnx__AttributeProto *save_raw(struct save *s, const struct attr *a)
{
    return wire_unpack(s->tmp, s->path, "writable (a raw attribute)", (struct map){a->raw, (size_t)a->n},
                       &onnx__attribute_proto__descriptor);
}

static void save_attributes(struct save *s, const struct node *node, Onnx__NodeProto *out)
{
    out->attribute = NEWN(s->tmp, Onnx__AttributeProto *, node->nattr + 1);
    for (int i = 0, bodies = 0; i < node->nattr; i++) {
        const struct attr *a = &node->attr[i];
        if (a->kind == ATTR_DIMS || !a->set || (node->op && node->op->attr[i].noted))
            continue;
        if (a->kind == ATTR_GRAPH)
            out->attribute[out->n_attribute++] = save_body(s, node, bodies++);
        else if (a->kind == ATTR_RAW)
            out->attribute[out->n_attribute++] = save_raw(s, a);
        else if (!node->op || !is_default(a, &node->op->attr[i]))
            out->attribute[out->n_attribute++] = save_attribute(s, a);
    }
}

/* least: trailing absent names are dropped down to this count. */
static char **save_names(struct save *s, int n, struct value *const *values, int least, size_t *count)
{
    while (n > least && !values[n - 1])
        n--;
    char **out = NEWN(s->tmp, char *, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = save_text(s, values[i] ? name_of(s, values[i]) : "");
    *count = (size_t)n;
    return out;
}

static void save_metadata(struct save *s, const struct node *node, Onnx__NodeProto *out)
{
    struct node_metadata all = node_metadata_of(s->tmp, s->graph, node, s->data.options->planned);
    out->metadata_props = NEWN(s->tmp, Onnx__StringStringEntryProto *, all.list.n + 1);
    for (int i = 0; i < all.list.n; i++)
        out->metadata_props[out->n_metadata_props++] = save_entry(s, all.list.at[i].key, all.list.at[i].text);
}

static Onnx__NodeProto *save_node(struct save *s, const struct node *node)
{
    Onnx__NodeProto *out = PROTO(s, NodeProto, node_proto);
    out->op_type = save_text(s, node->optype);
    if (*node->domain)
        out->domain = save_text(s, node->domain);
    out->name = save_text(s, node->name);
    bool bodies = node_bodies(node);
    out->input = save_names(s, bodies ? node_captured(node, 0) : node->nin, node->in, bodies ? node->op->nin - 1 : 0, &out->n_input);
    out->output = save_names(s, node->nout, node->out, 0, &out->n_output);
    save_attributes(s, node, out);
    save_metadata(s, node, out);
    return out;
}

/* ---- the graph ---- */

static void mark_uses(struct save *s)
{
    const struct graph *g = s->graph;
    s->used = NEWN(s->tmp, bool, g->values.n + 1);
    s->size = NEWN(s->tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        s->used[g->outputs.at[i]->id] = true;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *node = g->nodes.at[i];
        for (int k = 0; k < node->nin; k++) {
            if (!node->in[k])
                continue;
            s->used[node->in[k]->id] = true;
            if (node->op && node->op->nin && node->op->in[k < node->op->nin ? k : node->op->nin - 1].size)
                s->size[node->in[k]->id] = true;
        }
    }
}

static void save_constants(struct save *s, Onnx__GraphProto *out)
{
    out->initializer = NEWN(s->tmp, Onnx__TensorProto *, s->graph->values.n + 1);
    for (int i = 0; i < s->graph->values.n; i++) {
        const struct value *value = s->graph->values.at[i];
        if (value->constant && s->used[value->id])
            out->initializer[out->n_initializer++] = save_constant(s, value);
    }
}

/* For readers of the file: a long size expression tells them nothing and makes files larger. */
static void drop_long_sizes(Onnx__ValueInfoProto *info)
{
    Onnx__TensorShapeProto *shape = info->type->tensor_type->shape;
    for (size_t d = 0; d < shape->n_dim; d++)
        if (shape->dim[d]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
            strlen(shape->dim[d]->dim_param) > LONGEST_SIZE)
            shape->dim[d]->value_case = ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE__NOT_SET;
}

/* For all intermediate results. Results of ops without a row have only this type. */
static void save_value_info(struct save *s, Onnx__GraphProto *out)
{
    bool *told = NEWN(s->tmp, bool, s->graph->values.n + 1);
    for (int i = 0; i < s->graph->outputs.n; i++)
        told[s->graph->outputs.at[i]->id] = true;
    out->value_info = NEWN(s->tmp, Onnx__ValueInfoProto *, s->graph->values.n + 1);
    for (int i = 0; i < s->graph->nodes.n; i++) {
        for (int k = 0; k < s->graph->nodes.at[i]->nout; k++) {
            const struct node *node = s->graph->nodes.at[i];
            const struct value *v = node->out[k];
            if (!v || type_of(s, v).dtype == DT_NONE || (told[v->id] && node->op))
                continue;
            out->value_info[out->n_value_info] = save_info(s, v);
            if (node->op)
                drop_long_sizes(out->value_info[out->n_value_info]);
            out->n_value_info++;
        }
    }
}

static Onnx__GraphProto *save_graph(struct save *s)
{
    const struct graph *g = s->graph;
    Onnx__GraphProto *out = PROTO(s, GraphProto, graph_proto);
    out->name = save_text(s, g->name && *g->name ? g->name : "graph");
    mark_uses(s);
    out->node = NEWN(s->tmp, Onnx__NodeProto *, g->nodes.n + 1);
    for (int i = 0; i < g->nodes.n; i++)
        out->node[out->n_node++] = save_node(s, g->nodes.at[i]);
    save_constants(s, out);
    out->input = NEWN(s->tmp, Onnx__ValueInfoProto *, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n - g->captures; i++)
        out->input[out->n_input++] = save_info(s, g->inputs.at[i]);
    out->output = NEWN(s->tmp, Onnx__ValueInfoProto *, g->outputs.n + 1);
    for (int i = 0; i < g->outputs.n; i++)
        out->output[out->n_output++] = save_info(s, g->outputs.at[i]);
    save_value_info(s, out);
    return out;
}

/* A body's constants are small and stay inline. */
static Onnx__AttributeProto *save_body(struct save *s, const struct node *node, int k)
{
    const struct save_options inline_only = {.digests = s->data.options->digests};
    Onnx__AttributeProto *out = PROTO(s, AttributeProto, attribute_proto);
    const struct attr *a = node_body(node, k);
    struct save body = {.tmp = s->tmp,
                        .graph = a->graph,
                        .types = body_types_of(s->tmp, s->graph, s->types, node, k),
                        .path = s->path,
                        .names = names_of_body(s->tmp, &s->names, node, k),
                        .data = {.options = &inline_only, .model = s->data.model}};
    out->name = save_text(s, a->name);
    out->has_type = 1;
    out->type = ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH;
    out->g = save_graph(&body);
    return out;
}

/* ---- the model ---- */

static void add_opset_import(struct save *s, Onnx__ModelProto *model, const char *domain)
{
    for (size_t i = 0; i < model->n_opset_import; i++)
        if (strcmp(model->opset_import[i]->domain, domain) == 0)
            return;
    Onnx__OperatorSetIdProto *o = PROTO(s, OperatorSetIdProto, operator_set_id_proto);
    o->domain = save_text(s, domain);
    o->has_version = 1;
    o->version = opset_version(s->graph, domain);
    Onnx__OperatorSetIdProto **list = NEWN(s->tmp, Onnx__OperatorSetIdProto *, model->n_opset_import + 1);
    for (size_t i = 0; i < model->n_opset_import; i++)
        list[i] = model->opset_import[i];
    list[model->n_opset_import++] = o;
    model->opset_import = list;
}

static void add_opset_imports(struct save *s, Onnx__ModelProto *model, const struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        add_opset_import(s, model, g->nodes.at[i]->domain);
        for (int k = 0; k < node_bodies(g->nodes.at[i]); k++)
            add_opset_imports(s, model, node_body(g->nodes.at[i], k)->graph);
    }
}

static Onnx__ModelProto *save_model(struct save *s)
{
    const struct graph *g = s->graph;
    Onnx__ModelProto *model = PROTO(s, ModelProto, model_proto);
    model->has_ir_version = 1;
    model->ir_version = g->ir_version > MIN_IR ? g->ir_version : MIN_IR;
    model->producer_name = save_text(s, s->data.options->producer ? s->data.options->producer : "tpc");
    model->graph = save_graph(s);
    add_opset_import(s, model, "");
    add_opset_imports(s, model, g);
    return model;
}

/* ---- writing ---- */

static struct written write_model_file(const struct save *s, const Onnx__ModelProto *model)
{
    size_t bytes = onnx__model_proto__get_packed_size(model);
    if (bytes > INT_MAX)
        fail("%s: can't be written: the message would have %zu bytes, less than 2 GiB are possible", s->path, bytes);
    uint8_t *packed = arena_alloc(s->tmp, bytes);
    onnx__model_proto__pack(model, packed);
    struct out out;
    out_open(&out, s->path);
    out_put(&out, packed, bytes);
    return out_close(&out);
}

/* room: more entries that will fit. */
static void save_meta(struct save *s, Onnx__ModelProto *model, int room)
{
    const struct graph *g = s->graph;
    model->metadata_props = NEWN(s->tmp, Onnx__StringStringEntryProto *, g->meta.n + room + 1);
    for (int i = 0; i < g->meta.n; i++)
        model->metadata_props[model->n_metadata_props++] = save_entry(s, g->meta.at[i].key, g->meta.at[i].text);
}

/* Entries known only after the weights are written. all: the digest over every graph. */
static void save_digests(struct save *s, Onnx__ModelProto *model, uint64_t all)
{
    EACH (const struct saved_weight, w, s->data.weights) {
        tensor_digest_put(s->tmp, w->tensor, w->digest);
    }
    model->metadata_props[model->n_metadata_props++] = save_entry(s, RANK_META_WEIGHTS, arena_printf(s->tmp, "%016" PRIx64, all));
}

/* The digest of all weight bytes in the data files, in order. */
static uint64_t digest_of_all(struct arena *tmp, int n, const struct save *s)
{
    VEC(uint64_t) each = {0};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i].data.weights.n; k++)
            VEC_PUSH(tmp, &each, s[i].data.weights.at[k].digest.whole);
    return digest_bytes(each.at, (size_t)each.n * sizeof *each.at);
}

void onnx_save(int n, struct graph *const *graphs, const char *const *paths, const struct save_options *options, struct saved *out)
{
    struct arena *tmp = arena_new();
    struct save *s = NEWN(tmp, struct save, n);
    struct data_file **files = NEWN(tmp, struct data_file *, n);
    int nfile = 0;
    Onnx__ModelProto **models = NEWN(tmp, Onnx__ModelProto *, n);
    for (int i = 0; i < n; i++) {
        s[i] = (struct save){
            .tmp = arena_new(), .graph = graphs[i], .path = paths[i], .data = {.options = &options[i], .model = graphs[i]->path}};
        s[i].names = names_of_graph(s[i].tmp, graphs[i]);
        models[i] = save_model(&s[i]);
        if (options[i].data_path)
            files[nfile++] = &s[i].data;
    }
    stream_files(nfile, files);
    uint64_t all = digest_of_all(tmp, n, s);
    for (int i = 0; i < n; i++) {
        if (options[i].late)
            options[i].late(options[i].data, graphs[i]);
        save_meta(&s[i], models[i], options[i].digests);
        if (options[i].digests)
            save_digests(&s[i], models[i], all);
        out[i] = (struct saved){write_model_file(&s[i], models[i]), s[i].data.written};
        arena_free(s[i].tmp);
    }
    arena_free(tmp);
}
