/* decode/prefix: what texts have computed, kept for texts that begin alike. */
#ifndef TPC_DECODE_PREFIX_H
#define TPC_DECODE_PREFIX_H

#include "run/run.h"

/* pool.c: memory of blocks of tokens, found by all tokens up to their end. tokens: of a block; bytes: that it holds for the caller; most:
 * blocks there may be. */
struct prefix_pool;
struct prefix_pool *prefix_pool_new(int64_t tokens, int64_t bytes, int64_t most);
/* Bytes that a block takes in all. */
int64_t prefix_pool_block_bytes(int64_t tokens, int64_t bytes);
/* How many of these blocks of a text, from the first one on, are stored. They count as used. of: what computed them, a number of 0 or more;
 * nothing of one is found for another. */
int64_t prefix_pool_find(struct prefix_pool *, int64_t of, const int64_t *token, int64_t blocks);
/* The memory of one of those that were found last. */
void *prefix_pool_at(const struct prefix_pool *, int64_t block);
/* Memory for the last of these blocks, which the caller fills. NULL: it is stored, one before it is not, or they take up all blocks. */
void *prefix_pool_add(struct prefix_pool *, int64_t of, const int64_t *token, int64_t blocks);
/* Blocks that are stored, and those that gave way to others. */
int64_t prefix_pool_count(const struct prefix_pool *);
int64_t prefix_pool_dropped(const struct prefix_pool *);
void prefix_pool_free(struct prefix_pool *);

/* prefix.c: the columns of rows in a pool. All ranks call it alike, and each stores its shards. */
enum { PREFIX_BLOCK = 64 }; /* tokens */
struct prefix;
/* The blocks take at most so many bytes on this rank. NULL: not one fits on every rank. */
struct prefix *prefix_new(struct arena *, struct comm *, struct session *, const struct session_columns *, int64_t bytes);
/* How many of these tokens are stored, as the model with this adapter (row_sampling) computes them; the last one never counts, for it must
 * run. */
int64_t prefix_find(struct prefix *, int64_t adapter, const int64_t *token, int64_t n);
/* The states in use become a row of the first n tokens, which are stored on rank 0. */
void prefix_take(struct prefix *, int64_t adapter, const int64_t *token, int64_t n);
/* Stores the block of these tokens that ends with the last one, if one does. Their columns begin at `column` of a row of the states in
 * use. */
void prefix_keep(struct prefix *, int64_t adapter, const int64_t *token, int64_t n, int64_t row, int64_t column);
struct prefix_counts {
    int64_t hits, tokens;          /* texts that began behind stored tokens; those */
    int64_t blocks, most, dropped; /* blocks that are stored, that may be, and that gave way to others */
    int64_t bytes;                 /* of the blocks that are stored, on this rank */
};
struct prefix_counts prefix_counts(const struct prefix *);
void prefix_free(struct prefix *);

#endif
