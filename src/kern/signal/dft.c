/* dft: DFT and STFT: lines of real or complex numbers, each transformed on one thread. */
#include "kern/signal/signal.h"

#include <string.h>

struct transform {
    const struct tensor *x;
    struct tensor *y;
    struct fourier f;
    bool inverse, onesided;
    int64_t parts;        /* of an element of the operand: 1 or 2 */
    int64_t below, taken; /* stride along a line; elements of a line that exist */
    int64_t length, bins; /* size along the axis: of the operand, of the result */
    const double *window; /* NULL: none */
    int64_t step, frames; /* samples from one frame to the next, frames of a signal; 0: whole lines */
    double *scratch;      /* per thread */
    int64_t scratch_each;
};

static int64_t last_of(const struct tensor *t)
{
    return t->dim[t->rank - 1];
}

/* The first element of line i of a tensor with n elements along it. */
static int64_t line_start(const struct transform *t, int64_t i, int64_t n)
{
    return i / t->below * n * t->below + i % t->below;
}

static void load_line(const struct transform *t, int64_t first, double *re, double *im)
{
    int64_t parts = t->parts, n = t->f.n;
    size_t size = dtype_size(t->x->dtype);
    memset(re, 0, (size_t)n * sizeof *re);
    memset(im, 0, (size_t)n * sizeof *im);
    for (int64_t j = 0; j < t->taken; j++) {
        const void *at = element_at_const(t->x->data, size, (first + j * t->below) * parts);
        double both[2] = {0, 0};
        convert_to_f64(t->x->dtype, at, parts, both);
        re[j] = t->window ? both[0] * t->window[j] : both[0];
        im[j] = t->window ? both[1] * t->window[j] : both[1];
    }
}

/* Mirrors the spectrum of a real signal. */
static void mirror(int64_t n, int64_t taken, double *re, double *im)
{
    for (int64_t k = taken; k < n; k++) {
        re[k] = n - k < taken ? re[n - k] : 0;
        im[k] = n - k < taken ? -im[n - k] : 0;
    }
}

static void store_line(const struct transform *t, int64_t first, const double *re, const double *im)
{
    int64_t parts = last_of(t->y);
    size_t size = dtype_size(t->y->dtype);
    for (int64_t k = 0; k < t->bins; k++) {
        double both[2] = {re[k], im[k]};
        convert_from_f64(t->y->dtype, both, parts, element_at(t->y->data, size, (first + k * t->below) * parts));
    }
}

/* Lines lo..hi. */
static void transform_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct transform *t = data;
    double *re = t->scratch + thread * t->scratch_each, *im = re + t->f.n, *more = im + t->f.n;
    for (int64_t i = lo; i < hi; i++) {
        int64_t frame = t->frames ? i / t->frames * t->length + i % t->frames * t->step : 0;
        load_line(t, t->frames ? frame : line_start(t, i, t->length), re, im);
        if (t->inverse && t->onesided)
            mirror(t->f.n, t->taken, re, im);
        fourier_transform(&t->f, t->inverse, re, im, more);
        store_line(t, line_start(t, i, t->bins), re, im);
    }
}

static void run_lines(struct kcall *call, struct transform *t, int64_t n, int64_t lines)
{
    if (tensor_elements(t->y) == 0)
        return;
    double *table = kenv_room(call->env, ROOM_A, kcall_bytes(call, fourier_table(n), sizeof *table));
    t->scratch_each = 2 * n + fourier_scratch(n);
    t->scratch = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, kenv_threads(call->env) * t->scratch_each, sizeof *t->scratch));
    t->f = fourier_prepare(n, table);
    kenv_parallel_shares(call->env, lines, 50 * n, transform_range, t);
}

/* A size from an operand or an attribute; `otherwise` if both are absent. */
static int64_t given_size(const struct kcall *call, int operand, const char *attr, int64_t otherwise)
{
    int64_t n;
    return kcall_sizes(call, operand, attr, &n, 1) == 1 ? n : otherwise;
}

void kern_DFT(struct kcall *call)
{
    struct transform t = {.x = &call->in[0], .y = &call->out[0], .parts = last_of(&call->in[0])};
    int axis = kcall_axis(call, given_size(call, 2, "axis", -2), t.x->rank);
    t.inverse = attr_int(call->node, "inverse") != 0;
    t.onesided = attr_int(call->node, "onesided") != 0;
    t.length = t.x->dim[axis];
    t.bins = t.y->dim[axis];
    int64_t n = given_size(call, 1, "length", t.inverse && t.onesided ? 2 * (t.length - 1) : t.length);
    t.taken = t.inverse && t.onesided ? n / 2 + 1 : n;
    t.taken = t.taken < t.length ? t.taken : t.length;
    t.below = tensor_dims_product(t.x->dim, axis + 1, t.x->rank - 1);
    if (n < 1 || t.bins > n)
        fail("%s: the length of the transform is %lld, expected 1 or more", kcall_where(call), (long long)n);
    run_lines(call, &t, n, tensor_dims_product(t.x->dim, 0, axis) * t.below);
}

static const double *window_numbers(struct kcall *call, const struct tensor *w)
{
    int64_t n = tensor_elements(w);
    double *to = kenv_room(call->env, ROOM_B, kcall_bytes(call, n, sizeof *to));
    convert_to_f64(w->dtype, w->data, n, to);
    return to;
}

void kern_STFT(struct kcall *call)
{
    struct transform t = {.x = &call->in[0], .y = &call->out[0], .onesided = true, .below = 1};
    const struct tensor *window = kcall_in(call, 2);
    t.parts = t.x->rank == 3 ? t.x->dim[2] : 1;
    t.length = t.x->dim[1];
    t.frames = t.y->dim[1];
    t.bins = t.y->dim[2];
    t.step = given_size(call, 1, "step", 1);
    t.taken = given_size(call, 3, "length", window ? window->dim[0] : t.length);
    t.window = window ? window_numbers(call, window) : NULL;
    if (t.taken < 1 || t.step < 1 || t.bins > t.taken || (t.frames > 0 && (t.frames - 1) * t.step + t.taken > t.length) ||
        (window && window->dim[0] != t.taken))
        fail("%s: frames of %lld numbers, one every %lld, do not fit a signal of %lld and its window", kcall_where(call),
             (long long)t.taken, (long long)t.step, (long long)t.length);
    run_lines(call, &t, t.taken, t.x->dim[0] * t.frames);
}
