/* copied_rows: rows of neighbours that a node goes through one by one: one that only moves elements copies them; an elementwise op reads an
 * operand again for each. */
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/cost/work.h"
#include "plan/space/space.h"

#include <math.h>

/* A value as a rank holds it. */
struct held {
    const struct value *v;
    struct placement place;
};

/* The dimension that is k-th in memory. */
static int dim_at(const struct space *s, const struct value *v, int k)
{
    if (!s->fused.last[v->id] || k == 0)
        return k;
    return k == v->type.rank - 1 ? 1 : k + 1;
}

/* Elements side by side in both, where one is a part of the other. */
static double common_run(struct space *s, struct held a, struct held b, int w, int r)
{
    double run = 1;
    for (int k = a.v->type.rank - 1; k >= 0; k--) {
        int d = dim_at(s, a.v, k);
        double own = cost_local_size(s, a.v, a.place, d, w, r), other = cost_local_size(s, b.v, b.place, d, w, r);
        run *= own < other ? own : other;
        if (own < other || other < own)
            break;
    }
    return run;
}

static double turned_run(struct space *s, const struct node *n, struct held y, int w, int r)
{
    const int64_t *perm;
    int rank = y.v->type.rank, d = rank - 1;
    double run = 1;
    if (attr_ints(s->g, n, "perm", &perm) != rank)
        return 1;
    for (; d >= 0 && perm[d] == d; d--)
        run *= cost_local_size(s, y.v, y.place, d, w, r);
    return run;
}

static double elements(struct space *s, struct held x, int w, int r)
{
    double n = 1;
    for (int d = 0; d < x.v->type.rank; d++)
        n *= cost_local_size(s, x.v, x.place, d, w, r);
    return n;
}

/* Of an operand and a result: of the one that is copied whole. */
static void add_pair(struct space *s, const struct node *n, struct held x, struct held y, int w, int r, struct work *k)
{
    if (x.v->type.rank != y.v->type.rank || x.v->type.rank == 0)
        return;
    double run = n->op->flags & OP_PERMUTES ? turned_run(s, n, y, w, r) : common_run(s, x, y, w, r);
    double all = elements(s, n->nin > 1 ? x : y, w, r);
    if (run > 1)
        k->rows += all / run;
    else if (run > 0)
        k->turned += all;
}

/* An elementwise op goes row by row through an operand that is repeated between rows. */
static double repeated_rows(struct space *s, const struct node *n, const struct strategy *st, int w, int r)
{
    struct held y = {n->out[0], st->out[0]};
    double rows = 0, all = elements(s, y, w, r);
    for (int i = 0; i < n->nin; i++) {
        const struct value *v = n->in[i];
        if (!v || v->type.rank != y.v->type.rank || type_eq(&v->type, &y.v->type))
            continue;
        double run = common_run(s, (struct held){v, st->in[i]}, y, w, r);
        rows = fmax(rows, run > 1 && run < all ? all / run : 0);
    }
    return rows;
}

void copied_rows_add(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, struct work_place at,
                     struct work *k)
{
    int w = at.workload, r = at.rank;
    if (rule && n->op->flags & OP_ELEMENTWISE && n->nin > 1 && n->out[0]) {
        k->rows = repeated_rows(s, n, st, w, r);
        return;
    }
    if (!rule || !rule->moves || (n->op->flags & (OP_SEEDS | OP_ELEMENTWISE)))
        return;
    for (int i = 0; i < n->nin; i++)
        for (int o = 0; o < n->nout; o++)
            if (n->in[i] && n->out[o])
                add_pair(s, n, (struct held){n->in[i], st->in[i]}, (struct held){n->out[o], st->out[o]}, w, r, k);
}
