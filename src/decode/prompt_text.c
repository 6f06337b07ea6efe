/* prompt_text: prompts and results as text, by the tokenizer.json next to the model. */
#include "config.h"

#include "decode/decode.h"
#include "tokenizer/tokenizer.h"

#ifdef HAVE_TEXT
#include "job/io/io.h"

#include <string.h>

struct prompt_text {
    struct arena *arena;
    struct tokenizer *tokenizer;
    struct text_stream stream;
};

/* ---- from the options ---- */

struct prompts {
    VEC(const char *) list;
};

/* Every line is a prompt; the last one may lack its line end, which may be CRLF. */
static void add_lines(struct arena *a, struct prompts *p, const char *path, FILE *from)
{
    struct text_builder all = {.arena = a};
    char part[4096];
    for (size_t n; (n = fread(part, 1, sizeof part, from)) > 0;)
        text_put(&all, part, n);
    if (ferror(from))
        fail("%s: can't be read", path);
    if (memchr(text_built(&all).at, 0, (size_t)all.to.n))
        fail("%s: has a zero byte, expected lines of text", path);
    text_put(&all, "", 1);
    for (char *line = all.to.at; *line;) {
        size_t n = strcspn(line, "\n"), end = n && line[n - 1] == '\r' ? n - 1 : n;
        VEC_PUSH(a, &p->list, arena_strndup(a, line, end));
        line += n + (line[n] == '\n');
    }
}

static struct prompts read_prompts(struct arena *a, const struct job_options *o)
{
    struct prompts p = {0};
    for (int i = 0; i < o->prompt.text.n; i++)
        VEC_PUSH(a, &p.list, o->prompt.text.at[i]);
    if (o->prompt_file && strcmp(o->prompt_file, "-") == 0) {
        add_lines(a, &p, "stdin", stdin);
    } else if (o->prompt_file) {
        FILE *from = fopen(o->prompt_file, "r");
        if (!from)
            fail("%s: can't be opened", o->prompt_file);
        add_lines(a, &p, o->prompt_file, from);
        (void)fclose(from);
    }
    if (!p.list.n)
        fail("%s: holds no prompt", o->prompt_file);
    return p;
}

/* ---- tokens ---- */

static struct tensor ids_tensor(struct arena *a, int64_t rows, int64_t columns)
{
    return (struct tensor){.dtype = DT_I64, .rank = 2, .dim = {rows, columns}, .data = NEWN(a, int64_t, rows * columns + 1)};
}

/* Tokens of all prompts, padded at the front, and the mask that hides the padding. */
static void encode_rows(const struct prompt_text *t, const struct prompts *p, struct tensor *tokens, struct tensor *mask)
{
    struct token_ids *ids = NEWN(t->arena, struct token_ids, p->list.n);
    int64_t longest = 0;
    for (int i = 0; i < p->list.n; i++) {
        ids[i] = tokenizer_encode(t->tokenizer, t->arena, p->list.at[i], strlen(p->list.at[i]), true);
        if (!ids[i].list.n)
            fail("prompt %d has no token", i + 1);
        longest = ids[i].list.n > longest ? ids[i].list.n : longest;
    }
    *tokens = ids_tensor(t->arena, p->list.n, longest);
    *mask = ids_tensor(t->arena, p->list.n, longest);
    for (int i = 0; i < p->list.n; i++)
        for (int64_t k = 0, pad = longest - ids[i].list.n; k < longest; k++) {
            ((int64_t *)tokens->data)[i * longest + k] = k < pad ? 0 : ids[i].list.at[k - pad];
            ((int64_t *)mask->data)[i * longest + k] = k >= pad;
        }
}

static const char *tokenizer_path(struct arena *a, const struct job_options *o)
{
    const char *path = o->tokenizer ? o->tokenizer : config_beside(a, o, TEXT_TOKENIZER);
    if (!path)
        fail("%s: there is no tokenizer.json next to it: name one with --tokenizer FILE", o->paths.text.at[0]);
    return path;
}

struct prompt_text *prompt_text_again(struct arena *a, const struct comm *all, const struct job_options *o)
{
    struct prompt_text *t = NEW(a, struct prompt_text);
    if (all->rank)
        return NULL;
    *t = (struct prompt_text){.arena = a, .tokenizer = tokenizer_read(a, tokenizer_path(a, o))};
    return t;
}

struct token_texts prompt_text_tokens(struct arena *a, const struct job_options *o, int64_t n)
{
    const char *path = tokenizer_path(a, o);
    const struct tokenizer *t = tokenizer_read(a, path);
    if (!tokenizer_joins(t))
        fail("%s: its tokens are not joined as they are: there is no form of the text", path);
    if (n == INT32_MAX)
        fail("%s: how many tokens it has is not known, which a form of the text needs", o->paths.text.at[0]);
    return tokenizer_texts(t, a, n, &(struct token_ids){0});
}

