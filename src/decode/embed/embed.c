/* embed: runs texts as rows of one batch, padded at the end, and pools the graph's results on rank 0, in f64.
 *
 * Padding after a text is hidden by its mask, or invisible to earlier tokens. No rule tells which graphs do so: a mask may be used in other
 * ways, and a scale may be computed over all rows. So made-up texts run alone and together; if results differ, texts are not run
 * together. */
#include "decode/embed/embed.h"

#include "job/io/io.h"

#include <math.h>
#include <string.h>

enum {
    TRIED = 24,     /* tokens of the longer test text */
    TOGETHER = 1024 /* tokens of texts in one run, padding included */
};

struct embedder {
    struct comm *comm;
    struct stage *stage;
    enum embed_pooling pooling;
    int64_t width;
    bool together;
    const char *what;
};

/* ---- a run ---- */

static int64_t longest_of(int64_t n, const int64_t *length)
{
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++)
        most = length[i] > most ? length[i] : most;
    return most;
}

static struct history make_history(struct arena *a, int64_t n, const int64_t *length, const int64_t *token)
{
    int64_t most = longest_of(n, length);
    struct history h = history_empty(a, n, most);
    for (; h.length < most; h.length++) {
        const int64_t *text = token;
        for (int64_t b = 0; b < n; text += length[b++]) {
            bool own = h.length < length[b];
            history_put(&h, b, own ? text[h.length] : 0, own);
        }
    }
    for (int64_t b = 0; b < n; b++)
        h.behind[b] = most - length[b];
    return h;
}

/* The states of rows, while texts run. NULL: none. */
static struct session_states *put_states_aside(const struct stage *s)
{
    struct session_states *aside = s->keeps ? session_states_new(s->session) : NULL;
    if (aside)
        session_states_swap(s->session, aside);
    return aside;
}

static void take_states_back(const struct stage *s, struct session_states *aside)
{
    if (!aside)
        return;
    session_states_swap(s->session, aside);
    session_states_free(aside);
}

/* The graph's results for these texts, whole on rank 0. */
static struct tensor run_texts(struct arena *a, struct stage *s, int64_t n, const int64_t *length, const int64_t *token)
{
    const struct history h = make_history(a, n, length, token);
    if (s->keeps)
        session_states_compose(s->session, NULL, 0, 0, NULL);
    history_reserve(a, &h, s);
    history_feed(&h, 0, s);
    session_run(s->session, s->in, s->out);
    return session_gather(s->session, a, s->embedding, &s->out[s->embedding]);
}

/* ---- pooling ---- */

static void add_place(const struct tensor *t, int64_t at, int64_t width, double *sum)
{
    for (int64_t i = 0; i < width; i++)
        sum[i] += tensor_element(t, at * width + i);
}

/* The vector of a row of [rows, positions, width] or [rows, width], not normalised. */
static void pool_row(const struct tensor *t, enum embed_pooling pooling, int64_t row, int64_t length, double *sum)
{
    int64_t width = t->dim[t->rank - 1], positions = t->rank == 3 ? t->dim[1] : 1, first = row * positions;
    memset(sum, 0, (size_t)width * sizeof *sum);
    for (int64_t i = 0; pooling == EMBED_MEAN && i < length; i++)
        add_place(t, first + i, width, sum);
    if (pooling != EMBED_MEAN)
        add_place(t, pooling == EMBED_LAST ? first + length - 1 : first, width, sum);
}

static void normalise(const double *sum, int64_t width, float *to)
{
    double most = 0, squares = 0;
    for (int64_t i = 0; i < width; i++)
        most = isfinite(sum[i]) ? fmax(most, fabs(sum[i])) : INFINITY;
    for (int64_t i = 0; i < width; i++)
        squares += sum[i] / most * (sum[i] / most);
    for (int64_t i = 0; i < width; i++)
        to[i] = (float)(sum[i] / most / sqrt(squares));
    if (!(most > 0 && isfinite(most)))
        to[0] = NAN;
}

static void pool_all(const struct embedder *e, const struct tensor *all, int64_t n, const int64_t *length, float *to)
{
    struct arena *tmp = arena_new();
    double *sum = NEWN(tmp, double, e->width + 1);
    for (int64_t b = 0; b < n; b++) {
        pool_row(all, e->pooling, b, length[b], sum);
        normalise(sum, e->width, to + b * e->width);
    }
    arena_free(tmp);
}

void embed_run(struct embedder *e, int64_t n, const int64_t *length, const int64_t *token, float *to)
{
    struct arena *tmp = arena_new();
    struct session_states *aside = put_states_aside(e->stage);
    const struct tensor all = run_texts(tmp, e->stage, n, length, token);
    take_states_back(e->stage, aside);
    if (e->comm->rank == 0)
        pool_all(e, &all, n, length, to);
    arena_free(tmp);
}

int64_t embed_width(const struct embedder *e)
{
    return e->width;
}

const char *embed_what(const struct embedder *e)
{
    return e->what;
}

int64_t embed_together(const struct embedder *e, int64_t longest)
{
    int64_t most = !e->together || longest >= TOGETHER ? 1 : TOGETHER / longest;
    return most < EMBED_BATCH ? most : EMBED_BATCH;
}

/* ---- made-up texts ---- */

struct trial {
    struct arena *arena;
    struct stage *stage;
    int64_t length[2], token[2 * TRIED]; /* the second text is the beginning of the first */
    struct tensor alone[2], both;
};

