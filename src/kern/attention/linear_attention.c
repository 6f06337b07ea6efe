/* linear_attention: a state per sequence and head, a matrix of keys by values, which every token decays, corrects and updates, and which
 * its queries read. Sequential over tokens; heads and sequences in parallel. Computed in float32. */
#include "ir/operands.h"
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

struct linear_attention {
    const float *in[6];
    float *y, *state;
    int64_t length, heads, group, keys, values, decays, betas; /* group: query heads per head; decays, betas: per token */
    bool corrects;
    float scale;
    float *room;
};

static void decay_state(const struct linear_attention *a, const float *decay, int64_t head, float *state)
{
    bool each = a->decays != a->heads;
    for (int64_t k = 0; k < a->keys; k++) {
        float times = expf(each ? decay[head * a->keys + k] : decay[head]);
        for (int64_t v = 0; v < a->values; v++)
            state[k * a->values + v] *= times;
    }
}

static void read_state(const struct linear_attention *a, const float *state, const float *key, float scale, float *y)
{
    memset(y, 0, (size_t)a->values * sizeof *y);
    for (int64_t k = 0; k < a->keys; k++)
        for (int64_t v = 0; v < a->values; v++)
            y[v] += scale * key[k] * state[k * a->values + v];
}

/* add: scratch for the value to add. */
static void step_token(const struct linear_attention *a, int64_t token, int64_t head, float *state, float *add)
{
    const float *key = a->in[IN_LinearAttention_key] + (token * a->heads + head) * a->keys,
                *value = a->in[IN_LinearAttention_value] + (token * a->heads + head) * a->values;
    if (a->in[IN_LinearAttention_decay])
        decay_state(a, a->in[IN_LinearAttention_decay] + token * a->decays, head, state);
    if (a->corrects) {
        float beta = a->in[IN_LinearAttention_beta][token * a->betas + (a->betas == a->heads ? head : 0)];
        read_state(a, state, key, 1, add);
        for (int64_t v = 0; v < a->values; v++)
            add[v] = beta * (value[v] - add[v]);
        value = add;
    }
    for (int64_t k = 0; k < a->keys; k++)
        for (int64_t v = 0; v < a->values; v++)
            state[k * a->values + v] += key[k] * value[v];
    for (int64_t q = head * a->group; q < (head + 1) * a->group; q++)
        read_state(a, state, a->in[IN_LinearAttention_query] + (token * a->heads * a->group + q) * a->keys, a->scale,
                   a->y + (token * a->heads * a->group + q) * a->values);
}

static void heads_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct linear_attention *a = data;
    size_t elements = (size_t)(a->keys * a->values);
    for (int64_t i = lo; i < hi; i++) {
        float *state = a->state + (size_t)i * elements;
        if (a->in[IN_LinearAttention_past_state])
            memcpy(state, a->in[IN_LinearAttention_past_state] + (size_t)i * elements, elements * sizeof *state);
        else
            memset(state, 0, elements * sizeof *state);
        for (int64_t t = 0; t < a->length; t++)
            step_token(a, i / a->heads * a->length + t, i % a->heads, state, a->room + thread * a->values);
    }
}

/* Reads only operands that the update rule uses. */
static void read_operands(struct kcall *call, struct linear_attention *a)
{
    static const enum room room[6] = {ROOM_A, ROOM_B, ROOM_TURN_Q, ROOM_TURN_K, ROOM_LIMITS, ROOM_SINK};
    const char *rule = attr_string(call->node, "update_rule");
    bool gated = strcmp(rule, "gated") == 0 || strcmp(rule, "gated_delta") == 0;
    a->corrects = strcmp(rule, "delta") == 0 || strcmp(rule, "gated_delta") == 0;
    for (int i = 0; i < 6; i++) {
        const struct tensor *t = kcall_in(call, i);
        if (t && !dtype_fits_f32(t->dtype))
            kcall_bad_type(call, t->dtype);
        if (t && tensor_elements(t) && (i != IN_LinearAttention_decay || gated) && (i != IN_LinearAttention_beta || a->corrects))
            a->in[i] = tensor_f32(call->env, t, room[i]);
    }
    if ((gated && !kcall_in(call, IN_LinearAttention_decay)) || (a->corrects && !kcall_in(call, IN_LinearAttention_beta)))
        fail("%s: update_rule '%s' needs %s", kcall_where(call), rule,
             gated && !kcall_in(call, IN_LinearAttention_decay) ? "decay" : "beta");
}

void kern_LinearAttention(struct kcall *call)
{
    const struct tensor *q = &call->in[IN_LinearAttention_query], *k = &call->in[IN_LinearAttention_key],
                        *v = &call->in[IN_LinearAttention_value];
    struct tensor *y = kcall_out(call, 0), *present = kcall_out(call, 1);
    struct linear_attention a = {.length = q->dim[1], .heads = attr_int(call->node, "kv_num_heads")};
    int64_t queries = attr_int(call->node, "q_num_heads");
    if (tensor_elements(q) + (present ? tensor_elements(present) : 0) == 0)
        return;
    require(a.heads > 0 && queries % a.heads == 0);
    a.group = queries / a.heads;
    a.keys = k->dim[2] / a.heads;
    a.values = v->dim[2] / a.heads;
    a.decays = kcall_in(call, IN_LinearAttention_decay) ? call->in[IN_LinearAttention_decay].dim[2] : 0;
    a.betas = kcall_in(call, IN_LinearAttention_beta) ? call->in[IN_LinearAttention_beta].dim[2] : 0;
    double scale = attr_float(call->node, "scale");
    a.scale = (float)(scale != 0 ? scale : 1 / sqrt((double)a.keys));
    read_operands(call, &a);
    int64_t states = q->dim[0] * a.heads * a.keys * a.values;
    a.state = present && present->dtype == DT_F32 ? present->data
                                                  : kenv_room(call->env, ROOM_PARTIALS, kcall_bytes(call, states, sizeof(float)));
    a.y = y ? kcall_result_f32(call, y) : kenv_room(call->env, ROOM_C, kcall_bytes(call, tensor_elements(q), sizeof(float)));
    a.room = kenv_room(call->env, ROOM_THREADS, kcall_bytes(call, a.values * kenv_threads(call->env), sizeof(float)));
    kenv_parallel_shares(call->env, q->dim[0] * a.heads, a.length * a.keys * a.values * (4 + a.group), heads_range, &a);
    if (y)
        kcall_result_store(a.y, y);
    if (present)
        kcall_result_store(a.state, present);
}
