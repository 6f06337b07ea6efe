/* expand_make: makes the nodes of expansions. */
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/op.h"

#include <string.h>

struct node *expand_append(struct graph *g, const char *op, const char *name, int nin, struct value *const *in, struct value *out,
                           const struct type *type)
{
    struct node *node = graph_node(g, op_find("", op), name, nin, in, 1);
    if (!out) {
        out = graph_value(g, name, type);
        out->placed = true;
    }
    node_output(g, node, 0, out);
    graph_append(g, node);
    return node;
}

struct value *expand_unary(struct graph *g, const char *op, const char *name, struct value *x, struct value *out)
{
    struct node *node = expand_append(g, op, name, 1, &x, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

struct value *expand_binary(struct graph *g, const char *op, const char *name, struct value *a, struct value *b, struct value *out)
{
    struct node *node = expand_append(g, op, name, 2, (struct value *[]){a, b}, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

struct value *expand_where(struct graph *g, const char *name, struct value *c, struct value *a, struct value *b, struct value *out)
{
    struct node *node = expand_append(g, "Where", name, 3, (struct value *[]){c, a, b}, out, NULL);
    op_infer(g, node);
    return node->out[0];
}

struct value *expand_shaped(struct graph *g, const char *op, const char *name, struct value *x, struct value *out, const struct type *to)
{
    struct node *node = expand_append(g, op, name, 1, &x, out, to);
    if (op_find("", op)->nin > 1)
        op_infer(g, node);
    return node->out[0];
}

struct value *expand_gather(struct graph *g, const char *name, struct value *x, struct value *index, int axis, struct value *out)
{
    struct node *node = expand_append(g, "Gather", name, 2, (struct value *[]){x, index}, out, NULL);
    attr_set_int(node, "axis", axis);
    op_infer(g, node);
    return node->out[0];
}

const char *expand_name(struct graph *g, const struct node *node, const char *part)
{
    return arena_printf(g->arena, "%s/%s", node->name ? node->name : node->optype, part);
}

struct value *expand_scalar(struct graph *g, const char *name, enum dtype dtype, const void *bytes)
{
    struct value *v = graph_find(g, name);
    if (v && v->constant && v->type.rank == 0 && v->type.dtype == dtype &&
        memcmp(constant_data(v->constant, name), bytes, dtype_size(dtype)) == 0)
        return v;
    v = graph_constant(g, name, dtype, 0, NULL, bytes);
    v->placed = true;
    return v;
}

struct value *expand_zero(struct graph *g, enum dtype dtype)
{
    void *bytes = arena_alloc(g->arena, sizeof(int64_t));
    return expand_scalar(g, arena_printf(g->arena, "tpc/zero/%s", dtype_name(dtype)), dtype, bytes);
}
