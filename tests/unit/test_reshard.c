/* Trees of reshards against enumeration: every way to hang targets on one another. */
#include "plan/cost/cost.h"
#include "tests/unit/main.h"
#include "tests/unit/space.h"

enum { CASES = 2500, MOST = 4, MANY = 12 };

/* What a step costs, by the table of transitions. */
static int64_t step_cost(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    if (placement_eq(from, to))
        return 0;
    bool sum_on_sequence = from.kind == PLACE_P && to.kind == PLACE_R && s->sequence.place[v->id].kind == PLACE_S;
    struct transition t = placement_transition(from, to);
    bool held = s->weight[v->id] && from.kind == PLACE_S;
    if (!t.possible || held || (sum_on_sequence && s->options->sp == SP_ON))
        return COST_NEVER;
    bool unasked = t.by != COLL_NONE && !s->limits.requested[v->id];
    return cost_plus(cost_of_reshard(s, v, from, to), unasked ? s->limits.unrequested : 0);
}

/* The cheapest of the step and of two: a partial value becomes replicated, or sharded in a way that no step leads to, through another
 * placement. */
static int64_t path_cost(struct space *s, const struct value *v, struct placement from, struct placement to)
{
    const struct placement through = to.kind == PLACE_R ? s->sequence.place[v->id] : placement_replicated;
    int64_t step = step_cost(s, v, from, to);
    if (from.kind != PLACE_P || to.kind == PLACE_P || (to.kind == PLACE_R && through.kind == PLACE_R) ||
        (to.kind == PLACE_S && step < COST_NEVER))
        return step;
    int64_t two = cost_plus(step_cost(s, v, from, through), step_cost(s, v, through, to));
    return two < step ? two : step;
}

struct tree {
    struct space *s;
    const struct value *v;
    struct placement at[MOST + 1]; /* the root and the targets */
    int n, parent[MOST + 1];
    int64_t best;
};

static bool hangs(const struct tree *t, int k)
{
    for (int steps = 0; k > 0; k = t->parent[k])
        if (steps++ > t->n)
            return false;
    return true;
}

static void judge(struct tree *t)
{
    int64_t total = 0;
    for (int k = 1; k < t->n; k++) {
        if (!hangs(t, k))
            return;
        total = cost_plus(total, path_cost(t->s, t->v, t->at[t->parent[k]], t->at[k]));
    }
    if (total < t->best)
        t->best = total;
}

static void enumerate(struct tree *t, int k)
{
    if (k == t->n) {
        judge(t);
        return;
    }
    for (int p = 0; p < t->n; p++)
        if (p != k) {
            t->parent[k] = p;
            enumerate(t, k + 1);
        }
}

static int64_t brute(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to)
{
    struct tree t = {.s = s, .v = v, .at = {from}, .n = n + 1, .best = COST_NEVER};
    for (int i = 0; i < n; i++)
        t.at[i + 1] = to[i];
    enumerate(&t, 1);
    return t.best;
}

static struct arena *a;
static void setup(void)
{
    a = arena_new();
}
static void teardown(void)
{
    arena_free(a);
}

static struct placement draw_placement(struct space *s, const struct value *v, bool partial)
{
    int kind = chance(partial ? 4 : 3), d = chance(2);
    if (kind == 0)
        return placement_replicated;
    if (kind == 3)
        return placement_partial(chance(3) ? RED_SUM : RED_MAX);
    const struct split *even = split_even(s->g->alg, s->ranks, v->type.dim[d]);
    return placement_split(d,
                           chance(3) ? even
                                     : split_scale(s->g->alg, split_even(s->g->alg, s->ranks, dim_int(s->g->alg, 4)), dim_int(s->g->alg, 1),
                                                   dim_int(s->g->alg, d ? 6 : 12)));
}

static int draw_targets(struct space *s, const struct value *v, struct placement from, struct placement *to)
{
    int n = 0;
    for (int tries = 1 + chance(MOST + 2); tries > 0 && n < MOST; tries--) {
        struct placement p = draw_placement(s, v, from.kind == PLACE_P && chance(2));
        bool there = placement_eq(p, from);
        for (int i = 0; i < n; i++)
            there |= placement_eq(p, to[i]);
        if (!there)
            to[n++] = p;
    }
    return n;
}

