/* Filters of bytes: every kernel's sums equal plain loops'. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

enum { MOST = 40 * 360, MOST_RUNS = 9, ROWS = BYTES_ROWS };

static void fill(uint8_t *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (uint8_t)draw(256);
}

static int number(const struct bytes_source *s, uint8_t x)
{
    return s->is_signed ? (int8_t)x : x;
}

/* The filter's number, less its zero point, that meets number i of a row. */
static int number_at(const struct bytes_source *s, int64_t column, int64_t i)
{
    int zero = s->zero ? number(s, s->zero[s->zeros > 1 ? column : 0]) : 0;
    return number(s, s->w[column * s->k + i % s->inner * (s->k / s->inner) + i / s->inner]) - zero;
}

/* Rows of numbers, each in a block of memory of the size that is read. */
struct rows {
    uint8_t *x[ROWS][MOST_RUNS];
    const uint8_t *at[MOST_RUNS * ROWS];
    struct bytes_rows b;
};

static void make_rows(struct rows *r, const struct bytes *b)
{
    *r = (struct rows){.b = {.at = r->at, .runs = b->runs, .words = b->words, .offset = draw(3), .flip = draw(2) ? 0x80 : 0}};
    for (int i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < b->runs; k++) {
            r->at[k * ROWS + i] = r->x[i][k] = malloc((size_t)(r->b.offset + b->words * 4));
            fill(r->x[i][k], r->b.offset + b->words * 4);
        }
}

static void free_rows(struct rows *r)
{
    for (int i = 0; i < ROWS; i++)
        for (int64_t k = 0; k < r->b.runs; k++)
            free(r->x[i][k]);
}

static int row_at(const struct rows *r, int64_t row, int64_t run, int64_t i)
{
    return r->x[row][i / run][r->b.offset + i % run] ^ r->b.flip;
}

static void check_tile(const struct bytes_kernel *kernel, const struct bytes_source *s, const struct bytes *b, int64_t group, int64_t tile,
                       const struct rows *x, int rows)
{
    int32_t sums[ROWS * BYTES_WIDTH], seen[ROWS];
    int64_t at = group * b->tiles + tile;
    kernel->dot(b->weight + at * b->tile_bytes, &x->b, rows, bytes_halves(b, tile), sums);
    kernel->add(&x->b, s->run, rows, seen);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t j = tile * BYTES_WIDTH; j < s->n && j < (tile + 1) * BYTES_WIDTH; j++) {
            int64_t column = at * BYTES_WIDTH + j % BYTES_WIDTH;
            int sum = 0, all = 0, row = 0;
            for (int64_t i = 0; i < s->k; i++) {
                sum += row_at(x, r, s->run, i) * number_at(s, group * s->n + j, i);
                all += number_at(s, group * s->n + j, i);
                row += row_at(x, r, s->run, i);
            }
            ck_assert_int_eq(b->sums[column], all);
            ck_assert_int_eq(seen[r], row);
            ck_assert_int_eq(sums[r * BYTES_WIDTH + j % BYTES_WIDTH] - (b->zero ? b->zero[column] : 0) * row, sum);
        }
}

START_TEST(every_kernel_sums_bytes)
{
    static uint8_t w[2 * MOST], zero[2 * 40];
    static struct rows x;
    struct kenv *env = kenv_new(1, false);
    state = (uint32_t)_i;
    for (int round = 0; round < 20; round++) {
        struct bytes_source s = {
            .groups = 1 + draw(2), .n = 1 + draw(40), .inner = 1 + draw(40), .is_signed = draw(2), .w = w, .zero = zero};
        s.k = s.inner * (1 + draw(9));
        s.run = draw(2) ? s.inner : s.k;
        s.zeros = draw(2) ? 1 : s.groups * s.n;
        s.zero = draw(3) ? zero : NULL;
        fill(w, sizeof w);
        fill(zero, sizeof zero);
        struct bytes b = bytes_pack(&(struct kcall){.env = env}, &s, draw(2));
        make_rows(&x, &b);
        ISA_EACH(bytes_kernel, kernel, bytes_kernels)
        for (int64_t t = 0; t < s.groups * b.tiles; t++)
            check_tile(kernel, &s, &b, t / b.tiles, t % b.tiles, &x, 1 + (int)draw(ROWS));
        free_rows(&x);
    }
    kenv_free(env);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bytes");
    tcase_add_loop_test(unit_case(suite, "bytes", NULL, NULL), every_kernel_sums_bytes, 0, 4);
    return unit_run(suite);
}
