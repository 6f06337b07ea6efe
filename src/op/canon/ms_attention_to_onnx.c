/* ms_attention_to_onnx: writes Attention and MultiHeadAttention of com.microsoft as products, the standard's Attention, and nodes that
 * convert masks, which have several forms by rank, to the standard's. */
#include "op/attention/attention.h"
#include "op/canon/canon.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <string.h>

/* ---- writing nodes ------------------------------------------------------------------------------------------------------------------- */

struct attention_writer {
    struct rewrite *w;
    const struct node *root;
};

static struct value *pair(const struct attention_writer *x, const char *name, struct value *a, struct value *b)
{
    return rewrite_value(x->w, rewrite_node(x->w, "", name, x->root, 2, (struct value *[]){a, b}), NULL);
}

static struct value *cast(const struct attention_writer *x, struct value *v, enum dtype to)
{
    struct node *node = rewrite_node(x->w, "", "Cast", x->root, 1, &v);
    attr_set_int(node, "to", to);
    return rewrite_value(x->w, node, NULL);
}

/* A number in this type. */
static struct value *number_in(const struct attention_writer *x, double value, enum dtype dtype)
{
    struct graph *g = x->w->g;
    struct constant *c = NEW(g->arena, struct constant);
    float *data = NEW(g->arena, float);
    struct type type = {.dtype = DT_F32};
    *data = (float)value;
    *c = (struct constant){.dtype = DT_F32, .bytes = sizeof *data, .data = data};
    struct value *v = graph_value(g, arena_printf(g->arena, "%s/number", x->root->name), &type);
    v->constant = c;
    return dtype == DT_F32 ? v : cast(x, v, dtype);
}

static struct value *unsqueezed(const struct attention_writer *x, struct value *v, int n, const int *at)
{
    const struct dim *axis[MAX_RANK];
    struct node *node = rewrite_node(x->w, "", "Unsqueeze", x->root, 1, &v);
    for (int i = 0; i < n; i++)
        axis[i] = dim_int(x->w->g->alg, at[i]);
    attr_set_dims(x->w->g, node, "axes", n, axis);
    return rewrite_value(x->w, node, NULL);
}

/* Splits v along an axis into parts of these sizes. */
static void split_value(const struct attention_writer *x, struct value *v, int axis, int n, const struct dim *const *size,
                        struct value **part)
{
    struct graph *g = x->w->g;
    const char *name = arena_printf(g->arena, "%s/Split", x->root->name);
    struct node *node = graph_node(g, op_find("", "Split"), name, 1, &v, n);
    attr_set_int(node, "axis", axis);
    attr_set_dims(g, node, "split", n, size);
    for (int i = 0; i < n; i++)
        node_output(g, node, i, part[i] = graph_value(g, name, NULL));
    op_infer(g, node);
    VEC_PUSH(g->arena, &x->w->nodes, node);
}

/* ---- masks --------------------------------------------------------------------------------------------------------------------------- */

/* Key t of batch b exists if t < length[b]. */
static struct value *below_lengths(const struct attention_writer *x, struct value *length, const struct dim *total)
{
    struct graph *g = x->w->g;
    struct type type = {.dtype = DT_I64, .rank = 1, .dim = {total}};
    const struct dim *start = dim_int(g->alg, 0), *step = dim_int(g->alg, 1);
    struct node *range = rewrite_node(x->w, "", "Range", x->root, 0, NULL);
    attr_set_dims(g, range, "start", 1, &start);
    attr_set_dims(g, range, "limit", 1, &total);
    attr_set_dims(g, range, "delta", 1, &step);
    struct value *place = rewrite_value(x->w, range, &type);
    return pair(x, "Less", place, unsqueezed(x, cast(x, length, DT_I64), 1, (int[]){1}));
}

/* The addend of scores: 0 where a key is visible, else the attribute's number. The mask is [B] (lengths), [B, T] or [B, S, T]. */
static struct value *mask_added(const struct attention_writer *x, struct value *mask, enum dtype dtype, const struct dim *batch,
                                const struct dim *total)
{
    struct graph *g = x->w->g;
    double filter = attr_float(x->root, "mask_filter_value");
    int rank = mask->type.rank;
    if (rank < 1 || rank > 3 || mask->type.dim[0] != batch || (rank == 3 && mask->type.dim[2] != total))
        fail("%s: the mask '%s' is %s, expected lengths, [batch, keys] or [batch, queries, keys]", node_where(g, x->root), mask->name,
             type_str(g->arena, &mask->type));
    struct value *seen = cast(x, rank == 1 ? below_lengths(x, mask, total) : mask, dtype);
    struct value *hidden = pair(x, "Sub", number_in(x, 1, dtype), seen);
    struct value *added = pair(x, "Mul", hidden, number_in(x, filter, dtype));
    return rank == 3 ? unsqueezed(x, added, 1, (int[]){1}) : unsqueezed(x, added, 2, (int[]){1, 2});
}

/* ---- the standard's Attention -------------------------------------------------------------------------------------------------------- */

