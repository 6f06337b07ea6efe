/* Older forms of ops, brought to the form of opset 23 before anything is decoded.
 *
 * Most changes are of one kind: an attribute became an operand, so a constant is made for it. The Softmax family had flatten semantics
 * before opset 13. early.c has changes before opset 7, scan.c has Scan of opset 8. The second table lists the changes of form without a
 * rewrite: such a node is refused with the opset to export with. Ops in neither table only gained types and attributes whose defaults are
 * the old meaning. */
#include "onnx/upgrade/upgrade.h"

#include "onnx/onnx.h"

#include <string.h>

/* ---- the rewrites ---- */

static void upgrade_axes(struct upgrade *s)
{
    Onnx__AttributeProto *axes = proto_attribute(s->node, "axes");
    if (axes && !axes->n_ints)
        upgrade_take(s->node, "axes");
    else
        upgrade_ints_to_input(s, "axes", 1);
}

static void upgrade_split(struct upgrade *s)
{
    if (s->opset < 13)
        upgrade_ints_to_input(s, "split", 1);
    bool sized = s->node->n_input > 1 && *s->node->input[1];
    if (!sized && !proto_attribute(s->node, "num_outputs"))
        upgrade_add_int(s, "num_outputs", (int64_t)s->node->n_output);
}

static void upgrade_slice(struct upgrade *s)
{
    if (!upgrade_ints_to_input(s, "starts", 1))
        fail("%s: %s lacks its attribute 'starts'", s->im->path, s->where);
    if (!upgrade_ints_to_input(s, "ends", 2))
        fail("%s: %s lacks its attribute 'ends'", s->im->path, s->where);
    upgrade_ints_to_input(s, "axes", 3);
}

