/* test_split.c: splits and placements.
 *
 * Random splits of every kind (even, uneven, empty ranks, segmented, overlapping, whole, repeated, scaled) are compared with plain
 * tables that say for every index which ranks hold it. Every operation has to agree with the same operation on the table.
 */
#include "algebra/algebra.h"
#include "tests/unit/main.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, RANKS = 8 };

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

/* ---- tables ---- */

struct table {
    int n, ranks;
    bool held[RANKS][MOST];
};

static void fill(struct table *t, const struct split *s, bool owned, const struct bindings *b)
{
    int64_t n = 0;
    memset(t, 0, sizeof *t);
    t->ranks = s->ranks;
    ck_assert(dim_eval(split_size(alg, s), b, &n) && n <= MOST);
    t->n = (int)n;
    for (int r = 0; r < s->ranks; r++) {
        struct interval *v = NULL;
        int pieces = split_pieces(arena, s, r, owned, b, &v);
        ck_assert_int_ge(pieces, 0);
        for (int i = 0; i < pieces; i++)
            for (int64_t k = v[i].lo; k < v[i].hi; k++) {
                ck_assert(k < n && !t->held[r][k]);
                t->held[r][k] = true;
            }
    }
}

static int holders(const struct table *t, int k)
{
    int n = 0;
    for (int r = 0; r < t->ranks; r++)
        n += t->held[r][k];
    return n;
}

static int extent(const struct table *t, int r)
{
    int n = 0;
    for (int k = 0; k < t->n; k++)
        n += t->held[r][k];
    return n;
}

/* A split by a random table, whose runs become the intervals. */
static const struct split *random_list(int ranks, int n)
{
    struct interval list[RANKS][MOST];
    const struct interval *at[RANKS];
    int count[RANKS];
    int kind = pick(3);
    for (int r = 0; r < ranks; r++) {
        count[r] = 0;
        at[r] = list[r];
    }
    for (int k = 0; k < n; k++) {
        int owner = pick(ranks);
        for (int r = 0; r < ranks; r++)
            if (kind == 0 ? r == owner : pick(kind == 1 ? 2 : 4) == 0)
                list[r][count[r]++] = (struct interval){k, k + 1};
    }
    return split_list(alg, ranks, n, count, at);
}

static const struct split *random_split(void)
{
    int ranks = 1 + pick(RANKS), n = pick(13);
    const struct split *s = pick(3) == 0 ? split_even(alg, ranks, I(n))
        : pick(8) == 0                   ? split_replicated(alg, ranks, I(n))
                                         : random_list(ranks, n);
    return pick(2) ? split_scale(alg, s, I(1 + pick(3)), I(1 + pick(4))) : s;
}

static struct table before, after;

#define FOR_RANDOM_SPLITS(count, s)                  \
    for (int round_ = 0; round_ < (count); round_++) \
        for (const struct split *s = (setup(), seed = (unsigned)round_ * 7919u + 3u, random_split()); s; s = NULL, teardown())

/* ---- tests ---- */

START_TEST(even)
{
    ck_assert_str_eq(split_str(arena, split_even(alg, 2, I(8))), "t2:balanced(8)");
    ck_assert_ptr_eq(split_even(alg, 2, I(7)), parse("t2:7:0-4/4-7"));
    ck_assert_ptr_eq(split_even(alg, 4, I(2)), parse("t4:2:0-1/1-2/-/-"));
    ck_assert(split_even(alg, 1, I(5))->replicated && split_even(alg, 1, dim_sym(alg, "S", 1))->replicated);
    ck_assert_ptr_eq(split_even(alg, 1, dim_sym(alg, "S", 1)), split_replicated(alg, 1, dim_sym(alg, "S", 1)));
    ck_assert_ptr_eq(split_replicated(alg, 3, I(0)), split_even(alg, 3, I(0)));
}
END_TEST

