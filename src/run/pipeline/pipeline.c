/* pipeline: forms the communicators of the stages, and passes values on. All values that a stage sends to another are one message, behind
 * its length: of each its type and sizes, then its bytes; strings, whose numbers are those of one process, as texts. */
#include "run/pipeline/pipeline.h"

#include "ir/rank_meta.h"

#include <stdlib.h>
#include <string.h>

/* A value between the own stage and another. */
struct passed {
    int stage, end; /* the other; which input or output */
    const char *name;
};
struct pair {
    int low, high;
    struct comm *comm; /* of two ranks, or of one that is in neither stage */
    struct buffer message;
};
struct pipeline {
    struct arena *arena;
    struct comm *all, *stage;
    int number, stages;
    const char *path;
    VEC(struct passed) in, out;
    VEC(struct pair) pairs;
    struct comm *first;    /* the first rank of each stage; of other ranks, themselves */
    struct arena *strings; /* of the values of this run */
};

/* ---- which values ------------------------------------------------------------------------------------------------------------------- */

static int by_stage(const void *a, const void *b)
{
    const struct passed *x = a, *y = b;
    return x->stage != y->stage ? x->stage - y->stage : strcmp(x->name, y->name);
}

static void find_passed(struct pipeline *p, struct graph *g)
{
    for (int i = 0; i < g->inputs.n; i++) {
        const char *name = g->inputs.at[i]->name;
        int from = rank_meta_sender(g, name);
        if (from >= p->number)
            fail("%s: stage %d gets '%s' from stage %d, expected an earlier one", p->path, p->number, name, from);
        if (from >= 0)
            VEC_PUSH(p->arena, &p->in, ((struct passed){from, i, name}));
    }
    for (int i = 0; i < g->outputs.n; i++) {
        const char *name = g->outputs.at[i]->name;
        for (int k = 0, to; (to = rank_meta_reader(g, name, k)) >= 0; k++) {
            if (to <= p->number)
                fail("%s: stage %d sends '%s' to stage %d, expected a later one", p->path, p->number, name, to);
            VEC_PUSH(p->arena, &p->out, ((struct passed){to, i, name}));
        }
    }
    if (p->in.n)
        qsort(p->in.at, (size_t)p->in.n, sizeof *p->in.at, by_stage);
    if (p->out.n)
        qsort(p->out.at, (size_t)p->out.n, sizeof *p->out.at, by_stage);
}

/* ---- do the stages agree? ------------------------------------------------------------------------------------------------------------ */

static const char comparing[] = "comparison of what stages send";

/* What a rank sends, an entry each: the stage, the length of the name, and the name. */
static const char *list_sent(struct pipeline *p)
{
    const char *text = "";
    EACH (const struct passed, v, p->out) {
        text = arena_printf(p->arena, "%s%d %zu %s", text, v->stage, strlen(v->name), v->name);
    }
    return text;
}

struct sent {
    int stage, length;
    const char *name;
};

/* False: there are no more. */
static bool next_sent(const struct pipeline *p, const char **text, struct sent *out)
{
    char *end = NULL;
    if (!**text)
        return false;
    out->stage = (int)strtol(*text, &end, 10);
    out->length = (int)strtol(end, &end, 10);
    require(out->stage >= 0 && out->stage < p->stages && *end == ' ');
    out->name = end + 1;
    *text = out->name + out->length;
    return true;
}

static bool is_named(const struct passed *v, const struct sent *s)
{
    return (int)strlen(v->name) == s->length && strncmp(v->name, s->name, (size_t)s->length) == 0;
}

/* The entries of one sender against what this rank expects of it: both are in the same order. */
static void compare_sent(const struct pipeline *p, int from, const char *text)
{
    struct sent s;
    int at = 0;
    while (at < p->in.n && p->in.at[at].stage < from)
        at++;
    while (next_sent(p, &text, &s)) {
        if (s.stage != p->number)
            continue;
        const struct passed *v = at < p->in.n && p->in.at[at].stage == from ? &p->in.at[at++] : NULL;
        if (!v || !is_named(v, &s))
            fail("%s: stage %d sends '%.*s', where stage %d expects %s%s%s", p->path, from, s.length, s.name, p->number, v ? "'" : "",
                 v ? v->name : "nothing", v ? "'" : "");
    }
    if (at < p->in.n && p->in.at[at].stage == from)
        fail("%s: stage %d expects '%s' of stage %d, which does not send it", p->path, p->number, p->in.at[at].name, from);
}

