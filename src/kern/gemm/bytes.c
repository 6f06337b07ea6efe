/* bytes: filters of 8-bit integers, packed once, in the order that bytes_dot.c reads. 128 is subtracted from unsigned numbers and their
 * zero points. */
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum { WORD = 4, HALF = BYTES_WIDTH / 2 };

struct packing {
    const struct bytes *to;
    const struct bytes_source *from;
    int8_t *weight;
    int32_t *sums, *zero;
};

int bytes_halves(const struct bytes *b, int64_t tile)
{
    return b->n - tile * BYTES_WIDTH > HALF ? 2 : 1;
}

static int number(const struct bytes_source *s, uint8_t x)
{
    return s->is_signed ? (int8_t)x : x - 128;
}

static int zero_of(const struct bytes_source *s, int64_t column)
{
    return s->zero ? number(s, s->zero[s->zeros > 1 ? column : 0]) : number(s, 0);
}

static void pack_column(const struct packing *p, int64_t group, int64_t j)
{
    const struct bytes *to = p->to;
    const struct bytes_source *s = p->from;
    int64_t tile = j / BYTES_WIDTH, column = group * s->n + j, at = (group * to->tiles + tile) * BYTES_WIDTH + j % BYTES_WIDTH;
    int64_t width = bytes_halves(to, tile) * HALF, turns = s->k / s->inner;
    const uint8_t *w = s->w + column * s->k;
    int8_t *place = p->weight + (group * to->tiles + tile) * to->tile_bytes + j % BYTES_WIDTH * WORD;
    int zero = zero_of(s, column), sum = 0;
    for (int64_t i = 0; i < s->k; i++) {
        int x = number(s, w[i % s->inner * turns + i / s->inner]);
        int64_t word = i / s->run * to->words + i % s->run / WORD;
        place[word * width * WORD + i % s->run % WORD] = (int8_t)x;
        sum += x - zero;
    }
    p->sums[at] = sum;
    p->zero[at] = zero;
}

static void pack_range(void *data, int64_t lo, int64_t hi)
{
    const struct packing *p = data;
    for (int64_t i = lo; i < hi; i++)
        pack_column(p, i / p->from->n, i % p->from->n);
}

static bool has_zeros(const struct bytes_source *s)
{
    bool some = false;
    for (int64_t j = 0; j < s->groups * s->n; j++)
        some = some || zero_of(s, j) != 0;
    return some;
}

struct bytes bytes_pack(struct kcall *call, const struct bytes_source *s, bool keep)
{
    struct bytes b = {.groups = s->groups, .n = s->n, .k = s->k, .tiles = (s->n + BYTES_WIDTH - 1) / BYTES_WIDTH};
    require(s->k <= BYTES_MOST && s->k % s->inner == 0 && s->k % s->run == 0);
    b.runs = s->k / s->run;
    b.words = (s->run + WORD - 1) / WORD;
    b.tile_bytes = b.runs * b.words * WORD * BYTES_WIDTH;
    int64_t tiles = s->groups * b.tiles;
    size_t weight = kcall_bytes(call, tiles, (size_t)b.tile_bytes), each = kcall_bytes(call, tiles, BYTES_WIDTH * sizeof(int32_t));
    char *room = keep ? kenv_weights(call->env, weight + 2 * each) : kenv_room(call->env, ROOM_PANELS, weight + 2 * each);
    memset(room, 0, weight + 2 * each);
    struct packing p = {&b, s, (int8_t *)room, (int32_t *)(void *)(room + weight), (int32_t *)(void *)(room + weight + each)};
    kenv_parallel_for(call->env, s->groups * s->n, 4 * s->k, pack_range, &p);
    b.weight = p.weight;
    b.sums = p.sums;
    b.zero = has_zeros(s) ? p.zero : NULL;
    return b;
}
