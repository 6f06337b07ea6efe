/* decoder: tokens back to text. A decoder rewrites the list of tokens, or joins it; a sequence applies several in turn. */
#include "tokenizer/tokenizer.h"

#include <string.h>

struct tokens {
    VEC(struct text) list;
};
struct decoder {
    void (*apply)(const struct decoder *, struct arena *, struct tokens *);
    struct text content, by; /* the sought text, its replacement */
    struct pattern *pattern;
    int64_t start, stop; /* Strip */
    bool cleans, drops;  /* WordPiece; Metaspace: the first token begins no word */
    VEC(struct decoder *) steps;
};

/* ---- text ---- */

/* Bytes as text; invalid UTF-8 becomes U+FFFD, one per started character. */
static struct text lossy(struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        uint8_t c = (uint8_t)t.at[i];
        size_t want = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0, n = 1;
        uint8_t lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80, hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        while (n < want && i + n < t.n && (uint8_t)t.at[i + n] >= lo && (uint8_t)t.at[i + n] <= hi) {
            n++;
            lo = 0x80;
            hi = 0xbf;
        }
        if (want > 0 && n == want)
            text_put(&b, t.at + i, n);
        else
            text_put_char(&b, 0xfffd);
        i += n;
    }
    return text_built(&b);
}

static struct text joined(struct arena *a, const struct tokens *t)
{
    struct text_builder b = {.arena = a};
    for (int i = 0; i < t->list.n; i++)
        text_put(&b, t->list.at[i].at, t->list.at[i].n);
    return text_built(&b);
}

static void become(struct arena *a, struct tokens *t, struct text one)
{
    t->list.n = 0;
    VEC_PUSH(a, &t->list, one);
}

/* ---- kinds ---- */

/* A token that is not in the alphabet of bytes is kept. */
static void put_bytes(struct text_builder *b, struct text token)
{
    int before = b->to.n;
    for (size_t i = 0; i < token.n;) {
        int byte = text_byte_of(text_next(token, &i));
        char c = (char)byte;
        if (byte < 0) {
            b->to.n = before;
            text_put(b, token.at, token.n);
            return;
        }
        text_put(b, &c, 1);
    }
}

static void join_byte_level(const struct decoder *d, struct arena *a, struct tokens *t)
{
    struct text_builder b = {.arena = a};
    (void)d;
    for (int i = 0; i < t->list.n; i++)
        put_bytes(&b, t->list.at[i]);
    become(a, t, lossy(a, text_built(&b)));
}

static void replace_metaspace(const struct decoder *d, struct arena *a, struct tokens *t)
{
    for (int i = 0; i < t->list.n; i++)
        t->list.at[i] = text_replace(a, t->list.at[i], d->content, text_of(i == 0 && d->drops ? "" : " "));
}

