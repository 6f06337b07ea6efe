/* decode/embed: vectors of texts (embeddings): the graph's result for each text, or for each of its tokens and then pooled; of length 1. */
#ifndef TPC_DECODE_EMBED_H
#define TPC_DECODE_EMBED_H

#include "decode/stage/stage.h"

/* How the vectors of a text's tokens are combined. */
enum embed_pooling {
    EMBED_UNKNOWN,
    EMBED_WHOLE, /* the graph returns one vector */
    EMBED_MEAN,
    EMBED_LAST, /* of the last token */
    EMBED_FIRST /* of the first token, such as [CLS] */
};

/* pooling.c: as --pooling says, else by the sentence-transformers file next to the model; EMBED_UNKNOWN: neither. *says: which of them, in
 * the arena. Another pooling in the file: *why. Rank 0 calls it. */
enum embed_pooling embed_pooling_asked(struct arena *, const struct job_options *, const char **says, const char **why);
/* The value of the option; fails with wrong usage on another one. */
enum embed_pooling embed_pooling_named(const char *);

/* embed.c: every rank makes the same calls. */
struct embedder;
/* Tests made-up texts, alone and together; texts that the graph cannot pad run one at a time. Pooling by precedence: the requested one; the
 * last token for graphs whose tokens see no later ones; the mean. NULL, and *why on rank 0: there are no vectors. */
struct embedder *embed_new(struct arena *, struct comm *, struct stage *, const struct job_options *, int64_t vocabulary, int64_t context,
                           const char **why);
int64_t embed_width(const struct embedder *);
/* Describes its vectors in words. On rank 0. */
const char *embed_what(const struct embedder *);
/* How many texts, the longest of this many tokens, may run together: at most EMBED_BATCH. */
enum { EMBED_BATCH = 64 };
int64_t embed_together(const struct embedder *, int64_t longest);
/* The vectors of n texts of `length` tokens, concatenated, to [n, width] on rank 0. If a vector is not finite or zero, its first element is
 * NaN. Runs between runs of rows of the same stage, whose states it preserves. */
void embed_run(struct embedder *, int64_t n, const int64_t *length, const int64_t *token, float *to);

#endif
