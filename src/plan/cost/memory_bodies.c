/* bodies: the memory of the bodies of control flow, in addition to the slab of the enclosing graph. Each body is a session of its own and
 * keeps its slab, so both branches of an If count. Sizes inside follow from the operands; a value that a Loop carries counts at its initial
 * size. */
#include "op/analysis/analysis.h"
#include "plan/cost/cost.h"

#define MOST_BYTES ((int64_t)1 << 43)

int64_t plan_possible_bytes(int64_t bytes)
{
    require(bytes >= 0);
    return bytes < MOST_BYTES ? bytes : MOST_BYTES;
}

static void bind_type(struct arena *tmp, const struct type *inside, const struct type *outside, const struct bindings *dims,
                      struct bindings *out)
{
    int64_t size;
    for (int d = 0; inside->rank == outside->rank && d < inside->rank; d++)
        if (inside->dim[d]->kind == DIM_SYM && dim_eval(outside->dim[d], dims, &size))
            bindings_set(tmp, out, inside->dim[d]->name, size);
}

struct bindings plan_sizes_inside(struct arena *tmp, const struct node *n, int k, const struct graph *body, const struct bindings *dims)
{
    struct bindings out = {0};
    int own = body->inputs.n - body->captures;
    require(own >= 0 && node_captured(n, k) + body->captures <= n->nin);
    for (int i = 0; i < body->inputs.n; i++) {
        const struct value *operand = i < own ? n->in[i] : n->in[node_captured(n, k) + i - own];
        if (operand)
            bind_type(tmp, &body->inputs.at[i]->type, &operand->type, dims, &out);
    }
    return out;
}

/* 0 for data-dependent sizes. */
static int64_t value_bytes(const struct value *v, const struct bindings *dims)
{
    int64_t size[MAX_RANK], n, bytes;
    for (int d = 0; d < v->type.rank; d++)
        if (!dim_eval(v->type.dim[d], dims, &size[d]))
            return 0;
    return type_sizes_product(size, v->type.rank, &n) && (v->constant ? dtype_packed_bytes : dtype_bytes)(v->type.dtype, n, &bytes)
        ? plan_possible_bytes(bytes)
        : 0;
}

static int64_t slab_bytes(struct arena *tmp, const struct graph *g, const struct bindings *dims)
{
    struct lifetimes life = lifetime_items(tmp, g, NEWN(tmp, bool, g->inputs.n + 1), GRADIENTS_STAY);
    for (int i = 0; i < g->values.n; i++)
        if (life.item[i] >= 0)
            life.items[life.item[i]].bytes = value_bytes(g->values.at[i], dims);
    return slab_assign(tmp, life.items, life.nitem);
}

int64_t plan_bodies_bytes(struct arena *tmp, const struct graph *g, const struct bindings *dims)
{
    int64_t total = 0;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; g->nodes.at[i]->op && k < node_bodies(g->nodes.at[i]); k++) {
            const struct graph *body = node_body(g->nodes.at[i], k)->graph;
            struct bindings inside = plan_sizes_inside(tmp, g->nodes.at[i], k, body, dims);
            total = plan_possible_bytes(total + slab_bytes(tmp, body, &inside) + plan_bodies_bytes(tmp, body, &inside));
        }
    return total;
}
