/* codes_amx: sums of whole numbers by registers of tiles: codes of 8 bits lie in a tile of the weight as the instruction reads them. */
#include "kern/core/amx.h"
#include "kern/core/core.h"
#include "kern/gemm/gemm.h"

#if X86
enum { LANES = 16, WORD = 4, SCALES = CODES_WIDTH * (int)sizeof(float), COLUMNS = CODES_WIDTH * WORD /* bytes of a word of all columns */ };

/* Numbers of k, `depth` at a time, from one on. */
struct codes_stretch {
    int64_t from, steps, depth;
    bool more; /* is added to the sums */
};

/* Sums are tiles 0 to 3: [16 rows][half of the columns]; 4 and 5 are rows of digits, 6 and 7 halves of the columns. */
INLINE AMX void shape_tiles(int rows, int depth)
{
    const int first = rows < AMX_ROWS ? rows : AMX_ROWS, second = rows > AMX_ROWS ? rows - AMX_ROWS : 1, words = depth / WORD;
    amx_begin((int[AMX_TILES]){first, first, second, second, first, second, words, words},
              (int[AMX_TILES]){AMX_BYTES, AMX_BYTES, AMX_BYTES, AMX_BYTES, depth, depth, AMX_BYTES, AMX_BYTES});
}

INLINE AMX void load_sums(bool two, bool more, const int32_t *sums, size_t step)
{
    const char *from = (const char *)sums;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (more) {
        _tile_loadd(0, from, step);
        _tile_loadd(1, from + AMX_BYTES, step);
    }
    if (more && two) {
        _tile_loadd(2, from + AMX_ROWS * step, step);
        _tile_loadd(3, from + AMX_ROWS * step + AMX_BYTES, step);
    }
}

INLINE AMX void store_sums(bool two, int32_t *sums, size_t step)
{
    char *to = (char *)sums;
    _tile_stored(0, to, step);
    _tile_stored(1, to + AMX_BYTES, step);
    if (two) {
        _tile_stored(2, to + AMX_ROWS * step, step);
        _tile_stored(3, to + AMX_ROWS * step + AMX_BYTES, step);
    }
}

INLINE AMX void add_stretch(bool two, const char *codes, const int8_t *digit, int64_t row, const struct codes_stretch *k, int32_t *sums,
                            size_t step)
{
    codes += k->from / WORD * COLUMNS;
    digit += k->from;
    load_sums(two, k->more, sums, step);
    for (int64_t s = 0; s < k->steps; s++, digit += k->depth, codes += k->depth / WORD * COLUMNS) {
        _tile_loadd(6, codes, COLUMNS);
        _tile_loadd(4, digit, row);
        _tile_loadd(7, codes + AMX_BYTES, COLUMNS);
        _tile_dpbsud(0, 4, 6);
        if (two)
            _tile_loadd(5, digit + AMX_ROWS * row, row);
        _tile_dpbsud(1, 4, 7);
        if (two) {
            _tile_dpbsud(2, 5, 6);
            _tile_dpbsud(3, 5, 7);
        }
    }
    store_sums(two, sums, step);
}

AMX void codes_amx_whole(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    const char *codes = w->weight + (size_t)tile * w->block_bytes + SCALES;
    const int64_t left = w->block % AMX_BYTES;
    const struct codes_stretch some = {w->block - left, 1, left, false}, most = {0, w->block / AMX_BYTES, AMX_BYTES, left > 0};
    const size_t step = (size_t)apart * sizeof *sums;
    if (left > 0) {
        shape_tiles(rows, (int)left);
        add_stretch(rows > AMX_ROWS, codes, digit, w->block, &some, sums, step);
    }
    if (most.steps > 0) {
        shape_tiles(rows, AMX_BYTES);
        add_stretch(rows > AMX_ROWS, codes, digit, w->block, &most, sums, step);
    }
    amx_end();
}
#endif
