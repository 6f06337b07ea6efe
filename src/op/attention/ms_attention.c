/* ms_attention: results of Attention and MultiHeadAttention of com.microsoft, as ONNX Runtime's optimiser writes them. canon rewrites them
 * to the standard's Attention (canon/ms_attention_to_onnx.c). */
#include "op/attention/attention.h"
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

const struct dim *ms_attention_heads(struct graph *g, const struct node *node)
{
    int64_t n = attr_is_set(node, "num_heads") ? attr_int(node, "num_heads") : 0;
    if (n < 1)
        fail("%s: attribute 'num_heads' is %lld, expected a positive number", node_where(g, node), (long long)n);
    return dim_int(g->alg, n);
}

static const struct dim *ms_head_size(struct graph *g, const struct node *node, const struct dim *width)
{
    const struct dim *size = dim_quotient(g->alg, width, ms_attention_heads(g, node));
    if (!size)
        fail("%s: a width of %s does not divide into %s heads", node_where(g, node), dim_str(g->arena, width),
             dim_str(g->arena, ms_attention_heads(g, node)));
    return size;
}

static void refuse_form(const struct graph *g, const struct node *node, bool is, const char *what)
{
    if (is)
        fail("%s: %s, which tpc does not handle", node_where(g, node), what);
}

/* ---- inference ----------------------------------------------------------------------------------------------------------------------- */

void ms_attention_widths(struct graph *g, const struct node *node, const struct dim **width)
{
    const int64_t *given = NULL;
    int n = attr_is_set(node, "qkv_hidden_sizes") ? attr_ints(g, node, "qkv_hidden_sizes", &given) : 0;
    const struct dim *all = node->in[IN_Attention_weights]->type.dim[1], *third = dim_quotient(g->alg, all, dim_int(g->alg, 3));
    if ((n != 0 && n != 3) || (n == 0 && !third))
        fail("%s: the weights '%s' %s do not hold a query, a key and a value", node_where(g, node), node->in[IN_Attention_weights]->name,
             type_str(g->arena, &node->in[IN_Attention_weights]->type));
    for (int i = 0; i < 3; i++)
        width[i] = n ? dim_int(g->alg, given[i]) : third;
}

void infer_msattention(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, IN_Attention_input),
                      *past = node_operand(node, IN_Attention_past) ? op_operand(g, node, IN_Attention_past) : NULL;
    const struct dim *width[3];
    op_need_rank(g, node, IN_Attention_input, 3, 3);
    op_operand(g, node, IN_Attention_weights);
    op_need_rank(g, node, IN_Attention_weights, 2, 2);
    refuse_form(g, node, attr_int(node, "do_rotary") != 0, "it rotates its queries and keys");
    refuse_form(g, node, node_operand(node, IN_Attention_past_sequence_length) || attr_int(node, "past_present_share_buffer"),
                "its past and present share a buffer");
    if (past)
        op_need_rank(g, node, IN_Attention_past, 5, 5);
    ms_attention_widths(g, node, width);
    const struct dim *total = past ? dim_add(g->alg, past->dim[3], x->dim[1]) : x->dim[1];
    op_result(g, node, 0, x->dtype, 3, (const struct dim *[]){x->dim[0], x->dim[1], width[2]});
    op_result(g, node, 1, x->dtype, 5,
              (const struct dim *[]){dim_int(g->alg, 2), x->dim[0], ms_attention_heads(g, node), total, ms_head_size(g, node, width[1])});
}

/* Keys or values are [B, T, N*H], or [B, N, T, H] if they were computed before. */
void infer_multiheadattention(struct graph *g, struct node *node)
{
    const struct type *q = op_operand(g, node, IN_MultiHeadAttention_query);
    op_need_rank(g, node, IN_MultiHeadAttention_query, 3, 3);
    refuse_form(g, node, !node_operand(node, IN_MultiHeadAttention_key) || !node_operand(node, IN_MultiHeadAttention_value),
                "its keys and values are packed with its queries");
    refuse_form(g, node,
                node_operand(node, IN_MultiHeadAttention_past_sequence_length) ||
                    node_operand(node, IN_MultiHeadAttention_cache_indirection),
                "its past has places to be filled");
    refuse_form(g, node, node_result(node, 3), "its scores are a result");
    op_need_rank(g, node, IN_MultiHeadAttention_key, 3, 4);
    op_need_rank(g, node, IN_MultiHeadAttention_value, op_operand(g, node, IN_MultiHeadAttention_key)->rank,
                 node->in[IN_MultiHeadAttention_key]->type.rank);
    const struct type *k = op_operand(g, node, IN_MultiHeadAttention_key), *v = op_operand(g, node, IN_MultiHeadAttention_value),
                      *past = node_operand(node, IN_MultiHeadAttention_past_key) ? op_operand(g, node, IN_MultiHeadAttention_past_key)
                                                                                 : NULL;
    bool spread = k->rank == 4;
    const struct dim *heads = ms_attention_heads(g, node), *added = k->dim[spread ? 2 : 1];
    const struct dim *size[2] = {spread ? k->dim[3] : ms_head_size(g, node, k->dim[2]),
                                 spread ? v->dim[3] : ms_head_size(g, node, v->dim[2])};
    if (past)
        op_need_rank(g, node, IN_MultiHeadAttention_past_key, 4, 4);
    const struct dim *total = past ? dim_add(g->alg, past->dim[2], added) : added;
    op_result(g, node, 0, q->dtype, 3, (const struct dim *[]){q->dim[0], q->dim[1], dim_mul(g->alg, heads, size[1])});
    for (int i = 0; i < 2; i++)
        op_result(g, node, 1 + i, q->dtype, 4, (const struct dim *[]){q->dim[0], heads, total, size[i]});
}
