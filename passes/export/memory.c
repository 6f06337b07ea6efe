/* memory: predicts what every rank holds while it runs, and what one rank would hold that runs the whole graph. Ranks whose graphs differ
 * in nothing but their number hold the same. */
#include "op/op.h"
#include "passes/pass.h"
#include "plan/plan.h"

#include <string.h>

static bool same_list(const void *a, const void *b, size_t bytes)
{
    return a == b || (a && b && memcmp(a, b, bytes) == 0);
}

/* By content where localize sets it for each rank. */
static bool same_attr(const struct attr *a, const struct attr *b)
{
    if (a->set != b->set || !a->set)
        return a->set == b->set;
    return a->kind == b->kind && a->i == b->i && same_list(&a->f, &b->f, sizeof a->f) && a->s == b->s && a->n == b->n &&
        (a->kind == ATTR_INTS ? same_list(a->ints, b->ints, (size_t)a->n * sizeof *a->ints)
                              : a->kind != ATTR_DIMS || same_list(a->dims, b->dims, (size_t)a->n * sizeof *a->dims)) &&
        a->floats == b->floats && a->strings == b->strings && a->tensor == b->tensor && a->graph == b->graph && a->raw == b->raw;
}

static bool same_node(const struct node *a, const struct node *b)
{
    bool collective = a->op && (a->op->flags & OP_COLLECTIVE);
    bool same = a->op == b->op && a->nattr == b->nattr;
    for (int i = 0; same && i < a->nattr; i++)
        same = same_attr(&a->attr[i], &b->attr[i]) || (collective && strcmp(a->attr[i].name, "rank") == 0);
    return same;
}

/* The shards of one constant are of one use. */
static bool same_value(const struct value *a, const struct value *b)
{
    return type_eq(&a->type, &b->type) && (a->constant == b->constant || (a->constant && b->constant && a->place.kind == PLACE_S));
}

static bool same_graph(const struct graph *a, const struct graph *b)
{
    bool same = a->values.n == b->values.n && a->nodes.n == b->nodes.n;
    for (int i = 0; same && i < a->values.n; i++)
        same = same_value(a->values.at[i], b->values.at[i]);
    for (int i = 0; same && i < a->nodes.n; i++)
        same = same_node(a->nodes.at[i], b->nodes.at[i]);
    return same;
}

void pass_memory(struct compile *c)
{
    int ranks = c->graph->ranks;
    require(c->plan && c->source && c->rank_graphs);
    c->plan->use = NEWN(c->arena, struct rank_use, ranks);
    memory_estimate(c, c->source, 1, &c->plan->unsharded);
    for (int r = 0; r < ranks; r++)
        if (r && same_graph(c->rank_graphs[r - 1], c->rank_graphs[r]))
            c->plan->use[r] = c->plan->use[r - 1];
        else
            memory_estimate(c, c->rank_graphs[r], 1, &c->plan->use[r]);
}
