/* lower/predicates: the conditions of a row of patterns.def, beyond its graph. */
#ifndef TPC_LOWER_PREDICATES_H
#define TPC_LOWER_PREDICATES_H

#include "lower/pattern.h"

bool lower_same_type(struct match *);     /* x and the result */
bool lower_scales_rows(struct match *);   /* scale: a factor for each element of x's last dimension; eps: a number */
bool lower_scales_casts(struct match *);  /* the same, of half-precision x, whose norm is in f32 */
bool lower_biases_rows(struct match *);   /* bias: an addend for each element of x's last dimension */
bool lower_scales_groups(struct match *); /* scale and bias of groups, which it converts to scale and bias of channels */

/* weights: one for each row of x and each expert; binds `of`, x with the dimensions of the result, and the number of `experts` */
bool lower_weights_experts(struct match *);

bool lower_decodes_matrix(struct match *); /* d: a matrix with the type of its scales, multiplied from the right */
bool lower_decodes_table(struct match *);  /* the same, for lookups of rows; binds `lookup` */
bool lower_scales_columns(struct match *); /* scale: one number, or one for each column of the product p */
/* a: bytes with one scale; b: integers of at most 8 bits with one, or one for each column */
bool lower_scales_rows_and_columns(struct match *);

#endif
