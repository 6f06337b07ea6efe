/* copy: copies elements between two strided views of one shape. All ops that only move data (Transpose, Slice, Concat, Expand, ...) use it.
 *
 * Dimensions of size 1 are dropped, adjacent ones merged. The innermost pair is then a contiguous run (memcpy), a strided run, or, if
 * source and destination are contiguous in different dimensions, a transposition in square tiles. */
#include "kern/core/core.h"

#include <string.h>

#define SQUARE 32

struct strided_copy {
    struct copy c;
    char *to;
    const char *from;
    int tiled, next; /* next: the innermost dimension other than the last and the tiled one; -1: none */
};

static void copy_merge(struct copy *c, const struct copy *in)
{
    c->rank = 0;
    c->size = in->size;
    for (int e = 0; e < in->rank; e++) {
        if (in->dim[e] == 1)
            continue;
        int d = c->rank - 1;
        bool join = d >= 0 && c->to[d] == in->to[e] * in->dim[e] && c->from[d] == in->from[e] * in->dim[e];
        if (!join)
            d = c->rank++;
        c->dim[d] = join ? c->dim[d] * in->dim[e] : in->dim[e];
        c->to[d] = in->to[e];
        c->from[d] = in->from[e];
    }
    if (c->rank == 0) {
        c->rank = 1;
        c->dim[0] = c->to[0] = c->from[0] = 1;
    }
}

/* Weights packed at load may be at unaligned addresses. */
#define STRIDED(T)                  \
    for (int64_t i = 0; i < n; i++) \
        memcpy(to + i * ts * (int64_t)sizeof(T), from + i * fs * (int64_t)sizeof(T), sizeof(T));

#define FILL(T)                     \
    T x;                            \
    memcpy(&x, from, sizeof x);     \
    for (int64_t i = 0; i < n; i++) \
        memcpy(to + i * (int64_t)sizeof x, &x, sizeof x);

static void copy_fill(size_t size, int64_t n, char *to, const char *from)
{
    switch (size) {
    case 1: memset(to, *from, (size_t)n); break;
    case 2: {
        FILL(uint16_t)
    } break;
    case 4: {
        FILL(uint32_t)
    } break;
    case 8: {
        FILL(uint64_t)
    } break;
    default: bug("copy of elements of %zu bytes", size);
    }
}

static void copy_strided_row(size_t size, int64_t n, char *to, int64_t ts, const char *from, int64_t fs)
{
    if (ts == 1 && fs == 1) {
        memcpy(to, from, (size_t)n * size);
        return;
    }
    if (ts == 1 && fs == 0) {
        copy_fill(size, n, to, from);
        return;
    }
    switch (size) {
    case 1: STRIDED(uint8_t) break;
    case 2: STRIDED(uint16_t) break;
    case 4: STRIDED(uint32_t) break;
    case 8: STRIDED(uint64_t) break;
    default: bug("copy of elements of %zu bytes", size);
    }
}

/* One tile: rows along dimension d; the source is contiguous along d, the destination along the last dimension. Runs are along the longer
 * of the two. */
static void copy_tile(const struct copy *c, int d, char *to, const char *from, int64_t rows, int64_t columns)
{
    if (c->size == 4 && c->to[c->rank - 1] == 1) {
        transpose_words(columns, rows, from, c->from[c->rank - 1], to, c->to[d]);
        return;
    }
    int run = columns < rows ? d : c->rank - 1, other = columns < rows ? c->rank - 1 : d;
    int64_t n = columns < rows ? rows : columns, runs = columns < rows ? columns : rows;
    for (int64_t i = 0; i < runs; i++)
        copy_strided_row(c->size, n, to + i * c->to[other] * (int64_t)c->size, c->to[run], from + i * c->from[other] * (int64_t)c->size,
                         c->from[run]);
}

/* A tile with few columns, such as the colours of pixels, has more rows. */
static void copy_plane(const struct copy *c, int d, char *to, const char *from)
{
    int last = c->rank - 1;
    int64_t size = (int64_t)c->size, most = c->dim[last] < SQUARE ? SQUARE * SQUARE / c->dim[last] : SQUARE;
    for (int64_t i = 0; i < c->dim[d]; i += most)
        for (int64_t j = 0; j < c->dim[last]; j += SQUARE) {
            int64_t rows = c->dim[d] - i < most ? c->dim[d] - i : most, columns = c->dim[last] - j < SQUARE ? c->dim[last] - j : SQUARE;
            copy_tile(c, d, to + (i * c->to[d] + j * c->to[last]) * size, from + (i * c->from[d] + j * c->from[last]) * size, rows,
                      columns);
        }
}

