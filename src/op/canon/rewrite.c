/* rewrite: local rewrites of canon: no-op nodes, views of views, scalar Gather, copies, repeated key and value heads, flattened products.
 *
 * A rewrite looks at one node and its ancestors. New nodes replace the node, and the last one takes over its result, so that uses and graph
 * outputs stay unchanged; unused ancestors are pruned later. */
#include "ir/rank_meta.h"
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

bool rewrite_all(struct graph *g, bool (*rewrite)(struct rewrite *, struct node *))
{
    struct rewrite w = {.g = g, .nodes = {NULL, 0, 0}};
    for (int i = 0; i < g->nodes.n; i++)
        if (g->nodes.at[i]->op && rewrite(&w, g->nodes.at[i]))
            w.changed = true;
        else
            VEC_PUSH(g->arena, &w.nodes, g->nodes.at[i]);
    g->nodes.n = 0;
    for (int i = 0; i < w.nodes.n; i++)
        graph_append(g, w.nodes.at[i]);
    return w.changed;
}

struct node *rewrite_node(struct rewrite *w, const char *domain, const char *op, const struct node *root, int nin, struct value *const *in)
{
    struct node *node = graph_node(w->g, op_find(domain, op), arena_printf(w->g->arena, "%s/%s", root->name, op), nin, in, 1);
    VEC_PUSH(w->g->arena, &w->nodes, node);
    return node;
}

struct value *rewrite_value(struct rewrite *w, struct node *node, const struct type *type)
{
    node_output(w->g, node, 0, graph_value(w->g, node->name, type));
    op_infer(w->g, node);
    return node->out[0];
}

/* The node's result becomes the root's. */
static bool take_over(struct rewrite *w, struct node *node, const struct node *root)
{
    node_output(w->g, node, 0, root->out[0]);
    return true;
}

/* ---- nodes that do nothing ----------------------------------------------------------------------------------------------- */

static bool identity_perm(const struct graph *g, const struct node *node)
{
    const int64_t *perm;
    int n = attr_ints(g, node, "perm", &perm);
    for (int d = 0; d < n; d++)
        if (perm[d] != d)
            return false;
    return true;
}

static bool forward_slice(const struct node *node)
{
    const struct dim **step;
    int n = attr_dims(node, "steps", &step);
    for (int i = 0; i < n; i++)
        if (step[i]->lo < 1)
            return false;
    return true;
}

static bool does_nothing(const struct graph *g, const struct node *node)
{
    static const char *const by_type[] = {"Identity", "Cast", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Expand", "Tile"};
    if (node->nin < 1 || node->nout != 1 || !node->out[0] || !node->in[0] || !op_resolved(node))
        return false;
    if (!type_eq(&node->in[0]->type, &node->out[0]->type))
        return false;
    for (size_t i = 0; i < sizeof by_type / sizeof *by_type; i++)
        if (op_is_onnx(node, by_type[i]))
            return true;
    if (op_is_onnx(node, "Concat") || op_is_onnx(node, "Split"))
        return node->nin == 1;
    return (op_is_onnx(node, "Transpose") && identity_perm(g, node)) || (op_is_onnx(node, "Slice") && forward_slice(node));
}

/* The value of this type of which v is only a view, through any number of views; NULL: none. */
static struct value *viewed(struct value *v)
{
    struct value *found = NULL;
    for (struct value *from = v;
         from->producer && from->producer->op && (from->producer->op->flags & OP_VIEW) && op_resolved(from->producer);) {
        from = from->producer->in[0];
        if (type_eq(&from->type, &v->type))
            found = from;
    }
    return found;
}

static bool is_number(const struct value *v, double want)
{
    double x;
    return op_constant_real(v, &x) && !(x < want || x > want) && !isnan(x);
}

/* The operand that a sum with zeros, or a product with ones, equals; NULL: it is neither. */
static struct value *unchanged(const struct node *node)
{
    bool sum = op_is_onnx(node, "Add") || op_is_onnx(node, "Sub"), product = op_is_onnx(node, "Mul") || op_is_onnx(node, "Div");
    for (int k = 1; k >= 0 && (sum || product) && node->nin == 2; k--) {
        struct value *x = node->in[1 - k];
        bool first = op_is_onnx(node, "Sub") || op_is_onnx(node, "Div");
        if (!(k == 0 && first) && type_eq(&x->type, &node->out[0]->type) && is_number(node->in[k], product))
            return x;
    }
    return NULL;
}

void canon_remove_noops(struct graph *g)
{
    struct value **to = NEWN(g->arena, struct value *, g->values.n);
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *node = g->nodes.at[i];
        if (!node->op || node->nout < 1 || !node->out[0])
            continue;
        if (does_nothing(g, node))
            to[node->out[0]->id] = node->in[0];
        else if (node->op->flags & OP_VIEW)
            to[node->out[0]->id] = viewed(node->out[0]);
        else if (!(to[node->out[0]->id] = unchanged(node)))
            to[node->out[0]->id] = canon_whole_scatter(node);
    }
    graph_rewire(g, to, true);
}

