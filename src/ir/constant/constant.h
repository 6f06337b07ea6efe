/* ir/constant: the bytes of constants (initializers and Constant nodes), inline or in external files. */
#ifndef TPC_IR_CONSTANT_H
#define TPC_IR_CONSTANT_H

#include "algebra/algebra.h"

/* ---- source.c: files of constants; each is mapped once, at first use, until the process ends ------------------------ */
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
 * which are in one file: (hi - lo) * row bytes at offset, and at a distance of stride for each further outer index. Strips are sorted and
 * cover 0 to size. */
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
    struct arena *whole; /* of the data that constant_data assembled */
};
/* A reference of a model's tensor. file: its location; "": the model file itself. */
struct span {
    const char *file;
    struct source source;
};
struct spans {
    struct span *at;
    int n, cap;
};
/* Takes bytes, a piece at a time. */
typedef void byte_taker(void *, const void *from, size_t bytes);
/* The bytes in one piece; not for scattered ones. Fails, with file and tensor, if the file is missing or too short. */
const void *source_data(const struct source *, const char *name);
void source_stream(const struct source *, const char *name, int n, const struct byte_range *, byte_taker *, void *);
void source_open(const struct source *); /* before several threads read it */
void source_release(const struct source *);
bool source_present(const struct source *);

/* ---- constant.c ----------------------------------------------------------------------------------------------------------------- */
struct constant_digest {
    uint64_t whole, sample; /* XXH3 of all bytes; of 16 pages of them */
};
/* Bytes computed from other constants on demand, and kept until the constant is released. */
struct made {
    struct constant *from; /* released as soon as it was read; NULL: it is computed from operands */
    const char *name;      /* of from */
    int noperands;
    struct constant **operand; /* constant_release_operands releases them */
    void (*make)(const struct made *, const void *from, void *to);
    const void *how;
    struct arena *arena; /* of the constant */
    struct arena *whole; /* of the bytes */
};
struct constant {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK];
    int64_t bytes;
    const void *data; /* inline, or mapped on demand by constant_data; maybe unaligned */
    struct source source;
    struct made *made;                    /* NULL: they are in data or in source */
    const char *origin;                   /* name of the initializer in the source model whose bytes these are; NULL: computed by us */
    const struct constant_digest *digest; /* the expected digest of its bytes; NULL: unknown */
    bool checked;                         /* all bytes were checked */
    int opened;                           /* number of readers that stream it; it is released only at 0 */
    int held;                             /* number of operands of sessions that read it: computed bytes are kept */
    bool trained;                         /* a trained weight of any size */
};
/* The bytes. Maps an external file at first use. */
const void *constant_data(struct constant *, const char *name);
/* Whether type, sizes and bytes are equal. Releases what it mapped for that. */
bool constant_equal(struct constant *, const char *name, struct constant *, const char *other_name);
/* Element i of an integer or boolean constant, or the number of a string. */
int64_t constant_int(struct constant *, const char *name, int64_t i);
/* For strings: NaN. */
double constant_float(struct constant *, const char *name, int64_t i);
/* Before several threads stream it, and after. Not two of these, or of constant_release, at a time. */
void constant_open(struct constant *, const char *name);
void constant_close(struct constant *);
/* Releases memory whose bytes will hardly be read again. Invalidates the result of constant_data, which may be called again. */
void constant_release(struct constant *);
/* For a computed constant: releases its sources, except held ones. */
void constant_release_operands(struct constant *);
/* Whether its bytes can be read: in a dry run the files may be missing. */
bool constant_present(const struct constant *);
int64_t constant_elements(const struct constant *);
/* Constants of at least this many bytes count as weights: a rank's parts are ranges of the model's bytes, never copies. */
enum { WEIGHT_BYTES = 1024 };
/* Whether it is large or trained, and a tensor of the model, so that it is not folded. */
bool constant_is_weight(const struct constant *);
/* Whether its bytes are a hole in the file: zeros. False for small ones, which are not checked. */
bool constant_is_hole(const struct constant *);
/* Streams n ranges of the bytes in order, in pieces; no tensor is held in memory, wherever its bytes are. */
void constant_stream(struct constant *, const char *name, int n, const struct byte_range *, byte_taker *, void *);

/* ---- copy_kind.c: whether matrix b, with elements of size bytes, is a copy of matrix a. Never if all numbers are equal ------------- */
enum constant_copy { CONSTANT_OTHER, CONSTANT_SAME, CONSTANT_TRANSPOSED };
enum constant_copy constant_copy_kind(const void *a, const int64_t *a_dim, const void *b, const int64_t *b_dim, size_t size);
/* Whether all elements are equal, also of a matrix: many weights start as zeros or ones. */
bool constant_is_uniform(const void *, const int64_t *dim, size_t size);

/* equal_weights.c: weights that equal those of n earlier graphs share them: they are mapped, and packed, once. Returns their number. */
struct graph;
int constant_share_weights(struct graph *, int n, struct graph *const *earlier);

/* ---- digest.c: digests of written constants, and their check on reading ------------------------------------------- */
struct digester;
struct digester *digest_new(struct arena *, int64_t bytes);
void digest_take(void *digester, const void *from, size_t bytes); /* a byte_taker; all bytes, in order */
struct constant_digest digest_end(const struct digester *);
struct constant_digest digest_of_zeros(struct arena *, int64_t bytes);
const char *digest_text(struct arena *, struct constant_digest);
bool digest_parse(const char *text, struct constant_digest *);
/* Digest of a sample of the bytes. */
uint64_t digest_sample(struct constant *, const char *name);
/* Fails if a digest differs from the file's. what: "initializer 'w'". */
void digest_compare(const char *path, const char *what, uint64_t expected, uint64_t found);
/* Fails if the bytes differ from the digest; names file and tensor. whole: all of them, not a sample. */
void digest_check(struct constant *, const char *name, bool whole);

#endif
