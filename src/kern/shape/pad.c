/* pad: each dimension's source coordinates are tabulated once (-1: padding), then rows are gathered. Negative pads crop. Dimensions after
 * the last padded one are copied as one element. */
#include "kern/core/core.h"

#include <string.h>

enum pad_mode { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP };
struct pad {
    const struct tensor *x;
    struct tensor *y;
    int last; /* dimension that is padded */
    const int64_t *source[MAX_RANK];
    const void *fill; /* of fill_size; NULL: zeros */
    size_t size, fill_size;
};

static enum pad_mode mode_of(const struct kcall *call)
{
    static const char *const name[] = {"constant", "reflect", "edge", "wrap"};
    const char *mode = attr_string(call->node, "mode");
    int i = NAMED_ROW(name, mode);
    if (i >= 0)
        return (enum pad_mode)i;
    fail("%s: mode must be constant, reflect, edge or wrap, not %s", kcall_where(call), mode);
}

/* The source of coordinate i - before in a dimension of n > 0 elements. */
static int64_t pad_source(enum pad_mode mode, int64_t i, int64_t n)
{
    if (i >= 0 && i < n)
        return i;
    int64_t period = 2 * (n - 1);
    switch (mode) {
    case PAD_CONSTANT: return -1;
    case PAD_EDGE: return i < 0 ? 0 : n - 1;
    case PAD_WRAP: return (i % n + n) % n;
    default: break;
    }
    if (period == 0)
        return 0;
    i = (i % period + period) % period;
    return i < n ? i : period - i;
}

/* Padding before each dimension; the padding after it follows from the result's size. */
static void pads_before(const struct kcall *call, int rank, int64_t *before)
{
    int64_t pads[2 * MAX_RANK], axes[MAX_RANK];
    int n = kcall_sizes(call, 1, "pads", pads, 2 * MAX_RANK), naxes = kcall_sizes(call, 3, "axes", axes, MAX_RANK);
    int expected = naxes >= 0 ? naxes : rank;
    if (n != 2 * expected)
        fail("%s: there are %d pads for %d dimensions, expected two each", kcall_where(call), n < 0 ? 0 : n, expected);
    for (int d = 0; d < rank; d++)
        before[d] = 0;
    for (int i = 0; i < expected; i++)
        before[naxes >= 0 ? kcall_axis(call, axes[i], rank) : i] = pads[i];
}

/* The end of the range that starts at i: of padding, or of neighbours in x. */
static int64_t run_end(const int64_t *source, int64_t i, int64_t n)
{
    int64_t end = i + 1, step = source[i] >= 0;
    while (end < n && source[end] == source[end - 1] + step && (source[end] >= 0) == (step == 1))
        end++;
    return end;
}

static void fill_elements(const struct pad *p, char *to, int64_t n)
{
    if (!p->fill)
        memset(to, 0, (size_t)n * p->size);
    for (size_t at = 0; p->fill && at < (size_t)n * p->size; at += p->fill_size)
        memcpy(to + at, p->fill, p->fill_size);
}

static void pad_range(void *data, int64_t lo, int64_t hi)
{
    const struct pad *p = data;
    int last = p->last;
    int64_t n = p->y->dim[last];
    for (int64_t row = lo; row < hi; row++) {
        int64_t rest = row, from = 0, step = p->x->dim[last];
        bool inside = true;
        for (int d = last - 1; d >= 0; d--) {
            int64_t at_d = p->source[d][rest % p->y->dim[d]];
            inside = inside && at_d >= 0;
            from += at_d * step;
            step *= p->x->dim[d];
            rest /= p->y->dim[d];
        }
        for (int64_t i = 0, end; i < n; i = end) {
            int64_t k = inside ? p->source[last][i] : -1;
            end = inside ? run_end(p->source[last], i, n) : n;
            void *to = element_at(p->y->data, p->size, row * n + i);
            if (k >= 0)
                memcpy(to, element_at_const(p->x->data, p->size, from + k), (size_t)(end - i) * p->size);
            else
                fill_elements(p, to, end - i);
        }
    }
}

static void tabulate_sources(const struct kcall *call, struct pad *p, const int64_t *before, int64_t *table)
{
    enum pad_mode mode = mode_of(call);
    for (int d = 0; d <= p->last; d++) {
        if (p->x->dim[d] == 0 && mode != PAD_CONSTANT)
            fail("%s: dimension %d has no elements to pad with", kcall_where(call), d);
        for (int64_t i = 0; i < p->y->dim[d]; i++)
            table[i] = pad_source(mode, i - before[d], p->x->dim[d]);
        p->source[d] = table;
        table += p->y->dim[d];
    }
}

void kern_Pad(struct kcall *call)
{
    static const char zeros[16] = {0};
    const struct tensor *x = &call->in[0], *value = kcall_in(call, 2);
    struct tensor *y = &call->out[0];
    struct pad p = {.x = x, .y = y, .last = y->rank - 1, .size = dtype_size(x->dtype), .fill_size = dtype_size(x->dtype)};
    int64_t entries = 0, before[MAX_RANK];
    if (tensor_elements(y) == 0)
        return;
    if (value && (value->dtype != x->dtype || tensor_elements(value) != 1))
        fail("%s: the padding must be one %s", kcall_where(call), dtype_name(x->dtype));
    if (y->rank == 0) {
        copy_dense(call->env, y->data, x->data, tensor_bytes(y));
        return;
    }
    require(p.size <= sizeof zeros);
    p.fill = value && memcmp(value->data, zeros, p.size) != 0 ? value->data : NULL;
    pads_before(call, y->rank, before);
    for (; p.last > 0 && before[p.last] == 0 && x->dim[p.last] == y->dim[p.last]; p.last--)
        p.size *= (size_t)y->dim[p.last];
    int64_t rows = 1, row = 2 * y->dim[p.last] * (int64_t)(p.size / p.fill_size);
    for (int d = 0; d <= p.last; d++) {
        rows *= d < p.last ? y->dim[d] : 1;
        entries += y->dim[d];
    }
    tabulate_sources(call, &p, before, kenv_scratch(call->env, kcall_bytes(call, entries, sizeof(int64_t))));
    kenv_parallel_for(call->env, rows, row, pad_range, &p);
}