START_TEST(table_of_cases)
{
    const struct split *half[2] = {split_even(alg, 2, I(8)), split_even(alg, 2, I(4))};
    const struct split *qkv[3] = {half[0], half[1], half[1]};
    const struct split *fused = split_concat(alg, 3, qkv);
    ck_assert_ptr_eq(fused, parse("t2:16:0-4,8-10,12-14/4-8,10-12,14-16"));
    ck_assert(fused->partition && fused->cover && !fused->replicated);
    ck_assert_ptr_eq(split_restrict(alg, fused, 8, 12), half[1]);
    const struct split *kv = split_scale(alg, split_image(alg, split_even(alg, 4, I(4)), 2), I(1), I(4));
    ck_assert_ptr_eq(kv, parse("t4:8:0-4/0-4/4-8/4-8"));
    ck_assert(kv->cover && !kv->partition);
    ck_assert(split_fraction_within(split_even(alg, 4, I(12)), kv) && !split_fraction_within(kv, split_even(alg, 4, I(12))));
    ck_assert(!split_fraction_within(split_even(alg, 4, I(3)), split_even(alg, 4, I(4))));
    const struct split *mqa[2] = {half[0], split_replicated(alg, 2, I(4))};
    ck_assert_ptr_eq(split_concat(alg, 2, mqa), parse("t2:12:0-4,8-12/4-12"));
    const struct split *rows = split_scale(alg, half[1], dim_sym(alg, "B", 1), dim_sym(alg, "S", 1));
    ck_assert_str_eq(split_str(arena, rows), "t2:balanced(4);outer=B;inner=S");
    ck_assert_ptr_eq(split_extent(alg, rows, 1), dim_parse(alg, "2*B*S", 1, NULL));
    ck_assert_ptr_null(split_concat(alg, 1, &rows));
}
END_TEST

START_TEST(flags_and_extents)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(500, s)
    {
        fill(&before, s, false, &none);
        bool cover = true, partition = true, whole = true;
        for (int k = 0; k < before.n; k++) {
            cover = cover && holders(&before, k) > 0;
            partition = partition && holders(&before, k) == 1;
            whole = whole && holders(&before, k) == s->ranks;
        }
        ck_assert(s->cover == cover && s->partition == partition && s->replicated == whole);
        int64_t sum = 0;
        for (int r = 0; r < s->ranks; r++) {
            ck_assert(dim_equals(split_extent(alg, s, r), extent(&before, r)));
            sum += extent(&before, r);
            if (extent(&before, r))
                ck_assert(before.held[r][split_start(alg, s, r)->k]);
        }
        ck_assert(!partition || sum == before.n);
    }
}
END_TEST

START_TEST(owned_pieces)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(500, s)
    {
        fill(&before, s, false, &none);
        fill(&after, s, true, &none);
        for (int k = 0; k < before.n; k++)
            for (int r = 0, seen = 0; r < s->ranks; r++) {
                ck_assert_int_eq(after.held[r][k], before.held[r][k] && !seen);
                seen = seen || before.held[r][k];
            }
    }
}
END_TEST

START_TEST(text_form)
{
    FOR_RANDOM_SPLITS(500, s)
    {
        char *shown = split_str(arena, s);
        ck_assert_ptr_null(strpbrk(shown, " \t\n"));
        ck_assert_ptr_eq(parse(shown), s);
        struct placement p = placement_split(2, s), q;
        const char *error;
        ck_assert(placement_parse(alg, placement_str(arena, p), &q, &error) && placement_eq(p, q));
    }
}
END_TEST

START_TEST(scale_and_divide)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(500, s)
    {
        int outer = 1 + pick(3), inner = 1 + pick(3);
        const struct split *big = split_scale(alg, s, I(outer), I(inner));
        fill(&before, s, false, &none);
        fill(&after, big, false, &none);
        ck_assert_int_eq(after.n, outer * before.n * inner);
        for (int k = 0; k < after.n; k++)
            for (int r = 0; r < s->ranks; r++)
                ck_assert_int_eq(after.held[r][k], before.held[r][k / inner % before.n]);
        ck_assert_ptr_eq(split_divide(alg, big, I(outer), I(inner)), s);
    }
}
END_TEST

/* NULL exactly where no split of the smaller size exists. */
START_TEST(divide_is_exact)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(800, s)
    {
        int outer = 1 + pick(3), inner = 1 + pick(3);
        fill(&before, s, false, &none);
        const struct split *small = split_divide(alg, s, I(outer), I(inner));
        bool exists = before.n % (outer * inner) == 0;
        int n = exists ? before.n / (outer * inner) : 1;
        for (int k = 0; k < before.n && exists; k++)
            for (int r = 0; r < s->ranks; r++)
                exists = exists && before.held[r][k] == before.held[r][k / inner % n * inner];
        ck_assert_msg((small != NULL) == exists, "%s by %d and %d", split_str(arena, s), outer, inner);
        if (small)
            ck_assert_ptr_eq(split_scale(alg, small, I(outer), I(inner)), s);
    }
}
END_TEST

