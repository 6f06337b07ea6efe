/* pretokenizer: splits text into pieces, each of which the model turns into tokens. */
#include "tokenizer/tokenizer.h"

#include <string.h>

enum behaviour { REMOVED, ISOLATED, MERGED_WITH_PREVIOUS, MERGED_WITH_NEXT, CONTIGUOUS };
enum prepend { PREPEND_NEVER, PREPEND_FIRST, PREPEND_ALWAYS };

struct pretokenizer {
    void (*apply)(const struct pretokenizer *, struct arena *, struct piece, struct pieces *);
    struct pattern *pattern; /* or: */
    bool (*matches)(int32_t, int32_t of);
    int32_t of; /* CharDelimiterSplit */
    enum behaviour behaviour;
    bool inverted;
    enum prepend prepend;
    struct text replacement; /* Metaspace */
    VEC(struct pretokenizer *) steps;
};

/* ---- splitting ---- */

/* A part of the text: a match, or the text between matches. */
struct stretch {
    size_t from, to;
    bool match;
};
struct stretches {
    VEC(struct stretch) list;
};

static void add_stretch(struct arena *a, struct stretches *s, size_t from, size_t to, bool match)
{
    if (to > from)
        VEC_PUSH(a, &s->list, ((struct stretch){from, to, match}));
}

static bool find_match(const struct pretokenizer *p, struct text t, size_t at, size_t *start, size_t *end)
{
    if (p->pattern)
        return pattern_find(p->pattern, t, at, start, end);
    for (size_t next = at; at < t.n; at = next)
        if (p->matches(text_next(t, &next), p->of)) {
            *start = at;
            *end = next;
            return true;
        }
    return false;
}

static struct stretches find_stretches(const struct pretokenizer *p, struct arena *a, struct text t)
{
    struct stretches s = {0};
    size_t at = 0, start, end;
    while (at < t.n && find_match(p, t, at, &start, &end)) {
        add_stretch(a, &s, at, start, p->inverted);
        add_stretch(a, &s, start, end, !p->inverted);
        at = end;
    }
    add_stretch(a, &s, at, t.n, p->inverted);
    return s;
}

/* Does part i join the one before it? */
static bool joins(const struct stretches *s, int i, enum behaviour how)
{
    const struct stretch *at = s->list.at;
    switch (how) {
    case CONTIGUOUS: return at[i].match == at[i - 1].match;
    case MERGED_WITH_PREVIOUS: return at[i].match && !at[i - 1].match;
    case MERGED_WITH_NEXT: return at[i - 1].match && !at[i].match;
    default: return false;
    }
}

static void put_split(const struct pretokenizer *p, struct arena *a, struct piece in, struct pieces *out)
{
    struct stretches s = find_stretches(p, a, in.text);
    for (int i = 0; i < s.list.n;) {
        int last = i;
        while (last + 1 < s.list.n && joins(&s, last + 1, p->behaviour))
            last++;
        size_t from = s.list.at[i].from, to = s.list.at[last].to;
        if (!(p->behaviour == REMOVED && s.list.at[i].match))
            VEC_PUSH(a, &out->list, text_piece(in, from, to));
        i = last + 1;
    }
}

/* ---- kinds ---- */

static struct text prepended(struct arena *a, struct text with, struct text t)
{
    struct text_builder b = {.arena = a};
    text_put(&b, with.at, with.n);
    text_put(&b, t.at, t.n);
    return text_built(&b);
}

static void put_byte_level(const struct pretokenizer *p, struct arena *a, struct piece in, struct pieces *out)
{
    int from = out->list.n;
    if (p->prepend == PREPEND_ALWAYS && !text_starts(in.text, text_of(" ")))
        in.text = prepended(a, text_of(" "), in.text);
    if (p->pattern)
        put_split(p, a, in, out);
    else
        VEC_PUSH(a, &out->list, in);
    for (int i = from; i < out->list.n; i++)
        out->list.at[i].text = text_byte_alphabet(a, out->list.at[i].text);
}

static void put_metaspace(const struct pretokenizer *p, struct arena *a, struct piece in, struct pieces *out)
{
    in.text = text_replace(a, in.text, text_of(" "), p->replacement);
    bool prepends = p->prepend == PREPEND_ALWAYS || (p->prepend == PREPEND_FIRST && in.head > 0);
    if (prepends && !text_starts(in.text, p->replacement))
        in.text = prepended(a, p->replacement, in.text);
    if (p->pattern)
        put_split(p, a, in, out);
    else
        VEC_PUSH(a, &out->list, in);
}

static void put_sequence(const struct pretokenizer *p, struct arena *a, struct piece in, struct pieces *out)
{
    struct pieces now = {0};
    VEC_PUSH(a, &now.list, in);
    for (int k = 0; k < p->steps.n; k++) {
        struct pieces next = {0};
        for (int i = 0; i < now.list.n; i++)
            p->steps.at[k]->apply(p->steps.at[k], a, now.list.at[i], &next);
        now = next;
    }
    for (int i = 0; i < now.list.n; i++)
        VEC_PUSH(a, &out->list, now.list.at[i]);
}

/* ---- reading ---- */

