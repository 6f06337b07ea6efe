/* samples: text samples, one per line of a file, and rows of them. */
#ifndef TPC_TRAIN_SAMPLES_H
#define TPC_TRAIN_SAMPLES_H

#include "tokenizer/tokenizer.h"
#include "train/train.h"

struct conversations;
struct samples {
    VEC(int64_t) token;
    VEC(bool) silent; /* by token: whether it is no label */
    VEC(int64_t) end; /* by sample: its end */
};
/* texts.c: each is loaded once: the tokenizer of --tokenizer, or in the folder. */
const struct tokenizer *text_tokenizer(struct texts *);
/* path: the first file with messages. */
const struct conversations *text_conversations(struct texts *, const char *path);
const struct end_tokens *text_ends(struct texts *);
/* lines.c: reads a file of JSON lines. Fails, with its number, on an invalid line. */
struct samples lines_read(struct arena *, const char *path, struct texts *);
/* pack.c: rows of sequence + 1 tokens, in the arena: a sample shares a row with others if it fits, and a longer one is split. The rest of a
 * row is padding. */
struct token_file pack_samples(struct arena *, const char *path, const struct samples *, int64_t sequence);

/* ---- chats.c: conversations, whose answers are the labels ---- */
/* Fails, with the file, on a model without a usable template. */
struct conversations *chats_begin(struct arena *, const char *path, const struct job_options *, const struct tokenizer *);
/* Appends the tokens of a line's messages, and tools if it has any. NULL, or an error. */
const char *chats_add(const struct conversations *, struct arena *, const json_t *line, struct samples *);
void chats_end(struct conversations *); /* accepts NULL */

#endif
