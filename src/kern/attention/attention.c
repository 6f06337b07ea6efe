/* attention: ONNX Attention and com.microsoft GroupQueryAttention, on the common core of attention_core.c.
 *
 * Keys and values with a past are read from the present tensors, or from scratch if the graph does not use those. The number of heads may
 * be 0 on a rank: the head size then comes from other operands, never from a division by the number of heads. */
#include "kern/attention/attention.h"

#include "ir/operands.h"
#include "kern/core/core.h"

#include <math.h>
#include <string.h>

/* Heads of one operand: address and strides, in the operand's type. */
struct head_view {
    const struct tensor *t;
    int64_t start, heads, rows, size, batch_step, head_step, row_step;
};

/* A tensor [batch, heads, rows, size]. */
static struct head_view spread_source(const struct tensor *t)
{
    int64_t step[MAX_RANK];
    tensor_strides(t, step);
    return (struct head_view){t, 0, t->dim[1], t->dim[2], head_numbers(t), step[0], step[1], step[2]};
}

/* Heads of size elements from column start of a tensor [batch, rows, width]. */
static struct head_view flat_source(const struct tensor *t, int64_t start, int64_t heads, int64_t size)
{
    int64_t step[MAX_RANK];
    tensor_strides(t, step);
    return (struct head_view){t, start, heads, t->dim[1], size, step[0], size, step[1]};
}

static struct head_rows source_heads(const struct head_view *s)
{
    const void *at = element_at_const(s->t->data, dtype_size(s->t->dtype), s->start);
    return (struct head_rows){at, s->t->dtype, s->batch_step, s->head_step, s->row_step};
}

static struct head_rows source_heads_f32(struct kenv *env, const struct head_view *s, enum room room)
{
    return (struct head_rows){tensor_f32(env, s->t, room) + s->start, DT_F32, s->batch_step, s->head_step, s->row_step};
}

/* Rounds rows of f32 to a narrower cache. */
static void narrow_rows(const struct head_view *s, struct tensor *to, const int64_t *step, int64_t batch, int64_t first, int64_t rows)
{
    const float *from = (const float *)s->t->data + s->start + batch * s->batch_step;
    for (int64_t h = 0; h < s->heads; h++)
        for (int64_t i = 0; i < rows; i++) {
            const float *row = from + h * s->head_step + i * s->row_step;
            void *at = element_at(to->data, dtype_size(to->dtype), batch * step[0] + h * step[1] + (first + i) * step[2]);
            if (to->dtype == DT_I8)
                coded_rows_write(row, s->size, at);
            else
                convert_from_f32(to->dtype, row, s->size, at);
        }
}

/* Writes the rows of s to [batch, heads, all, size] from row `first` on; earlier rows stay. */
static void append_rows(struct kcall *call, const struct head_view *s, struct tensor *to, int64_t batch, int64_t first, int64_t rows)
{
    int64_t all = to->dim[2], step[MAX_RANK];
    tensor_strides(to, step);
    struct copy c = {.rank = 3,
                     .size = dtype_size(to->dtype),
                     .dim = {s->heads, rows, to->dim[3]},
                     .to = {step[1], step[2], 1},
                     .from = {s->head_step, s->row_step, 1}};
    bool narrows = s->t->dtype == DT_F32 && (to->dtype == DT_F16 || to->dtype == DT_I8);
    if ((s->t->dtype != to->dtype && !narrows) || s->heads != to->dim[1] || s->size != head_numbers(to) || first < 0 || rows > s->rows ||
        first + rows > all)
        fail("%s: %lld rows of %lld x %lld do not fit the present tensor", kcall_where(call), (long long)rows, (long long)s->heads,
             (long long)s->size);
    if (narrows)
        narrow_rows(s, to, step, batch, first, rows);
    else
        copy_strided(call->env, &c, element_at(to->data, c.size, batch * step[0] + first * step[2]),
                     element_at_const(s->t->data, c.size, s->start + batch * s->batch_step));
}

static void check_float(const struct kcall *call, enum dtype t)
{
    if (t != DT_F32 && !dtype_is_half(t))
        kcall_bad_type(call, t);
}

