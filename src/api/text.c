/* text: tpc_encode and tpc_decode, with the tokenizer.json next to the model. They have a scope of their own, so that they may be called
 * while the ranks decode. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "api/api.h"

void api_text_free(struct tpc_session *s)
{
    scope_free(s->text.scope);
    s->text = (struct api_text){.scope = NULL};
}

#ifdef HAVE_TEXT
#include "tokenizer/tokenizer.h"

struct texting {
    struct tpc_session *session;
    struct text text;
    const int64_t *id;
    int64_t ids;
    bool special;
};

static void get_ready(struct tpc_session *s)
{
    struct api_text *t = &s->text;
    if (t->tokenizer)
        return;
    struct arena *a = arena_new();
    const char *path = config_beside(a, &s->job, TEXT_TOKENIZER);
    if (!path)
        fail("%s: there is no tokenizer.json next to it", s->path);
    t->ids = arena_new();
    t->words = arena_new();
    t->tokenizer = tokenizer_read(a, path);
}

static void encode_text(void *texting)
{
    struct texting *t = texting;
    const struct api_text *by = &t->session->text;
    get_ready(t->session);
    arena_reset(by->ids);
    struct token_ids ids = tokenizer_encode(by->tokenizer, by->ids, t->text.at, t->text.n, t->special);
    t->id = ids.list.at;
    t->ids = ids.list.n;
}

static void decode_ids(void *texting)
{
    struct texting *t = texting;
    const struct api_text *by = &t->session->text;
    get_ready(t->session);
    arena_reset(by->words);
    struct text text = tokenizer_decode(by->tokenizer, by->words, t->id, (int)t->ids, t->special);
    t->text = (struct text){arena_strndup(by->words, text.n ? text.at : "", text.n), text.n};
}

static int do_text(struct texting *t, void (*work)(void *))
{
    struct tpc_session *s = t->session;
    s->text.scope = s->text.scope ? s->text.scope : scope_new();
    if (!s->text.scope)
        return error_memory();
    if (scope_do(s->text.scope, work, t))
        return TPC_OK;
    int status = error_of_scope(s->text.scope);
    api_text_free(s);
    return status;
}

int tpc_encode(tpc_session *s, const char *text, int64_t bytes, int special, const int64_t **ids, int64_t *count)
{
    struct texting t = {.session = s, .text = {text, (size_t)bytes}, .special = special != 0};
    size_t bad;
    if (!text || bytes < 0 || !ids || !count)
        return error_invalid("tpc_encode: a text, its bytes, and where to put ids and their number have to be given");
    if (!text_is_utf8(text, (size_t)bytes, &bad))
        return error_invalid("tpc_encode: byte %zu of the text is no UTF-8", bad);
    int status = do_text(&t, encode_text);
    *ids = t.id;
    *count = t.ids;
    return status;
}

int tpc_decode(tpc_session *s, const int64_t *ids, int64_t count, int special, const char **text, int64_t *bytes)
{
    struct texting t = {.session = s, .id = ids, .ids = count, .special = special != 0};
    if (count < 0 || count > INT32_MAX || (count && !ids) || !text || !bytes)
        return error_invalid("tpc_decode: ids, their number, and where to put the text and its bytes have to be given");
    int status = do_text(&t, decode_ids);
    *text = t.text.at;
    *bytes = (int64_t)t.text.n;
    return status;
}

#else

static int refuse_text(const char *what)
{
    (void)error_invalid("%s: this library was built without text, for which it needs libpcre2-8 and libutf8proc", what);
    return TPC_FAILED;
}

int tpc_encode(tpc_session *s, const char *text, int64_t bytes, int special, const int64_t **ids, int64_t *count)
{
    (void)s, (void)text, (void)bytes, (void)special, (void)ids, (void)count;
    return refuse_text("tpc_encode");
}

int tpc_decode(tpc_session *s, const int64_t *ids, int64_t count, int special, const char **text, int64_t *bytes)
{
    (void)s, (void)ids, (void)count, (void)special, (void)text, (void)bytes;
    return refuse_text("tpc_decode");
}
#endif