/* Reshape of a Reshape reads the first one's operand. */
bool canon_merge_reshapes(struct rewrite *w, struct node *node)
{
    if (!op_is_onnx(node, "Reshape") || !op_resolved(node))
        return false;
    const struct node *before = node->in[0]->producer;
    if (op_is_onnx(before, "Reshape") && op_resolved(before)) {
        node->in[0] = before->in[0];
        w->changed = true;
    }
    return false;
}

/* ---- Gather by one constant index -> Slice + Squeeze ------------------------------------------------------------------------ */

/* The index counted from 0; NULL if it is no scalar constant, or may be out of range. */
static const struct dim *constant_index(struct graph *g, const struct node *node, int axis)
{
    struct value *index = node->in[1];
    if (!index->constant || index->type.rank != 0)
        return NULL;
    const struct dim *n = node->in[0]->type.dim[axis];
    const struct dim *k = dim_int(g->alg, constant_int(index->constant, index->name, 0));
    if (k->k < 0)
        k = dim_add(g->alg, n, k);
    return dim_ge(g->alg, k, dim_int(g->alg, 0)) && dim_ge(g->alg, n, dim_add(g->alg, k, dim_int(g->alg, 1))) ? k : NULL;
}

bool canon_gather_to_slice(struct rewrite *w, struct node *node)
{
    struct graph *g = w->g;
    if (!op_is_onnx(node, "Gather"))
        return false;
    int axis = op_axis(g, node, attr_int(node, "axis"), node->in[0]->type.rank);
    const struct dim *k = constant_index(g, node, axis), *at = dim_int(g->alg, axis), *one = dim_int(g->alg, 1);
    if (!k || node->in[0]->constant)
        return false;
    const struct dim *end = dim_add(g->alg, k, one);
    struct node *slice = rewrite_node(w, "", "Slice", node, 1, &node->in[0]);
    attr_set_dims(g, slice, "starts", 1, &k);
    attr_set_dims(g, slice, "ends", 1, &end);
    attr_set_dims(g, slice, "axes", 1, &at);
    attr_set_dims(g, slice, "steps", 1, &one);
    struct value *part = rewrite_value(w, slice, NULL);
    struct node *squeeze = rewrite_node(w, "", "Squeeze", node, 1, &part);
    attr_set_dims(g, squeeze, "axes", 1, &at);
    return take_over(w, squeeze, node);
}

/* ---- copies along dimensions of size 1: a Tile is an Expand -------------------------------------------------------------------------- */

bool canon_tile_to_expand(struct rewrite *w, struct node *node)
{
    const struct dim **times;
    if (!op_is_onnx(node, "Tile") || !op_resolved(node))
        return false;
    attr_dims(node, "repeats", &times);
    for (int d = 0; d < node->in[0]->type.rank; d++)
        if (!dim_equals(times[d], 1) && !dim_equals(node->in[0]->type.dim[d], 1))
            return false;
    return take_over(w, rewrite_node(w, "", "Expand", node, 1, node->in), node);
}

/* ---- [.., h, ..] -> [.., h, 1, ..] -> [.., h, g, ..] -> [.., h*g, ..] is Repeat --------------------------------------------- */

/* The only dimension that differs, from 1 to an integer; -1 otherwise. */
static int expanded_dim(const struct node *expand)
{
    const struct type *in = &expand->in[0]->type, *out = &expand->out[0]->type;
    int found = -1;
    if (in->rank != out->rank)
        return -1;
    for (int d = 0; d < out->rank; d++) {
        if (in->dim[d] == out->dim[d])
            continue;
        if (found >= 0 || !dim_equals(in->dim[d], 1) || !dim_is_int(out->dim[d], NULL))
            return -1;
        found = d;
    }
    return found;
}