/* ---- masks -------------------------------------------------------------------------------------------------------------------------- */
/* A mask right-aligned with [batch, heads, rows, keys]; missing keys are masked. */
static void read_mask(struct kcall *call, struct attention_core *a, const struct tensor *mask)
{
    int64_t want[4] = {a->batch, a->q_heads, a->rows, a->keys}, own[MAX_RANK];
    if (!mask || tensor_elements(mask) == 0)
        return;
    if (mask->rank < 1 || mask->rank > 4 || (mask->dtype != DT_BOOL && mask->dtype != a->y->dtype))
        fail("%s: a mask must be bool or %s and have at most 4 dimensions", kcall_where(call), dtype_name(a->y->dtype));
    tensor_strides(mask, own);
    a->mask_keys = mask->dim[mask->rank - 1] == 1 ? a->keys : mask->dim[mask->rank - 1];
    for (int d = 0; d < 4; d++) {
        int e = d - (4 - mask->rank);
        bool broadcast = e < 0 || mask->dim[e] == 1, fits = broadcast || (d == 3 ? mask->dim[e] <= want[d] : mask->dim[e] == want[d]);
        if (!fits)
            fail("%s: the mask has size %lld where %lld is expected", kcall_where(call), (long long)mask->dim[e], (long long)want[d]);
        a->mask_step[d] = broadcast ? 0 : own[e];
    }
    if (mask->dtype == DT_BOOL)
        a->allowed = mask->data;
    else
        a->bias = tensor_f32(call->env, mask, ROOM_THREADS);
}

/* ---- Attention ----------------------------------------------------------------------------------------------------------------------- */

/* Heads of operand i of Attention; without heads its width is 0. */
static struct head_view attention_source(struct kcall *call, int i, const char *attr)
{
    const struct tensor *t = &call->in[i];
    if (t->rank == 4)
        return spread_source(t);
    if (t->rank != 3)
        fail("%s: Q, K and V must have 3 or 4 dimensions", kcall_where(call));
    int64_t heads = attr_int(call->node, attr);
    if (heads < 0 || (heads > 0 && t->dim[2] % heads))
        fail("%s: a width of %lld does not hold %lld heads", kcall_where(call), (long long)t->dim[2], (long long)heads);
    return flat_source(t, 0, heads, heads ? t->dim[2] / heads : 0);
}

/* The keys (or values) to attend to: the operand itself, or past and operand concatenated in the present output or in scratch. */
static struct head_view joined_source(struct kcall *call, struct head_view new_rows, int past_index, int present_index, enum room room,
                                      struct tensor *local)
{
    const struct tensor *past = kcall_in(call, past_index);
    struct tensor *present = kcall_out(call, present_index);
    if (!past && !present)
        return new_rows;
    int64_t batch = new_rows.t->dim[0], before = past ? past->dim[2] : 0;
    if (past && (past->rank != 4 || past->dim[0] != batch))
        fail("%s: a past tensor does not fit its operand", kcall_where(call));
    if (new_rows.heads == 0)
        new_rows.size = head_numbers(past ? past : present);
    *local = (struct tensor){.dtype = past ? past->dtype : new_rows.t->dtype,
                             .rank = 4,
                             .dim = {batch, new_rows.heads, before + new_rows.rows, past ? past->dim[3] : new_rows.size}};
    if (!present)
        local->data = kenv_room(call->env, room, kcall_bytes(call, tensor_elements(local), dtype_size(local->dtype)));
    struct tensor *to = present ? present : local;
    struct head_view old = past ? spread_source(past) : new_rows;
    for (int64_t b = 0; tensor_elements(to) && b < batch; b++) {
        if (past)
            append_rows(call, &old, to, b, 0, before);
        append_rows(call, &new_rows, to, b, before, new_rows.rows);
    }
    return spread_source(to);
}

static void view_result(struct attention_core *a, struct tensor *y)
{
    bool flat = y->rank == 3;
    a->y = y;
    a->y_batch = a->rows * a->q_heads * a->value_size;
    a->y_head = flat ? a->value_size : a->rows * a->value_size;
    a->y_row = flat ? a->q_heads * a->value_size : a->value_size;
}

