/* gate: the functions that gates of recurrent nets may have, and the node's list of them.
 *
 * Numbers alpha and beta are lists of their own, of those functions that take one, in order. */
#include "kern/core/mathf.h"
#include "kern/recurrent/recurrent.h"

#include <math.h>
#include <string.h>
#include <strings.h>

/* X(name, takes alpha, its default, takes beta, its default, value at v) */
/* clang-format off */
#define GATES(X)                                                                              \
    X(Sigmoid, false, 0, false, 0, mathf_sigmoid(v))                                          \
    X(Tanh, false, 0, false, 0, mathf_tanh(v))                                                \
    X(Relu, false, 0, false, 0, v > 0 ? v : 0)                                                \
    X(Affine, true, NAN, true, NAN, alpha * v + beta)                                             \
    X(LeakyRelu, true, 0.01f, false, 0, v >= 0 ? v : alpha * v)                               \
    X(ThresholdedRelu, true, 1, false, 0, v > alpha ? v : 0)                                  \
    X(ScaledTanh, true, NAN, true, NAN, alpha * mathf_tanh(beta * v))                             \
    X(HardSigmoid, true, 0.2f, true, 0.5f, fminf(fmaxf(alpha * v + beta, 0), 1))              \
    X(Elu, true, 1, false, 0, v >= 0 ? v : alpha * (mathf_exp(v) - 1))                        \
    X(Softsign, false, 0, false, 0, v / (1 + fabsf(v)))                                       \
    X(Softplus, false, 0, false, 0, mathf_softplus(v))
/* clang-format on */

#define GATE(name, alphas, alpha0, betas, beta0, value)                        \
    static SIMD void gate_##name(float *x, int64_t n, float alpha, float beta) \
    {                                                                          \
        (void)alpha;                                                           \
        (void)beta;                                                            \
        LOOP for (int64_t i = 0; i < n; i++)                                   \
        {                                                                      \
            float v = x[i];                                                    \
            x[i] = value;                                                      \
        }                                                                      \
    }
GATES(GATE)

#define GATE_ROW(name, alphas, alpha0, betas, beta0, value) {#name, gate_##name, alphas, betas, alpha0, beta0},
static const struct {
    const char *name;
    gate_fn *apply;
    bool alphas, betas;
    float alpha, beta;
} known[] = {GATES(GATE_ROW)};

static int find(const struct kcall *call, const char *name)
{
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++)
        if (strcasecmp(known[i].name, name) == 0)
            return i;
    fail("%s: activation '%s' is not one of those that the standard names", kcall_where(call), name);
}

/* The next number of a list, for a function that takes one. */
static float gate_number(const struct kcall *call, const char *name, bool takes, float otherwise, int count, const double *list, int *at)
{
    float number = takes && *at < count ? (float)list[(*at)++] : otherwise;
    if (isnan(number))
        fail("%s: activation '%s' lacks a number in activation_alpha or activation_beta", kcall_where(call), name);
    return number;
}

void gates_read(const struct kcall *call, int from, int n, struct gate *out)
{
    const char *const *name;
    const double *alpha, *beta;
    int names = attr_strings(call->node, "activations", &name), alphas = attr_floats(call->node, "activation_alpha", &alpha),
        betas = attr_floats(call->node, "activation_beta", &beta), a = 0, b = 0;
    if (names && names < from + n)
        fail("%s: attribute 'activations' has %d entries, expected %d or more", kcall_where(call), names, from + n);
    for (int i = 0; i < from + n; i++) {
        int k = find(call, names ? name[i] : i % n == 0 && n > 1 ? "Sigmoid" : "Tanh");
        struct gate gate = {known[k].apply, gate_number(call, known[k].name, known[k].alphas, known[k].alpha, alphas, alpha, &a),
                            gate_number(call, known[k].name, known[k].betas, known[k].beta, betas, beta, &b)};
        if (i >= from)
            out[i - from] = gate;
    }
}
