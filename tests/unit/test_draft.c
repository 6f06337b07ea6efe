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

/* Runs with drafts among so many, of which a share is kept. */
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

START_TEST(test_pace)
{
    struct draft_pace p = draft_pace_new(8);
    ck_assert_int_lt(runs_with(&p, 1000, 0), 20); /* none is kept */
    ck_assert_int_lt(runs_with(&p, 1000, 0), 10);
    p = draft_pace_new(8);
    ck_assert_int_eq(runs_with(&p, 1000, 1000), 998); /* all but the first run, and two steps */
    ck_assert_int_eq(p.now, 8);
    ck_assert_int_gt(runs_with(&p, 1000, 10), 990); /* nine of ten */
    p = draft_pace_new(1);
    ck_assert_int_eq(draft_pace_next(&p), 1);
    ck_assert_int_eq(runs_with(&p, 1000, 1000) > 990, 1);
    ck_assert_int_eq(p.now, 1);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draft");
    TCase *c = unit_case(suite, "draft", NULL, NULL);
    tcase_add_test(c, test_lookup);
    tcase_add_test(c, test_pace);
    return unit_run(suite);
}
