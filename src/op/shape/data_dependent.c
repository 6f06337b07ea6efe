/* data_dependent: NonZero, whose result has a data-dependent dimension. */
#include "op/infer/infer.h"
#include "op/table/table.h"

#include <string.h>

/* ---- NonZero: the indices of nonzero elements, one per column: [rank n] --------------------------------------------------------- */

/* The operand's content: a constant, or shape information that is all integers; NULL: known only at run time. */
static struct constant *known_operand(struct graph *g, const struct node *node)
{
    const struct value *v = node->in[0];
    if (!v->constant)
        return op_dims_constant(g, v);
    return constant_present(v->constant) ? v->constant : NULL;
}

/* Counts elements of x with a bit set that is in the mask. */
#define COUNT(T)                                                                   \
    static int64_t count_##T(const void *x, int64_t n, uint64_t mask)              \
    {                                                                              \
        int64_t count = 0;                                                         \
        for (int64_t i = 0; i < n; i++) {                                          \
            T bits;                                                                \
            memcpy(&bits, (const char *)x + (size_t)i * sizeof bits, sizeof bits); \
            count += (bits & (T)mask) != 0;                                        \
        }                                                                          \
        return count;                                                              \
    }
COUNT(uint8_t)
COUNT(uint16_t)
COUNT(uint32_t)
COUNT(uint64_t)

/* -0.0 is zero: the mask for signed numbers lacks the sign bit. */
static int64_t count_elements(struct constant *c, const char *name, int64_t n)
{
    bool signs = c->dtype == DT_F16 || c->dtype == DT_BF16 || c->dtype == DT_F32 || c->dtype == DT_F64;
    size_t size = dtype_size(c->dtype);
    uint64_t mask = signs ? ~(UINT64_C(1) << (8 * size - 1)) : UINT64_MAX;
    const void *x = constant_data(c, name);
    switch (size) {
    case 1: return count_uint8_t(x, n, mask);
    case 2: return count_uint16_t(x, n, mask);
    case 4: return count_uint32_t(x, n, mask);
    default: return count_uint64_t(x, n, mask);
    }
}

static const struct dim *count_nonzero(struct graph *g, const struct value *v, struct constant *c)
{
    int64_t n = constant_elements(c), count = 0;
    if (!dtype_is_packed(c->dtype) && !dtype_is_small_float(c->dtype) && c->dtype != DT_STRING)
        return dim_int(g->alg, count_elements(c, v->name, n));
    for (int64_t i = 0; i < n; i++)
        count += constant_float(c, v->name, i) != 0;
    return dim_int(g->alg, count);
}

/* n is a data-dependent symbol if the operand is unknown. It stays one if a later pass folds the operand: other types contain the
 * symbol. */
void infer_nonzero(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0), *had = &node->out[0]->type;
    const struct dim *dim[2] = {dim_int(g->alg, x->rank > 0 ? x->rank : 1), op_unknown_dim(g, node, 0, 1)};
    struct constant *c = known_operand(g, node);
    if (c && !(had->rank == 2 && had->dim[1] == dim[1]))
        dim[1] = count_nonzero(g, node->in[0], c);
    op_result(g, node, 0, DT_I64, 2, dim);
}
