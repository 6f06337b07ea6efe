/* edge_tables: a value read once links its producer and its reader directly. A value read more often has a variable of its own: how it is
 * produced, and the set of placements in which it is made available, so that a reshard shared by readers is paid once. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

/* Most placements that one may be converted to; how many at once, if there are many; entries of tables for which no smaller form is sought;
 * of tables that list sets. */
enum { TARGETS = 20, AT_ONCE = 3, SMALL = 1 << 12, MOST_ENTRIES = 1 << 18 };

/* needed: bits of placements that some reader requires. more: there are other placements. */
struct targets {
    int n;
    unsigned needed;
    bool more;
    struct placement at[TARGETS];
};
/* The placement in which a value is made, with a subset of the placements to which it can be resharded. If least is above 0: with all of
 * these, and at least `least` of them are read. */
struct availability {
    struct placement made;
    const struct targets *targets;
    unsigned set;
    int least;
};

int solve_variable(struct choice_problem *e, int n, int replicated)
{
    require(replicated >= 0 && replicated < n);
    VEC_PUSH(e->arena, &e->replicated, replicated);
    return problem_variable(e->p, n);
}

/* Adds a placement if it is new; returns its position. */
static int edge_add_placement(struct endpoint *e, struct placement p)
{
    for (int i = 0; i < e->n; i++)
        if (placement_eq(e->at[i], p))
            return i;
    e->at[e->n] = p;
    return e->n++;
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

struct endpoint edge_reader(struct choice_problem *e, struct place_use u)
{
    return u.node >= 0 ? node_end(e, u.node, false, u.operand) : e->sink[u.operand];
}

/* ---- tables ------------------------------------------------------------------------------------------------------------------ */

/* A state can pass its variable to its own output, but a table needs two different ones. */
static int64_t *pair_table(struct choice_problem *e, const struct endpoint *a, const struct endpoint *b)
{
    return a->var == b->var ? NULL : problem_pair(e->p, a->var, b->var);
}

static void link_directly(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *to)
{
    int64_t *cost = pair_table(e, from, to);
    for (int i = 0; cost && i < from->n; i++)
        for (int j = 0; j < to->n; j++)
            cost[i * to->n + j] = reshard_tree(e->s, v, from->at[i], !placement_eq(from->at[i], to->at[j]), &to->at[j], &(int){0});
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

typedef struct {
    VEC(struct availability) list;
} availabilities;

/* Whether a reader accepts only p. */
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

/* Orders targets: R and the needed ones come first, so that the limit never drops them. */
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
                out->more = true;
                return out;
            }
            out->needed |= (unsigned)only << out->n;
            out->at[out->n++] = p;
        }
    return out;
}

/* The number of subsets of n with at most `most` elements. */
static int64_t subsets_within(int n, int most)
{
    int64_t all = 1, of_size = 1;
    for (int k = 1; k <= most; k++)
        all += of_size = of_size * (n - k + 1) / k;
    return all;
}

/* The largest useful subset: readers need at most one placement each, and tables over the sets and all ends have `entries` entries per
 * set. */
static int most_at_once(const struct targets *t, int readers, int64_t entries)
{
    int most = readers < t->n ? readers : t->n, least = bits(t->needed) > 1 ? bits(t->needed) : 1;
    while (most > least && subsets_within(t->n, most) * entries > MOST_ENTRIES)
        most--;
    return most;
}

/* Combines `made` with every subset of the wanted placements that can be made from it. If there are too many, offers all at once for the
 * least cost of one further placement: too cheap, so a bound remains a bound. */
static void subsets_from(struct choice_problem *e, const struct value *v, struct placement made, const struct endpoint *wanted,
                         const struct endpoint *reader, int readers, int64_t entries, availabilities *out)
{
    const struct targets *t = targets_from(e, v, made, wanted, reader, readers);
    int most = most_at_once(t, readers, entries);
    require(bits(t->needed) <= most || t->n == 0);
    for (unsigned set = 0, next; set < 1u << t->n; set = next) {
        next = bits(set) > most ? set + (set & -set) : set + 1; /* all sets in between have at least as many */
        if (bits(set) <= most && (set & t->needed) == t->needed)
            VEC_PUSH(e->arena, &out->list, ((struct availability){made, t, set, 0}));
    }
    if (most < readers && (most < t->n || t->more) && wanted->n > RESHARD_TARGETS)
        e->complete = false;
    else if (most < readers && (most < t->n || t->more))
        VEC_PUSH(e->arena, &out->list, ((struct availability){made, t, 0, most + 1}));
}

/* The sum of the `count` least costs of reaching a wanted placement from any other. */
static int64_t least_reshards(struct choice_problem *e, const struct value *v, struct placement made, const struct endpoint *wanted, int n)
{
    int64_t *least = NEWN(e->arena, int64_t, wanted->n + 1), sum = 0;
    for (int i = 0; i < wanted->n; i++) {
        least[i] = placement_eq(made, wanted->at[i]) ? COST_NEVER : reshard_find(e->s, v, made, wanted->at[i]).cost;
        for (int j = 0; j < wanted->n && least[i] < COST_NEVER; j++) {
            int64_t cost = j == i ? COST_NEVER : reshard_find(e->s, v, wanted->at[j], wanted->at[i]).cost;
            least[i] = cost < least[i] ? cost : least[i];
        }
    }
    for (; n > 0; n--) {
        int low = 0;
        for (int i = 1; i < wanted->n; i++)
            low = least[i] < least[low] ? i : low;
        sum = cost_plus(sum, least[low]);
        least[low] = COST_NEVER;
    }
    return sum;
}

