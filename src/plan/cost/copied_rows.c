/* copied_rows: how many rows of neighbours a node copies one by one that only moves elements. Where rows are short, they take longer than
 * their bytes do (row_seconds of the machine). */
#include "op/op.h"
#include "plan/cost/cost.h"
#include "plan/space/space.h"

enum { SINGLE = 8 }; /* elements that take as long as a row where none has its neighbours: kernels copy them in squares, or by strides */

/* A value as a rank holds it. */
struct held {
    const struct value *v;
    struct placement place;
};

/* The dimension that is k-th in memory. */
static int dim_at(const struct space *s, const struct value *v, int k)
{
    if (!cost_has_channels_last(s, v) || k == 0)
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

/* Of an operand and a result: those of the one that is copied whole. */
static double pair_rows(struct space *s, const struct node *n, struct held x, struct held y, int w, int r)
{
    if (x.v->type.rank != y.v->type.rank || x.v->type.rank == 0)
        return 0;
    double run = op_is_onnx(n, "Transpose") ? turned_run(s, n, y, w, r) : common_run(s, x, y, w, r);
    return run > 0 ? elements(s, n->nin > 1 ? x : y, w, r) / (run > 1 ? run : SINGLE) : 0;
}

double cost_copied_rows(struct space *s, const struct node *n, const struct rule *rule, const struct strategy *st, int w, int r)
{
    double rows = 0;
    if (!rule || !rule->moves || (n->op->flags & (OP_SEEDS | OP_ELEMENTWISE)))
        return 0;
    for (int i = 0; i < n->nin; i++)
        for (int k = 0; k < n->nout; k++)
            if (n->in[i] && n->out[k])
                rows += pair_rows(s, n, (struct held){n->in[i], st->in[i]}, (struct held){n->out[k], st->out[k]}, w, r);
    return rows;
}
