/* chain: fused elementwise operations (kern/pointwise/pointwise.h). A row of the broadcast walk is cut into blocks; all operations of the
 * code run on a block before the next block. Results pass their buffer on after their last use. Sums in f16 and bf16 chains are float32
 * throughout and rounded once, at the end. A function of one tensor of bytes, with bytes as results, is a table; a sum, difference or
 * product of two is computed in one pass. */
#include "kern/core/core.h"
#include "kern/pointwise/pointwise.h"

#include <math.h>
#include <string.h>

enum { STRETCH = 256, BUFFERS = CHAIN_LENGTH, CODES = 256 };

int chain_find(const char *optype)
{
#define FUSED(name) [CHAIN_##name] = #name,
#define ALONE(name)
    static const char *const name[CHAIN_COUNT] = {
#define BINARY(name, kernel, chain, real32, real64, integer) chain(name)
#define UNARY(name, kernel, chain, cost, set, real32, real64) chain(name)
#include "kern/pointwise/pointwise.def"
    };
    for (int i = 0; i < CHAIN_COUNT; i++)
        if (strcmp(name[i], optype) == 0)
            return i;
    return -1;
}

struct slot {
    const float *at;
    float *buffer;
    int step;
}; /* step: 1, or 0 for one value */
struct chain_call {
    struct kcall *call;
    struct walk walk;
    int nin, nimm, ncode;
    const int64_t *code;
    float imm[CHAIN_NUMBERS];
    struct byte_scale scale[CHAIN_SCALES]; /* of operands, of the output, of intermediate codes; .scale 0: none */
    int64_t period;                        /* walk rows consist of several rows of this many elements; 0: of one */
    struct joined joined[CHAIN_INPUTS];    /* how operands continue in these */
    bool pairs;                            /* the chain is one operation of two bytes: */
    struct byte_pair pair;
    int first;                /* the operand that is pair.a */
    int buffer[CHAIN_LENGTH]; /* of each result: its buffer, -1: the output */
};

static bool recodes(const struct chain_call *c, int i)
{
    return c->code[3 * i] == CHAIN_RECODE;
}

static int last_use(const struct chain_call *c, int reg)
{
    int last = -1;
    for (int i = 0; i < c->ncode; i++)
        if (c->code[3 * i + 1] == reg || (!recodes(c, i) && c->code[3 * i + 2] == reg))
            last = i;
    return last;
}

static void assign_buffers(struct chain_call *c)
{
    int busy[BUFFERS]; /* the last operation that reads the buffer */
    for (int b = 0; b < BUFFERS; b++)
        busy[b] = -1;
    for (int i = 0; i < c->ncode; i++) {
        c->buffer[i] = -1;
        if (i == c->ncode - 1)
            return;
        int b = 0;
        while (b < BUFFERS && busy[b] >= i)
            b++;
        require(b < BUFFERS);
        busy[b] = last_use(c, c->nin + c->nimm + i);
        c->buffer[i] = b;
    }
}

static void recode(const struct byte_scale *s, const float *x, float *y, int64_t n)
{
    uint8_t code[STRETCH];
    byte_codes_encode(s, x, n, code);
    byte_codes_decode(s, code, n, y);
}

/* Operation i with one operand, on n numbers. */
static void run_unary(const struct chain_call *c, int i, const float *x, float *y, int64_t n)
{
    if (recodes(c, i))
        recode(&c->scale[c->nin + 1 + c->code[3 * i + 2]], x, y, n);
    else
        chain_unary[c->code[3 * i]](x, y, n);
}

static void run_code(const struct chain_call *c, struct slot *reg, float (*room)[STRETCH], float *out, int64_t n)
{
    for (int i = 0; i < c->ncode; i++) {
        binary_row *binary = recodes(c, i) ? NULL : chain_binary[c->code[3 * i]];
        const struct slot *a = &reg[c->code[3 * i + 1]];
        float *at = c->buffer[i] < 0 ? out : room[c->buffer[i]];
        if (binary) {
            const struct slot *b = &reg[c->code[3 * i + 2]];
            binary(a->at, a->step, b->at, b->step, at, n);
        } else {
            run_unary(c, i, a->at, at, a->step ? n : 1);
            for (int64_t k = 1; k < n && !a->step; k++)
                at[k] = at[0];
        }
        reg[c->nin + c->nimm + i] = (struct slot){at, at, 1};
    }
}

