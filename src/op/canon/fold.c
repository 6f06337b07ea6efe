/* fold: evaluates nodes whose operands are all constants, by the ops' own kernels.
 *
 * One walk in topological order folds whole chains of a typed graph. A node is not folded if it reads a weight of 1 KiB or more, or a
 * trained one: a rank's weight must stay ranges of a source tensor; if a result is a graph output, a filter decoded from 8-bit integers, or
 * over 64 KiB and larger than the operands; or if its kernel or sizes are unknown. All results together stay below 256 MiB, because a few
 * nodes can double a constant repeatedly.
 *
 * Then equal small inline constants are merged: single elements of any type, and integers of up to 64 elements. Float vectors are not, so
 * that equal norm weights of two layers stay separate. */
#include "op/canon/canon.h"
#include "op/infer/infer.h"

#include <string.h>
#define XXH_INLINE_ALL
#include <uthash.h>
#include <xxhash.h>

enum { RESULT_BYTES = 64 * 1024, ALL_BYTES = 256 << 20, SHARED_ELEMENTS = 64 };

/* True if all operands are constants and none is a weight. *bytes: their total size. */
static bool constant_operands(const struct node *n, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < n->nin; i++) {
        if (!n->in[i])
            continue;
        const struct constant *c = n->in[i]->constant;
        if (!c || constant_is_weight(c) || !i64_add(*bytes, c->bytes, bytes))
            return false;
    }
    return true;
}

/* Adds the bytes of the results to *all, if they are within the limits. is_kept: by value id. */
static bool results_fit(const struct node *n, const bool *is_kept, int64_t operand_bytes, int64_t *all)
{
    int64_t total = 0, bytes;
    for (int i = 0; i < n->nout; i++) {
        const struct value *v = n->out[i];
        if (!v)
            continue;
        if (is_kept[v->id] || !type_bytes(&v->type, &bytes) || !i64_add(total, bytes, &total))
            return false;
    }
    if ((total > RESULT_BYTES && total > operand_bytes) || total > ALL_BYTES - *all)
        return false;
    *all += total;
    return true;
}

static bool foldable(const struct node *n, const bool *is_kept, int64_t *all)
{
    int64_t bytes;
    return n->op && n->op->kernel && constant_operands(n, &bytes) && results_fit(n, is_kept, bytes, all);
}

static void fold_nodes(struct graph *g, struct arena *tmp)
{
    const bool *is_filter = op_decoded_filters(tmp, g);
    bool *is_kept = NEWN(tmp, bool, g->values.n + 1);
    memcpy(is_kept, is_filter, (size_t)g->values.n * sizeof *is_kept);
    for (int i = 0; i < g->outputs.n; i++)
        is_kept[g->outputs.at[i]->id] = true;
    int64_t all = 0;
    int kept = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        if (!foldable(n, is_kept, &all) || !op_evaluate(g, n))
            g->nodes.at[kept++] = n;
    }
    g->nodes.n = kept;
}

/* ---- equal small constants --------------------------------------------------------------------------------------------- */

struct shared {
    uint64_t hash;
    struct value *value;
    struct shared *next;
    UT_hash_handle hh;
};

static bool may_share(const struct constant *c)
{
    int64_t n = constant_elements(c);
    return !c->source.path && dtype_size(c->dtype) && (n == 1 || (n <= SHARED_ELEMENTS && !dtype_is_float(c->dtype)));
}

static bool same_constant_type(const struct constant *a, const struct constant *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->bytes == b->bytes &&
        memcmp(a->dim, b->dim, (size_t)a->rank * sizeof *a->dim) == 0;
}

static bool same_constant(struct value *a, struct value *b)
{
    return same_constant_type(a->constant, b->constant) &&
        memcmp(constant_data(a->constant, a->name), constant_data(b->constant, b->name), (size_t)a->constant->bytes) == 0;
}

/* The first value with the same constant; v itself if there was none. */
static struct value *first_equal(struct arena *tmp, struct shared **table, struct value *v)
{
    uint64_t hash = XXH3_64bits(constant_data(v->constant, v->name), (size_t)v->constant->bytes);
    struct shared *head = NULL;
    HASH_FIND(hh, *table, &hash, sizeof hash, head);
    for (struct shared *s = head; s; s = s->next)
        if (same_constant(s->value, v))
            return s->value;
    struct shared *s = NEW(tmp, struct shared);
    s->hash = hash;
    s->value = v;
    if (head) {
        s->next = head->next;
        head->next = s;
    } else {
        HASH_ADD(hh, *table, hash, sizeof s->hash, s);
    }
    return v;
}

static void share_constants(struct graph *g, struct arena *tmp)
{
    struct value **to = NEWN(tmp, struct value *, g->values.n + 1);
    struct shared *table = NULL;
    for (int i = 0; i < g->values.n; i++) {
        struct value *v = g->values.at[i];
        if (v->constant && may_share(v->constant))
            to[i] = first_equal(tmp, &table, v);
    }
    HASH_CLEAR(hh, table);
    graph_rewire(g, to, false);
}

void canon_fold(struct graph *g)
{
    struct arena *tmp = arena_new();
    fold_nodes(g, tmp);
    share_constants(g, tmp);
    graph_prune(g);
    arena_free(tmp);
}
