/* candidate: the splits that a dimension of a value may take.
 *
 * Seeds are the dimensions of weights at products and lookups, and head factors. They are propagated both ways through the rules until
 * nothing new appears; that carries a head split from the output projection through attention to a fused projection's columns and to the
 * cache, however the exporter wrote it. The file names no op, tensor or size. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <string.h>

/* ---- seeds --------------------------------------------------------------------------------------------------------------- */

/* Splits that cut no byte where two elements share one. */
static int weight_splits(struct space *s, const struct value *v, int d, const struct split *out[SHARE_FORMS])
{
    struct alg *alg = s->g->alg;
    const struct dim *per_byte = dim_int(alg, dtype_is_packed(v->type.dtype) ? 8 / dtype_bits(v->type.dtype) : 1),
                     *bytes = dim_quotient(alg, v->type.dim[d], per_byte);
    int n = shares_splits(s, bytes ? bytes : v->type.dim[d], out);
    for (int i = 0; bytes && i < n; i++)
        out[i] = split_scale(alg, out[i], dim_int(alg, 1), per_byte);
    return n;
}

static void seed_weight_dim(struct space *s, int node, const struct value *v, int d)
{
    const struct split *split[SHARE_FORMS];
    int n = weight_splits(s, v, d, split);
    for (int i = 0; i < n; i++)
        space_add(s, v, d, (struct candidate){split[i], false, "a weight of", node});
    const struct split *dealt = n == 1 ? experts_dealt_split(s, v, d, split[0]) : NULL; /* for ranks of equal speed */
    if (dealt)
        space_add(s, v, d, (struct candidate){dealt, false, "an expert of", node});
}

/* Seeds the dimensions of weights. A head size is not split: that would split rotary halves, and every head's product would need a sum. */
static void seed_weight_dims(struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    for (int i = 0; i < n->nin; i++) {
        struct value *v = n->in[i];
        int64_t size;
        for (int d = 0; v && s->weight[v->id] && d < v->type.rank; d++)
            if (dim_is_int(v->type.dim[d], &size) && size >= 2 && !s->head_size[dim_class_of(s->roles->class, v->id * MAX_RANK + d)])
                seed_weight_dim(s, node, v, d);
    }
}

/* Carries a candidate to a value. Not to a head size (the rotary part of latent attention is concatenated with that of the keys): every
 * head's product would need a sum, and rotations of pairs would make ever new splits of it. */
static bool carry(struct space *s, const struct value *v, struct placement p, struct candidate c)
{
    c.split = p.split;
    return p.kind == PLACE_S && !s->head_size[dim_class_of(s->roles->class, v->id * MAX_RANK + p.dim)] &&
        !experts_end_at(s, s->g->nodes.at[c.node], v, p.split) && space_add(s, v, p.dim, c);
}

/* Whether the operand is read by overlapping windows: carried upwards, each earlier node would read more and repeat its neighbours'
 * work. */
static bool reads_windows(const struct rule *r, int operand, struct placement p)
{
    return p.kind == PLACE_S && r->in[operand].dim[p.dim].window;
}

static bool add_placements(struct space *s, int node, const struct strategy *st, bool sequence, const char *source)
{
    require(st->in && st->out && source);
    const struct node *n = s->g->nodes.at[node];
    const struct candidate c = {NULL, sequence, source, node};
    bool changed = false;
    for (int i = 0; i < n->nin; i++)
        changed |= n->in[i] && !reads_windows(s->rule[node], i, st->in[i]) && carry(s, n->in[i], st->in[i], c);
    for (int i = 0; i < n->nout; i++)
        changed |= n->out[i] && carry(s, n->out[i], st->out[i], c);
    return changed;
}

static void seed_assignment(struct space *s, int node, const struct assignment *c)
{
    struct strategy st;
    if (strategy_projects(s, node, c, false, &st, NULL))
        add_placements(s, node, &st, false, "heads of");
}

/* Whether the factor only divides a head size (the pairs of an interleaved rotary). */
static bool within_head(const struct space *s, int node, int f)
{
    for (struct dim_walk w = dim_walk(node); dim_next(s->roles, &w);)
        if (w.rule->n == 1 && w.rule->part[0].n > 1 && w.rule->part[0].factor[0] == f && s->head_size[dim_class_of(s->roles->class, w.at)])
            return true;
    return false;
}