static struct text cleaned(struct arena *a, struct text t)
{
    static const char *const rewrite[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                             {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                             {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
    for (size_t i = 0; i < sizeof rewrite / sizeof *rewrite; i++)
        t = text_replace(a, t, text_of(rewrite[i][0]), text_of(rewrite[i][1]));
    return t;
}

static void replace_wordpiece(const struct decoder *d, struct arena *a, struct tokens *t)
{
    for (int i = 0; i < t->list.n; i++) {
        struct text *at = &t->list.at[i];
        bool goes_on = i > 0 && text_starts(*at, d->content);
        struct text_builder b = {.arena = a};
        if (i > 0 && !goes_on)
            text_put(&b, " ", 1);
        text_put(&b, at->at + (goes_on ? d->content.n : 0), at->n - (goes_on ? d->content.n : 0));
        *at = d->cleans ? cleaned(a, text_built(&b)) : text_built(&b);
    }
}

static void replace_suffix(const struct decoder *d, struct arena *a, struct tokens *t)
{
    for (int i = 0; i < t->list.n; i++)
        t->list.at[i] = text_replace(a, t->list.at[i], d->content, text_of(i + 1 < t->list.n ? " " : ""));
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of a token <0x41>; -1: not one. */
static int byte_of_token(struct text t)
{
    if (t.n != 6 || memcmp(t.at, "<0x", 3) != 0 || t.at[5] != '>')
        return -1;
    int high = hex_digit(t.at[3]), low = hex_digit(t.at[4]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Adjacent bytes are text, or one U+FFFD each. */
static void put_byte_run(struct arena *a, struct text_builder *run, struct tokens *out)
{
    size_t bad;
    if (run->to.n == 0)
        return;
    struct text t = text_built(run);
    bool whole = text_is_utf8(t.at, t.n, &bad);
    for (int i = 0; !whole && i < run->to.n; i++)
        VEC_PUSH(a, &out->list, text_of("\xef\xbf\xbd"));
    if (whole)
        VEC_PUSH(a, &out->list, t);
    *run = (struct text_builder){.arena = a};
}

static void join_byte_fallback(const struct decoder *d, struct arena *a, struct tokens *t)
{
    struct text_builder run = {.arena = a};
    struct tokens out = {0};
    (void)d;
    for (int i = 0; i < t->list.n; i++) {
        int byte = byte_of_token(t->list.at[i]);
        char c = (char)byte;
        if (byte >= 0) {
            text_put(&run, &c, 1);
            continue;
        }
        put_byte_run(a, &run, &out);
        VEC_PUSH(a, &out.list, t->list.at[i]);
    }
    put_byte_run(a, &run, &out);
    *t = out;
}

static void join_fuse(const struct decoder *d, struct arena *a, struct tokens *t)
{
    (void)d;
    become(a, t, joined(a, t));
}

static void replace_strip(const struct decoder *d, struct arena *a, struct tokens *t)
{
    (void)a;
    for (int i = 0; i < t->list.n; i++) {
        struct text *at = &t->list.at[i];
        for (int64_t k = 0; k < d->start && d->content.n && text_starts(*at, d->content); k++)
            *at = (struct text){at->at + d->content.n, at->n - d->content.n};
        for (int64_t k = 0; k < d->stop && d->content.n && at->n >= d->content.n &&
             memcmp(at->at + at->n - d->content.n, d->content.at, d->content.n) == 0;
             k++)
            at->n -= d->content.n;
    }
}

static void replace_pattern(const struct decoder *d, struct arena *a, struct tokens *t)
{
    for (int i = 0; i < t->list.n; i++)
        t->list.at[i] = pattern_replace(d->pattern, a, t->list.at[i], d->by);
}

static void apply_steps(const struct decoder *d, struct arena *a, struct tokens *t)
{
    for (int i = 0; i < d->steps.n; i++)
        d->steps.at[i]->apply(d->steps.at[i], a, t);
}

/* ---- reading ---- */

static struct text own_text(struct arena *a, const char *where, const json_t *v, const char *key, const char *otherwise)
{
    return text_of(arena_strdup(a, member_string(where, v, key, otherwise)));
}

static void read_nothing(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    (void)d, (void)a, (void)where, (void)v;
}

static void read_metaspace(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    d->content = own_text(a, where, v, "replacement", "\xe2\x96\x81");
    d->drops = strcmp(member_string(where, v, "prepend_scheme", member_bool(where, v, "add_prefix_space", true) ? "always" : "never"),
                      "never") != 0;
}

static void read_wordpiece(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    d->content = own_text(a, where, v, "prefix", "##");
    d->cleans = member_bool(where, v, "cleanup", true);
}

static void read_suffix(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    d->content = own_text(a, where, v, "suffix", "</w>");
}

static void read_strip(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    d->content = own_text(a, where, v, "content", "");
    d->start = json_integer_value(json_object_get(v, "start"));
    d->stop = json_integer_value(json_object_get(v, "stop"));
}

static void read_replace(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    d->pattern = pattern_read(a, where, json_object_get(v, "pattern"));
    d->by = own_text(a, where, v, "content", "");
}

static void read_steps(struct decoder *d, struct arena *a, const char *where, const json_t *v)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(v, "decoders"), i, step) VEC_PUSH(a, &d->steps, decoder_read(a, where, step));
}

static const struct decoder_kind {
    const char *type;
    void (*apply)(const struct decoder *, struct arena *, struct tokens *);
    void (*read)(struct decoder *, struct arena *, const char *where, const json_t *);
} kinds[] = {
    {"Sequence", apply_steps, read_steps},
    {"ByteLevel", join_byte_level, read_nothing},
    {"Metaspace", replace_metaspace, read_metaspace},
    {"WordPiece", replace_wordpiece, read_wordpiece},
    {"BPEDecoder", replace_suffix, read_suffix},
    {"ByteFallback", join_byte_fallback, read_nothing},
    {"Fuse", join_fuse, read_nothing},
    {"Strip", replace_strip, read_strip},
    {"Replace", replace_pattern, read_replace},
};

struct decoder *decoder_read(struct arena *a, const char *where, const json_t *v)
{
    if (!v || json_is_null(v))
        return NULL;
    const struct decoder_kind *kind = &kinds[MEMBER_KIND(where, "decoder", member_type(where, "decoder", v), kinds)];
    struct decoder *d = NEW(a, struct decoder);
    d->apply = kind->apply;
    kind->read(d, a, where, v);
    return d;
}

struct text decoder_apply(const struct decoder *d, struct arena *a, int n, const struct text *token)
{
    struct tokens t = {0};
    for (int i = 0; i < n; i++) {
        if (!d && i > 0)
            VEC_PUSH(a, &t.list, text_of(" "));
        VEC_PUSH(a, &t.list, token[i]);
    }
    if (d)
        d->apply(d, a, &t);
    return joined(a, &t);
}

/* ---- one token ---- */

static bool has_step(const struct decoder *d, void (*apply)(const struct decoder *, struct arena *, struct tokens *))
{
    for (int i = 0; d && i < d->steps.n; i++)
        if (has_step(d->steps.at[i], apply))
            return true;
    return d && d->apply == apply;
}

bool decoder_joins(const struct decoder *d)
{
    return d && !has_step(d, replace_wordpiece) && !has_step(d, replace_suffix);
}

struct text decoder_token(const struct decoder *d, struct arena *a, struct text token)
{
    const struct text pair[] = {text_of("a"), token}; /* a token at the beginning of a text may lose a blank */
    struct text_builder b = {.arena = a};
    int byte = has_step(d, join_byte_fallback) ? byte_of_token(token) : -1;
    char c = (char)byte;
    if (byte >= 0)
        text_put(&b, &c, 1);
    else if (has_step(d, join_byte_level))
        put_bytes(&b, token);
    else {
        struct text both = decoder_apply(d, a, 2, pair);
        size_t skip = text_starts(both, pair[0]) ? pair[0].n : 0;
        return (struct text){both.at + skip, both.n - skip};
    }
    return text_built(&b);
}