/* n numbers of operand k, as float32. */
static void load(const struct chain_call *c, int k, const void *from, int64_t n, float *to)
{
    enum dtype t = c->call->in[k].dtype;
    if (dtype_is_byte(t))
        byte_codes_decode(&c->scale[k], from, n, to);
    else
        convert_to_f32(t, from, n, to);
}

/* The block of operand k from element `from` of the row on, as float32. */
static struct slot chain_operand(const struct chain_call *c, int k, int64_t offset, int64_t from, int64_t n, float *room)
{
    const struct tensor *t = &c->call->in[k];
    int step = c->walk.stride[k + 1][c->walk.rank - 1] != 0;
    const void *src = element_at_const(t->data, dtype_size(t->dtype), offset + step * from);
    if (t->dtype == DT_F32)
        return (struct slot){src, NULL, step};
    load(c, k, src, step ? n : 1, room);
    return (struct slot){room, room, step};
}

/* Repeats the elements of a repeating operand, for blocks that start anywhere in a period. */
static void fill_periods(const struct chain_call *c, int k, int64_t offset, float *room)
{
    const struct tensor *t = &c->call->in[k];
    load(c, k, element_at_const(t->data, dtype_size(t->dtype), offset), c->period, room);
    for (int64_t i = c->period; i < STRETCH + c->period; i++)
        room[i] = room[i - c->period];
}

/* n elements of a period from `from` on. */
static void load_piece(const struct chain_call *c, int k, const void *from, int64_t n, float *to)
{
    const float *x = from;
    if (c->call->in[k].dtype != DT_F32) {
        load(c, k, from, c->joined[k].spreads ? 1 : n, to);
        x = to;
    }
    if (c->joined[k].spreads) {
        float same = x[0];
        LOOP for (int64_t i = 0; i < n; i++) to[i] = same;
    } else if (x != to) {
        LOOP for (int64_t i = 0; i < n; i++) to[i] = x[i];
    }
}

/* n elements of an operand whose periods are apart, from element `from` of the row on. */
static struct slot gather_periods(const struct chain_call *c, int k, int64_t offset, int64_t from, int64_t n, float *room)
{
    const struct tensor *t = &c->call->in[k];
    size_t size = dtype_size(t->dtype);
    int64_t start = from % c->period, at = offset + from / c->period * c->joined[k].apart;
    for (int64_t i = 0; i < n; start = 0, at += c->joined[k].apart) {
        int64_t m = c->period - start < n - i ? c->period - start : n - i;
        load_piece(c, k, element_at_const(t->data, size, at + (c->joined[k].spreads ? 0 : start)), m, room + i);
        i += m;
    }
    return (struct slot){room, room, 1};
}

/* Stores n numbers of the output, if they are not computed in its type. */
static void store(const struct chain_call *c, const float *x, int64_t n, void *to)
{
    enum dtype t = c->call->out[0].dtype;
    if (dtype_is_byte(t))
        byte_codes_encode(&c->scale[c->nin], x, n, to);
    else
        convert_from_f32(t, x, n, to);
}

/* Computes the block in one pass; a repeating operand's numbers are in `real`. */
static bool run_pair(const struct chain_call *c, const int64_t *offset, int64_t from, int64_t n, const float *real)
{
    int a = c->first, b = !a;
    const uint8_t *x = c->call->in[a].data, *y = c->call->in[b].data;
    const float *other = c->joined[b].repeats ? real + (offset[0] + from) % c->period : NULL;
    return byte_codes_combine(&c->pair, x + offset[a + 1] + from, y + offset[b + 1] + from, other, n,
                              (uint8_t *)c->call->out[0].data + offset[0] + from) == n;
}