static void run_alone(void *trial)
{
    struct trial *t = trial;
    for (int k = 0; k < 2; k++)
        t->alone[k] = run_texts(t->arena, t->stage, 1, &t->length[k], t->token);
}

static void run_both(void *trial)
{
    struct trial *t = trial;
    t->both = run_texts(t->arena, t->stage, 2, t->length, t->token);
}

static bool are_close(const struct tensor *x, int64_t at, const struct tensor *y, int64_t from, int64_t n, double limit)
{
    double most = 0, worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = tensor_element(x, at + i), q = tensor_element(y, from + i);
        most = fmax(most, fabs(p));
        worst = isfinite(p) && isfinite(q) ? fmax(worst, fabs(p - q)) : INFINITY;
    }
    return worst <= limit * most;
}

/* Whether it has vectors of n texts, in [n, width] or, if the longest has `length` tokens, in [n, length, width]. */
static bool has_vectors(const struct tensor *t, int64_t n, int64_t length)
{
    return dtype_is_float(t->dtype) && t->rank >= 2 && t->rank <= 3 && t->dim[0] == n && (t->rank == 2 || t->dim[1] == length) &&
        t->dim[t->rank - 1] > 0;
}

/* Whether each text has the same results with the other as alone. */
static bool is_same(const struct trial *t, double limit)
{
    int64_t width = t->alone[0].dim[t->alone[0].rank - 1], positions = t->alone[0].rank == 3 ? t->length[0] : 1;
    if (!has_vectors(&t->both, 2, t->length[0]) || t->both.rank != t->alone[0].rank || t->both.dim[t->both.rank - 1] != width)
        return false;
    for (int k = 0; k < 2; k++)
        if (!are_close(&t->alone[k], 0, &t->both, k * positions * width, (t->both.rank == 3 ? t->length[k] : 1) * width, limit))
            return false;
    return true;
}

/* As found by rank 0. */
struct found {
    bool vectors, together;
    int64_t width;
    enum embed_pooling pooling;
};

static const char *const pooling_text[] = {[EMBED_WHOLE] = "one for each text",
                                           [EMBED_MEAN] = "the mean of the tokens",
                                           [EMBED_LAST] = "the last token",
                                           [EMBED_FIRST] = "the first token"};

static struct found judge(struct arena *a, const struct trial *t, double limit, const struct job_options *o, const char **says,
                          const char **why)
{
    const struct tensor *x = &t->alone[0];
    struct found f = {.vectors = has_vectors(x, 1, t->length[0]) && has_vectors(&t->alone[1], 1, t->length[1])};
    const char *name = t->stage->graph->outputs.at[t->stage->embedding]->name;
    if (!f.vectors) {
        *why = arena_printf(a, "%s: output '%s' is no floats [texts, width] or [texts, tokens, width]: %s", t->stage->path, name,
                            outputs_shape_text(a, x));
        return f;
    }
    f.width = x->dim[x->rank - 1];
    f.together = is_same(t, limit);
    f.pooling = embed_pooling_asked(a, o, says, why);
    if (x->rank == 2 && o->pooling)
        *why = arena_printf(a, "%s: output '%s' has one vector for each text: there is nothing for --pooling", t->stage->path, name);
    if (x->rank == 2) {
        f.pooling = EMBED_WHOLE;
        *says = "the graph pools";
    } else if (!*why && f.pooling == EMBED_UNKNOWN) {
        bool causal = t->stage->keeps || are_close(x, 0, &t->alone[1], 0, t->length[1] * f.width, limit);
        f.pooling = causal ? EMBED_LAST : EMBED_MEAN;
        *says = causal ? "its tokens see none behind them" : "its tokens see each other";
    }
    f.vectors = x->rank == 2 ? !o->pooling : !*why;
    return f;
}

static void make_texts(struct trial *t, int64_t vocabulary, int64_t context)
{
    t->length[0] = context < TRIED ? context : TRIED;
    t->length[1] = (t->length[0] + 1) / 2;
    for (int64_t i = 0; i < t->length[0]; i++)
        t->token[i] = (13 + 7919 * i) % vocabulary;
    memcpy(&t->token[t->length[0]], t->token, (size_t)t->length[1] * sizeof *t->token);
}

struct embedder *embed_new(struct arena *a, struct comm *comm, struct stage *s, const struct job_options *o, int64_t vocabulary,
                           int64_t context, const char **why)
{
    struct embedder *e = NEW(a, struct embedder);
    struct trial t = {.arena = arena_new(), .stage = s};
    const char *says = "", *name = s->graph->outputs.at[s->embedding]->name;
    struct found f = {0};
    *why = NULL;
    make_texts(&t, vocabulary, context);
    struct session_states *aside = put_states_aside(s);
    const char *failure = diag_try(a, run_alone, &t), *apart = failure ? NULL : diag_try(a, run_both, &t);
    take_states_back(s, aside);
    if (failure)
        *why = failure;
    else if (comm->rank == 0)
        f = judge(a, &t, fmax(compare_tolerance(s->graph, o).rel, 1e-4), o, &says, why);
    comm_from_first(comm, "embeddings", &f, sizeof f);
    arena_free(t.arena);
    *e = (struct embedder){.comm = comm, .stage = s, .pooling = f.pooling, .width = f.width, .together = f.together};
    if (!f.vectors)
        return NULL;
    e->what = arena_printf(a, "%lld numbers of '%s', %s (%s)", (long long)f.width, name, pooling_text[f.pooling], says);
    if (!f.together && comm->rank == 0)
        explain("%s: embeddings of one text at a time: %s", s->path, apart ? apart : "beside others a text has other ones");
    return e;
}