/* Fails on a rank whose stage others do not know as this one does. talks: by two stages, one sends to the other. */
static void agree(struct pipeline *p, bool *talks)
{
    int64_t *bytes, at = 0;
    int ranks = p->all->size / p->stages;
    const char *all = comm_gather_texts(p->all, p->arena, comparing, list_sent(p), &bytes);
    for (int r = 0; r < p->all->size; r++) {
        const char *text = arena_strndup(p->arena, all + at, (size_t)bytes[r]);
        struct sent s;
        at += bytes[r];
        if (r / ranks < p->number && r % ranks == p->all->rank % ranks)
            compare_sent(p, r / ranks, text);
        while (next_sent(p, &text, &s))
            talks[r / ranks * p->stages + s.stage] = true;
    }
    p->all->barrier(p->all);
}

/* ---- communicators ------------------------------------------------------------------------------------------------------------------- */

static void form_pair(struct pipeline *p, int low, int high)
{
    int ranks = p->all->size / p->stages, color = p->all->rank % ranks;
    if (p->number != low && p->number != high)
        color = ranks + p->all->rank;
    VEC_PUSH(p->arena, &p->pairs, ((struct pair){low, high, p->all->split(p->all, color), {0}}));
}

struct pipeline *pipeline_form(struct arena *a, struct comm *all, struct graph *g)
{
    if (!g->rank_meta || g->rank_meta->stages < 2)
        return NULL;
    struct pipeline *p = NEW(a, struct pipeline);
    *p = (struct pipeline){.arena = a, .all = all, .stages = g->rank_meta->stages, .number = g->rank_meta->stage, .path = graph_file(g)};
    require(all->size % p->stages == 0 && all->size / p->stages == g->ranks);
    p->strings = arena_new();
    bool *talks = NEWN(a, bool, p->stages * p->stages);
    find_passed(p, g);
    agree(p, talks);
    p->stage = all->split(all, p->number);
    p->first = all->split(all, p->stage->rank == 0 ? 0 : 1 + all->rank);
    for (int i = 0; i < p->stages; i++)
        for (int j = i + 1; j < p->stages; j++)
            if (talks[i * p->stages + j])
                form_pair(p, i, j);
    return p;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    for (int i = p->pairs.n - 1; i >= 0; i--) {
        p->pairs.at[i].comm->free(p->pairs.at[i].comm);
        buffer_free(&p->pairs.at[i].message);
    }
    p->first->free(p->first);
    p->stage->free(p->stage);
    arena_free(p->strings);
}

struct comm *pipeline_stage(const struct pipeline *p)
{
    return p->stage;
}

static struct pair *pair_with(const struct pipeline *p, int stage)
{
    int low = stage < p->number ? stage : p->number, high = stage < p->number ? p->number : stage;
    EACH (struct pair, k, p->pairs) {
        if (k->low == low && k->high == high)
            return k;
    }
    bug("stages %d and %d have no communicator", low, high);
}

/* ---- values -------------------------------------------------------------------------------------------------------------------------- */

enum { ALIGNED = 64 };
struct head {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK], bytes;
};

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* From one rank to another; `at` is where the block lies or goes. */
static void pass_block(struct comm *c, int from, int to, void *at, int64_t bytes)
{
    for (int r = 0; r < c->size; r++) {
        c->send[r] = (struct block){at, c->rank == from && r == to ? bytes : 0};
        c->recv[r] = (struct block){at, c->rank == to && r == from ? bytes : 0};
    }
    c->alltoall(c);
}

/* A tensor with what is sent of it. */
struct packed {
    struct head head;
    const char *data;
};

static struct packed pack(struct arena *tmp, const struct tensor *t)
{
    struct packed p = {.head = {.dtype = t->dtype, .rank = t->rank, .bytes = (int64_t)tensor_bytes(t)}, .data = t->data};
    memcpy(p.head.dim, t->dim, sizeof p.head.dim);
    if (t->dtype == DT_STRING)
        p.data = tensor_texts(tmp, t, &p.head.bytes);
    return p;
}

