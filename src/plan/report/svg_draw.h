/* svg_draw: the pieces that pictures are made of: text, rectangles, one style sheet for light and dark. */
#ifndef TPC_SVG_DRAW_H
#define TPC_SVG_DRAW_H

#include "base/base.h"

#include <stdio.h>

/* The begin of a picture of so many pixels, with its style and its ground; "</svg>" ends it. */
void svg_begin(FILE *, int wide, double high);
/* The first characters that fit into this many pixels at this size of type, by a wide estimate. */
const char *svg_fitting(struct arena *, const char *text, double wide, int size);
void svg_text(FILE *, double x, double y, const char *class, const char *text);
void svg_rect(FILE *, const char *class, double x, double y, double wide, double high);

#endif
