/* What requirements leave of the placements of a value, against direct evaluation: by the texts of placements, one by one. */
#include "tests/unit/main.h"
#include "tests/unit/space.h"

/* Does a placement meet a requirement's text? "P", "R", "P(sum)", "S(1)", "S(-1)", or in full. */
static bool meets(struct arena *a, const char *text, const struct value *v, struct placement p)
{
    if (strcmp(text, "P") == 0)
        return p.kind == PLACE_P;
    if (p.kind == PLACE_S && strncmp(text, "S(", 2) == 0 && !strchr(text, ';'))
        return strcmp(text, arena_printf(a, "S(%d)", p.dim)) == 0 || strcmp(text, arena_printf(a, "S(%d)", p.dim - v->type.rank)) == 0;
    return strcmp(text, placement_str(a, p)) == 0;
}

static bool is_in(const struct places *all, struct placement p)
{
    for (int i = 0; i < all->list.n; i++)
        if (placement_eq(all->list.at[i], p))
            return true;
    return false;
}

static void same(const struct places *found, const struct places *expected, const char *what, const char *name)
{
    ck_assert_msg(found->list.n == expected->list.n, "%s of '%s': %d placements, expected %d", what, name, found->list.n, expected->list.n);
    for (int i = 0; i < expected->list.n; i++)
        ck_assert_msg(is_in(found, expected->list.at[i]), "%s of '%s' lack one", what, name);
}

static void put(struct arena *a, struct places *to, struct placement p)
{
    if (!is_in(to, p))
        VEC_PUSH(a, &to->list, p);
}

/* Replicated, every candidate, and what a strategy of the producer leaves; every float result may be left a partial sum. */
static struct places legal(struct arena *a, const struct space *s, const struct value *v)
{
    struct places all = {0};
    put(a, &all, placement_replicated);
    for (int d = 0; d < v->type.rank; d++)
        for (int i = 0; i < s->candidates[v->id][d].list.n; i++)
            put(a, &all, placement_split(d, s->candidates[v->id][d].list.at[i].split));
    if (v->producer)
        put(a, &all, placement_partial(RED_SUM));
    for (int i = 0; i < s->g->nodes.n; i++)
        for (int k = 0; s->g->nodes.at[i] == v->producer && k < s->offered[i].list.n; k++)
            put(a, &all, s->offered[i].list.at[k]->out[v->index]);
    return all;
}

static const char *draw_text(struct arena *a, const struct value *v, const struct places *from)
{
    int rank = v->type.rank;
    switch (chance(4)) {
    case 0: return v->producer ? "P" : "R";
    case 1: return arena_printf(a, "S(%d)", chance(2 * rank) - rank);
    default: return placement_str(a, from->list.at[chance(from->list.n)]);
    }
}

/* A second candidate for each dimension: one element on every rank but the last. */
static void add_uneven(struct space *s, const struct value *v)
{
    int64_t size;
    for (int d = 0; d < v->type.rank; d++) {
        if (!dim_is_int(v->type.dim[d], &size) || size < s->ranks)
            continue;
        const char *text = arena_printf(s->arena, "t%d:%d:0-1", s->ranks, (int)size), *error;
        for (int r = 1; r < s->ranks; r++)
            text = arena_printf(s->arena, "%s/%d-%d", text, r, r < s->ranks - 1 ? r + 1 : (int)size);
        const struct split *split = split_parse(s->g->alg, text, &error);
        ck_assert_msg(split != NULL, "%s: %s", text, error);
        space_add(s, v, d, (struct candidate){split, false, "a test", -1});
    }
}

static void check_value(struct space *s, struct value *v, int *left)
{
    struct arena *a = s->arena;
    struct places all, found, fitting = {0};
    const char *text[2];
    int n = 1 + chance(2);
    add_uneven(s, v);
    all = legal(a, s, v);
    found = space_legal(s, v);
    same(&found, &all, "legal placements", v->name);
    for (int i = 0; i < n; i++) {
        text[i] = draw_text(a, v, &all);
        required_add(s, "a test", v, text[i], false);
    }
    for (int i = 0; i < all.list.n; i++) {
        bool fits = true;
        for (int k = 0; k < n; k++)
            fits = fits && meets(a, text[k], v, all.list.at[i]);
        ck_assert_msg(space_allows(s, v, all.list.at[i]) == fits, "'%s' as %s under %s", v->name, placement_str(a, all.list.at[i]),
                      text[0]);
        if (fits)
            put(a, &fitting, all.list.at[i]);
    }
    found = space_allowed(s, v);
    same(&found, &fitting, "placements that requirements leave", v->name);
    *left += fitting.list.n;
}

START_TEST(requirements_leave_what_meets_them)
{
    int left = 0, values = 0;
    for (uint64_t number = 1; number <= 200; number++) {
        struct arena *a = arena_new();
        struct options o = space_options(2 + (int)(number % 3));
        struct space *s = space_of(a, random_graph(a, number), &o);
        for (int i = 0; i < s->g->values.n; i++, values++)
            check_value(s, s->g->values.at[i], &left);
        arena_free(a);
    }
    ck_assert_int_gt(values, 1000);
    ck_assert_int_gt(left, values / 3); /* many requirements can be met */
}
END_TEST

/* "S(1)" and a split that a dimension of run-time size cannot have, a dimension that is not there, and no placement at all. */
static const char *const unmet[] = {"S(2)", "S(-3)", "S(0; t2:7:0-3/3-7)", "T", "P(mean)"};

START_TEST(what_cannot_be_met_is_refused)
{
    struct arena *a = arena_new();
    struct options o = space_options(2);
    struct space *s = space_of(a, "input x: f32[4, 6] node n: y: ? = Relu(x) output y", &o);
    required_add(s, "a test", graph_find(s->g, "y"), unmet[_i], true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("limits");
    TCase *t = unit_case(suite, "limits", NULL, NULL);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, requirements_leave_what_meets_them);
    tcase_add_loop_exit_test(t, what_cannot_be_met_is_refused, 1, 0, COUNT(unmet));
    return unit_run(suite);
}
