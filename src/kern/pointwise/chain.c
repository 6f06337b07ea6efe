/* chain: fused elementwise operations (kern/pointwise/pointwise.h). A row of the broadcast walk is cut in stretches; every operation of the
 * code runs on a stretch before the next stretch is touched. Results whose last use is past give their buffer to later ones. Sums in f16
 * and bf16 chains are float32 throughout and rounded once, at the end. */
#include "kern/core/core.h"
#include "kern/pointwise/pointwise.h"

#include <string.h>

enum { STRETCH = 256, BUFFERS = CHAIN_LENGTH };

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
    int buffer[CHAIN_LENGTH]; /* of each result: its buffer, -1: the output */
};

static int last_use(const struct chain_call *c, int reg)
{
    int last = -1;
    for (int i = 0; i < c->ncode; i++)
        if (c->code[3 * i + 1] == reg || c->code[3 * i + 2] == reg)
            last = i;
    return last;
}

static void assign_buffers(struct chain_call *c)
{
    int busy[BUFFERS]; /* the operation that reads the buffer last */
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

static void run_code(const struct chain_call *c, struct slot *reg, float (*room)[STRETCH], float *out, int64_t n)
{
    for (int i = 0; i < c->ncode; i++) {
        int64_t op = c->code[3 * i];
        struct slot *a = &reg[c->code[3 * i + 1]], *b = &reg[c->code[3 * i + 2]], *to = &reg[c->nin + c->nimm + i];
        float *at = c->buffer[i] < 0 ? out : room[c->buffer[i]];
        if (chain_binary[op]) {
            chain_binary[op](a->at, a->step, b->at, b->step, at, n);
        } else if (a->step) {
            chain_unary[op](a->at, at, n);
        } else {
            chain_unary[op](a->at, at, 1);
            for (int64_t k = 1; k < n; k++)
                at[k] = at[0];
        }
        *to = (struct slot){at, at, 1};
    }
}

/* Operand k's stretch that starts at element `from` of the row, as float32. */
static struct slot chain_operand(const struct chain_call *c, int k, int64_t offset, int64_t from, int64_t n, float *room)
{
    const struct tensor *t = &c->call->in[k];
    int step = c->walk.stride[k + 1][c->walk.rank - 1] != 0;
    const void *src = element_at_const(t->data, dtype_size(t->dtype), offset + step * from);
    if (t->dtype == DT_F32)
        return (struct slot){src, NULL, step};
    convert_to_f32(t->dtype, src, step ? n : 1, room);
    return (struct slot){room, room, step};
}

static void chain_row(void *data, const int64_t *offset, int64_t n)
{
    const struct chain_call *c = data;
    const struct tensor *out = &c->call->out[0];
    float room[BUFFERS][STRETCH], in[CHAIN_INPUTS][STRETCH], result[STRETCH];
    struct slot reg[CHAIN_INPUTS + CHAIN_NUMBERS + CHAIN_LENGTH];
    for (int k = 0; k < c->nimm; k++)
        reg[c->nin + k] = (struct slot){&c->imm[k], NULL, 0};
    for (int64_t from = 0; from < n; from += STRETCH) {
        int64_t m = n - from < STRETCH ? n - from : STRETCH;
        for (int k = 0; k < c->nin; k++)
            reg[k] = chain_operand(c, k, offset[k + 1], from, m, in[k]);
        void *to = element_at(out->data, dtype_size(out->dtype), offset[0] + from);
        run_code(c, reg, room, out->dtype == DT_F32 ? to : result, m);
        if (out->dtype != DT_F32)
            convert_from_f32(out->dtype, result, m, to);
    }
}

static void check_code(const struct chain_call *c)
{
    require(c->nin <= CHAIN_INPUTS && c->nimm <= CHAIN_NUMBERS && c->ncode > 0 && c->ncode <= CHAIN_LENGTH);
    for (int i = 0; i < c->ncode; i++) {
        int64_t known = c->nin + c->nimm + i;
        require(c->code[3 * i] >= 0 && c->code[3 * i] < CHAIN_COUNT);
        require(c->code[3 * i + 1] >= 0 && c->code[3 * i + 1] < known && c->code[3 * i + 2] >= 0 && c->code[3 * i + 2] < known);
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
    if (call->out[0].dtype != DT_F32 && !dtype_is_half(call->out[0].dtype))
        kcall_bad_type(call, call->out[0].dtype);
    for (int k = 0; k < c.nimm; k++)
        c.imm[k] = (float)imm->floats[k];
    for (int k = 0; k < c.nin; k++)
        in[k] = &call->in[k];
    assign_buffers(&c);
    walk_broadcast(call, &c.walk, &call->out[0], c.nin, in);
    walk_run(call->env, &c.walk, 4 * c.ncode, chain_row, &c);
}