static int64_t availability_cost(struct choice_problem *e, const struct value *v, const struct availability *a,
                                 const struct endpoint *wanted)
{
    struct placement have[TARGETS];
    int parent[TARGETS], n = 0;
    if (a->least)
        return least_reshards(e, v, a->made, wanted, a->least);
    for (int i = 0; i < a->targets->n; i++)
        if (a->set >> i & 1)
            have[n++] = a->targets->at[i];
    return reshard_tree(e->s, v, a->made, n, have, parent);
}

static bool offers(struct choice_problem *e, const struct value *v, const struct availability *a, struct placement p)
{
    if (placement_eq(a->made, p))
        return true;
    if (a->least)
        return reshard_find(e->s, v, a->made, p).cost < COST_NEVER;
    for (int i = 0; i < a->targets->n; i++)
        if (a->set >> i & 1 && placement_eq(a->targets->at[i], p))
            return true;
    return false;
}

/* Fills in the cost of each set, and its placements. */
static const int64_t *fill_sets(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *wanted,
                                const availabilities *sets, int var)
{
    int n = sets->list.n;
    int64_t *own = problem_unary(e->p, var), *made = problem_pair(e->p, from->var, var);
    for (int k = 0; k < n; k++)
        own[k] = availability_cost(e, v, &sets->list.at[k], wanted);
    for (int i = 0; i < from->n; i++)
        for (int k = 0; k < n; k++)
            made[i * n + k] = placement_eq(from->at[i], sets->list.at[k].made) ? 0 : COST_NEVER;
    return own;
}

static void link_by_sets(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *reader,
                         int nreader)
{
    struct endpoint made = distinct(e, from), wanted = wanted_by_all(e, reader, nreader);
    availabilities sets = {0};
    int replicated = 0;
    int64_t each = from->n;
    for (int r = 0; r < nreader; r++)
        each += reader[r].n;
    for (int i = 0; i < made.n; i++) {
        replicated = made.at[i].kind == PLACE_R ? sets.list.n : replicated; /* the first subset is empty */
        subsets_from(e, v, made.at[i], &wanted, reader, nreader, each * made.n, &sets);
    }
    require(sets.list.n > 0 && nreader > 1);
    int var = solve_variable(e, sets.list.n, replicated);
    VEC_PUSH(e->arena, &e->relaxed, ((struct relaxed_value){v, var, fill_sets(e, v, from, &wanted, &sets, var)}));
    bool *offered = NEWN(e->arena, bool, sets.list.n *wanted.n);
    int columns = wanted.n;
    for (int k = 0; k < sets.list.n; k++)
        for (int j = 0; j < wanted.n; j++)
            offered[k * wanted.n + j] = offers(e, v, &sets.list.at[k], wanted.at[j]);
    for (int r = 0; r < nreader; r++) {
        int64_t *cost = problem_pair(e->p, var, reader[r].var);
        for (int j = 0; j < reader[r].n; j++) {
            int at = edge_add_placement(&wanted, reader[r].at[j]);
            require(at < columns); /* `offered` has a column for each */
            for (int k = 0; k < sets.list.n; k++)
                cost[k * reader[r].n + j] = offered[k * wanted.n + at] ? 0 : COST_NEVER;
        }
    }
}

/* The least number of entries of link_by_sets's tables. */
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

/* The ends of a value; `required`, if it is resharded before it is read, has the placements that remain. */
static struct endpoint *reader_ends(struct choice_problem *e, const struct value *v, struct endpoint *from)
{
    const struct place_uses *uses = &e->s->uses[v->id];
    struct endpoint *reader = NEWN(e->arena, struct endpoint, uses->list.n + 1);
    *from = e->read_place[v->id].at ? e->read_place[v->id] : edge_source(e, v);
    for (int i = 0; i < uses->list.n; i++)
        reader[i] = edge_reader(e, uses->list.at[i]);
    return reader;
}

void edge_tables_make(struct choice_problem *e, const struct value *v)
{
    int n = e->s->uses[v->id].list.n;
    struct endpoint from, made = edge_source(e, v), *reader = reader_ends(e, v, &from);
    if (e->read_place[v->id].at)
        link_directly(e, v, &made, &from);
    if (n == 1)
        link_directly(e, v, &from, &reader[0]);
    else if (!link_jointly(e, v, &from, reader, n))
        link_by_sets(e, v, &from, reader, n);
}

int64_t edge_reshards(struct choice_problem *e, const struct value *v, const int *value)
{
    int n = e->s->uses[v->id].list.n;
    struct endpoint from, *reader = reader_ends(e, v, &from), read = {.at = NEWN(e->arena, struct placement, n + 1)};
    struct placement at = from.at[value[from.var]];
    for (int i = 0; i < n; i++)
        if (!placement_eq(at, reader[i].at[value[reader[i].var]]))
            edge_add_placement(&read, reader[i].at[value[reader[i].var]]);
    return reshard_tree(e->s, v, at, read.n, read.at, NEWN(e->arena, int, read.n + 1));
}
