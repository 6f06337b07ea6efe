/* reshard: how a value gets from one placement to another: one step, or two by way of a third placement.
 *
 *     R -> S  local slice        S -> R  AllGather       P -> R  AllReduce      P -> S  ReduceScatter
 *     S -> S' AllToAll (another dimension), Redistribute (another split of the same one)      R -> P(sum)  rank 0 keeps it
 *
 * A sharded weight is never resharded: a rank reads only what it holds. Under --sp a partial value that has the sequence dimension is never
 * all-reduced: P -> S(sequence) -> R. */
#include "plan/cost/cost.h"
#include "plan/plan.h"
#include "plan/space/space.h"

#include <string.h>

static int64_t direct(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    struct transition t = reshard_transition(v, s->weight[v->id], from, to);
    if (placement_eq(from, to))
        return 0;
    if (!t.possible)
        return COST_NEVER;
    return cost_plus(cost_of_reshard(s, v, from, to), !s->limits.requested[v->id] && t.by ? s->limits.unrequested : 0);
}

static void consider(struct space *s, const struct value *v, struct placement from, struct placement via, struct placement to,
                     struct reshard_path *best)
{
    int64_t cost = cost_plus(direct(s, v, from, via), direct(s, v, via, to));
    if (cost < best->cost)
        *best = (struct reshard_path){.via = via, .has_via = true, .cost = cost};
}

struct reshard_path reshard_find(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    struct reshard_path best = {.cost = direct(s, v, from, to)};
    if (placement_eq(from, to))
        return best;
    if (from.kind == PLACE_P && to.kind == PLACE_R && s->sequence.place[v->id].kind == PLACE_S) {
        if (s->options->sp == SP_ON)
            best.cost = COST_NEVER;
        consider(s, v, from, s->sequence.place[v->id], to, &best);
    } else if (best.cost >= COST_NEVER && from.kind == PLACE_P && to.kind == PLACE_S) {
        consider(s, v, from, placement_replicated, to, &best);
    }
    require(best.cost >= 0 && (!best.has_via || (!placement_eq(best.via, from) && !placement_eq(best.via, to))));
    return best;
}

enum { EXACT_TARGETS = 6 };

/* The target to make before target i: its stop on the way, or i itself. */
static int on_the_way(struct space *s, const struct value *v, struct placement from, const struct placement *to, int n, const bool *have,
                      int i)
{
    struct reshard_path path = reshard_find(s, v, from, to[i]);
    for (int k = 0; path.has_via && k < n; k++)
        if (!have[k] && placement_eq(to[k], path.via))
            return k;
    return i;
}

/* Greedy tree: adds the target that is cheapest to reach, or the stop on the way to it, which may cost the same. */
static int64_t greedy_tree(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to, int *parent)
{
    bool have[RESHARD_TARGETS] = {false};
    int64_t total = 0;
    require(n <= RESHARD_TARGETS);
    for (int round = 0; round < n; round++) {
        int64_t best = COST_NEVER + 1;
        int which = -1, source = -1;
        for (int i = 0; i < n; i++)
            for (int j = -1; !have[i] && j < n; j++) {
                if (j >= 0 && !have[j])
                    continue;
                int64_t cost = reshard_find(s, v, j < 0 ? from : to[j], to[i]).cost;
                if (cost < best) {
                    best = cost;
                    which = i;
                    source = j;
                }
            }
        require(which >= 0 && which != source && (source < 0 || have[source])); /* no target depends on itself or on one that is not made
                                                                                 * yet */
        struct placement at = source < 0 ? from : to[source];
        which = on_the_way(s, v, at, to, n, have, which);
        have[which] = true;
        parent[which] = source;
        total = cost_plus(total, reshard_find(s, v, at, to[which]).cost);
    }
    require(total >= 0);
    return total;
}

/* Minimum arborescence over few targets: dynamic programming over sets of targets. Each target is added below its cheapest available parent
 * or the root, and every set keeps its cheapest last target. A greedy tree would reshard first and later gather several times. */
