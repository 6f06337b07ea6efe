/* fast_products: for --fast: products with quantised weights may round activations to 8 bits, as with accuracy_level 4 of MatMulNBits. */
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

void fast_products(struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (op_is_tpc(n, "QuantMatMul") || (n->op && strcmp(n->optype, "MatMulNBits") == 0))
            attr_set_int(n, "accuracy_level", 4);
    }
}
