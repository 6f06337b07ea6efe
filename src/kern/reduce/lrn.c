/* lrn: local response normalisation, x / (bias + alpha / size * sum of squares of neighbouring channels) ^ beta. */
#include "kern/core/core.h"

#include <math.h>

struct lrn {
    int64_t before, after;
    double scale, bias, beta;
};

/* Channel c uses channels from c - before to c + after; the squares are stored after the line. */
#define LRN_LINE(T, power)                                                                   \
    const struct lrn *p = data;                                                              \
    T *square = x + n;                                                                       \
    (void)line;                                                                              \
    for (int64_t c = 0; c < n; c++)                                                          \
        square[c] = x[c] * x[c];                                                             \
    for (int64_t c = 0; c < n; c++) {                                                        \
        T sum = 0;                                                                           \
        for (int64_t i = c > p->before ? c - p->before : 0; i < n && i <= c + p->after; i++) \
            sum += square[i];                                                                \
        x[c] /= power((T)p->bias + (T)p->scale * sum, (T)p->beta);                           \
    }

static void lrn_f32(void *data, int64_t line, float *x, int64_t n)
{
    LRN_LINE(float, powf)
}
static void lrn_f64(void *data, int64_t line, double *x, int64_t n)
{
    LRN_LINE(double, pow)
}

void kern_LRN(struct kcall *call)
{
    const struct node *node = call->node;
    int64_t size = attr_int(node, "size");
    struct lrn lrn = {(size - 1) / 2, size / 2, attr_float(node, "alpha") / (double)size, attr_float(node, "bias"),
                      attr_float(node, "beta")};
    axis_line_run(call, &(struct line_op){lrn_f32, lrn_f64, 16 + 2 * (size < 1024 ? size : 1024)}, &lrn, &call->in[0], &call->out[0], 1);
}
