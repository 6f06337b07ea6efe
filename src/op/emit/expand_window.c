/* expand_window: windows over a rank's part of a symbolic size: where they exceed its ends is known only when sizes are, so a Pad adds the
 * padding that they read: zeros or, for a maximum, the least number. The window itself then has no padding there. */
#include "op/emit/emit.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <math.h>
#include <string.h>

/* The lowest number of a type, as bytes: -inf of floats. */
static const void *least_of(struct graph *g, enum dtype dtype)
{
    void *bytes = arena_alloc(g->arena, sizeof(int64_t));
    const float f32 = -INFINITY;
    const double f64 = -INFINITY;
    int64_t lo = 0, hi;
    if (dtype == DT_F32)
        return memcpy(bytes, &f32, sizeof f32);
    if (dtype == DT_F64)
        return memcpy(bytes, &f64, sizeof f64);
    if (dtype == DT_F16 || dtype == DT_BF16)
        lo = dtype == DT_F16 ? 0xFC00 : 0xFF80;
    else
        dtype_range(dtype, &lo, &hi);
    return memcpy(bytes, &lo, sizeof lo);
}

/* All spatial dimensions: which of them has a border is decided alike on every rank. */
static struct value *with_border(struct graph *g, const struct node *node)
{
    struct value *in[] = {node->in[0], NULL, NULL};
    enum dtype dtype = node->in[0]->type.dtype;
    bool greatest = strcmp(node->optype, "MaxPool") == 0;
    const struct dim **border, *axis[MAX_RANK];
    int n = attr_dims(node, "border", &border);
    if (greatest)
        in[2] = expand_scalar(g, arena_printf(g->arena, "tpc/least/%s", dtype_name(dtype)), dtype, least_of(g, dtype));
    struct node *pad = expand_append(g, "Pad", expand_name(g, node, "border"), greatest ? 3 : 1, in, NULL, NULL);
    for (int i = 0; i < n / 2; i++)
        axis[i] = dim_int(g->alg, 2 + i);
    attr_set_dims(g, pad, "pads", n, border);
    attr_set_dims(g, pad, "axes", n / 2, axis);
    op_infer(g, pad);
    return pad->out[0];
}

void expand_window(struct graph *g, struct node *node)
{
    if (attr_is_set(node, "border")) {
        struct value **in = NEWN(g->arena, struct value *, node->nin);
        memcpy(in, node->in, (size_t)node->nin * sizeof *in);
        in[0] = with_border(g, node);
        node->in = in;
        node_attr(node, "border")->set = false;
    }
    graph_append(g, node);
}
