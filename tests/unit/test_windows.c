/* test_windows.c: what windows read of a dimension of symbolic size, by random windows, ranks and sizes: each rank's range and border
 * against the windows themselves, once sizes are known, and the expressions for them.
 */
#include "algebra/algebra.h"
#include "tests/unit/main.h"

enum { RANKS = 8 };

static struct arena *arena;
static struct alg *alg;
static unsigned seed;

static void setup(void)
{
    arena = arena_new();
    alg = alg_new(arena);
}

static void teardown(void)
{
    arena_free(arena);
}

static int pick(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)n);
}

static const struct dim *I(int64_t k)
{
    return dim_int(alg, k);
}

static const struct split *parse(const char *text)
{
    const char *error = NULL;
    const struct split *s = split_parse(alg, text, &error);
    ck_assert_msg(s != NULL, "%s: %s", text, error);
    return s;
}

/* Windows of a symbolic size, once it is known: rank's elements, and with its border a stride for each window. */
static void check_reading(const struct split *s, const struct split *slides, int rank, const struct bindings *b)
{
    const struct sliding *w = s->reads;
    const struct dim *before_it, *behind_it;
    struct interval *at, *of;
    int64_t size, extent, front, back, over = w->reach > w->stride ? w->reach - w->stride : 0;
    ck_assert(dim_eval(w->size, b, &size) && dim_eval(split_extent(alg, s, rank), b, &extent));
    split_window_border(alg, s, rank, &before_it, &behind_it);
    ck_assert(dim_eval(before_it, b, &front) && dim_eval(behind_it, b, &back));
    int n = split_pieces(arena, s, rank, false, b, &at), m = split_pieces(arena, slides, rank, false, b, &of);
    int64_t count = m ? of[0].hi - of[0].lo : 0;
    ck_assert(n == (extent > 0) && m >= 0 && (n == 0 || at[0].hi - at[0].lo == extent));
    ck_assert_int_eq(front + extent + back, count * w->stride + over);
    ck_assert(front >= 0 && front + extent + (back < 0 ? back : 0) >= 0);
    for (int64_t o = m ? of[0].lo : 0; m && o < of[0].hi; o++)
        for (int64_t e = o * w->stride - w->pad; e < o * w->stride - w->pad + w->reach; e++)
            ck_assert(e < 0 || e >= size ||
                      (n && e >= at[0].lo && e < at[0].hi && e - at[0].lo + front == e - of[0].lo * w->stride + w->pad));
}

/* Every index is held, and by one rank as its own. */
static void check_cover(const struct split *s, const struct bindings *b)
{
    struct interval *at;
    int64_t size, owned = 0, end = 0;
    ck_assert(dim_eval(s->reads->size, b, &size));
    for (int r = 0; r < s->ranks; r++) {
        if (split_pieces(arena, s, r, true, b, &at) == 1) {
            ck_assert_int_eq(at[0].lo, owned);
            owned = at[0].hi;
        }
        if (split_pieces(arena, s, r, false, b, &at) == 1) {
            ck_assert(at[0].lo <= end);
            end = at[0].hi > end ? at[0].hi : end;
        }
    }
    ck_assert(owned == size && end == size);
}

static void check_size(const struct split *s, const struct split *slides, int size)
{
    struct bindings b = {0};
    int64_t places;
    bindings_set(arena, &b, "S", size);
    if (!dim_eval(s->n, &b, &places) || places < 0)
        return;
    for (int r = 0; r < s->ranks; r++)
        check_reading(s, slides, r, &b);
    check_cover(s, &b);
}

/* The result of the windows is as long by what the rank reads, with its border, as by its split: that is how a rank's graph is inferred. */
static void check_length(const struct split *s, const struct split *slides, int rank)
{
    const struct dim *front, *back, *one = I(1);
    split_window_border(alg, s, rank, &front, &back);
    const struct dim *length = dim_add(alg, split_extent(alg, s, rank), dim_add(alg, front, back));
    const struct dim *steps = dim_div(alg, dim_sub(alg, length, I(s->reads->reach)), I(s->reads->stride));
    ck_assert_ptr_eq(dim_add(alg, steps, one), split_extent(alg, slides, rank));
}

START_TEST(symbolic_sizes)
{
    static const char *const texts[] = {"S", "(S + 1)/2", "4*S", "2*S + 3", "(S + 3)/4", "4*S + 6", "(3*S + 1)/2", "S + 5"};
    enum { SIZES = sizeof texts / sizeof *texts };
    const struct dim *sizes[SIZES];
    for (int i = 0; i < SIZES; i++)
        sizes[i] = dim_parse(alg, texts[i], 1, NULL);
    for (unsigned k = 1; k < 120; k++) {
        seed = k;
        struct sliding w = {.stride = 1 + pick(4), .reach = 1 + pick(7), .per = 1, .size = sizes[pick(SIZES)]};
        w.pad = pick((int)w.reach);
        int ranks = 2 + pick(RANKS - 1);
        const struct dim *room = dim_add(alg, w.size, I(w.pad + pick((int)w.reach) - w.reach));
        int64_t share[RANKS];
        for (int r = 0; r < ranks; r++)
            share[r] = k % 2 ? 1 : 1 + pick(9);
        const struct dim *windows = dim_add(alg, dim_div(alg, room, I(w.stride)), I(1));
        const struct split *slides = split_shared(alg, ranks, alg_shares(alg, ranks, share), windows);
        const struct split *s = split_windows(alg, slides, &w);
        ck_assert(s && s->cover && !s->partition && !s->replicated);
        ck_assert_ptr_eq(parse(split_str(arena, s)), s);
        ck_assert_ptr_eq(split_size(alg, s), w.size);
        for (int r = 0; r < ranks; r++)
            check_length(s, slides, r);
        for (int size = 1; size < 24; size++)
            check_size(s, slides, size);
    }
    ck_assert_ptr_eq(parse("t2:balanced(4)[3/1-1](4)"), parse("t2:4:0-3/1-4"));
    ck_assert_ptr_null(
        split_windows(alg, split_scale(alg, split_even(alg, 2, sizes[0]), I(1), I(2)), &(struct sliding){1, 3, 1, 1, sizes[2]}));
}
END_TEST

START_TEST(bad_text)
{
    static const char *const texts[] = {"t2:balanced(S)[3/0-1](S)", "t2:balanced(S)[0/1-0](S)",          "t2:balanced(S)[3/1-1]",
                                        "t2:balanced(S)[3/1](S)",   "t2:balanced(S)[3/1-1](S);inner=2",  "t2:balanced(S)[3/1-1](9)",
                                        "t2:balanced(9)[3/1-1](S)", "t2:balanced(S)[9999999999/1-1](S)", "t1:balanced(S)[3/1-1](S)"};
    for (int i = 0; i < COUNT(texts); i++) {
        const char *error = NULL;
        ck_assert_msg(!split_parse(alg, texts[i], &error) && error, "%s", texts[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("windows");
    TCase *t = unit_case(suite, "windows", setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, symbolic_sizes);
    tcase_add_test(t, bad_text);
    return unit_run(suite);
}
