/* pipeline: makes the communicators of the stages, and sends values between them. All values that a stage sends to another in a run are one
 * message: the type and sizes of each, then its bytes; strings are sent as texts, because their numbers are valid in one process only. */
#include "run/pipeline/pipeline.h"

#include "ir/rank_meta.h"

#include <stdlib.h>
#include <string.h>

/* A value sent between this stage and another. */
struct passed {
    int stage, end; /* the other stage; which input or output */
    const char *name;
    bool adds; /* sent with the last microbatch of a step, as the sum over all */
};
/* The values that another stage sends this one. */
struct from_stage {
    struct buffer message;
    bool over; /* it has abandoned its runs so far */
};
struct pipeline_values {
    struct buffer *message; /* by stage */
    struct arena *strings;
    int stages;
};
struct pipeline {
    struct arena *arena;
    struct comm *all, *stage;
    struct comm *messages; /* of all ranks */
    int number, stages;
    const char *path;
    VEC(struct passed) in, out;
    struct from_stage *from; /* by stage */
    struct buffer *sum;      /* by output: the sum to be sent */
    struct pipeline_traffic traffic;
    int outputs;
};

/* ---- which values ------------------------------------------------------------------------------------------------------------------- */

static int by_stage(const void *a, const void *b)
{
    const struct passed *x = a, *y = b;
    return x->stage != y->stage ? x->stage - y->stage : strcmp(x->name, y->name);
}

static void find_passed(struct pipeline *p, struct graph *g)
{
    int weights = graph_weight_inputs(g); /* sent between steps */
    for (int i = 0; i < g->inputs.n; i++) {
        const char *name = g->inputs.at[i]->name;
        int from = rank_meta_sender(g, name);
        if (from == p->number)
            fail("%s: stage %d gets '%s' from stage %d, expected another one", p->path, p->number, name, from);
        if (from >= 0 && i < weights)
            VEC_PUSH(p->arena, &p->in, ((struct passed){from, i, name, rank_meta_is_addend(g, name)}));
    }
    for (int i = 0; i < g->outputs.n; i++) {
        const char *name = g->outputs.at[i]->name;
        for (int k = 0, to; (to = rank_meta_reader(g, name, k)) >= 0; k++) {
            if (to == p->number)
                fail("%s: stage %d sends '%s' to stage %d, expected another one", p->path, p->number, name, to);
            VEC_PUSH(p->arena, &p->out, ((struct passed){to, i, name, rank_meta_is_addend(g, name)}));
        }
    }
    if (p->in.n)
        qsort(p->in.at, (size_t)p->in.n, sizeof *p->in.at, by_stage);
    if (p->out.n)
        qsort(p->out.at, (size_t)p->out.n, sizeof *p->out.at, by_stage);
}

/* ---- the stages agree ------------------------------------------------------------------------------------------------------------ */

static const char comparing[] = "comparison of what stages send";

/* The list of a rank's messages: per entry the stage, the length of the name, and the name. */
static const char *list_sent(struct pipeline *p)
{
    const char *text = "";
    EACH (const struct passed, v, p->out) {
        text = arena_printf(p->arena, "%s%d %d %zu %s", text, v->stage, v->adds, strlen(v->name), v->name);
    }
    return text;
}

struct sent {
    int stage, length;
    bool adds;
    const char *name;
};

/* False: no more entries. */
static bool next_sent(const struct pipeline *p, const char **text, struct sent *out)
{
    char *end = NULL;
    if (!**text)
        return false;
    out->stage = (int)strtol(*text, &end, 10);
    out->adds = strtol(end, &end, 10) != 0;
    out->length = (int)strtol(end, &end, 10);
    require(out->stage >= 0 && out->stage < p->stages && *end == ' ');
    out->name = end + 1;
    *text = out->name + out->length;
    return true;
}

