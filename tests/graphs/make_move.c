/* Operands of ops that move elements. */
#include "tests/graphs/families.h"

#include <string.h>

void make_identity(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 0, 4);
    sketch_add(s, sketch_node(s, op, 1, &x, 1), NULL);
}

void make_transpose(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 5);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t perm[MAX_RANK];
    for (int d = 0; n && d < x->type.rank; d++) {
        int at = d - (int)draw(s->draws, (uint32_t)d + 1);
        perm[d] = perm[at];
        perm[at] = d;
    }
    if (n)
        attr_set_ints(s->g, n, "perm", x->type.rank, perm);
    sketch_add(s, n, NULL);
}

/* Parts that are alike but for the axis, one of which may come twice. */
void make_concat(struct sketch *s, const struct op *op)
{
    struct value *in[3] = {sketch_pick(s, SORT_ANY, 1, 4)};
    int n = 2 + (int)draw(s->draws, 2), axis = in[0] ? (int)draw(s->draws, (uint32_t)in[0]->type.rank) : 0;
    for (int i = 1; i < n && in[0]; i++) {
        struct type t = in[0]->type;
        t.dim[axis] = draw(s->draws, 2) ? sketch_dim(s) : t.dim[axis];
        in[i] = draw(s->draws, 4) == 1 ? in[0] : sketch_like(s, t.dtype, t.rank, t.dim);
    }
    struct node *node = sketch_node(s, op, n, in, 1);
    if (node)
        attr_set_int(node, "axis", axis);
    sketch_add(s, node, NULL);
}

/* An axis of integer size of at least `least`; -1: none. */
static int static_axis(struct sketch *s, const struct value *x, int64_t least)
{
    int axis[MAX_RANK], n = 0;
    int64_t size;
    for (int d = 0; x && d < x->type.rank; d++)
        if (dim_is_int(x->type.dim[d], &size) && size >= least)
            axis[n++] = d;
    return n ? axis[draw(s->draws, (uint32_t)n)] : -1;
}

void make_split(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    int axis = static_axis(s, x, 2);
    int64_t size[3];
    if (axis < 0)
        return;
    int64_t all = sketch_size(s, x->type.dim[axis]);
    int n = all % 3 == 0 && draw(s->draws, 2) ? 3 : 2;
    size[0] = size[1] = size[2] = all / n;
    if (n == 2)
        size[1] = all - (size[0] = all % 2 == 0 && draw(s->draws, 2) == 0 ? all / 2 : 1 + (int64_t)draw(s->draws, (uint32_t)all - 1));
    struct node *node = sketch_node(s, op, 1, &x, n);
    attr_set_int(node, "axis", axis);
    set_sizes(s, node, "split", n, size);
    sketch_add(s, node, NULL);
}

/* For a symbolic axis: its beginning, or all but its first or last element. */
static void slice_bounds(struct sketch *s, const struct dim *dim, int64_t *start, int64_t *stop, int64_t *step)
{
    int64_t n;
    *step = 1;
    if (!dim_is_int(dim, &n)) {
        *start = (int64_t)draw(s->draws, 2);
        *stop = (int64_t[]){INT64_MAX, 2, -1}[draw(s->draws, 3)];
        return;
    }
    *start = n ? (int64_t)draw(s->draws, (uint32_t)n) : 0;
    *stop = *start + (int64_t)draw(s->draws, (uint32_t)(n - *start) + 1);
    *stop = *stop == n && draw(s->draws, 2) ? INT64_MAX : *stop;
    *step = 1 + (draw(s->draws, 4) == 1);
}

void make_slice(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    int64_t start, stop, step, axis = x ? (int64_t)draw(s->draws, (uint32_t)x->type.rank) : 0;
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    slice_bounds(s, x->type.dim[axis], &start, &stop, &step);
    set_sizes(s, n, "starts", 1, &start);
    set_sizes(s, n, "ends", 1, &stop);
    set_sizes(s, n, "axes", 1, &axis);
    set_sizes(s, n, "steps", 1, &step);
    sketch_add(s, n, NULL);
}

void make_tile(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t repeats[MAX_RANK];
    for (int d = 0; n && d < x->type.rank; d++)
        repeats[d] = draw(s->draws, 3) == 1 ? 2 : 1;
    if (n)
        set_sizes(s, n, "repeats", x->type.rank, repeats);
    sketch_add(s, n, NULL);
}

void make_trilu(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 2, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t k = (int64_t)draw(s->draws, 3) - 1;
    if (!n)
        return;
    attr_set_int(n, "upper", draw(s->draws, 2));
    if (k != 0)
        set_sizes(s, n, "k", 1, &k);
    sketch_add(s, n, NULL);
}

void make_repeat(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_ANY, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    attr_set_int(n, "axis", draw(s->draws, (uint32_t)x->type.rank));
    attr_set_int(n, "repeats", 2 + draw(s->draws, 2));
    sketch_add(s, n, NULL);
}

void make_pad(struct sketch *s, const struct op *op)
{
    static const char *const modes[] = {"constant", "edge", "reflect"};
    struct value *x = sketch_pick(s, SORT_FLOAT, 1, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t pads[2] = {draw(s->draws, 3), draw(s->draws, 3)}, axis = x ? (int64_t)draw(s->draws, (uint32_t)x->type.rank) : 0;
    const char *mode = modes[draw(s->draws, 3)];
    if (!n || (mode != modes[0] && sketch_size(s, x->type.dim[axis]) <= 2))
        return;
    attr_set_string(n, "mode", mode);
    set_sizes(s, n, "pads", 2, pads);
    set_sizes(s, n, "axes", 1, &axis);
    sketch_add(s, n, NULL);
}

/* Blocks of 2 by 2: DepthToSpace takes them from the channels, SpaceToDepth from the image. */
void make_depth(struct sketch *s, const struct op *op)
{
    static const char *const modes[] = {"DCR", "CRD"};
    bool from_channels = strcmp(op->name, "DepthToSpace") == 0;
    const struct dim *two = dim_int(s->g->alg, 2);
    struct type t = {.dtype = DT_F32, .rank = 4};
    for (int d = 0; d < 4; d++)
        t.dim[d] = from_channels == (d == 1) && d > 0 ? dim_mul(s->g->alg, two, sketch_static(s)) : sketch_dim(s);
    t.dim[1] = from_channels ? dim_mul(s->g->alg, two, t.dim[1]) : t.dim[1];
    struct value *x = sketch_like(s, DT_F32, 4, t.dim);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    attr_set_int(n, "blocksize", 2);
    attr_set_string(n, "mode", modes[draw(s->draws, 2)]);
    sketch_add(s, n, NULL);
}

/* One axis, to an integer size. */
void make_resize(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 2, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    int64_t axis = x ? (int64_t)draw(s->draws, (uint32_t)x->type.rank) : 0, size = 1 + (int64_t)draw(s->draws, 8);
    if (!n || sketch_size(s, x->type.dim[axis]) == 0)
        return;
    attr_set_ints(s->g, n, "axes", 1, &axis);
    set_sizes(s, n, "sizes", 1, &size);
    attr_set_string(n, "mode", s->exact || draw(s->draws, 2) ? "nearest" : "linear");
    sketch_add(s, n, NULL);
}