/* Whether type is `with` without dimension at. */
static bool without_dim(const struct type *type, const struct type *with, int at)
{
    if (type->rank != with->rank - 1)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dim[d] != with->dim[d < at ? d : d + 1])
            return false;
    return true;
}

bool canon_find_repeat(struct rewrite *w, struct node *node)
{
    struct graph *g = w->g;
    const struct node *expand = op_is_onnx(node, "Reshape") && op_resolved(node) ? node->in[0]->producer : NULL;
    if (!op_is_onnx(expand, "Expand") || !op_resolved(expand))
        return false;
    int at = expanded_dim(expand);
    const struct node *view = expand->in[0]->producer;
    if (at < 1 || !view || !view->op || !(view->op->flags & OP_VIEW) || !op_resolved(view))
        return false;
    struct value *data = view->in[0];
    if (!without_dim(&data->type, &expand->in[0]->type, at))
        return false;
    struct type type = data->type;
    type.dim[at - 1] = dim_mul(g->alg, type.dim[at - 1], expand->out[0]->type.dim[at]);
    bool direct = type_eq(&type, &node->out[0]->type);
    if (!direct && node->out[0]->type.rank >= expand->out[0]->type.rank)
        return false;
    struct node *repeat = rewrite_node(w, "tpc", "Repeat", node, 1, &data);
    attr_set_int(repeat, "axis", at - 1);
    attr_set_int(repeat, "repeats", expand->out[0]->type.dim[at]->k);
    if (direct)
        return take_over(w, repeat, node);
    struct value *repeated = rewrite_value(w, repeat, NULL);
    return take_over(w, rewrite_node(w, "", "Reshape", node, 1, &repeated), node);
}

/* ---- a product on a flattened operand: [.., K] -> [M, K] x [K, N] ------------------------------------------------------------ */

/* The value [.., K] of rank 3 or more that the operand [M, K] flattens; NULL: none. */
static struct value *before_flatten(const struct value *v)
{
    const struct node *view = v->producer;
    if (!(op_is_onnx(view, "Reshape") || op_is_onnx(view, "Flatten")) || !op_resolved(view) || v->type.rank != 2)
        return NULL;
    struct value *from = view->in[0];
    return from->type.rank >= 3 && from->type.dim[from->type.rank - 1] == v->type.dim[1] ? from : NULL;
}

static bool plain_gemm(const struct node *node)
{
    bool bias = node_operand(node, 2);
    if (attr_int(node, "transA") || attr_float(node, "alpha") < 1 || attr_float(node, "alpha") > 1)
        return false;
    if (!bias)
        return true;
    const struct type *c = &node->in[2]->type;
    return attr_float(node, "beta") >= 1 && attr_float(node, "beta") <= 1 && (c->rank < 2 || dim_equals(c->dim[0], 1));
}

static struct value *transpose_weight(struct rewrite *w, const struct node *root, struct value *weight)
{
    int64_t perm[2] = {1, 0};
    struct node *node = rewrite_node(w, "", "Transpose", root, 1, &weight);
    attr_set_ints(w->g, node, "perm", 2, perm);
    return rewrite_value(w, node, NULL);
}

bool canon_unflatten_product(struct rewrite *w, struct node *node)
{
    bool gemm = op_is_onnx(node, "Gemm");
    if ((!gemm && !op_is_onnx(node, "MatMul")) || rank_meta_has_sum(w->g, node))
        return false;
    struct value *data = before_flatten(node->in[0]), *weight = node->in[1];
    if (!data || weight->type.rank != 2 || (gemm && !plain_gemm(node)))
        return false;
    if (gemm && attr_int(node, "transB"))
        weight = transpose_weight(w, node, weight);
    struct value *out = rewrite_value(w, rewrite_node(w, "", "MatMul", node, 2, (struct value *[]){data, weight}), NULL);
    if (gemm && node_operand(node, 2))
        out = rewrite_value(w, rewrite_node(w, "", "Add", node, 2, (struct value *[]){out, node->in[2]}), NULL);
    return take_over(w, rewrite_node(w, "", "Reshape", node, 1, &out), node);
}
