/* Operands of convolutions and pools: windows of any stride, dilation and padding. A window fits its dimension without padding, and sees an
 * element wherever it is. */
#include "tests/graphs/families.h"

struct slide {
    int axes;
    int64_t kernel[2], stride[2], dilation[2], pads[4];
};

static struct slide draw_slide(struct sketch *s, const struct value *x)
{
    struct slide w = {.axes = x->type.rank - 2};
    for (int i = 0; i < w.axes; i++) {
        int64_t size = sketch_size(s, x->type.dim[2 + i]), most = size > 3 ? 3 : size > 1 ? size : 1;
        w.kernel[i] = 1 + (int64_t)draw(s->draws, (unsigned)most);
        w.stride[i] = 1 + (int64_t)draw(s->draws, 3);
        w.dilation[i] = (w.kernel[i] - 1) * 2 + 1 <= size ? 1 + (int64_t)draw(s->draws, 2) : 1;
        for (int side = 0; side < 2; side++)
            w.pads[side * w.axes + i] = w.dilation[i] == 1 ? (int64_t)draw(s->draws, (unsigned)w.kernel[i]) : 0;
    }
    return w;
}

static void set_slide(struct sketch *s, struct node *n, const struct slide *w)
{
    static const char *const modes[] = {"SAME_UPPER", "SAME_LOWER", "VALID"};
    bool dilated = w->dilation[0] > 1 || (w->axes > 1 && w->dilation[1] > 1);
    attr_set_ints(s->g, n, "strides", w->axes, w->stride);
    attr_set_ints(s->g, n, "dilations", w->axes, w->dilation);
    if (!dilated && draw(s->draws, 3) == 1)
        attr_set_string(n, "auto_pad", modes[draw(s->draws, 3)]);
    else
        attr_set_ints(s->g, n, "pads", 2 * w->axes, w->pads);
}

void make_conv(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4);
    int64_t channels;
    if (!x || !dim_is_int(x->type.dim[1], &channels) || channels == 0)
        return;
    int64_t group = draw(s->draws, 3) == 1 && channels % 2 == 0 ? 2 : draw(s->draws, 4) == 1 ? channels : 1;
    struct slide slide = draw_slide(s, x);
    struct type t = x->type;
    t.dim[0] = dim_int(s->g->alg, group * (1 + (int64_t)draw(s->draws, 4)));
    t.dim[1] = dim_int(s->g->alg, channels / group);
    for (int i = 0; i < slide.axes; i++)
        t.dim[2 + i] = dim_int(s->g->alg, slide.kernel[i]);
    struct value *bias = draw(s->draws, 2) ? sketch_like(s, DT_F32, 1, t.dim) : NULL;
    struct value *w = sketch_const(s, &t, weight_fill(s, dim_mul(s->g->alg, t.dim[1], dim_int(s->g->alg, 4))));
    struct node *n = sketch_node(s, op, bias ? 3 : 2, (struct value *[]){x, w, bias}, 1);
    if (!n)
        return;
    attr_set_int(n, "group", group);
    set_slide(s, n, &slide);
    sketch_add(s, n, NULL);
}

void make_pool(struct sketch *s, const struct op *op)
{
    struct value *x = sketch_pick(s, SORT_FLOAT, 3, 4);
    struct node *n = sketch_node(s, op, 1, &x, 1);
    if (!n)
        return;
    struct slide slide = draw_slide(s, x);
    attr_set_ints(s->g, n, "kernel_shape", slide.axes, slide.kernel);
    set_slide(s, n, &slide);
    attr_set_int(n, "ceil_mode", draw(s->draws, 2));
    sketch_add(s, n, NULL);
}
