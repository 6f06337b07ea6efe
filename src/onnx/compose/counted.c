/* Compositions that a text cannot express (operand lists of any length), and functions that texts of compositions.def call. */
#include "onnx/compose/compose.h"

static void let_number(struct composer *c, const char *name, int64_t i)
{
    compose_let(c, name, (struct compose_term){.data = compose_int(c, name, i)});
}

static void let_list(struct composer *c, const char *name, size_t n, const int64_t *at)
{
    compose_let(c, name, (struct compose_term){.data = n ? compose_ints(c, name, n, at) : NULL});
}

/* ---- lists of operands ---- */

void compose_mean(struct composer *c)
{
    char *first = compose_input(c, 0), *sum = compose_node_of(c, "Sum", c->node->n_input, c->node->input, 0, NULL, 1, NULL);
    char *n = name_scope_whole(c->im, c->scope, "number", DT_I64, (int64_t)c->node->n_input);
    compose_become(c, "Div", 2, (char *[]){sum, compose_op(c, "CastLike", n, first)});
}

/* Each part is an integer, its scale and maybe its zero point; the result's scale and zero point come first. */
void compose_quantized_concat(struct composer *c)
{
    size_t n = c->node->n_input / 3;
    char **part = NEWN(c->im->tmp, char *, n + 1);
    Onnx__AttributeProto *axis = proto_attribute(c->node, "axis");
    if (c->node->n_input != 3 * n + 2)
        fail("%s: %s has %zu operands, expected three for each part and two", c->im->path, c->where, c->node->n_input);
    for (size_t i = 2; i < 3 * n + 2; i += 3)
        part[i / 3] = compose_node_of(c, "DequantizeLinear", 3,
                                      (char *[]){compose_input(c, i), compose_input(c, i + 1), compose_optional(c, i + 2)}, 0, NULL, 1,
                                      NULL);
    char *real = compose_node_of(c, "Concat", n, part, 1, &axis, 1, NULL);
    compose_become(c, "QuantizeLinear", 3, (char *[]){real, compose_input(c, 0), compose_optional(c, 1)});
}

/* ---- LinearAttention ---- */

bool compose_head_counts(struct composer *c)
{
    int64_t queries = compose_int_of(c->node, "q_num_heads", 0), values = compose_int_of(c->node, "kv_num_heads", 0);
    if (compose_int_of(c->node, "state_window", 0) || queries < 1 || values < 1)
        return false;
    if (values > queries && values % queries)
        fail("%s: %s has %lld heads of values, expected a multiple of %lld query heads", c->im->path, c->where, (long long)values,
             (long long)queries);
    let_list(c, "apart", 5, (int64_t[]){0, 0, queries, 1, -1});
    let_list(c, "times", values > queries ? 5 : 0, (int64_t[]){1, 1, 1, values / queries, 1});
    let_number(c, "heads", values > queries ? values : queries);
    return true;
}

/* ---- MRotaryEmbedding ---- */

enum { STREAMS = 3, MOST_FREQUENCIES = 1 << 16 }; /* positions in time, height and width */

/* Which stream turns frequency j: in consecutive sections, or interleaved up to each section's length. */
static size_t stream_of(const int64_t *section, bool turns, int64_t j)
{
    if (turns)
        return j % STREAMS && j < section[j % STREAMS] * STREAMS ? (size_t)(j % STREAMS) : 0;
    return j < section[0] ? 0 : j < section[0] + section[1] ? 1 : 2;
}

/* [3, frequencies]: 1 where a stream turns a frequency. False: no legal sections. */
bool compose_streams(struct composer *c)
{
    const Onnx__AttributeProto *section = proto_attribute(c->node, "mrope_section");
    int64_t n = 0;
    for (size_t i = 0; section && i < section->n_ints; i++) {
        if (section->ints[i] < 0 || section->ints[i] > MOST_FREQUENCIES)
            return false;
        n += section->ints[i];
    }
    if (!section || section->n_ints != STREAMS || n < 1)
        return false;
    float *mask = NEWN(c->im->tmp, float, (size_t)n *STREAMS);
    for (int64_t j = 0; j < n; j++)
        mask[stream_of(section->ints, compose_int_of(c->node, "mrope_layout", 0) != 0, j) * (size_t)n + (size_t)j] = 1;
    compose_let(c, "streams", (struct compose_term){.value = name_scope_floats(c->im, c->scope, "streams", (size_t)n * STREAMS, mask)});
    return true;
}

/* ---- sizes of operands ---- */

/* The type of an operand, as far as the file states it; false: not at all. */
static bool operand_type(struct composer *c, size_t i, struct type *out)
{
    const struct value *v = name_scope_find(c->scope, compose_input(c, i));
    const Onnx__ValueInfoProto *info = text_table_find(c->im->declared, c->node->input[i]);
    if (v && v->type.dtype != DT_NONE) {
        *out = v->type;
        return true;
    }
    return info && declared_type(c->im, info, out);
}

bool compose_known_rank(struct composer *c)
{
    struct type x;
    if (!operand_type(c, 0, &x) || x.rank < 1)
        return false;
    let_number(c, "vector", x.rank == 1);
    return true;
}

bool compose_heads(struct composer *c)
{
    struct type q, k;
    int64_t queries = 0, heads = 0;
    if (!operand_type(c, 0, &q) || !operand_type(c, 1, &k) || q.rank != 4 || k.rank != 4)
        return false;
    bool counted = dim_is_int(q.dim[1], &queries) && dim_is_int(k.dim[1], &heads);
    if (!counted && q.dim[1] != k.dim[1])
        return false;
    if (counted && (heads < 1 || queries % heads || queries > INT16_MAX))
        fail("%s: %s has %lld query heads for %lld heads of keys", c->im->path, c->where, (long long)queries, (long long)heads);
    int64_t *index = NEWN(c->im->tmp, int64_t, queries + 1);
    for (int64_t i = 0; counted && i < queries; i++)
        index[i] = i / (queries / heads);
    let_list(c, "heads", counted && heads != queries ? (size_t)queries : 0, index);
    let_number(c, "own", q.dtype == DT_F64 ? ONNX__TENSOR_PROTO__DATA_TYPE__DOUBLE : ONNX__TENSOR_PROTO__DATA_TYPE__FLOAT);
    return true;
}
