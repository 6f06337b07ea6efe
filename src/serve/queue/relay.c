/* relay: the message with which rank 0 of a supervised job describes its model. */
#include "serve/queue/queue.h"

#include <string.h>

static void put_number(struct message_text *t, int64_t n)
{
    message_put(t, &n, sizeof n);
}

/* Its length plus one, then its bytes; 0: NULL. */
static void put_string(struct message_text *t, const char *s)
{
    put_number(t, s ? (int64_t)strlen(s) + 1 : 0);
    message_put(t, s ? s : "", s ? strlen(s) + 1 : 0);
}

static const char *take_string(struct cursor *c, struct arena *a)
{
    int64_t n = cursor_count(c, 1);
    char *s = cursor_copy(c, a, (size_t)n);
    if (n)
        s[n - 1] = '\0';
    return n ? s : NULL;
}

void relay_put_facts(struct message_text *t, const struct service *s)
{
    const int64_t number[] = {s->vocabulary, s->context, s->longest, s->slots, s->width, s->chooses, s->prompt_scores, s->ranks};
    message_put(t, number, sizeof number);
    message_put(t, &s->usual, sizeof s->usual);
    put_string(t, s->no_texts);
    put_string(t, s->no_embeddings);
    put_string(t, s->embeds);
    put_string(t, s->alone);
    put_string(t, s->transport);
}

bool relay_take_facts(struct cursor *c, struct arena *a, struct service *s)
{
    s->vocabulary = cursor_number(c);
    s->context = cursor_number(c);
    s->longest = cursor_number(c);
    s->slots = cursor_number(c);
    s->width = cursor_number(c);
    s->chooses = cursor_number(c);
    s->prompt_scores = cursor_number(c);
    s->ranks = cursor_number(c);
    cursor_read(c, &s->usual, sizeof s->usual);
    s->no_texts = take_string(c, a);
    s->no_embeddings = take_string(c, a);
    s->embeds = take_string(c, a);
    s->alone = take_string(c, a);
    s->transport = take_string(c, a);
    return !c->bad && s->slots >= 0 && s->slots <= SERVE_SLOTS;
}
