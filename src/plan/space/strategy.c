/* strategy: the strategies of a node: all replicated; one assignment of splits that its candidates suggest; or partial in and partial out.
 *
 * Partial strategies exist only downstream of a contraction (or for the other operand of such a value): an operand must be able to be a
 * partial sum. A linear op may multiply it only by finite, unmasked values: -inf times an addend of zero would be NaN. */
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "plan/space/space.h"

#include <math.h>
#include <string.h>

/* ---- of one node ----------------------------------------------------------------------------------------------------------- */

struct strategy strategy_replicated(struct arena *a, const struct node *n, const struct rule *r)
{
    return (struct strategy){.in = NEWN(a, struct placement, n->nin + 1),
                             .out = NEWN(a, struct placement, n->nout + 1),
                             .assignment = {.factor = NEWN(a, const struct split *, (r ? r->nfactor : 0) + 1)}};
}

struct strategy strategy_partial(struct arena *a, const struct node *n, const struct rule *r, const struct rule_pass *pass)
{
    struct strategy st = strategy_replicated(a, n, r);
    require(pass->from != RED_NONE && pass->to != RED_NONE);
    require(n->nin >= 32 || pass->operands >> n->nin == 0);
    for (int i = 0; i < n->nin && i < 32; i++)
        if (n->in[i] && (pass->operands >> i & 1))
            st.in[i] = placement_partial(pass->from);
    for (int i = 0; i < n->nout; i++)
        st.out[i] = placement_partial(pass->to);
    return st;
}

static bool lowering_fits(const struct node *n, const struct assignment *c, const struct rule *r)
{
    for (int f = 0; f < r->nfactor; f++)
        if (c->factor[f] && (r->factor[f].flags & FACTOR_LOWERED) && !(n->op->lower && op_lowers(r, f, c->factor[f])))
            return false;
    return true;
}

static bool assignment_is_lowered(const struct assignment *c, const struct rule *r)
{
    for (int f = 0; f < r->nfactor; f++)
        if (c->factor[f] && (r->factor[f].flags & FACTOR_LOWERED))
            return true;
    return false;
}

bool strategy_splits(const struct node *n, const struct strategy *st)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && st->in[i].kind != PLACE_R)
            return true;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && st->out[i].kind != PLACE_R)
            return true;
    return false;
}

static bool bytes_stay_whole(const struct node *n, const struct strategy *st)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !weight_divides(n->in[i], st->in[i]))
            return false;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !weight_divides(n->out[i], st->out[i]))
            return false;
    return true;
}

/* Whether the results are numbers that can be added; a lookup of booleans in a split table would need a sum. */
static bool sums_are_numbers(const struct node *n, const struct strategy *st)
{
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && n->out[i]->type.dtype == DT_BOOL && st->out[i].kind == PLACE_P && st->out[i].op == RED_SUM)
            return false;
    return true;
}

bool strategy_assigned(struct arena *a, struct graph *g, const struct node *n, const struct rule *r, int ranks, const struct assignment *c,
                       struct strategy *out, const char **why)
{
    const char *fault = NULL;
    *out = strategy_replicated(a, n, r);
    out->assignment = *c;
    out->lowered = assignment_is_lowered(c, r) || rule_travels(r, c);
    if (!lowering_fits(n, c, r))
        fault = "the op has no lowering for it";
    else if (!rule_project(g, r, ranks, c, out->in, out->out, &fault))
        require(fault);
    else if (!strategy_splits(n, out))
        fault = "it leaves every operand and result replicated";
    else if (!bytes_stay_whole(n, out))
        fault = "it cuts a byte that two elements share";
    else if (!sums_are_numbers(n, out))
        fault = "a result would be a partial sum of booleans";
    if (why)
        *why = fault;
    return !fault;
}

bool strategy_projects(struct space *s, int node, const struct assignment *c, bool sequence, struct strategy *out, const char **why)
{
    require(s->rule[node]);
    if (!sequence || sequence_passes(s, node, c))
        return strategy_assigned(s->tmp, s->g, s->g->nodes.at[node], s->rule[node], s->ranks, c, out, why);
    if (why)
        *why = "--sp keeps splits along a sequence out of this node";
    return false;
}