static bool is_named(const struct passed *v, const struct sent *s)
{
    return v->adds == s->adds && (int)strlen(v->name) == s->length && strncmp(v->name, s->name, (size_t)s->length) == 0;
}

/* Compares the entries of one sender with what this rank expects from it: both are in the same order. */
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

/* Fails if other stages do not agree with this one. */
static void agree(struct pipeline *p)
{
    int64_t *bytes, at = 0;
    int ranks = p->all->size / p->stages;
    const char *all = comm_gather_texts(p->all, p->arena, comparing, list_sent(p), &bytes);
    for (int r = 0; r < p->all->size; r++) {
        const char *text = arena_strndup(p->arena, all + at, (size_t)bytes[r]);
        at += bytes[r];
        if (r / ranks != p->number && r % ranks == p->all->rank % ranks)
            compare_sent(p, r / ranks, text);
    }
    p->all->barrier(p->all);
}

/* ---- communicators ------------------------------------------------------------------------------------------------------------------- */

struct pipeline *pipeline_form(struct arena *a, struct comm *all, struct graph *g)
{
    if (!g->rank_meta || g->rank_meta->stages < 2)
        return NULL;
    struct pipeline *p = NEW(a, struct pipeline);
    *p = (struct pipeline){.arena = a, .all = all, .stages = g->rank_meta->stages, .number = g->rank_meta->stage, .path = graph_file(g)};
    require(all->size % p->stages == 0 && all->size / p->stages == g->ranks);
    p->from = NEWN(a, struct from_stage, p->stages);
    p->outputs = g->outputs.n;
    p->sum = NEWN(a, struct buffer, g->outputs.n + 1);
    find_passed(p, g);
    agree(p);
    p->messages = all->split(all, 0);
    p->stage = all->split(all, p->number);
    return p;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    p->stage->free(p->stage);
    p->messages->free(p->messages);
    for (int i = 0; i < p->stages; i++)
        buffer_free(&p->from[i].message);
    for (int i = 0; i < p->outputs; i++)
        buffer_free(&p->sum[i]);
}

struct comm *pipeline_stage(const struct pipeline *p)
{
    return p->stage;
}

int pipeline_number(const struct pipeline *p)
{
    return p->number;
}

int pipeline_stages(const struct pipeline *p)
{
    return p->stages;
}

bool pipeline_polls(const struct pipeline *p)
{
    return strcmp(p->all->kind, "mpi") == 0;
}

/* ---- messages ------------------------------------------------------------------------------------------------------------------------ */

enum { ALIGNED = 64 };
enum kind { VALUES, WORD, RESULT, GIVEN_UP };
static const char *const kinds[] = {"values", "a word", "a result", "the end of its runs"};

