/* whole_scatter: a ScatterND to all indices of a tensor in order, as torch writes x[:, :] = y, equals its updates. Its index is a constant,
 * or a Concat of one component per dimension: a constant that counts along that dimension and is constant along the others. */
#include "op/canon/canon.h"
#include "op/op.h"

#include <string.h>

/* Whether it is 0, 1 .. n - 1 along dimension d of `rank`, and constant along others. */
static bool counts(const struct value *v, int rank, int d, int64_t n)
{
    struct constant *c = v->constant;
    if (!c || c->dtype != DT_I64 || c->rank > rank || constant_elements(c) != n || !constant_present(c))
        return false;
    int at = d - (rank - c->rank);
    if (n > 1 && (at < 0 || c->dim[at] != n))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (constant_int(c, v->name, i) != i)
            return false;
    return true;
}

/* The operand that a component of the index repeats. */
static const struct value *component(const struct value *v)
{
    const struct node *unsqueeze = op_made_by(v, "Unsqueeze"), *expand = unsqueeze ? op_made_by(unsqueeze->in[0], "Expand") : NULL;
    return expand ? expand->in[0] : unsqueeze ? unsqueeze->in[0] : v;
}

/* Whether it lists all indices, in order. */
static bool is_all_places(const struct value *v, const int64_t *size, int rank)
{
    struct constant *c = v->constant;
    if (!c || c->dtype != DT_I64 || !constant_present(c))
        return false;
    for (int64_t i = 0, n = constant_elements(c) / rank; i < n; i++)
        for (int64_t d = rank - 1, place = i; d >= 0; place /= size[d--])
            if (constant_int(c, v->name, i * rank + d) != place % size[d])
                return false;
    return true;
}

static bool are_all_places(const struct value *index, const int64_t *size, int rank)
{
    const struct node *concat = op_made_by(index, "Concat");
    if (!concat || concat->nin != rank || attr_int(concat, "axis") != rank)
        return false;
    for (int d = 0; d < rank; d++)
        if (!counts(component(concat->in[d]), rank, d, size[d]))
            return false;
    return true;
}

struct value *canon_whole_scatter(const struct node *node)
{
    if (!op_is_onnx(node, "ScatterND") || strcmp(attr_string(node, "reduction"), "none") != 0)
        return NULL;
    const struct type *x = &node->in[0]->type, *index = &node->in[1]->type;
    int64_t size[MAX_RANK];
    if (x->rank < 1 || index->rank != x->rank + 1 || !dim_equals(index->dim[x->rank], x->rank) || !type_eq(&node->in[2]->type, x))
        return NULL;
    for (int d = 0; d < x->rank; d++)
        if (!dim_is_int(x->dim[d], &size[d]) || size[d] < 1)
            return NULL;
    if (!is_all_places(node->in[1], size, x->rank) && !are_all_places(node->in[1], size, x->rank))
        return NULL;
    return node->in[2];
}