static void seed_factor(struct space *s, int node, int f)
{
    const struct rule *r = s->rule[node];
    struct assignment c = assignment_none(s, r);
    const struct split *split[SHARE_FORMS];
    int64_t size;
    if (!dim_is_int(r->factor[f].size, &size) || size < 2)
        return;
    for (int i = 0, n = shares_splits(s, r->factor[f].size, split); i < n; i++) {
        c.factor[f] = split[i];
        seed_assignment(s, node, &c);
    }
}

static void seed_head_groups(struct space *s, int node, int outer, int inner)
{
    const struct rule *r = s->rule[node];
    const struct dim *size = dim_mul(s->g->alg, r->factor[outer].size, r->factor[inner].size);
    if (!dim_is_int(size, NULL) || dim_equals(r->factor[inner].size, 1) || dim_equals(r->factor[outer].size, 1))
        return;
    struct assignment c = assignment_none(s, r);
    c.nproduct = 2;
    c.product[0] = outer;
    c.product[1] = inner;
    const struct split *split[SHARE_FORMS];
    for (int i = 0, n = shares_splits(s, size, split); i < n; i++) {
        c.product_split = split[i];
        seed_assignment(s, node, &c);
    }
}

static void seed_all(struct space *s)
{
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        const struct rule *r = s->rule[i];
        if (!r)
            continue;
        if ((n->op->flags & (OP_SEEDS | OP_DECODES)) && !dim_node_sums_nothing(s->roles, i))
            seed_weight_dims(s, i);
        for (int f = 0; f < r->nfactor; f++)
            if ((r->factor[f].flags & FACTOR_HEADS) && !within_head(s, i, f))
                seed_factor(s, i, f);
        if (r->query_outer >= 0 && r->query_inner >= 0)
            seed_head_groups(s, i, r->query_outer, r->query_inner);
    }
}

/* ---- propagation --------------------------------------------------------------------------------------------------------- */

static bool propagate_from(struct space *s, const struct dim_walk *w, struct tried *tried)
{
    bool changed = false;
    for (int k = 0; k < s->candidates[w->value->id][w->d].list.n; k++) {
        struct candidate from = s->candidates[w->value->id][w->d].list.at[k];
        struct assignments c = assignment_list(s, w->node, w->result, w->i, w->d, from.split);
        for (int j = 0; j < c.list.n; j++) {
            struct strategy st;
            if (assignment_is_new(s, w->node, tried, &c.list.at[j], from.sequence) &&
                strategy_projects(s, w->node, &c.list.at[j], from.sequence, &st, NULL))
                changed |= add_placements(s, w->node, &st, from.sequence, "through");
        }
    }
    return changed;
}

static bool propagate_node(struct space *s, int node)
{
    struct tried tried = {0};
    bool changed = false;
    arena_reset(s->tmp);
    for (struct dim_walk w = dim_walk(node); dim_next(s->roles, &w);)
        changed |= propagate_from(s, &w, &tried);
    return changed;
}

/* The number of candidates around a node; if it has not changed since the last visit, the node needs no visit. */
static int candidates_around(const struct space *s, const struct node *n)
{
    int count = 0;
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? n->nout : n->nin); i++) {
            const struct value *v = dim_node_value(n, side, i);
            for (int d = 0; v && d < v->type.rank; d++)
                for (int k = 0; k < s->candidates[v->id][d].list.n; k++)
                    count += s->candidates[v->id][d].list.at[k].sequence ? 1 : 2;
        }
    return count;
}

static bool share_between(struct space *s, const struct value *from, const struct value *to)
{
    bool changed = false;
    for (int d = 0; d < from->type.rank; d++)
        for (int k = 0; k < s->candidates[from->id][d].list.n; k++)
            changed |= space_add(s, to, d, s->candidates[from->id][d].list.at[k]);
    return changed;
}

