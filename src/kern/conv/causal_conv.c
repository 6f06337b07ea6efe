/* causal_conv: CausalConvWithState: a filter per channel over the preceding positions: a state of the last positions, then X. */
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct causal {
    const float *x, *w, *bias, *past;
    float *y, *present;
    int64_t channels, length, window;
    bool silu;
};

/* A channel of one sequence; line: the state, then X. */
static void causal_channel(const struct causal *c, int64_t i, float *line)
{
    int64_t before = c->window - 1;
    const float *w = c->w + i % c->channels * c->window;
    float bias = c->bias ? c->bias[i % c->channels] : 0, *y = c->y + i * c->length;
    for (int64_t t = 0; t < before; t++)
        line[t] = c->past ? c->past[i * before + t] : 0;
    memcpy(line + before, c->x + i * c->length, (size_t)c->length * sizeof *line);
    for (int64_t t = 0; t < c->length; t++) {
        float sum = bias;
        for (int64_t k = 0; k < c->window; k++)
            sum += w[k] * line[t + k];
        y[t] = c->silu ? sum / (1 + expf(-sum)) : sum;
    }
    if (c->present && before > 0)
        memcpy(c->present + i * before, line + c->length, (size_t)before * sizeof *line);
}

struct causal_work {
    struct causal c;
    float *room;
};

static void causal_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct causal_work *w = data;
    for (int64_t i = lo; i < hi; i++)
        causal_channel(&w->c, i, w->room + thread * (w->c.length + w->c.window - 1));
}

void kern_CausalConvWithState(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *w = &call->in[1], *bias = kcall_in(call, 2), *past = kcall_in(call, 3);
    struct tensor *y = &call->out[0], *present = kcall_out(call, 1);
    const char *activation = attr_string(call->node, "activation");
    if (!dtype_fits_f32(x->dtype))
        kcall_bad_type(call, x->dtype);
    if (w->dim[2] < 1)
        fail("%s: the window is empty", kcall_where(call));
    struct causal_work work = {.c = {.channels = x->dim[1],
                                     .length = x->dim[2],
                                     .window = w->dim[2],
                                     .silu = strcmp(activation, "none") != 0,
                                     .x = tensor_f32(call->env, x, ROOM_A),
                                     .w = tensor_f32(call->env, w, ROOM_B),
                                     .bias = bias ? tensor_f32(call->env, bias, ROOM_TURN_Q) : NULL,
                                     .past = past && tensor_elements(past) ? tensor_f32(call->env, past, ROOM_TURN_K) : NULL}};
    work.c.y = kcall_result_f32(call, y);
    if (present && tensor_elements(present))
        work.c.present = present->dtype == DT_F32
            ? present->data
            : kenv_room(call->env, ROOM_LIMITS, kcall_bytes(call, tensor_elements(present), sizeof(float)));
    int64_t line = work.c.length + work.c.window - 1;
    work.room = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, line * kenv_threads(call->env), sizeof(float)));
    kenv_parallel_shares(call->env, x->dim[0] * x->dim[1], work.c.length * (work.c.window + 8), causal_range, &work);
    kcall_result_store(work.c.y, y);
    if (work.c.present)
        kcall_result_store(work.c.present, present);
}
