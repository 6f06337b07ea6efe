/* chart: panels of curves over a shared axis, in SVG. */
#ifndef TPC_TRAIN_PLOT_CHART_H
#define TPC_TRAIN_PLOT_CHART_H

#include "base/base.h"

#include <stdio.h>

/* ---- axis.c: numbers along a line ---- */
enum { AXIS_TICKS = 24 };
struct axis {
    double from, to; /* from < to */
    bool logarithmic;
    int ticks;
    double tick[AXIS_TICKS]; /* ascending */
};
/* Over finite numbers, between round numbers, with about this many ticks. */
struct axis axis_linear(double least, double most, int ticks);
/* From the first to the last of several integers. */
struct axis axis_of_steps(double first, double last, int ticks);
/* Over positive numbers: ends and ticks are 1, 2 or 5 times a power of ten, or powers only if there are many. */
struct axis axis_logarithmic(double least, double most);
double axis_place(const struct axis *, double x); /* 0 to 1 for numbers on it */

/* ---- chart.c ---- */
struct series {
    int n;
    const double *x, *y; /* y: if it is not finite, the curve has a gap */
};
struct panel {
    FILE *f;
    double left, top, wide, high; /* pixels */
    struct axis x, y;
};
void plot_panel(const struct panel *, const char *label);       /* the frame, the grid and the labels at its left */
void plot_panel_below(const struct panel *, const char *label); /* the labels below it */
/* class: of the style. dots: at each point. */
void plot_curve(const struct panel *, const struct series *, const char *class, bool dots);
/* To the right of x: a sample of a curve and its name. Returns its width. */
double plot_key(FILE *, double x, double y, const char *class, const char *name);

#endif
