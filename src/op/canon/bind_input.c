/* bind_input: graph inputs that --bind fixes to constants. Nodes that depend only on these fold away. The metadata lists the former inputs,
 * so that a run that gives another value fails. */
#include "base/half.h"
#include "ir/rank_meta.h"
#include "op/canon/canon.h"
#include "op/control/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- values from text ---------------------------------------------------------------------------------------------------------- */

static bool float_parse(enum dtype dtype, const char *text, uint8_t *to)
{
    char *end;
    double d = strtod(text, &end);
    float f = strtof(text, NULL);
    uint16_t half = dtype == DT_F16 ? f32_to_f16(f) : f32_to_bf16(f);
    if (dtype == DT_F64)
        memcpy(to, &d, sizeof d);
    else
        memcpy(to, dtype == DT_F32 ? (const void *)&f : (const void *)&half, dtype_size(dtype));
    return end != text && !*end;
}

static bool integer_parse(enum dtype dtype, const char *text, uint8_t *to)
{
    int64_t lo, hi, k;
    dtype_range(dtype, &lo, &hi);
    bool fits = i64_parse(text, lo, hi, &k);
    if (fits)
        memcpy(to, &k, dtype_size(dtype));
    return fits;
}

static bool bool_parse(const char *text, uint8_t *to)
{
    *to = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *to || strcmp(text, "false") == 0 || strcmp(text, "0") == 0;
}

static bool string_parse(const char *text, uint8_t *to)
{
    bool valid = !string_fault(text, strlen(text));
    int64_t number = valid ? string_number(text, strlen(text)) : 0;
    memcpy(to, &number, sizeof number);
    return valid;
}

static bool element_parse(enum dtype dtype, const char *text, uint8_t *to)
{
    if (dtype == DT_STRING)
        return string_parse(text, to);
    if (dtype == DT_BOOL)
        return bool_parse(text, to);
    return dtype_is_float(dtype) ? float_parse(dtype, text, to) : integer_parse(dtype, text, to);
}

static int64_t count_values(const char *values)
{
    int64_t n = 1;
    for (const char *c = values; *c; c++)
        n += *c == ',';
    return n;
}

void *op_bound_data(struct arena *arena, const char *name, enum dtype dtype, const char *values, int64_t *n)
{
    size_t size = dtype_size(dtype);
    if (!size || dtype == DT_U64 || dtype_is_small_float(dtype))
        fail("--bind: input '%s' is %s, whose values can't be given as text", name, dtype_name(dtype));
    *n = count_values(values);
    uint8_t *data = arena_array(arena, (size_t)*n, size), *to = data;
    for (const char *at = values;; at++, to += size) {
        size_t length = strcspn(at, ",");
        const char *one = arena_strndup(arena, at, length);
        if (!element_parse(dtype, one, to))
            fail_usage("--bind gives '%s' the value '%s', expected one of type %s", name, one, dtype_name(dtype));
        at += length;
        if (!*at)
            return data;
    }
}

/* ---- the input ------------------------------------------------------------------------------------------------------------------- */

static int input_named(const struct graph *g, const char *name)
{
    const char **names = NEWN(g->arena, const char *, g->inputs.n + 1);
    for (int i = 0; i < g->inputs.n; i++) {
        names[i] = g->inputs.at[i]->name;
        if (strcmp(names[i], name) == 0)
            return i;
    }
    if (!g->inputs.n)
        fail("--bind names '%s', and %s has no inputs", name, graph_file(g));
    fail("--bind names '%s', which is no input of %s; the nearest is '%s'", name, graph_file(g),
         names[did_you_mean(name, g->inputs.n, names)]);
}

