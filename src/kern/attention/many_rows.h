/* many_rows: data of attention of prompts, for many_rows.c and many_narrow.c. */
#ifndef TPC_KERN_ATTENTION_MANY_ROWS_H
#define TPC_KERN_ATTENTION_MANY_ROWS_H

#include "kern/attention/attention.h"
#include "kern/core/core.h"

enum { KEYS = 256, MOST_STRIPE = 32 };
struct stripe {
    int64_t h, first, lo, hi; /* it sees keys [lo, hi) */
    int rows;
    bool any[MOST_STRIPE];
    float max[MOST_STRIPE];
    uint16_t *query; /* bf16: [rows, pairs, 2], or tile by tile */
    float *out;      /* [rows, width]: sums of values, then sums of exponentials by position in a tile */
};
struct unit {
    const struct attention_core *a;
    int64_t b, kv, wide, width, pairs, count, lo, hi; /* wide: value_size in whole tiles; pairs: of elements of a key */
    bool tiles;                                       /* bf16 products use tile registers */
    struct stripe *stripe;
    float *keys, *values, *scores, *room, *out; /* keys: [KEYS / TILE][size][TILE]; values: [wide / TILE][KEYS][TILE] */
    /* bf16: [KEYS / PANEL_COLUMNS][pairs][PANEL_COLUMNS][2], [wide / PANEL_COLUMNS][KEYS / 2][PANEL_COLUMNS][2], [rows of a stripe][KEYS],
     * or tile by tile */
    uint16_t *narrow_keys, *narrow_values, *shares, *rounded, *queries; /* shares: probabilities; queries: of all stripes */
};

/* ---- many_narrow.c: bf16 products with float32 sums ----------------------------------------------------------------------- */
void many_narrow_keys(const struct unit *, int64_t from, int64_t n);
void many_narrow_values(const struct unit *, int64_t from, int64_t n);
void many_narrow_queries(const struct unit *, const struct stripe *);
/* Scores of a stripe with keys [from, to) of the block, to scores[rows][KEYS]; adds the values, weighted by probabilities, to its sums. */
void many_narrow_scores(const struct unit *, const struct stripe *, int64_t from, int64_t to);
void many_narrow_add(const struct unit *, const struct stripe *, int64_t from, int64_t to);

#endif
