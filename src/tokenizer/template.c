/* template: special tokens before and after a text (post_processor). */
#include "tokenizer/tokenizer.h"

#include <string.h>

struct token_template {
    struct token_ids before, behind;
};

static void put_all(struct arena *a, struct token_ids *to, const struct token_ids *ids)
{
    for (int i = 0; i < ids->list.n; i++)
        VEC_PUSH(a, &to->list, ids->list.at[i]);
}

/* "special_tokens": {"<s>": {"ids": [1]}} */
static void put_special(struct arena *a, const char *where, const json_t *v, const char *name, struct token_ids *to)
{
    const json_t *ids = json_object_get(json_object_get(json_object_get(v, "special_tokens"), name), "ids");
    size_t i;
    json_t *id;
    if (!json_is_array(ids))
        fail("%s: the template names '%s', which its special tokens lack", where, name);
    json_array_foreach((json_t *)(uintptr_t)ids, i, id)
    {
        if (!json_is_integer(id))
            fail("%s: special token '%s' has no id", where, name);
        VEC_PUSH(a, &to->list, json_integer_value(id));
    }
}

static void read_single(struct token_template *t, struct arena *a, const char *where, const json_t *v)
{
    bool behind = false;
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(v, "single"), i, part)
    {
        const json_t *special = json_object_get(part, "SpecialToken");
        if (special)
            put_special(a, where, v, member_string(where, special, "id", ""), behind ? &t->behind : &t->before);
        else if (behind)
            fail("%s: the template has the text twice", where);
        else
            behind = true;
    }
}

/* ["</s>", 2] */
static void put_pair(struct arena *a, const char *where, const json_t *v, const char *key, struct token_ids *to)
{
    const json_t *id = json_array_get(json_object_get(v, key), 1);
    if (!json_is_integer(id))
        fail("%s: the post-processor has no '%s'", where, key);
    VEC_PUSH(a, &to->list, json_integer_value(id));
}

/* Later members of a sequence are further out. */
static void read_processors(struct token_template *t, struct arena *a, const char *where, const json_t *v)
{
    size_t i;
    json_t *part;
    json_array_foreach(json_object_get(v, "processors"), i, part)
    {
        struct token_template *outer = template_read(a, where, part);
        struct token_ids before = {0};
        put_all(a, &before, &outer->before);
        put_all(a, &before, &t->before);
        t->before = before;
        put_all(a, &t->behind, &outer->behind);
    }
}

struct token_template *template_read(struct arena *a, const char *where, const json_t *v)
{
    struct token_template *t = NEW(a, struct token_template);
    if (!v || json_is_null(v))
        return t;
    const char *type = member_type(where, "post-processor", v);
    if (strcmp(type, "TemplateProcessing") == 0) {
        read_single(t, a, where, v);
    } else if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        put_pair(a, where, v, "cls", &t->before);
        put_pair(a, where, v, "sep", &t->behind);
    } else if (strcmp(type, "Sequence") == 0) {
        read_processors(t, a, where, v);
    } else if (strcmp(type, "ByteLevel") != 0) { /* ByteLevel only moves offsets, which tpc does not use */
        member_unsupported(where, "post-processor", type);
    }
    return t;
}

struct token_ids template_apply(const struct token_template *t, struct arena *a, const struct token_ids *ids)
{
    struct token_ids out = {0};
    put_all(a, &out, &t->before);
    put_all(a, &out, ids);
    put_all(a, &out, &t->behind);
    return out;
}
