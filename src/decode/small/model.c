/* model: a small model drafts tokens (--draft). It reads the kept tokens of the large one, and picks its own tokens after these with the
 * same draws.
 *
 * It may be a folder for fewer ranks than the large one's: then the first ranks run it, and the others wait for its tokens. */
#include "decode/small/small.h"

enum { MOST = 16, /* tokens per run */ FREE = 32, DEAR = 4096 /* prices that are not gone beyond */ };

struct small_model {
    struct drafter drafter;
    const char *path;
    struct comm *all, *few; /* ranks of the large model; those that run this one */
    bool runs;              /* this rank runs it */
    struct job_options options;
    struct stage *stage;
    struct follow follow;
    int64_t positions; /* most tokens of a text; less than 1: any number */
};

/* ---- drafts ---- */

/* At most as many tokens as it has positions for. */
static int64_t most_of(const struct small_model *m, const struct history *h, int64_t most)
{
    for (int64_t b = 0; m->positions > 0 && b < h->batch; b++) {
        int64_t left = m->positions - history_next_position(h, b);
        most = left < most ? left : most;
    }
    return most > 0 ? most : 0;
}

static void run(struct small_model *m, const struct history *h, const struct row_sampling *how, int64_t n, int64_t *to)
{
    struct arena *tmp = arena_new();
    int64_t *next = NEWN(tmp, int64_t, h->batch);
    follow_rows(&m->follow, h, MOST + 1);
    for (int64_t i = 0; i < n; i++) {
        follow_step(&m->follow, how, next);
        for (int64_t b = 0; b < h->batch; b++)
            to[b * n + i] = next[b];
    }
    arena_free(tmp);
}

static int64_t draft(struct drafter *d, const struct history *h, const struct row_sampling *how, const bool *free, int64_t most,
                     int64_t *to)
{
    struct small_model *m = (struct small_model *)d;
    int64_t n = most_of(m, h, most);
    (void)free;
    if (n && m->runs)
        run(m, h, how, n, to);
    if (n && m->few != m->all)
        comm_from_first(m->all, "drafted tokens", to, h->batch * n * (int64_t)sizeof *to);
    return n;
}

/* ---- supported texts ---- */

/* Whether some row has padding after tokens; *any: whether some row has padding. */
static bool is_padded_behind(const struct history *h, bool *any)
{
    bool behind = false;
    *any = false;
    for (int64_t b = 0; b < h->batch; b++)
        for (int64_t c = 0; c < h->length; c++) {
            bool seen = h->seen[b * h->room + c];
            *any = *any || !seen;
            behind = behind || (!seen && c && h->seen[b * h->room + c - 1]);
        }
    return behind;
}

static void check(struct drafter *d, const struct history *h)
{
    const struct small_model *m = (const struct small_model *)d;
    const char *node;
    bool any, own, behind = is_padded_behind(h, &any);
    if (h->past)
        fail("%s: --draft reads a text from its beginning, and of this one %lld columns are given without their tokens", m->path,
             (long long)h->past);
    if (!m->runs || !any)
        return;
    const char *why = prompt_padding(m->stage, &own, &node);
    if (*why || own != behind)
        fail("%s: --draft can't draft for rows of unequal length here: %s%s%s%s", m->path, node ? "node '" : "", node ? node : "",
             node ? "' " : "", *why ? why : "the large model pads rows on the other side");
}

/* ---- its beginning and end ---- */

static int64_t vocabulary_of(const struct stage *s)
{
    const struct type *t = &s->logits_type;
    int64_t n = s->vocabulary;
    if (!s->chosen && t->rank > 0)
        (void)dim_is_int(t->dim[t->rank - 1], &n);
    return n;
}

static void check_vocabulary(const struct small_model *m, const struct stage *large, const struct job_options *o)
{
    int64_t own = vocabulary_of(m->stage), other = vocabulary_of(large);
    if (own < 1 || other < 1)
        fail("%s: how many tokens it has is not known, and --draft needs those of the large model", own < 1 ? m->path : large->path);
    if (own != other)
        fail("%s: has %lld tokens, and %s has %lld: --draft needs a model with the same vocabulary", m->path, (long long)own, large->path,
             (long long)other);
    vocabulary_compare(o, &m->options, own);
}

/* It must read tokens, keep what it has read, and return logits. */
static void check_kind(const struct small_model *m)
{
    const struct stage *s = m->stage;
    if (s->pipeline)
        fail("%s: it is in pipeline stages, which --draft does not take yet", s->path);
    if (decode_find_input(s, ROLE_TOKENS) < 0 || !s->decides || !s->keeps)
        fail("%s: --draft is for one graph that reads tokens, makes tokens and has a KV cache", s->path);
}

