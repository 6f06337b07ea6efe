/* greedy: finds the first assignment that fits, without costs, like optimum's ParallelAxisSolverPass. A baseline.
 *
 * Nodes, in topological order, take the first strategy that fits the placements of their operands, in a fixed order of preference:
 *
 *     product with a weight    column-parallel (the result stays sharded), if the operand is replicated or split along the sequence;
 *                              row-parallel, if it is split along the contracted dimension; column-parallel, the result gathered;
 * replicated lookup in a weight       split by rows of the table (the vocabulary); replicated any other node           replicated if its
 * operands are; else a split of theirs that it passes on, replicated ones being sliced to match, or one that ends in it (a loss over split
 * classes)
 *
 * Partial values are reduced where they are made: scattered along the sequence under --sp, else replicated. Weights, states and values made
 * only from them are placed afterwards, as their readers need them. If nothing fits, the search backtracks to the latest choices that the
 * node depends on; their last options are a gathered result and replication. If none of them helps, they stay as they were, and the node is
 * replicated with gathered operands: the reshard that optimum lacks. Choices are a list, not a recursion. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <string.h>

struct standing {
    bool open;
    struct placement at;
}; /* open: its readers decide */
struct greedy_option {
    struct strategy *st;
    bool gathered;
}; /* gathered: the result is replicated, however the node leaves it */
struct visited {
    VEC(struct greedy_option) options;
    int next;
    bool listed, open, stuck;
    struct strategy *taken;
}; /* stuck: backtracking does not help */
struct greedy {
    struct space *s;
    struct standing *placed;
    struct visited *visit;
    bool *needed;
};

enum {
    LATEST_CHOICES = 3, /* choices to retry per node: heads of queries, keys and values must agree */
    MOST_VISITS = 16    /* per node, on average: far above what real graphs need */
};

/* ---- placements of values ---------------------------------------------------------------------------------------------------- */

static struct placement along_sequence(const struct space *s, const struct value *v)
{
    struct placement p = s->sequence.place[v->id];
    for (int k = 0; p.kind == PLACE_S && k < s->candidates[v->id][p.dim].list.n; k++)
        if (s->candidates[v->id][p.dim].list.at[k].split == p.split)
            return p;
    return placement_replicated;
}

static bool is_along_sequence(const struct space *s, const struct value *v, struct placement p)
{
    return p.kind == PLACE_S && placement_eq(p, s->sequence.place[v->id]);
}

static struct placement resharded_to(const struct space *s, const struct value *v, struct placement left, bool gathered)
{
    if (gathered || left.kind == PLACE_R)
        return placement_replicated;
    return left.kind == PLACE_P ? along_sequence(s, v) : left;
}

static bool reaches(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    return placement_eq(from, to) || reshard_find(s, v, from, to).cost < COST_NEVER;
}

/* Whether every result can be resharded as the option says. */
static bool can_reshard(const struct greedy *f, const struct node *n, struct greedy_option o)
{
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && !reaches(f->s, n->out[k], o.st->out[k], resharded_to(f->s, n->out[k], o.st->out[k], o.gathered)))
            return false;
    return true;
}

static void choose_option(struct greedy *f, int i, struct greedy_option o)
{
    const struct node *n = f->s->g->nodes.at[i];
    f->visit[i].taken = o.st;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            f->placed[n->out[k]->id] = (struct standing){false, resharded_to(f->s, n->out[k], o.st->out[k], o.gathered)};
}

/* ---- what fits a node --------------------------------------------------------------------------------------------------------- */

/* How a strategy fits the placements of the operands; NONE: it does not fit. SLICED: a replicated operand is cut along rows. */
enum fit { NONE, COLUMN_PARALLEL, ROW_PARALLEL, PASSED_ON, ENDED, SLICED, REPLICATED };

static bool is_layer(const struct space *s, const struct node *n)
{
    if (!n->op || !(n->op->flags & OP_SEEDS) || n->nout < 1 || !n->out[0])
        return false;
    return n->op->flags & OP_PRODUCT ? dim_node_reads_weight(s->roles, n) : n->in[0] && s->weight[n->in[0]->id];
}

static const struct standing *stand_of(const struct greedy *f, const struct node *n, int k)
{
    return n->in[k] && !f->placed[n->in[k]->id].open ? &f->placed[n->in[k]->id] : NULL;
}

struct operand_match {
    bool moved, sliced, met;
}; /* some operand would have to be communicated; is replicated and sliced; keeps its split */

static struct operand_match match_operands(const struct greedy *f, const struct node *n, const struct strategy *st, bool layer)
{
    struct operand_match m = {false, false, false};
    for (int k = 0; k < n->nin; k++) {
        const struct standing *at = stand_of(f, n, k);
        bool gathers = layer && at && st->in[k].kind == PLACE_R && is_along_sequence(f->s, n->in[k], at->at);
        m.moved |= st->in[k].kind == PLACE_P && n->in[k] && (at || !layer); /* the bias of a layer may be an addend */
        if (!at || gathers)
            continue;
        if (placement_eq(at->at, st->in[k]))
            m.met |= at->at.kind == PLACE_S;
        else if (at->at.kind == PLACE_R && reaches(f->s, n->in[k], at->at, st->in[k]))
            m.sliced = true;
        else
            m.moved = true;
    }
    return m;
}

