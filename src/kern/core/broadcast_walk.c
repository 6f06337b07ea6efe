/* broadcast_walk: one loop nest for broadcast operands. Dimensions of size 1 are dropped, and adjacent ones are merged if every operand is
 * dense or constant over both, so most calls become one long row. A long row is cut into pieces for the threads. */
#include "kern/core/core.h"

#define STRETCH 4096

/* Strides of t in the shape of out, 0 where it is broadcast. */
static void operand_strides(const struct kcall *call, const struct tensor *out, const struct tensor *t, int64_t *stride)
{
    int64_t own[MAX_RANK];
    tensor_strides(t, own);
    for (int d = 0; d < out->rank; d++) {
        int e = d - (out->rank - t->rank);
        stride[d] = e < 0 || t->dim[e] == 1 ? 0 : own[e];
        if (e >= 0 && t->dim[e] != 1 && t->dim[e] != out->dim[d])
            fail("%s: an operand has size %lld where the result has %lld (dimension %d)", kcall_where(call), (long long)t->dim[e],
                 (long long)out->dim[d], d);
    }
    if (t->rank > out->rank)
        fail("%s: an operand of rank %d does not broadcast to rank %d", kcall_where(call), t->rank, out->rank);
}

static bool mergeable(const struct walk *w, int d, const int64_t (*stride)[MAX_RANK], const int64_t *dim, int e)
{
    for (int k = 0; k < w->n; k++)
        if (w->stride[k][d] != stride[k][e] * dim[e])
            return false;
    return true;
}

static void walk_merge(struct walk *w, int rank, const int64_t *dim, const int64_t (*stride)[MAX_RANK])
{
    w->rank = 0;
    for (int e = 0; e < rank; e++) {
        if (dim[e] == 1)
            continue;
        bool join = w->rank > 0 && mergeable(w, w->rank - 1, stride, dim, e);
        int d = join ? w->rank - 1 : w->rank++;
        w->dim[d] = join ? w->dim[d] * dim[e] : dim[e];
        for (int k = 0; k < w->n; k++)
            w->stride[k][d] = stride[k][e];
    }
    if (w->rank == 0) {
        w->rank = 1;
        w->dim[0] = 1;
        for (int k = 0; k < w->n; k++)
            w->stride[k][0] = 0;
    }
}

void walk_broadcast(const struct kcall *call, struct walk *w, const struct tensor *out, int nin, const struct tensor *const *in)
{
    int64_t stride[WALK_MAX][MAX_RANK];
    require(nin < WALK_MAX);
    w->n = nin + 1;
    tensor_dense_strides(out->rank, out->dim, stride[0]);
    for (int k = 0; k < nin; k++)
        operand_strides(call, out, in[k], stride[k + 1]);
    walk_merge(w, out->rank, out->dim, (const int64_t(*)[MAX_RANK])stride);
}

/* Whether each operand continues from one row to the next, or repeats. */
static bool all_join(const struct walk *w, int last)
{
    for (int k = 0; k < w->n; k++)
        if (w->stride[k][last - 1] != w->stride[k][last] * w->dim[last] && w->stride[k][last - 1] != 0)
            return false;
    return true;
}

int64_t walk_join_rows(struct walk *w, int64_t most, bool apart, struct joined *of)
{
    int last = w->rank - 1;
    int64_t period = w->dim[last];
    if (last < 1 || period >= most || !(apart || all_join(w, last)))
        return 0;
    for (int k = 0; k < w->n; k++) {
        int64_t inner = w->stride[k][last], outer = w->stride[k][last - 1];
        bool goes_on = outer == inner * period;
        require(k > 0 || goes_on);
        w->stride[k][last - 1] = goes_on ? inner : 0;
        if (k > 0)
            of[k - 1] = goes_on ? (struct joined){0} : (struct joined){.repeats = outer == 0, .spreads = inner == 0, .apart = outer};
    }
    w->dim[last - 1] *= period;
    w->rank--;
    return period;
}

struct walking {
    const struct walk *w;
    int64_t parts;
    row_fn *row;
    void *data;
};

static void offsets_of(const struct walk *w, const int64_t *index, int64_t *offset)
{
    for (int k = 0; k < w->n; k++) {
        offset[k] = 0;
        for (int d = 0; d < w->rank; d++)
            offset[k] += index[d] * w->stride[k][d];
    }
}

/* Advances to the next row: an odometer over all but the innermost dimension. */
static void next_row(const struct walk *w, int64_t *index, int64_t *offset)
{
    for (int d = w->rank - 2; d >= 0; d--) {
        index[d]++;
        for (int k = 0; k < w->n; k++)
            offset[k] += w->stride[k][d];
        if (index[d] < w->dim[d])
            return;
        for (int k = 0; k < w->n; k++)
            offset[k] -= w->stride[k][d] * w->dim[d];
        index[d] = 0;
    }
}

static void row_index(const struct walk *w, int64_t row, int64_t *index)
{
    index[w->rank - 1] = 0;
    for (int d = w->rank - 2; d >= 0; d--) {
        index[d] = row % w->dim[d];
        row /= w->dim[d];
    }
}

/* Units lo..hi: a unit is one piece of one row. */
static void walk_range(void *data, int64_t lo, int64_t hi)
{
    const struct walking *g = data;
    const struct walk *w = g->w;
    int64_t index[MAX_RANK], base[WALK_MAX], offset[WALK_MAX], inner = w->dim[w->rank - 1], part = lo % g->parts;
    row_index(w, lo / g->parts, index);
    offsets_of(w, index, base);
    for (int64_t u = lo; u < hi; u++) {
        int64_t from = part * STRETCH, n = inner - from < STRETCH ? inner - from : STRETCH;
        for (int k = 0; k < w->n; k++)
            offset[k] = base[k] + from * w->stride[k][w->rank - 1];
        g->row(g->data, offset, n);
        if (++part == g->parts) {
            part = 0;
            next_row(w, index, base);
        }
    }
}

void walk_run(struct kenv *env, const struct walk *w, int64_t cost, row_fn *row, void *data)
{
    int64_t inner = w->dim[w->rank - 1], parts = (inner + STRETCH - 1) / STRETCH;
    struct walking g = {w, parts, row, data};
    int64_t each = inner < STRETCH ? inner : STRETCH;
    kenv_parallel_for(env, tensor_dims_product(w->dim, 0, w->rank - 1) * parts, each * cost, walk_range, &g);
}