/* Per batch: the number of keys and the causal offset, from the past or from the lengths operand. */
static void attention_limits(struct kcall *call, struct attention_core *a, int64_t past, int64_t *offset, int64_t *limit)
{
    const struct tensor *lengths = kcall_in(call, IN_Attention_nonpad_kv_seqlen);
    if (lengths && tensor_elements(lengths) != a->batch)
        fail("%s: nonpad_kv_seqlen must have %lld entries", kcall_where(call), (long long)a->batch);
    for (int64_t b = 0; b < a->batch; b++) {
        limit[b] = lengths ? kcall_index_at(call, lengths, b) : a->keys;
        offset[b] = lengths ? limit[b] - a->rows : past;
        if (limit[b] < 0 || limit[b] > a->keys)
            fail("%s: a length of %lld keys where there are %lld", kcall_where(call), (long long)limit[b], (long long)a->keys);
    }
    a->offset = offset;
    a->limit = limit;
}

static float attention_scale(const struct kcall *call, int64_t size)
{
    double scale = attr_is_set(call->node, "scale") ? attr_float(call->node, "scale") : 0;
    return scale > 0 || scale < 0 || size == 0 ? (float)scale : (float)(1.0 / sqrt((double)size));
}

void kern_Attention(struct kcall *call)
{
    struct head_view q = attention_source(call, IN_Attention_Q, "q_num_heads"), k = attention_source(call, IN_Attention_K, "kv_num_heads");
    struct head_view v = attention_source(call, IN_Attention_V, "kv_num_heads");
    const struct tensor *past = kcall_in(call, IN_Attention_past_key);
    struct tensor keys, values;
    check_float(call, q.t->dtype);
    k = joined_source(call, k, IN_Attention_past_key, 1, ROOM_DNNL, &keys);
    v = joined_source(call, v, IN_Attention_past_value, 2, ROOM_JOIN, &values);
    struct attention_core a = {.batch = q.t->dim[0],
                               .q_heads = q.heads,
                               .kv_heads = k.heads,
                               .rows = q.rows,
                               .keys = k.rows,
                               .size = q.size,
                               .value_size = v.size,
                               .causal = attr_int(call->node, "is_causal") != 0,
                               .window = -1,
                               .softcap = (float)attr_float(call->node, "softcap"),
                               .scores = kcall_out(call, 3),
                               .mode = (int)attr_int(call->node, "qk_matmul_output_mode")};
    if (tensor_elements(&call->out[0]) == 0)
        return;
    if (k.size != q.size || v.rows != k.rows || v.heads != k.heads || k.t->dim[0] != a.batch || v.t->dim[0] != a.batch)
        fail("%s: Q, K and V do not fit together", kcall_where(call));
    view_result(&a, &call->out[0]);
    a.scale = attr_is_set(call->node, "scale") ? (float)attr_float(call->node, "scale") : attention_scale(call, q.size);
    int64_t *limits = kenv_room(call->env, ROOM_LIMITS, kcall_bytes(call, 2 * a.batch, sizeof *limits));
    attention_limits(call, &a, past ? past->dim[2] : 0, limits, limits + a.batch);
    read_mask(call, &a, kcall_in(call, IN_Attention_attn_mask));
    a.q = source_heads_f32(call->env, &q, ROOM_A);
    a.k = source_heads(&k);
    a.v = source_heads(&v);
    attention_core_run(call, &a);
}

/* ---- GroupQueryAttention ----------------------------------------------------------------------------------------------------- */

struct gqa {
    struct head_view q, k, v;
    int64_t batch, rows, heads, kv_heads, size;
    int64_t *past;                    /* per batch: valid rows of the past */
    struct tensor turned_q, turned_k; /* after rotary embedding */
};

/* The head size: from the past, the attribute or the rotary cache; else width / heads, neither of which is then 0. */
static int64_t gqa_head_size(const struct kcall *call, int64_t width, int64_t heads)
{
    const struct tensor *past = kcall_in(call, IN_GroupQueryAttention_past_key), *present = call->nout > 1 ? &call->out[1] : NULL;
    if (attr_is_set(call->node, "head_size"))
        return attr_int(call->node, "head_size");
    if (past && past->rank == 4)
        return head_numbers(past);
    if (present && present->data && present->rank == 4)
        return head_numbers(present);
    if (heads > 0 && width % heads == 0)
        return width / heads;
    fail("%s: a width of %lld does not hold %lld heads", kcall_where(call), (long long)width, (long long)heads);
}

