/* joint_table: a value read by few is one table over its producer and all its readers. An entry is the cheapest tree of reshards from the
 * producer's placement to the readers', so a reshard shared by readers is paid once, and every set of placements is covered. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/solve/solve.h"
#include "plan/space/space.h"

#include <string.h>

enum { MOST_ENDS = 6, MOST_ENTRIES = 1 << 21 }; /* readers and the producer; of a table */

/* An end of the value: its variable in the table, and the placement of each value of the variable. */
struct joint_end {
    int at, n;
    int *place;
};
struct joint {
    struct choice_problem *e;
    const struct value *v;
    int nend, nvar;
    struct joint_end end[MOST_ENDS]; /* the producer first */
    int var[MOST_ENDS];
    VEC(struct placement) places; /* of all ends */
    int64_t *reshard;             /* places * places: cost from one to another */
    int64_t *cut[2];              /* by place: the cost of ending a kernel there, or of beginning one (reshard_cuts) */
};

static int joint_place(struct joint *j, struct placement p)
{
    for (int i = 0; i < j->places.n; i++)
        if (placement_eq(j->places.at[i], p))
            return i;
    VEC_PUSH(j->e->arena, &j->places, p);
    return j->places.n - 1;
}

static void joint_add(struct joint *j, const struct endpoint *end)
{
    require(j->nend < MOST_ENDS && j->nvar < MOST_ENDS);
    struct joint_end *to = &j->end[j->nend++];
    *to = (struct joint_end){.n = end->n, .place = NEWN(j->e->arena, int, end->n)};
    while (to->at < j->nvar && j->var[to->at] != end->var)
        to->at++;
    if (to->at == j->nvar)
        j->var[j->nvar++] = end->var;
    for (int i = 0; i < end->n; i++)
        to->place[i] = joint_place(j, end->at[i]);
}

static void find_reshards(struct joint *j)
{
    int n = j->places.n;
    j->reshard = NEWN(j->e->arena, int64_t, n * n);
    for (int a = 0; a < n; a++)
        for (int b = 0; b < n; b++)
            j->reshard[a * n + b] = reshard_find(j->e->s, j->v, j->places.at[a], j->places.at[b]).cost;
    for (int a = 0; a < n; a++)
        require(j->reshard[a * n + a] == 0);
    for (int reads = 0; reads < 2; reads++) {
        j->cut[reads] = NEWN(j->e->arena, int64_t, n);
        for (int a = 0; a < n; a++)
            j->cut[reads][a] = cost_of_cut(j->e->s, j->v, j->places.at[a], reads);
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The cheapest tree from one placement to others: dynamic programming over sets, minimised over the placement made last. */
static int64_t tree_cost(const struct joint *j, int from, int n, const int *to)
{
    const int64_t *of = j->reshard + (int64_t)from * j->places.n;
    if (n < 2)
        return n ? of[to[0]] : 0;
    if (n == 2) {
        int64_t there = j->reshard[to[0] * j->places.n + to[1]], back = j->reshard[to[1] * j->places.n + to[0]];
        int64_t first = cost_plus(of[to[0]], least(of[to[1]], there)), second = cost_plus(of[to[1]], least(of[to[0]], back));
        return least(first, second);
    }
    int64_t best[1 << (MOST_ENDS - 1)] = {0};
    for (int set = 1; set < 1 << n; set++) {
        best[set] = COST_NEVER;
        for (int i = 0; i < n; i++) {
            if (!(set >> i & 1))
                continue;
            int64_t reach = j->reshard[from * j->places.n + to[i]];
            for (int k = 0; k < n; k++)
                if (k != i && set >> k & 1 && j->reshard[to[k] * j->places.n + to[i]] < reach)
                    reach = j->reshard[to[k] * j->places.n + to[i]];
            int64_t cost = cost_plus(best[set & ~(1 << i)], reach);
            best[set] = cost < best[set] ? cost : best[set];
        }
    }
    return best[(1 << n) - 1];
}

static int64_t joint_entry(const struct joint *j, const int *value)
{
    int from = j->end[0].place[value[j->end[0].at]], to[MOST_ENDS], n = 0;
    for (int i = 1; i < j->nend; i++) {
        int k = 0, p = j->end[i].place[value[j->end[i].at]];
        while (k < n && to[k] != p)
            k++;
        if (k == n && p != from)
            to[n++] = p;
    }
    int64_t cost = cost_plus(tree_cost(j, from, n, to), n > 0 ? j->cut[false][from] : 0);
    for (int i = 0; i < n; i++)
        cost = cost_plus(cost, j->cut[true][to[i]]);
    return cost;
}

static void fill_joint(const struct joint *j, int64_t *cost)
{
    const struct problem *p = j->e->p;
    int value[MOST_ENDS] = {0};
    for (int64_t k = 0;; k++) {
        cost[k] = joint_entry(j, value);
        int v = j->nvar - 1;
        while (v >= 0 && ++value[v] == p->size.at[j->var[v]])
            value[v--] = 0;
        if (v < 0)
            return;
    }
}

bool joint_table_make(struct choice_problem *e, const struct value *v, const struct endpoint *from, const struct endpoint *reader, int n,
                      int64_t most)
{
    struct joint j = {.e = e, .v = v};
    double entries = 1;
    if (n >= MOST_ENDS)
        return false;
    joint_add(&j, from);
    for (int i = 0; i < n; i++)
        joint_add(&j, &reader[i]);
    for (int i = 0; i < j.nvar; i++)
        entries *= e->p->size.at[j.var[i]];
    if (entries > (double)most || entries > MOST_ENTRIES)
        return false;
    find_reshards(&j);
    if (j.nvar > 1)
        fill_joint(&j, problem_table(e->p, j.nvar, j.var));
    return true;
}
