/* roi_align: regions of images, each as a grid of bins. A bin is the mean or the maximum of evenly spaced samples, each interpolated
 * between four pixels. The samples of a region are computed once, for all channels. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct roi_sample {
    int64_t index[4];
    float weight[4];
};
struct roi_align {
    const struct kcall *call;
    const struct tensor *rois, *batch;
    const float *x;
    float *y;
    int64_t channels, height, width, rows, columns, sampling, images;
    bool maximum, half;
    double scale;
};
struct region {
    int64_t image, per_row, per_column;
    double y, x, bin_height, bin_width;
};

static struct region read_region(const struct roi_align *r, int64_t i)
{
    struct region g = {.image = kcall_index_at(r->call, r->batch, i)};
    double box[4], offset = r->half ? 0.5 : 0;
    if (g.image < 0 || g.image >= r->images)
        fail("%s: region %lld is of image %lld of %lld", kcall_where(r->call), (long long)i, (long long)g.image, (long long)r->images);
    convert_to_f64(r->rois->dtype, element_at_const(r->rois->data, dtype_size(r->rois->dtype), 4 * i), 4, box);
    g.x = box[0] * r->scale - offset;
    g.y = box[1] * r->scale - offset;
    double width = box[2] * r->scale - offset - g.x, height = box[3] * r->scale - offset - g.y;
    if (!r->half) {
        width = fmax(width, 1);
        height = fmax(height, 1);
    }
    if (!(fabs(width) < 1e6) || !(fabs(height) < 1e6) || !(fabs(g.x) < 1e9) || !(fabs(g.y) < 1e9))
        fail("%s: region %lld is no box of finite size", kcall_where(r->call), (long long)i);
    g.bin_height = height / (double)r->rows;
    g.bin_width = width / (double)r->columns;
    g.per_row = r->sampling > 0 ? r->sampling : (int64_t)ceil(g.bin_height);
    g.per_column = r->sampling > 0 ? r->sampling : (int64_t)ceil(g.bin_width);
    return g;
}

/* The pixel below a coordinate and the weight of the one above; false: more than a pixel outside. */
static bool between(double at, int64_t n, int64_t *low, int64_t *high, double *share)
{
    if (at < -1 || at > (double)n)
        return false;
    at = at < 0 ? 0 : at;
    *low = (int64_t)at;
    if (*low >= n - 1) {
        *low = *high = n - 1;
        *share = 0;
        return true;
    }
    *high = *low + 1;
    *share = at - (double)*low;
    return true;
}

static struct roi_sample sample_at(const struct roi_align *r, double y, double x)
{
    struct roi_sample s = {.index = {0}, .weight = {0}};
    int64_t top, bottom, left, right;
    double v, h;
    if (!between(y, r->height, &top, &bottom, &v) || !between(x, r->width, &left, &right, &h))
        return s;
    const int64_t index[4] = {top * r->width + left, top * r->width + right, bottom * r->width + left, bottom * r->width + right};
    const double weight[4] = {(1 - v) * (1 - h), (1 - v) * h, v * (1 - h), v * h};
    for (int k = 0; k < 4; k++) {
        s.index[k] = index[k];
        s.weight[k] = (float)weight[k];
    }
    return s;
}

/* One bin of one channel. */
static float pooled_bin(const struct roi_align *r, const float *plane, const struct roi_sample *s, int64_t count)
{
    float sum = 0, most = -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        float value = 0, greatest = -INFINITY;
        for (int k = 0; k < 4; k++) {
            float part = s[i].weight[k] > 0 ? s[i].weight[k] * plane[s[i].index[k]] : 0;
            value += part;
            greatest = part > greatest ? part : greatest;
        }
        sum += value;
        most = greatest > most ? greatest : most;
    }
    return count == 0 ? 0 : r->maximum ? most : sum / (float)count;
}

static void align_region(const struct roi_align *r, int64_t i, const struct region *g, struct roi_sample *sample)
{
    int64_t count = g->per_row * g->per_column, bins = r->rows * r->columns;
    for (int64_t bin = 0; bin < bins; bin++) {
        double y = g->y + (double)(bin / r->columns) * g->bin_height, x = g->x + (double)(bin % r->columns) * g->bin_width;
        for (int64_t k = 0; k < count; k++)
            sample[k] = sample_at(r, y + ((double)(k / g->per_column) + 0.5) * g->bin_height / (double)g->per_row,
                                  x + ((double)(k % g->per_column) + 0.5) * g->bin_width / (double)g->per_column);
        for (int64_t c = 0; c < r->channels; c++)
            r->y[(i * r->channels + c) * bins + bin] = pooled_bin(r, r->x + (g->image * r->channels + c) * r->height * r->width, sample,
                                                                  count);
    }
}

struct roi_work {
    struct roi_align r;
    struct roi_sample *room;
    int64_t most;
};

static void roi_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct roi_work *w = data;
    for (int64_t i = lo; i < hi; i++) {
        struct region g = read_region(&w->r, i);
        align_region(&w->r, i, &g, w->room + thread * w->most);
    }
}

static bool one_of(const struct kcall *call, const char *attr, const char *yes, const char *no)
{
    const char *text = attr_string(call->node, attr);
    if (strcmp(text, yes) != 0 && strcmp(text, no) != 0)
        fail("%s: attribute '%s' is '%s', expected %s or %s", kcall_where(call), attr, text, yes, no);
    return strcmp(text, yes) == 0;
}

void kern_RoiAlign(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *rois = &call->in[1];
    struct tensor *y = &call->out[0];
    struct roi_work w = {.r = {.call = call,
                               .rois = rois,
                               .batch = &call->in[2],
                               .images = x->dim[0],
                               .channels = x->dim[1],
                               .height = x->dim[2],
                               .width = x->dim[3],
                               .rows = y->dim[2],
                               .columns = y->dim[3],
                               .sampling = attr_int(call->node, "sampling_ratio"),
                               .maximum = one_of(call, "mode", "max", "avg"),
                               .half = one_of(call, "coordinate_transformation_mode", "half_pixel", "output_half_pixel"),
                               .scale = attr_float(call->node, "spatial_scale")}};
    if (!dtype_fits_f32(x->dtype) || !dtype_is_float(rois->dtype))
        kcall_bad_type(call, dtype_fits_f32(x->dtype) ? rois->dtype : x->dtype);
    if (tensor_elements(y) == 0)
        return;
    if (w.r.height == 0 || w.r.width == 0)
        fail("%s: there are no pixels to sample", kcall_where(call));
    for (int64_t i = 0; i < rois->dim[0]; i++) {
        struct region g = read_region(&w.r, i);
        int64_t count = g.per_row > 0 && g.per_column > 0 ? g.per_row * g.per_column : 0;
        w.most = count > w.most ? count : w.most;
    }
    w.room = kenv_scratch(call->env, kcall_bytes(call, w.most * kenv_threads(call->env), sizeof *w.room));
    w.r.x = tensor_f32(call->env, x, ROOM_A);
    w.r.y = kcall_result_f32(call, y);
    kenv_parallel_shares(call->env, rois->dim[0], y->dim[2] * y->dim[3] * w.r.channels * (8 * w.most + 1), roi_range, &w);
    kcall_result_store(w.r.y, y);
}
