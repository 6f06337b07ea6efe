/* normalizer: rewrites text before it is split. A normalizer is one step, or a sequence of them. */
#include "tokenizer/tokenizer.h"

#include <string.h>
#include <utf8proc.h>

struct normalizer {
    struct text (*apply)(const struct normalizer *, struct arena *, struct text);
    utf8proc_option_t form;              /* of Unicode */
    struct pattern *pattern;             /* Replace */
    struct text content;                 /* Replace, Prepend */
    bool left, right;                    /* Strip */
    bool cleans, spaces, strips, lowers; /* BertNormalizer */
    struct charsmap *map;
    VEC(struct normalizer *) steps;
};

/* ---- steps ---- */

static struct text unicode_form(struct arena *a, struct text t, utf8proc_option_t form)
{
    const utf8proc_uint8_t *from = (const utf8proc_uint8_t *)t.at;
    utf8proc_ssize_t n = utf8proc_decompose(from, (utf8proc_ssize_t)t.n, NULL, 0, form);
    require(n >= 0);
    utf8proc_int32_t *room = NEWN(a, utf8proc_int32_t, (size_t)n + 1);
    n = utf8proc_decompose(from, (utf8proc_ssize_t)t.n, room, n, form);
    n = utf8proc_reencode(room, n, form); /* in place: no character takes more than 4 bytes */
    require(n >= 0);
    return (struct text){(const char *)room, (size_t)n};
}

static struct text apply_form(const struct normalizer *n, struct arena *a, struct text t)
{
    return unicode_form(a, t, n->form);
}

/* Two characters, whose lower case is not one character or is in a separate table, follow UnicodeData as in Rust. */
static void put_lower(struct text_builder *b, int32_t c)
{
    if (c == 0x130) {
        text_put_char(b, 'i');
        text_put_char(b, 0x307);
        return;
    }
    text_put_char(b, utf8proc_tolower(c));
}

static struct text apply_lowercase(const struct normalizer *n, struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    (void)n;
    for (size_t i = 0; i < t.n;)
        put_lower(&b, text_next(t, &i));
    return text_built(&b);
}

static struct text without(struct arena *a, struct text t, bool (*dropped)(int32_t))
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        int32_t c = text_next(t, &i);
        if (!dropped(c))
            text_put_char(&b, c);
    }
    return text_built(&b);
}

static struct text apply_strip_accents(const struct normalizer *n, struct arena *a, struct text t)
{
    (void)n;
    return without(a, t, char_is_mark);
}

static struct text apply_strip(const struct normalizer *n, struct arena *a, struct text t)
{
    (void)a;
    size_t from = 0, to = t.n, at;
    for (at = 0; n->left && at < t.n && char_is_space(text_next(t, &at)); from = at)
        continue;
    for (size_t start; n->right && to > from && char_is_space(text_before(t, to, &start)); to = start)
        continue;
    return (struct text){t.at + from, to - from};
}

static struct text apply_prepend(const struct normalizer *n, struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    if (t.n == 0)
        return t;
    text_put(&b, n->content.at, n->content.n);
    text_put(&b, t.at, t.n);
    return text_built(&b);
}

static struct text apply_replace(const struct normalizer *n, struct arena *a, struct text t)
{
    return pattern_replace(n->pattern, a, t, n->content);
}

static struct text apply_byte_level(const struct normalizer *n, struct arena *a, struct text t)
{
    (void)n;
    return text_byte_alphabet(a, t);
}

static struct text apply_precompiled(const struct normalizer *n, struct arena *a, struct text t)
{
    return charsmap_apply(n->map, a, t);
}

/* SentencePiece's nmt: control characters are removed, all spaces become one kind. */
static struct text apply_nmt(const struct normalizer *n, struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    (void)n;
    for (size_t i = 0; i < t.n;) {
        int32_t c = text_next(t, &i);
        bool gone = (c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f;
        bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 || (c >= 0x200b && c <= 0x200f) || c == 0x2028 ||
            c == 0x2029 || c == 0x2581 || c == 0xfeff || c == 0xfffd;
        if (!gone)
            text_put_char(&b, space ? ' ' : c);
    }
    return text_built(&b);
}

/* ---- BERT's ---- */

static struct text bert_clean(struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        int32_t c = text_next(t, &i);
        bool space = c == '\t' || c == '\n' || c == '\r' || char_is_space(c);
        if (c == 0 || c == 0xfffd || (!(c == '\t' || c == '\n' || c == '\r') && char_is_control(c)))
            continue;
        text_put_char(&b, space ? ' ' : c);
    }
    return text_built(&b);
}

