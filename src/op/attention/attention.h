/* attention: the fused attention ops of ONNX and of com.microsoft, and rotary embedding. */
#ifndef TPC_OP_ATTENTION_H
#define TPC_OP_ATTENTION_H

#include "ir/ir.h"

/* ---- attention.c: operands of the fused ops, and the sizes behind them ---- */
struct attention_sizes {
    const struct dim *batch, *query, *key; /* sequence lengths of Q and of the new K */
    const struct dim *past, *total;        /* past NULL: none */
    const struct dim *q_heads, *kv_heads;
    const struct dim *size, *value_size; /* of one head of Q and K, of V; NULL: not known (no heads here) */
    bool flat, packed;                   /* [B, S, H*D] rather than [B, H, S, D]; K and V laid behind Q in operand 0 */
};
/* Operands of Attention; of GroupQueryAttention. */
enum { Q = 0, K = 1, V = 2, MASK = 3, PAST_K = 4, PAST_V = 5, LENGTHS = 6 };
enum { G_PAST_K = 3, G_PAST_V = 4, G_LENGTHS = 5, G_TOTAL = 6, G_COS = 7, G_SIN = 8, G_POSITIONS = 9, G_BIAS = 10, G_SINK = 11 };

/* Of either op. An operand's type, a result; NULL: it has none. */
const struct type *attention_operand(const struct node *, int i);
const struct value *attention_output(const struct node *, int i);
/* A size of each head on a rank without heads: of dimension dim of past (its operand), else by the noted attribute, else of present (its
 * result) if that has a type; NULL: nothing says it. */
struct idle_size {
    const char *attr;
    int past, present, dim;
};
const struct dim *attention_idle_size(struct graph *, const struct node *, struct idle_size);
/* Where no past says it, the attribute does from now on, which files have in the node's metadata: a rank's file has no types of results. */
void attention_keep_idle_size(struct graph *, struct node *, struct idle_size);
/* The sizes, all but those of heads that are not there; operands that don't fit together are a failure. */
struct attention_sizes attention_sizes_of(struct graph *, const struct node *);
struct attention_sizes attention_gqa_sizes(struct graph *, const struct node *);

/* ---- ms_attention.c: operands of Attention and MultiHeadAttention of com.microsoft ---- */
enum { MSA_INPUT, MSA_WEIGHTS, MSA_BIAS, MSA_MASK, MSA_PAST, MSA_SCORE_BIAS, MSA_PAST_LENGTH }; /* Attention */
enum {
    MHA_QUERY,
    MHA_KEY,
    MHA_VALUE,
    MHA_BIAS,
    MHA_PADDING,
    MHA_SCORES,
    MHA_PAST_KEY,
    MHA_PAST_VALUE,
    MHA_LENGTH,
    MHA_INDIRECTION
}; /* MultiHeadAttention */

/* The number of heads, by the attribute. */
const struct dim *ms_attention_heads(struct graph *, const struct node *);
/* Of Attention: widths of Q, K and V within the product with the weights. */
void ms_attention_widths(struct graph *, const struct node *, const struct dim **width);

#endif