START_TEST(restrict_and_concat)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(500, s)
    {
        fill(&before, s, false, &none);
        int cut = pick(before.n + 1);
        const struct split *part[2] = {split_restrict(alg, s, 0, cut), split_restrict(alg, s, cut, before.n)};
        ck_assert(part[0] && part[1]);
        fill(&after, part[1], false, &none);
        for (int k = cut; k < before.n; k++)
            for (int r = 0; r < s->ranks; r++)
                ck_assert_int_eq(after.held[r][k - cut], before.held[r][k]);
        ck_assert_ptr_eq(split_concat(alg, 2, part), s);
        ck_assert_ptr_null(split_restrict(alg, s, 0, before.n + 1));
    }
}
END_TEST

START_TEST(image_covers)
{
    struct bindings none = {0};
    FOR_RANDOM_SPLITS(500, s)
    {
        int g = 1 + pick(4);
        fill(&before, s, false, &none);
        const struct split *image = split_image(alg, s, g);
        ck_assert((image != NULL) == (before.n % g == 0));
        if (!image)
            continue;
        fill(&after, image, false, &none);
        for (int r = 0; r < s->ranks; r++)
            for (int k = 0; k < after.n; k++) {
                bool touched = false;
                for (int i = 0; i < g; i++)
                    touched = touched || before.held[r][k * g + i];
                ck_assert_int_eq(after.held[r][k], touched);
            }
        ck_assert(s->n->k == 0 || split_fraction_within(s, image));
    }
}
END_TEST

/* A split of windows as ranges, ascending; some overlap. */
static const struct split *ranges(int ranks, int n)
{
    const struct interval *list[RANKS];
    int count[RANKS], lo = 0;
    for (int r = 0; r < ranks; r++) {
        struct interval *at = NEW(arena, struct interval);
        int hi = r + 1 == ranks ? n : lo + 1 + pick((n - lo) / (ranks - r));
        *at = (struct interval){lo, hi + (hi < n && pick(4) == 0)};
        list[r] = at;
        count[r] = 1;
        lo = hi;
    }
    return split_list(alg, ranks, n, count, list);
}

/* Every element that a window of the rank reads, none that only others' read; what no window reads is somebody's. */
static void check_windows(const struct split *s, const struct sliding *w)
{
    struct bindings none = {0};
    const int64_t size = w->size->k;
    const struct split *reads = split_windows(alg, s, w);
    fill(&before, s, false, &none);
    if (!reads)
        return;
    fill(&after, reads, false, &none);
    ck_assert(reads->cover && after.n == size);
    bool read[MOST] = {false};
    for (int r = 0; r < s->ranks; r++) {
        int64_t lo = INT64_MAX, hi = INT64_MIN;
        for (int o = 0; o < before.n; o++)
            for (int64_t e = -w->pad; before.held[r][o] && e < size + w->reach; e++) {
                if (e * w->per < o * w->stride - w->pad || e * w->per >= o * w->stride - w->pad + w->reach)
                    continue;
                lo = e < lo ? e : lo;
                hi = e + 1 > hi ? e + 1 : hi;
                ck_assert(e < 0 || e >= size || (after.held[r][e] && (read[e] = true)));
            }
        if (w->per > 1)
            continue;
        for (int64_t e = 0; e < size; e++)
            ck_assert(!after.held[r][e] || (e >= lo && e < hi + w->stride));
    }
}

START_TEST(windows)
{
    setup();
    for (unsigned k = 1; k < 500; k++) {
        seed = k;
        int ranks = 1 + pick(5), n = ranks + pick(9);
        struct sliding w = {.stride = 1 + pick(4), .per = pick(3) ? 1 : 1 + pick(4)};
        w.reach = w.per + pick(6);
        w.pad = pick((int)w.reach);
        int64_t size = ((n - 1) * w.stride + w.reach - w.pad - pick((int)w.reach) + pick((int)w.stride)) / w.per;
        w.size = I(size);
        if (size > 0)
            check_windows(ranges(ranks, n), &w);
    }
    ck_assert_ptr_null(split_windows(alg, parse("t2:4:0-1,2-3/1-2,3-4"), &(struct sliding){1, 3, 1, 1, I(4)}));
    ck_assert_ptr_null(split_windows(alg, split_even(alg, 3, I(2)), &(struct sliding){1, 3, 1, 1, I(2)}));
    ck_assert_ptr_eq(split_windows(alg, parse("t2:4:0-2/2-4"), &(struct sliding){1, 3, 1, 1, I(4)}), parse("t2:4:0-3/1-4"));
    ck_assert_ptr_eq(split_windows(alg, parse("t2:4:0-2/2-4"), &(struct sliding){2, 1, 0, 1, I(8)}), parse("t2:8:0-4/4-8"));
    ck_assert_ptr_eq(split_windows(alg, parse("t2:8:0-4/4-8"), &(struct sliding){1, 2, 1, 2, I(4)}), parse("t2:4:0-2/2-4"));
    ck_assert_ptr_eq(split_windows(alg, parse("t2:8:0-4/4-8"), &(struct sliding){1, 4, 2, 2, I(4)}), parse("t2:4:0-3/1-4"));
}
END_TEST

