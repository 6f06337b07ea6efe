/* Sequences and optionals, which the IR does not have. If the file gives the length of a sequence, as exporters write it, the sequence is a
 * list of values. Elements that a Loop appends are one stacked tensor. Parts of a tensor, whose number may be unknown, are slices. Ops that
 * make sequences only record this. Their nodes are left without readers. If something still reads one, it is refused, because it has no
 * row. */
#include "onnx/compose/compose.h"

#include <string.h>

enum { MOST_PARTS = 4096 };

/* ---- what is known ---------------------------------------------------------------------------------------------------------------- */

static struct value *operand(const struct composer *c, size_t i)
{
    return compose_has(c->node, i) ? name_scope_find(c->scope, c->node->input[i]) : NULL;
}

/* NULL: not a known sequence of this graph. */
static const struct sequence *sequence_of(struct composer *c, size_t i)
{
    return compose_sequence_find(c->im, operand(c, i));
}

static const struct sequence *list_of(struct composer *c, size_t i)
{
    const struct sequence *s = sequence_of(c, i);
    return s && s->kind == SEQUENCE_LIST ? s : NULL;
}

static void note(struct composer *c, size_t result, struct sequence made)
{
    if (compose_gives(c->node, result))
        compose_sequence_note(c->im, name_scope_read(c->im, c->scope, c->node->output[result], c->where), made);
}

static struct sequence list_new(struct composer *c, size_t n)
{
    return (struct sequence){.kind = SEQUENCE_LIST, .n = n, .at = NEWN(c->im->tmp, struct value *, n + 1)};
}

/* A name for a value. */
static char *name_of(struct composer *c, struct value *v)
{
    char *name = name_scope_fresh(c->im, v->name);
    name_scope_bind(c->im, c->scope, name, v);
    return name;
}

static char **names_of(struct composer *c, const struct sequence *s)
{
    char **list = NEWN(c->im->tmp, char *, s->n + 1);
    for (size_t i = 0; i < s->n; i++)
        list[i] = name_of(c, s->at[i]);
    return list;
}

/* Sizes or an index that the file states, or a bound input. */
static struct value *stated(struct composer *c, size_t i)
{
    struct value *v = operand(c, i);
    if (v && !v->constant)
        (void)sequence_bind_input(c->im, v);
    bool whole = v && v->constant && (v->constant->dtype == DT_I64 || v->constant->dtype == DT_I32);
    return whole && v->constant->rank <= 1 && constant_elements(v->constant) > 0 ? v : NULL;
}

/* The position that operand i states among n, `otherwise` if it is absent; false: unknown. */
static bool position_of(struct composer *c, size_t i, size_t n, int64_t otherwise, int64_t *at)
{
    struct value *v = stated(c, i);
    *at = v ? constant_int(v->constant, v->name, 0) : otherwise;
    if (!v && compose_has(c->node, i))
        return false;
    *at += *at < 0 ? (int64_t)n : 0;
    if (*at < 0 || *at >= (int64_t)n)
        fail("%s: %s asks for element %lld of %zu", c->im->path, c->where, (long long)*at, n);
    return true;
}

/* ---- making them ------------------------------------------------------------------------------------------------------------------ */

static void sequence_empty(struct composer *c)
{
    note(c, 0, list_new(c, 0));
}

static void sequence_construct(struct composer *c)
{
    struct sequence made = list_new(c, c->node->n_input);
    for (size_t i = 0; i < made.n; i++)
        made.at[i] = name_scope_read(c->im, c->scope, compose_input(c, i), c->where);
    note(c, 0, made);
}

static void sequence_insert(struct composer *c)
{
    const struct sequence *s = list_of(c, 0);
    int64_t at;
    if (!s || s->n >= MOST_PARTS || !position_of(c, 2, s->n + 1, (int64_t)s->n, &at))
        return;
    struct sequence made = list_new(c, s->n + 1);
    for (size_t i = 0; i < made.n; i++)
        made.at[i] = i == (size_t)at ? name_scope_read(c->im, c->scope, compose_input(c, 1), c->where) : s->at[i - (i > (size_t)at)];
    note(c, 0, made);
}