static int64_t aligned(int64_t bytes)
{
    return (bytes + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* The rank of a stage with which this one exchanges values. */
static int rank_of(const struct pipeline *p, int stage)
{
    int ranks = p->all->size / p->stages;
    return stage * ranks + p->all->rank % ranks;
}

static char *begin_message(struct arena *tmp, enum kind kind, int64_t bytes)
{
    char *at = arena_alloc(tmp, (size_t)(ALIGNED + bytes));
    memset(at, 0, ALIGNED);
    *at = (char)kind;
    return at;
}

static void send_small(struct pipeline *p, int rank, enum kind kind, const void *from, int64_t bytes)
{
    struct arena *tmp = arena_new();
    char *at = begin_message(tmp, kind, bytes);
    if (bytes)
        memcpy(at + ALIGNED, from, (size_t)bytes);
    p->messages->send_message(p->messages, rank, at, ALIGNED + bytes);
    arena_free(tmp);
}

/* The payload of a message after its kind, of *bytes, copied to `to`. name: what is waited for, for messages. */
static char *take_message(struct pipeline *p, int stage, enum kind kind, const char *name, struct buffer *to, int64_t *bytes)
{
    struct from_stage *from = &p->from[stage];
    p->messages->name = name;
    char *at = p->messages->receive_message(p->messages, rank_of(p, stage), to, bytes);
    from->over = from->over || *at == GIVEN_UP;
    if (from->over)
        fail("stage %d has given up this run", stage);
    if (*at != (char)kind)
        fail_job("stages are out of step: stage %d sends %s where stage %d expects %s, %s", stage, kinds[(int)*at], p->number, kinds[kind],
                 name);
    *bytes -= ALIGNED;
    return at + ALIGNED;
}

void pipeline_tell(struct pipeline *p, const void *at, int64_t bytes)
{
    for (int i = 1; i < p->stages; i++)
        send_small(p, rank_of(p, (p->number + i) % p->stages), WORD, at, bytes);
}

void pipeline_hear(struct pipeline *p, int stage, void *at, int64_t bytes)
{
    int64_t came;
    const char *from = take_message(p, stage, WORD, "what another stage tells", &p->from[stage].message, &came);
    if (came != bytes)
        fail_job("stage %d tells %lld bytes where stage %d expects %lld", stage, (long long)came, p->number, (long long)bytes);
    if (bytes)
        memcpy(at, from, (size_t)bytes);
}

void pipeline_settle(struct pipeline *p)
{
    for (int i = 0; i < p->stages; i++)
        if (i != p->number)
            send_small(p, rank_of(p, i), GIVEN_UP, NULL, 0);
    for (int i = 0; i < p->stages; i++) {
        struct from_stage *from = &p->from[i];
        int64_t bytes;
        p->messages->name = "the end of tried runs";
        while (i != p->number && !from->over)
            from->over = *(char *)p->messages->receive_message(p->messages, rank_of(p, i), &from->message, &bytes) == GIVEN_UP;
        from->over = false;
    }
}

/* ---- values -------------------------------------------------------------------------------------------------------------------------- */

struct head {
    enum dtype dtype;
    int rank;
    int64_t dim[MAX_RANK], bytes;
};

/* A tensor with its description in the message. */
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

static void send_values(struct pipeline *p, int rank, enum kind kind, int n, const struct tensor *const *at)
{
    struct arena *tmp = arena_new();
    struct packed *all = NEWN(tmp, struct packed, n + 1);
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) {
        all[i] = pack(tmp, at[i]);
        bytes += aligned(sizeof(struct head)) + aligned(all[i].head.bytes);
    }
    char *message = begin_message(tmp, kind, bytes), *to = message + ALIGNED;
    for (int i = 0; i < n; i++) {
        memcpy(to, &all[i].head, sizeof(struct head));
        to += aligned(sizeof(struct head));
        if (all[i].head.bytes)
            memcpy(to, all[i].data, (size_t)all[i].head.bytes);
        to += aligned(all[i].head.bytes);
    }
    p->messages->send_message(p->messages, rank, message, ALIGNED + bytes);
    p->traffic.sent += kind == VALUES ? bytes : 0;
    arena_free(tmp);
}

/* Unpacks a value in place, and strings to the arena; *at: advanced to the next. */
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

/* The number of values from this one on that the same stage sends or receives. */
static int same_stage(const struct passed *v, const struct passed *end)
{
    int n = 1;
    while (v + n < end && v[n].stage == v->stage)
        n++;
    return n;
}

struct pipeline_values *pipeline_values_new(struct arena *a, const struct pipeline *p)
{
    struct pipeline_values *v = NEW(a, struct pipeline_values);
    *v = (struct pipeline_values){NEWN(a, struct buffer, p->stages), arena_new(), p->stages};
    return v;
}

void pipeline_values_free(struct pipeline_values *v)
{
    for (int i = 0; v && i < v->stages; i++)
        buffer_free(&v->message[i]);
    if (v)
        arena_free(v->strings);
}

static bool is_later(const struct pipeline *p, const struct passed *v)
{
    return v->stage > p->number;
}

bool pipeline_receives_later(const struct pipeline *p, int input)
{
    EACH (const struct passed, v, p->in) {
        if (v->end == input)
            return is_later(p, v);
    }
    return false;
}

bool pipeline_sends(const struct pipeline *p, bool later, int output)
{
    EACH (const struct passed, v, p->out) {
        if (v->end == output && is_later(p, v) == later)
            return true;
    }
    return false;
}

bool pipeline_adds(const struct pipeline *p, bool received, int end)
{
    for (int i = 0; i < (received ? p->in.n : p->out.n); i++) {
        const struct passed *v = received ? &p->in.at[i] : &p->out.at[i];
        if (v->end == end)
            return v->adds;
    }
    return false;
}

struct buffer *pipeline_sum(struct pipeline *p, int output)
{
    return &p->sum[output];
}

/* The values, from this one on, that are exchanged with one stage now; *out: the number of all. */
static int going(struct arena *tmp, const struct passed *v, const struct passed *end, bool sums, const struct passed ***out, int *all)
{
    int n = 0;
    *all = same_stage(v, end);
    *out = NEWN(tmp, const struct passed *, *all);
    for (int i = 0; i < *all; i++)
        if (sums || !v[i].adds)
            (*out)[n++] = &v[i];
    return n;
}

void pipeline_receive(struct pipeline *p, bool later, bool sums, struct pipeline_values *to, struct tensor *inputs)
{
    struct arena *tmp = arena_new();
    if (!later)
        arena_reset(to->strings);
    for (int i = 0, all; i < p->in.n; i += all) {
        const struct passed **v;
        int n = going(tmp, &p->in.at[i], p->in.at + p->in.n, sums, &v, &all), stage = p->in.at[i].stage;
        int64_t bytes;
        if (n == 0 || is_later(p, v[0]) != later)
            continue;
        char *at = take_message(p, stage, VALUES, v[0]->name, &to->message[stage], &bytes);
        p->traffic.received += bytes;
        for (int k = 0; k < n; k++)
            inputs[v[k]->end] = unpack(to->strings, v[k]->name, &at);
    }
    arena_free(tmp);
}

void pipeline_send(struct pipeline *p, bool later, bool sums, const struct tensor *outputs)
{
    struct arena *tmp = arena_new();
    for (int i = 0, all; i < p->out.n; i += all) {
        const struct passed **v;
        int n = going(tmp, &p->out.at[i], p->out.at + p->out.n, sums, &v, &all);
        const struct tensor **at = NEWN(tmp, const struct tensor *, n + 1);
        for (int k = 0; k < n; k++)
            at[k] = &outputs[v[k]->end];
        if (n > 0 && is_later(p, v[0]) == later)
            send_values(p, rank_of(p, v[0]->stage), VALUES, n, at);
    }
    arena_free(tmp);
}

struct pipeline_traffic pipeline_traffic(const struct pipeline *p)
{
    return p->traffic;
}

void pipeline_send_tensor(struct pipeline *p, int stage, const struct tensor *t)
{
    send_values(p, rank_of(p, stage), RESULT, 1, &t);
}

struct tensor pipeline_take_tensor(struct pipeline *p, int stage, const char *name, struct arena *a)
{
    int64_t bytes;
    char *at = take_message(p, stage, RESULT, name, &p->from[stage].message, &bytes);
    return unpack(a, name, &at);
}

struct tensor pipeline_to_first(struct pipeline *p, struct arena *a, const char *name, int stage, const struct tensor *own)
{
    struct tensor t = p->number == stage ? *own : (struct tensor){0};
    if (p->stage->rank > 0 || stage == 0)
        return t;
    if (p->number == stage)
        pipeline_send_tensor(p, 0, own);
    if (p->number > 0)
        return t;
    t = pipeline_take_tensor(p, stage, name, a);
    if (t.dtype != DT_STRING)
        t.data = memcpy(arena_alloc(a, tensor_bytes(&t) + 1), t.data, tensor_bytes(&t));
    return t;
}
