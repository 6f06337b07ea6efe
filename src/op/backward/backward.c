/* backward: parts of backward bodies. */
#include "op/backward/backward.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

struct value *back_dy(const struct backward *b)
{
    return b->dy[0];
}

struct value *back_operand(const struct backward *b, int i)
{
    return i >= 0 ? node_operand(b->l.node, i) : NULL;
}

bool back_wants(const struct backward *b, int i)
{
    return i >= 0 && i < b->l.node->nin && b->want[i];
}

struct value *back_result(struct backward *b, int i)
{
    struct node *node = b->l.node;
    if (node_result(node, i))
        return node->out[i];
    if (i >= node->nout) {
        struct value **out = NEWN(b->l.g->arena, struct value *, i + 1);
        memcpy(out, node->out, sizeof(*out) * (size_t)node->nout);
        node->out = out;
        node->nout = i + 1;
    }
    node_output(b->l.g, node, i, graph_value(b->l.g, arena_printf(b->l.g->arena, "%s.%d", node->name, i), NULL));
    op_infer(b->l.g, node);
    return node->out[i];
}

/* ---- parts ---------------------------------------------------------------------------------------------------------------- */

struct value *back_unary(struct backward *b, const char *op, struct value *x)
{
    return lower_unary(&b->l, op, op, x);
}

struct value *back_binary(struct backward *b, const char *op, struct value *x, struct value *y)
{
    return lower_binary(&b->l, op, op, x, y);
}

struct node *back_node(struct backward *b, const char *op, int nin, struct value *const *in)
{
    struct node *node = graph_node(b->l.g, op_find("", op), arena_printf(b->l.g->arena, "%s/%s", b->l.name, op), nin, in, 1);
    node_output(b->l.g, node, 0, graph_value(b->l.g, node->name, NULL));
    VEC_PUSH(b->l.g->arena, &b->l.nodes, node);
    return node;
}

struct value *back_infer(struct backward *b, struct node *node)
{
    op_infer(b->l.g, node);
    return node->out[0];
}

/* In types that lower_scalar does not write, a Cast of an f32 number. */
struct value *back_number(struct backward *b, const struct value *x, double number)
{
    enum dtype dtype = x->type.dtype, made = dtype == DT_F16 || dtype == DT_BF16 ? DT_F32 : dtype;
    struct value *v = lower_scalar(&b->l, "number", made, number);
    v->placed = false;
    return lower_cast(&b->l, "number.narrow", v, dtype);
}

struct value *back_with(struct backward *b, const char *op, struct value *x, double number)
{
    return back_binary(b, op, x, back_number(b, x, number));
}

struct value *back_chosen(struct backward *b, struct value *condition, struct value *x)
{
    return lower_where(&b->l, "Where", condition, x, back_number(b, x, 0));
}

/* A node with a given result type. */
static struct value *of_type(struct backward *b, const char *op, struct value *x, const struct type *type)
{
    struct node *node = back_node(b, op, 1, &x);
    node->out[0]->type = *type;
    node->out[0]->type.dtype = x->type.dtype;
    op_infer(b->l.g, node);
    return node->out[0];
}

static bool same_sizes(const struct type *a, const struct type *b)
{
    struct type as = *b;
    as.dtype = a->dtype;
    return type_eq(a, &as);
}

struct value *back_reshape(struct backward *b, struct value *x, const struct type *type)
{
    return same_sizes(&x->type, type) ? x : of_type(b, "Reshape", x, type);
}

struct value *back_expand(struct backward *b, struct value *x, const struct type *type)
{
    return same_sizes(&x->type, type) ? x : of_type(b, "Expand", x, type);
}

struct value *back_zeros(struct backward *b, const struct type *type)
{
    const struct value like = {.type = *type};
    return back_expand(b, back_number(b, &like, 0), type);
}