static void upgrade_clip(struct upgrade *s)
{
    static const char *const name[] = {"min", "max"};
    for (size_t i = 0; i < 2; i++) {
        Onnx__AttributeProto *a = upgrade_remove(s, name[i], ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
        if (a)
            upgrade_set_input(s, i + 1, name_scope_scalar(s->im, s->scope, upgrade_display_name(s, name[i]), (double)a->f));
    }
}

static void upgrade_pad(struct upgrade *s)
{
    upgrade_ints_to_input(s, "pads", 1);
    Onnx__AttributeProto *value = upgrade_remove(s, "value", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (value && !(value->f >= 0.0f && value->f <= 0.0f))
        upgrade_set_input(s, 2, name_scope_scalar(s->im, s->scope, upgrade_display_name(s, "value"), (double)value->f));
}

static void upgrade_topk(struct upgrade *s)
{
    Onnx__AttributeProto *k = upgrade_remove(s, "k", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!k)
        fail("%s: %s lacks its attribute 'k'", s->im->path, s->where);
    upgrade_set_input(s, 1, name_scope_ints(s->im, s->scope, upgrade_display_name(s, "k"), 1, &k->i));
}

/* Before opset 14, training results implied training mode. */
static void upgrade_batchnorm(struct upgrade *s)
{
    const Onnx__AttributeProto *spatial = upgrade_take(s->node, "spatial");
    if (spatial && spatial->i != 1)
        fail("%s: %s has spatial = %lld, expected 1", s->im->path, s->where, (long long)spatial->i);
    if (s->node->n_output > 1)
        upgrade_add_int(s, "training_mode", 1);
}

static void upgrade_scatter(struct upgrade *s)
{
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
}

/* Scales were an attribute; two of them before opset 7. */
static void upgrade_upsample(struct upgrade *s)
{
    Onnx__AttributeProto *scales = upgrade_remove(s, "scales", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    Onnx__AttributeProto *height = upgrade_remove(s, "height_scale", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    Onnx__AttributeProto *width = upgrade_remove(s, "width_scale", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    Onnx__AttributeProto *mode = proto_attribute(s->node, "mode");
    if (!scales && !(height && width))
        fail("%s: %s lacks its attribute 'scales'", s->im->path, s->where);
    const float both[4] = {1, 1, height ? height->f : 1, width ? width->f : 1};
    upgrade_set_input(s, 1,
                      name_scope_floats(s->im, s->scope, upgrade_display_name(s, "scales"), scales ? scales->n_floats : 4,
                                        scales ? scales->floats : both));
    if (mode && mode->s.len == 8 && memcmp(mode->s.data, "bilinear", 8) == 0) {
        upgrade_take(s->node, "mode");
        upgrade_add_text(s, "mode", "linear");
    }
}

/* Scales were operand 1; coordinates were asymmetric and rounded down. */
static void upgrade_resize(struct upgrade *s)
{
    if (s->node->n_input != 2)
        fail("%s: %s has %zu operands, expected 2", s->im->path, s->where, s->node->n_input);
    char *scales = s->node->input[1];
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
    s->node->n_input = 1;
    upgrade_set_input(s, 2, scales);
    upgrade_add_text(s, "coordinate_transformation_mode", "asymmetric");
    upgrade_add_text(s, "nearest_mode", "floor");
}

/* The modes were named after 2-D interpolation. */
static void upgrade_gridsample(struct upgrade *s)
{
    Onnx__AttributeProto *mode = upgrade_remove(s, "mode", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    const char *name = mode && mode->has_s ? arena_strndup(s->im->tmp, (const char *)mode->s.data, mode->s.len) : "bilinear";
    upgrade_add_text(s, "mode", strcmp(name, "bilinear") == 0 ? "linear" : strcmp(name, "bicubic") == 0 ? "cubic" : name);
}

/* The axis was an attribute; its default was the axis after the batch. */
static void upgrade_dft(struct upgrade *s)
{
    Onnx__AttributeProto *axis = upgrade_remove(s, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    int64_t at = axis ? axis->i : 1;
    upgrade_set_input(s, 2, name_scope_ints(s->im, s->scope, upgrade_display_name(s, "axis"), 1, &at));
}

/* Boxes were not shifted by half a pixel. */
static void upgrade_roialign(struct upgrade *s)
{
    upgrade_add_text(s, "coordinate_transformation_mode", "output_half_pixel");
}

/* Before opset 13 the input was coerced to 2-D at axis (default 1): flatten, normalise rows, restore the shape. */
static void upgrade_softmax(struct upgrade *s)
{
    Onnx__AttributeProto *given = upgrade_remove(s, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    int64_t axis = given ? given->i : 1;
    upgrade_add_int(s, "axis", -1);
    if (axis == -1)
        return;
    if (!s->node->n_input || !s->node->n_output)
        fail("%s: %s lacks its operand or its result", s->im->path, s->where);
    char **in = NEWN(s->im->tmp, char *, 1), **flat = NEWN(s->im->tmp, char *, 1), **both = NEWN(s->im->tmp, char *, 2);
    in[0] = s->node->input[0];
    flat[0] = upgrade_helper(s, "Flatten", "flat", 1, in, "axis", axis);
    both[0] = upgrade_helper(s, s->node->op_type, "rows", 1, flat, "axis", -1);
    both[1] = upgrade_helper(s, "Shape", "shape", 1, in, NULL, 0);
    s->node->op_type = arena_strdup(s->im->tmp, "Reshape");
    s->node->input = both;
    s->node->n_input = 2;
    s->node->n_attribute = 0;
}

static void need_one_per_group(const struct upgrade *s, const char *name, int64_t groups)
{
    const struct value *v = name_scope_find(s->scope, name);
    int64_t n;
    if (!v || v->type.dtype == DT_NONE || (v->type.rank == 1 && (!dim_is_int(v->type.dim[0], &n) || n == groups)))
        return;
    fail("%s: %s: '%s' is %s, expected a number for each of %lld groups, as opset %d has it", s->im->path, s->where, v->name,
         type_str(s->im->tmp, &v->type), (long long)groups, s->opset);
}

static char *per_channel(struct upgrade *s, size_t i, int64_t groups, char *sizes, const char *display)
{
    need_one_per_group(s, s->node->input[i], groups);
    int64_t column[2] = {groups, 1}, all = -1;
    char *in[2] = {s->node->input[i], name_scope_ints(s->im, s->scope, "column", 2, column)};
    char *repeated[2] = {upgrade_helper(s, "Reshape", display, 2, in, NULL, 0), sizes};
    char *flat[2] = {upgrade_helper(s, "Expand", "repeated", 2, repeated, NULL, 0), name_scope_ints(s->im, s->scope, "all", 1, &all)};
    return upgrade_helper(s, "Reshape", "per_channel", 2, flat, NULL, 0);
}

/* Scale and bias were per group; each is repeated for the group's channels. */
static void upgrade_groupnorm(struct upgrade *s)
{
    const Onnx__AttributeProto *given = proto_attribute(s->node, "num_groups");
    if (s->node->n_input != 3 || !given || given->i < 1)
        fail("%s: %s has %zu operands and num_groups = %lld, expected 3 and a number from 1", s->im->path, s->where, s->node->n_input,
             (long long)(given ? given->i : 0));
    int64_t one = 1, two = 2, groups = given->i;
    char *shape[3] = {upgrade_helper(s, "Shape", "shape", 1, s->node->input, NULL, 0), name_scope_ints(s->im, s->scope, "start", 1, &one),
                      name_scope_ints(s->im, s->scope, "end", 1, &two)};
    char *count = name_scope_ints(s->im, s->scope, "groups", 1, &groups);
    char *each[2] = {upgrade_helper(s, "Slice", "channels", 3, shape, NULL, 0), count};
    char *sizes[2] = {count, upgrade_helper(s, "Div", "channels_per_group", 2, each, NULL, 0)};
    char *both = upgrade_helper(s, "Concat", "groups_and_channels", 2, sizes, "axis", 0), **in = NEWN(s->im->tmp, char *, 3);
    in[0] = s->node->input[0];
    in[1] = per_channel(s, 1, groups, both, "scale");
    in[2] = per_channel(s, 2, groups, both, "bias");
    s->node->input = in;
}

/* Operand i is the constant 0, or absent where that is the default. */
static bool is_zero(const struct upgrade *s, size_t i, bool by_default)
{
    if (i >= s->node->n_input || !*s->node->input[i])
        return by_default;
    struct value *v = name_scope_find(s->scope, s->node->input[i]);
    return v && v->constant && constant_elements(v->constant) == 1 && constant_float(v->constant, v->name, 0) == 0;
}

/* Outside training, or if nothing is dropped, and without a mask result: the identity (onnx/compose/compositions.def). */
static void upgrade_dropout(struct upgrade *s)
{
    bool mask = s->node->n_output > 1 && *s->node->output[1];
    if (!is_zero(s, 2, true) && !is_zero(s, 1, false))
        return;
    if (s->opset < 12)
        upgrade_withhold_results(s, 1);
    if (!s->node->n_input)
        fail("%s: %s lacks its operand", s->im->path, s->where);
    s->node->n_attribute = 0;
    s->node->n_input = 1;
    if (mask && s->opset >= 12)
        return;
    s->node->op_type = arena_strdup(s->im->tmp, s->to);
    s->node->n_output = s->node->n_output ? 1 : 0;
}

/* ---- the tables ---- */

/* Applied when the node's opset is below the given one, in this order. */
static const struct {
    const char *op;
    int below;
    const char *to;
    void (*run)(struct upgrade *);
} upgrades[] = {
    {"BatchNormalization", 14, "BatchNormalization", upgrade_batchnorm},
    {"Clip", 11, "Clip", upgrade_clip},
    {"DFT", 20, "DFT", upgrade_dft},
    {"Dropout", NEWEST_OPSET + 1, "Identity", upgrade_dropout},
    {"GridSample", 20, "GridSample", upgrade_gridsample},
    {"GroupNormalization", 21, "GroupNormalization", upgrade_groupnorm},
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
    {"RoiAlign", 16, "RoiAlign", upgrade_roialign},
    {"Scan", 9, "Scan", upgrade_scan},
    {"Scatter", 11, "ScatterElements", upgrade_scatter},
    {"Slice", 10, "Slice", upgrade_slice},
    {"Softmax", 13, "Softmax", upgrade_softmax},
    {"Split", 18, "Split", upgrade_split},
    {"Squeeze", 13, "Squeeze", upgrade_axes},
    {"TopK", 10, "TopK", upgrade_topk},
    {"Unsqueeze", 13, "Unsqueeze", upgrade_axes},
    {"Upsample", 9, "Resize", upgrade_upsample},
    {"Upsample", 10, "Resize", upgrade_resize},
};

/* New meanings without a rewrite: since that opset, up to the form of the rows. */
static const struct {
    const char *op;
    int since;
} changed[] = {
    {"MeanVarianceNormalization", 9},
};

int upgrade_form_changed(const char *op, int opset)
{
    if (opset < OPSET_OF_NUMPY_BROADCAST)
        return OPSET_OF_NUMPY_BROADCAST;
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

/* Made for com.microsoft before the standard had 16 and 4 bits; the meaning is the standard's. */
static const char *const standard_since[] = {"DequantizeLinear", "QuantizeLinear"};

static bool is_standard_since(const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < sizeof standard_since / sizeof *standard_since; i++)
        if (strcmp(proto_domain(node->domain), "com.microsoft") == 0 && strcmp(proto_text_or(node->op_type, ""), standard_since[i]) == 0)
            return true;
    return false;
}

void upgrade_node(struct import *im, struct name_scope *scope, Onnx__NodeProto *node, int opset)
{
    if (is_standard_since(node))
        node->domain = arena_strdup(im->tmp, "");
    if (*proto_domain(node->domain))
        return;
    struct upgrade s = {im, scope, node, opset, NULL, proto_node_label(im->tmp, node)};
    const char *op = proto_text_or(node->op_type, "");
    refuse_changed(&s, op);
    if (opset < OPSET_OF_NUMPY_BROADCAST)
        upgrade_early(&s);
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        if (strcmp(op, upgrades[i].op) == 0 && opset < upgrades[i].below) {
            s.to = upgrades[i].to;
            upgrades[i].run(&s);
        }
}

void onnx_each_upgraded(void (*take)(void *, const char *domain, const char *op, int below, const char *to), void *data)
{
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        take(data, "", upgrades[i].op, upgrades[i].below > NEWEST_OPSET ? 0 : upgrades[i].below, upgrades[i].to);
    for (size_t i = 0; i < sizeof standard_since / sizeof *standard_since; i++)
        take(data, "com.microsoft", standard_since[i], 0, standard_since[i]);
}
