/* recurrent: RNN, GRU, LSTM and its quantised form: operands and sizes. */
#ifndef TPC_OP_RECURRENT_H
#define TPC_OP_RECURRENT_H

#include "ir/ir.h"

enum recurrent_operand { RECUR_X, RECUR_W, RECUR_R, RECUR_B, RECUR_LENS, RECUR_H, RECUR_C, RECUR_P, RECUR_SCALES };
struct recurrent_form {
    int gates;       /* 1, 3 or 4 */
    bool quantized;  /* weights are integers [directions, columns, gates of hidden units]; else [directions, gates of hidden units, columns]
                      */
    bool lstm;       /* has operands RECUR_C and RECUR_P */
    int batch_first; /* 1: layout 1 */
    int backwards;   /* the operand that tells of each direction whether it is the reverse one; -1: the attribute does */
};
struct recurrent_form recurrent_form(const struct node *);
bool recurrent_has(const struct node *, int operand);
/* The directions that the attribute names: 1 or 2; another word is a failure. */
int recurrent_directions(const struct graph *, const struct node *);

#endif
