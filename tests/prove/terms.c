/* terms: dense shares for R -> P(sum). With shares of both signs, f(2x) + f(-x) = f(x) holds for no Relu, Abs, square or constant. A mask
 * that joins terms holds huge numbers or infinities, which have no shares: rank 0 keeps these, as in the product. */
#include "job/io/io.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "tests/prove/prove.h"

#define HUGE_NUMBER 1e30
#define HUGE_IN_F16 1e4

struct maker {
    struct graph *g;
    const struct node *term;
};

static struct value *number(const struct maker *m, const char *what, double x)
{
    struct tensor t = {.dtype = m->term->in[0]->type.dtype};
    t.data = arena_alloc(m->g->arena, dtype_size(t.dtype));
    tensor_put(&t, 0, x);
    struct value *v = graph_constant(m->g, arena_printf(m->g->arena, "%s/%s", m->term->name, what), t.dtype, 0, NULL, t.data);
    v->placed = true;
    return v;
}

/* out NULL: a new value. The node goes to the end; graph_sort puts it right. */
static struct value *make(const struct maker *m, const char *op, int nin, struct value *const *in, struct value *out)
{
    const char *name = arena_printf(m->g->arena, "%s/%s", m->term->name, op);
    struct node *n = graph_node(m->g, op_find("", op), name, nin, in, 1);
    if (!out) {
        out = graph_value(m->g, name, &m->term->in[0]->type);
        out->placed = true;
    }
    node_output(m->g, n, 0, out);
    op_infer(m->g, n);
    graph_append(m->g, n);
    return out;
}

/* 2 -1, 1 -1 1, 2 -1 1 -1, ... */
static double share_of(int ranks, int rank)
{
    if (rank > 0)
        return rank % 2 ? -1 : 1;
    return ranks % 2 ? 1 : 2;
}

static void make_share(const struct maker *m, int ranks)
{
    struct value *x = m->term->in[0], *out = m->term->out[0];
    struct value *share = number(m, "share", share_of(ranks, m->g->rank));
    if (!dtype_is_float(x->type.dtype)) {
        make(m, "Mul", 2, (struct value *[]){x, share}, out);
        return;
    }
    struct value *most = number(m, "most", x->type.dtype == DT_F16 ? HUGE_IN_F16 : HUGE_NUMBER);
    struct value *size = make(m, "Abs", 1, &x, NULL), *part = make(m, "Mul", 2, (struct value *[]){x, share}, NULL);
    struct value *bounded = make(m, "Less", 2, (struct value *[]){size, most}, NULL);
    make(m, "Where", 3, (struct value *[]){bounded, part, m->g->rank == 0 ? x : number(m, "zero", 0)}, out);
}

void prove_dense_terms(struct graph *const *rank_graphs, int ranks)
{
    const struct op *term = op_find("tpc", "Term");
    for (int r = 0; r < ranks; r++) {
        struct graph *g = rank_graphs[r];
        int kept = 0, n = g->nodes.n;
        for (int i = 0; i < n; i++)
            if (g->nodes.at[i]->op == term)
                make_share(&(struct maker){g, g->nodes.at[i]}, ranks);
        for (int i = 0; i < g->nodes.n; i++)
            if (g->nodes.at[i]->op != term)
                g->nodes.at[kept++] = g->nodes.at[i];
        g->nodes.n = kept;
        graph_sort(g);
    }
}
