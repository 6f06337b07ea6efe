/* kern/string: strings made, taken apart and looked up. An element is the number of a text (base/text/string.c). */
#ifndef TPC_KERN_STRING_H
#define TPC_KERN_STRING_H

#include "kern/core/core.h"

/* ---- string_cast.c: numbers to texts, and texts to numbers; fails on a text that is no number of the type --------------------- */
void string_from_numbers(const struct tensor *x, struct tensor *y);
void string_to_numbers(const struct kcall *, const struct tensor *x, struct tensor *y);

/* ---- data-dependent sizes, for inference: results are absent ------------------------------------------------------------ */
int64_t string_most_parts(struct kcall *); /* StringSplit: of one string */
int64_t string_kept(struct kcall *);       /* StringNormalizer: strings that are not stop words; 1 if none is left */

/* ---- string_case.c: letters by utf8proc; without it, ASCII only: fails on others ------------------------------- */
enum string_case { STRING_AS_IS, STRING_LOWER, STRING_UPPER };
/* The string number of the text in this case. */
int64_t string_in_case(const struct kcall *, int64_t number, enum string_case);

/* String numbers of an attribute's list, in scratch; *n of them. */
const int64_t *string_numbers(const struct kcall *, const char *attr, enum room, int *n);

/* keys.c: a list of keys, sorted for lookup. A key is 8 bytes: an integer, a string number, or a float as float64, with all NaNs equal and
 * both zeros equal. */
struct string_key {
    int64_t bits, at; /* at: its position in the list */
};
int64_t string_key_bits(enum dtype, const void *element);
/* Of n elements; NULL: the numbers from 0. In ROOM_KERNEL. */
const struct string_key *string_sorted_keys(const struct kcall *, enum dtype, const void *keys, int64_t n);
int64_t string_key_place(const struct string_key *, int64_t n, int64_t bits); /* the first of equal keys; -1: none */

#endif
