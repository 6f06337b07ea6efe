/* texts: what turns text into tokens: the tokenizer.json in the folder, the template of conversations and the end tokens, each read when it
 * is first needed. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "decode/sampling/sampling.h"
#include "plan/input/input.h"
#include "train/data/samples.h"

struct texts {
    struct arena *arena;
    const struct job_options *job;
    const struct tokenizer *tokenizer;   /* NULL: not loaded yet */
    struct conversations *conversations; /* NULL: not loaded yet */
    struct end_tokens *ends;             /* NULL: not loaded yet */
};

struct texts *data_texts_new(const struct job_options *job)
{
    struct arena *a = arena_new();
    struct texts *t = NEW(a, struct texts);
    *t = (struct texts){.arena = a, .job = job};
    return t;
}

#ifdef HAVE_TEXT

const struct tokenizer *text_tokenizer(struct texts *t)
{
    const char *folder = t->job->paths.text.at[0], *beside = path_join(t->arena, folder, model_texts[TEXT_TOKENIZER]);
    if (t->tokenizer)
        return t->tokenizer;
    if (!t->job->tokenizer && !path_exists(beside))
        fail("%s: has no tokenizer.json, which turns text into tokens: name one with --tokenizer FILE, or give tokens (.npy, .bin)",
             folder);
    return t->tokenizer = tokenizer_read(t->arena, t->job->tokenizer ? t->job->tokenizer : beside);
}

const struct conversations *text_conversations(struct texts *t, const char *path)
{
    if (!t->conversations)
        t->conversations = chats_begin(t->arena, path, t->job, text_tokenizer(t));
    return t->conversations;
}

const struct end_tokens *text_ends(struct texts *t)
{
    if (!t->ends) {
        t->ends = NEW(t->arena, struct end_tokens);
        *t->ends = config_ends(t->arena, t->job);
    }
    return t->ends;
}

void data_texts_free(struct texts *t)
{
    chats_end(t->conversations);
    arena_free(t->arena);
}

#else

void data_texts_free(struct texts *t)
{
    arena_free(t->arena);
}
#endif