#define IS(kind)                                 \
    static bool is_##kind(int32_t c, int32_t of) \
    {                                            \
        return (void)of, char_is_##kind(c);      \
    }
IS(space)
IS(punctuation)
IS(number)

static bool is_char(int32_t c, int32_t of)
{
    return c == of;
}

static enum behaviour read_behaviour(const char *where, const json_t *v, const char *otherwise)
{
    static const char *const name[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    const char *text = member_string(where, v, "behavior", otherwise);
    int i = NAMED_ROW(name, text);
    if (i >= 0)
        return (enum behaviour)i;
    member_unsupported(where, "behavior", text);
}

static void read_sequence(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    size_t i;
    json_t *step;
    json_array_foreach(json_object_get(v, "pretokenizers"), i, step) VEC_PUSH(a, &p->steps, pretokenizer_read(a, where, step));
}

static void read_byte_level(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    static const char words[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
    p->prepend = member_bool(where, v, "add_prefix_space", true) ? PREPEND_ALWAYS : PREPEND_NEVER;
    if (member_bool(where, v, "use_regex", true))
        p->pattern = pattern_regex(a, where, words);
    p->behaviour = ISOLATED;
}

static void read_metaspace(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    const char *scheme = member_string(where, v, "prepend_scheme", member_bool(where, v, "add_prefix_space", true) ? "always" : "never");
    const char *replacement = arena_strdup(a, member_string(where, v, "replacement", "\xe2\x96\x81"));
    p->prepend = strcmp(scheme, "always") == 0 ? PREPEND_ALWAYS : strcmp(scheme, "first") == 0 ? PREPEND_FIRST : PREPEND_NEVER;
    p->replacement = text_of(replacement);
    p->behaviour = MERGED_WITH_NEXT;
    if (member_bool(where, v, "split", true)) {
        json_t *pattern = json_string(replacement);
        p->pattern = pattern_read(a, where, pattern);
        json_decref(pattern);
    }
}

static void read_split(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    p->pattern = pattern_read(a, where, json_object_get(v, "pattern"));
    p->behaviour = read_behaviour(where, v, "");
    p->inverted = member_bool(where, v, "invert", false);
}

static void read_whitespace(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    (void)v;
#define WORD \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
    p->pattern = pattern_regex(a, where, "[" WORD "]+|[^" WORD "\\s]+");
#undef WORD
    p->inverted = true;
}

static void read_whitespace_split(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    (void)a, (void)where, (void)v;
    p->matches = is_space;
}

static void read_punctuation(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    (void)a;
    p->matches = is_punctuation;
    p->behaviour = read_behaviour(where, v, "Isolated");
}

static void read_digits(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    (void)a;
    p->matches = is_number;
    p->behaviour = member_bool(where, v, "individual_digits", false) ? ISOLATED : CONTIGUOUS;
}

static void read_delimiter(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    struct text t = text_of(arena_strdup(a, member_string(where, v, "delimiter", "")));
    size_t at = 0;
    p->of = text_next(t, &at);
    p->matches = is_char;
}

/* Spaces are removed, punctuation is separate. */
static void read_bert(struct pretokenizer *p, struct arena *a, const char *where, const json_t *v)
{
    struct pretokenizer *space = NEW(a, struct pretokenizer), *punctuation = NEW(a, struct pretokenizer);
    space->apply = punctuation->apply = put_split;
    read_whitespace_split(space, a, where, v);
    read_punctuation(punctuation, a, where, v);
    VEC_PUSH(a, &p->steps, space);
    VEC_PUSH(a, &p->steps, punctuation);
}

static const struct pretokenizer_kind {
    const char *type;
    void (*apply)(const struct pretokenizer *, struct arena *, struct piece, struct pieces *);
    void (*read)(struct pretokenizer *, struct arena *, const char *where, const json_t *);
} kinds[] = {
    {"Sequence", put_sequence, read_sequence},     {"ByteLevel", put_byte_level, read_byte_level},
    {"Metaspace", put_metaspace, read_metaspace},  {"Split", put_split, read_split},
    {"Whitespace", put_split, read_whitespace},    {"WhitespaceSplit", put_split, read_whitespace_split},
    {"Punctuation", put_split, read_punctuation},  {"Digits", put_split, read_digits},
    {"BertPreTokenizer", put_sequence, read_bert}, {"CharDelimiterSplit", put_split, read_delimiter},
};

struct pretokenizer *pretokenizer_read(struct arena *a, const char *where, const json_t *v)
{
    if (!v || json_is_null(v))
        return NULL;
    const struct pretokenizer_kind *kind = &kinds[MEMBER_KIND(where, "pre-tokenizer", member_type(where, "pre-tokenizer", v), kinds)];
    struct pretokenizer *p = NEW(a, struct pretokenizer);
    p->apply = kind->apply;
    kind->read(p, a, where, v);
    return p;
}

struct pieces pretokenizer_apply(const struct pretokenizer *p, struct arena *a, struct piece in)
{
    struct pieces out = {0};
    if (p)
        p->apply(p, a, in, &out);
    else
        VEC_PUSH(a, &out.list, in);
    return out;
}
