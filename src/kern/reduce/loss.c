/* loss: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss, of [N, C, D..] and labels [N, D..].
 *
 * Every label has a loss, -weight[label] * x[label], and that weight in the mean; an ignored label has neither. Losses are kept in float64,
 * and added in order, independent of threads. In deterministic mode they are computed as op/reduce/loss.c lowers them: a weighted loss is
 * rounded. */
#include "kern/core/core.h"
#include "kern/reduce/reduce.h"

#include <math.h>
#include <string.h>

struct loss {
    struct kcall *call;
    const struct tensor *labels, *weight; /* weight NULL: all are 1 */
    int64_t classes, ignored;
    bool ignores, rounds;
    double *value; /* by label */
};

static struct loss loss_begin(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *labels = &call->in[1];
    const struct node *node = call->node;
    struct loss loss = {.call = call, .labels = labels, .weight = kcall_in(call, 2), .classes = x->dim[1]};
    loss.ignores = attr_is_set(node, "ignore_index");
    loss.ignored = loss.ignores ? attr_int(node, "ignore_index") : 0;
    loss.rounds = kenv_deterministic(call->env) && x->dtype != DT_F64;
    loss.value = kenv_room(call->env, ROOM_A, kcall_bytes(call, tensor_elements(labels), sizeof(double)));
    if (!dtype_is_float(x->dtype) || !dtype_size(x->dtype))
        kcall_bad_type(call, x->dtype);
    return loss;
}

/* The class of label i; -1: ignored. */
static int64_t label_class(const struct loss *loss, int64_t i)
{
    int64_t label = kcall_index_at(loss->call, loss->labels, i);
    if (loss->ignores && label == loss->ignored)
        return -1;
    return kcall_label(loss->call, 1, i, loss->classes, 1);
}

static double label_weight(const struct loss *loss, int64_t label)
{
    double w = 1;
    if (label >= 0 && loss->weight)
        convert_to_f64(loss->weight->dtype, element_at_const(loss->weight->data, dtype_size(loss->weight->dtype), label), 1, &w);
    return label < 0 ? 0 : w;
}

static double loss_of(const struct loss *loss, double x, int64_t label)
{
    double value = label < 0 ? 0 : -x * label_weight(loss, label);
    return loss->rounds ? (double)(float)value : value;
}

static void loss_end(const struct loss *loss)
{
    struct tensor *out = &loss->call->out[0];
    const char *how = attr_string(loss->call->node, "reduction");
    int64_t n = tensor_elements(loss->labels);
    double sum = 0, weights = 0;
    if (strcmp(how, "none") == 0) {
        convert_from_f64(out->dtype, loss->value, n, out->data);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        sum += loss->value[i];
        weights += label_weight(loss, label_class(loss, i));
    }
    sum = strcmp(how, "sum") == 0 ? sum : sum / weights;
    convert_from_f64(out->dtype, &sum, 1, out->data);
}

static void likelihood_range(void *data, int64_t lo, int64_t hi)
{
    const struct loss *loss = data;
    const struct tensor *x = &loss->call->in[0];
    int64_t inner = tensor_dims_product(x->dim, 2, x->rank);
    for (int64_t i = lo; i < hi; i++) {
        int64_t label = label_class(loss, i);
        double value = 0;
        if (label >= 0)
            convert_to_f64(x->dtype,
                           element_at_const(x->data, dtype_size(x->dtype), (i / inner * loss->classes + label) * inner + i % inner), 1,
                           &value);
        loss->value[i] = loss_of(loss, value, label);
    }
}

void kern_NegativeLogLikelihoodLoss(struct kcall *call)
{
    struct loss loss = loss_begin(call);
    kenv_parallel_for(call->env, tensor_elements(loss.labels), 8, likelihood_range, &loss);
    loss_end(&loss);
}

#define ENTROPY(name, T, log)                                                       \
    static void name(void *data, int64_t line, T *x, int64_t n)                     \
    {                                                                               \
        log(x, n);                                                                  \
        const struct loss *loss = data;                                             \
        int64_t label = label_class(loss, line);                                    \
        loss->value[line] = loss_of(loss, label < 0 ? 0 : (double)x[label], label); \
    }
ENTROPY(entropy_f32, float, softmax_log_f32)
ENTROPY(entropy_chunks, float, softmax_log_chunks)
ENTROPY(entropy_f64, double, softmax_log_f64)

void kern_SoftmaxCrossEntropyLoss(struct kcall *call)
{
    struct loss loss = loss_begin(call);
    line_f32 *entropy = kenv_deterministic(call->env) ? entropy_chunks : entropy_f32;
    axis_line_run(call, &(struct line_op){entropy, entropy_f64, 8}, &loss, &call->in[0], kcall_out(call, 1), 1);
    loss_end(&loss);
}
