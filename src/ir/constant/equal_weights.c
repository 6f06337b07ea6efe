/* equal_weights: weights that several graphs of a model have in separate files: a decoder's and its steps'. A sample of the bytes finds
 * pairs; then all bytes are compared. */
#include "ir/ir.h"

#include <string.h>
#include <uthash.h>

struct weight_key {
    uint64_t sample;
    int64_t bytes;
};
struct known_weight {
    struct weight_key key;
    struct value *value;
    struct known_weight *next; /* with the same key */
    UT_hash_handle hh;
};

static bool is_shared(const struct value *v)
{
    return v && v->constant && constant_is_weight(v->constant) && constant_present(v->constant);
}

static struct weight_key key_of_weight(const struct value *v)
{
    struct constant *c = v->constant;
    return (struct weight_key){c->digest ? c->digest->sample : digest_sample(c, v->name), c->bytes};
}

static void note_weight(struct arena *a, struct known_weight **table, struct value *v)
{
    struct known_weight *k = NEW(a, struct known_weight), *first;
    k->key = key_of_weight(v);
    k->value = v;
    HASH_FIND(hh, *table, &k->key, sizeof k->key, first);
    if (first) {
        k->next = first->next;
        first->next = k;
    } else {
        HASH_ADD(hh, *table, key, sizeof k->key, k);
    }
}

static bool take_known(struct known_weight *table, struct value *v)
{
    struct weight_key key = key_of_weight(v);
    struct known_weight *k;
    HASH_FIND(hh, table, &key, sizeof key, k);
    for (; k; k = k->next)
        if (constant_equal(k->value->constant, k->value->name, v->constant, v->name)) {
            v->constant = k->value->constant;
            return true;
        }
    return false;
}

/* Calls visit once for each weight that a node reads. */
static int each_weight(struct arena *a, const struct graph *g, bool (*visit)(void *, struct value *), void *data)
{
    bool *seen = NEWN(a, bool, g->values.n + 1);
    int n = 0;
    for (int i = 0; i < g->nodes.n; i++)
        for (int k = 0; k < g->nodes.at[i]->nin; k++) {
            struct value *v = g->nodes.at[i]->in[k];
            if (!is_shared(v) || seen[v->id])
                continue;
            seen[v->id] = true;
            n += visit(data, v);
        }
    return n;
}

struct sharing {
    struct arena *tmp;
    struct known_weight *table;
};

static bool visit_earlier(void *data, struct value *v)
{
    struct sharing *s = data;
    note_weight(s->tmp, &s->table, v);
    return true;
}

static bool visit_own(void *data, struct value *v)
{
    const struct sharing *s = data;
    return take_known(s->table, v);
}

int constant_share_weights(struct graph *g, int n, struct graph *const *earlier)
{
    struct sharing s = {.tmp = arena_new()};
    for (int i = 0; i < n; i++)
        each_weight(s.tmp, earlier[i], visit_earlier, &s);
    int shared = each_weight(s.tmp, g, visit_own, &s);
    HASH_CLEAR(hh, s.table);
    arena_free(s.tmp);
    return shared;
}
