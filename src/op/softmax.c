/* Softmax: every row along the axis is normalised on its own, so all other dimensions are free; the axis itself stays whole. */
#include "op/op.h"
#include "op/table.h"

struct rule *rule_softmax(struct graph *g, const struct node *node)
{
    struct rule *r = rule_new(g, node);
    const struct type *x = &node->in[0]->type;
    int axis = x->rank > 0 ? op_axis(g, node, attr_int(node, "axis"), x->rank) : 0;
    for (int d = 0; d < x->rank; d++) {
        char name[12];
        snprintf(name, sizeof name, "%c%d", d == axis ? 'n' : 'a', d);
        int f = rule_factor(g, r, name, x->dim[d], d == axis ? FACTOR_WHOLE : 0);
        rule_put(g, &r->in[0], d, 0, f);
        rule_put(g, &r->out[0], d, 0, f);
    }
    return r;
}