/* ---- the list ------------------------------------------------------------------------------------------------------------ */

static bool same_places(const struct node *n, const struct strategy *a, const struct strategy *b)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && !placement_eq(a->in[i], b->in[i]))
            return false;
    for (int i = 0; i < n->nout; i++)
        if (n->out[i] && !placement_eq(a->out[i], b->out[i]))
            return false;
    return true;
}

/* Every split has the plan's number of ranks, and exists in the value's type; sums are of numbers. */
static void require_legal(const struct space *s, const struct node *n, const struct strategy *st)
{
    for (int side = 0; side < 2; side++)
        for (int i = 0; i < (side ? n->nout : n->nin); i++) {
            struct placement p = side ? st->out[i] : st->in[i];
            const struct value *v = dim_node_value(n, side, i);
            require(!v || p.kind != PLACE_S || (p.dim < v->type.rank && p.split->ranks == s->ranks && !p.split->replicated));
            require(p.kind != PLACE_P || p.op != RED_NONE);
            require(!v || p.kind != PLACE_P || p.op != RED_SUM || v->type.dtype != DT_BOOL);
            require(!v || v->type.dtype != DT_STRING || p.kind == PLACE_R);
        }
}

static struct placement *placements_copy(struct space *s, int n, const struct placement *at)
{
    struct placement *copy = NEWN(s->arena, struct placement, n + 1);
    if (n)
        memcpy(copy, at, sizeof *at * (size_t)n);
    return copy;
}

static void keep_strategy(struct space *s, int node, const struct strategy *st)
{
    const struct node *n = s->g->nodes.at[node];
    struct strategies *list = &s->strategies[node];
    require_legal(s, n, st);
    for (int i = 0; i < list->list.n; i++)
        if (same_places(n, list->list.at[i], st))
            return;
    struct strategy *own = NEW(s->arena, struct strategy);
    int factors = s->rule[node] ? s->rule[node]->nfactor : 0;
    *own = *st;
    own->in = placements_copy(s, n->nin, st->in);
    own->out = placements_copy(s, n->nout, st->out);
    own->assignment.factor = NEWN(s->arena, const struct split *, factors + 1);
    if (factors)
        memcpy(own->assignment.factor, st->assignment.factor, sizeof *own->assignment.factor * (size_t)factors);
    VEC_PUSH(s->arena, &list->list, own);
}

/* Tries every assignment that a candidate of the node suggests, once. Keeps the strategies of legal assignments; if rejected is not NULL,
 * lists the illegal ones instead. */
static void try_candidate(struct space *s, const struct dim_walk *w, struct candidate from, struct tried *tried,
                          struct rejections *rejected)
{
    struct assignments c = assignment_list(s, w->node, w->result, w->i, w->d, from.split);
    struct strategy st;
    const char *why;
    if (rejected && !c.list.n)
        VEC_PUSH(s->arena, &rejected->list, ((struct rejection){.value = w->value, .dim = w->d, .split = from.split}));
    for (int j = 0; j < c.list.n; j++) {
        if (!assignment_is_new(s, w->node, tried, &c.list.at[j], from.sequence))
            continue;
        bool legal = strategy_projects(s, w->node, &c.list.at[j], from.sequence, &st, &why);
        if (legal && !rejected)
            keep_strategy(s, w->node, &st);
        if (!legal && rejected)
            VEC_PUSH(s->arena, &rejected->list, ((struct rejection){.assignment = c.list.at[j], .why = why}));
    }
}

static void try_splits(struct space *s, int node, struct rejections *rejected)
{
    struct tried tried = {0};
    for (struct dim_walk w = dim_walk(node); dim_next(s->roles, &w);)
        for (int k = 0; k < s->candidates[w.value->id][w.d].list.n; k++)
            try_candidate(s, &w, s->candidates[w.value->id][w.d].list.at[k], &tried, rejected);
}

struct rejections strategy_rejections(struct space *s, int node)
{
    struct rejections out = {0};
    try_splits(s, node, &out);
    return out;
}

