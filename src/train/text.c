/* text: data given as text, by the tokenizer.json in the folder: a file, or a sample in each line of a .jsonl. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "train/samples.h"

#ifdef HAVE_TEXT

const struct tokenizer *text_tokenizer(struct arena *a, const struct job_options *job)
{
    const char *folder = job->paths.text.at[0], *beside = path_join(a, folder, model_texts[TEXT_TOKENIZER]);
    if (!job->tokenizer && !path_exists(beside))
        fail("%s: has no tokenizer.json, which turns text into tokens: name one with --tokenizer FILE, or give tokens (.npy, .bin)",
             folder);
    return tokenizer_read(a, job->tokenizer ? job->tokenizer : beside);
}

static struct token_file whole_text(struct arena *a, struct arena *tmp, const char *path, const struct job_options *job)
{
    struct map m = map_file(path);
    struct token_ids ids = tokenizer_encode(text_tokenizer(tmp, job), a, (const char *)m.at, m.bytes, false);
    map_close(m);
    return (struct token_file){.path = path, .dtype = DT_I64, .at = ids.list.at, .samples = 1, .row = ids.list.n};
}

struct token_file text_tokens(struct arena *a, const char *path, const struct job_options *job, int64_t sequence)
{
    struct arena *tmp = arena_new();
    struct token_file f;
    if (data_is_samples(path)) {
        struct samples s = lines_read(tmp, path, job);
        f = pack_samples(a, path, &s, sequence);
    } else
        f = whole_text(a, tmp, path, job);
    arena_free(tmp);
    return f;
}

#else

struct token_file text_tokens(struct arena *a, const char *path, const struct job_options *job, int64_t sequence)
{
    (void)a, (void)job, (void)sequence;
    fail("%s: is text, and this program was built without tokenizers", path);
}
#endif
