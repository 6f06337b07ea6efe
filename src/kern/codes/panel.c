/* panel: a tile of a weight of few bits as a panel of bf16, and products of many rows with it, for each instruction set. */
#include "base/half.h"
#include "kern/codes/codes.h"
#include "kern/core/amx.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"

#include <string.h>

enum {
    WORD = 4,
    UNIT = 16, /* elements of k in a block or in a part of it */
    DEPTH = CODES_DEPTH,
    ROWS = CODES_TILE_ROWS,
    LANES = 16,
    HALVES = CODES_WIDTH / LANES,
    SCALES = CODES_WIDTH * (int)sizeof(float),
    HALF = DEPTH * LANES /* elements of half of a panel's step */
};

/* The codes of a unit of 16 elements of k, its scales and its zero points, NULL: w->zero. */
struct unit {
    const char *codes, *scales;
    const uint8_t *zeros;
};

INLINE struct unit unit_at(const struct codes *w, int64_t tile, int64_t k)
{
    int64_t b = tile * w->blocks + k / w->block;
    const char *block = w->weight + (size_t)b * w->block_bytes;
    return (struct unit){block + SCALES + k % w->block * w->bits / 8 * CODES_WIDTH, block, w->zeros ? w->zeros + b * CODES_WIDTH : NULL};
}

/* ---- plain C ------------------------------------------------------------------------------------------------------------------------- */

/* Number i of a unit of a column. */
static int code_at(const struct codes *w, const struct unit *u, int i, int column)
{
    int per = 8 / w->bits, word = i / (WORD * per), part = i / WORD % per;
    uint8_t byte = (uint8_t)u->codes[(word * CODES_WIDTH + column) * WORD + i % WORD];
    return byte >> part * w->bits & ((1 << w->bits) - 1);
}

static void plain_decode(const struct codes_part *p)
{
    const struct codes *w = p->w;
    memset(p->panel, 0, (size_t)((p->n + DEPTH - 1) / DEPTH * HALVES * HALF) * sizeof *p->panel);
    for (int64_t k = 0; k < p->n; k++) {
        struct unit u = unit_at(w, p->tile, p->from + k / UNIT * UNIT);
        uint16_t *to = p->panel + k / DEPTH * HALVES * HALF + k % DEPTH / 2 * LANES * 2 + k % 2;
        for (int j = 0; j < CODES_WIDTH; j++) {
            float scale;
            memcpy(&scale, u.scales + (size_t)j * sizeof scale, sizeof scale);
            int less = code_at(w, &u, (int)(k % UNIT), j) - (u.zeros ? u.zeros[j] : w->zero);
            to[j / LANES * HALF + j % LANES * 2] = f32_to_bf16((float)less * scale);
        }
    }
}

static void plain_multiply(const struct codes_panel *p)
{
    for (int64_t i = 0; i < p->rows * CODES_WIDTH; i++) {
        int64_t row = i / CODES_WIDTH, j = i % CODES_WIDTH;
        float *to = p->sums + row * p->apart + j, sum = p->more ? *to : 0;
        for (int64_t k = 0; k < p->steps * DEPTH; k++) {
            uint16_t x = p->a[row / ROWS * p->group + (k / DEPTH * ROWS + row % ROWS) * DEPTH + k % DEPTH];
            uint16_t w = p->panel[(k / DEPTH * HALVES + j / LANES) * HALF + (k % DEPTH / 2 * LANES + j % LANES) * 2 + k % 2];
            sum += bf16_to_f32(x) * bf16_to_f32(w);
        }
        *to = sum;
    }
    plain_decode(&p->next);
}

#if X86
/* ---- AMX ----------------------------------------------------------------------------------------------------------------------------- */

/* A pair of registers has two elements of k of LANES columns: first for the first half of the columns, then for the second, column by
 * column. */
struct coding {
    __m512i place[2][2]; /* [pair of a word][register]: the byte of every column's word for each lane */
    __m512 scale[2], zero[2];
};
#define BIASED 0x4b000000 /* the bits of 2^23: with a code in the low bits, 2^23 + code */

