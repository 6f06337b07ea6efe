/* changes: the table of changes. Each function walks what it may change in one order, and changes number k. */
#include "job/io/io.h"
#include "kern/kern.h"
#include "op/op.h"
#include "tests/variants/variants.h"

#include <string.h>

static bool nothing(struct graph *g, int k)
{
    (void)g;
    return k == 0;
}

/* ---- operands ---------------------------------------------------------------------------------------------------------------------- */

static bool exchange(struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (n->nin != 2 || k-- > 0)
            continue;
        struct value *first = n->in[0];
        n->in[0] = n->in[1];
        n->in[1] = first;
        return true;
    }
    return false;
}

/* One operand is another one, too. */
static bool repeat(struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int from = 0; from < g->nodes.at[i]->nin; from++)
            for (int to = 0; to < g->nodes.at[i]->nin; to++) {
                struct node *n = g->nodes.at[i];
                if (to == from || !n->in[from] || !n->in[to] || k-- > 0)
                    continue;
                n->in[to] = n->in[from];
                return true;
            }
    return false;
}

static bool leave_out(struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        int last = n->nin - 1;
        if (!n->op || last < 0 || last >= n->op->nin || !n->op->in[last].optional || k-- > 0)
            continue;
        n->nin--;
        return true;
    }
    return false;
}

static struct value *new_input(struct graph *g, const struct type *t)
{
    struct value *v = graph_value(g, "another", t);
    VEC_PUSH(g->arena, &g->inputs, v);
    return v;
}

/* An operand that is an input, or a constant, is one of its own. */
static bool another(struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int at = 0; at < g->nodes.at[i]->nin; at++) {
            struct node *n = g->nodes.at[i];
            if (!n->in[at] || n->in[at]->producer || k-- > 0)
                continue;
            n->in[at] = new_input(g, &n->in[at]->type);
            return true;
        }
    return false;
}

/* ---- readers ------------------------------------------------------------------------------------------------------------------------ */

static struct value *result_number(const struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int r = 0; r < g->nodes.at[i]->nout; r++) {
            struct value *v = g->nodes.at[i]->out[r];
            if (v && !v->output && k-- == 0)
                return v;
        }
    return NULL;
}

static bool read_again(struct graph *g, int k)
{
    struct value *v = result_number(g, k);
    struct type untyped = {.dtype = DT_NONE};
    if (!v)
        return false;
    struct node *n = graph_node(g, op_find("", "Abs"), "again", 1, &v, 1);
    node_output(g, n, 0, graph_value(g, "again", &untyped));
    graph_append(g, n);
    graph_add_output(g, n->out[0]);
    return true;
}

static bool put_out(struct graph *g, int k)
{
    struct value *v = result_number(g, k);
    if (v)
        graph_add_output(g, v);
    return v != NULL;
}

/* ---- numbers and types ------------------------------------------------------------------------------------------------------- */

static struct tensor tensor_of(const struct value *v)
{
    struct constant *c = v->constant;
    struct tensor t = {.dtype = c->dtype, .rank = c->rank, .data = (void *)(uintptr_t)constant_data(c, v->name)};
    memcpy(t.dim, c->dim, sizeof t.dim);
    return t;
}

/* The constant in another type, plus `add` at its first element. */
static void convert(struct graph *g, struct value *v, enum dtype to, double add)
{
    struct tensor from = tensor_of(v), into = from;
    const char *origin = v->constant->origin;
    into.dtype = to;
    into.data = arena_alloc(g->arena, tensor_bytes(&into) + 1);
    for (int64_t i = 0; i < tensor_elements(&from); i++)
        tensor_put(&into, i, tensor_element(&from, i) + (i == 0 ? add : 0));
    v->constant = graph_constant(g, v->name, to, from.rank, from.dim, into.data)->constant;
    v->constant->origin = origin;
    v->type.dtype = to;
}

static bool is_plain(const struct value *v)
{
    return v->constant && v->constant->dtype != DT_STRING && dtype_size(v->constant->dtype) > 0 && constant_elements(v->constant) > 0;
}

static bool number_off(struct graph *g, int k, double by)
{
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (!is_plain(v) || v->constant->dtype == DT_BOOL || (by < 1 && !dtype_is_float(v->constant->dtype)) || k-- > 0)
            continue;
        convert(g, v, v->constant->dtype, by);
        return true;
    }
    return false;
}

static bool one_more(struct graph *g, int k)
{
    return number_off(g, k, 1);
}

static bool slightly_off(struct graph *g, int k)
{
    return number_off(g, k, 0.0625);
}

/* All f32 in another type. */
static bool other_floats(struct graph *g, int k)
{
    static const enum dtype types[] = {DT_F16, DT_BF16, DT_F64};
    if (k >= (int)(sizeof types / sizeof *types))
        return false;
    for (int i = 0, n = g->values.n; i < n; i++) {
        struct value *v = g->values.at[i];
        if (is_plain(v) && v->constant->dtype == DT_F32)
            convert(g, v, types[k], 0);
        else if (v->type.dtype == DT_F32)
            v->type.dtype = types[k];
    }
    return true;
}