static void keep_replicated(struct space *s, int node)
{
    struct strategy st = strategy_replicated(s->tmp, s->g->nodes.at[node], s->rule[node]);
    keep_strategy(s, node, &st);
}

/* ---- partial in, partial out --------------------------------------------------------------------------------------------- */

/* Marks constants that are added to or multiplied with values, directly or through nodes that only move elements: biases, scales, masks.
 * Not those that only fill a product or a table. */
static bool *partner_constants(const struct space *s)
{
    bool *mark = NEWN(s->arena, bool, s->g->values.n + 1);
    for (int i = s->g->nodes.n - 1; i >= 0; i--) {
        const struct node *n = s->g->nodes.at[i];
        const struct value *out = n->nout > 0 ? n->out[0] : NULL;
        bool moved = out && s->weight[out->id], seeds = n->op && (n->op->flags & OP_SEEDS);
        for (int k = 0; k < n->nin; k++)
            if (n->in[k] && s->weight[n->in[k]->id] && (moved ? mark[out->id] : !seeds))
                mark[n->in[k]->id] = true;
    }
    return mark;
}

/* Large weights of products and tables are assumed finite: reading them all would cost more than planning. */
static bool constant_is_finite(struct constant *c, const char *name, bool partner)
{
    int64_t n = constant_elements(c);
    if (!dtype_is_float(c->dtype) || (n > 4096 && !partner))
        return dtype_is_float(c->dtype);
    return op_constant_within(c, name, -1, 1e30, true);
}

/* Whether the operands are finite. For a node that only moves elements, its indices do not matter. */
static bool finite_operands(const struct space *s, int node, const bool *finite)
{
    const struct node *n = s->g->nodes.at[node];
    bool moves = s->rule[node] && s->rule[node]->moves;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && !finite[n->in[k]->id] && !(moves && k > 0 && !dtype_is_float(n->in[k]->type.dtype)))
            return false;
    return true;
}

/* Marks values that hold no mask: no comparison and no huge constant among their ancestors, up to a node whose results are bounded. */
static const bool *finite_values(struct space *s)
{
    bool *finite = NEWN(s->arena, bool, s->g->values.n + 1), *partner = partner_constants(s);
    for (int i = 0; i < s->g->values.n; i++) {
        const struct value *v = s->g->values.at[i];
        finite[i] = v->type.dtype != DT_BOOL &&
            (!v->constant || !dtype_is_float(v->type.dtype) || constant_is_finite(v->constant, v->name, partner[i]));
    }
    for (int i = 0; i < s->g->nodes.n; i++) {
        const struct node *n = s->g->nodes.at[i];
        bool all = (n->op && (n->op->flags & OP_BOUNDED)) || finite_operands(s, i, finite);
        for (int k = 0; k < n->nout; k++)
            if (n->out[k])
                finite[n->out[k]->id] &= all;
    }
    return finite;
}

static bool linear_set_fits(struct space *s, int node, uint32_t set)
{
    const struct node *n = s->g->nodes.at[node];
    bool reached = false;
    for (int i = 0; i < n->nin; i++) {
        const struct value *v = n->in[i];
        if (!v)
            continue;
        if (i < 32 && (set >> i & 1)) {
            bool partial = space_partial(s, v, RED_SUM);
            reached |= partial;
            if (!dtype_is_float(v->type.dtype) || (!partial && v->constant && !s->finite[v->id]))
                return false;
        } else if (dtype_is_float(v->type.dtype) && !s->finite[v->id]) {
            return false;
        }
    }
    return reached;
}

/* Whether partial maxima or minima can reach the operands; only a partial sum can be made from a replicated value. */
static bool extremes_reach(const struct space *s, int node, const struct rule_pass *pass)
{
    const struct node *n = s->g->nodes.at[node];
    for (int i = 0; i < n->nin && i < 32; i++)
        if ((pass->operands >> i & 1) && n->in[i] && !space_partial(s, n->in[i], pass->from))
            return false;
    return true;
}

