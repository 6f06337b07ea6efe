/* decode/embed: vectors of texts (embeddings): what a graph returns for each text, or for each of its tokens and then pooled; of length 1.
 */
#ifndef TPC_DECODE_EMBED_H
#define TPC_DECODE_EMBED_H

#include "decode/stage/stage.h"

/* How the vectors of a text's tokens become one. */
enum embed_pooling {
    EMBED_UNKNOWN,
    EMBED_WHOLE, /* the graph returns one */
    EMBED_MEAN,
    EMBED_LAST, /* that of the last token */
    EMBED_FIRST /* that of the first one, as [CLS] */
};

/* pooling.c: as --pooling says, else as sentence-transformers' file beside the model does; EMBED_UNKNOWN: neither. *says: which of them,
 * in the arena. A file that asks for another pooling: *why says so. Rank 0 calls it. */
enum embed_pooling embed_pooling_asked(struct arena *, const struct job_options *, const char **says, const char **why);
/* The value of the option. Another one: wrong usage. */
enum embed_pooling embed_pooling_named(const char *);

/* embed.c: every rank calls all of these alike. */
struct embedder;
/* Tries made-up texts, alone and together, so texts that the graph can't pad run one at a time. The order of precedence of poolings: what
 * is asked for; the last token of graphs whose tokens see none behind them; the mean. NULL, and *why on rank 0: there are no vectors. */
struct embedder *embed_new(struct arena *, struct comm *, struct stage *, const struct job_options *, int64_t vocabulary, int64_t context,
                           const char **why);
int64_t embed_width(const struct embedder *);
/* What its vectors are, for people. Rank 0. */
const char *embed_what(const struct embedder *);
/* How many texts, the longest of so many tokens, may run together: EMBED_BATCH at most. */
enum { EMBED_BATCH = 64 };
int64_t embed_together(const struct embedder *, int64_t longest);
/* The vectors of n texts of `length` tokens, which lie one behind another, to [n, width] on rank 0. Where one is not finite or has no
 * direction, its first element is NaN. Between runs of rows of the same stage, whose states it leaves as they are. */
void embed_run(struct embedder *, int64_t n, const int64_t *length, const int64_t *token, float *to);

#endif
