/* Sums of depthwise convolutions: every kernel's equal plain loops', for each number of channels, taps and positions. */
#include "kern/conv/integer_conv.h"
#include "kern/core/core.h"
#include "tests/unit/draw.h"
#include "tests/unit/main.h"

enum { LANES = BYTES_WIDTH, PLACES = 5, STEP = 70, TAPS = 27, BYTES = PLACES * STEP };

struct example {
    struct depthwise_tile tile;
    const uint8_t *tap[TAPS + 1];
    int16_t w[(TAPS + 1) * LANES];
    int16_t plain[TAPS][LANES];
    uint8_t *x[TAPS + 1]; /* of the size that is read */
};

static void make_example(struct example *e)
{
    *e = (struct example){.tile = {.places = 1 + draw(PLACES), .taps = 1 + draw(TAPS), .from = draw(3), .n = 1 + draw(LANES)}};
    struct depthwise_tile *d = &e->tile;
    d->n = draw(2) ? d->n : LANES;
    d->step = draw(STEP);
    d->flip = draw(2) ? 0x80 : 0;
    d->tap = e->tap;
    d->w = e->w;
    size_t size = (size_t)(d->from + (d->places - 1) * d->step + d->n);
    for (int64_t t = 0; t < d->taps + d->taps % 2; t++) {
        e->tap[t] = e->x[t] = malloc(size);
        for (size_t i = 0; i < size; i++)
            e->x[t][i] = (uint8_t)draw(256);
        for (int c = 0; c < d->n && t < d->taps; c++)
            e->w[integer_depthwise_place(t, c)] = e->plain[t][c] = (int16_t)(draw(511) - 255);
    }
}

static void check_kernel(const struct depthwise_kernel *kernel, const struct example *e)
{
    const struct depthwise_tile *d = &e->tile;
    int32_t sums[PLACES * LANES];
    kernel->sums(d, sums);
    for (int64_t i = 0; i < d->places; i++)
        for (int c = 0; c < d->n; c++) {
            int32_t sum = 0;
            for (int64_t t = 0; t < d->taps; t++)
                sum += (e->x[t][d->from + i * d->step + c] ^ d->flip) * e->plain[t][c];
            ck_assert_int_eq(sums[i * LANES + c], sum);
        }
}

START_TEST(every_kernel_sums_channels)
{
    static struct example e;
    state = (uint32_t)_i;
    for (int round = 0; round < 200; round++) {
        make_example(&e);
        ISA_EACH(depthwise_kernel, kernel, integer_depthwise_kernels)
        check_kernel(kernel, &e);
        for (int t = 0; t <= TAPS; t++)
            free(e.x[t]);
    }
}
END_TEST

START_TEST(filters_have_all_places)
{
    bool seen[2 * LANES] = {false};
    for (int i = 0; i < 2 * LANES; i++)
        seen[integer_depthwise_place(2 + i / LANES, i % LANES) - 2 * LANES] = true;
    for (int i = 0; i < 2 * LANES; i++)
        ck_assert(seen[i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("depthwise");
    TCase *c = unit_case(suite, "depthwise", NULL, NULL);
    tcase_add_loop_test(c, every_kernel_sums_channels, 0, 4);
    tcase_add_test(c, filters_have_all_places);
    return unit_run(suite);
}
