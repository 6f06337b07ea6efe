/* fuse_transposed: products with a transposed weight, and lookups in one, read it as stored: its Transpose would copy it in every run.
 * Weights are constants, or inputs in training.
 *
 *   MatMul(a, Transpose(w))       Gemm(a, w) with transB, a as a matrix
 *   Gather(Transpose(w), ids)     Transpose(Gather(w, ids) of columns)
 *
 * A Cast may come before or after the Transpose. The sums are the same. */
#include "lower/lower.h"
#include "op/op.h"

static bool swaps(struct graph *g, const struct node *n)
{
    const int64_t *perm;
    if (!op_is_onnx(n, "Transpose") || n->in[0]->type.rank != 2)
        return false;
    return !attr_is_set(n, "perm") || (attr_ints(g, n, "perm", &perm) == 2 && (perm[0] == 1 || perm[0] == -1));
}

static bool is_weight(const struct value *v)
{
    const struct node *n = v->producer;
    return !n || (op_is_onnx(n, "Cast") && !n->in[0]->producer);
}

/* For Transpose(w) or Transpose(Cast(w)): w or Cast(w). For Cast(Transpose(w)): a new Cast(w), before node *at. NULL: none of these. */
static struct value *stored_weight(struct graph *g, const struct value *v, int *at)
{
    struct node *n = v->producer;
    if (n && swaps(g, n) && is_weight(n->in[0]))
        return n->in[0];
    struct node *t = n && op_is_onnx(n, "Cast") ? n->in[0]->producer : NULL;
    if (!t || !swaps(g, t) || t->in[0]->producer)
        return NULL;
    struct node *cast = graph_node_like(g, n, arena_printf(g->arena, "%s/stored", n->name), 1, t->in);
    struct type type = t->in[0]->type;
    type.dtype = v->type.dtype;
    node_output(g, cast, 0, graph_form(g, v, arena_printf(g->arena, "%s/stored", v->name), &type));
    graph_insert(g, (*at)++, cast);
    return cast->out[0];
}

/* The value as a matrix of its last dimension; if it has other than two dimensions, by a new node before *at. */
static struct value *as_matrix(struct graph *g, struct value *v, int *at)
{
    struct type type = {.dtype = v->type.dtype, .rank = 2, .dim = {dim_int(g->alg, 1), v->type.dim[v->type.rank - 1]}};
    if (v->type.rank == 2)
        return v;
    for (int d = 0; d < v->type.rank - 1; d++)
        type.dim[0] = dim_mul(g->alg, type.dim[0], v->type.dim[d]);
    struct node *n = graph_node(g, op_find("", "Reshape"), arena_printf(g->arena, "%s/rows", v->name), 1, &v, 1);
    node_output(g, n, 0, graph_form(g, v, arena_printf(g->arena, "%s/rows", v->name), &type));
    graph_insert(g, (*at)++, n);
    return n->out[0];
}

/* Node number *at, a MatMul, becomes a Gemm and maybe a Reshape. */
static void product_as_stored(struct graph *g, int *at, struct value *w)
{
    struct node *n = g->nodes.at[*at];
    struct value *in[2] = {as_matrix(g, n->in[0], at), w}, *y = n->out[0];
    struct node *gemm = graph_node(g, op_find("", "Gemm"), n->name, 2, in, 1);
    attr_set_int(gemm, "transB", 1);
    g->nodes.at[*at] = gemm;
    if (y->type.rank == 2) {
        node_output(g, gemm, 0, y);
        return;
    }
    struct type type = {.dtype = y->type.dtype, .rank = 2, .dim = {in[0]->type.dim[0], y->type.dim[y->type.rank - 1]}};
    struct value *rows = graph_form(g, y, arena_printf(g->arena, "%s/rows", y->name), &type);
    struct node *back = graph_node(g, op_find("", "Reshape"), arena_printf(g->arena, "%s/back", n->name), 1, &rows, 1);
    node_output(g, gemm, 0, rows);
    node_output(g, back, 0, y);
    graph_insert(g, ++*at, back);
}

/* Node number *at, a Gather of rows, becomes a Gather of columns and a Transpose that moves these to the front. */
static void lookup_as_stored(struct graph *g, int *at, struct value *w)
{
    struct node *n = g->nodes.at[*at];
    struct value *y = n->out[0], *in[2] = {w, n->in[1]};
    struct type type = y->type;
    int64_t perm[MAX_RANK];
    int last = y->type.rank - 1;
    for (int d = 0; d < last; d++) {
        type.dim[d + 1] = y->type.dim[d];
        perm[d] = d + 1;
    }
    type.dim[0] = y->type.dim[last];
    perm[last] = 0;
    struct node *gather = graph_node(g, n->op, n->name, 2, in, 1);
    attr_set_int(gather, "axis", 1);
    node_output(g, gather, 0, graph_form(g, y, arena_printf(g->arena, "%s/columns", y->name), &type));
    struct node *back = graph_node(g, op_find("", "Transpose"), arena_printf(g->arena, "%s/back", n->name), 1, gather->out, 1);
    attr_set_ints(g, back, "perm", last + 1, perm);
    node_output(g, back, 0, y);
    g->nodes.at[*at] = gather;
    graph_insert(g, ++*at, back);
}

static bool is_float(const struct value *v)
{
    return v->type.dtype == DT_F32 || v->type.dtype == DT_F16 || v->type.dtype == DT_BF16;
}

int fuse_transposed(struct graph *g)
{
    int made = 0, dim;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        bool product = op_is_onnx(n, "MatMul") && n->in[0]->type.rank >= 2 && is_float(n->out[0]) && !complete_sums_split(g, n, &dim);
        bool lookup = op_is_onnx(n, "Gather") && attr_int(n, "axis") == 0;
        struct value *w = product || lookup ? stored_weight(g, n->in[product], &i) : NULL;
        if (!w)
            continue;
        (product ? product_as_stored : lookup_as_stored)(g, &i, w);
        made++;
    }
    graph_prune(g);
    return made;
}
