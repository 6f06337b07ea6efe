/* axis_line: processes the lines of a tensor along one axis. A line is converted to float32 (f64: float64), whatever the storage type;
 * contiguous lines are converted at once, others element by element. */
#include "kern/core/core.h"

struct line_range {
    const struct line_op *op;
    void *data;
    const struct tensor *x;
    struct tensor *y;
    int64_t n, inner;
    char *scratch;
    size_t each;
};

static void line_load(const struct line_range *l, int64_t base, int64_t run, size_t wide, void *line)
{
    enum dtype t = l->x->dtype;
    for (int64_t i = 0; i < l->n; i += run) {
        const void *from = element_at_const(l->x->data, dtype_size(t), base + i * l->inner);
        t == DT_F64 ? convert_to_f64(t, from, run, element_at(line, wide, i)) : convert_to_f32(t, from, run, element_at(line, wide, i));
    }
}

static void line_store(const struct line_range *l, int64_t base, int64_t run, size_t wide, const void *line)
{
    enum dtype t = l->y->dtype;
    for (int64_t i = 0; i < l->n; i += run) {
        void *to = element_at(l->y->data, dtype_size(t), base + i * l->inner);
        wide == 8 ? convert_from_f64(t, element_at_const(line, wide, i), run, to)
                  : convert_from_f32(t, element_at_const(line, wide, i), run, to);
    }
}

static void lines_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct line_range *l = data;
    void *line = l->scratch + (size_t)thread * l->each;
    size_t wide = l->x->dtype == DT_F64 ? 8 : 4;
    int64_t run = l->inner == 1 ? l->n : 1;
    for (int64_t i = lo; i < hi; i++) {
        int64_t base = i / l->inner * l->n * l->inner + i % l->inner;
        line_load(l, base, run, wide, line);
        if (wide == 8)
            l->op->f64(l->data, i, line, l->n);
        else
            l->op->f32(l->data, i, line, l->n);
        if (l->y)
            line_store(l, base, run, wide, line);
    }
}

void axis_line_run(struct kcall *call, const struct line_op *op, void *data, const struct tensor *x, struct tensor *y, int axis)
{
    struct line_range l = {op, data, x, y, x->dim[axis], tensor_dims_product(x->dim, axis + 1, x->rank), NULL, 0};
    int64_t lines = tensor_dims_product(x->dim, 0, axis) * l.inner;
    if (!dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (lines == 0)
        return;
    l.each = (kcall_bytes(call, l.n, 16) + 63) & ~(size_t)63;
    l.scratch = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env), l.each));
    kenv_parallel_shares(call->env, lines, l.n * op->cost + 1, lines_range, &l);
}
