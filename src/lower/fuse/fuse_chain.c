/* fuse_chain: connected elementwise operations become one Chain node (kern/pointwise/pointwise.h), which reads and writes memory once.
 *
 * From the last node backwards, each elementwise node is the root of a group. A producer joins when all its users are in the group, it is
 * no graph output, and it has the root's type (a smaller one would be computed again for every repetition). Groups of two or more are
 * replaced at the root's place.
 *
 * A root may be a QuantizeLinear. Operands that are decoded bytes are read as bytes, even if other nodes read them decoded. A
 * QuantizeLinear and the DequantizeLinear that follows join as a pair. */
#include "lower/fuse/chain.h"
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

struct fusion {
    struct graph *graph;
    struct arena *tmp;
    const struct uses *uses;
    int nvalues;
    bool *taken; /* by value id of a node's output: the node is in a chain */
};

static bool fusable(const struct node *n)
{
    if (byte_scale_encodes(n))
        return true;
    if (n->nout != 1 || !chain_computes(n))
        return false;
    const struct value *y = n->out[0];
    if (y->type.dtype != DT_F32 && y->type.dtype != DT_F16 && y->type.dtype != DT_BF16)
        return false;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k]->type.dtype != y->type.dtype && !chain_is_number(n->in[k]))
            return false;
    return true;
}

/* Whether the node is a member, or a member stands for it. */
static bool in_group(const struct chain_group *g, const struct node *n)
{
    for (int i = 0; i < g->n; i++)
        if (g->member[i] == n || chain_encoder(g->member[i]) == n)
            return true;
    return false;
}

static bool only_used_by(const struct fusion *f, const struct value *v, const struct chain_group *g)
{
    const struct uses *u = &f->uses[v->id];
    for (int i = 0; i < u->n; i++)
        if (!u->at[i].node || !in_group(g, u->at[i].node))
            return false;
    return true;
}

/* Operands from outside, each once, without numbers. -1: too many. */
static int outside(const struct chain_group *g, struct value **out)
{
    int n = 0;
    for (int i = 0; i < g->n; i++) {
        struct value *const *in;
        for (int k = 0, nin = chain_operands(g->member[i], &in); k < nin; k++) {
            int at = 0;
            if (chain_is_number(in[k]) || (in[k]->producer && in_group(g, in[k]->producer)))
                continue;
            while (at < n && out[at] != in[k])
                at++;
            if (at == CHAIN_INPUTS)
                return -1;
            if (at == n)
                out[n++] = in[k];
        }
    }
    return n;
}

/* Whether p decodes bytes that only the group reads, encoded for it from real numbers. */
static bool recodes(const struct fusion *f, const struct node *p)
{
    const struct node *d = byte_scale_decoder(p->out[0]), *q = d ? d->in[0]->producer : NULL;
    return q && d->in[0]->id < f->nvalues && f->uses[d->in[0]->id].n == 1 && byte_scale_encodes(q) && byte_scale_same(q, d);
}

/* A producer that may join; NULL: none. */
static struct node *can_join_chain(const struct fusion *f, const struct chain_group *g)
{
    struct type type = g->member[0]->out[0]->type;
    if (byte_scale_encodes(g->member[0]))
        type.dtype = DT_F32;
    for (int i = 0; i < g->n; i++) {
        struct value *const *in;
        for (int k = 0, nin = chain_operands(g->member[i], &in); k < nin; k++) {
            struct node *p = in[k]->producer;
            if (!p || in[k]->id >= f->nvalues || in_group(g, p) || !type_eq(&in[k]->type, &type) || !only_used_by(f, in[k], g))
                continue;
            if (recodes(f, p) || fusable(p))
                return p;
        }
    }
    return NULL;
}

static int all_instructions(const struct chain_group *g)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        n += chain_instructions(g->member[i]);
    return n;
}

static void grow(const struct fusion *f, struct chain_group *g)
{
    struct value *operand[CHAIN_INPUTS];
    struct node *p;
    while (g->n < (int)(sizeof g->member / sizeof *g->member) && all_instructions(g) < CHAIN_LENGTH - 6 && (p = can_join_chain(f, g))) {
        g->member[g->n++] = p;
        if (outside(g, operand) >= 0)
            continue;
        g->n--;
        return;
    }
}

/* Whether rows are so short that a Chain processes many at once (kern/pointwise/chain.c), with one number of v each. */
static bool spreads(const struct value *v, const struct value *y)
{
    enum { SHORT = 64 };
    int64_t n, rows = y->type.rank - 1;
    return rows > 0 && v->type.rank == y->type.rank && dim_is_int(y->type.dim[rows], &n) && n > 1 && n < SHORT &&
        dim_equals(v->type.dim[rows], 1);
}

/* Whether it saves nodes (all members but one, and decoders), or its rows are short. */
static bool pays(const struct chain_group *g, int nin, struct value *const *in)
{
    bool some = g->n > 1;
    for (int k = 0; k < nin; k++)
        some = some || byte_scale_decoder(in[k]) || spreads(in[k], g->member[0]->out[0]);
    return some;
}

static struct node *try_fuse(struct fusion *f, struct node *root)
{
    struct chain_group g = {.n = 1, .member = {root}};
    struct value *in[CHAIN_INPUTS];
    grow(f, &g);
    int nin = outside(&g, in);
    struct node *n = nin > 0 && pays(&g, nin, in) ? chain_code(f->graph, &g, nin, in) : NULL;
    for (int i = 0; n && i < g.n; i++) {
        f->taken[g.member[i]->out[0]->id] = true;
        if (chain_encoder(g.member[i]))
            f->taken[g.member[i]->in[0]->id] = true;
    }
    return n;
}

int fuse_chains(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct fusion f = {.graph = g, .tmp = tmp, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    f.taken = NEWN(tmp, bool, g->values.n);
    struct node **made = NEWN(tmp, struct node *, g->nodes.n);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        struct node *n = g->nodes.at[i];
        if (fusable(n) && !f.taken[n->out[0]->id])
            made[i] = try_fuse(&f, n);
    }
    int kept = 0, before = g->nodes.n;
    for (int i = 0; i < before; i++) {
        struct node *n = g->nodes.at[i];
        bool gone = n->nout == 1 && n->out[0] && n->out[0]->id < f.nvalues && f.taken[n->out[0]->id] && !made[i];
        if (!gone)
            g->nodes.at[kept++] = made[i] ? made[i] : n;
    }
    g->nodes.n = kept;
    arena_free(tmp);
    graph_prune(g);
    return before - g->nodes.n;
}
