/* wordpiece: the longest tokens of the vocabulary, from the left; continuing tokens have a prefix. WordLevel: only whole words of the
 * vocabulary. Wu et al., "Google's Neural Machine Translation System", arXiv 1609.08144. */
#include "tokenizer/tokenizer.h"

#include <string.h>

struct wordpiece {
    struct text prefix;
    int64_t longest; /* characters of a word */
    bool words;      /* WordLevel */
};

static int64_t characters(struct text t)
{
    int64_t n = 0;
    for (size_t i = 0; i < t.n; n++)
        (void)text_next(t, &i);
    return n;
}

static struct text with_prefix(struct text prefix, struct text t, char *room)
{
    memcpy(room, prefix.at, prefix.n);
    memcpy(room + prefix.n, t.at, t.n);
    return (struct text){room, prefix.n + t.n};
}

/* The longest token at the start of the rest of the word; *to: its end. */
static int64_t longest_token(const struct token_model *m, struct text word, size_t from, size_t *to, char *room)
{
    const struct wordpiece *w = m->own;
    for (size_t end = word.n, start; end > from; end = start) {
        struct text part = {word.at + from, end - from};
        int64_t id = vocab_id(m->vocab, from ? with_prefix(w->prefix, part, room) : part);
        if (id >= 0) {
            *to = end;
            return id;
        }
        (void)text_before(word, end, &start);
    }
    return -1;
}

static void wordpiece_apply(const struct token_model *m, struct arena *a, struct text word, struct token_ids *out)
{
    const struct wordpiece *w = m->own;
    int before = out->list.n;
    char *room = arena_array(a, w->prefix.n + word.n + 1, 1);
    bool known = characters(word) <= w->longest;
    for (size_t at = 0; known && at < word.n;) {
        int64_t id = longest_token(m, word, at, &at, room);
        known = id >= 0;
        if (known)
            VEC_PUSH(a, &out->list, id);
    }
    if (known)
        return;
    out->list.n = before;
    VEC_PUSH(a, &out->list, m->unknown);
}

static void wordlevel_apply(const struct token_model *m, struct arena *a, struct text word, struct token_ids *out)
{
    int64_t id = vocab_id(m->vocab, word);
    VEC_PUSH(a, &out->list, id >= 0 ? id : m->unknown);
}

void wordpiece_read(struct token_model *m, struct arena *a, const char *where, const json_t *v)
{
    struct wordpiece *w = NEW(a, struct wordpiece);
    const json_t *longest = json_object_get(v, "max_input_chars_per_word");
    const char *unknown = member_string(where, v, "unk_token", "[UNK]");
    model_read_vocab(m, a, where, v);
    w->prefix = text_of(arena_strdup(a, member_string(where, v, "continuing_subword_prefix", "##")));
    w->longest = json_is_integer(longest) ? json_integer_value(longest) : 100;
    w->words = strcmp(member_string(where, v, "type", "WordPiece"), "WordLevel") == 0;
    m->unknown = vocab_id(m->vocab, text_of(unknown));
    if (m->unknown < 0)
        fail("%s: the vocabulary has no '%s' for unknown words", where, unknown);
    m->own = w;
    m->apply = w->words ? wordlevel_apply : wordpiece_apply;
}
