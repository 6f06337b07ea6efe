/* The pool of beginnings of texts, against a list that is searched from end to end: random texts are stored, found and dropped. */
#include "decode/prefix/prefix.h"
#include "tests/unit/main.h"

#include <string.h>

enum { TOKENS = 3, LONGEST = 6, BYTES = 24, ROUNDS = 4000, NAMES = 2 };

/* A stored block: all tokens up to its end. */
struct kept {
    int64_t blocks, used, mark;
    int64_t token[LONGEST * TOKENS];
};
struct model {
    int64_t most, n, now, marks;
    struct kept at[64];
};

static struct kept *model_block(struct model *m, const int64_t *token, int64_t blocks)
{
    for (int64_t i = 0; i < m->n; i++)
        if (m->at[i].blocks == blocks && memcmp(m->at[i].token, token, (size_t)(blocks * TOKENS) * sizeof *token) == 0)
            return &m->at[i];
    return NULL;
}

/* The longest text in whole blocks that is stored; the earlier a block, the later it is used. */
static int64_t model_find(struct model *m, const int64_t *token, int64_t blocks)
{
    int64_t n = 0;
    while (n < blocks && model_block(m, token, n + 1))
        n++;
    for (int64_t i = n; i > 0; i--)
        model_block(m, token, i)->used = ++m->now;
    return n;
}

/* The mark of what is stored; 0: nothing is. */
static int64_t model_add(struct model *m, const int64_t *token, int64_t blocks)
{
    int64_t n = model_find(m, token, blocks);
    struct kept *oldest = m->n ? m->at : NULL, *b;
    if (n != blocks - 1)
        return 0;
    for (int64_t i = 1; i < m->n; i++)
        oldest = m->at[i].used < oldest->used ? &m->at[i] : oldest;
    if (m->n == m->most && oldest == (n ? model_block(m, token, n) : NULL))
        return 0;
    b = m->n < m->most ? &m->at[m->n++] : oldest;
    *b = (struct kept){.blocks = blocks, .mark = ++m->marks, .used = ++m->now};
    memcpy(b->token, token, (size_t)(blocks * TOKENS) * sizeof *token);
    (void)model_find(m, token, blocks);
    return b->mark;
}

static uint64_t state;
static int64_t draw(int64_t n)
{
    return (int64_t)(splitmix(state++ * SPLITMIX_STEP) % (uint64_t)n);
}

static void draw_text(int64_t *token)
{
    for (int i = 0; i < LONGEST * TOKENS; i++)
        token[i] = draw(NAMES);
}

static void check_found(struct prefix_pool *p, struct model *m, const int64_t *token, int64_t blocks)
{
    int64_t found = model_find(m, token, blocks);
    ck_assert_int_eq(prefix_pool_find(p, 0, token, blocks), found);
    for (int64_t i = 0; i < found; i++) {
        const char *at = prefix_pool_at(p, i);
        for (int k = 0; k < BYTES; k++)
            ck_assert_int_eq(at[k], (char)model_block(m, token, i + 1)->mark);
    }
}

static void check_added(struct prefix_pool *p, struct model *m, const int64_t *token, int64_t blocks)
{
    int64_t mark = model_add(m, token, blocks);
    void *at = prefix_pool_add(p, 0, token, blocks);
    ck_assert(!at == !mark);
    if (at)
        memset(at, (char)mark, BYTES);
}

START_TEST(is_as_the_list)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 5, 9, 20, 60};
    struct model m = {.most = sizes[_i]};
    struct prefix_pool *p = prefix_pool_new(TOKENS, BYTES, m.most);
    state = 77 + (uint64_t)_i;
    for (int round = 0; round < ROUNDS; round++) {
        int64_t token[LONGEST * TOKENS], blocks = 1 + draw(LONGEST);
        draw_text(token);
        if (draw(3))
            check_found(p, &m, token, blocks);
        else
            for (int64_t i = 1; i <= blocks; i++)
                check_added(p, &m, token, i);
        ck_assert_int_eq(prefix_pool_count(p), m.n);
        ck_assert_int_le(prefix_pool_count(p), m.most);
        ck_assert_int_eq(prefix_pool_dropped(p) + prefix_pool_count(p), m.marks);
    }
    prefix_pool_free(p);
}
END_TEST

/* Nothing of one is found for another, in any block. */
START_TEST(keeps_apart_what_computed_them)
{
    const int64_t text[2 * TOKENS] = {1, 2, 3, 4, 5, 6};
    struct prefix_pool *p = prefix_pool_new(TOKENS, BYTES, 4);
    ck_assert(prefix_pool_add(p, 0, text, 1) && prefix_pool_add(p, 0, text, 2));
    ck_assert_int_eq(prefix_pool_find(p, 1, text, 2), 0);
    ck_assert(prefix_pool_add(p, 1, text, 1));
    ck_assert_int_eq(prefix_pool_find(p, 1, text, 2), 1);
    ck_assert_int_eq(prefix_pool_find(p, 2, text, 2), 0);
    ck_assert_int_eq(prefix_pool_find(p, 0, text, 2), 2);
    prefix_pool_free(p);
}
END_TEST

/* The continuation of an evicted block is not found after another block in its slot. */
START_TEST(ends_where_a_block_is_gone)
{
    const int64_t first[2 * TOKENS] = {1, 2, 3, 4, 5, 6}, other[2 * TOKENS] = {7, 8, 9, 4, 5, 6};
    struct prefix_pool *p = prefix_pool_new(TOKENS, BYTES, 2);
    ck_assert(prefix_pool_add(p, 0, first, 1) && prefix_pool_add(p, 0, first, 2));
    ck_assert(prefix_pool_add(p, 0, other, 1));
    ck_assert_int_eq(prefix_pool_find(p, 0, other, 2), 1);
    ck_assert_int_eq(prefix_pool_find(p, 0, first, 2), 1);
    ck_assert(!prefix_pool_add(p, 0, other, 3));
    prefix_pool_free(p);
}
END_TEST

/* A text that alone takes all blocks keeps its first ones. */
START_TEST(keeps_the_beginning)
{
    int64_t token[LONGEST * TOKENS] = {0};
    struct prefix_pool *p = prefix_pool_new(TOKENS, BYTES, 3);
    for (int64_t i = 1; i <= LONGEST; i++)
        ck_assert(!prefix_pool_add(p, 0, token, i) == (i > 3));
    ck_assert_int_eq(prefix_pool_find(p, 0, token, LONGEST), 3);
    ck_assert_int_eq(prefix_pool_dropped(p), 0);
    prefix_pool_free(p);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("prefix_pool");
    TCase *t = unit_case(suite, "prefix_pool", NULL, NULL);
    tcase_add_loop_test(t, is_as_the_list, 0, 8);
    tcase_add_test(t, keeps_apart_what_computed_them);
    tcase_add_test(t, ends_where_a_block_is_gone);
    tcase_add_test(t, keeps_the_beginning);
    return unit_run(suite);
}
