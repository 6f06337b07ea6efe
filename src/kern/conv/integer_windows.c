/* integer_windows: pointers to the windows of places in x. A run partly in the padding, or near the end of x, is copied. */
#include "kern/conv/integer_conv.h"
#include "kern/core/core.h"

#include <string.h>

enum { ROWS = BYTES_ROWS };

struct integer_windows integer_windows_of(const struct integer_conv *v, const struct bytes *w)
{
    struct integer_windows s = {.v = v, .runs = w->runs, .lines = v->kernel[0] * v->kernel[1]};
    s.per_line = s.runs / s.lines;
    s.taps = v->kernel[2] / s.per_line;
    s.end = v->x + v->batch * tensor_dims_product(v->size, 0, 3) * v->in;
    s.read = (v->groups - 1) * (v->in / v->groups) + w->words * 4;
    s.copy = s.taps * v->in > s.read ? s.taps * v->in : s.read;
    s.copy = (s.copy + 63) & ~(int64_t)63;
    return s;
}

size_t integer_windows_bytes(const struct integer_windows *s, int64_t rows)
{
    int64_t groups = (rows + ROWS - 1) / ROWS;
    size_t copies = kcall_bytes(s->v->call, (rows * s->runs + 1), (size_t)s->copy),
           pointers = kcall_bytes(s->v->call, groups * s->runs, ROWS * sizeof(uint8_t *)),
           lines = kcall_bytes(s->v->call, s->lines, sizeof(uint8_t *));
    return (copies + pointers + lines + 63) & ~(size_t)63;
}

/* The lines of x along the last dimension that a window covers, NULL: in the padding. at: its first tap. */
static void find_lines(const struct integer_windows *s, int64_t image, const int64_t *at, const uint8_t **line)
{
    const struct integer_conv *v = s->v;
    for (int64_t i = 0; i < v->kernel[0]; i++)
        for (int64_t j = 0; j < v->kernel[1]; j++) {
            int64_t a = at[0] + i * v->dilation[0], b = at[1] + j * v->dilation[1];
            bool inside = a >= 0 && a < v->size[0] && b >= 0 && b < v->size[1];
            *line++ = inside ? v->x + ((image * v->size[0] + a) * v->size[1] + b) * v->size[2] * v->in : NULL;
        }
}

/* The run from place `from` of a line of x on. */
static void copy_run(const struct integer_windows *s, const uint8_t *line, int64_t from, uint8_t *to)
{
    const struct integer_conv *v = s->v;
    int64_t lo = from < 0 ? -from : 0, hi = v->size[2] - from < s->taps ? v->size[2] - from : s->taps;
    lo = lo < s->taps ? lo : s->taps;
    hi = hi > lo ? hi : lo;
    memset(to, v->x_zero ^ v->flip, (size_t)(s->taps * v->in));
    if (hi > lo)
        memcpy(to + lo * v->in, line + (from + lo) * v->in, (size_t)((hi - lo) * v->in));
    memset(to + s->taps * v->in, 0, (size_t)(s->copy - s->taps * v->in));
}

/* Places of a row of y, and where their pointers and copies are stored. */
struct row {
    const uint8_t *padding, **pointers;
    uint8_t *copy;
    int64_t first, n, start; /* first: in the block; start: the first tap of its window along the last dimension */
};

/* Run `run` of the place's window, which starts at place `from` of a line of x. */
static const uint8_t *find_run(const struct integer_windows *s, const uint8_t *line, int64_t from, struct row *r)
{
    const struct integer_conv *v = s->v;
    if (from + s->taps <= 0 || from >= v->size[2])
        return r->padding;
    if (from >= 0 && from + s->taps <= v->size[2] && s->end - (line + from * v->in) >= s->read)
        return line + from * v->in;
    uint8_t *copy = r->copy;
    copy_run(s, line, from, copy);
    r->copy += s->copy;
    return copy;
}

/* Pointers to one run of each window in a row. Runs `within` are known to be inside x. */
static void find_runs(const struct integer_windows *s, const uint8_t *line, int64_t tap, int64_t run, struct row *r)
{
    const struct integer_conv *v = s->v;
    int64_t from = r->start + tap * v->dilation[2], step = v->stride[2], last = v->size[2] - s->taps, i = r->first % ROWS;
    int64_t left = line ? s->end - line - s->read : 0, safe = left < 0 ? -1 : left / v->in;
    const uint8_t **to = r->pointers + (r->first / ROWS * s->runs + run) * ROWS;
    last = last < safe ? last : safe;
    for (int64_t p = 0; p < r->n; p++, from += step, i++) {
        if (i == ROWS) {
            i = 0;
            to += s->runs * ROWS;
        }
        if (!line)
            to[i] = r->padding;
        else if (from >= 0 && from <= last)
            to[i] = line + from * v->in;
        else
            to[i] = find_run(s, line, from, r);
    }
}

const uint8_t *const *integer_windows_find(const struct integer_windows *s, int64_t place, int64_t rows, void *room)
{
    const struct integer_conv *v = s->v;
    const uint8_t **line = room, **pointers = line + s->lines;
    uint8_t *padding = (uint8_t *)(pointers + (rows + ROWS - 1) / ROWS * ROWS * s->runs);
    struct row r = {.padding = padding, .pointers = pointers, .copy = padding + s->copy};
    memset(padding, v->x_zero ^ v->flip, (size_t)s->copy);
    for (int64_t at[3]; r.first < rows; r.first += r.n) {
        int64_t left = v->result[2] - (place + r.first) % v->result[2];
        integer_conv_start(v, place + r.first, at);
        find_lines(s, (place + r.first) / v->places, at, line);
        r.n = left < rows - r.first ? left : rows - r.first;
        r.start = at[2];
        for (int64_t i = 0; i < s->runs; i++)
            find_runs(s, line[i / s->per_line], i % s->per_line, i, &r);
    }
    return pointers;
}