static void sequence_erase(struct composer *c)
{
    const struct sequence *s = list_of(c, 0);
    int64_t at;
    if (!s || !position_of(c, 1, s->n, (int64_t)s->n - 1, &at))
        return;
    struct sequence made = list_new(c, s->n - 1);
    for (size_t i = 0; i < made.n; i++)
        made.at[i] = s->at[i + (i >= (size_t)at)];
    note(c, 0, made);
}

/* The parts as the results of a Split. squeeze: without the axis, whose size is 1. */
static void split_into_list(struct composer *c, int64_t axis, size_t n, const int64_t *size, bool squeeze)
{
    struct sequence made = list_new(c, n);
    char **part = NEWN(c->im->tmp, char *, n + 1), *axes = name_scope_ints(c->im, c->scope, "axis", 1, &axis);
    char *in[2] = {compose_input(c, 0), name_scope_ints(c->im, c->scope, "sizes", n, size)};
    Onnx__AttributeProto *along = compose_int(c, "axis", axis);
    part[0] = compose_node_of(c, "Split", 2, in, 1, &along, n, part + 1);
    for (size_t i = 0; i < n; i++)
        made.at[i] = name_scope_read(c->im, c->scope, squeeze ? compose_op(c, "Squeeze", part[i], axes) : part[i], c->where);
    note(c, 0, made);
}

/* The size of dimension axis of operand 0, if the file states it. */
static bool extent_of(struct composer *c, int64_t axis, int64_t *n)
{
    const struct value *v = operand(c, 0);
    const struct type *t = v && v->type.dtype != DT_NONE ? &v->type : NULL;
    axis += t && axis < 0 ? t->rank : 0;
    return t && axis >= 0 && axis < t->rank && dim_is_int(t->dim[axis], n);
}

/* Chunks of equal size; the last may be smaller. */
static bool split_chunks(struct composer *c, int64_t axis, int64_t chunk, bool squeeze)
{
    int64_t extent;
    if (!extent_of(c, axis, &extent) || chunk < 1 || extent < 1 || (extent - 1) / chunk + 1 > MOST_PARTS)
        return false;
    size_t n = (size_t)((extent - 1) / chunk + 1);
    int64_t *size = NEWN(c->im->tmp, int64_t, n);
    for (size_t i = 0; i < n; i++)
        size[i] = i + 1 < n ? chunk : extent - (int64_t)(n - 1) * chunk;
    split_into_list(c, axis, n, size, squeeze);
    return true;
}

static void split_by(struct composer *c, int64_t axis, const struct value *sizes)
{
    int64_t n = constant_elements(sizes->constant), *size = n > MOST_PARTS ? NULL : NEWN(c->im->tmp, int64_t, n);
    for (int64_t i = 0; size && i < n; i++)
        size[i] = constant_int(sizes->constant, sizes->name, i);
    if (size)
        split_into_list(c, axis, (size_t)n, size, false);
}

static void split_to_sequence(struct composer *c)
{
    struct value *sizes = stated(c, 1), *x = operand(c, 0);
    int64_t axis = compose_int_of(c->node, "axis", 0);
    if (!x || !compose_gives(c->node, 0) || (!sizes && compose_has(c->node, 1)))
        return;
    if (!sizes) {
        (void)split_chunks(c, axis, 1, compose_int_of(c->node, "keepdims", 1) == 0);
        return;
    }
    if (sizes->constant->rank == 1) {
        split_by(c, axis, sizes);
        return;
    }
    if (split_chunks(c, axis, constant_int(sizes->constant, sizes->name, 0), false))
        return;
    struct value **of = NEWN(c->im->tmp, struct value *, 1);
    of[0] = x;
    note(c, 0, (struct sequence){.kind = SEQUENCE_PARTS, .at = of, .axis = axis, .chunk = constant_int(sizes->constant, sizes->name, 0)});
}

/* ---- reading them ----------------------------------------------------------------------------------------------------------------- */

/* The last chunk may be shorter. */
static void part_at(struct composer *c, const struct sequence *s)
{
    struct value *index = stated(c, 1);
    int64_t i = index ? constant_int(index->constant, index->name, 0) : -1, start, stop;
    if (i < 0)
        return;
    if (s->chunk < 1 || !i64_mul(i, s->chunk, &start) || !i64_add(start, s->chunk, &stop))
        fail("%s: %s asks for a part of no proper size", c->im->path, c->where);
    compose_become(c, "Slice", 4,
                   (char *[]){name_of(c, s->at[0]), name_scope_ints(c->im, c->scope, "starts", 1, &start),
                              name_scope_ints(c->im, c->scope, "ends", 1, &stop), name_scope_ints(c->im, c->scope, "axes", 1, &s->axis)});
}

