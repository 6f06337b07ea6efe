/* chain: shared by fuse_chain.c and chain_code.c: groups of elementwise nodes that become one Chain. */
#ifndef TPC_LOWER_CHAIN_H
#define TPC_LOWER_CHAIN_H

#include "ir/ir.h"
#include "kern/pointwise/pointwise.h"

/* Members, the root first. A root may round to bytes. A member DequantizeLinear also stands for the QuantizeLinear before it. */
struct chain_group {
    int n;
    struct node *member[CHAIN_LENGTH - 4];
};

/* Whether a Chain can compute the node, and in how many instructions. */
bool chain_computes(const struct node *);
int chain_instructions(const struct node *);
/* Whether v is only a number. */
bool chain_is_number(const struct value *v);
/* The operands of a member other than parameters: the first ones of its node, or what is rounded. Returns their number. */
int chain_operands(const struct node *member, struct value *const **in);
/* The QuantizeLinear for which a member DequantizeLinear stands; NULL: the node is no such member. */
struct node *chain_encoder(const struct node *member);

/* The Chain that computes the group from values read from outside; its result is the root's. NULL: it would be too long. */
struct node *chain_code(struct graph *, const struct chain_group *, int nin, struct value *const *in);

#endif
