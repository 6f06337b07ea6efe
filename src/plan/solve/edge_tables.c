/* A value read once links its producer and its reader directly. A value read more often has a variable of its own: how it is produced, and
 * the set of placements it is made available in, so that a reshard shared by readers is paid once. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

/* Placements that one may be turned into; subsets of them, where these hold more than so many at once; entries of tables that are small
 * enough not to look for smaller ones. */
enum { TARGETS = 20, SUBSETS = 256, AT_ONCE = 3, SMALL = 1 << 12 };

/* needed, by bit: some reader takes nothing else. */
struct targets {
    int n;
    unsigned needed;
    struct placement at[TARGETS];
};
/* As it is made, with a subset of what that can be turned into. */
struct availability {
    struct placement made;
    const struct targets *targets;
    unsigned set;
};

int solve_variable(struct choice_problem *e, int n, int replicated)
{
    require(replicated >= 0 && replicated < n);
    VEC_PUSH(e->arena, &e->replicated, replicated);
    return problem_variable(e->p, n);
}

/* Adds a placement unless it is there. */
static void edge_add_placement(struct endpoint *e, struct placement p)
{
    for (int i = 0; i < e->n; i++)
        if (placement_eq(e->at[i], p))
            return;
    e->at[e->n++] = p;
}

/* ---- the two ends of a value ----------------------------------------------------------------------------------------------- */

static struct endpoint node_end(struct choice_problem *e, int node, bool result, int i)
{
    const struct strategies *list = &e->s->strategies[node];
    struct endpoint out = {.var = e->node_var[node], .n = list->list.n, .at = NEWN(e->arena, struct placement, list->list.n + 1)};
    for (int k = 0; k < out.n; k++)
        out.at[k] = result ? list->list.at[k]->out[i] : list->list.at[k]->in[i];
    return out;
}

struct endpoint edge_source(struct choice_problem *e, const struct value *v)
{
    int node = e->s->producer[v->id];
    return node >= 0 ? node_end(e, node, true, v->index) : e->source[v->id];
}

