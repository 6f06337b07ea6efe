/* sums: which nodes of a rank file make terms of a sum, and which part of the summed dimension a rank has: metadata tpc.sum.NODE, for
 * tpc-run --deterministic, which completes a sum where it is made.
 *
 *   "D SPLIT"   dimension D of the first operand is summed over; SPLIT deals its factor to the ranks
 *   "term"      a whole value that one rank keeps and the others take for zero
 *   "once"      each element is on one rank, zero on the others (a lookup in a split table)
 *   "each"      the ranks' sums of floats are no terms: they are read one by one (a running sum)
 *
 * Nodes that make terms of terms are linear: nothing is noted for them. tpc.sums counts the entries. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/apply/apply.h"

#include <string.h>

static bool is_sum(const struct value *v)
{
    return v && v->placed && v->place.kind == PLACE_P && v->place.op == RED_SUM;
}

/* Of the first operand's split dimension, the split of the factor that the node sums over; NULL: it sums over none. */
static const struct split *summed(struct graph *g, const struct node *n)
{
    const struct value *x = n->nin > 0 ? n->in[0] : NULL;
    const struct rule *r = x && x->placed && x->place.kind == PLACE_S ? rule_of(g, n) : NULL;
    const struct rule_dim *d = r ? &r->in[0].dim[x->place.dim] : NULL;
    for (int i = 0; d && d->n == 1 && i < d->part[0].n; i++)
        if (r->factor[d->part[0].factor[i]].red == RED_SUM)
            return split_divide(g->alg, x->place.split, rule_sizes(g, r, d->part[0].factor, 0, i),
                                rule_sizes(g, r, d->part[0].factor, i + 1, d->part[0].n));
    return NULL;
}

/* A dimension of which every rank has a part becomes one of the ranks' sums: only the lowering of CumSum makes such a node. */
static bool sums_apart(const struct node *n)
{
    const struct value *x = n->nin > 0 ? n->in[0] : NULL, *y = n->nout > 0 ? n->out[0] : NULL;
    return strcmp(n->optype, "ReduceSum") == 0 && dtype_is_float(x->type.dtype) && x->place.kind == PLACE_S && y->place.kind == PLACE_S &&
        x->place.dim == y->place.dim && x->type.dim[x->place.dim] != y->type.dim[y->place.dim];
}

static const char *record(struct graph *g, const struct node *n)
{
    if (n->nout == 0 || !is_sum(n->out[0]))
        return sums_apart(n) ? "each" : NULL;
    const struct split *s = summed(g, n);
    if (s)
        return arena_printf(g->arena, "%d %s", n->in[0]->place.dim, split_str(g->arena, s));
    for (int i = 0; i < n->nin; i++)
        if (is_sum(n->in[i]))
            return NULL;
    return op_is_tpc(n, "Term") ? "term" : "once";
}

void plan_note_sums(struct graph *to, struct graph *global)
{
    int count = 0;
    for (int i = 0; i < global->nodes.n; i++) {
        const struct node *n = global->nodes.at[i];
        const char *text = record(global, n);
        if (!text)
            continue;
        graph_set_meta(to, arena_printf(to->arena, "tpc.sum.%s", n->name), text);
        count++;
    }
    graph_set_meta(to, "tpc.sums", arena_printf(to->arena, "%d", count));
}
