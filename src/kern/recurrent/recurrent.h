/* kern/recurrent: RNN, GRU, LSTM and LSTM with quantised weights. */
#ifndef TPC_KERN_RECURRENT_H
#define TPC_KERN_RECURRENT_H

#include "kern/core/core.h"

/* ---- tiles.c: products with a matrix that stays in the cache ----------------------------------------------------------------- */
/* w[k, n] as [n / TILE][k][TILE]; the last tile is padded with zeros. */
struct tiles {
    int64_t n, k;
    const float *at;
};
size_t tiles_bytes(const struct kcall *, int64_t n, int64_t k);
/* Packs w, with strides row and column, into room. */
struct tiles tiles_pack(float *room, int64_t n, int64_t k, const float *w, int64_t row, int64_t column);
/* c[i][n] += a[i][k] w for m rows. The bits of a row do not depend on the others. */
void tiles_product(const struct tiles *, int64_t m, const float *const *a, float *const *c);

/* ---- integers.c: exact products with a constant 8-bit weight ------------------------------------------------------------ */
struct codes;
enum { INTEGERS_MOST = 33025 }; /* products whose sum is below 2^31 */
/* The n columns of direction d of w[directions, k, n], kept. zero: one per direction, or per column of it. */
const struct codes *integers_pack(struct kcall *, const struct tensor *w, const struct tensor *zero, int64_t d, int64_t n, int64_t k);
/* Bytes of a row of digits. */
int64_t integers_row(const struct codes *);
/* c[i][n] += step scale[n] (digit[i] - zero) (w - its zero point) for m rows of digits. */
void integers_product(const struct codes *, int64_t m, const int8_t *digit, int zero, float step, const float *scale, float *const *c);

/* ---- gate.c: the functions of gates ---------------------------------------------------------------------------------------------- */
typedef void gate_fn(float *x, int64_t n, float alpha, float beta);
struct gate {
    gate_fn *apply;
    float alpha, beta;
};
/* Functions `from` to from + n - 1 of the node's list; without a list, Sigmoid and then Tanh, or Tanh alone. */
void gates_read(const struct kcall *, int from, int n, struct gate *);

/* ---- cell.c: one step of the cells --------------------------------------------------------------------------------------------------- */
struct recurrence;
/* Rows of the batch that run a step of one direction. z holds the products of the inputs, with their bias, and is overwritten. */
struct recurrent_rows {
    int64_t n;
    float *const *h;   /* all hidden units, from the previous step */
    float *const *own; /* this rank's, which the step writes; the same if not split */
    float *const *c, *const *z;
};
struct cell {
    const char *name;
    int gates, functions;
    int parts;      /* matrices by which hidden units are multiplied in turn: R for the gates before `split`, and after */
    int split;      /* gates of the first part */
    bool remembers; /* has a state c */
    void (*step)(const struct recurrence *, int d, const struct recurrent_rows *, float *room);
};
extern const struct cell cell_rnn, cell_gru, cell_lstm;

enum { MOST_DIRECTIONS = 2, MOST_PARTS = 2, MOST_FUNCTIONS = 3 };
struct recurrence {
    struct kcall *call;
    const struct cell *cell;
    bool batch_first, quantized;
    int64_t directions, steps, batch, inputs, hidden, own; /* own: number of this rank's hidden units */
    bool backwards[MOST_DIRECTIONS];
    struct gate gate[MOST_DIRECTIONS][MOST_FUNCTIONS];
    struct tiles r[MOST_DIRECTIONS][MOST_PARTS];
    const struct codes *codes[MOST_DIRECTIONS]; /* instead of r: constant 8-bit weights */
    float clip;                                 /* applied to arguments of functions; infinite: none */
    bool resets_last;                           /* GRU: linear_before_reset */
    bool forgets_input;                         /* LSTM: input_forget */
    const float *bias;                          /* [d, g own]: of the inputs, or the sum of both */
    const float *reset_bias;                    /* GRU that resets last: [d, own] */
    const float *peephole;                      /* [d, 3 own]; NULL: none */
    const float *r_scale;                       /* quantised: [d, g own] */
    const float *projected;                     /* [rows of X, d g own] */
};
/* ---- recurrence.c ---- */
/* Columns of the gates of this rank's hidden units, in one direction. */
int64_t recurrence_columns(const struct recurrence *);
/* to += h R for the columns of one part; quantised: with hidden units rounded to 8 bits over all rows. */
void recurrence_add(const struct recurrence *, int d, int part, int64_t rows, const float *const *h, float *const *to, float *room);
/* All units of the rows, gathered from all ranks. */
void recurrence_gather(const struct recurrence *, int64_t rows, const float *const *own, float *const *all);
enum { ROW_POINTER = 2 }; /* floats that a pointer takes */
/* recurrent.c: floats of scratch for this many rows. */
int64_t recurrence_room(const struct recurrence *, int64_t rows);

/* ---- rounding.c: numbers to 8 bits with one scale and zero point, as in DynamicQuantizeLinear -------------------------------------- */
struct rounding {
    float scale, zero;
};
/* Of all rows. */
struct rounding rounding_of(int64_t rows, int64_t n, const float *const *x);
/* The integers minus their zero point. */
void rounding_apply(struct rounding, int64_t n, const float *x, float *to);
/* The integers minus 128, in a row of `width` padded with 0. */
void rounding_digits(struct rounding, int64_t n, int64_t width, const float *x, int8_t *to);

#endif