/* name: of the first value, for messages. */
static void send_message(struct comm *c, int to, const char *name, struct buffer *message, int n, const struct tensor *const *at)
{
    struct arena *tmp = arena_new();
    struct packed *all = NEWN(tmp, struct packed, n + 1);
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        all[i] = pack(tmp, at[i]);
        bytes += aligned(sizeof(struct head)) + aligned(all[i].head.bytes);
    }
    char *to_at = buffer_reserve(message, (size_t)bytes + 1);
    for (int i = 0; i < n; i++) {
        memcpy(to_at, &all[i].head, sizeof(struct head));
        to_at += aligned(sizeof(struct head));
        if (all[i].head.bytes)
            memcpy(to_at, all[i].data, (size_t)all[i].head.bytes);
        to_at += aligned(all[i].head.bytes);
    }
    c->id = 0;
    c->name = name;
    pass_block(c, c->rank, to, &bytes, sizeof bytes);
    pass_block(c, c->rank, to, message->at, bytes);
    arena_free(tmp);
}

/* A value that lies in a message, and strings in the arena; *at: behind it. */
static struct tensor unpack(struct arena *a, const char *name, char **at)
{
    struct head h;
    memcpy(&h, *at, sizeof h);
    struct tensor t = {.dtype = h.dtype, .rank = h.rank};
    memcpy(t.dim, h.dim, sizeof t.dim);
    t.data = *at + aligned(sizeof h);
    *at += aligned(sizeof h) + aligned(h.bytes);
    const char *texts = t.data;
    if (t.dtype == DT_STRING)
        t.data = arena_alloc(a, tensor_bytes(&t) + 1);
    if (t.dtype == DT_STRING ? !tensor_take_texts(&t, texts, h.bytes) : h.bytes != (int64_t)tensor_bytes(&t))
        bug("'%s': another stage sent something else than it has", name);
    return t;
}

static char *take_message(struct comm *c, int from, const char *name, struct buffer *message)
{
    int64_t bytes = 0;
    c->id = 0;
    c->name = name;
    pass_block(c, from, c->rank, &bytes, sizeof bytes);
    char *at = buffer_reserve(message, (size_t)bytes + 1);
    pass_block(c, from, c->rank, at, bytes);
    return at;
}

bool pipeline_sends(const struct pipeline *p, int output)
{
    EACH (const struct passed, v, p->out) {
        if (v->end == output)
            return true;
    }
    return false;
}

/* How many values from this one on go to or come from the same stage. */
static int same_stage(const struct passed *v, const struct passed *end)
{
    int n = 1;
    while (v + n < end && v[n].stage == v->stage)
        n++;
    return n;
}

void pipeline_receive(struct pipeline *p, struct tensor *inputs)
{
    arena_reset(p->strings);
    for (int i = 0; i < p->in.n;) {
        const struct passed *v = &p->in.at[i];
        struct pair *pair = pair_with(p, v->stage);
        int n = same_stage(v, p->in.at + p->in.n);
        char *at = take_message(pair->comm, 0, v->name, &pair->message);
        for (int k = 0; k < n; k++)
            inputs[v[k].end] = unpack(p->strings, v[k].name, &at);
        i += n;
    }
}

void pipeline_send(struct pipeline *p, const struct tensor *outputs)
{
    struct arena *tmp = arena_new();
    const struct tensor **at = NEWN(tmp, const struct tensor *, p->out.n + 1);
    for (int i = 0; i < p->out.n;) {
        const struct passed *v = &p->out.at[i];
        struct pair *pair = pair_with(p, v->stage);
        int n = same_stage(v, p->out.at + p->out.n);
        for (int k = 0; k < n; k++)
            at[k] = &outputs[v[k].end];
        send_message(pair->comm, 1, v->name, &pair->message, n, at);
        i += n;
    }
    arena_free(tmp);
}

/* The others take part in the exchanges, and get nothing. */
static void let_pass(struct comm *c, const char *name)
{
    c->id = 0;
    c->name = name;
    pass_block(c, -1, -1, NULL, 0);
    pass_block(c, -1, -1, NULL, 0);
}

struct tensor pipeline_to_first(struct pipeline *p, struct arena *a, const char *name, int stage, const struct tensor *own)
{
    struct tensor t = p->number == stage ? *own : (struct tensor){0};
    struct buffer message = {0};
    if (p->stage->rank > 0 || stage == 0)
        return t;
    if (p->number == stage) {
        send_message(p->first, 0, name, &message, 1, &own);
    } else if (p->number == 0) {
        char *at = take_message(p->first, stage, name, &message);
        t = unpack(a, name, &at);
        if (t.dtype != DT_STRING)
            t.data = memcpy(arena_alloc(a, tensor_bytes(&t) + 1), t.data, tensor_bytes(&t));
    } else {
        let_pass(p->first, name);
    }
    buffer_free(&message);
    return t;
}
