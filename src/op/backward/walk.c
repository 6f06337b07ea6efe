/* walk: backpropagates from a loss, node by node. Contributions to one value are added in the order of the walk. */
#include "op/backward/backward.h"
#include "op/infer/infer.h"
#include "op/op.h"

struct gradients gradients_new(struct graph *g, const char *suffix)
{
    struct gradients all = {.g = g, .values = g->values.n, .suffix = suffix};
    all.of = NEWN(g->arena, struct value *, g->values.n + 1);
    all.active = NEWN(g->arena, bool, g->values.n + 1);
    return all;
}

void gradients_activate(struct gradients *all, int n, struct node *const *node)
{
    for (int i = 0; i < n; i++) {
        bool reached = false;
        for (int k = 0; k < node[i]->nin; k++)
            reached |= node[i]->in[k] && all->active[node[i]->in[k]->id];
        for (int k = 0; reached && k < node[i]->nout; k++)
            if (node[i]->out[k])
                all->active[node[i]->out[k]->id] = dtype_is_float(node[i]->out[k]->type.dtype);
    }
}

void gradients_add(struct gradients *all, const struct value *v, struct value *contribution)
{
    require(v->id < all->values);
    struct value **sum = &all->of[v->id];
    require(type_eq(&contribution->type, &v->type));
    if (*sum) {
        struct node *add = op_node(all->g, "", "Add", arena_printf(all->g->arena, "%s/%s", v->name, all->suffix), 2,
                                   (struct value *[]){*sum, contribution});
        VEC_PUSH(all->g->arena, &all->made.list, add);
        contribution = add->out[0];
    }
    *sum = contribution;
}

void gradients_check(const struct graph *g, const struct node *node)
{
    const char *why = node->op ? node->op->no_backward : "tpc does not know the operator";
    if (why)
        fail("%s: no gradient passes this node: %s", node_where(g, node), why);
}

static void walk_node(struct gradients *all, struct node *node)
{
    struct graph *g = all->g;
    struct value **dy = NEWN(g->arena, struct value *, node->nout + 1), **dx = NEWN(g->arena, struct value *, node->nin + 1);
    bool *want = NEWN(g->arena, bool, node->nin + 1), asked = false, reached = false;
    for (int i = 0; i < node->nout; i++) {
        dy[i] = node->out[i] ? all->of[node->out[i]->id] : NULL;
        reached |= dy[i] != NULL;
    }
    for (int i = 0; i < node->nin; i++) {
        want[i] = node->in[i] && all->active[node->in[i]->id];
        asked |= want[i];
    }
    if (!reached || !asked)
        return;
    gradients_check(g, node);
    struct backward b = {.l = {.g = g, .node = node}, .dy = dy, .want = want, .dx = dx};
    b.l.name = arena_printf(g->arena, "%s/%s", node->name && *node->name ? node->name : node->optype, all->suffix);
    node->op->backward(&b);
    for (int i = 0; i < b.l.nodes.n; i++)
        VEC_PUSH(g->arena, &all->made.list, b.l.nodes.at[i]);
    for (int i = 0; i < node->nin; i++)
        if (dx[i])
            gradients_add(all, node->in[i], dx[i]);
}

static struct value *first_result(const struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            return n->out[i];
    return NULL;
}

void gradients_walk(struct gradients *all, int n, struct node *const *node)
{
    for (int i = n - 1; i >= 0; i--) {
        int made = all->made.list.n;
        walk_node(all, node[i]);
        for (; made < all->made.list.n; made++)
            all->made.list.at[made]->forward = first_result(node[i]);
    }
}
