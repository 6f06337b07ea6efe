/* text: text data, by the tokenizer.json in the folder: a file, or a sample per line of a .jsonl. */
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

static struct token_file whole_text(struct arena *a, const char *path, struct texts *t)
{
    struct map m = map_file(path);
    struct token_ids ids = tokenizer_encode(text_tokenizer(t), a, (const char *)m.at, m.bytes, false);
    map_close(m);
    return (struct token_file){.path = path, .dtype = DT_I64, .at = ids.list.at, .samples = 1, .row = ids.list.n};
}

struct token_file text_tokens(struct arena *a, const char *path, struct texts *t, int64_t sequence)
{
    if (!data_is_samples(path))
        return whole_text(a, path, t);
    struct arena *tmp = arena_new();
    struct samples s = lines_read(tmp, path, t);
    struct token_file f = pack_samples(a, path, &s, sequence);
    arena_free(tmp);
    return f;
}

#else

void data_texts_free(struct texts *t)
{
    arena_free(t->arena);
}

struct token_file text_tokens(struct arena *a, const char *path, struct texts *t, int64_t sequence)
{
    (void)a, (void)t, (void)sequence;
    fail("%s: is text, and this program was built without tokenizers", path);
}
#endif