static void chain_row(void *data, const int64_t *offset, int64_t n)
{
    const struct chain_call *c = data;
    const struct tensor *out = &c->call->out[0];
    float room[BUFFERS][STRETCH], in[CHAIN_INPUTS][2 * STRETCH], result[STRETCH];
    struct slot reg[CHAIN_INPUTS + CHAIN_NUMBERS + CHAIN_LENGTH];
    int last = c->walk.rank - 1;
    for (int k = 0; k < c->nimm; k++)
        reg[c->nin + k] = (struct slot){&c->imm[k], NULL, 0};
    for (int k = 0; k < c->nin; k++)
        if (c->joined[k].repeats)
            fill_periods(c, k, offset[k + 1], in[k]);
    for (int64_t from = 0; from < n; from += STRETCH) {
        int64_t m = n - from < STRETCH ? n - from : STRETCH;
        if (c->pairs && run_pair(c, offset, from, m, in[!c->first]))
            continue;
        for (int k = 0; k < c->nin; k++)
            reg[k] = c->joined[k].repeats ? (struct slot){in[k] + (offset[0] + from) % c->period, NULL, 1}
                : c->joined[k].apart      ? gather_periods(c, k, offset[k + 1], (offset[0] + from) % c->walk.dim[last], m, in[k])
                                          : chain_operand(c, k, offset[k + 1], from, m, in[k]);
        void *to = element_at(out->data, dtype_size(out->dtype), offset[0] + from);
        run_code(c, reg, room, out->dtype == DT_F32 ? to : result, m);
        if (out->dtype != DT_F32 || c->ncode == 0)
            store(c, c->ncode ? result : reg[0].at, m, to);
    }
}

/* ---- two operands -------------------------------------------------------------------------------------------------------------------- */

/* Whether it is one sum, difference or product of two tensors of bytes, maybe with Relu. */
static bool is_pair(const struct chain_call *c)
{
    const int64_t *code = c->code;
    bool both = c->nin == 2 && c->ncode >= 1 && c->ncode <= 2 && code[1] + code[2] == 1;
    bool relu = c->ncode == 1 || (c->ncode == 2 && code[3] == CHAIN_Relu && code[4] == c->nin + c->nimm);
    return both && relu && (code[0] == CHAIN_Add || code[0] == CHAIN_Sub || code[0] == CHAIN_Mul) && dtype_is_byte(c->call->in[0].dtype) &&
        dtype_is_byte(c->call->in[1].dtype) && dtype_is_byte(c->call->out[0].dtype);
}

/* At least one operand is read element by element; it comes first, unless the order matters. */
static void take_pair(struct chain_call *c)
{
    int last = c->walk.rank - 1, a = c->joined[c->code[1]].repeats && c->code[0] != CHAIN_Sub ? (int)c->code[2] : (int)c->code[1];
    bool reads = c->walk.stride[a + 1][last] == 1 && (c->walk.stride[!a + 1][last] == 1 || c->joined[!a].repeats);
    c->pairs = reads && !c->joined[a].repeats;
    c->first = a;
    c->pair = (struct byte_pair){.op = c->code[0] == CHAIN_Add ? BYTE_CODES_ADD
                                     : c->code[0] == CHAIN_Sub ? BYTE_CODES_SUB
                                                               : BYTE_CODES_MUL,
                                 .lo = c->ncode == 2 ? 0 : -INFINITY,
                                 .a = c->scale[a],
                                 .b = c->scale[!a],
                                 .y = c->scale[2]};
}

/* ---- a table ------------------------------------------------------------------------------------------------------------------------- */

struct mapping {
    const uint8_t *from, *table;
    uint8_t *to;
};

static void map_range(void *data, int64_t lo, int64_t hi)
{
    const struct mapping *m = data;
    byte_codes_map(m->from + lo, hi - lo, m->table, m->to + lo);
}