static bool any_result(const struct node *n, const struct strategy *st, enum place kind)
{
    for (int k = 0; k < n->nout; k++)
        if (n->out[k] && st->out[k].kind == kind)
            return true;
    return false;
}

static bool splits_weight(const struct space *s, const struct node *n, const struct strategy *st)
{
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && s->weight[n->in[k]->id] && st->in[k].kind == PLACE_S)
            return true;
    return false;
}

static enum fit fit_in_layer(const struct greedy *f, const struct node *n, const struct strategy *st)
{
    struct operand_match m = match_operands(f, n, st, true);
    if (m.moved)
        return NONE;
    if (!strategy_splits(n, st))
        return REPLICATED;
    if (!splits_weight(f->s, n, st))
        return m.met && !m.sliced ? PASSED_ON : NONE;
    if (st->out[0].kind == PLACE_P)
        return m.sliced ? SLICED : ROW_PARALLEL;
    return st->out[0].kind == PLACE_S && !m.sliced ? COLUMN_PARALLEL : NONE;
}

static enum fit fit_elsewhere(const struct greedy *f, const struct node *n, const struct strategy *st)
{
    struct operand_match m = match_operands(f, n, st, false);
    bool split = any_result(n, st, PLACE_S);
    if (m.moved)
        return NONE;
    if (!strategy_splits(n, st))
        return REPLICATED;
    if (!m.met)
        return m.sliced ? SLICED : NONE;
    return st->lowered ? split ? NONE : ENDED : any_result(n, st, PLACE_P) ? NONE : PASSED_ON;
}

/* Whether an earlier option has the same strategy and the same placements of results. */
static bool is_offered(const struct greedy *f, int i, struct greedy_option o)
{
    const struct node *n = f->s->g->nodes.at[i];
    for (int j = 0; j < f->visit[i].options.n; j++) {
        const struct greedy_option *before = &f->visit[i].options.at[j];
        bool same = before->st == o.st;
        for (int k = 0; same && k < n->nout; k++)
            same = !n->out[k] ||
                placement_eq(resharded_to(f->s, n->out[k], o.st->out[k], before->gathered),
                             resharded_to(f->s, n->out[k], o.st->out[k], o.gathered));
        if (same)
            return true;
    }
    return false;
}

static void list_fitting(struct greedy *f, int i, bool layer, enum fit kind, bool gathered)
{
    const struct space *s = f->s;
    const struct node *n = s->g->nodes.at[i];
    for (int k = 0; k < s->strategies[i].list.n; k++) {
        struct greedy_option o = {s->strategies[i].list.at[k], gathered};
        if ((layer ? fit_in_layer(f, n, o.st) : fit_elsewhere(f, n, o.st)) == kind && can_reshard(f, n, o) && !is_offered(f, i, o))
            VEC_PUSH(s->arena, &f->visit[i].options, o);
    }
}

static void list_options(struct greedy *f, int i)
{
    const struct node *n = f->s->g->nodes.at[i];
    bool layer = is_layer(f->s, n), columns = layer && (n->op->flags & OP_PRODUCT);
    if (columns)
        list_fitting(f, i, layer, COLUMN_PARALLEL, false);
    list_fitting(f, i, layer, ROW_PARALLEL, false);
    list_fitting(f, i, layer, ROW_PARALLEL, true);
    list_fitting(f, i, layer, PASSED_ON, false);
    list_fitting(f, i, layer, ENDED, true);
    if (columns)
        list_fitting(f, i, layer, COLUMN_PARALLEL, true);
    list_fitting(f, i, layer, REPLICATED, true);
    if (!f->visit[i].options.n)
        list_fitting(f, i, layer, SLICED, false); /* the plan file leaves no other */
}

/* Whether all operands are weights, states, or made from them. */
static bool is_open(const struct greedy *f, const struct node *n)
{
    for (int k = 0; k < n->nin; k++)
        if (stand_of(f, n, k))
            return false;
    return !is_layer(f->s, n);
}

static void leave_open(struct greedy *f, int i)
{
    const struct node *n = f->s->g->nodes.at[i];
    f->visit[i].open = true;
    for (int k = 0; k < n->nout; k++)
        if (n->out[k])
            f->placed[n->out[k]->id].open = true;
}

/* ---- the search --------------------------------------------------------------------------------------------------------------- */

