/* recurrent: RNN, GRU, LSTM and its quantised form: operands and sizes. */
#ifndef TPC_OP_RECURRENT_H
#define TPC_OP_RECURRENT_H

#include "ir/ir.h"

enum recurrent_operand { RECUR_X, RECUR_W, RECUR_R, RECUR_B, RECUR_LENS, RECUR_H, RECUR_C, RECUR_P, RECUR_SCALES };
struct recurrent_form {
    const char *units; /* how ranks split the hidden units, which they exchange in every step; NULL: not split */
    int gates;         /* 1, 3 or 4 */
    bool quantized;  /* weights are integers [directions, columns, gates of hidden units]; else [directions, gates of hidden units, columns]
                      */
    bool lstm;       /* has operands RECUR_C and RECUR_P */
    int batch_first; /* 1: layout 1 */
    int backwards;   /* the operand that says whether each direction is the reverse one; -1: the attribute does */
    int exchanges;   /* exchanges of hidden units, per step of a direction, if they are split */
};
struct recurrent_form recurrent_form(const struct node *);
/* The data that ranks exchange if hidden units are split: every rank's own units, so that each rank gets all. */
struct recurrent_exchange {
    const struct split *units;
    const struct dim *times, *rows; /* how often; the most rows of hidden units */
};
/* False: the node exchanges nothing. */
bool recurrent_exchanges(const struct graph *, const struct node *, struct recurrent_exchange *);
/* The number of directions in the attribute, 1 or 2; fails on another word. */
int recurrent_directions(const struct graph *, const struct node *);

#endif
