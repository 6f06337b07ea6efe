/* codes_panel: a tile of a weight of few bits as a panel of bf16, and products of many rows with it, for each instruction set. */
#include "base/half.h"
#include "kern/core/amx.h"
#include "kern/core/core.h"
#include "kern/core/intrinsics.h"
#include "kern/gemm/gemm.h"

#include <string.h>

enum {
    WORD = 4,
    UNIT = 16, /* numbers of k in a block or in a part of it */
    DEPTH = CODES_DEPTH,
    ROWS = CODES_TILE_ROWS,
    LANES = 16,
    HALVES = CODES_WIDTH / LANES,
    SCALES = CODES_WIDTH * (int)sizeof(float),
    HALF = DEPTH * LANES /* numbers of a half of a panel's step */
};

/* Where a unit of 16 numbers of k has its codes, its scales and its zero points, NULL: w->zero. */
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

static void plain_place(const float *a, int64_t k, int64_t depth, uint16_t *to)
{
    for (int64_t i = 0; i < depth; i += DEPTH, to += ROWS * DEPTH) {
        int64_t left = k > i ? k - i : 0;
        memset(to, 0, DEPTH * sizeof *to);
        convert_from_f32(DT_BF16, a + i, left < DEPTH ? left : DEPTH, to);
    }
}

/* Number i of a unit of a column. */
static int code_at(const struct codes *w, const struct unit *u, int i, int column)
{
    int per = 8 / w->bits, word = i / (WORD * per), part = i / WORD % per;
    uint8_t byte = (uint8_t)u->codes[(word * CODES_WIDTH + column) * WORD + i % WORD];
    return byte >> part * w->bits & ((1 << w->bits) - 1);
}

