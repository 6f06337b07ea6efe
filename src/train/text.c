/* text: data given as text, by the tokenizer.json in the folder. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "train/train.h"

#ifdef HAVE_TEXT
#include "tokenizer/tokenizer.h"

struct token_file text_tokens(struct arena *a, const char *path, const char *folder, const char *tokenizer)
{
    struct map m = map_file(path);
    const char *beside = path_join(a, folder, model_texts[TEXT_TOKENIZER]);
    if (!tokenizer && !path_exists(beside))
        fail("%s: has no tokenizer.json, which turns text into tokens: name one with --tokenizer FILE, or give tokens (.npy, .bin)",
             folder);
    struct arena *tmp = arena_new();
    const struct tokenizer *t = tokenizer_read(tmp, tokenizer ? tokenizer : beside);
    struct token_ids ids = tokenizer_encode(t, a, (const char *)m.at, m.bytes, false);
    map_close(m);
    arena_free(tmp);
    return (struct token_file){path, DT_I64, ids.list.at, 1, ids.list.n};
}

#else

struct token_file text_tokens(struct arena *a, const char *path, const char *folder, const char *tokenizer)
{
    (void)a, (void)folder, (void)tokenizer;
    fail("%s: is text, and this program was built without tokenizers", path);
}
#endif