START_TEST(moved)
{
    setup();
    struct bindings b = {0};
    const struct split *halves = parse("t2:8:0-4/4-8");
    ck_assert_double_eq(split_moved(arena, halves, parse("t2:8:0-5/3-8"), &b), 0.125);
    ck_assert_double_eq(split_moved(arena, halves, parse("t2:8:0-2/2-8"), &b), 0.25);
    ck_assert_double_eq(split_moved(arena, halves, halves, &b), 0);
    ck_assert_double_eq(split_moved(arena, split_even(alg, 2, dim_sym(alg, "S", 1)), halves, &b), -1);
    const struct split *evenly = split_even(alg, 2, dim_sym(alg, "S", 1)), *reads = parse("t2:balanced(S)[3/1-1](S)");
    ck_assert_double_eq(split_moved(arena, evenly, reads, &b), -1);
    bindings_set(arena, &b, "S", 8);
    ck_assert_double_eq(split_moved(arena, evenly, reads, &b), 0.125);
}
END_TEST

START_TEST(rescale)
{
    FOR_RANDOM_SPLITS(300, s)
    {
        int k = 1 + pick(4);
        const struct split *big = split_rescale(alg, s, s->n->k * k);
        ck_assert_ptr_eq(big, split_scale(alg, s, I(1), I(k)));
        ck_assert_ptr_eq(split_rescale(alg, big, s->n->k), s);
        ck_assert(split_fraction_within(s, big) && split_fraction_within(big, s));
    }
    setup();
    ck_assert_ptr_null(split_rescale(alg, split_even(alg, 2, I(4)), 3));
}
END_TEST

START_TEST(balanced_at_run_time)
{
    const struct dim *n = dim_sym(alg, "S", 1);
    for (int ranks = 2; ranks <= RANKS; ranks++) {
        const struct split *s = split_scale(alg, split_even(alg, ranks, n), dim_sym(alg, "B", 1), I(3));
        ck_assert(s->balanced && s->partition);
        ck_assert_ptr_eq(parse(split_str(arena, s)), s);
        ck_assert_ptr_eq(split_divide(alg, s, dim_sym(alg, "B", 1), I(3)), split_even(alg, ranks, n));
        const struct dim *sum = I(0);
        for (int r = 0; r < ranks; r++)
            sum = dim_add(alg, sum, split_extent(alg, s, r));
        ck_assert_ptr_eq(sum, split_size(alg, s));
        for (int value = 1; value < 20; value++) {
            struct bindings b = {0};
            struct interval *v;
            ck_assert_int_eq(split_pieces(arena, s, 0, false, &b, &v), -1);
            bindings_set(arena, &b, "S", value);
            bindings_set(arena, &b, "B", 2);
            fill(&after, s, false, &b);
            fill(&before, split_scale(alg, split_even(alg, ranks, I(value)), I(2), I(3)), false, &b);
            ck_assert_mem_eq(&before, &after, sizeof before);
            for (int r = 0; r < ranks; r++) {
                int64_t size = -1, start = -1;
                ck_assert(dim_eval(split_extent(alg, s, r), &b, &size) && dim_eval(split_start(alg, s, r), &b, &start));
                ck_assert_int_eq(size, extent(&after, r));
                ck_assert(size == 0 || after.held[r][start * 3]);
            }
        }
    }
}
END_TEST

