/* text: text data, by the tokenizer.json in the folder: a file, or a sample per line of a .jsonl. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "decode/sampling/sampling.h"
#include "plan/input/input.h"
#include "train/data/samples.h"

#ifdef HAVE_TEXT

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

struct token_file text_tokens(struct arena *a, const char *path, struct texts *t, int64_t sequence)
{
    (void)a, (void)t, (void)sequence;
    fail("%s: is text, and this program was built without tokenizers", path);
}
#endif