static void need_operands(struct greedy *f, int i)
{
    const struct node *n = f->s->g->nodes.at[i];
    for (int k = 0; k < n->nin; k++)
        if (n->in[k] && f->s->producer[n->in[k]->id] >= 0)
            f->needed[f->s->producer[n->in[k]->id]] = true;
}

/* Among the choices that node i depends on: the latest one with an option left, else the first; -1: none. */
static int way_back(struct greedy *f, int i)
{
    int choice = -1;
    memset(f->needed, 0, sizeof *f->needed * (size_t)i);
    need_operands(f, i);
    for (int k = i - 1, seen = 0; k >= 0 && seen < LATEST_CHOICES; k--) {
        if (!f->needed[k])
            continue;
        need_operands(f, k);
        if (f->visit[k].options.n < 2)
            continue;
        choice = k;
        seen++;
        if (f->visit[k].next < f->visit[k].options.n)
            return k;
    }
    return choice;
}

static struct greedy_option kept_replicated(const struct space *s, int i)
{
    const struct strategies *all = &s->strategies[i];
    return (struct greedy_option){all->list.at[all->list.n - 1], true}; /* the last one is replicated, if the plan file allows it */
}

static void reset_visit(struct visited *t)
{
    t->options.n = t->next = 0;
    t->listed = t->open = false;
}

/* Backtracks to the choice, for node i. */
static void go_back(struct greedy *f, int i, int choice)
{
    struct visited *c = &f->visit[choice];
    require(choice >= 0 && choice < i);
    for (int k = choice + 1; k <= i; k++)
        reset_visit(&f->visit[k]);
    if (c->next < c->options.n)
        return;
    c->next = 0;
    f->visit[i].stuck = true;
}

static void prepare_visit(struct greedy *f, int i)
{
    struct visited *t = &f->visit[i];
    if (t->listed)
        return;
    if (is_open(f, f->s->g->nodes.at[i]))
        leave_open(f, i);
    else
        list_options(f, i);
    t->listed = true;
}

static void search_all(struct greedy *f)
{
    int64_t visits = 0, most = (int64_t)MOST_VISITS * (f->s->g->nodes.n + 64);
    for (int i = 0; i < f->s->g->nodes.n; visits++) {
        struct visited *t = &f->visit[i];
        prepare_visit(f, i);
        bool fits = t->open || t->next < t->options.n;
        int choice = fits || t->stuck || visits > most ? -1 : way_back(f, i);
        if (choice >= 0) {
            go_back(f, i, choice);
            i = choice;
            continue;
        }
        if (!t->open)
            choose_option(f, i, fits ? t->options.at[t->next++] : kept_replicated(f->s, i));
        i++;
    }
}

/* ---- what was left open -------------------------------------------------------------------------------------------------------- */

/* The placement that its readers need, if they agree; else replicated. */
static struct placement wanted_by_readers(const struct greedy *f, const struct value *v)
{
    const struct place_uses *uses = &f->s->uses[v->id];
    struct placement want = placement_replicated;
    for (int i = 0; i < uses->list.n; i++) {
        struct place_use u = uses->list.at[i];
        struct placement p = u.node >= 0 ? f->visit[u.node].taken->in[u.operand] : placement_replicated;
        if (i > 0 && !placement_eq(want, p))
            return placement_replicated;
        want = p;
    }
    return want;
}

static struct strategy *strategy_for_readers(const struct greedy *f, int i)
{
    const struct node *n = f->s->g->nodes.at[i];
    const struct strategies *all = &f->s->strategies[i];
    for (int k = 0; k < all->list.n; k++) {
        bool fits = true;
        for (int j = 0; j < n->nout; j++)
            fits &= !n->out[j] || placement_eq(all->list.at[k]->out[j], wanted_by_readers(f, n->out[j]));
        if (fits)
            return all->list.at[k];
    }
    return all->list.at[all->list.n - 1];
}

/* ---- all nodes ------------------------------------------------------------------------------------------------------------------ */

static void open_ends(struct greedy *f)
{
    const struct graph *g = f->s->g;
    for (int i = 0; i < g->values.n; i++)
        f->placed[i].open = f->s->weight[i];
    for (int i = 0; i < g->states.n; i++)
        if (g->states.at[i].past)
            f->placed[g->states.at[i].past->id].open = true;
}

void greedy_assign(struct space *s)
{
    int nodes = s->g->nodes.n;
    struct greedy f = {s, NEWN(s->arena, struct standing, s->g->values.n + 1), NEWN(s->arena, struct visited, nodes + 1),
                       NEWN(s->arena, bool, nodes + 1)};
    open_ends(&f);
    search_all(&f);
    for (int i = nodes - 1; i >= 0; i--)
        if (f.visit[i].open)
            f.visit[i].taken = strategy_for_readers(&f, i);
    for (int i = 0; i < nodes; i++) {
        require(f.visit[i].taken);
        s->strategies[i] = (struct strategies){0};
        VEC_PUSH(s->arena, &s->strategies[i].list, f.visit[i].taken);
    }
}
