/* grid_sample: samples images at positions given by a grid, by nearest, linear or cubic interpolation, in any number of spatial dimensions.
 * The pixels of a sample and their weights are computed once, for all channels. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

enum { PLACES = 64, MOST_TAPS = 64 }; /* samples whose taps are computed together; 4^3 */
enum border { BORDER_ZEROS, BORDER_EDGE, BORDER_REFLECT };
enum sampling { SAMPLE_NEAREST, SAMPLE_LINEAR, SAMPLE_CUBIC };

struct grid_sample {
    const struct tensor *x, *grid;
    struct tensor *y;
    int n; /* spatial dimensions */
    enum border border;
    enum sampling mode;
    bool corners; /* -1 and 1 are the centres of the outermost pixels, not their outer edges */
    int taps;
    int64_t channels, pixels, places, blocks;
    const float *from; /* x in float32; NULL: x's own type */
    float *to;
};

/* ---- where a place reads ---------------------------------------------------------------------------------------------------------- */

static double reflect(double at, double least, double most)
{
    double range = most - least, beyond = at < least ? least - at : at > most ? at - most : 0;
    if (beyond <= 0 || range <= 0)
        return range > 0 ? at : least;
    double turns = floor(beyond / range), rest = beyond - turns * range;
    bool back = fmod(turns, 2) != 0;
    return (at < least) != back ? least + rest : most - rest;
}

/* The ends of the range that an image of size n covers. */
static void covered(const struct grid_sample *s, int64_t n, double *least, double *most)
{
    *least = s->corners ? 0 : -0.5;
    *most = s->corners ? (double)n - 1 : (double)n - 0.5;
}

static double bounded(const struct grid_sample *s, double at, int64_t n)
{
    double least, most;
    covered(s, n, &least, &most);
    if (at >= least && at <= most)
        return at;
    if (s->border == BORDER_EDGE)
        return at < 0 ? 0 : (double)n - 1;
    return s->border == BORDER_REFLECT ? reflect(at, least, most) : at;
}

/* The pixel for index i; -1: zero. */
static int64_t pixel(const struct grid_sample *s, double i, int64_t n)
{
    double least, most;
    covered(s, n, &least, &most);
    if (s->border == BORDER_EDGE)
        i = i < 0 ? 0 : i > (double)n - 1 ? (double)n - 1 : i;
    else if (s->border == BORDER_REFLECT)
        i = reflect(i, least, most);
    return i > -1 && i < (double)n ? (int64_t)i : -1;
}

/* Keys' kernel with a = -0.75, for four pixels around t, which is relative to the second one. */
static void cubic_weights(double t, double *w)
{
    const double a = -0.75;
    for (int k = 0; k < 4; k++) {
        double d = fabs(t + 1 - k);
        w[k] = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    }
}

/* Pixels and weights along spatial dimension d for a grid coordinate; returns their number. */
static int axis_taps(const struct grid_sample *s, int d, double coordinate, int64_t *at, double *w)
{
    int64_t n = s->x->dim[2 + d];
    double place = s->corners ? (coordinate + 1) / 2 * ((double)n - 1) : ((coordinate + 1) * (double)n - 1) / 2;
    int count = s->mode == SAMPLE_NEAREST ? 1 : s->mode == SAMPLE_LINEAR ? 2 : 4;
    if (!isfinite(place)) {
        memset(w, 0, (size_t)count * sizeof *w);
        for (int k = 0; k < count; k++)
            at[k] = -1;
        return count;
    }
    if (s->mode != SAMPLE_CUBIC) /* as in torch, which clamps each pixel for cubic, not the position */
        place = bounded(s, s->mode == SAMPLE_NEAREST ? nearbyint(place) : place, n);
    double first = floor(place), t = place - first;
    if (s->mode == SAMPLE_NEAREST) {
        at[0] = pixel(s, place, n);
        w[0] = 1;
        return 1;
    }
    if (s->mode == SAMPLE_CUBIC)
        cubic_weights(t, w);
    else
        w[0] = 1 - t, w[1] = t;
    for (int k = 0; k < count; k++)
        at[k] = pixel(s, first + k - (s->mode == SAMPLE_CUBIC), n);
    return count;
}

/* All taps of one sample: every combination of the taps of its dimensions. The grid lists the innermost dimension first. */
static void place_taps(const struct grid_sample *s, const double *coordinates, int64_t *index, float *weight)
{
    int64_t at[4];
    double w[4];
    int have = 1;
    index[0] = 0;
    weight[0] = 1;
    for (int d = 0; d < s->n; d++) {
        int count = axis_taps(s, d, coordinates[s->n - 1 - d], at, w);
        for (int i = have - 1; i >= 0; i--)
            for (int k = count - 1; k >= 0; k--) {
                weight[i * count + k] = weight[i] * (float)w[k];
                index[i * count + k] = index[i] < 0 || at[k] < 0 ? -1 : index[i] * s->x->dim[2 + d] + at[k];
            }
        have *= count;
    }
}

/* ---- what it finds there ---------------------------------------------------------------------------------------------------------- */

struct tap_table {
    int64_t index[PLACES * MOST_TAPS];
    float weight[PLACES * MOST_TAPS];
};

