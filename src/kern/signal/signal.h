/* kern/signal: Fourier transforms and mel weights. */
#ifndef TPC_KERN_SIGNAL_H
#define TPC_KERN_SIGNAL_H

#include "kern/core/core.h"

/* ---- fourier.c: y[k] = sum of x[j] exp(-2 pi i j k / n), in float64 for any n; inverse: conjugate, divided by n -------------- */
struct fourier {
    int64_t n, padded;                 /* padded: the power of two that is transformed; 0: summed directly */
    const double *turn_re, *turn_im;   /* roots of unity of the transform */
    const double *chirp_re, *chirp_im; /* if n is no power of two */
    const double *other_re, *other_im; /* the transform of the chirp */
};
/* Doubles in the tables of n; doubles of scratch per thread. */
int64_t fourier_table(int64_t n);
int64_t fourier_scratch(int64_t n);
struct fourier fourier_prepare(int64_t n, double *table);
/* re, im: n numbers, replaced. */
void fourier_transform(const struct fourier *, bool inverse, double *re, double *im, double *scratch);

#endif
