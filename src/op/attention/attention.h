/* attention: the fused attention ops of ONNX and of com.microsoft, and rotary embedding. */
#ifndef TPC_OP_ATTENTION_H
#define TPC_OP_ATTENTION_H

#include "ir/ir.h"
#include "ir/operands.h"

/* ---- attention.c: operands of the fused ops, and their sizes ---- */
struct attention_sizes {
    const struct dim *batch, *query, *key; /* sequence lengths of Q and of the new K */
    const struct dim *past, *total;        /* past NULL: none */
    const struct dim *q_heads, *kv_heads;
    const struct dim *size, *value_size; /* of one head of Q and K, and of V; NULL: unknown (no heads on this rank) */
    bool flat, packed;                   /* [B, S, H*D] rather than [B, H, S, D]; K and V follow Q in operand 0 */
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

/* For both ops: an operand's type, a result; NULL: absent. */
const struct type *attention_operand(const struct node *, int i);
const struct value *attention_output(const struct node *, int i);
/* A size of each head on a rank without heads: dimension dim of past (its operand), else the noted attribute, else of present (its result)
 * if that has a type; NULL: unknown. */
struct idle_size {
    const char *attr;
    int past, present, dim;
};
const struct dim *attention_idle_size(struct graph *, const struct node *, struct idle_size);
/* Without a past, notes the size in the attribute, which files store in the node's metadata: a rank's file has no types of results. */
void attention_keep_idle_size(struct graph *, struct node *, struct idle_size);
/* All sizes, except those of missing heads; fails if operands do not match. */
struct attention_sizes attention_sizes_of(struct graph *, const struct node *);
struct attention_sizes attention_gqa_sizes(struct graph *, const struct node *);

/* ---- ms_attention.c: Attention and MultiHeadAttention of com.microsoft ---- */
/* The number of heads, by the attribute. */
const struct dim *ms_attention_heads(struct graph *, const struct node *);
/* Of Attention: widths of Q, K and V in the product with the weights. */
void ms_attention_widths(struct graph *, const struct node *, const struct dim **width);

#endif