static struct text bert_space(struct arena *a, struct text t)
{
    struct text_builder b = {.arena = a};
    for (size_t i = 0; i < t.n;) {
        int32_t c = text_next(t, &i);
        if (char_is_cjk(c))
            text_put_char(&b, ' ');
        text_put_char(&b, c);
        if (char_is_cjk(c))
            text_put_char(&b, ' ');
    }
    return text_built(&b);
}

static struct text apply_bert(const struct normalizer *n, struct arena *a, struct text t)
{
    if (n->cleans)
        t = bert_clean(a, t);
    if (n->spaces)
        t = bert_space(a, t);
    if (n->strips)
        t = without(a, unicode_form(a, t, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), char_is_nonspacing);
    return n->lowers ? apply_lowercase(n, a, t) : t;
}

static struct text apply_sequence(const struct normalizer *n, struct arena *a, struct text t)
{
    for (int i = 0; i < n->steps.n; i++)
        t = n->steps.at[i]->apply(n->steps.at[i], a, t);
    return t;
}

/* ---- reading ---- */

static void read_sequence(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(v, "normalizers"), i, step) VEC_PUSH(a, &n->steps, normalizer_read(a, where, step));
}

static void read_bert(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    (void)a;
    n->cleans = member_bool(where, v, "clean_text", true);
    n->spaces = member_bool(where, v, "handle_chinese_chars", true);
    n->lowers = member_bool(where, v, "lowercase", true);
    n->strips = member_bool(where, v, "strip_accents", n->lowers);
}

static void read_replace(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    const json_t *content = json_object_get(v, "content");
    n->pattern = pattern_read(a, where, json_object_get(v, "pattern"));
    if (!json_is_string(content))
        fail("%s: the normalizer Replace has no content", where);
    n->content = member_text(a, content);
}

static void read_prepend(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    n->content = text_of(arena_strdup(a, member_string(where, v, "prepend", "")));
}

static void read_strip(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    (void)a;
    n->left = member_bool(where, v, "strip_left", true);
    n->right = member_bool(where, v, "strip_right", true);
}

static void read_precompiled(struct normalizer *n, struct arena *a, const char *where, const json_t *v)
{
    n->map = charsmap_read(a, where, member_string(where, v, "precompiled_charsmap", ""));
}

static const struct normalizer_kind {
    const char *type;
    struct text (*apply)(const struct normalizer *, struct arena *, struct text);
    void (*read)(struct normalizer *, struct arena *, const char *where, const json_t *);
    int form;
} kinds[] = {
    {"Sequence", apply_sequence, read_sequence, 0},
    {"NFC", apply_form, NULL, UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    {"NFD", apply_form, NULL, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    {"NFKC", apply_form, NULL, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    {"NFKD", apply_form, NULL, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
    {"Lowercase", apply_lowercase, NULL, 0},
    {"StripAccents", apply_strip_accents, NULL, 0},
    {"Strip", apply_strip, read_strip, 0},
    {"Prepend", apply_prepend, read_prepend, 0},
    {"Replace", apply_replace, read_replace, 0},
    {"ByteLevel", apply_byte_level, NULL, 0},
    {"BertNormalizer", apply_bert, read_bert, 0},
    {"Precompiled", apply_precompiled, read_precompiled, 0},
    {"Nmt", apply_nmt, NULL, 0},
};

struct normalizer *normalizer_read(struct arena *a, const char *where, const json_t *v)
{
    if (!v || json_is_null(v))
        return NULL;
    const struct normalizer_kind *kind = &kinds[MEMBER_KIND(where, "normalizer", member_type(where, "normalizer", v), kinds)];
    struct normalizer *n = NEW(a, struct normalizer);
    n->apply = kind->apply;
    n->form = (utf8proc_option_t)kind->form;
    if (kind->read)
        kind->read(n, a, where, v);
    return n;
}

struct text normalizer_apply(const struct normalizer *n, struct arena *a, struct text t)
{
    return n ? n->apply(n, a, t) : t;
}
