/* attention: the fused attention ops of ONNX and of com.microsoft, and rotary embedding. */
#ifndef TPC_OP_ATTENTION_H
#define TPC_OP_ATTENTION_H

#include "ir/ir.h"
#include "ir/operands.h"

/* ---- attention.c: operands of the fused ops, and the sizes behind them ---- */
struct attention_sizes {
    const struct dim *batch, *query, *key; /* sequence lengths of Q and of the new K */
    const struct dim *past, *total;        /* past NULL: none */
    const struct dim *q_heads, *kv_heads;
    const struct dim *size, *value_size; /* of one head of Q and K, of V; NULL: not known (no heads here) */
    bool flat, packed;                   /* [B, S, H*D] rather than [B, H, S, D]; K and V laid behind Q in operand 0 */
};
/* Operands of Attention; of GroupQueryAttention. */
enum {
    Q = IN_Attention_Q,
    K = IN_Attention_K,
    V = IN_Attention_V,
    MASK = IN_Attention_attn_mask,
    PAST_K = IN_Attention_past_key,
    PAST_V = IN_Attention_past_value,
    LENGTHS = IN_Attention_nonpad_kv_seqlen
};
enum {
    G_PAST_K = IN_GroupQueryAttention_past_key,
    G_PAST_V = IN_GroupQueryAttention_past_value,
    G_LENGTHS = IN_GroupQueryAttention_seqlens_k,
    G_TOTAL = IN_GroupQueryAttention_total_sequence_length,
    G_COS = IN_GroupQueryAttention_cos_cache,
    G_SIN = IN_GroupQueryAttention_sin_cache,
    G_POSITIONS = IN_GroupQueryAttention_position_ids,
    G_BIAS = IN_GroupQueryAttention_attention_bias,
    G_SINK = IN_GroupQueryAttention_head_sink
};

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

/* ---- ms_attention.c: Attention and MultiHeadAttention of com.microsoft ---- */
/* The number of heads, by the attribute. */
const struct dim *ms_attention_heads(struct graph *, const struct node *);
/* Of Attention: widths of Q, K and V within the product with the weights. */
void ms_attention_widths(struct graph *, const struct node *, const struct dim **width);

#endif
