/* index: ops that read or write elements by index, in tables that may be split. */
#ifndef TPC_OP_INDEX_H
#define TPC_OP_INDEX_H

#include "op/rule/rule.h"

/* The factor of the gathered axis of a table (operand 0; operand 1 has the indices, others belong to the table): split by the lowering of
 * Gather, unless elements share bytes. */
int gather_table_factor(struct graph *, struct rule *, const struct node *);

#endif
