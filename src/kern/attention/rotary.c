/* rotary: RotaryEmbedding, X of [batch, seq, heads * size] or [batch, heads, seq, size], with angles by position or per token. */
#include "kern/attention/attention.h"
#include "kern/core/core.h"

#include <string.h>

void rotary_head(float *x, const float *cosine, const float *sine, int64_t half, bool interleaved)
{
    int64_t step = interleaved ? 2 : 1, apart = interleaved ? 1 : half;
    for (int64_t i = 0; i < half; i++) {
        float a = x[i * step], b = x[i * step + apart];
        x[i * step] = cosine[i] * a - sine[i] * b;
        x[i * step + apart] = sine[i] * a + cosine[i] * b;
    }
}

struct rotary_call {
    struct kcall *call;
    const struct tensor *x;
    struct tensor *y;
    const float *cosine, *sine;
    const int64_t *line; /* row of the caches for token (batch, seq) */
    int64_t heads, seq, size, half;
    bool interleaved, heads_first;
    float *scratch;
};

static void rotary_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct rotary_call *r = data;
    enum dtype t = r->x->dtype;
    float *head = r->scratch + thread * r->size;
    for (int64_t i = lo; i < hi; i++) {
        int64_t inner = r->heads_first ? r->seq : r->heads, outer = r->heads_first ? r->heads : r->seq;
        int64_t token = i / (inner * outer) * r->seq + (r->heads_first ? i % inner : i / inner % outer), line = r->line[token];
        convert_to_f32(t, element_at_const(r->x->data, dtype_size(t), i * r->size), r->size, head);
        rotary_head(head, r->cosine + line * r->half, r->sine + line * r->half, r->half, r->interleaved);
        convert_from_f32(t, head, r->size, element_at(r->y->data, dtype_size(t), i * r->size));
    }
}

/* The caches' rows of all tokens: by position, or one row per token (a batch of 1 serves all). */
static void token_lines(struct kcall *call, const struct tensor *cache, const struct tensor *position, int64_t batch, int64_t seq,
                        int64_t *line)
{
    const struct tensor *shape = position ? position : cache;
    int64_t lines = tensor_dims_product(cache->dim, 0, cache->rank - 1), first = shape->rank > 1 ? shape->dim[0] : 1;
    if (cache->rank != (position ? 2 : 3) || (first != batch && first != 1) || shape->rank < 2 || shape->dim[1] != seq)
        fail("%s: the %s does not have the shape [%lld, %lld%s", kcall_where(call), position ? "position tensor" : "cosine cache",
             (long long)batch, (long long)seq, position ? "]" : ", half]");
    for (int64_t i = 0; i < batch * seq; i++) {
        int64_t from = first == 1 ? i % seq : i;
        line[i] = position ? kcall_index_at(call, position, from) : from;
        if (line[i] < 0 || line[i] >= lines)
            fail("%s: position %lld is out of range for a cache of %lld rows", kcall_where(call), (long long)line[i], (long long)lines);
    }
}

static void rotary_heads(struct kcall *call, struct rotary_call *r)
{
    const struct tensor *x = r->x;
    if (r->heads_first) {
        r->heads = x->dim[1];
        r->seq = x->dim[2];
        r->size = x->dim[3];
        return;
    }
    r->heads = attr_int(call->node, "num_heads");
    if (r->heads < 1 || x->dim[2] % r->heads)
        fail("%s: a width of %lld does not hold %lld heads", kcall_where(call), (long long)x->dim[2], (long long)r->heads);
    r->seq = x->dim[1];
    r->size = x->dim[2] / r->heads;
}

void kern_RotaryEmbedding(struct kcall *call)
{
    const struct tensor *x = &call->in[0], *cosine = &call->in[1], *sine = &call->in[2];
    struct rotary_call r = {.call = call, .x = x, .y = &call->out[0], .heads_first = x->rank == 4};
    if (x->rank != 3 && x->rank != 4)
        fail("%s: expected a tensor of rank 3 or 4, found rank %d", kcall_where(call), x->rank);
    if (tensor_elements(x) == 0)
        return;
    if (x->dtype == DT_F64 || !dtype_is_float(x->dtype) || cosine->dtype != x->dtype || sine->dtype != x->dtype)
        kcall_bad_type(call, x->dtype);
    rotary_heads(call, &r);
    int64_t rotated = attr_int(call->node, "rotary_embedding_dim"), width = cosine->rank ? cosine->dim[cosine->rank - 1] : 0;
    r.half = (rotated ? rotated : r.size) / 2;
    r.interleaved = attr_int(call->node, "interleaved") != 0;
    if (rotated < 0 || rotated > r.size || width != r.half || tensor_elements(sine) != tensor_elements(cosine))
        fail("%s: caches of width %lld do not rotate %lld of %lld elements", kcall_where(call), (long long)width, (long long)(2 * r.half),
             (long long)r.size);
    int64_t tokens = x->dim[0] * r.seq, threads = kenv_threads(call->env);
    int64_t *line = kenv_scratch(call->env, kcall_bytes(call, tokens, sizeof *line) + kcall_bytes(call, threads * r.size, sizeof(float)));
    token_lines(call, cosine, kcall_in(call, 3), x->dim[0], r.seq, line);
    r.line = line;
    r.scratch = (float *)(void *)(line + tokens);
    r.cosine = tensor_f32(call->env, cosine, ROOM_A);
    r.sine = tensor_f32(call->env, sine, ROOM_B);
    kenv_parallel_shares(call->env, tokens * r.heads, r.size * 4, rotary_range, &r);
}
