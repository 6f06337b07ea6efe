/* embeddings: requests for embeddings, between the reader, the engine and HTTP. Texts of one request run together if possible, sorted by
 * length. */
#include "serve/queue/queue.h"
#include "serve/reply/reply.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the queue ---- */

struct by_length {
    int64_t length, text;
};

static int longer_first(const void *x, const void *y)
{
    const struct by_length *p = x, *q = y;
    if (p->length != q->length)
        return p->length > q->length ? -1 : 1;
    return p->text < q->text ? -1 : p->text > q->text;
}

static void order_texts(struct call *c)
{
    struct embeddings *m = c->embeddings;
    struct arena *tmp = arena_new();
    struct by_length *all = NEWN(tmp, struct by_length, m->n);
    for (int64_t i = 0; i < m->n; i++)
        all[i] = (struct by_length){m->text[i].list.n, i};
    qsort(all, (size_t)m->n, sizeof *all, longer_first);
    m->order = NEWN(c->arena, int64_t, m->n);
    for (int64_t i = 0; i < m->n; i++)
        m->order[i] = all[i].text;
    arena_free(tmp);
}

static void put_last(struct service *s, struct call *c)
{
    if (s->last_to_embed)
        s->last_to_embed->next_to_embed = c;
    else
        s->first_to_embed = c;
    s->last_to_embed = c;
    s->to_embed++;
}

bool embeddings_put(struct call *c)
{
    struct service *s = c->service;
    struct embeddings *m = c->embeddings;
    if (s->to_embed + s->waiting >= SERVE_WAITING)
        return false;
    order_texts(c);
    m->vector = NEWN(c->arena, float, m->n * s->width);
    c->open = m->n;
    for (int64_t i = 0; i < m->n; i++)
        s->counts.prompt_tokens += m->text[i].list.n;
    put_last(s, c);
    pthread_cond_signal(&s->wake);
    return true;
}

static void take_first(struct service *s)
{
    s->first_to_embed = s->first_to_embed->next_to_embed;
    if (!s->first_to_embed)
        s->last_to_embed = NULL;
    s->to_embed--;
}

struct embed_batch embeddings_next(struct service *s)
{
    struct embed_batch b = {.call = s->first_to_embed};
    if (!b.call)
        return b;
    struct embeddings *m = b.call->embeddings;
    int64_t most = embed_together(s->embedder, m->text[m->order[m->begun]].list.n);
    while (b.n < most && m->begun < m->n)
        b.text[b.n++] = m->order[m->begun++];
    if (m->begun == m->n)
        take_first(s);
    return b;
}

struct call *embeddings_take(struct service *s)
{
    struct call *c = s->first_to_embed;
    if (!c)
        return NULL;
    c->embeddings->begun = c->embeddings->n;
    take_first(s);
    return c;
}

void embeddings_put_back(struct call *c)
{
    struct service *s = c->service;
    c->embeddings->begun = 0;
    c->next_to_embed = s->first_to_embed;
    s->first_to_embed = c;
    if (!s->last_to_embed)
        s->last_to_embed = c;
    s->to_embed++;
}

void embeddings_done(const struct embed_batch *b, const float *vectors)
{
    struct call *c = b->call;
    int64_t width = c->service->width;
    for (int64_t i = 0; i < b->n; i++) {
        memcpy(c->embeddings->vector + b->text[i] * width, vectors + i * width, (size_t)width * sizeof *vectors);
        if (isnan(vectors[i * width]) && !c->refused) {
            c->refused = arena_printf(c->arena, "the model's numbers for text %lld have no direction: they are all 0, or not finite",
                                      (long long)b->text[i]);
            c->status = MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
    }
    call_embedded(c, b->n);
}

void embeddings_drop(struct service *s, bool all)
{
    struct call *list = s->first_to_embed;
    double now = clock_seconds();
    s->first_to_embed = s->last_to_embed = NULL;
    s->to_embed = 0;
    for (struct call *c = list, *next; c; c = next) {
        struct embeddings *m = c->embeddings;
        next = c->next_to_embed;
        c->next_to_embed = NULL;
        bool late = m->begun == 0 && now - c->began > SERVE_WAIT_SECONDS;
        if (!c->gone && !all && !late) {
            put_last(s, c);
            continue;
        }
        if (!c->gone) {
            c->status = MHD_HTTP_SERVICE_UNAVAILABLE;
            c->refused = all ? "the server ends" : "other requests took too long";
        }
        call_embedded(c, m->n - m->begun);
    }
}

/* ---- the reply ---- */

/* A shortened vector is normalised again. */
static void shorten(float *v, int64_t n)
{
    double squares = 0;
    for (int64_t i = 0; i < n; i++)
        squares += (double)v[i] * v[i];
    for (int64_t i = 0; i < n && squares > 0; i++)
        v[i] = (float)(v[i] / sqrt(squares));
}

static void put(struct text_builder *b, const char *text)
{
    text_put(b, text, strlen(text));
}

/* The shortest decimal that reads back as the same float. */
static void put_numbers(struct text_builder *b, const float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        char number[32];
        int k = snprintf(number, sizeof number, "%s%.9g", i ? "," : "[", (double)v[i]);
        text_put(b, number, (size_t)k);
    }
    put(b, "]");
}

/* Byte i of 4-byte numbers, little-endian. */
static unsigned byte_of(const float *v, int64_t i)
{
    uint32_t bits;
    memcpy(&bits, &v[i / 4], sizeof bits);
    return bits >> 8 * (i % 4) & 255;
}

static void put_base64(struct text_builder *b, const float *v, int64_t n)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    put(b, "\"");
    for (int64_t i = 0; i < 4 * n; i += 3) {
        int64_t left = 4 * n - i;
        unsigned bits = byte_of(v, i) << 16 | (left > 1 ? byte_of(v, i + 1) << 8 : 0) | (left > 2 ? byte_of(v, i + 2) : 0);
        char four[4] = {digit[bits >> 18], digit[bits >> 12 & 63], left > 1 ? digit[bits >> 6 & 63] : '=',
                        left > 2 ? digit[bits & 63] : '='};
        text_put(b, four, 4);
    }
    put(b, "\"");
}

static void put_vector(struct text_builder *b, struct call *c, int64_t i)
{
    const struct embeddings *m = c->embeddings;
    int64_t width = c->service->width;
    float *v = m->vector + i * width;
    if (m->dimensions < width)
        shorten(v, m->dimensions);
    put(b, arena_printf(b->arena, "%s{\"object\":\"embedding\",\"index\":%lld,\"embedding\":", i ? "," : "", (long long)i));
    (m->base64 ? put_base64 : put_numbers)(b, v, m->dimensions);
    put(b, "}");
}

const char *embeddings_reply(struct call *c)
{
    struct text_builder b = {.arena = c->arena};
    int64_t tokens = 0;
    json_t *model = reply_text(text_of(c->service->model));
    const char *name = json_dump(c->arena, model, JSON_ENCODE_ANY | JSON_COMPACT);
    put(&b, "{\"object\":\"list\",\"data\":[");
    for (int64_t i = 0; i < c->embeddings->n; i++) {
        tokens += c->embeddings->text[i].list.n;
        put_vector(&b, c, i);
    }
    put(&b,
        arena_printf(c->arena, "],\"model\":%s,\"usage\":{\"prompt_tokens\":%lld,\"total_tokens\":%lld}}", name, (long long)tokens,
                     (long long)tokens));
    text_put(&b, "", 1);
    json_decref(model);
    return text_built(&b).at;
}
