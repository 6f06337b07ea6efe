/* svg_draw: the elements of pictures: text, rectangles, one style sheet for light and dark. */
#ifndef TPC_SVG_DRAW_H
#define TPC_SVG_DRAW_H

#include "base/base.h"

#include <stdio.h>

/* Begins a picture of this size in pixels, with its style and background; "</svg>" ends it. */
void svg_begin(FILE *, int wide, double high);
/* The longest prefix that fits into this many pixels at this type size, by a wide estimate. */
const char *svg_fitting(struct arena *, const char *text, double wide, int size);
void svg_text(FILE *, double x, double y, const char *class, const char *text);
void svg_rect(FILE *, const char *class, double x, double y, double wide, double high);

#endif
