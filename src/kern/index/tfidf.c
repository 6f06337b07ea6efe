/* tfidf: TfIdfVectorizer: counts n-grams of a pool in rows of tokens, with up to max_skip_count tokens between neighbours. */
#include "kern/string/string.h"

#include <string.h>

struct pool {
    int64_t n;     /* tokens per gram */
    int64_t grams; /* number of grams */
    const int64_t *token;
    const int64_t *column; /* the output column of each */
    const double *weight;
};
enum tfidf_mode { TFIDF_COUNT, TFIDF_OCCURS, TFIDF_WEIGH };
struct tfidf {
    const struct kcall *call;
    enum tfidf_mode how;
    const double *weight; /* per gram; NULL: all 1 */
    const int64_t *token, *start, *column;
    int tokens, sizes, columns;
    int64_t shortest, longest, skips;
};

static int ints_of(const struct kcall *call, const char *name, const int64_t **at)
{
    return attr_is_set(call->node, name) ? attr_ints(call->graph, call->node, name, at) : 0;
}

static enum tfidf_mode mode_of(const struct kcall *call)
{
    static const char *const name[] = {"TF", "IDF", "TFIDF"};
    const char *mode = attr_string(call->node, "mode");
    int i = NAMED_ROW(name, mode);
    if (i >= 0)
        return (enum tfidf_mode)i;
    fail("%s: attribute 'mode' is '%s', expected TF, IDF or TFIDF", kcall_where(call), mode);
}

static void read_call(const struct kcall *call, struct tfidf *t)
{
    const struct attr *weights = node_attr(call->node, "weights");
    *t = (struct tfidf){.call = call, .how = mode_of(call), .weight = weights->set && weights->n ? weights->floats : NULL};
    bool strings = call->in[0].dtype == DT_STRING;
    if (strings)
        t->token = string_numbers(call, "pool_strings", ROOM_A, &t->tokens);
    else
        t->tokens = ints_of(call, "pool_int64s", &t->token);
    t->sizes = ints_of(call, "ngram_counts", &t->start);
    t->columns = ints_of(call, "ngram_indexes", &t->column);
    t->shortest = attr_int(call->node, "min_gram_length");
    t->longest = attr_int(call->node, "max_gram_length");
    t->skips = attr_int(call->node, "max_skip_count");
    if (t->weight && weights->n != t->columns)
        fail("%s: attribute 'weights' has %d entries for %d grams", kcall_where(call), weights->n, t->columns);
    if (t->tokens == 0)
        fail("%s: attribute '%s' has no entries", kcall_where(call), strings ? "pool_strings" : "pool_int64s");
    if (t->shortest < 1 || t->longest < t->shortest || t->skips < 0)
        fail("%s: grams of %lld to %lld tokens that skip %lld cannot be counted", kcall_where(call), (long long)t->shortest,
             (long long)t->longest, (long long)t->skips);
}

/* The grams of size k + 1; before: grams of smaller sizes, whose columns come first. */
static struct pool pool_of(const struct tfidf *t, int k, int64_t *before)
{
    int64_t end = k + 1 < t->sizes ? t->start[k + 1] : t->tokens, n = k + 1;
    if (t->start[k] < 0 || end < t->start[k] || end > t->tokens || *before + (end - t->start[k]) / n > t->columns)
        fail("%s: attribute 'ngram_counts' does not fit %d tokens and %d columns", kcall_where(t->call), t->tokens, t->columns);
    struct pool p = {.n = n,
                     .grams = (end - t->start[k]) / n,
                     .token = t->token + t->start[k],
                     .column = t->column + *before,
                     .weight = t->weight ? t->weight + *before : NULL};
    *before += p.grams;
    return p;
}

/* The gram that starts here, among those of its size; the last of equal ones; -1: none. */
static int64_t find_gram(const struct pool *p, const int64_t *row, int64_t apart)
{
    for (int64_t i = p->grams - 1; i >= 0; i--) {
        int64_t k = 0;
        while (k < p->n && row[k * apart] == p->token[i * p->n + k])
            k++;
        if (k == p->n)
            return i;
    }
    return -1;
}

/* TF: 1 each time; TFIDF: its weight each time; IDF: its weight if it occurs. */
static void count_gram(const struct tfidf *t, int64_t column, float weight, float *y)
{
    y[column] = t->how == TFIDF_OCCURS ? weight : y[column] + (t->how == TFIDF_COUNT ? 1 : weight);
}

static void count_grams(const struct tfidf *t, const struct pool *p, const int64_t *row, int64_t length, float *y)
{
    for (int64_t apart = 1; apart <= (p->n == 1 ? 1 : t->skips + 1); apart++)
        for (int64_t i = 0; i < length && (length - 1 - i) / apart >= p->n - 1; i++) {
            int64_t gram = find_gram(p, row + i, apart);
            if (gram >= 0)
                count_gram(t, p->column[gram], p->weight ? (float)p->weight[gram] : 1, y);
        }
}

void kern_TfIdfVectorizer(struct kcall *call)
{
    const struct tensor *x = &call->in[0];
    struct tensor *y = &call->out[0];
    struct tfidf t;
    int64_t length = x->dim[x->rank - 1], columns = y->dim[y->rank - 1];
    int64_t *row = kenv_scratch(call->env, kcall_bytes(call, length, sizeof *row));
    read_call(call, &t);
    memset(y->data, 0, tensor_bytes(y));
    for (int64_t r = 0; r < (x->rank == 2 ? x->dim[0] : 1); r++) {
        int64_t before = 0;
        const void *from = element_at_const(x->data, dtype_size(x->dtype), r * length);
        if (x->dtype == DT_STRING)
            memcpy(row, from, (size_t)length * sizeof *row);
        else
            convert_to_i64(x->dtype, from, length, row);
        for (int k = 0; k < t.sizes; k++) {
            struct pool p = pool_of(&t, k, &before);
            if (p.n >= t.shortest && p.n <= t.longest)
                count_grams(&t, &p, row, length, (float *)y->data + r * columns);
        }
    }
}