/* in: Q, K, V, addend of scores, past key and value; out: Y, present key and value if needed. */
static void attend_with(const struct attention_writer *x, struct value *const *in, int mask_at, int added_at, struct value **out)
{
    struct graph *g = x->w->g;
    struct value *operand[6];
    memcpy(operand, in, sizeof operand);
    const struct dim *heads = ms_attention_heads(g, x->root);
    if (node_operand(x->root, mask_at)) {
        const struct type *k = &in[1]->type;
        const struct dim *total = in[4] ? dim_add(g->alg, in[4]->type.dim[2], k->dim[1]) : k->dim[1];
        operand[3] = mask_added(x, x->root->in[mask_at], in[0]->type.dtype, in[0]->type.dim[0], total);
    }
    if (node_operand(x->root, added_at))
        operand[3] = operand[3] ? pair(x, "Add", operand[3], x->root->in[added_at]) : x->root->in[added_at];
    struct node *node = graph_node(g, op_find("", "Attention"), x->root->name, in[4] ? 6 : operand[3] ? 4 : 3, operand, 3);
    attr_set_int(node, "q_num_heads", heads->k);
    attr_set_int(node, "kv_num_heads", heads->k);
    attr_set_int(node, "is_causal", attr_int(x->root, "unidirectional"));
    if (attr_float(x->root, "scale") > 0) {
        node_attr(node, "scale")->f = attr_float(x->root, "scale");
        node_attr(node, "scale")->set = true;
    }
    for (int i = 0; i < 3; i++)
        if (out[i])
            node_output(g, node, i, out[i]);
    op_infer(g, node);
    VEC_PUSH(g->arena, &x->w->nodes, node);
}

/* Past and present hold keys and values in one tensor, [2, B, N, T, H]. */
static void write_attention(const struct attention_writer *x)
{
    struct graph *g = x->w->g;
    const struct node *node = x->root;
    const struct dim *width[3], *one[2] = {dim_int(g->alg, 1), dim_int(g->alg, 1)};
    struct value *in[6] = {NULL}, *past[2], *out[3] = {node_result(node, 0), NULL, NULL};
    ms_attention_widths(g, node, width);
    struct value *product = pair(x, "MatMul", node->in[IN_Attention_input], node->in[IN_Attention_weights]);
    if (node_operand(node, IN_Attention_bias))
        product = pair(x, "Add", product, node->in[IN_Attention_bias]);
    split_value(x, product, 2, 3, width, in);
    if (node_operand(node, IN_Attention_past)) {
        split_value(x, node->in[IN_Attention_past], 0, 2, one, past);
        for (int i = 0; i < 2; i++) {
            struct node *squeeze = rewrite_node(x->w, "", "Squeeze", node, 1, &past[i]);
            attr_set_dims(g, squeeze, "axes", 1, (const struct dim *[]){dim_int(g->alg, 0)});
            in[4 + i] = rewrite_value(x->w, squeeze, NULL);
        }
    }
    for (int i = 1; node_result(node, 1) && i < 3; i++)
        out[i] = graph_value(g, arena_printf(g->arena, "%s/present", node->name), NULL);
    attend_with(x, in, IN_Attention_mask_index, IN_Attention_attention_bias, out);
    if (!node_result(node, 1))
        return;
    struct value *both[2] = {unsqueezed(x, out[1], 1, (int[]){0}), unsqueezed(x, out[2], 1, (int[]){0})};
    struct node *concat = rewrite_node(x->w, "", "Concat", node, 2, both);
    attr_set_int(concat, "axis", 0);
    node_output(g, concat, 0, node->out[1]);
}

/* [B, N, T, H] as [B, T, N*H] */
static struct value *flat(const struct attention_writer *x, struct value *v)
{
    if (v->type.rank == 3)
        return v;
    struct graph *g = x->w->g;
    struct node *turn = rewrite_node(x->w, "", "Transpose", x->root, 1, &v);
    attr_set_ints(g, turn, "perm", 4, (int64_t[]){0, 2, 1, 3});
    struct value *turned = rewrite_value(x->w, turn, NULL);
    struct type type = {
        .dtype = v->type.dtype, .rank = 3, .dim = {v->type.dim[0], v->type.dim[2], dim_mul(g->alg, v->type.dim[1], v->type.dim[3])}};
    return rewrite_value(x->w, rewrite_node(x->w, "", "Reshape", x->root, 1, &turned), &type);
}

static void write_multihead(const struct attention_writer *x)
{
    const struct node *node = x->root;
    struct value *in[6] = {NULL}, *bias[3], *out[3] = {node_result(node, 0), node_result(node, 1), node_result(node, 2)};
    const struct dim *width[3];
    for (int i = 0; i < 3; i++) {
        in[i] = flat(x, node->in[i]);
        width[i] = in[i]->type.dim[2];
    }
    if (node_operand(node, IN_MultiHeadAttention_bias)) {
        split_value(x, node->in[IN_MultiHeadAttention_bias], 0, 3, width, bias);
        for (int i = 0; i < 3; i++)
            if (node->in[i]->type.rank == 3)
                in[i] = pair(x, "Add", in[i], bias[i]);
    }
    for (int i = 0; i < 2; i++)
        in[4 + i] = node_operand(node, IN_MultiHeadAttention_past_key + i);
    attend_with(x, in, IN_MultiHeadAttention_key_padding_mask, IN_MultiHeadAttention_attention_bias, out);
}

bool canon_ms_attention_to_onnx(struct rewrite *w, struct node *node)
{
    const struct attention_writer x = {w, node};
    if (node->op->infer == infer_msattention)
        write_attention(&x);
    else if (node->op->infer == infer_multiheadattention)
        write_multihead(&x);
    else
        return false;
    return true;
}
