/* neon: the kernels of dot.c for one instruction set of ARM, which includes this once for each. It defines:
 *   CODES(name), TARGET   a name and the attribute of a function for the instruction set
 *   CODES(units)          adds `units` of UNIT numbers to sum[row][register], each of FOUR columns
 *   FLIPS                 codes of 8 bits are read as signed ones, less 128: sums begin with that many times the sum of the digits
 * One row meets all columns of a tile, two or three meet half of them: so their sums have registers. */

/* 128 times the sums of the digits of `rows` rows. */
INLINE TARGET void CODES(flipped)(int rows, int64_t units, const int8_t *digit, int64_t each, int64_t row, int32_t *start)
{
    UNROLL for (int r = 0; r < rows; r++)
    {
        int16x4_t pairs = vdup_n_s16(0);
        int32x2_t sum = vdup_n_s32(0);
        for (int64_t i = 0; i < units * (UNIT / WORD); i++) {
            pairs = vpaddl_s8(vreinterpret_s8_s32(vset_lane_s32(word_at(digit + i * each + r * row), vdup_n_s32(0), 0)));
            sum = vpadal_s16(sum, pairs);
        }
        start[r] = (int32_t)((uint32_t)vget_lane_s32(sum, 0) << 7);
    }
}

/* The initial sums of a step, of columns from `column` on. */
INLINE TARGET void CODES(start)(int rows, int regs, const uint8_t *zeros, const int32_t *start, const int32_t *more,
                                int32x4_t (*sum)[EIGHT])
{
    UNROLL for (int h = 0; h < regs; h += 2)
    {
        uint16x8_t zero = vmovl_u8(zeros ? vld1_u8(zeros + h * FOUR) : vdup_n_u8(1));
        UNROLL for (int r = 0; r < rows; r++)
        {
            int32x4_t first = vdupq_n_s32(start[r]), shared = vdupq_n_s32(more[r]);
            sum[r][h] = vaddq_s32(zeros ? vmulq_s32(first, vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(zero)))) : first, shared);
            sum[r][h + 1] = vaddq_s32(zeros ? vmulq_s32(first, vreinterpretq_s32_u32(vmovl_high_u16(zero))) : first, shared);
        }
    }
}

/* total += sum * the scales of columns and rows. */
INLINE TARGET void CODES(scale)(int rows, int regs, const float *columns, const float *scale, int32x4_t (*sum)[EIGHT],
                                float32x4_t (*total)[EIGHT])
{
    UNROLL for (int h = 0; h < regs; h++)
    {
        float32x4_t column = vld1q_f32(columns + h * FOUR);
        UNROLL for (int r = 0; r < rows; r++) total[r][h] = vfmaq_f32(total[r][h], vcvtq_f32_s32(sum[r][h]), vmulq_n_f32(column, scale[r]));
    }
}

/* Rows from `first` on, and columns from `column` on. */
INLINE TARGET void CODES(part)(int bits, int rows, int lane, int column, const struct codes *w, int64_t tile, const struct codes_rows *a,
                               int64_t group, int first, float *sums, int64_t apart)
{
    const int regs = REGISTERS(rows);
    float32x4_t total[MOST_ROWS][EIGHT];
    int64_t each = w->block / w->step, at = group * a->steps * CODES_ROWS + first, units = w->step / UNIT;
    const char *block = w->weight + (size_t)(tile * w->blocks) * w->block_bytes + column * WORD;
    const uint8_t *zeros = w->zeros ? w->zeros + tile * w->blocks * CODES_WIDTH + column : NULL;
    const int8_t *digit = a->digit + group * a->padded * CODES_ROWS + first * WORD;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++) total[r][h] = vdupq_n_f32(0);
    for (int64_t b = 0; b < w->blocks; b++, block += w->block_bytes) {
        const char *codes = block + SCALES;
        for (int64_t p = 0; p < each; p++, at += CODES_ROWS, codes += w->step * bits / 8 * CODES_WIDTH, digit += w->step * CODES_ROWS) {
            int32x4_t sum[MOST_ROWS][EIGHT];
            int32_t more[MOST_ROWS] = {0};
            if (FLIPS && bits == 8)
                CODES(flipped)(rows, units, digit, GROUP_WORD, WORD, more);
            CODES(start)(rows, regs, zeros, a->start + at, more, sum);
            CODES(units)(bits, rows, regs, lane, true, units, codes, digit, GROUP_WORD, WORD, sum);
            CODES(scale)(rows, regs, (const float *)(const void *)block, a->scale + at, sum, total);
        }
        zeros = zeros ? zeros + CODES_WIDTH : NULL;
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++)
        vst1q_f32(sums + r * apart + column + h * FOUR, total[r][h]);
}

INLINE TARGET void CODES(rows)(int bits, int rows, int lane, const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group,
                               int first, float *sums, int64_t apart)
{
    for (int column = 0; column < CODES_WIDTH; column += REGISTERS(rows) * FOUR)
        CODES(part)(bits, rows, lane, column, w, tile, a, group, first, sums, apart);
}

INLINE TARGET void CODES(integers)(int bits, int rows, const struct codes *w, int64_t tile, const int8_t *digit, int32_t *sums,
                                   int64_t apart)
{
    const int regs = REGISTERS(rows);
    const int32_t none[MOST_ROWS] = {0};
    int32_t more[MOST_ROWS] = {0};
    if (FLIPS && bits == 8)
        CODES(flipped)(rows, w->block / UNIT, digit, WORD, w->block, more);
    for (int column = 0; column < CODES_WIDTH; column += regs * FOUR) {
        int32x4_t sum[MOST_ROWS][EIGHT];
        const char *codes = w->weight + (size_t)tile * w->block_bytes + SCALES + column * WORD;
        CODES(start)(rows, regs, NULL, none, more, sum);
        for (int64_t k = 0; k < w->block; k += 2 * UNIT)
            CODES(units)(bits, rows, regs, 0, false, 2, codes + k * bits / 8 * CODES_WIDTH, digit + k, WORD, w->block, sum);
        UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < regs; h++)
            vst1q_s32(sums + r * apart + column + h * FOUR, sum[r][h]);
    }
}

static TARGET void CODES(whole)(const struct codes *w, int64_t tile, const int8_t *digit, int rows, int32_t *sums, int64_t apart)
{
    for (int r = 0; r < rows; r += MOST_ROWS)
        FEW_CASES(CODES(integers), rows - r, w, tile, digit + r * w->block, sums + r * apart, apart)
}

static TARGET void CODES(dot)(const struct codes *w, int64_t tile, const struct codes_rows *a, int64_t group, int rows, float *sums,
                              int64_t apart)
{
    FEW_CASES(CODES(rows), rows, 0, w, tile, a, group, 0, sums, apart)
    if (rows > MOST_ROWS)
        FEW_CASES(CODES(rows), rows - MOST_ROWS, 1, w, tile, a, group, MOST_ROWS, sums + MOST_ROWS * apart, apart)
}
#undef CODES
#undef TARGET
#undef FLIPS