static void gqa_read(struct kcall *call, struct gqa *g)
{
    const struct tensor *q = &call->in[IN_GroupQueryAttention_query], *k = kcall_in(call, IN_GroupQueryAttention_key),
                        *v = kcall_in(call, IN_GroupQueryAttention_value);
    if (q->rank != 3 || (k && k->rank != 3) || (v && v->rank != 3) || !k != !v)
        fail("%s: query, key and value must have 3 dimensions, or query hold all of them", kcall_where(call));
    check_float(call, q->dtype);
    g->batch = q->dim[0];
    g->rows = q->dim[1];
    g->heads = attr_int(call->node, "num_heads");
    g->kv_heads = attr_int(call->node, "kv_num_heads");
    g->size = gqa_head_size(call, q->dim[2], k ? g->heads : g->heads + 2 * g->kv_heads);
    int64_t q_width = g->heads * g->size, kv_width = g->kv_heads * g->size;
    if (g->heads < 0 || g->kv_heads < 0 || q->dim[2] != q_width + (k ? 0 : 2 * kv_width) ||
        (k && (k->dim[2] != kv_width || v->dim[2] != kv_width)))
        fail("%s: widths do not hold %lld and %lld heads of %lld", kcall_where(call), (long long)g->heads, (long long)g->kv_heads,
             (long long)g->size);
    g->q = flat_source(q, 0, g->heads, g->size);
    g->k = flat_source(k ? k : q, k ? 0 : q_width, g->kv_heads, g->size);
    g->v = flat_source(v ? v : q, v ? 0 : q_width + kv_width, g->kv_heads, g->size);
    if (g->k.rows != g->rows || g->v.rows != g->rows || g->k.t->dim[0] != g->batch || g->v.t->dim[0] != g->batch)
        fail("%s: query, key and value must have one batch and length", kcall_where(call));
}

/* seqlens_k holds, per batch row, the number of keys minus one; a padded prompt has fewer keys than rows. */
static void gqa_lengths(struct kcall *call, struct gqa *g)
{
    const struct tensor *lengths = &call->in[IN_GroupQueryAttention_seqlens_k], *past = kcall_in(call, IN_GroupQueryAttention_past_key);
    int64_t room = past ? past->dim[2] : 0;
    if (tensor_elements(lengths) != g->batch)
        fail("%s: seqlens_k must have %lld entries", kcall_where(call), (long long)g->batch);
    g->past = kenv_room(call->env, ROOM_LIMITS, kcall_bytes(call, 2 * g->batch, sizeof *g->past));
    for (int64_t b = 0; b < g->batch; b++) {
        int64_t total = kcall_index_at(call, lengths, b) + 1, before = total > g->rows ? total - g->rows : 0;
        if (total < 0 || before > room)
            fail("%s: seqlens_k gives %lld keys, but the past holds at most %lld and %lld are new", kcall_where(call), (long long)total,
                 (long long)room, (long long)g->rows);
        g->past[b] = before;
    }
}

/* ---- rotation ---- */
struct rotation {
    const struct gqa *g;
    struct kcall *call;
    const struct head_view *from;
    struct tensor *to;
    const float *cosine, *sine;
    int64_t half;
    bool interleaved;
    const struct tensor *position;
    float *scratch;
};

static int64_t turn_position(const struct rotation *t, int64_t b, int64_t i)
{
    return t->position ? kcall_index_at(t->call, t->position, b * t->g->rows + i) : t->g->past[b] + i;
}

static void turn_range(void *data, int thread, int64_t lo, int64_t hi)
{
    const struct rotation *t = data;
    const struct head_view *s = t->from;
    size_t size = dtype_size(s->t->dtype);
    float *head = t->scratch + thread * s->size;
    for (int64_t u = lo; u < hi; u++) {
        int64_t h = u % s->heads, i = u / s->heads % s->rows, b = u / s->heads / s->rows, line = turn_position(t, b, i);
        convert_to_f32(s->t->dtype, element_at_const(s->t->data, size, s->start + b * s->batch_step + i * s->row_step + h * s->head_step),
                       s->size, head);
        rotary_head(head, t->cosine + line * t->half, t->sine + line * t->half, t->half, t->interleaved);
        convert_from_f32(t->to->dtype, head, s->size, element_at(t->to->data, size, u * s->size));
    }
}