/* The sizes of n values: one size that the model leaves open may follow from n. */
static void bind_sizes(struct graph *g, struct value *v, int64_t n, int64_t *size)
{
    const struct dim *open = NULL;
    int64_t known = 1, rest = n;
    for (int d = 0; d < v->type.rank; d++) {
        if (!dim_is_int(v->type.dim[d], &size[d])) {
            size[d] = -1;
            rest = open ? -1 : rest;
            open = v->type.dim[d];
        } else if (!i64_mul(known, size[d], &known)) {
            rest = -1;
        }
    }
    bool fits = rest >= 0 && (open ? known > 0 && n % known == 0 : known == n);
    for (int d = 0; fits && d < v->type.rank; d++)
        size[d] = size[d] < 0 ? n / known : size[d];
    if (!fits || (open && alg_equate(g->alg, open, dim_int(g->alg, n / known), "--bind") == EQ_FALSE))
        fail("--bind gives input '%s' of %s %lld values, expected as many as %s has", v->name, graph_file(g), (long long)n,
             type_str(g->arena, &v->type));
}

static void become_constant(struct graph *g, struct value *v, const char *values)
{
    struct constant *c = NEW(g->arena, struct constant);
    int64_t n;
    c->dtype = v->type.dtype;
    c->rank = v->type.rank;
    void *data = op_bound_data(g->arena, v->name, c->dtype, values, &n);
    if (dtype_is_packed(c->dtype))
        dtype_pack(c->dtype, data, n, data);
    c->data = data;
    bind_sizes(g, v, n, c->dim);
    require(dtype_packed_bytes(c->dtype, n, &c->bytes));
    for (int d = 0; d < c->rank; d++)
        v->type.dim[d] = dim_int(g->alg, c->dim[d]);
    v->constant = c;
}

static void remove_input(struct graph *g, int i)
{
    for (g->inputs.n--; i < g->inputs.n; i++)
        g->inputs.at[i] = g->inputs.at[i + 1];
}

void op_bind_input(struct graph *g, const char *text)
{
    const char *equal = strrchr(text, '=');
    if (!equal || equal == text || !equal[1])
        fail_usage("--bind is '%s', expected NAME=VALUE or NAME=VALUE,VALUE...", text);
    const char *name = arena_strndup(g->arena, text, (size_t)(equal - text));
    if (rank_meta_bind(g, name))
        fail_usage("--bind names '%s' twice", name);
    int i = input_named(g, name);
    become_constant(g, g->inputs.at[i], equal + 1);
    remove_input(g, i);
    rank_meta_set_bind(g, name, equal + 1);
}

static bool decides(const struct node *node, int operand)
{
    const struct op *op = node->op;
    if (op && node_bodies(node))
        return operand < control_steering_operands(node) || operand >= node_captured(node, 0);
    return op && op->nin && op->in[operand < op->nin ? operand : op->nin - 1].size;
}

bool op_decides_form(const struct graph *g, const struct value *input)
{
    bool *from = NEWN(g->arena, bool, g->values.n + 1), found = false;
    from[input->id] = true;
    for (int i = 0; i < g->nodes.n && !found; i++) {
        const struct node *node = g->nodes.at[i];
        bool reads = false;
        for (int k = 0; k < node->nin; k++) {
            bool one = node->in[k] && from[node->in[k]->id];
            found = found || (one && decides(node, k));
            reads = reads || one;
        }
        for (int k = 0; reads && k < node->nout; k++)
            if (node->out[k])
                from[node->out[k]->id] = true;
    }
    return found;
}

static bool is_state(const struct graph *g, const struct value *v)
{
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].past == v)
            return true;
    return false;
}

void op_drop_unread(struct graph *g)
{
    const struct uses *uses = graph_uses(g, g->arena);
    for (int i = g->inputs.n - 1; i >= 0; i--) {
        const struct value *v = g->inputs.at[i];
        if (uses[v->id].n || is_state(g, v))
            continue;
        rank_meta_set_unread(g, v->name);
        remove_input(g, i);
    }
}

struct bound_inputs op_bound_inputs(const struct graph *g)
{
    struct bound_inputs all = {{NULL, 0, 0}};
    const char *input, *values;
    for (int i = 0; rank_meta_binds(g, i, &input, &values); i++)
        VEC_PUSH(g->arena, &all.list, arena_printf(g->arena, "%s=%s", input, values));
    return all;
}
