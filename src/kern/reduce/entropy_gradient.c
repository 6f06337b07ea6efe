/* entropy_gradient: the gradient of cross entropy with respect to its scores, row by row in place of their log probabilities:
 *
 *   share (exp(log_prob) - one at the label) */
#include "kern/core/core.h"
#include "kern/core/mathf.h"

static SIMD void scaled_probabilities(const float *x, float *y, int64_t n, float share)
{
    LOOP for (int64_t i = 0; i < n; i++) y[i] = mathf_exp(x[i]) * share;
}

struct entropy_rows {
    struct kcall *call;
    const float *from, *share;
    float *to;
    int64_t classes, shares;
    const int64_t *position; /* of each column; NULL: from 0 on */
};

/* The column of a class; -1: none. Without positions, negative classes count from the end, as in OneHot. */
static int64_t column_of(const struct entropy_rows *r, int64_t class)
{
    int64_t at = r->position ? class - r->position[0] : class < 0 ? class + r->classes : class;
    if (!r->position || (at >= 0 && at < r->classes && r->position[at] == class))
        return at < 0 || at >= r->classes ? -1 : at;
    for (at = 0; at < r->classes && r->position[at] != class;)
        at++;
    return at < r->classes ? at : -1;
}

static void entropy_range(void *data, int64_t lo, int64_t hi)
{
    const struct entropy_rows *r = data;
    for (int64_t i = lo; i < hi; i++) {
        float share = r->share[r->shares > 1 ? i : 0], *to = r->to + i * r->classes;
        int64_t at = column_of(r, kcall_index_at(r->call, &r->call->in[1], i));
        scaled_probabilities(r->from + i * r->classes, to, r->classes, share);
        if (at >= 0)
            to[at] -= share;
    }
}

/* In f32. position: the classes of the columns, consecutive by rule; without it they count from 0. */
void kern_EntropyGradient(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *at = &call->in[1], *share = &call->in[2], *position = kcall_in(call, 3);
    int64_t rows = x->dim[0], shares = tensor_elements(share);
    struct entropy_rows r = {call, x->data, share->data, call->out[0].data, x->dim[1], shares, position ? position->data : NULL};
    require(x->dtype == DT_F32 && share->dtype == DT_F32 && x->rank == 2);
    if (rows == 0 || x->dim[1] == 0)
        return;
    if (tensor_elements(at) != rows || (shares != 1 && shares != rows) || (position && tensor_elements(position) != x->dim[1]))
        fail("%s: there are %lld labels and %lld shares for %lld rows", kcall_where(call), (long long)tensor_elements(at),
             (long long)shares, (long long)rows);
    kenv_parallel_for(call->env, rows, 8 * x->dim[1], entropy_range, &r);
}
