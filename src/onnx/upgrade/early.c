/* Forms of ops before opset 7: other attributes, and broadcasting with an explicit axis of the first operand where the second begins. */
#include "onnx/upgrade/upgrade.h"

#include <string.h>

/* ---- changes of one attribute ---- */

enum change { DROPPED, RENAMED, OPERAND, WHOLE, INT_DEFAULT, FLOAT_DEFAULT };
static const struct early {
    const char *op;
    int below;
    enum change change;
    const char *attribute, *name; /* RENAMED: its new name */
    size_t operand;               /* OPERAND: its new position */
    double value;                 /* of the default */
} attributes[] = {
    {.op = "Concat", .below = 4, .change = INT_DEFAULT, .attribute = "axis", .value = 1},
    {.op = "GRU", .below = 7, .change = DROPPED, .attribute = "output_sequence"},
    {.op = "Gemm", .below = 7, .change = DROPPED, .attribute = "broadcast"},
    {.op = "GlobalLpPool", .below = 2, .change = WHOLE, .attribute = "p"},
    {.op = "LSTM", .below = 7, .change = DROPPED, .attribute = "output_sequence"},
    {.op = "LpPool", .below = 2, .change = WHOLE, .attribute = "p"},
    {.op = "Pad", .below = 2, .change = RENAMED, .attribute = "paddings", .name = "pads"},
    {.op = "RNN", .below = 7, .change = DROPPED, .attribute = "output_sequence"},
    {.op = "Reshape", .below = 5, .change = OPERAND, .attribute = "shape", .operand = 1},
    {.op = "Selu", .below = 6, .change = FLOAT_DEFAULT, .attribute = "alpha", .value = 1.6732},
    {.op = "Selu", .below = 6, .change = FLOAT_DEFAULT, .attribute = "gamma", .value = 1.0507},
};