/* Offsets of position `row` of the outer dimensions (all but the last and the tiled one); returns how many rows remain in the innermost of
 * these. */
static int64_t outer_offsets(const struct strided_copy *job, int64_t row, int64_t *to, int64_t *from)
{
    const struct copy *c = &job->c;
    int64_t left = job->next < 0 ? 1 : c->dim[job->next] - row % c->dim[job->next];
    *to = *from = 0;
    for (int d = c->rank - 2; d >= 0; d--) {
        if (d == job->tiled)
            continue;
        int64_t i = row % c->dim[d];
        row /= c->dim[d];
        *to += i * c->to[d];
        *from += i * c->from[d];
    }
    return left;
}

void copy_rows(int64_t rows, size_t n, char *to, int64_t to_step, const char *from, int64_t from_step)
{
    enum { WORD = 4 };
    if (n == WORD)
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * to_step, from + r * from_step, WORD);
    else
        for (int64_t r = 0; r < rows; r++)
            copy_bytes(to + r * to_step, from + r * from_step, n);
}

static void copy_dimension(const struct strided_copy *job, int64_t rows, char *to, const char *from)
{
    const struct copy *c = &job->c;
    int last = c->rank - 1;
    int64_t size = (int64_t)c->size, to_step = job->next < 0 ? 0 : c->to[job->next] * size,
            from_step = job->next < 0 ? 0 : c->from[job->next] * size;
    if (job->tiled < 0 && c->to[last] == 1 && c->from[last] == 1) {
        copy_rows(rows, (size_t)(c->dim[last] * size), to, to_step, from, from_step);
        return;
    }
    for (int64_t r = 0; r < rows; r++, to += to_step, from += from_step) {
        if (job->tiled >= 0)
            copy_plane(c, job->tiled, to, from);
        else
            copy_strided_row(c->size, c->dim[last], to, c->to[last], from, c->from[last]);
    }
}

static void copy_range(void *data, int64_t lo, int64_t hi)
{
    const struct strided_copy *job = data;
    int64_t size = (int64_t)job->c.size;
    for (int64_t row = lo; row < hi;) {
        int64_t to, from, left = outer_offsets(job, row, &to, &from), rows = left < hi - row ? left : hi - row;
        copy_dimension(job, rows, job->to + to * size, job->from + from * size);
        row += rows;
    }
}

/* The dimension along which the source is contiguous, if it is not the last one and tiles pay off. */
static int tiled_dimension(const struct copy *c)
{
    int last = c->rank - 1;
    if (c->from[last] == 1 || c->from[last] == 0)
        return -1;
    for (int d = 0; d < last; d++)
        if (c->from[d] == 1 && c->dim[d] >= 4)
            return d;
    return -1;
}

/* Cuts one long row into pieces for threads. */
static void copy_cut(struct copy *c)
{
    const int64_t piece = 8192;
    if (c->rank != 1 || c->dim[0] < 2 * piece || c->dim[0] % piece)
        return;
    c->rank = 2;
    c->dim[1] = piece;
    c->to[1] = c->to[0];
    c->from[1] = c->from[0];
    c->dim[0] /= piece;
    c->to[0] *= piece;
    c->from[0] *= piece;
}

void copy_strided(struct kenv *env, const struct copy *copy, void *to, const void *from)
{
    struct strided_copy job = {.to = to, .from = from};
    int64_t n = tensor_dims_product(copy->dim, 0, copy->rank);
    if (n == 0 || (to == from && memcmp(copy->to, copy->from, (size_t)copy->rank * sizeof *copy->to) == 0))
        return;
    copy_merge(&job.c, copy);
    copy_cut(&job.c);
    job.tiled = tiled_dimension(&job.c);
    job.next = job.c.rank - 2;
    if (job.next == job.tiled)
        job.next--;
    int64_t each = job.c.dim[job.c.rank - 1] * (job.tiled >= 0 ? job.c.dim[job.tiled] : 1);
    kenv_parallel_for(env, n / each, each, copy_range, &job);
}

struct dense {
    char *to;
    const char *from;
};

static void dense_range(void *data, int64_t lo, int64_t hi)
{
    struct dense *d = data;
    memcpy(d->to + lo, d->from + lo, (size_t)(hi - lo));
}

void copy_dense(struct kenv *env, void *to, const void *from, size_t bytes)
{
    struct dense d = {to, from};
    if (to != from && bytes)
        kenv_parallel_for(env, (int64_t)bytes, 1, dense_range, &d);
}
