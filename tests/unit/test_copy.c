/* Strided copies (kern/core/copy.c) of random shapes, orders and steps, with elements of 1 to 8 bytes: every element where it belongs, and
 * nothing else written. */
#include "kern/core/core.h"
#include "tests/unit/main.h"

#include <string.h>

enum { DIMS = 4, MOST = 1 << 15, UNTOUCHED = 0xa5 };

static int64_t draw(int64_t n)
{
    return rand() % n;
}

/* Steps of dimensions in a random order, with gaps between some; elements that they span. */
static int64_t draw_steps(const struct copy *c, int64_t *step)
{
    int order[DIMS] = {0, 1, 2, 3};
    int64_t n = 1;
    for (int d = 0; d < c->rank; d++) {
        int other = (int)draw(3) ? d : (int)draw(c->rank), was = order[d];
        order[d] = order[other];
        order[other] = was;
    }
    for (int d = c->rank - 1; d >= 0; d--) {
        step[order[d]] = n;
        n *= c->dim[order[d]] + (draw(4) ? 0 : draw(3));
    }
    return n;
}

static int64_t place(const struct copy *c, const int64_t *step, int64_t i)
{
    int64_t at = 0;
    for (int d = c->rank - 1; d >= 0; d--) {
        at += i % c->dim[d] * step[d];
        i /= c->dim[d];
    }
    return at;
}

START_TEST(every_element_is_where_it_belongs)
{
    static uint8_t from[8 * MOST], to[8 * MOST], want[8 * MOST];
    srand((unsigned)_i);
    struct copy c = {.rank = 1 + (int)draw(DIMS), .size = (size_t)1 << draw(4)};
    for (int d = 0; d < c.rank; d++)
        c.dim[d] = 1 + draw(draw(2) ? 5 : 11);
    int64_t n = tensor_dims_product(c.dim, 0, c.rank);
    ck_assert(draw_steps(&c, c.to) <= MOST && draw_steps(&c, c.from) <= MOST);
    for (int d = 0; d < c.rank; d++)
        c.from[d] = draw(6) ? c.from[d] : 0;
    for (int i = 0; i < 8 * MOST; i++)
        from[i] = (uint8_t)draw(256);
    memset(to, UNTOUCHED, sizeof to);
    memset(want, UNTOUCHED, sizeof want);
    for (int64_t i = 0; i < n; i++)
        memcpy(want + place(&c, c.to, i) * (int64_t)c.size, from + place(&c, c.from, i) * (int64_t)c.size, c.size);
    struct kenv *env = kenv_new(1 + (int)draw(3), false);
    copy_strided(env, &c, to, from);
    kenv_free(env);
    ck_assert(memcmp(to, want, sizeof to) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copy");
    TCase *copies = unit_case(suite, "copy", NULL, NULL);
    tcase_add_loop_test(copies, every_element_is_where_it_belongs, 0, 400);
    return unit_run(suite);
}
