/* Older forms of ops, brought to the form of opset 23 before anything is decoded.
 *
 * Most changes are of one kind: an attribute became an operand, so a constant is made for it. Softmax and its kin had flatten
 * semantics before opset 13. The second table lists the changes of form for which there is no rewrite: such a node is refused with
 * the opset to export with. Ops in neither table only gained types and attributes whose defaults are the old meaning. */
#include "onnx/onnx.h"
#include "onnx/read/read.h"

#include <string.h>

typedef Onnx__NodeProto proto;
struct upgrade {
    struct import *im;
    struct scope *scope;
    proto *node;
    int opset;
    const char *to; /* the op that it becomes */
    const char *where;
};

/* ---- editing a node ---- */

static Onnx__AttributeProto *take_attribute(proto *node, const char *name)
{
    Onnx__AttributeProto *found = proto_attribute(node, name);
    size_t kept = 0;
    for (size_t i = 0; i < node->n_attribute; i++)
        if (node->attribute[i] != found)
            node->attribute[kept++] = node->attribute[i];
    node->n_attribute = kept;
    return found;
}

static Onnx__AttributeProto *remove_typed(struct upgrade *s, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = take_attribute(s->node, name);
    if (a && a->has_type && a->type != type)
        fail("%s: %s: attribute '%s' has the wrong type", s->im->path, s->where, name);
    return a;
}

static Onnx__AttributeProto *remove_ints(struct upgrade *s, const char *name)
{
    return remove_typed(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS);
}

/* A new attribute of the node. */
static Onnx__AttributeProto *add_attribute(struct upgrade *s, const char *name, Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = NEW(s->im->tmp, Onnx__AttributeProto),
                         **list = NEWN(s->im->tmp, Onnx__AttributeProto *, s->node->n_attribute + 1);
    onnx__attribute_proto__init(a);
    a->name = arena_strdup(s->im->tmp, name);
    a->has_type = 1;
    a->type = type;
    for (size_t k = 0; k < s->node->n_attribute; k++)
        list[k] = s->node->attribute[k];
    list[s->node->n_attribute++] = a;
    s->node->attribute = list;
    return a;
}

