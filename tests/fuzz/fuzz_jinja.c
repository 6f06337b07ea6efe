/* Text of any bytes as a chat template, rendered for a conversation whose contents are characters that the text lacks: those that come out
 * are marked, each of them. */
#include "jinja/jinja.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"\xee\x80\x80 \xee\x80\x81\"},"
    "{\"role\": \"user\", \"content\": \"\xee\x80\x82\\n\"},"
    "{\"role\": \"assistant\", \"content\": \"\xee\x80\x83\", \"tool_calls\": [{\"function\": {\"name\": \"\xee\x80\x84\", \"arguments\": "
    "{\"\xee\x80\x85\": [1, 2.5, null, true]}}}]}], \"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"\xee\x80\x86\"}}],"
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"add_generation_prompt\": true}";

static bool is_marked(const struct jinja_text *t, size_t at)
{
    for (int i = 0; i < t->ranges; i++)
        if (at >= t->untrusted[i].from && at < t->untrusted[i].to)
            return true;
    return false;
}

/* Ranges are in order, apart and within the text, and what comes from the conversation is in one. */
static void check(const struct jinja_text *t, bool foreign)
{
    for (int i = 0; i < t->ranges; i++)
        require(t->untrusted[i].from < t->untrusted[i].to && t->untrusted[i].to <= t->n &&
                (i == 0 || t->untrusted[i].from > t->untrusted[i - 1].to));
    for (size_t i = 0; i < t->n && foreign; i++)
        require((unsigned char)t->at[i] != 0xee || is_marked(t, i));
}

void fuzz_one(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_new();
    struct jinja_fault fault;
    struct jinja_text out;
    struct jinja *t = jinja_parse(arena, (const char *)data, size, &fault);
    if (t) {
        const char *const untrusted[] = {"messages", "tools", NULL};
        json_t *variables = json_loads(conversation, 0, NULL);
        require(variables != NULL);
        /* an escape, or the character itself, may stand in the template */
        bool foreign = size == 0 || (!memchr(data, '\\', size) && !memchr(data, 0xee, size));
        if (jinja_render(t, arena, variables, untrusted, &out, &fault))
            check(&out, foreign);
        json_decref(variables);
    }
    arena_free(arena);
}