START_TEST(balanced_extents_sum_to_the_size)
{
    static const char *const size[] = {"S", "2*S", "3*S", "P + S - 3", "B*S", "S/2", "(H + 1)/2", "min(S, 64)", "64*B*S", "6*S + 1"};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++)
        for (int ranks = 2; ranks <= 12; ranks++) {
            const struct dim *n = dim_parse(alg, size[i], 1, NULL), *sum = I(0);
            const struct split *s = split_even(alg, ranks, n);
            for (int r = 0; r < ranks; r++)
                sum = dim_add(alg, sum, split_extent(alg, s, r));
            ck_assert_msg(sum == n, "%s on %d ranks: %s", size[i], ranks, dim_str(arena, sum));
        }
}
END_TEST

static const struct shares *random_shares(int ranks)
{
    int64_t share[RANKS] = {0};
    for (int r = 0; r < ranks; r++)
        share[r] = pick(4) ? pick(1000) : 0;
    share[pick(ranks)] += 1;
    return alg_shares(alg, ranks, share);
}

/* Each index once, in order; each rank within one index of its share; a number and an expression are the same. */
static void check_shared(const struct shares *s, int ranks, int64_t n)
{
    const struct split *known = split_shared(alg, ranks, s, I(n)), *open = split_shared(alg, ranks, s, dim_sym(alg, "S", 0));
    struct bindings b = {0};
    bindings_set(arena, &b, "S", n);
    fill(&before, known, false, NULL);
    fill(&after, open, false, &b);
    ck_assert_mem_eq(&before, &after, sizeof before);
    for (int k = 0; k < n; k++)
        ck_assert_int_eq(holders(&after, k), 1);
    for (int r = 0; r < ranks; r++) {
        int64_t size = -1, start = -1;
        double want = (double)n * (s ? (double)(s->from[r + 1] - s->from[r]) / (double)s->sum : 1.0 / ranks);
        ck_assert(dim_eval(split_extent(alg, open, r), &b, &size) && dim_eval(split_start(alg, open, r), &b, &start));
        ck_assert_int_eq(size, extent(&after, r));
        ck_assert(size == 0 || after.held[r][start]);
        ck_assert((double)size <= want + 1 && (double)size >= want - 1);
    }
}

START_TEST(shares)
{
    ck_assert_ptr_null(alg_shares(alg, 3, (int64_t[]){7, 7, 7}));
    ck_assert_ptr_eq(alg_shares(alg, 2, (int64_t[]){6, 4}), alg_shares(alg, 2, (int64_t[]){3, 2}));
    ck_assert_ptr_eq(split_shared(alg, 3, alg_shares(alg, 3, (int64_t[]){5, 3, 2}), I(100)), parse("t3:100:0-50/50-80/80-100"));
    ck_assert_ptr_eq(parse("t3:balanced(100:5,3,2)"), parse("t3:100:0-50/50-80/80-100"));
    ck_assert_ptr_eq(parse("t2:balanced(S:4,4)"), parse("t2:balanced(S)"));
    ck_assert_str_eq(split_str(arena, parse("t2:balanced(S:6,4);inner=8")), "t2:balanced(S:3,2);inner=8");
    for (seed = 1; seed < 60; seed++) {
        int ranks = 2 + pick(RANKS - 1);
        const struct shares *s = random_shares(ranks);
        const struct dim *n = dim_parse(alg, "2*P + S", 0, NULL), *sum = I(0);
        const struct split *open = split_scale(alg, split_shared(alg, ranks, s, n), dim_sym(alg, "B", 1), I(3));
        ck_assert_ptr_eq(parse(split_str(arena, open)), open);
        ck_assert_ptr_eq(split_divide(alg, open, dim_sym(alg, "B", 1), I(3)), split_shared(alg, ranks, s, n));
        for (int r = 0; r < ranks; r++)
            sum = dim_add(alg, sum, split_extent(alg, open, r));
        ck_assert_ptr_eq(sum, split_size(alg, open));
        for (int64_t size = 0; size < 40; size += 1 + pick(5))
            check_shared(s, ranks, size);
    }
}
END_TEST

START_TEST(bad_shares)
{
    static const char *const text[] = {
        "t2:balanced(S:1)",    "t2:balanced(S:1,2,3)",     "t2:balanced(S:0,0)",       "t2:balanced(S:1,)",
        "t2:balanced(S:-1,2)", "t2:balanced(S:1048577,1)", "t2:balanced(S:1048576,1)", "t2:balanced(S:99999999999999999999,1)"};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const char *error = NULL;
        ck_assert_msg(!split_parse(alg, text[i], &error) && error, "%s", text[i]);
    }
}
END_TEST