static void turn_check(struct kcall *call, const struct rotation *t, const struct tensor *cosine, const struct tensor *sine)
{
    const struct gqa *g = t->g;
    if (2 * t->half > g->size || tensor_elements(sine) != tensor_elements(cosine))
        fail("%s: caches of width %lld do not rotate heads of %lld", kcall_where(call), (long long)t->half, (long long)g->size);
    if (t->position && tensor_elements(t->position) != g->batch * g->rows)
        fail("%s: position_ids must have %lld entries", kcall_where(call), (long long)(g->batch * g->rows));
    for (int64_t i = 0; i < g->batch * g->rows; i++) {
        int64_t line = turn_position(t, i / g->rows, i % g->rows);
        if (line < 0 || line >= cosine->dim[0])
            fail("%s: position %lld is out of range for a cache of %lld rows", kcall_where(call), (long long)line,
                 (long long)cosine->dim[0]);
    }
}

/* The rotated heads of s, [batch, rows, heads * size]. */
static struct head_view rotated_heads(struct kcall *call, const struct gqa *g, const struct head_view *s, struct tensor *to, enum room room)
{
    const struct tensor *cosine = kcall_in(call, IN_GroupQueryAttention_cos_cache),
                        *sine = kcall_in(call, IN_GroupQueryAttention_sin_cache);
    if (!cosine || !sine || cosine->rank != 2 || sine->rank != 2)
        fail("%s: do_rotary needs a cosine and a sine cache of 2 dimensions", kcall_where(call));
    struct rotation t = {.g = g,
                         .call = call,
                         .from = s,
                         .to = to,
                         .half = cosine->dim[1],
                         .position = kcall_in(call, IN_GroupQueryAttention_position_ids),
                         .interleaved = attr_int(call->node, "rotary_interleaved") != 0};
    turn_check(call, &t, cosine, sine);
    int64_t tokens = g->batch * s->rows, width = s->heads * s->size;
    *to = (struct tensor){.dtype = s->t->dtype, .rank = 3, .dim = {g->batch, s->rows, width}};
    to->data = kenv_room(call->env, room, kcall_bytes(call, tokens * width, 4));
    t.cosine = tensor_f32(call->env, cosine, ROOM_B);
    t.sine = tensor_f32(call->env, sine, ROOM_C);
    t.scratch = kenv_scratch(call->env, kcall_bytes(call, kenv_threads(call->env) * s->size, sizeof(float)));
    kenv_parallel_shares(call->env, tokens * s->heads, s->size * 4, turn_range, &t);
    return flat_source(to, 0, s->heads, s->size);
}

/* ---- the present ---- */
static void clear_rows(struct tensor *t, int64_t b, int64_t first)
{
    size_t size = dtype_size(t->dtype);
    int64_t step[MAX_RANK];
    tensor_strides(t, step);
    for (int64_t h = 0; h < t->dim[1]; h++)
        memset(element_at(t->data, size, b * step[0] + h * step[1] + first * step[2]), 0, (size_t)((t->dim[2] - first) * t->dim[3]) * size);
}

/* Past, then new rows, then zeros if a batch row is shorter than the longest. */
static struct tensor gqa_present(struct kcall *call, const struct gqa *g, const struct head_view *s, int past_index, int present_index,
                                 enum room room)
{
    const struct tensor *past = kcall_in(call, past_index);
    struct tensor *out = kcall_out(call, present_index);
    int64_t room_rows = past ? past->dim[2] : 0;
    struct tensor local = {.dtype = past ? past->dtype : s->t->dtype,
                           .rank = 4,
                           .dim = {g->batch, g->kv_heads, room_rows + g->rows, past && past->rank == 4 ? past->dim[3] : g->size}};
    if (past && (past->rank != 4 || past->dim[0] != g->batch))
        fail("%s: a past tensor does not fit its operand", kcall_where(call));
    if (out)
        local = *out;
    else
        local.data = kenv_room(call->env, room, kcall_bytes(call, tensor_elements(&local), dtype_size(local.dtype)));
    struct head_view old = past ? spread_source(past) : *s;
    for (int64_t b = 0; tensor_elements(&local) && b < g->batch; b++) {
        if (past)
            append_rows(call, &old, &local, b, 0, g->past[b]);
        append_rows(call, s, &local, b, g->past[b], g->rows);
        clear_rows(&local, b, g->past[b] + g->rows);
    }
    return local;
}

