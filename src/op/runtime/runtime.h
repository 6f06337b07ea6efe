/* runtime: ops of domain tpc that a rank runs: collectives, its shard of a value, and fused ops of tpc-run. */
#ifndef TPC_OP_RUNTIME_H
#define TPC_OP_RUNTIME_H

#include "ir/ir.h"

/* A large tensor is sent in strips if a dimension before the split one can be cut, so that blocks stay small. */
#define STRIP_BYTES ((int64_t)4 << 20) /* of the global tensor, at a time */
bool collective_in_strips(const struct node *);

#endif