static void keep_partial(struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    const struct rule *r = s->rule[node];
    struct rule_pass pass[MOST_PASSES];
    int passes = r ? rule_passes(r, pass) : 0;
    for (int k = 0; k < passes; k++) {
        if (pass[k].from == RED_SUM ? !linear_set_fits(s, node, pass[k].operands) : !extremes_reach(s, node, &pass[k]))
            continue;
        struct strategy st = strategy_partial(s->tmp, n, r, &pass[k]);
        keep_strategy(s, node, &st);
    }
}

static void mark_partial(struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    for (int k = 0; k < s->strategies[node].list.n; k++)
        for (int i = 0; i < n->nout; i++)
            if (n->out[i] && s->strategies[node].list.at[k]->out[i].kind == PLACE_P)
                s->partial[n->out[i]->id] |= 1u << s->strategies[node].list.at[k]->out[i].op;
}

static bool operands_differ(const struct space *s, const struct node *n, const unsigned *partial)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && s->partial[n->in[i]->id] != partial[n->in[i]->id])
            return true;
    return false;
}

static void build(struct space *s, int node)
{
    s->strategies[node] = (struct strategies){0};
    arena_reset(s->tmp);
    if (s->ranks > 1) {
        try_splits(s, node, NULL);
        keep_partial(s, node);
    }
    keep_replicated(s, node);
    require(!strategy_splits(s->g->nodes.at[node], s->strategies[node].list.at[s->strategies[node].list.n - 1])); /* later ones depend on
                                                                                                                   * the last */
}

void strategy_build_all(struct space *s, const bool *stale)
{
    const unsigned *before = s->partial;
    s->finite = s->finite ? s->finite : finite_values(s);
    s->partial = NEWN(s->arena, unsigned, s->g->values.n + 1);
    for (int i = 0; i < s->g->nodes.n; i++) {
        if (!s->strategies[i].list.n || stale[i] || operands_differ(s, s->g->nodes.at[i], before))
            build(s, i);
        mark_partial(s, i);
    }
}

static const char *place_outline(struct arena *a, struct placement p)
{
    return p.kind == PLACE_S ? arena_printf(a, "S(%d;*)", p.dim) : placement_str(a, p);
}

/* Joins the texts. */
static char *join(struct arena *a, int n, const char *const *text)
{
    size_t bytes = 1;
    for (int i = 0; i < n; i++)
        bytes += strlen(text[i]);
    char *all = arena_alloc(a, bytes), *at = all;
    for (int i = 0; i < n; i++)
        at = stpcpy(at, text[i]);
    return all;
}

static char *strategy_print(struct arena *a, const struct node *n, const struct strategy *st, bool splits)
{
    const char **text = NEWN(a, const char *, 2 * (n->nin + n->nout) + 2);
    int count = 0;
    for (int side = 0; side < 2; side++) {
        text[count++] = side ? " ->" : "";
        for (int i = 0; i < (side ? n->nout : n->nin); i++) {
            struct placement p = side ? st->out[i] : st->in[i];
            text[count++] = i || side ? " " : "";
            text[count++] = !dim_node_value(n, side, i) ? "_" : splits ? placement_str(a, p) : place_outline(a, p);
        }
    }
    return join(a, count, text);
}

char *strategy_str(struct arena *a, const struct node *n, const struct strategy *st)
{
    return strategy_print(a, n, st, true);
}

char *strategy_outline(struct arena *a, const struct node *n, const struct strategy *st)
{
    return strategy_print(a, n, st, false);
}

const char *strategy_missing(const struct space *s, int node)
{
    const struct node *n = s->g->nodes.at[node];
    if (!n->op)
        return op_find(n->domain, n->optype) ? "it reads a value of unknown type" : "no rule for this op";
    if (n->op->flags & OP_CONTROL)
        return "its bodies run on every rank";
    if (!s->rule[node] && rule_of_strings(n))
        return "strings are on every rank";
    if (s->rule[node])
        return NULL;
    if (n->op->rule && strcmp(n->op->rule_name, "replicated") == 0)
        return "its results depend on every element of the operand";
    return n->op->rule ? "no rule for this form of the op" : "no rule for this op";
}
