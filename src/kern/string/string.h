/* kern/string: strings made, taken apart and looked up. An element is the number of a text (base/string.c). */
#ifndef TPC_KERN_STRING_H
#define TPC_KERN_STRING_H

#include "kern/core/core.h"

/* ---- string_cast.c: numbers as texts, and texts as numbers; a text that is no number of the type is a failure --------------------- */
void string_from_numbers(const struct tensor *x, struct tensor *y);
void string_to_numbers(const struct kcall *, const struct tensor *x, struct tensor *y);

#endif