static void sequence_at(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    int64_t i;
    if (s && s->kind == SEQUENCE_PARTS)
        part_at(c, s);
    if (s && s->kind == SEQUENCE_STACK)
        compose_become(c, "Gather", 2, (char *[]){name_of(c, s->at[0]), compose_input(c, 1)});
    if (s && s->kind == SEQUENCE_LIST && stated(c, 1) && position_of(c, 1, s->n, 0, &i))
        compose_become(c, "Identity", 1, (char *[]){name_of(c, s->at[i])});
}

static void sequence_length(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    int64_t zero = 0;
    char *axis = name_scope_ints(c->im, c->scope, "axis", 1, &zero), *in[2] = {NULL, axis};
    if (s && s->kind == SEQUENCE_LIST) {
        Onnx__AttributeProto *length = compose_int(c, "value_int", (int64_t)s->n);
        compose_become_with(c, "Constant", 0, NULL, 1, &length);
    } else if (s && s->kind == SEQUENCE_STACK) {
        Onnx__AttributeProto *end = compose_int(c, "end", 1);
        in[0] = compose_node_of(c, "Shape", 1, (char *[]){name_of(c, s->at[0])}, 1, &end, 1, NULL);
        compose_become(c, "Squeeze", 2, in);
    }
}

/* Concatenated along an existing axis, or stacked along a new one. */
static void concat_list(struct composer *c, const struct sequence *s, int64_t axis, bool new)
{
    char **in = names_of(c, s), *axes = name_scope_ints(c->im, c->scope, "axis", 1, &axis);
    Onnx__AttributeProto *along = compose_int(c, "axis", axis);
    if (s->n == 0)
        fail("%s: %s concatenates a sequence without elements", c->im->path, c->where);
    for (size_t i = 0; new &&i < s->n; i++)
        in[i] = compose_op(c, "Unsqueeze", in[i], axes);
    compose_become_with(c, "Concat", s->n, in, 1, &along);
}

/* Only dimension 0 is the number of elements. */
static void concat_stack(struct composer *c, const struct sequence *s, int64_t axis, bool new)
{
    char *stack = name_of(c, s->at[0]);
    int64_t open = -1;
    Onnx__AttributeProto *start = compose_int(c, "start", 2), *along = compose_int(c, "axis", 0);
    if (axis != 0)
        return;
    if (new) {
        compose_become(c, "Identity", 1, &stack);
        return;
    }
    char *rest = compose_node_of(c, "Shape", 1, &stack, 1, &start, 1, NULL);
    char *both[2] = {name_scope_ints(c->im, c->scope, "all", 1, &open), rest};
    compose_become(c, "Reshape", 2, (char *[]){stack, compose_node_of(c, "Concat", 2, both, 1, &along, 1, NULL)});
}

static void concat_from_sequence(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    int64_t axis = compose_int_of(c->node, "axis", 0);
    bool new = compose_int_of(c->node, "new_axis", 0) != 0;
    if (s && s->kind == SEQUENCE_LIST)
        concat_list(c, s, axis, new);
    if (s && s->kind == SEQUENCE_STACK)
        concat_stack(c, s, axis, new);
}

/* Runs the body for each element; an operand that is not a sequence is the same in all. */
static void sequence_map(struct composer *c)
{
    const struct sequence *first = list_of(c, 0);
    size_t nin = c->node->n_input, nout = c->node->n_output;
    if (!first || first->n > MOST_PARTS)
        return;
    struct sequence *made = NEWN(c->im->tmp, struct sequence, nout + 1);
    char **in = NEWN(c->im->tmp, char *, nin + 1), **out = NEWN(c->im->tmp, char *, nout + 1);
    for (size_t k = 0; k < nout; k++)
        made[k] = list_new(c, first->n);
    for (size_t i = 0; i < first->n; i++) {
        for (size_t k = 0; k < nin; k++) {
            const struct sequence *s = list_of(c, k);
            if (s && s->n != first->n)
                fail("%s: %s has sequences of %zu and %zu elements", c->im->path, c->where, first->n, s->n);
            in[k] = s ? name_of(c, s->at[i]) : compose_input(c, k);
        }
        compose_body(c, "body", nin, in, nout, out);
        for (size_t k = 0; k < nout; k++)
            made[k].at[i] = name_scope_read(c->im, c->scope, out[k], c->where);
    }
    for (size_t k = 0; k < nout; k++)
        note(c, k, made[k]);
    c->node->n_attribute = 0; /* nodes without readers must not have a body that captures */
}