/* Maps every code to the result of the chain for it. */
static void run_table(const struct chain_call *c)
{
    float room[BUFFERS][STRETCH], in[CODES], result[CODES];
    uint8_t code[CODES], table[CODES];
    struct slot reg[CHAIN_INPUTS + CHAIN_NUMBERS + CHAIN_LENGTH] = {{in, in, 1}};
    for (int i = 0; i < CODES; i++)
        code[i] = (uint8_t)i;
    byte_codes_decode(&c->scale[0], code, CODES, in);
    for (int k = 0; k < c->nimm; k++)
        reg[c->nin + k] = (struct slot){&c->imm[k], NULL, 0};
    run_code(c, reg, room, result, CODES);
    store(c, c->ncode ? result : in, CODES, table);
    struct mapping m = {c->call->in[0].data, table, c->call->out[0].data};
    kenv_parallel_for(c->call->env, tensor_elements(&c->call->out[0]), 1, map_range, &m);
}

static bool is_table(const struct chain_call *c)
{
    const struct tensor *x = &c->call->in[0], *y = &c->call->out[0];
    return c->nin == 1 && !x->room && dtype_is_byte(x->dtype) && dtype_is_byte(y->dtype) && tensor_elements(x) == tensor_elements(y) &&
        tensor_elements(x) > 2 * CODES;
}

/* ---- the node ------------------------------------------------------------------------------------------------------------------------ */

static void read_scales(struct chain_call *c)
{
    const struct attr *scales = node_attr(c->call->node, "scales");
    int n = scales->set ? scales->n / 3 : 0;
    require(n <= CHAIN_SCALES && (n == 0 || n > c->nin));
    for (int k = 0; k < n; k++)
        c->scale[k] = (struct byte_scale){(float)scales->floats[3 * k], (float)scales->floats[3 * k + 1], scales->floats[3 * k + 2] < 0};
    for (int k = 0; k <= c->nin; k++) {
        const struct tensor *t = k < c->nin ? &c->call->in[k] : &c->call->out[0];
        if (dtype_is_byte(t->dtype) ? n == 0 || c->scale[k].is_signed != (t->dtype == DT_I8)
                                    : t->dtype != DT_F32 && !dtype_is_half(t->dtype))
            kcall_bad_type(c->call, t->dtype);
    }
}

static void check_code(const struct chain_call *c)
{
    require(c->nin >= 1 && c->nin <= CHAIN_INPUTS && c->nimm <= CHAIN_NUMBERS && c->ncode <= CHAIN_LENGTH);
    for (int i = 0; i < c->ncode; i++) {
        int64_t known = c->nin + c->nimm + i, b = c->code[3 * i + 2];
        require(c->code[3 * i] >= 0 && c->code[3 * i] <= CHAIN_RECODE);
        require(c->code[3 * i + 1] >= 0 && c->code[3 * i + 1] < known && b >= 0 && b < (recodes(c, i) ? CHAIN_LENGTH : known));
    }
}

void kern_Chain(struct kcall *call)
{
    struct chain_call c = {.call = call, .nin = call->nin};
    const struct attr *imm = node_attr(call->node, "imm");
    const struct tensor *in[CHAIN_INPUTS];
    c.ncode = attr_ints(call->graph, call->node, "code", &c.code) / 3;
    c.nimm = imm->set ? imm->n : 0;
    check_code(&c);
    read_scales(&c);
    for (int k = 0; k < c.nimm; k++)
        c.imm[k] = (float)imm->floats[k];
    for (int k = 0; k < c.nin; k++)
        in[k] = &call->in[k];
    assign_buffers(&c);
    if (is_table(&c)) {
        run_table(&c);
        return;
    }
    walk_broadcast(call, &c.walk, &call->out[0], c.nin, in);
    c.period = walk_join_rows(&c.walk, STRETCH, true, c.joined);
    if (is_pair(&c))
        take_pair(&c);
    walk_run(call->env, &c.walk, 4 * c.ncode + 4, chain_row, &c);
}
