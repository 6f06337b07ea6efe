/* recurrent: RNN, GRU, LSTM and its quantised form: operands and sizes. */
#ifndef TPC_OP_RECURRENT_H
#define TPC_OP_RECURRENT_H

#include "ir/ir.h"

enum recurrent_operand { RECUR_X, RECUR_W, RECUR_R, RECUR_B, RECUR_LENS, RECUR_H, RECUR_C, RECUR_P, RECUR_SCALES };
struct recurrent_form {
    const char *units; /* how ranks split the hidden units, which they exchange at every step; NULL: they don't */
    int gates;         /* 1, 3 or 4 */
    bool quantized;  /* weights are integers [directions, columns, gates of hidden units]; else [directions, gates of hidden units, columns]
                      */
    bool lstm;       /* has operands RECUR_C and RECUR_P */
    int batch_first; /* 1: layout 1 */
    int backwards;   /* the operand that tells of each direction whether it is the reverse one; -1: the attribute does */
    int exchanges;   /* of hidden units, at each step of a direction, where they are split */
};
struct recurrent_form recurrent_form(const struct node *);
/* What ranks exchange that split the hidden units: every rank's own ones, so that all have all of them. */
struct recurrent_exchange {
    const struct split *units;
    const struct dim *times, *rows; /* how often; of how many rows of hidden units at most */
};
/* False: the node exchanges nothing. */
bool recurrent_exchanges(const struct graph *, const struct node *, struct recurrent_exchange *);
/* The directions that the attribute names: 1 or 2; another word is a failure. */
int recurrent_directions(const struct graph *, const struct node *);

#endif
