/* missing_kernels: the ops of a graph that tpc-run cannot run. A node that reads a value of unknown type is not listed: the op that made
 * the value is. */
#include "op/analysis/analysis.h"
#include "op/op.h"

#include <string.h>

/* A node of a body may be shape arithmetic, which is removed before the body runs. */
static bool is_runnable(const struct node *n, bool in_body)
{
    return n->op && (n->op->kernel || (in_body && n->op->value) || (n->op->flags & (OP_VIEW | OP_COLLECTIVE | OP_CONTROL)));
}

/* It has a row, but no types for its rule. */
static bool lacks_types(const struct node *n)
{
    return !n->op && op_find(n->domain, n->optype);
}

static void note_missing(struct arena *a, struct missing_kernels *all, const struct node *n)
{
    const char *op = *n->domain ? arena_printf(a, "%s.%s", n->domain, n->optype) : n->optype;
    for (int i = 0; i < all->list.n; i++)
        if (strcmp(all->list.at[i].op, op) == 0) {
            all->list.at[i].nodes++;
            return;
        }
    const bool foreign = *n->domain && !n->op && strncmp(n->domain, "ai.onnx", 7) != 0 && strcmp(n->domain, "com.microsoft") != 0;
    VEC_PUSH(a, &all->list, ((struct missing_kernel){op, n->name, 1, foreign}));
}

static void look_in(struct arena *a, struct missing_kernels *all, const struct graph *g, bool in_body, bool untyped)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; n->op && k < node_bodies(n); k++)
            look_in(a, all, node_body(n, k)->graph, true, untyped);
        if (!is_runnable(n, in_body) && lacks_types(n) == untyped)
            note_missing(a, all, n);
    }
}

struct missing_kernels missing_kernels_of(struct arena *a, const struct graph *g)
{
    struct missing_kernels all = {{NULL, 0, 0}};
    look_in(a, &all, g, false, false);
    if (all.list.n == 0)
        look_in(a, &all, g, false, true);
    return all;
}

const char *missing_kernels_text(struct arena *a, const struct missing_kernels *all)
{
    const char *text = "";
    for (int i = 0; i < all->list.n; i++) {
        const struct missing_kernel *m = &all->list.at[i];
        const char *where = m->nodes > 1 ? arena_printf(a, "%d nodes, the first is '%s'", m->nodes, m->first)
                                         : arena_printf(a, "node '%s'", m->first);
        text = arena_printf(a, "%s%s%s (%s)", text, i ? ", " : "", m->op, where);
    }
    return text;
}

const char *missing_kernels_hint(const struct missing_kernels *all)
{
    bool foreign = false;
    for (int i = 0; i < all->list.n; i++)
        foreign = foreign || all->list.at[i].foreign;
    return foreign ? "; a plug-in may have operators of such a domain: --plugin FILE.so" : "";
}