static int64_t exact_tree(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to, int *parent)
{
    int64_t best[1 << EXACT_TARGETS] = {0}, cost[EXACT_TARGETS + 1][EXACT_TARGETS];
    int last[1 << EXACT_TARGETS], below[1 << EXACT_TARGETS];
    for (int j = -1; j < n; j++)
        for (int i = 0; i < n; i++)
            cost[j + 1][i] = reshard_find(s, v, j < 0 ? from : to[j], to[i]).cost;
    for (int set = 1; set < 1 << n; set++) {
        best[set] = INT64_MAX;
        for (int at = 0; at < n * (n + 1); at++) {
            int i = at % n, j = at / n - 1, rest = set & ~(1 << i);
            if (rest == set || (j >= 0 && !(rest >> j & 1)) || cost_plus(best[rest], cost[j + 1][i]) >= best[set])
                continue;
            best[set] = cost_plus(best[rest], cost[j + 1][i]);
            last[set] = i;
            below[set] = j;
        }
    }
    for (int set = (1 << n) - 1; set; set &= ~(1 << last[set]))
        parent[last[set]] = below[set];
    return best[(1 << n) - 1];
}

int64_t reshard_cuts(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to)
{
    int64_t sum = n > 0 ? cost_of_cut(s, v, from, false) : 0;
    for (int i = 0; i < n; i++)
        sum = cost_plus(sum, cost_of_cut(s, v, to[i], true));
    return sum;
}

static int64_t cheapest_tree(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to, int *parent)
{
    int exact_parent[EXACT_TARGETS];
    int64_t greedy = greedy_tree(s, v, from, n, to, parent);
    if (n < 2 || n > EXACT_TARGETS)
        return greedy;
    int64_t exact = exact_tree(s, v, from, n, to, exact_parent);
    require(exact <= greedy);
    if (exact < greedy)
        memcpy(parent, exact_parent, (size_t)n * sizeof *parent);
    return exact;
}

int64_t reshard_tree(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to, int *parent)
{
    return cost_plus(cheapest_tree(s, v, from, n, to, parent), reshard_cuts(s, v, from, n, to));
}

/* ---- of a chosen plan --------------------------------------------------------------------------------------------------------- */

int reshard_position(const struct reshards *r, struct placement p)
{
    for (int i = 0; i < r->list.n; i++)
        if (placement_eq(r->list.at[i].place, p))
            return i;
    return -1;
}

bool reshard_is_read(const struct space *s, const struct value *v)
{
    const struct place_uses *uses = &s->uses[v->id];
    int i = 0;
    while (i < uses->list.n && placement_eq(space_read_as(s, uses->list.at[i]), v->place))
        i++;
    return i < uses->list.n;
}

struct reshards reshard_chosen(struct space *s, struct arena *a, const struct value *v)
{
    struct reshards r = {.list = {NULL, 0, 0}};
    const struct place_uses *uses = &s->uses[v->id];
    const struct placement *required = s->chosen.read[v->id];
    bool moved = required && !placement_eq(*required, v->place) && reshard_is_read(s, v);
    struct placement to[RESHARD_TARGETS];
    int parent[RESHARD_TARGETS];
    if (moved)
        VEC_PUSH(a, &r.list, ((struct reshard){.place = *required, .parent = -1}));
    for (int i = 0; i < uses->list.n; i++) {
        struct placement p = space_read_as(s, uses->list.at[i]);
        if (!placement_eq(p, v->place) && reshard_position(&r, p) < 0)
            VEC_PUSH(a, &r.list, ((struct reshard){.place = p}));
    }
    require(r.list.n <= RESHARD_TARGETS);
    for (int i = moved; i < r.list.n; i++)
        to[i - moved] = r.list.at[i].place;
    if (reshard_tree(s, v, moved ? *required : v->place, r.list.n - moved, to, parent) >= COST_NEVER)
        bug("no reshard of '%s' from %s", v->name, placement_str(a, v->place));
    for (int i = moved; i < r.list.n; i++)
        r.list.at[i].parent = parent[i - moved] + moved;
    for (int i = 0; i < r.list.n; i++)
        require(r.list.at[i].parent >= -1 && r.list.at[i].parent < r.list.n && r.list.at[i].parent != i);
    return r;
}