/* A weight and its gradient are split alike. */
static bool share_trained(struct space *s)
{
    bool changed = false;
    for (int i = 0; i < s->g->trained.n; i++) {
        const struct value *weight = s->g->trained.at[i].weight, *gradient = s->g->outputs.at[s->g->trained.at[i].output];
        changed |= share_between(s, weight, gradient);
        changed |= share_between(s, gradient, weight);
    }
    return changed;
}

/* Marks nodes stale that it visits. */
static void propagate(struct space *s, bool *stale)
{
    for (bool changed = true, forward = true; changed; forward = !forward) {
        changed = share_trained(s);
        for (int k = 0; k < s->g->nodes.n; k++) {
            int i = forward ? k : s->g->nodes.n - 1 - k;
            int around = candidates_around(s, s->g->nodes.at[i]);
            if (around == s->around[i])
                continue;
            s->around[i] = around;
            stale[i] = true;
            changed |= propagate_node(s, i);
        }
    }
}

/* Propagates candidates added since the last call. */
static void spread_new(struct space *s)
{
    size_t bytes = sizeof *s->offered * (size_t)s->g->nodes.n;
    bool *stale = NEWN(s->arena, bool, s->g->nodes.n + 1);
    s->tmp = arena_new();
    propagate(s, stale);
    strategy_build_all(s, stale);
    arena_free(s->tmp);
    s->tmp = s->arena;
    s->offered = arena_alloc(s->arena, bytes + 1);
    memcpy(s->offered, s->strategies, bytes);
}

void space_spread(struct space *s)
{
    int nodes = s->g->nodes.n;
    s->around = NEWN(s->arena, int, nodes + 1);
    s->strategies = NEWN(s->arena, struct strategies, nodes + 1);
    spread_new(s);
}

/* ---- set-up -------------------------------------------------------------------------------------------------------------- */

static void index_uses(struct space *s)
{
    const struct graph *g = s->g;
    for (int i = 0; i < g->values.n; i++)
        s->producer[i] = -1;
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                s->producer[n->out[k]->id] = i;
        for (int k = 0; k < n->nin; k++)
            if (n->in[k])
                VEC_PUSH(s->arena, &s->uses[n->in[k]->id].list, ((struct place_use){i, k}));
    }
    for (int i = 0; i < g->outputs.n; i++)
        VEC_PUSH(s->arena, &s->uses[g->outputs.at[i]->id].list, ((struct place_use){-1, i}));
}

struct space *space_new(struct arena *a, struct graph *g, const struct options *options, struct plan *plan)
{
    struct space *s = NEW(a, struct space);
    require(options->ranks >= 1 && options->ranks <= PLAN_RANKS);
    *s = (struct space){.arena = a, .g = g, .options = options, .plan = plan, .ranks = options->ranks};
    int nodes = g->nodes.n + 1, values = g->values.n + 1;
    s->tmp = a;
    s->roles = dim_roles_of(a, g);
    s->rule = s->roles->rule;
    s->weight = s->roles->weight;
    s->candidates = arena_array(a, (size_t)values, sizeof *s->candidates);
    s->uses = NEWN(a, struct place_uses, values);
    s->producer = NEWN(a, int, values);
    s->sequence.place = NEWN(a, struct placement, values);
    s->sequence.passes = NEWN(a, bool, nodes);
    s->partial = NEWN(a, unsigned, values);
    s->chosen.output = NEWN(a, struct placement, g->outputs.n + 1);
    s->limits.required = NEWN(a, struct required_placements, values);
    s->limits.required_read = NEWN(a, struct required_placements, values);
    s->limits.requested = NEWN(a, bool, values);
    s->limits.requested_within = NEWN(a, bool, nodes);
    s->limits.unrequested = options->strict == STRICT_ON ? COST_NEVER : 0;
    s->chosen.read = NEWN(a, const struct placement *, values);
    index_uses(s);
    shares_find(s);
    experts_find(s);
    s->head_size = NEWN(a, bool, values *MAX_RANK);
    memcpy(s->head_size, s->roles->head_size, sizeof *s->head_size * (size_t)(g->values.n * MAX_RANK));
    seed_all(s);
    space_spread(s);
    if (options->sp != SP_OFF && options->ranks > 1) {
        sequence_seed(s);
        spread_new(s);
    }
    return s;
}
