/* ir/constant: the bytes of constants (initializers and Constant nodes), inline or in external files. */
#ifndef TPC_IR_CONSTANT_H
#define TPC_IR_CONSTANT_H

#include "algebra/algebra.h"

/* ---- source.c: files that hold constants; each is mapped once, at first use, for the life of the process ------------------------ */
/* A byte range of an external file; path NULL: inline. scatter: the bytes are in several files, and path is only for messages. */
struct source {
    const char *path;
    int64_t offset, length;
    struct scatter *scatter;
};
struct byte_range {
    int64_t offset, bytes;
}; /* of a constant's bytes */
struct source_files {
    int n;
    const char *const *path;
    struct map *map; /* n of them, filled at first use */
};
/* A tensor sharded along one dimension: outer times size times row bytes, row-major. A strip is the indices lo to hi of the dimension,
 * which one file holds: (hi - lo) * row bytes at offset, the next outer ones at a distance of stride. Strips are sorted and cover 0 to
 * size. */
struct strip {
    int64_t lo, hi;
    int file;
    int64_t offset, stride;
};
struct scatter {
    int64_t outer, size, row;
    const struct source_files *files;
    int n;
    const struct strip *at;
    struct arena *arena; /* of the constant */
    struct arena *whole; /* holds what constant_data put together */
};
/* What a tensor of a model refers to. file: its location; "": the model file itself. */
struct span {
    const char *file;
    struct source source;
};
struct spans {
    struct span *at;
    int n, cap;
};
/* Receives bytes, a piece at a time. */
typedef void byte_taker(void *, const void *from, size_t bytes);
/* The bytes in one piece; not for scattered ones. A missing or short file is a failure that names file and tensor. */
const void *source_data(const struct source *, const char *name);
void source_stream(const struct source *, const char *name, int n, const struct byte_range *, byte_taker *, void *);
void source_open(const struct source *); /* before several threads read it */
void source_release(const struct source *);
bool source_present(const struct source *);

/* ---- constant.c ----------------------------------------------------------------------------------------------------------------- */
struct constant_digest {
    uint64_t whole, sample; /* XXH3 of all bytes; of 16 pages of them */
};
/* Bytes that are computed from other constants' when they are asked for, and kept until the constant is released. */
struct made {
    struct constant *from; /* given back as soon as it is read; NULL: it is made of operands */
    const char *name;      /* of from */
    int noperands;
    struct constant **operand; /* constant_release_operands gives them back */
    void (*make)(const struct made *, const void *from, void *to);
    const void *how;
    struct arena *arena; /* of the constant */
    struct arena *whole; /* holds them */
};
struct constant {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    int64_t bytes;
    const void *data; /* inline, or mapped on demand by constant_data; any alignment */
    struct source source;
    struct made *made;                    /* NULL: they are in data or in source */
    const char *origin;                   /* name of the initializer in the source model whose bytes these are; NULL: computed by us */
    const struct constant_digest *digest; /* what its bytes must have; NULL: not known */
    bool checked;                         /* all of them have */
    int opened;                           /* number of readers that stream it; it is released only at 0 */
    int held;                             /* number of operands of sessions that read it: bytes that were made stay */
    bool trained;                         /* a weight, however small: its gradient is wanted */
};
/* The bytes. Maps an external file at first use. */
const void *constant_data(struct constant *, const char *name);
/* The same type, sizes and bytes. What was mapped to compare them is given back. */
bool constant_equal(struct constant *, const char *name, struct constant *, const char *other_name);
/* Element i of an integer or boolean constant, or the number of a string. */
int64_t constant_int(struct constant *, const char *name, int64_t i);
/* Of strings: NaN. */
double constant_float(struct constant *, const char *name, int64_t i);
/* Before several threads stream it, and after. No two of these, nor of constant_release, at a time. */
void constant_open(struct constant *, const char *name);
void constant_close(struct constant *);
/* Gives memory back to the system when the bytes will hardly be read again. Invalidates what constant_data returned; it may be called
 * again. */
void constant_release(struct constant *);
/* Of a constant that was made: gives back what it was made of, but what is held. */
void constant_release_operands(struct constant *);
/* Whether its bytes can be read: in a dry run the files may be missing. */
bool constant_present(const struct constant *);
int64_t constant_elements(const struct constant *);
/* Constants of this many bytes or more count as weights: what a rank holds of them are ranges of the model's own bytes, never copies. */
enum { WEIGHT_BYTES = 1024 };
/* Is it so large or trained, and a tensor of the model? Then it is not folded away. */
bool constant_is_weight(const struct constant *);
/* Its bytes are a hole of the file that has them: zeros. False of small ones, which are not worth a look. */
bool constant_is_hole(const struct constant *);
/* Passes n ranges of the bytes on in order, a piece at a time; no tensor is held in memory, wherever its bytes are. */
void constant_stream(struct constant *, const char *name, int n, const struct byte_range *, byte_taker *, void *);

/* ---- copy_kind.c: is matrix b, of elements of size bytes, a copy of matrix a? Never if all its numbers are equal ------------- */
enum constant_copy { CONSTANT_OTHER, CONSTANT_SAME, CONSTANT_TRANSPOSED };
enum constant_copy constant_copy_kind(const void *a, const int64_t *a_dim, const void *b, const int64_t *b_dim, size_t size);
/* Zeros and ones say nothing: many weights begin so. Of a matrix, too. */
bool constant_is_uniform(const void *, const int64_t *dim, size_t size);

/* equal_weights.c: weights that n earlier graphs have, too, become theirs: they are mapped, and packed, once. Returns how many did. */
struct graph;
int constant_share_weights(struct graph *, int n, struct graph *const *earlier);

/* ---- digest.c: the digests of constants as they are written, and the check of what is read ------------------------------------------- */
struct digester;
struct digester *digest_new(struct arena *, int64_t bytes);
void digest_take(void *digester, const void *from, size_t bytes); /* a byte_taker; all bytes, in order */
struct constant_digest digest_end(const struct digester *);
struct constant_digest digest_of_zeros(struct arena *, int64_t bytes);
const char *digest_text(struct arena *, struct constant_digest);
bool digest_parse(const char *text, struct constant_digest *);
/* Of a sample of the bytes: equal ones have the same. */
uint64_t digest_sample(struct constant *, const char *name);
/* Another digest than that which a file states is a failure. what: "initializer 'w'". */
void digest_compare(const char *path, const char *what, uint64_t expected, uint64_t found);
/* Fails if the bytes differ from the digest; names file and tensor. whole: all of them, not a sample. */
void digest_check(struct constant *, const char *name, bool whole);

#endif