static AMX void find_places(struct coding *c)
{
    uint8_t place[2][2][4 * LANES];
    for (int i = 0; i < 2 * 2 * 4 * LANES; i++) {
        int pair = i / (8 * LANES), half = i / (4 * LANES) % 2, lane = i / 4 % LANES;
        place[pair][half][i % (4 * LANES)] = (uint8_t)((half * (LANES / 2) + lane / 2) * WORD + 2 * pair + lane % 2);
    }
    memcpy(c->place, place, sizeof place);
}

/* The scales and zero points of LANES columns, each twice. */
INLINE AMX void read_coding(const struct codes *w, const struct unit *u, int64_t h, struct coding *c)
{
    const __m512i twice = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0), bias = _mm512_set1_epi32(BIASED);
    __m512 scale = _mm512_loadu_ps(u->scales + h * 4 * LANES);
    __m512i zero = _mm512_set1_epi32(w->zero);
    if (u->zeros)
        zero = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)u->zeros + h));
    UNROLL for (int i = 0; i < 2; i++)
    {
        __m512i from = _mm512_add_epi32(twice, _mm512_set1_epi32(i * LANES / 2));
        c->scale[i] = _mm512_permutexvar_ps(from, scale);
        c->zero[i] = (__m512)_mm512_add_epi32(bias, _mm512_permutexvar_epi32(from, zero));
    }
}

/* A word of every column, of 4 elements of k: two rows of pairs. */
INLINE AMX void decode_word(const struct coding *c, __m512i word, uint16_t *to)
{
    UNROLL for (int p = 0; p < 2; p++)
    {
        __m512 x[2];
        UNROLL for (int i = 0; i < 2; i++)
        {
            __m512i code = _mm512_mask_permutexvar_epi8(_mm512_set1_epi32(BIASED), 0x1111111111111111, c->place[p][i], word);
            x[i] = _mm512_mul_ps(_mm512_sub_ps((__m512)code, c->zero[i]), c->scale[i]);
        }
        _mm512_storeu_si512(to + p * 2 * LANES, (__m512i)_mm512_cvtne2ps_pbh(x[1], x[0]));
    }
}

/* Item i of a part: half i % HALVES of unit i / HALVES. `bits` is a compile-time constant. */
INLINE AMX void decode_item(int bits, const struct codes_part *p, struct coding *c, int64_t i)
{
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    const int64_t k = i / HALVES * UNIT, h = i % HALVES;
    const struct unit u = unit_at(p->w, p->tile, p->from + k);
    const char *codes = u.codes + h * LANES * WORD;
    uint16_t *to = p->panel + k / DEPTH * HALVES * HALF + h * HALF + k % DEPTH * LANES;
    read_coding(p->w, &u, h, c);
    UNROLL for (int w = 0; w < UNIT / WORD; w++, to += 2 * 2 * LANES)
    {
        __m512i word = _mm512_loadu_si512(codes + w * bits / 8 * CODES_WIDTH * WORD);
        if (bits < 8)
            word = _mm512_and_si512(_mm512_srli_epi32(word, (unsigned)(w * bits % 8)), mask);
        decode_word(c, word, to);
    }
}

INLINE int64_t items_of(const struct codes_part *p)
{
    return p->n / UNIT * HALVES;
}

/* A unit that is alone in its step is padded with zeros. */
INLINE void end_part(const struct codes_part *p)
{
    for (int h = 0; h < HALVES && p->n % DEPTH; h++)
        memset(p->panel + p->n / DEPTH * HALVES * HALF + h * HALF + UNIT * LANES, 0, UNIT * LANES * sizeof *p->panel);
}

INLINE AMX void decode_items(int bits, const struct codes_part *p)
{
    struct coding c;
    find_places(&c);
    for (int64_t i = 0; i < items_of(p); i++)
        decode_item(bits, p, &c, i);
    end_part(p);
}

