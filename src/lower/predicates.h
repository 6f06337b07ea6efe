/* lower/predicates: what a row of patterns.def asks of the values found, besides its graph. */
#ifndef TPC_LOWER_PREDICATES_H
#define TPC_LOWER_PREDICATES_H

#include "lower/pattern.h"

bool lower_same_type(struct match *);     /* x and the result */
bool lower_scales_rows(struct match *);   /* scale: a factor for each element of x's last dimension; eps: a number */
bool lower_scales_casts(struct match *);  /* the same, of half-precision x, whose norm is in f32 */
bool lower_biases_rows(struct match *);   /* bias: an addend for each element of x's last dimension */
bool lower_scales_groups(struct match *); /* scale and bias of groups, which it makes those of channels */

#endif
