/* amx: tile registers (Intel AMX: 8 tiles of up to 16 rows of 64 bytes). A thread configures them before use and releases them afterwards:
 * other code in the thread, such as oneDNN, has its own configuration. */
#ifndef TPC_KERN_CORE_AMX_H
#define TPC_KERN_CORE_AMX_H

#include "kern/core/isa.h"

#if X86
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#define AMX __attribute__((target("amx-tile,amx-int8,amx-bf16,avx512f,avx512bw,avx512vl,avx512bf16,avx512vnni,avx512vbmi")))

enum { AMX_ROWS = 16, AMX_BYTES = 64, AMX_TILES = 8 };

/* The operand of LDTILECFG (Intel's Software Developer's Manual, volume 1, "Programming with Intel AMX"). */
struct amx_shapes {
    uint8_t palette, start, reserved[14];
    uint16_t bytes[16]; /* per row */
    uint8_t rows[16];
};

/* Makes sure that what was written at `at` is in memory: GCC 12 does not know that tiles are loaded from there, nor that LDTILECFG reads
 * more than 8 bytes. */
INLINE void amx_written(const void *at)
{
    __asm__ volatile("" ::"r"(at) : "memory");
}

/* Tile t has rows[t] rows of bytes[t] bytes; unused tiles may have 0. */
INLINE AMX void amx_begin(const int rows[AMX_TILES], const int bytes[AMX_TILES])
{
    struct amx_shapes shapes;
    memset(&shapes, 0, sizeof shapes);
    shapes.palette = 1;
    for (int t = 0; t < AMX_TILES; t++) {
        shapes.rows[t] = (uint8_t)rows[t];
        shapes.bytes[t] = (uint16_t)bytes[t];
    }
    amx_written(&shapes);
    _tile_loadconfig(&shapes);
}

/* Tiles 0 to 3 are sums of up to 32 rows and 32 columns of 4 bytes: [16 rows][16 columns] each. 4 and 5 are rows of the left operand, of
 * `bytes` each; 6 and 7 columns of the right one, in words of 4 bytes. two: more than 16 rows. */
INLINE AMX void amx_begin_sums(int64_t rows, int bytes)
{
    const int first = rows < AMX_ROWS ? (int)rows : AMX_ROWS, words = bytes / 4;
    const int second = rows < AMX_ROWS + 1 ? 1 : rows < 2 * AMX_ROWS ? (int)rows - AMX_ROWS : AMX_ROWS;
    amx_begin((int[AMX_TILES]){first, first, second, second, first, second, words, words},
              (int[AMX_TILES]){AMX_BYTES, AMX_BYTES, AMX_BYTES, AMX_BYTES, bytes, bytes, AMX_BYTES, AMX_BYTES});
}

/* Rows are `step` bytes apart; 0: all are the same. */
INLINE AMX void amx_load_sums(bool two, const void *sums, size_t step)
{
    const char *from = sums;
    amx_written(from);
    _tile_loadd(0, from, step);
    _tile_loadd(1, from + AMX_BYTES, step);
    if (two) {
        _tile_loadd(2, from + AMX_ROWS * step, step);
        _tile_loadd(3, from + AMX_ROWS * step + AMX_BYTES, step);
    }
}

INLINE AMX void amx_zero_sums(void)
{
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
}

INLINE AMX void amx_store_sums(bool two, void *sums, size_t step)
{
    char *to = sums;
    _tile_stored(0, to, step);
    _tile_stored(1, to + AMX_BYTES, step);
    if (two) {
        _tile_stored(2, to + AMX_ROWS * step, step);
        _tile_stored(3, to + AMX_ROWS * step + AMX_BYTES, step);
    }
}

INLINE AMX void amx_end(void)
{
    _tile_release();
}
#endif

#endif
