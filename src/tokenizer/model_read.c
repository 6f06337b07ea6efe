/* model_read: the model of a tokenizer: what turns a piece of text into tokens, of one of these kinds. */
#include "tokenizer/tokenizer.h"

static const struct model_kind {
    const char *type;
    void (*read)(struct token_model *, struct arena *, const char *where, const json_t *);
} kinds[] = {{"BPE", bpe_read}, {"Unigram", unigram_read}, {"WordPiece", wordpiece_read}, {"WordLevel", wordpiece_read}};

/* Files from before 2020 lack a type: a model's members tell it. */
static const char *model_type(const char *where, const json_t *v)
{
    if (!json_object_get(v, "type"))
        return json_object_get(v, "merges") ? "BPE" : json_object_get(v, "unk_id") ? "Unigram" : "WordPiece";
    return member_type(where, "model", v);
}

struct token_model *model_read(struct arena *a, const char *where, const json_t *v)
{
    if (!json_is_object(v))
        fail("%s: has no model", where);
    const struct model_kind *kind = &kinds[MEMBER_KIND(where, "model", model_type(where, v), kinds)];
    struct token_model *m = NEW(a, struct token_model);
    *m = (struct token_model){.vocab = vocab_new(a), .unknown = -1};
    kind->read(m, a, where, v);
    return m;
}