static AMX void amx_decode(const struct codes_part *p)
{
    switch (p->w->bits) {
    case 2: decode_items(2, p); break;
    case 4: decode_items(4, p); break;
    default: decode_items(8, p); break;
    }
}

/* The work of vector registers while tiles multiply: a share in each of `times` steps. */
struct meanwhile {
    const struct codes_part *next;
    struct coding coding;
    int64_t times, due, done; /* due: items times steps */
    const char *soon;
    int64_t ahead; /* bytes of each step */
};

INLINE AMX struct meanwhile meanwhile_of(const struct codes_panel *p)
{
    struct meanwhile m = {.next = &p->next, .times = (p->rows + 2 * ROWS - 1) / (2 * ROWS) * p->steps, .soon = p->soon};
    m.ahead = (p->soon_bytes + 64 * m.times - 1) / (64 * m.times) * 64;
    find_places(&m.coding);
    return m;
}

INLINE AMX void do_share(int bits, struct meanwhile *m)
{
    m->due += items_of(m->next);
    for (; m->done * m->times < m->due; m->done++)
        decode_item(bits, m->next, &m->coding, m->done);
    for (const char *end = m->soon + m->ahead; m->soon < end; m->soon += 64)
        __builtin_prefetch(m->soon, 0, 2);
}

/* A row to be written. */
INLINE AMX void ask_for_sums(const float *row)
{
    __builtin_prefetch(row, 1, 3);
    __builtin_prefetch(row + LANES, 1, 3);
}

/* Up to two groups of rows. */
INLINE AMX void multiply_groups(int bits, bool two, const struct codes_panel *p, const uint16_t *a, float *sums, struct meanwhile *m)
{
    const uint16_t *panel = p->panel;
    const size_t step = (size_t)p->apart * sizeof *sums;
    if (p->more)
        amx_load_sums(two, sums, step);
    else
        amx_zero_sums();
    for (int64_t s = 0; s < p->steps; s++, a += ROWS * DEPTH, panel += HALVES * HALF) {
        _tile_loadd(6, panel, AMX_BYTES);
        _tile_loadd(4, a, AMX_BYTES);
        _tile_loadd(7, panel + HALF, AMX_BYTES);
        _tile_dpbf16ps(0, 4, 6);
        if (two)
            _tile_loadd(5, a + p->group, AMX_BYTES);
        _tile_dpbf16ps(1, 4, 7);
        if (two) {
            _tile_dpbf16ps(2, 5, 6);
            _tile_dpbf16ps(3, 5, 7);
        }
        if (s < 2 * ROWS)
            ask_for_sums(sums + s * p->apart);
        do_share(bits, m);
    }
    amx_store_sums(two, sums, step);
}

INLINE AMX void multiply_rows(int bits, const struct codes_panel *p)
{
    struct meanwhile m = meanwhile_of(p);
    amx_begin_sums(p->rows, AMX_BYTES);
    for (int64_t i = 0; i < p->rows; i += 2 * ROWS) {
        const int64_t left = p->rows - i;
        const uint16_t *a = p->a + i / ROWS * p->group;
        if (i > 0 && left < 2 * ROWS)
            amx_begin_sums(left, AMX_BYTES);
        if (left > ROWS)
            multiply_groups(bits, true, p, a, p->sums + i * p->apart, &m);
        else
            multiply_groups(bits, false, p, a, p->sums + i * p->apart, &m);
    }
    amx_end();
    end_part(&p->next);
}

static AMX void amx_multiply(const struct codes_panel *p)
{
    switch (p->next.n ? p->next.w->bits : 8) {
    case 2: multiply_rows(2, p); break;
    case 4: multiply_rows(4, p); break;
    default: multiply_rows(8, p); break;
    }
}
#endif

const struct codes_panel_kernel codes_panel_kernels[] = {
#if X86
    {ISA_AMX, 32, amx_decode, amx_multiply},
#endif
    {ISA_PLAIN, INT64_MAX, plain_decode, plain_multiply},
};

ISA_BEST(codes_panel_best, codes_panel_kernel, codes_panel_kernels)