/* Any type: copies the nearest pixel. */
static void copy_pixels(const struct grid_sample *s, const struct tap_table *t, int64_t image, int64_t place, int64_t count)
{
    size_t size = dtype_size(s->x->dtype);
    for (int64_t c = 0; c < s->channels; c++) {
        const void *from = element_at_const(s->x->data, size, (image * s->channels + c) * s->pixels);
        void *to = element_at(s->y->data, size, (image * s->channels + c) * s->places + place);
        for (int64_t i = 0; i < count; i++)
            if (t->index[i] >= 0)
                memcpy(element_at(to, size, i), element_at_const(from, size, t->index[i]), size);
            else
                memset(element_at(to, size, i), 0, size);
    }
}

#define BLEND(T, source, target)                                                            \
    for (int64_t c = 0; c < s->channels; c++) {                                             \
        const T *from = (const T *)(source) + (image * s->channels + c) * s->pixels;        \
        T *to = (T *)(target) + (image * s->channels + c) * s->places + place;              \
        for (int64_t i = 0; i < count; i++) {                                               \
            T sum = 0;                                                                      \
            for (int k = 0; k < s->taps; k++)                                               \
                if (t->index[i * s->taps + k] >= 0)                                         \
                    sum += (T)t->weight[i * s->taps + k] * from[t->index[i * s->taps + k]]; \
            to[i] = sum;                                                                    \
        }                                                                                   \
    }

static void blend_pixels(const struct grid_sample *s, const struct tap_table *t, int64_t image, int64_t place, int64_t count)
{
    if (s->from)
        BLEND(float, s->from, s->to)
    else
        BLEND(double, s->x->data, s->y->data)
}

static void sample_range(void *data, int64_t lo, int64_t hi)
{
    const struct grid_sample *s = data;
    struct tap_table t;
    double coordinates[PLACES * MOST_SPATIAL];
    for (int64_t b = lo; b < hi; b++) {
        int64_t image = b / s->blocks, place = b % s->blocks * PLACES, count = s->places - place < PLACES ? s->places - place : PLACES;
        convert_to_f64(s->grid->dtype, element_at_const(s->grid->data, dtype_size(s->grid->dtype), (image * s->places + place) * s->n),
                       count * s->n, coordinates);
        for (int64_t i = 0; i < count; i++)
            place_taps(s, coordinates + i * s->n, t.index + i * s->taps, t.weight + i * s->taps);
        if (s->mode == SAMPLE_NEAREST)
            copy_pixels(s, &t, image, place, count);
        else
            blend_pixels(s, &t, image, place, count);
    }
}

/* ---- the call --------------------------------------------------------------------------------------------------------------------- */

static int word_of(const struct kcall *call, const char *attr, int n, const char *const *words)
{
    const char *text = attr_string(call->node, attr);
    int i = NAMED_AT(words, n, text);
    if (i >= 0)
        return i;
    fail("%s: attribute '%s' is '%s', expected %s, %s or %s", kcall_where(call), attr, text, words[0], words[1], words[2]);
}

static void read_call(struct kcall *call, struct grid_sample *s)
{
    static const char *const borders[] = {"zeros", "border", "reflection"}, *const modes[] = {"nearest", "linear", "cubic"};
    const struct tensor *x = &call->in[0], *grid = &call->in[1];
    *s = (struct grid_sample){.x = x, .grid = grid, .y = &call->out[0], .n = x->rank - 2, .taps = 1};
    s->border = (enum border)word_of(call, "padding_mode", 3, borders);
    s->mode = (enum sampling)word_of(call, "mode", 3, modes);
    s->corners = attr_int(call->node, "align_corners") != 0;
    for (int d = 0; d < s->n; d++)
        s->taps *= s->mode == SAMPLE_NEAREST ? 1 : s->mode == SAMPLE_LINEAR ? 2 : 4;
    if (s->taps > MOST_TAPS)
        fail("%s: there is no kernel for %d spatial dimensions in mode %s", kcall_where(call), s->n, attr_string(call->node, "mode"));
    if (!dtype_size(x->dtype) || (s->mode != SAMPLE_NEAREST && !dtype_is_float(x->dtype)))
        kcall_bad_type(call, x->dtype);
    s->channels = x->dim[1];
    s->pixels = tensor_dims_product(x->dim, 2, x->rank);
    s->places = tensor_dims_product(s->y->dim, 2, s->y->rank);
    s->blocks = (s->places + PLACES - 1) / PLACES;
}

void kern_GridSample(struct kcall *call)
{
    struct grid_sample s;
    read_call(call, &s);
    if (tensor_elements(s.y) == 0)
        return;
    if (s.pixels == 0)
        fail("%s: there are no pixels to sample", kcall_where(call));
    if (s.mode != SAMPLE_NEAREST && dtype_fits_f32(s.x->dtype)) {
        s.from = tensor_f32(call->env, s.x, ROOM_A);
        s.to = kcall_result_f32(call, s.y);
    }
    kenv_parallel_for(call->env, s.x->dim[0] * s.blocks, PLACES * s.taps * (s.channels + 4), sample_range, &s);
    if (s.to)
        kcall_result_store(s.to, s.y);
}