static void add_int(struct upgrade *s, const char *name, int64_t i)
{
    Onnx__AttributeProto *a = add_attribute(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    a->has_i = 1;
    a->i = i;
}

static void add_text(struct upgrade *s, const char *name, const char *text)
{
    Onnx__AttributeProto *a = add_attribute(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    a->has_s = 1;
    a->s.len = strlen(text);
    a->s.data = (uint8_t *)arena_strdup(s->im->tmp, text);
}

/* Sets operand number index; absent ones before it become "". */
static void set_input(struct upgrade *s, size_t index, char *name)
{
    size_t n = s->node->n_input > index + 1 ? s->node->n_input : index + 1;
    char **list = NEWN(s->im->tmp, char *, n);
    for (size_t i = 0; i < n; i++)
        list[i] = i < s->node->n_input ? s->node->input[i] : arena_strdup(s->im->tmp, "");
    if (*list[index])
        fail("%s: %s has an operand that opset %d does not know", s->im->path, s->where, s->opset);
    list[index] = name;
    s->node->input = list;
    s->node->n_input = n;
}

static const char *result_name(const struct upgrade *s)
{
    return s->node->n_output && *s->node->output[0] ? s->node->output[0] : "result";
}

static char *display_name(struct upgrade *s, const char *what)
{
    return arena_printf(s->im->tmp, "%s_%s", result_name(s), what);
}

/* The INTS attribute becomes operand index. */
static bool ints_to_input(struct upgrade *s, const char *name, size_t index)
{
    Onnx__AttributeProto *a = remove_ints(s, name);
    if (!a)
        return false;
    set_input(s, index, scope_ints(s->im, s->scope, display_name(s, name), a->n_ints, a->ints));
    return true;
}

/* ---- the rewrites ---- */

static void upgrade_axes(struct upgrade *s)
{
    Onnx__AttributeProto *axes = proto_attribute(s->node, "axes");
    if (axes && !axes->n_ints)
        take_attribute(s->node, "axes");
    else
        ints_to_input(s, "axes", 1);
}

static void upgrade_split(struct upgrade *s)
{
    if (s->opset < 13)
        ints_to_input(s, "split", 1);
    bool sized = s->node->n_input > 1 && *s->node->input[1];
    if (!sized && !proto_attribute(s->node, "num_outputs"))
        add_int(s, "num_outputs", (int64_t)s->node->n_output);
}

static void upgrade_slice(struct upgrade *s)
{
    if (!ints_to_input(s, "starts", 1))
        fail("%s: %s lacks its attribute 'starts'", s->im->path, s->where);
    if (!ints_to_input(s, "ends", 2))
        fail("%s: %s lacks its attribute 'ends'", s->im->path, s->where);
    ints_to_input(s, "axes", 3);
}

static void upgrade_clip(struct upgrade *s)
{
    static const char *const name[] = {"min", "max"};
    for (size_t i = 0; i < 2; i++) {
        Onnx__AttributeProto *a = remove_typed(s, name[i], ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
        if (a)
            set_input(s, i + 1, scope_scalar(s->im, s->scope, display_name(s, name[i]), (double)a->f));
    }
}

static void upgrade_pad(struct upgrade *s)
{
    ints_to_input(s, "pads", 1);
    Onnx__AttributeProto *value = remove_typed(s, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (value && !(value->f >= 0.0f && value->f <= 0.0f))
        set_input(s, 2, scope_scalar(s->im, s->scope, display_name(s, "value"), (double)value->f));
}

static void upgrade_topk(struct upgrade *s)
{
    Onnx__AttributeProto *k = remove_typed(s, "k", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!k)
        fail("%s: %s lacks its attribute 'k'", s->im->path, s->where);
    set_input(s, 1, scope_ints(s->im, s->scope, display_name(s, "k"), 1, &k->i));
}

static void upgrade_batchnorm(struct upgrade *s)
{
    Onnx__AttributeProto *spatial = take_attribute(s->node, "spatial");
    if (spatial && spatial->i != 1)
        fail("%s: %s has spatial = %lld, expected 1", s->im->path, s->where, (long long)spatial->i);
    for (size_t i = 1; i < s->node->n_output; i++)
        if (*s->node->output[i])
            fail("%s: %s has training outputs, which tpc does not handle", s->im->path, s->where);
    if (s->node->n_output > 1)
        s->node->n_output = 1;
}

static void upgrade_scatter(struct upgrade *s)
{
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
}

/* Scales behind the operand; places were counted from the corner and rounded down. */
static void upgrade_resize(struct upgrade *s)
{
    if (s->node->n_input != 2)
        fail("%s: %s has %zu operands, expected 2", s->im->path, s->where, s->node->n_input);
    char *scales = s->node->input[1];
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
    s->node->n_input = 1;
    set_input(s, 2, scales);
    add_text(s, "coordinate_transformation_mode", "asymmetric");
    add_text(s, "nearest_mode", "floor");
}

/* A helper node with one output, imported at once. Returns the output's key. */
static char *add_helper(struct upgrade *s, const char *op, const char *suffix, size_t nin, char **in, const char *attr, int64_t value)
{
    proto *node = NEW(s->im->tmp, proto);
    onnx__node_proto__init(node);
    char *out = scope_fresh(s->im, display_name(s, suffix)), **outputs = NEWN(s->im->tmp, char *, 1);
    outputs[0] = out;
    node->op_type = arena_strdup(s->im->tmp, op);
    node->name = arena_printf(s->im->tmp, "%s_%s", proto_text_or(s->node->name, ""), suffix);
    node->n_metadata_props = s->node->n_metadata_props;
    node->metadata_props = s->node->metadata_props;
    node->n_input = nin;
    node->input = in;
    node->n_output = 1;
    node->output = outputs;
    struct upgrade inner = *s;
    inner.node = node;
    if (attr)
        add_int(&inner, attr, value);
    read_plain_node(s->im, s->scope, node, FORM_OPSET);
    return out;
}

/* Before opset 13 the input was coerced to 2-D at axis (default 1): flatten, normalise rows, restore the shape. */
static void upgrade_softmax(struct upgrade *s)
{
    Onnx__AttributeProto *given = remove_typed(s, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    int64_t axis = given ? given->i : 1;
    add_int(s, "axis", -1);
    if (axis == -1)
        return;
    if (!s->node->n_input || !s->node->n_output)
        fail("%s: %s lacks its operand or its result", s->im->path, s->where);
    char **in = NEWN(s->im->tmp, char *, 1), **flat = NEWN(s->im->tmp, char *, 1), **both = NEWN(s->im->tmp, char *, 2);
    in[0] = s->node->input[0];
    flat[0] = add_helper(s, "Flatten", "flat", 1, in, "axis", axis);
    both[0] = add_helper(s, s->node->op_type, "rows", 1, flat, "axis", -1);
    both[1] = add_helper(s, "Shape", "shape", 1, in, NULL, 0);
    s->node->op_type = arena_strdup(s->im->tmp, "Reshape");
    s->node->input = both;
    s->node->n_input = 2;
    s->node->n_attribute = 0;
}

/* Inference: the identity, where no mask is asked for (compose_onnx.c). Kept as it is where training mode may be on. */
static void upgrade_dropout(struct upgrade *s)
{
    bool mask = s->node->n_output > 1 && *s->node->output[1];
    bool mode = s->node->n_input > 2 && *s->node->input[2];
    if (mode) {
        struct value *v = scope_find(s->scope, s->node->input[2]);
        mode = !v || !v->constant || constant_elements(v->constant) != 1 || constant_int(v->constant, v->name, 0) != 0;
    }
    if (s->opset < 12 && mask)
        fail("%s: %s has its mask used, which opset %d does not define for inference", s->im->path, s->where, s->opset);
    if (mode)
        return;
    if (!s->node->n_input)
        fail("%s: %s lacks its operand", s->im->path, s->where);
    s->node->n_attribute = 0;
    s->node->n_input = 1;
    if (mask)
        return;
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
    s->node->n_output = s->node->n_output ? 1 : 0;
}

/* ---- the tables ---- */

/* Applied when the node's opset is below the given one. */
static const struct {
    const char *op;
    int below;
    const char *to;
    void (*run)(struct upgrade *);
} upgrades[] = {
    {"BatchNormalization", 14, "BatchNormalization", upgrade_batchnorm},
    {"Clip", 11, "Clip", upgrade_clip},
    {"Dropout", NEWEST_OPSET + 1, "Identity", upgrade_dropout},
    {"Hardmax", 13, "Hardmax", upgrade_softmax},
    {"LogSoftmax", 13, "LogSoftmax", upgrade_softmax},
    {"Pad", 11, "Pad", upgrade_pad},
    {"ReduceL1", 18, "ReduceL1", upgrade_axes},
    {"ReduceL2", 18, "ReduceL2", upgrade_axes},
    {"ReduceLogSum", 18, "ReduceLogSum", upgrade_axes},
    {"ReduceLogSumExp", 18, "ReduceLogSumExp", upgrade_axes},
    {"ReduceMax", 18, "ReduceMax", upgrade_axes},
    {"ReduceMean", 18, "ReduceMean", upgrade_axes},
    {"ReduceMin", 18, "ReduceMin", upgrade_axes},
    {"ReduceProd", 18, "ReduceProd", upgrade_axes},
    {"ReduceSum", 13, "ReduceSum", upgrade_axes},
    {"ReduceSumSquare", 18, "ReduceSumSquare", upgrade_axes},
    {"Resize", 11, "Resize", upgrade_resize},
    {"Scatter", 11, "ScatterElements", upgrade_scatter},
    {"Slice", 10, "Slice", upgrade_slice},
    {"Softmax", 13, "Softmax", upgrade_softmax},
    {"Split", 18, "Split", upgrade_split},
    {"Squeeze", 13, "Squeeze", upgrade_axes},
    {"TopK", 10, "TopK", upgrade_topk},
    {"Unsqueeze", 13, "Unsqueeze", upgrade_axes},
    {"Upsample", 10, "Resize", upgrade_resize},
};

/* New meanings without a rewrite: since that opset, up to the form of the rows. */
static const struct {
    const char *op;
    int since;
} changed[] = {
    {"DFT", 20}, {"GridSample", 20}, {"GroupNormalization", 21}, {"RoiAlign", 16}, {"Scan", 9}, {"Upsample", 9},
};

int upgrade_form_changed(const char *op, int opset)
{
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        if (strcmp(op, upgrades[i].op) == 0 && opset < upgrades[i].below && upgrades[i].below <= FORM_OPSET)
            return upgrades[i].below;
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
        if (strcmp(op, changed[i].op) == 0 && opset < changed[i].since)
            return changed[i].since;
    return 0;
}

static void refuse_changed(const struct upgrade *s, const char *op)
{
    for (size_t i = 0; i < sizeof changed / sizeof *changed; i++)
        if (strcmp(op, changed[i].op) == 0 && s->opset < changed[i].since)
            fail("%s: %s is in the form of opset %d; export the model with opset %d or later", s->im->path, s->where, s->opset,
                 changed[i].since);
}

/* Of com.microsoft, made before the standard had 16 and 4 bits; the meaning is the standard's. */
static const char *const standard_since[] = {"DequantizeLinear", "QuantizeLinear"};

static bool is_standard_since(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < sizeof standard_since / sizeof *standard_since; i++)
        if (strcmp(proto_domain(node->domain), "com.microsoft") == 0 && strcmp(proto_text_or(node->op_type, ""), standard_since[i]) == 0)
            return true;
    return false;
}

void upgrade_node(struct import *im, struct scope *scope, Onnx__NodeProto *node, int opset)
{
    if (is_standard_since(node))
        node->domain = arena_strdup(im->tmp, "");
    if (*proto_domain(node->domain))
        return;
    struct upgrade s = {im, scope, node, opset, NULL, proto_node_label(im->tmp, node)};
    const char *op = proto_text_or(node->op_type, "");
    refuse_changed(&s, op);
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        if (strcmp(op, upgrades[i].op) == 0 && opset < upgrades[i].below) {
            s.to = upgrades[i].to;
            upgrades[i].run(&s);
            return;
        }
}

void onnx_each_upgraded(void (*take)(void *, const char *domain, const char *op, int below, const char *to), void *data)
{
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        take(data, "", upgrades[i].op, upgrades[i].below > NEWEST_OPSET ? 0 : upgrades[i].below, upgrades[i].to);
    for (size_t i = 0; i < sizeof standard_since / sizeof *standard_since; i++)
        take(data, "com.microsoft", standard_since[i], 0, standard_since[i]);
}