/* All bytes with, or without, a sign. */
static bool other_bytes(struct graph *g, int k)
{
    bool some = false;
    for (int i = 0, n = g->values.n; k == 0 && i < n; i++) {
        struct value *v = g->values.at[i];
        enum dtype t = v->type.dtype, to = t == DT_U8 ? DT_I8 : DT_U8;
        if (t != DT_U8 && t != DT_I8)
            continue;
        some = true;
        if (is_plain(v))
            convert(g, v, to, 0);
        else
            v->type.dtype = to;
    }
    return some;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------------- */

static bool resize(struct graph *g, int k, const struct dim *(*size)(struct graph *, const struct dim *))
{
    for (int i = 0; i < g->inputs.n; i++)
        for (int d = 0; d < g->inputs.at[i]->type.rank; d++) {
            struct type *t = &g->inputs.at[i]->type;
            if (k-- > 0)
                continue;
            t->dim[d] = size(g, t->dim[d]);
            return true;
        }
    return false;
}

static const struct dim *one(struct graph *g, const struct dim *d)
{
    (void)d;
    return dim_int(g->alg, 1);
}

static const struct dim *longer(struct graph *g, const struct dim *d)
{
    return dim_add(g->alg, d, dim_int(g->alg, 1));
}

static bool size_one(struct graph *g, int k)
{
    return resize(g, k, one);
}

static bool size_longer(struct graph *g, int k)
{
    return resize(g, k, longer);
}

/* ---- attributes -------------------------------------------------------------------------------------------------------------- */

static struct node *node_of_attr(struct graph *g, int *k, enum attr_kind kind, struct attr **a)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int at = 0; at < g->nodes.at[i]->nattr; at++) {
            *a = &g->nodes.at[i]->attr[at];
            if ((*a)->kind == kind && (*k)-- == 0)
                return g->nodes.at[i];
        }
    return NULL;
}

static bool integer_by(struct graph *g, int k, int64_t by)
{
    struct attr *a;
    if (!node_of_attr(g, &k, ATTR_INT, &a))
        return false;
    a->i = a->set ? a->i + by : by;
    a->set = true;
    return true;
}

static bool next_integer(struct graph *g, int k)
{
    return integer_by(g, k, 1);
}

static bool last_integer(struct graph *g, int k)
{
    return integer_by(g, k, -1);
}

static bool other_float(struct graph *g, int k)
{
    struct attr *a;
    if (!node_of_attr(g, &k, ATTR_FLOAT, &a))
        return false;
    a->f = a->set ? a->f + 0.5 : 0.5;
    a->set = true;
    return true;
}

/* Lists of integers: one of them is one more; one that is not set begins with 2, as strides and dilations may. */
static bool other_integers(struct graph *g, int k)
{
    for (int i = 0; i < g->nodes.n; i++)
        for (int at = 0; at < g->nodes.at[i]->nattr; at++) {
            struct attr *a = &g->nodes.at[i]->attr[at];
            int n = a->kind != ATTR_INTS ? 0 : a->set ? a->n : 2;
            if (k >= n) {
                k -= n;
                continue;
            }
            int64_t *list = NEWN(g->arena, int64_t, n);
            for (int e = 0; e < n; e++)
                list[e] = (a->set ? a->ints[e] : 1) + (e == k);
            attr_set_ints(g, g->nodes.at[i], a->name, n, list);
            return true;
        }
    return false;
}

static bool other_word(struct graph *g, int k)
{
    static const struct {
        const char *attr, *words[5];
    } table[] = {{"reduction", {"none", "add", "mul", "max", "min"}},
                 {"approximate", {"none", "tanh"}},
                 {"auto_pad", {"VALID", "SAME_UPPER", "SAME_LOWER"}},
                 {"mode", {"nearest", "linear", "cubic", "edge", "reflect"}},
                 {"coordinate_transformation_mode", {"asymmetric", "align_corners", "tf_crop_and_resize", "half_pixel"}}};
    for (int i = 0; i < g->nodes.n; i++)
        for (size_t row = 0; row < sizeof table / sizeof *table; row++)
            for (int at = 0; at < g->nodes.at[i]->nattr; at++)
                for (int word = 0; word < 5 && table[row].words[word]; word++) {
                    struct attr *a = &g->nodes.at[i]->attr[at];
                    if (strcmp(a->name, table[row].attr) != 0 || k-- > 0)
                        continue;
                    attr_set_string(g->nodes.at[i], a->name, table[row].words[word]);
                    return true;
                }
    return false;
}

const struct change changes[] = {{"as it is", nothing},
                                 {"operands exchanged", exchange},
                                 {"one operand twice", repeat},
                                 {"an operand left out", leave_out},
                                 {"another input", another},
                                 {"another reader", read_again},
                                 {"one more output", put_out},
                                 {"a number plus one", one_more},
                                 {"a number slightly off", slightly_off},
                                 {"other floats", other_floats},
                                 {"other bytes", other_bytes},
                                 {"a dimension of size one", size_one},
                                 {"a longer dimension", size_longer},
                                 {"an integer plus one", next_integer},
                                 {"an integer minus one", last_integer},
                                 {"another float", other_float},
                                 {"another list", other_integers},
                                 {"another word", other_word},
                                 {NULL, NULL}};
