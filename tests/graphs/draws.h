/* draws: the choices that a random object is made of. They are recorded, so that the object can be made again from the list alone, and a
 * smaller list makes a smaller object: 0 is the simplest choice everywhere, and what is missing at the end is 0. (D. MacIver, A. Donaldson:
 * Test-case reduction via test-case generation, ECOOP 2020.) */
#ifndef TPC_TESTS_DRAWS_H
#define TPC_TESTS_DRAWS_H

#include "base/base.h"

struct draw_list {
    VEC(uint32_t) list;
};
struct draws {
    struct arena *arena;
    const struct draw_list *given; /* NULL: chosen at random */
    uint64_t state;                /* of the random numbers */
    struct draw_list made;         /* what was drawn until now */
};
struct draws draws_random(struct arena *, uint64_t seed);
struct draws draws_given(struct arena *, const struct draw_list *);
/* A number of [0, n), n >= 1. */
uint32_t draw(struct draws *, uint32_t n);
/* Independent of the choices: numbers to fill a tensor with, from a seed. */
uint64_t next_random(uint64_t *state);

/* Makes the list smaller while `fails` says that its object still fails: runs of draws go, and single ones get smaller. Tries at most
 * `tries` lists. fails may change the list that it is given to what was really drawn. */
typedef bool draws_fail(void *data, struct draw_list *);
void draws_shrink(struct arena *, struct draw_list *, int tries, draws_fail *, void *data);

#endif
