/* amx: integer sums in tile registers: a tile of the weight stores 8-bit codes in the order of the instruction. */
#include "kern/core/amx.h"

#include "kern/codes/codes.h"
#include "kern/core/core.h"

#if X86
enum { WORD = 4, SCALES = CODES_WIDTH * (int)sizeof(float), COLUMNS = CODES_WIDTH * WORD /* bytes of a word of all columns */ };

/* Elements of k, `depth` at a time, from one on. */
struct codes_stretch {
    int64_t from, steps, depth;
    bool more; /* is added to the sums */
};

INLINE AMX void add_stretch(bool two, const char *codes, const int8_t *digit, int64_t row, const struct codes_stretch *k, int32_t *sums,
                            size_t step)
{
    codes += k->from / WORD * COLUMNS;
    digit += k->from;
    if (k->more)
        amx_load_sums(two, sums, step);
    else
        amx_zero_sums();
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
    amx_store_sums(two, sums, step);
}

AMX void codes_amx_whole(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    const char *codes = w->weight + (size_t)tile * w->block_bytes + SCALES;
    const int64_t left = w->block % AMX_BYTES;
    const struct codes_stretch some = {w->block - left, 1, left, false}, most = {0, w->block / AMX_BYTES, AMX_BYTES, left > 0};
    const size_t step = (size_t)apart * sizeof *sums;
    if (left > 0) {
        amx_begin_sums(rows, (int)left);
        add_stretch(rows > AMX_ROWS, codes, digit, w->block, &some, sums, step);
    }
    if (most.steps > 0) {
        amx_begin_sums(rows, AMX_BYTES);
        add_stretch(rows > AMX_ROWS, codes, digit, w->block, &most, sums, step);
    }
    amx_end();
}
#endif
