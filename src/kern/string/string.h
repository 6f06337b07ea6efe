/* kern/string: strings made, taken apart and looked up. An element is the number of a text (base/text/string.c). */
#ifndef TPC_KERN_STRING_H
#define TPC_KERN_STRING_H

#include "kern/core/core.h"

/* ---- string_cast.c: numbers as texts, and texts as numbers; a text that is no number of the type is a failure --------------------- */
void string_from_numbers(const struct tensor *x, struct tensor *y);
void string_to_numbers(const struct kcall *, const struct tensor *x, struct tensor *y);

/* ---- sizes that data tell, as inference asks for them: results are absent ------------------------------------------------------------ */
int64_t string_most_parts(struct kcall *); /* StringSplit: of one string */
int64_t string_kept(struct kcall *);       /* StringNormalizer: strings that are no stop words; 1 where none is */

/* ---- string_case.c: letters as utf8proc has them; without it, those of ASCII, and others are a failure ------------------------------- */
enum string_case { STRING_AS_IS, STRING_LOWER, STRING_UPPER };
/* The number of the text with its letters so. */
int64_t string_in_case(const struct kcall *, int64_t number, enum string_case);

/* Numbers of a list of texts of an attribute, in room; *n of them. */
const int64_t *string_numbers(const struct kcall *, const char *attr, enum room, int *n);

/* keys.c: a list of keys, sorted to be looked up. A key is 8 bytes: an integer, the number of a string, or a float as float64, of which
 * all NaNs are one and both zeros are one. */
struct string_key {
    int64_t bits, at; /* at: its place in the list */
};
int64_t string_key_bits(enum dtype, const void *element);
/* Of n elements; NULL: the numbers from 0. In ROOM_KERNEL. */
const struct string_key *string_sorted_keys(const struct kcall *, enum dtype, const void *keys, int64_t n);
int64_t string_key_place(const struct string_key *, int64_t n, int64_t bits); /* of equal keys the first; -1: none */

#endif