static void plain_decode(const struct codes *w, int64_t tile, int64_t from, int64_t n, uint16_t *panel)
{
    memset(panel, 0, (size_t)((n + DEPTH - 1) / DEPTH * HALVES * HALF) * sizeof *panel);
    for (int64_t k = 0; k < n; k++) {
        struct unit u = unit_at(w, tile, from + k / UNIT * UNIT);
        uint16_t *to = panel + k / DEPTH * HALVES * HALF + k % DEPTH / 2 * LANES * 2 + k % 2;
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
}

#if X86
/* ---- AMX ----------------------------------------------------------------------------------------------------------------------------- */

static AMX void amx_place(const float *a, int64_t k, int64_t depth, uint16_t *to)
{
    for (int64_t i = 0; i < depth; i += DEPTH, to += ROWS * DEPTH) {
        int64_t left = k - i;
        __mmask32 some = left >= DEPTH ? UINT32_MAX : left > 0 ? (1U << left) - 1 : 0;
        __m512 low = _mm512_maskz_loadu_ps((__mmask16)some, a + i), high = _mm512_maskz_loadu_ps((__mmask16)(some >> LANES), a + i + LANES);
        _mm512_storeu_si512(to, (__m512i)_mm512_cvtne2ps_pbh(high, low));
    }
}

/* A pair of registers has two numbers of k of LANES columns: those of the first half of the columns, then those of the second, column by
 * column. */
struct coding {
    __m512i place[2][2]; /* [pair of a word][register]: the bytes of a word of every column that come to lanes */
    __m512 scale[2], zero[2];
};
#define BIASED 0x4b000000 /* the bits of 2^23: with a code in the low ones it is 2^23 + code */

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
INLINE AMX void read_coding(const struct codes *w, const struct unit *u, int h, struct coding *c)
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

/* A word of every column, of 4 numbers of k: two rows of pairs. */
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

/* A unit of LANES columns. `bits` is a constant. */
INLINE AMX void decode_unit(int bits, const struct coding *c, const char *codes, uint16_t *to)
{
    const __m512i mask = _mm512_set1_epi8((char)((1 << bits) - 1));
    UNROLL for (int i = 0; i < UNIT / WORD; i++, to += 2 * 2 * LANES)
    {
        __m512i word = _mm512_loadu_si512(codes + i * bits / 8 * CODES_WIDTH * WORD);
        if (bits < 8)
            word = _mm512_and_si512(_mm512_srli_epi32(word, (unsigned)(i * bits % 8)), mask);
        decode_word(c, word, to);
    }
}

/* Numbers from..from + n of k, all of one block. */
INLINE AMX void decode_block(int bits, const struct codes *w, const struct unit *u, int64_t n, struct coding *c, uint16_t *to, int64_t at)
{
    UNROLL for (int h = 0; h < HALVES; h++)
    {
        const char *codes = u->codes + h * LANES * WORD;
        read_coding(w, u, h, c);
        for (int64_t k = at; k < at + n; k += UNIT, codes += UNIT * bits / 8 * CODES_WIDTH)
            decode_unit(bits, c, codes, to + k / DEPTH * HALVES * HALF + h * HALF + k % DEPTH * LANES);
    }
}

INLINE AMX void decode_units(int bits, const struct codes *w, int64_t tile, int64_t from, int64_t n, uint16_t *panel)
{
    struct coding c;
    find_places(&c);
    for (int64_t k = 0, part; k < n; k += part) {
        int64_t left = w->block - (from + k) % w->block;
        struct unit u = unit_at(w, tile, from + k);
        part = left < n - k ? left : n - k;
        decode_block(bits, w, &u, part, &c, panel, k);
    }
    for (int h = 0; h < HALVES && n % DEPTH; h++)
        memset(panel + n / DEPTH * HALVES * HALF + h * HALF + UNIT * LANES, 0, UNIT * LANES * sizeof *panel);
}

static AMX void amx_decode(const struct codes *w, int64_t tile, int64_t from, int64_t n, uint16_t *panel)
{
    switch (w->bits) {
    case 2: decode_units(2, w, tile, from, n, panel); break;
    case 4: decode_units(4, w, tile, from, n, panel); break;
    default: decode_units(8, w, tile, from, n, panel); break;
    }
}

/* Sums are tiles 0 to 3: [group of rows][half of columns]; 4 and 5 are rows of a, 6 and 7 halves of the panel. */
INLINE AMX void shape_tiles(int64_t rows)
{
    int all = rows < 2 * ROWS ? (int)rows : 2 * ROWS, first = all < ROWS ? all : ROWS, second = all > ROWS ? all - ROWS : 1;
    int tall[AMX_TILES] = {first, first, second, second, first, second, DEPTH / 2, DEPTH / 2}, wide[AMX_TILES];
    for (int t = 0; t < AMX_TILES; t++)
        wide[t] = AMX_BYTES;
    amx_begin(tall, wide);
}

/* A row to be written. */
INLINE AMX void ask_for_sums(const float *row)
{
    __builtin_prefetch(row, 1, 3);
    __builtin_prefetch(row + LANES, 1, 3);
}

/* Up to two groups of rows. A tile is loaded as soon as its last use is under way. `ahead` bytes of each step from `next` on are asked for.
 */
INLINE AMX void multiply_groups(bool two, const struct codes_panel *p, const uint16_t *a, float *sums, const char *next, int64_t ahead)
{
    const size_t apart = (size_t)p->apart * sizeof *sums;
    const uint16_t *panel = p->panel;
    float *below = sums + ROWS * p->apart;
    if (p->more) {
        _tile_loadd(0, sums, apart);
        _tile_loadd(1, sums + LANES, apart);
        if (two) {
            _tile_loadd(2, below, apart);
            _tile_loadd(3, below + LANES, apart);
        }
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
    _tile_loadd(6, panel, AMX_BYTES);
    _tile_loadd(4, a, AMX_BYTES);
    _tile_loadd(7, panel + HALF, AMX_BYTES);
    if (two)
        _tile_loadd(5, a + p->group, AMX_BYTES);
    for (int64_t s = 1; s < p->steps; s++) {
        a += ROWS * DEPTH;
        panel += HALVES * HALF;
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(4, a, AMX_BYTES);
        if (two)
            _tile_dpbf16ps(2, 5, 6);
        _tile_loadd(6, panel, AMX_BYTES);
        if (two) {
            _tile_dpbf16ps(3, 5, 7);
            _tile_loadd(5, a + p->group, AMX_BYTES);
        }
        _tile_loadd(7, panel + HALF, AMX_BYTES);
        for (int64_t i = 0; i < ahead; i += 64, next += 64)
            __builtin_prefetch(next, 0, 2);
        if (s <= 2 * ROWS)
            ask_for_sums(sums + (s - 1) * p->apart);
    }
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    if (two) {
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, apart);
    _tile_stored(1, sums + LANES, apart);
    if (two) {
        _tile_stored(2, below, apart);
        _tile_stored(3, below + LANES, apart);
    }
}

static AMX void amx_multiply(const struct codes_panel *p)
{
    const int64_t pairs = (p->rows + 2 * ROWS - 1) / (2 * ROWS), times = pairs * p->steps, lines = (p->next_bytes + 63) / 64;
    const int64_t ahead = (lines + times - 1) / times * 64;
    const char *next = p->next;
    shape_tiles(p->rows);
    for (int64_t i = 0; i < p->rows; i += 2 * ROWS, next += p->steps * ahead) {
        int64_t left = p->rows - i;
        const uint16_t *a = p->a + i / ROWS * p->group;
        float *sums = p->sums + i * p->apart;
        if (i > 0 && left < 2 * ROWS)
            shape_tiles(left);
        if (left > ROWS)
            multiply_groups(true, p, a, sums, next, ahead);
        else
            multiply_groups(false, p, a, sums, next, ahead);
    }
    amx_end();
}
#endif

const struct codes_panel_kernel codes_panel_kernels[] = {
#if X86
    {ISA_AMX, 32, amx_place, amx_decode, amx_multiply},
#endif
    {ISA_PLAIN, INT64_MAX, plain_place, plain_decode, plain_multiply},
};

ISA_BEST(codes_panel_best, codes_panel_kernel, codes_panel_kernels)
