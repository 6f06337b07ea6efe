/* resize_backward: the gradient of Resize. It is linear, one dimension at a time: applied to an identity matrix, it gives each result
 * position's weight for each element. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/spatial/spatial.h"
#include "op/table/table.h"

#include <string.h>

static _Noreturn void fail_mode(const struct backward *b, const char *what)
{
    fail("%s: no gradient passes this node: the gradient of %s is not supported", node_where(b->l.g, b->l.node), what);
}

static struct value *one_scale(struct backward *b, double scale)
{
    float *at = arena_alloc(b->l.g->arena, sizeof *at);
    int64_t one = 1;
    *at = (float)scale;
    return graph_constant(b->l.g, arena_printf(b->l.g->arena, "%s/scale", b->l.name), DT_F32, 1, &one, at);
}

/* [elements, places] along dimension d. */
static struct value *resized_unit(struct backward *b, int d, const struct resize_target *target)
{
    const struct node *node = b->l.node;
    const struct type *x = &node->in[0]->type;
    struct value *in[3] = {back_unit(b, x->dim[d], x->dtype), NULL, target->size ? NULL : one_scale(b, target->scale)};
    struct node *made = back_node(b, "Resize", 3, in);
    attr_copy(made, node);
    attr_set_ints(b->l.g, made, "axes", 1, (int64_t[]){1});
    if (target->size)
        attr_set_dims(b->l.g, made, "sizes", 1, &target->size);
    return back_infer(b, made);
}

void backward_resize(struct backward *b)
{
    const struct node *node = b->l.node;
    struct value *g = back_dy(b);
    if (strcmp(attr_string(node, "coordinate_transformation_mode"), "tf_crop_and_resize") == 0)
        fail_mode(b, "tf_crop_and_resize");
    if (strcmp(attr_string(node, "keep_aspect_ratio_policy"), "stretch") != 0)
        fail_mode(b, "keep_aspect_ratio_policy");
    for (int d = 0; d < g->type.rank; d++) {
        struct resize_target target = resize_target_of(b->l.g, node, d);
        bool same = target.size ? target.size == node->in[0]->type.dim[d] : target.scale >= 1 && target.scale <= 1;
        if (target.named && !same)
            g = back_along(b, g, d, resized_unit(b, d, &target));
    }
    back_to(b, 0, g);
}