static void make_whole(struct upgrade *s, const char *name)
{
    Onnx__AttributeProto *a = upgrade_remove(s, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (a && !(a->f >= 1 && a->f < 65536))
        fail("%s: %s has %s = %g, expected a number from 1", s->im->path, s->where, name, (double)a->f);
    if (a)
        upgrade_add_int(s, name, (int64_t)a->f);
}

static void change_attribute(struct upgrade *s, const struct early *e)
{
    Onnx__AttributeProto *a = proto_attribute(s->node, e->attribute);
    switch (e->change) {
    case DROPPED: upgrade_take(s->node, e->attribute); break;
    case RENAMED:
        if (a)
            a->name = arena_strdup(s->im->tmp, e->name);
        break;
    case OPERAND: upgrade_ints_to_input(s, e->attribute, e->operand); break;
    case WHOLE: make_whole(s, e->attribute); break;
    case INT_DEFAULT:
        if (!a)
            upgrade_add_int(s, e->attribute, (int64_t)e->value);
        break;
    case FLOAT_DEFAULT:
        if (!a)
            upgrade_add_float(s, e->attribute, (float)e->value);
        break;
    }
}

/* ---- broadcasting ---- */

static char *one_of(struct upgrade *s, const char *op, char *a, char *b)
{
    return upgrade_helper(s, op, op, b ? 2 : 1, (char *[]){a, b}, NULL, 0);
}

static char *number(struct upgrade *s, int64_t k)
{
    return name_scope_ints(s->im, s->scope, "number", 1, &k);
}

static char *rank_of(struct upgrade *s, char *x)
{
    return one_of(s, "Shape", one_of(s, "Shape", x, NULL), NULL);
}

/* Appends ones to the dimensions of operand 1, so that they begin at this axis of operand 0; counted from the end if it is negative. */
static void align_second(struct upgrade *s, int64_t axis)
{
    if (s->node->n_input != 2 || !*s->node->input[0] || !*s->node->input[1])
        fail("%s: %s has %zu operands, expected 2", s->im->path, s->where, s->node->n_input);
    char *a = s->node->input[0], *b = s->node->input[1];
    char *end = axis < 0 ? number(s, -axis) : one_of(s, "Sub", rank_of(s, a), number(s, axis));
    char *more = one_of(s, "Max", one_of(s, "Sub", end, rank_of(s, b)), number(s, 0));
    char *ones = one_of(s, "Expand", number(s, 1), more);
    char *shape = upgrade_helper(s, "Concat", "aligned_shape", 2, (char *[]){one_of(s, "Shape", b, NULL), ones}, "axis", 0);
    char **in = NEWN(s->im->tmp, char *, 2);
    in[0] = a;
    in[1] = one_of(s, "Reshape", b, shape);
    s->node->input = in;
}

static void broadcast(struct upgrade *s)
{
    const Onnx__AttributeProto *axis = upgrade_remove(s, "axis", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    const Onnx__AttributeProto *on = upgrade_remove(s, "broadcast", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (axis && on && on->i)
        align_second(s, axis->i);
}

/* One slope for each channel, or one. */
static void prelu(struct upgrade *s)
{
    align_second(s, 1);
}

/* ---- other forms ---- */

static void cast(struct upgrade *s)
{
    const Onnx__AttributeProto *to = upgrade_remove(s, "to", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    const char *name = to ? arena_strndup(s->im->tmp, (const char *)to->s.data, to->s.len) : "";
    const ProtobufCEnumValue *type = protobuf_c_enum_descriptor_get_value_by_name(&onnx__tensor_proto__data_type__descriptor, name);
    if (!type)
        fail("%s: %s has to = '%s', which is no element type", s->im->path, s->where, name);
    upgrade_add_int(s, "to", type->value);
}

/* Operands input, tiles, axis: repeats along one axis. */
static void tile(struct upgrade *s)
{
    const struct value *axis = s->node->n_input == 3 ? name_scope_find(s->scope, s->node->input[2]) : NULL;
    if (!axis || !axis->constant || constant_elements(axis->constant) != 1)
        fail("%s: %s is in the form of opset %d, expected operands input, tiles and a constant axis", s->im->path, s->where, s->opset);
    double along = constant_float(axis->constant, axis->name, 0);
    if (!(along >= 0 && along < MAX_RANK))
        fail("%s: %s has axis %g, expected 0 to %d", s->im->path, s->where, along, MAX_RANK - 1);
    int64_t k = (int64_t)along, all[MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    char *x = s->node->input[0], *before = name_scope_ints(s->im, s->scope, "before", (size_t)k, all);
    char *behind = one_of(s, "Expand", number(s, 1), one_of(s, "Sub", rank_of(s, x), number(s, k + 1)));
    char *tiles = one_of(s, "Reshape", s->node->input[1], number(s, 1)), **in = NEWN(s->im->tmp, char *, 2);
    in[0] = x;
    in[1] = upgrade_helper(s, "Concat", "repeats", 3,
                           (char *[]){before, upgrade_helper(s, "Cast", "tiles", 1, &tiles, "to", DT_I64), behind}, "axis", 0);
    s->node->input = in;
    s->node->n_input = 2;
}

/* In test mode only the first result exists. */
static void batchnorm(struct upgrade *s)
{
    const Onnx__AttributeProto *test = upgrade_remove(s, "is_test", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (test && test->i)
        upgrade_withhold_results(s, 1);
}

static const struct {
    const char *op;
    int below;
    void (*run)(struct upgrade *);
} forms[] = {
    {"Add", 7, broadcast},     {"And", 7, broadcast},  {"BatchNormalization", 7, batchnorm},
    {"Cast", 6, cast},         {"Div", 7, broadcast},  {"Equal", 7, broadcast},
    {"Greater", 7, broadcast}, {"Less", 7, broadcast}, {"Mul", 7, broadcast},
    {"Or", 7, broadcast},      {"PRelu", 7, prelu},    {"Pow", 7, broadcast},
    {"Sub", 7, broadcast},     {"Tile", 6, tile},      {"Xor", 7, broadcast},
};

void upgrade_early(struct upgrade *s)
{
    const char *op = s->node->op_type;
    if (s->opset < 6)
        upgrade_take(s->node, "consumed_inputs");
    for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
        if (strcmp(op, attributes[i].op) == 0 && s->opset < attributes[i].below)
            change_attribute(s, &attributes[i]);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        if (strcmp(op, forms[i].op) == 0 && s->opset < forms[i].below)
            forms[i].run(s);
}
