/* Products and lookups read a quantised weight as it is stored; no float copy of the weight is made.
 *
 * DequantizeLinear(x) of a matrix x, a constant or a part of one: MatMul and Gemm that multiply by it, and Gather of its rows, take x with
 * its scales. Numbers are decoded as DequantizeLinear does it, so only the order of sums may differ. Gemm's C is added behind; other
 * factors than 1 are left alone. DequantizeLinear goes where nothing else reads it. */
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

static struct node *decoder_of(const struct node *n, int operand)
{
    struct node *d = operand < n->nin && n->in[operand] ? n->in[operand]->producer : NULL;
    return d && op_is_onnx(d, "DequantizeLinear") && d->out[0]->type.rank == 2 && d->out[0]->type.dtype == d->in[1]->type.dtype ? d : NULL;
}

static bool is_one(const struct node *n, const char *attr)
{
    double x = attr_float(n, attr);
    return x >= 1 && x <= 1;
}

static struct node *product_decoder(const struct node *n)
{
    bool plain = op_is_onnx(n, "MatMul") && n->in[0]->type.rank >= 2;
    bool gemm = op_is_onnx(n, "Gemm") && !attr_int(n, "transA") && is_one(n, "alpha") && is_one(n, "beta");
    return plain || gemm ? decoder_of(n, 1) : NULL;
}

static struct node *lookup_decoder(const struct node *n)
{
    return op_is_onnx(n, "Gather") && attr_int(n, "axis") == 0 ? decoder_of(n, 0) : NULL;
}

/* first, then the operands of the decoder. */
static struct node *with_codes(struct graph *g, const char *op, const struct node *n, struct value *first, const struct node *d)
{
    struct value *in[4] = {first, d->in[0], d->in[1], d->nin > 2 ? d->in[2] : NULL};
    struct node *made = graph_node(g, op_find("tpc", op), n->name, 1 + d->nin, in, 1);
    attr_set_int(made, "axis", attr_int(d, "axis"));
    attr_set_int(made, "block_size", attr_int(d, "block_size"));
    node_output(g, made, 0, n->out[0]);
    return made;
}

/* The product gets a result of its own, and the node's result is that plus C. */
static void add_behind(struct graph *g, int at, struct value *c)
{
    struct node *product = g->nodes.at[at];
    struct value *result = product->out[0],
                 *sum[2] = {graph_value(g, arena_printf(g->arena, "%s/product", result->name), &result->type), c};
    struct node *add = graph_node(g, op_find("", "Add"), arena_printf(g->arena, "%s/add", product->name), 2, sum, 1);
    node_output(g, product, 0, sum[0]);
    node_output(g, add, 0, result);
    graph_insert(g, at + 1, add);
}

void fuse_quantized(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i], *product = product_decoder(n), *lookup = lookup_decoder(n);
        if (lookup) {
            g->nodes.at[i] = with_codes(g, "QuantGather", n, n->in[1], lookup);
            attr_set_string(g->nodes.at[i], "lookup", node_lookup(g, n, 1));
        }
        if (!product)
            continue;
        g->nodes.at[i] = with_codes(g, "QuantMatMul", n, n->in[0], product);
        if (op_is_onnx(n, "Gemm"))
            attr_set_int(g->nodes.at[i], "transposed", attr_int(n, "transB"));
        if (op_is_onnx(n, "Gemm") && n->nin > 2 && n->in[2])
            add_behind(g, i, n->in[2]);
    }
    graph_prune(g);
}
