/* samples: a sample of text in each line of a file, and rows of them. */
#ifndef TPC_TRAIN_SAMPLES_H
#define TPC_TRAIN_SAMPLES_H

#include "tokenizer/tokenizer.h"
#include "train/train.h"

struct conversations;
struct samples {
    VEC(int64_t) token;
    VEC(bool) silent; /* by token: it is no label */
    VEC(int64_t) end; /* by sample: where it ends */
};
/* text.c: each is read once. That of --tokenizer, or the one in the folder. */
const struct tokenizer *text_tokenizer(struct texts *);
/* path: the first file that has messages. */
const struct conversations *text_conversations(struct texts *, const char *path);
const struct end_tokens *text_ends(struct texts *);
/* lines.c: a file of JSON lines. A bad line is a failure that names it. */
struct samples lines_read(struct arena *, const char *path, struct texts *);
/* pack.c: rows of sequence + 1 tokens, in the arena: a sample goes into one row with others if it fits, and a longer one into several.
 * What is left of a row is padding. */
struct token_file pack_samples(struct arena *, const char *path, const struct samples *, int64_t sequence);

/* ---- chats.c: the answers of a conversation are its labels ---- */
/* A model without a template that can be used is a failure, which names the file. */
struct conversations *chats_begin(struct arena *, const char *path, const struct job_options *, const struct tokenizer *);
/* Appends the tokens of a line's messages, and of tools that it may have. NULL, or what is wrong. */
const char *chats_add(const struct conversations *, struct arena *, const json_t *line, struct samples *);
void chats_end(struct conversations *); /* also NULL */

#endif
