/* Drafts from the text itself, against a search from end to end; and how many are worth it. */
#include "decode/draft/draft.h"
#include "tests/unit/main.h"

enum { ROOM = 64, ROUNDS = 4000 };

static struct history text_of(struct arena *a, const int64_t *token, int64_t n)
{
    struct history h = history_empty(a, 1, ROOM);
    for (; h.length < n; h.length++)
        history_put(&h, 0, token[h.length] < 0 ? 0 : token[h.length], token[h.length] >= 0);
    return h;
}

/* The latest of the longest; tokens below 0 are padding. */
static int64_t search(const int64_t *token, int64_t n, int64_t most, int64_t *to)
{
    int64_t best = 1, end = -1;
    for (int64_t c = 1; c + 1 < n; c++) {
        int64_t same = 0;
        while (same < 16 && same <= c && token[c - same] >= 0 && token[c - same] == token[n - 1 - same])
            same++;
        if (same >= best && same > 1) {
            best = same;
            end = c;
        }
    }
    for (int64_t i = 0; end >= 0 && i < most; i++)
        to[i] = end + 1 + i < n ? token[end + 1 + i] : to[end + 1 + i - n];
    return end < 0 ? 0 : most;
}

START_TEST(test_lookup)
{
    struct arena *a = arena_new();
    uint64_t state = 1;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t token[ROOM], got[DRAFT_MOST], want[DRAFT_MOST], n = 2 + (int64_t)(splitmix(state++) % 40);
        for (int64_t i = 0; i < n; i++)
            token[i] = i + 1 < n && splitmix(state++) % 9 == 0 ? -1 : (int64_t)(splitmix(state++) % 4);
        const struct history h = text_of(a, token, n);
        int64_t most = 1 + round % 9, found = draft_lookup(&h, 0, most, got);
        ck_assert_int_eq(found, search(token, n, most, want));
        for (int64_t i = 0; i < found; i++)
            ck_assert_int_eq(got[i], want[i] < 0 ? 0 : want[i]);
    }
    arena_free(a);
}
END_TEST

/* Runs with drafts among all, where a share of drafts is kept. */
static int64_t runs_with(struct draft_pace *p, int64_t runs, int64_t every)
{
    int64_t n = 0;
    for (int64_t i = 0; i < runs; i++) {
        int64_t k = draft_pace_next(p);
        draft_pace_note(p, k, every && i % every ? k : 0);
        n += k > 0;
    }
    return n;
}

/* Tokens of a text for the time of a step each, where a drafted token is right with this chance in 256. */
static double speed(int64_t price, int64_t chance)
{
    struct draft_pace p = draft_pace_new(16, price);
    uint64_t state = 7;
    int64_t tokens = 0, time = 0;
    for (int i = 0; i < 4000; i++) {
        int64_t k = draft_pace_next(&p), kept = 0;
        while (kept < k && (int64_t)(splitmix(state++) % 256) < chance)
            kept++;
        draft_pace_note(&p, k, kept);
        tokens += kept + 1;
        time += 1024 + k * (128 + price);
    }
    return (double)tokens * 1024 / (double)time;
}

START_TEST(test_price)
{
    for (int64_t price = 0; price <= 2048; price += 128) /* no draft costs much where it does not pay */
        for (int64_t chance = 0; chance <= 256; chance += 32)
            ck_assert_double_gt(speed(price, chance), 0.95);
    ck_assert_double_gt(speed(0, 128), 1.3);
    ck_assert_double_gt(speed(102, 128), 1.12);
    ck_assert_double_gt(speed(102, 230), 2);
    ck_assert_double_gt(speed(102, 256), 3.6);
    ck_assert_double_gt(speed(409, 230), 1.2);
    ck_assert_double_gt(speed(2048, 256), 0.97);
}
END_TEST

START_TEST(test_pace)
{
    struct draft_pace p = draft_pace_new(8, 0);
    ck_assert_int_lt(runs_with(&p, 1000, 0), 25); /* none is kept */
    ck_assert_int_lt(runs_with(&p, 1000, 0), 10);
    p = draft_pace_new(8, 0);
    ck_assert_int_eq(runs_with(&p, 1000, 1000), 1000); /* all but the first */
    ck_assert_int_eq(draft_pace_next(&p), 8);
    ck_assert_int_gt(runs_with(&p, 1000, 10), 990); /* nine of ten */
    p = draft_pace_new(1, 0);
    ck_assert_int_eq(draft_pace_next(&p), 1);
    ck_assert_int_eq(runs_with(&p, 1000, 1000), 1000);
    ck_assert_int_eq(draft_pace_next(&p), 1);
    ck_assert_int_gt(runs_with(&p, 200, 0), 5);        /* a text that can't be drafted any more is tried now and then, */
    ck_assert_int_gt(runs_with(&p, 2000, 1000), 1800); /* and drafted again once it can */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draft");
    TCase *c = unit_case(suite, "draft", NULL, NULL);
    tcase_add_test(c, test_lookup);
    tcase_add_test(c, test_pace);
    tcase_add_test(c, test_price);
    return unit_run(suite);
}