/* It must be able to drop rejected drafts. */
static void try_graph(struct small_model *m, struct arena *a)
{
    struct stage *s = m->stage;
    const struct type *t = session_input_type(s->session, decode_find_input(s, ROLE_TOKENS));
    if (t->rank != 2 || t->dim[0]->kind != DIM_SYM)
        fail("%s: --draft needs a batch of any size", s->path);
    stage_place_given(a, s);
    const struct parts_found found = parts_try(a, m->few, s, t->dim[0]->name, &m->options, decode_vocabulary(a, s),
                                               s->positions > 0 ? s->positions : INT32_MAX);
    if (!found.agree || !found.columns)
        fail("%s: --draft drops tokens that were drafted in vain, which this graph can't do: %s", s->path, found.why);
}

/* For the ranks that run it: loads it like any model, with its own configuration files. */
static void load(struct small_model *m, struct arena *a, const struct stage *large, const struct job_options *o, int threads)
{
    struct stage *both = NEWN(a, struct stage, 2);
    both[0] = *large;
    both[1] = (struct stage){.path = m->path, .number = 1};
    m->stage = &both[1];
    stage_load(a, m->few, &m->options, m->stage);
    roles_find(a, m->few, m->stage, 1, &m->options);
    check_kind(m);
    positions_find(a, m->few, &m->options, m->stage);
    if (m->few->rank == 0)
        check_vocabulary(m, large, o);
    m->few->barrier(m->few);
    stage_prepare(a, m->few, &m->options, threads, both, 1);
    try_graph(m, a);
    m->follow = follow_new(m->stage);
    m->positions = m->stage->positions;
}

/* The time per token, in 1024ths of the large model's: both read their weights. */
static int64_t price_of(const struct small_model *m, const struct stage *large)
{
    double own = (double)job_weight_bytes(m->stage->graph), all = (double)job_weight_bytes(large->graph);
    double price = 1024 * (own + 1) / (all + 1);
    return price < FREE ? FREE : price > DEAR ? DEAR : (int64_t)price;
}

static int64_t bytes_of(const struct drafter *d, int64_t rows, int64_t tokens)
{
    const struct small_model *m = (const struct small_model *)d;
    return m->runs ? job_weight_bytes(m->stage->graph) + stage_cache_bytes(m->stage, rows, tokens) : 0;
}

static void end(struct drafter *d)
{
    struct small_model *m = (struct small_model *)d;
    if (m->runs) {
        follow_end(&m->follow);
        stage_free(m->stage);
    }
    if (m->few != m->all)
        m->few->free(m->few);
}

/* Rank 0 counts files: other ranks' folders may only hold their own. */
static int64_t ranks_of(struct arena *a, struct comm *comm, const char *path)
{
    int64_t n = comm->rank ? 0 : job_rank_files(a, path);
    n = n > 1 ? n : 1;
    if (comm->rank == 0 && n > comm->size)
        fail("%s: is for %lld ranks, and the large model runs on %d: --draft takes a model for as many, or for fewer", path, (long long)n,
             comm->size);
    comm_from_first(comm, "ranks of --draft", &n, sizeof n);
    return n;
}

struct drafter *small_drafter(struct arena *a, struct comm *comm, const struct stage *large, const struct job_options *o, int threads)
{
    struct small_model *m = NEW(a, struct small_model);
    int64_t ranks = ranks_of(a, comm, o->draft), told[2] = {0};
    *m = (struct small_model){.path = o->draft, .all = comm, .few = comm, .runs = comm->rank < ranks, .options = *o};
    m->options.paths = m->options.input = m->options.role = m->options.prompt = (struct text_list){0};
    m->options.fixed = (struct bound_inputs){0};
    m->options.lora = (struct text_list){0};
    m->options.tokenizer = NULL;
    VEC_PUSH(a, &m->options.paths.text, o->draft);
    if (ranks < comm->size)
        m->few = comm->split(comm, !m->runs);
    if (m->runs)
        load(m, a, large, o, threads);
    if (comm->rank == 0) {
        told[0] = m->positions;
        told[1] = price_of(m, large);
    }
    comm_from_first(comm, "the model of --draft", told, sizeof told);
    m->positions = told[0];
    m->drafter = (struct drafter){
        .option = "--draft", .pace = draft_pace_new(MOST, told[1]), .draft = draft, .check = check, .end = end, .bytes = bytes_of};
    return &m->drafter;
}
