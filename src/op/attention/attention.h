/* attention: what inference and rules of the fused attention ops share: their operands, and the sizes behind them. */
#ifndef TPC_OP_ATTENTION_H
#define TPC_OP_ATTENTION_H

#include "op/op.h"

struct heads {
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
const struct value *attention_result(const struct node *, int i);
/* The sizes, all but those of heads that are not there; operands that don't fit together are a failure. */
struct heads attention_heads(struct graph *, const struct node *);
struct heads gqa_heads(struct graph *, const struct node *);

#endif