START_TEST(symbolic_outer_and_inner)
{
    const struct dim *B = dim_sym(alg, "B", 1), *S = dim_sym(alg, "S", 1);
    const struct split *s = split_even(alg, 2, I(6)), *big = split_scale(alg, s, B, dim_mul(alg, S, I(4)));
    ck_assert_str_eq(split_str(arena, big), "t2:balanced(24);outer=B;inner=S");
    ck_assert_ptr_eq(split_divide(alg, big, B, dim_mul(alg, S, I(4))), s);
    ck_assert_ptr_eq(split_divide(alg, big, B, S), split_even(alg, 2, I(24)));
    ck_assert_ptr_null(split_divide(alg, big, S, S));
    const struct split *whole = split_replicated(alg, 2, dim_mul(alg, B, S));
    ck_assert(whole->replicated && dim_equals(whole->outer, 1) && dim_equals(whole->n, 1));
    ck_assert_ptr_eq(split_scale(alg, split_replicated(alg, 2, I(4)), B, S),
                     split_replicated(alg, 2, dim_mul(alg, I(4), dim_mul(alg, B, S))));
    ck_assert_ptr_eq(split_divide(alg, whole, B, I(1)), split_replicated(alg, 2, S));
    ck_assert_ptr_null(split_divide(alg, whole, I(1), I(2)));
    ck_assert_ptr_null(split_scale(alg, split_even(alg, 2, I(4)), I(INT64_MAX / 2), I(1)));
    ck_assert_ptr_eq(parse(split_str(arena, whole)), whole);
}
END_TEST

START_TEST(placements)
{
    struct type t, local;
    const char *error;
    ck_assert(type_parse(alg, "f32[B, 7]", 1, &t, &error));
    local = placement_local(alg, &t, placement_split(1, split_even(alg, 2, I(7))), 1);
    ck_assert_str_eq(type_str(arena, &local), "f32[B, 3]");
    local = placement_local(alg, &t, placement_partial(RED_SUM), 1);
    ck_assert(type_eq(&local, &t));
    ck_assert(placement_eq(placement_split(1, split_replicated(alg, 2, I(7))), placement_replicated));
    ck_assert_str_eq(placement_str(arena, placement_partial(RED_MAX)), "P(max)");
    ck_assert_str_eq(placement_str(arena, placement_replicated), "R");
}
END_TEST

START_TEST(a_shard_that_is_one_stretch)
{
    struct type t;
    const char *error;
    struct bindings one = {0}, two = {0}, none = {0};
    struct placement columns = placement_split(1, split_even(alg, 2, I(8)));
    bindings_set(arena, &one, "B", 1);
    bindings_set(arena, &two, "B", 2);
    ck_assert(type_parse(alg, "f32[B, 8]", 1, &t, &error));
    ck_assert(placement_is_stretch(&t, columns, 1, &one));
    ck_assert(!placement_is_stretch(&t, columns, 1, &two));
    ck_assert(!placement_is_stretch(&t, columns, 1, &none));
    ck_assert(!placement_is_stretch(&t, columns, 2, &one));
    ck_assert(placement_is_stretch(&t, placement_replicated, 1, &none));
    columns = placement_split(1, split_scale(alg, split_even(alg, 2, I(4)), I(2), I(1)));
    ck_assert(!placement_is_stretch(&t, columns, 0, &one));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split");
    TCase *t = unit_case(suite, "split", setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, even);
    tcase_add_test(t, table_of_cases);
    tcase_add_test(t, balanced_at_run_time);
    tcase_add_test(t, balanced_extents_sum_to_the_size);
    tcase_add_test(t, shares);
    tcase_add_test(t, bad_shares);
    tcase_add_test(t, symbolic_outer_and_inner);
    tcase_add_test(t, placements);
    tcase_add_test(t, a_shard_that_is_one_stretch);
    TCase *random = unit_case(suite, "random", NULL, NULL);
    tcase_set_timeout(random, 60);
    tcase_add_test(random, flags_and_extents);
    tcase_add_test(random, owned_pieces);
    tcase_add_test(random, text_form);
    tcase_add_test(random, scale_and_divide);
    tcase_add_test(random, divide_is_exact);
    tcase_add_test(random, restrict_and_concat);
    tcase_add_test(random, image_covers);
    tcase_add_test(random, windows);
    tcase_add_test(random, moved);
    tcase_add_test(random, rescale);
    return unit_run(suite);
}