static void read_on_first(struct prompt_text *t, const struct job_options *o, struct tensor *sent)
{
    struct arena *a = t->arena;
    const struct prompts p = read_prompts(a, o);
    const struct end_tokens ends = config_ends(a, o);
    encode_rows(t, &p, &sent[0], &sent[1]);
    sent[2] = ids_tensor(a, 1, ends.list.n);
    if (ends.list.n)
        memcpy(sent[2].data, ends.list.at, (size_t)ends.list.n * sizeof(int64_t));
}

/* The first graph that reads tokens. */
static struct stage *stage_with_tokens(struct stage *s, int n)
{
    for (int k = 0; k < n; k++)
        if (decode_find_input(&s[k], ROLE_TOKENS) >= 0)
            return &s[k];
    fail_usage("no input of %s holds tokens: give --role INPUT=tokens", s->path);
}

static void give(struct stage *s, enum role role, struct tensor t)
{
    int i = decode_find_input(s, role);
    if (i < 0)
        return;
    if (s->given[i].data)
        fail_usage("input '%s' is given twice: by --input, and by the prompt", s->graph->inputs.at[i]->name);
    s->given[i] = t;
}

struct prompt_text *prompt_text_give(struct arena *a, struct comm *all, struct stage *stage, int n, struct job_options *o)
{
    struct tensor sent[3] = {{0}};
    struct prompt_text *t = prompt_text_again(a, all, o);
    if (t)
        read_on_first(t, o, sent);
    struct stage *s = stage_with_tokens(stage, n);
    job_send_inputs(a, all, 3, sent);
    give(s, ROLE_TOKENS, sent[0]);
    give(s, ROLE_MASK, sent[1]);
    for (int64_t i = 0; o->eos.list.n == 0 && i < sent[2].dim[1]; i++)
        VEC_PUSH(a, &o->eos.list, ((const int64_t *)sent[2].data)[i]);
    return t;
}

/* ---- text ---- */

void prompt_text_skip(struct prompt_text *t, const int64_t *id, int64_t n)
{
    struct arena *tmp = arena_new();
    t->stream = (struct text_stream){0, 0};
    (void)tokenizer_stream(t->tokenizer, tmp, &t->stream, id, (int)n, true);
    arena_free(tmp);
}

void prompt_text_print(struct prompt_text *t, const int64_t *id, int64_t n, bool last)
{
    struct arena *tmp = arena_new();
    struct text more = tokenizer_stream(t->tokenizer, tmp, &t->stream, id, (int)n, last);
    (void)fwrite(more.at, 1, more.n, stdout); /* streams_flush reports failures */
    arena_free(tmp);
}

void prompt_text_print_row(struct prompt_text *t, const int64_t *id, int64_t first, int64_t n)
{
    prompt_text_skip(t, id, first);
    prompt_text_print(t, id, first + n, true);
    putchar('\n');
}

const char *prompt_text_token(const struct prompt_text *t, struct arena *a, int64_t id)
{
    const char *number = arena_printf(a, "%lld", (long long)id), *quoted = "";
    if (!t)
        return number;
    struct text text = tokenizer_decode(t->tokenizer, a, &id, 1, true);
    for (size_t i = 0; i < text.n; i++) {
        char c = text.at[i];
        bool plain = (unsigned char)c >= ' ' && c != '"' && c != '\\';
        quoted = arena_printf(a, plain ? "%s%c" : "%s\\x%02x", quoted, c);
    }
    return arena_printf(a, "%s (\"%s\")", number, quoted);
}

#else /* no option uses text */

const char *prompt_text_token(const struct prompt_text *t, struct arena *a, int64_t id)
{
    (void)t;
    return arena_printf(a, "%lld", (long long)id);
}

struct prompt_text *prompt_text_give(struct arena *a, struct comm *all, struct stage *s, int n, struct job_options *o)
{
    (void)a, (void)all, (void)s, (void)n, (void)o;
    bug("a prompt in a build without tokenizers");
}

void prompt_text_print(struct prompt_text *t, const int64_t *id, int64_t n, bool last)
{
    (void)t, (void)id, (void)n, (void)last;
    bug("text in a build without tokenizers");
}

struct prompt_text *prompt_text_again(struct arena *a, const struct comm *all, const struct job_options *o)
{
    (void)a, (void)all, (void)o;
    return NULL;
}

struct token_texts prompt_text_tokens(struct arena *a, const struct job_options *o, int64_t n)
{
    (void)a, (void)o, (void)n;
    bug("a form of the text in a build without tokenizers");
}

void prompt_text_skip(struct prompt_text *t, const int64_t *id, int64_t n)
{
    prompt_text_print(t, id, n, true);
}

void prompt_text_print_row(struct prompt_text *t, const int64_t *id, int64_t first, int64_t n)
{
    prompt_text_print(t, id, first + n, true);
}
#endif