/* ---- optionals -------------------------------------------------------------------------------------------------------------------- */

static bool is_tensor(const struct value *v)
{
    return v && (v->constant || v->type.dtype != DT_NONE || (v->producer && v->producer->op));
}

/* A sequence passes through unchanged; a tensor is the result itself. */
static void pass_on(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    const struct value *v = operand(c, 0);
    if (s)
        note(c, 0, *s);
    else if (is_tensor(v))
        compose_become(c, "Identity", 1, (char *[]){compose_input(c, 0)});
}

static void optional(struct composer *c)
{
    if (compose_has(c->node, 0))
        pass_on(c);
    else
        note(c, 0, (struct sequence){.kind = SEQUENCE_ABSENT});
}

static void optional_has_element(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    const struct value *v = operand(c, 0);
    bool there = compose_has(c->node, 0) && !(s && s->kind == SEQUENCE_ABSENT);
    if (there && !s && !is_tensor(v))
        return;
    Onnx__AttributeProto *is = compose_truth(c, "value", there);
    compose_become_with(c, "Constant", 0, NULL, 1, &is);
}

/* ---- loops ------------------------------------------------------------------------------------------------------------------------ */

/* The tensor of all elements replaces the sequence result, under its name. */
static void loop(struct composer *c)
{
    if (sequence_unroll(c))
        return;
    for (size_t k = c->node->n_input > 2 ? c->node->n_input - 2 : 0; k-- > 0;) {
        const struct sequence *s = list_of(c, k + 2);
        char *element, *stack = compose_gives(c->node, k) ? c->node->output[k] : name_scope_fresh(c->im, "stack");
        if (!s || s->n > 0 || !sequence_is_appended(c->node, k, &element))
            continue;
        struct value **at = NEWN(c->im->tmp, struct value *, 1);
        at[0] = name_scope_read(c->im, c->scope, stack, c->where);
        note(c, k, (struct sequence){.kind = SEQUENCE_STACK, .at = at});
        sequence_to_scan(c, k, element, stack);
    }
}

static void identity(struct composer *c)
{
    const struct sequence *s = sequence_of(c, 0);
    if (s)
        note(c, 0, *s);
}

const struct composition compose_list_sequence[] = {
    {"", "ConcatFromSequence", 11, "Unsqueeze, Concat, Shape, Reshape, Identity", concat_from_sequence, NULL, NULL},
    {"", "Identity", 13, "Identity", identity, NULL, NULL},
    {"", "If", 11, "If, Identity, SequenceConstruct", sequence_branch, NULL, NULL},
    {"", "Loop", 11, "Loop, Unsqueeze, Concat, Identity, SequenceConstruct", loop, NULL, NULL},
    {"", "Optional", 15, "Identity", optional, NULL, NULL},
    {"", "OptionalGetElement", 15, "Identity", pass_on, NULL, NULL},
    {"", "OptionalHasElement", 15, "Constant", optional_has_element, NULL, NULL},
    {"", "SequenceAt", 11, "Slice, Gather, Identity", sequence_at, NULL, NULL},
    {"", "SequenceConstruct", 11, "nothing", sequence_construct, NULL, NULL},
    {"", "SequenceEmpty", 11, "nothing", sequence_empty, NULL, NULL},
    {"", "SequenceErase", 11, "nothing", sequence_erase, NULL, NULL},
    {"", "SequenceInsert", 11, "nothing", sequence_insert, NULL, NULL},
    {"", "SequenceLength", 11, "Constant, Shape, Squeeze", sequence_length, NULL, NULL},
    {"", "SequenceMap", 17, "nothing", sequence_map, NULL, NULL},
    {"", "SplitToSequence", 11, "Split, Squeeze", split_to_sequence, NULL, NULL},
    {NULL, NULL, 0, NULL, NULL, NULL, NULL},
};
