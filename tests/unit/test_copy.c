/* Strided copies (kern/core/copy.c) of random shapes, orders and steps, with elements of 1 to 8 bytes: every element where it belongs, and
 * nothing else written. Split and Concat (kern/shape/parts.c) of random parts: each has its elements, and together they are the whole. */
#include "kern/core/core.h"
#include "tests/unit/kernel.h"

enum { RANK = 4, MOST = 1 << 15, UNTOUCHED = 0xa5 };

static int64_t draw(int64_t n)
{
    return rand() % n;
}

/* Steps of dimensions in a random order, with gaps between some; elements that they span. */
static int64_t draw_steps(const struct copy *c, int64_t *step)
{
    int order[RANK] = {0, 1, 2, 3};
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
    struct copy c = {.rank = 1 + (int)draw(RANK), .size = (size_t)1 << draw(4)};
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
    copy_strided(env, &c, to, from);
    ck_assert(memcmp(to, want, sizeof to) == 0);
}
END_TEST

START_TEST(parts_make_the_whole)
{
    enum { PARTS = 9 };
    enum dtype types[] = {DT_U8, DT_F16, DT_F32, DT_I64};
    srand((unsigned)_i);
    struct tensor x = {.dtype = types[draw(COUNT(types))], .rank = 1 + (int)draw(3)}, y, part[PARTS];
    int axis = (int)draw(x.rank), n = 1 + (int)draw(PARTS);
    for (int d = 0; d < x.rank; d++)
        x.dim[d] = 1 + draw(draw(2) ? 6 : 60);
    x.dim[axis] = 0;
    for (int k = 0; k < n; k++) {
        part[k] = x;
        x.dim[axis] += part[k].dim[axis] = draw(6) ? 1 + draw(20) : 0;
        part[k] = tensor_new(x.dtype, x.rank, part[k].dim, NULL);
    }
    x = tensor_new(x.dtype, x.rank, x.dim, NULL);
    y = tensor_new(x.dtype, x.rank, x.dim, NULL);
    for (size_t i = 0; i < tensor_bytes(&x); i++)
        ((uint8_t *)x.data)[i] = (uint8_t)draw(256);
    struct node *split = node_new("", "Split"), *concat = node_new("", "Concat");
    attr_set_int(split, "axis", axis);
    attr_set_int(concat, "axis", axis - x.rank);
    struct kcall call = {.node = split, .graph = graph, .nin = 1, .nout = n, .in = &x, .out = part, .env = env};
    split->op->kernel(&call);
    run(concat, n, part, &y);
    ck_assert(memcmp(x.data, y.data, tensor_bytes(&x)) == 0);
    size_t piece = tensor_bytes(&part[0]) / (size_t)(tensor_dims_product(x.dim, 0, axis)),
           row = tensor_bytes(&x) / (size_t)tensor_dims_product(x.dim, 0, axis);
    for (int64_t r = 0; r < tensor_dims_product(x.dim, 0, axis); r++)
        ck_assert(memcmp((char *)part[0].data + (size_t)r * piece, (char *)x.data + (size_t)r * row, piece) == 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("copy");
    TCase *copies = unit_case(suite, "copy", setup, teardown);
    tcase_add_loop_test(copies, every_element_is_where_it_belongs, 0, 400);
    tcase_add_loop_test(copies, parts_make_the_whole, 0, 400);
    return unit_run(suite);
}