/* Whether perm reverses the transposition that makes x. */
static bool undoes(const struct graph *g, const struct value *x, const int *perm)
{
    const int64_t *first;
    int rank = x->type.rank;
    if (!op_is_onnx(x->producer, "Transpose") || attr_ints(g, x->producer, "perm", &first) != rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (first[perm[d]] != d)
            return false;
    return true;
}

/* (x y)' = y' x' */
static struct value *turned_product(struct backward *b, const struct node *gemm)
{
    struct node *node = back_node(b, "Gemm", 2, (struct value *[]){gemm->in[1], gemm->in[0]});
    attr_set_int(node, "transA", !attr_int(gemm, "transB"));
    attr_set_int(node, "transB", !attr_int(gemm, "transA"));
    node_attr(node, "alpha")->f = attr_float(gemm, "alpha");
    return back_infer(b, node);
}

struct value *back_transpose(struct backward *b, struct value *x, const int *perm)
{
    const struct node *made = x->producer;
    if (undoes(b->l.g, x, perm))
        return made->in[0];
    if (op_is_onnx(made, "Gemm") && made->nin == 2 && perm[0] == 1)
        return turned_product(b, made);
    struct node *node = back_node(b, "Transpose", 1, &x);
    int64_t at[MAX_RANK];
    for (int d = 0; d < x->type.rank; d++)
        at[d] = perm[d];
    attr_set_ints(b->l.g, node, "perm", x->type.rank, at);
    op_infer(b->l.g, node);
    return node->out[0];
}

struct value *back_turn(struct backward *b, struct value *x)
{
    int perm[MAX_RANK], rank = x->type.rank;
    for (int d = 0; d < rank; d++)
        perm[d] = d;
    perm[rank - 2] = rank - 1;
    perm[rank - 1] = rank - 2;
    return back_transpose(b, x, perm);
}

/* Sums over the axes that are set. */
static struct value *sum_over(struct backward *b, struct value *x, const bool *axis, bool keep)
{
    const struct dim *axes[MAX_RANK];
    int n = 0;
    for (int d = 0; d < x->type.rank; d++)
        if (axis[d])
            axes[n++] = dim_int(b->l.g->alg, d);
    if (n == 0)
        return x;
    struct node *node = back_node(b, "ReduceSum", 1, &x);
    attr_set_dims(b->l.g, node, "axes", n, axes);
    attr_set_int(node, "keepdims", keep);
    op_infer(b->l.g, node);
    return node->out[0];
}

struct value *back_sum(struct backward *b, struct value *x, int from, int to, bool keep)
{
    bool axis[MAX_RANK] = {false};
    for (int d = from; d < to; d++)
        axis[d] = true;
    return sum_over(b, x, axis, keep);
}

struct value *back_unit(struct backward *b, const struct dim *n, enum dtype dtype)
{
    struct value *at = lower_count(&b->l, "at", n), *rows = lower_unsqueeze(&b->l, "rows", at, 1, 1);
    return lower_cast(&b->l, "unit", back_binary(b, "Equal", rows, at), dtype);
}

struct value *back_along(struct backward *b, struct value *g, int d, struct value *m)
{
    int perm[MAX_RANK], last = g->type.rank - 1;
    if (d == last)
        return back_binary(b, "MatMul", g, back_turn(b, m));
    if (d == last - 1)
        return back_binary(b, "MatMul", m, g);
    for (int i = 0; i <= last; i++)
        perm[i] = i == d ? last : i == last ? d : i;
    return back_transpose(b, back_binary(b, "MatMul", back_transpose(b, g, perm), back_turn(b, m)), perm);
}

/* ---- what is asked for ------------------------------------------------------------------------------------------------------- */

/* Sums over the dimensions that were broadcast to make g of such a type. */
static struct value *summed(struct backward *b, struct value *g, const struct type *type)
{
    bool axis[MAX_RANK] = {false};
    int ahead = g->type.rank - type->rank;
    require(ahead >= 0);
    g = back_sum(b, g, 0, ahead, false);
    for (int d = 0; d < type->rank; d++)
        axis[d] = dim_equals(type->dim[d], 1) && !dim_equals(g->type.dim[d], 1);
    return sum_over(b, g, axis, true);
}

/* A data-dependent size may be 1 in one run and not in another; g must then be summed over the broadcast dimension. */
static void check_repeats(struct backward *b, int i, const struct value *g)
{
    struct alg *alg = b->l.g->alg;
    const struct value *x = b->l.node->in[i];
    for (int d = 0; d < x->type.rank; d++) {
        const struct dim *has = dim_rewrite(alg, g->type.dim[d]), *wants = dim_rewrite(alg, x->type.dim[d]);
        if (has != wants && !dim_equals(has, 1) && (dim_has_data(has) || dim_has_data(wants)))
            fail("%s: no gradient passes this node: only data tell whether it repeats '%s' %s along dimension %d",
                 node_where(b->l.g, b->l.node), x->name, type_str(b->l.g->arena, &x->type), d);
    }
}

void back_to(struct backward *b, int i, struct value *g)
{
    if (!back_wants(b, i))
        return;
    const struct type *type = &b->l.node->in[i]->type;
    g = summed(b, g, type);
    check_repeats(b, i, g);
    g = back_expand(b, g, type); /* a gradient may be constant along a dimension */
    b->dx[i] = lower_cast(&b->l, "Cast", g, type->dtype);
}

/* ---- rows without a function of their own ------------------------------------------------------------------------------------ */

/* Small changes of operands change no result. */
void backward_zero(struct backward *b)
{
    (void)b;
}

void back_through(struct backward *b, void (*write)(struct lowering *))
{
    const struct node *node = b->l.node;
    struct graph *g = b->l.g;
    struct node *again = lower_copy_of(g, node, arena_printf(g->arena, "%s/again", b->l.name), node->nin, node->in);
    struct lowering body = {.g = g, .node = again, .name = again->name};
    write(&body);
    struct gradients inner = gradients_new(g, "back");
    for (int i = 0; i < node->nin; i++)
        if (node->in[i])
            inner.active[node->in[i]->id] = b->want[i];
    gradients_activate(&inner, body.nodes.n, body.nodes.at);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && b->dy[i])
            gradients_add(&inner, again->out[i], b->dy[i]);
    gradients_walk(&inner, body.nodes.n, body.nodes.at);
    for (int i = 0; i < body.nodes.n; i++)
        VEC_PUSH(g->arena, &b->l.nodes, body.nodes.at[i]);
    for (int i = 0; i < inner.made.list.n; i++)
        VEC_PUSH(g->arena, &b->l.nodes, inner.made.list.at[i]);
    for (int i = 0; i < node->nin; i++) {
        struct value *v = node->in[i];
        if (v && b->want[i])
            b->dx[i] = inner.of[v->id];
        if (v)
            inner.of[v->id] = NULL; /* of all operands that are this value, at once */
    }
}
