/* alike_ranks: finds ranks whose graphs differ only in the rank's number. Most ranks of a plan are alike, so their types and memory are
 * computed once.
 *
 * A rank's graph follows from the rank's part of each split and from the attributes that differ between ranks. One scratch graph takes the
 * form of each rank in turn; it contains only what differs. */
#include "op/op.h"
#include "plan/apply/apply.h"

#include <string.h>

struct rank_form {
    struct graph *g;
    const struct local_nodes *nodes;
    VEC(const struct split *) splits; /* of values and attributes, each once */
    VEC(int) values;                  /* sharded values */
    const struct dim **extent;        /* by split id: the rank's extent */
    int ids;
};

static void add_split(struct rank_form *f, struct arena *a, const struct split *s)
{
    for (int i = 0; i < f->splits.n; i++)
        if (f->splits.at[i] == s)
            return;
    VEC_PUSH(a, &f->splits, s);
    f->ids = s->id >= f->ids ? s->id + 1 : f->ids;
}

/* Adds the splits in attributes that inference reads, as of a collective. */
static void add_attribute_splits(struct rank_form *f, struct arena *a, const struct node *n)
{
    static const char *const names[] = {"from", "to", "units", "extent_of"};
    for (int i = 0; i < n->nattr && strcmp(n->domain, "tpc") == 0; i++)
        for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
            bool text = n->attr[i].set && n->attr[i].kind == ATTR_STRING && strcmp(n->attr[i].name, names[k]) == 0;
            const struct split *s = text ? split_parse(f->g->alg, n->attr[i].s, NULL) : NULL;
            if (s)
                add_split(f, a, s);
        }
}

static struct rank_form form_new(struct arena *a, const struct local_nodes *nodes)
{
    struct rank_form f = {.g = graph_copy(a, nodes->global), .nodes = nodes};
    for (int i = 0; i < f.g->values.n; i++) {
        const struct value *v = f.g->values.at[i];
        if (!v->placed || v->place.kind != PLACE_S)
            continue;
        VEC_PUSH(a, &f.values, i);
        add_split(&f, a, v->place.split);
    }
    for (int i = 0; i < f.g->nodes.n; i++)
        add_attribute_splits(&f, a, f.g->nodes.at[i]);
    f.extent = NEWN(a, const struct dim *, f.ids);
    return f;
}

static void add_to_digest(uint64_t *digest, const void *at, size_t bytes)
{
    const uint64_t both[] = {*digest, digest_bytes(at, bytes)};
    *digest = digest_bytes(both, sizeof both);
}

static void digest_attr(uint64_t *digest, const struct attr *at)
{
    int64_t head[] = {at->set, at->i, at->n};
    add_to_digest(digest, head, sizeof head);
    if (at->set && at->kind == ATTR_INTS)
        add_to_digest(digest, at->ints, (size_t)at->n * sizeof *at->ints);
    else if (at->set && at->kind == ATTR_DIMS) /* interned: equal means the same pointer */
        add_to_digest(digest, at->dims, (size_t)at->n * sizeof *at->dims);
}

static void take_types(struct rank_form *f, int rank)
{
    f->g->rank = rank;
    for (int i = 0; i < f->splits.n; i++)
        f->extent[f->splits.at[i]->id] = split_extent(f->g->alg, f->splits.at[i], rank);
    for (int i = 0; i < f->values.n; i++) {
        struct value *v = f->g->values.at[f->values.at[i]];
        require(v->place.dim < v->type.rank && v->place.split->id < f->ids);
        if (v->type.dtype != DT_NONE)
            v->type.dim[v->place.dim] = f->extent[v->place.split->id];
    }
}

/* Gives the graph the rank's form and returns its digest. */
static uint64_t form_digest(struct rank_form *f, int rank)
{
    uint64_t digest = 0;
    take_types(f, rank);
    for (int i = 0; i < f->splits.n; i++)
        add_to_digest(&digest, &f->extent[f->splits.at[i]->id], sizeof f->extent[0]);
    for (int i = 0; i < f->nodes->list.n; i++) {
        const struct node *from = f->nodes->global->nodes.at[f->nodes->list.at[i].at];
        if (from->nattr)
            memcpy(f->g->nodes.at[f->nodes->list.at[i].at]->attr, from->attr, (size_t)from->nattr * sizeof *from->attr);
    }
    local_nodes_set(f->nodes, f->g);
    for (int i = 0; i < f->nodes->list.n; i++) {
        const struct node *n = f->g->nodes.at[f->nodes->list.at[i].at];
        for (int k = 0; k < n->nattr; k++)
            digest_attr(&digest, &n->attr[k]);
    }
    return digest;
}

const int *alike_ranks_find(struct arena *a, const struct local_nodes *nodes)
{
    struct arena *tmp = arena_new(), *rank = arena_new();
    struct rank_form f = form_new(tmp, nodes);
    int ranks = nodes->global->ranks, kinds = 0;
    uint64_t *digest = NEWN(tmp, uint64_t, ranks);
    int *alike = NEWN(a, int, ranks), *first = NEWN(tmp, int, ranks);
    f.g->arena = rank;
    for (int r = 0; r < ranks; r++) {
        uint64_t own = form_digest(&f, r);
        int k = 0;
        while (k < kinds && digest[k] != own)
            k++;
        if (k == kinds) {
            digest[k] = own;
            first[kinds++] = r;
        }
        alike[r] = first[k];
        arena_reset(rank);
    }
    arena_free(rank);
    arena_free(tmp);
    return alike;
}