static struct endpoint reader_end(struct choice_problem *e, struct place_use u)
{
    return u.node >= 0 ? node_end(e, u.node, false, u.operand) : e->sink[u.operand];
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */

/* A state can pass its variable to its own output: a table needs two different ones. */
static int64_t *pair_table(struct choice_problem *e, const struct endpoint *a, const struct endpoint *b)
{
    return a->var == b->var ? NULL : problem_pair(e->p, a->var, b->var);
}

static void link_directly(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *to)
{
    int64_t *cost = pair_table(e, from, to);
    for (int i = 0; cost && i < from->n; i++)
        for (int j = 0; j < to->n; j++)
            cost[i * to->n + j] = reshard_find(e->s, v, from->at[i], to->at[j]).cost;
}

static struct endpoint distinct(struct choice_problem *e, const struct endpoint *from)
{
    struct endpoint out = {.at = NEWN(e->arena, struct placement, from->n + 1)};
    for (int i = 0; i < from->n; i++)
        edge_add_placement(&out, from->at[i]);
    return out;
}

static struct endpoint wanted_by_all(struct choice_problem *e, const struct endpoint *reader, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += reader[i].n;
    struct endpoint out = {.at = NEWN(e->arena, struct placement, total + 1)};
    for (int i = 0; i < n; i++)
        for (int k = 0; k < reader[i].n; k++)
            edge_add_placement(&out, reader[i].at[k]);
    return out;
}

static int bits(unsigned x)
{
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

typedef VEC(struct availability) availabilities;

/* Does a reader take nothing but p? */
static bool only_choice(const struct endpoint *reader, int n, struct placement p)
{
    for (int i = 0; i < n; i++) {
        bool other = false;
        for (int k = 0; k < reader[i].n; k++)
            other = other || !placement_eq(reader[i].at[k], p);
        if (!other)
            return true;
    }
    return false;
}

/* What limits never lose, R and what is needed, comes first. */
static struct targets *targets_from(struct choice_problem *e, const struct value *v, struct placement made, const struct endpoint *wanted,
                                    const struct endpoint *reader, int readers)
{
    struct targets *out = NEW(e->arena, struct targets);
    for (int rest = 0; rest < 2; rest++)
        for (int i = 0; i < wanted->n; i++) {
            struct placement p = wanted->at[i];
            bool only = only_choice(reader, readers, p);
            if (rest == (only || p.kind == PLACE_R) || placement_eq(made, p) || reshard_find(e->s, v, made, p).cost >= COST_NEVER)
                continue;
            if (out->n == TARGETS) {
                e->complete = false;
                return out;
            }
            out->needed |= (unsigned)only << out->n;
            out->at[out->n++] = p;
        }
    return out;
}

/* How many subsets of n have no more than `most` elements. */
static int64_t subsets_within(int n, int most)
{
    int64_t all = 1, of_size = 1;
    for (int k = 1; k <= most; k++)
        all += of_size = of_size * (n - k + 1) / k;
    return all;
}

/* Readers need no more than one each. */
static int most_at_once(struct choice_problem *e, const struct targets *t, int readers)
{
    int most = readers < t->n ? readers : t->n, least = bits(t->needed) > AT_ONCE ? bits(t->needed) : AT_ONCE;
    while (most > least && subsets_within(t->n, most) > SUBSETS) {
        most--;
        e->complete = false;
    }
    return most;
}

/* made, with every subset of the other wanted placements that it can be turned into. */
static void subsets_from(struct choice_problem *e, const struct value *v, struct placement made, const struct endpoint *wanted,
                         const struct endpoint *reader, int readers, availabilities *out)
{
    const struct targets *t = targets_from(e, v, made, wanted, reader, readers);
    int most = most_at_once(e, t, readers);
    for (unsigned set = 0, next; set < 1u << t->n; set = next) {
        next = bits(set) > most ? set + (set & -set) : set + 1; /* up to there all have these and more */
        if (bits(set) <= most && (set & t->needed) == t->needed)
            VEC_PUSH(e->arena, out, ((struct availability){made, t, set}));
    }
}

static int64_t availability_cost(struct choice_problem *e, const struct value *v, const struct availability *a)
{
    struct placement have[TARGETS];
    int parent[TARGETS], n = 0;
    for (int i = 0; i < a->targets->n; i++)
        if (a->set >> i & 1)
            have[n++] = a->targets->at[i];
    return reshard_tree(e->s, v, a->made, n, have, parent);
}

static bool offers(const struct availability *a, struct placement p)
{
    if (placement_eq(a->made, p))
        return true;
    for (int i = 0; i < a->targets->n; i++)
        if (a->set >> i & 1 && placement_eq(a->targets->at[i], p))
            return true;
    return false;
}

static void link_by_sets(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *reader,
                         int nreader)
{
    struct endpoint made = distinct(e, from), wanted = wanted_by_all(e, reader, nreader);
    availabilities list = {0};
    int replicated = 0;
    for (int i = 0; i < made.n; i++) {
        replicated = made.at[i].kind == PLACE_R ? list.n : replicated; /* the first subset is empty */
        subsets_from(e, v, made.at[i], &wanted, reader, nreader, &list);
    }
    require(list.n > 0 && nreader > 1);
    int var = e->value_var[v->id] = solve_variable(e, list.n, replicated);
    int64_t *cost = problem_unary(e->p, var);
    for (int k = 0; k < list.n; k++)
        cost[k] = availability_cost(e, v, &list.at[k]);
    cost = problem_pair(e->p, from->var, var);
    for (int i = 0; i < from->n; i++)
        for (int k = 0; k < list.n; k++)
            cost[i * list.n + k] = placement_eq(from->at[i], list.at[k].made) ? 0 : COST_NEVER;
    for (int r = 0; r < nreader; r++) {
        cost = problem_pair(e->p, var, reader[r].var);
        for (int k = 0; k < list.n; k++)
            for (int j = 0; j < reader[r].n; j++)
                cost[k * reader[r].n + j] = offers(&list.at[k], reader[r].at[j]) ? 0 : COST_NEVER;
    }
}

/* Entries of the tables that link_by_sets makes, at least. */
static int64_t entries_by_sets(struct choice_problem *e, const struct endpoint *from, const struct endpoint *reader, int nreader)
{
    struct endpoint made = distinct(e, from), wanted = wanted_by_all(e, reader, nreader);
    int64_t each = from->n, sets = subsets_within(wanted.n - 1, nreader < AT_ONCE ? nreader : AT_ONCE);
    for (int i = 0; i < nreader; i++)
        each += reader[i].n;
    return made.n * sets * each;
}

static bool link_jointly(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *reader,
                         int nreader)
{
    int64_t otherwise = entries_by_sets(e, from, reader, nreader);
    return otherwise > SMALL && joint_table_make(e, v, from, reader, nreader, otherwise);
}

void edge_tables_make(struct choice_problem *e, const struct value *v)
{
    const struct place_uses *uses = &e->s->uses[v->id];
    struct endpoint from = edge_source(e, v);
    if (e->read_place[v->id].at) {
        link_directly(e, v, &from, &e->read_place[v->id]);
        from = e->read_place[v->id];
    }
    struct endpoint *reader = NEWN(e->arena, struct endpoint, uses->list.n + 1);
    for (int i = 0; i < uses->list.n; i++)
        reader[i] = reader_end(e, uses->list.at[i]);
    if (uses->list.n == 1)
        link_directly(e, v, &from, &reader[0]);
    else if (!link_jointly(e, v, &from, reader, uses->list.n))
        link_by_sets(e, v, &from, reader, uses->list.n);
}