static int64_t cost_of_parents(struct space *s, const struct value *v, struct placement from, int n, const struct placement *to,
                               const int *parent)
{
    int64_t total = 0;
    for (int i = 0; i < n; i++) {
        int steps = 0;
        for (int k = i; k >= 0; k = parent[k])
            ck_assert_int_le(steps++, n);
        total = cost_plus(total, reshard_find(s, v, parent[i] < 0 ? from : to[parent[i]], to[i]).cost);
    }
    return total;
}

static void vary(struct options *o)
{
    struct machine *m = &o->machine;
    m->level[0].bandwidth *= 1 << chance(12);
    m->level[0].latency /= 1 << chance(12);
    m->level[0].overhead *= chance(3);
    m->level[0].reduce_seconds *= chance(4);
    o->strict = chance(4) ? STRICT_OFF : STRICT_ON;
}

START_TEST(trees_cost_what_they_must)
{
    int reached = 0;
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        chance_state = seed;
        struct options o = space_options(2 + chance(3));
        vary(&o);
        struct space *s = space_of(a, "input x: f32[48, 24] node n: y: ? = Relu(x) output y", &o);
        const struct value *v = graph_find(s->g, "y");
        cost_prepare(s);
        s->limits.requested[v->id] = chance(2);
        s->weight[v->id] = chance(8) == 0;
        if (chance(3) == 0)
            s->sequence.place[v->id] = placement_split(0, split_even(s->g->alg, s->ranks, v->type.dim[0]));
        o.sp = s->sequence.place[v->id].kind == PLACE_S && chance(2) ? SP_ON : SP_OFF;
        s->fused.inner[v->id] = chance(2);
        struct placement from = draw_placement(s, v, true), to[MOST];
        int parent[MOST], n = draw_targets(s, v, from, to);
        int64_t cuts = reshard_cuts(s, v, from, n, to), least = cost_plus(brute(s, v, from, n, to), cuts);
        int64_t found = reshard_tree(s, v, from, n, to, parent);
        ck_assert_int_eq(cuts > 0, s->fused.inner[v->id] && n > 0);
        ck_assert_msg(found == least, "seed %d: %lld, but the least is %lld", (int)seed, (long long)found, (long long)least);
        ck_assert_int_eq(cost_plus(cost_of_parents(s, v, from, n, to, parent), cuts), found);
        reached += n > 1 && least < COST_NEVER;
        arena_free(a);
        a = arena_new();
    }
    ck_assert_int_gt(reached, CASES / 4);
}
END_TEST

/* More targets than are searched through: what the tree says it costs is what its steps cost. */
START_TEST(trees_of_many_targets_add_up)
{
    struct options o = space_options(2);
    struct space *s = space_of(a, "input x: f32[8192, 24] node n: y: ? = Relu(x) output y", &o);
    const struct value *v = graph_find(s->g, "y");
    const struct placement from = placement_partial(RED_SUM);
    struct placement to[MANY] = {placement_replicated};
    int parent[MANY], below = 0;
    cost_prepare(s);
    for (int i = 1; i < MANY; i++)
        to[i] = placement_split(0,
                                split_scale(s->g->alg, split_even(s->g->alg, 2, dim_int(s->g->alg, 2)), dim_int(s->g->alg, 1 << i),
                                            dim_int(s->g->alg, 4096 >> i)));
    ck_assert_int_eq(reshard_tree(s, v, from, MANY, to, parent), cost_of_parents(s, v, from, MANY, to, parent));
    for (int i = 0; i < MANY; i++)
        below += parent[i] >= 0;
    ck_assert_int_gt(below, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("reshard");
    TCase *t = unit_case(suite, "reshard", setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, trees_cost_what_they_must);
    tcase_add_test(t, trees_of_many_targets_add_up);
    return unit_run(suite);
}
