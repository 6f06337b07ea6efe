/* decode/prefix: stores computed prefixes of texts, for texts that start alike. */
#ifndef TPC_DECODE_PREFIX_H
#define TPC_DECODE_PREFIX_H

#include "run/run.h"

/* pool.c: blocks of tokens, found by all tokens up to their end. tokens: per block; bytes: per block for the caller; most: number of
 * blocks. */
struct prefix_pool;
struct prefix_pool *prefix_pool_new(int64_t tokens, int64_t bytes, int64_t most);
/* Total bytes per block. */
int64_t prefix_pool_block_bytes(int64_t tokens, int64_t bytes);
/* How many of these blocks of a text, from the first on, are stored. Marks them as used. of: what computed them, a number of at least 0;
 * blocks of one are not found for another. */
int64_t prefix_pool_find(struct prefix_pool *, int64_t of, const int64_t *token, int64_t blocks);
/* The memory of a block found by the last call. */
void *prefix_pool_at(const struct prefix_pool *, int64_t block);
/* Memory for the last of these blocks, which the caller fills. NULL: it is stored, an earlier one is not, or they fill the pool. */
void *prefix_pool_add(struct prefix_pool *, int64_t of, const int64_t *token, int64_t blocks);
/* Stored blocks, and dropped blocks. */
int64_t prefix_pool_count(const struct prefix_pool *);
int64_t prefix_pool_dropped(const struct prefix_pool *);
void prefix_pool_free(struct prefix_pool *);

/* prefix.c: the columns of rows in a pool. All ranks make the same calls, and each stores its shards. */
enum { PREFIX_BLOCK = 64 }; /* tokens */
struct prefix;
/* The blocks take at most this many bytes on this rank. NULL: not one fits on every rank. */
struct prefix *prefix_new(struct arena *, struct comm *, struct session *, const struct session_columns *, int64_t bytes);
/* How many of these tokens are stored, as computed with this adapter (row_sampling); never the last one, which must run. */
int64_t prefix_find(struct prefix *, int64_t adapter, const int64_t *token, int64_t n);
/* The current states become a row of the first n tokens, which are stored on rank 0. */
void prefix_take(struct prefix *, int64_t adapter, const int64_t *token, int64_t n);
/* Stores the block that ends with the last of these tokens, if one does. Its columns begin at `column` of a row of the current states. */
void prefix_keep(struct prefix *, int64_t adapter, const int64_t *token, int64_t n, int64_t row, int64_t column);
struct prefix_counts {
    int64_t hits, tokens;          /* texts that started with stored tokens; the number of those tokens */
    int64_t blocks, most, dropped; /* stored blocks; their limit; dropped blocks */
    int64_t bytes;                 /* of the stored blocks, on this rank */
};
struct prefix_counts prefix_counts(const struct prefix *);
void prefix_free(struct prefix *);

#endif