static void gqa_refuse(const struct kcall *call)
{
    if (strcmp(attr_string(call->node, "k_quant_type"), "NONE") != 0 || strcmp(attr_string(call->node, "v_quant_type"), "NONE") != 0 ||
        attr_int(call->node, "kv_cache_bit_width") != 0)
        fail("%s: quantised key and value caches are not supported", kcall_where(call));
    if (attr_int(call->node, "causal") == 0 || attr_int(call->node, "sliding_window_cache") != 0)
        fail("%s: keys of later positions and caches that are windows are not supported", kcall_where(call));
    int64_t output = attr_int(call->node, "qk_output");
    if (output < 0 || output > 2)
        fail("%s: qk_output must be 0, 1 or 2, not %lld", kcall_where(call), (long long)output);
}

/* The score of each head that is only added to the softmax denominator. */
static const float *gqa_sink(struct kcall *call, const struct gqa *g)
{
    const struct tensor *sink = kcall_in(call, IN_GroupQueryAttention_head_sink);
    if (!sink && attr_int(call->node, "smooth_softmax") <= 0)
        return NULL;
    if (sink && tensor_elements(sink) != g->heads)
        fail("%s: head_sink must have %lld entries", kcall_where(call), (long long)g->heads);
    float *score = kenv_room(call->env, ROOM_SINK, kcall_bytes(call, g->heads, sizeof *score));
    memset(score, 0, (size_t)g->heads * sizeof *score);
    if (sink)
        convert_to_f32(sink->dtype, sink->data, g->heads, score);
    return score;
}

static void gqa_attend(struct kcall *call, const struct gqa *g, const struct head_view *q, const struct tensor *k, const struct tensor *v)
{
    int64_t *limit = g->past + g->batch, window = attr_int(call->node, "local_window_size");
    struct head_view ks = spread_source(k), vs = spread_source(v);
    struct attention_core a = {.batch = g->batch,
                               .q_heads = g->heads,
                               .kv_heads = g->kv_heads,
                               .rows = g->rows,
                               .keys = k->dim[2],
                               .size = g->size,
                               .value_size = g->size,
                               .causal = true,
                               .window = window,
                               .softcap = (float)attr_float(call->node, "softcap"),
                               .offset = g->past,
                               .limit = limit,
                               .scores = attr_int(call->node, "qk_output") ? kcall_out(call, 3) : NULL,
                               .mode = attr_int(call->node, "qk_output") == 1 ? 4 : 3};
    for (int64_t b = 0; b < g->batch; b++)
        limit[b] = g->past[b] + g->rows;
    view_result(&a, &call->out[0]);
    a.scale = attention_scale(call, g->size);
    a.sink = gqa_sink(call, g);
    read_mask(call, &a, kcall_in(call, IN_GroupQueryAttention_attention_bias));
    a.q = source_heads_f32(call->env, q, ROOM_A);
    a.k = source_heads(&ks);
    a.v = source_heads(&vs);
    attention_core_run(call, &a);
}

void kern_GroupQueryAttention(struct kcall *call)
{
    struct gqa g;
    bool rotate = attr_int(call->node, "do_rotary") != 0;
    gqa_refuse(call);
    gqa_read(call, &g);
    gqa_lengths(call, &g);
    struct head_view q = rotate ? rotated_heads(call, &g, &g.q, &g.turned_q, ROOM_TURN_Q) : g.q;
    struct head_view k = rotate ? rotated_heads(call, &g, &g.k, &g.turned_k, ROOM_TURN_K) : g.k;
    struct tensor keys = gqa_present(call, &g, &k, IN_GroupQueryAttention_past_key, 1, ROOM_DNNL),
                  values = gqa_present(call, &g, &g.v, IN_GroupQueryAttention_past_value, 2, ROOM_JOIN);
    if (tensor_elements(&call->out[0]))
        gqa_attend(call, &g, &q, &keys, &values);
}
