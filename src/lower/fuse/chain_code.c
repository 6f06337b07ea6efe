/* chain_code: the code of a Chain (kern/pointwise/pointwise.h) for a group of nodes. Single numbers become immediates; functions with
 * parameters become a few operations each, which compute the same bits. */
#include "lower/fuse/chain.h"
#include "lower/lower.h"
#include "op/op.h"

#include <string.h>

/* Provisional register numbers: of operands, numbers and results, in this order. */
enum { NUMBERS = CHAIN_INPUTS, RESULTS = NUMBERS + CHAIN_NUMBERS };

struct code {
    const struct chain_group *group;
    int nin, nimm, n, nrecodes;
    struct value *const *in;
    double imm[CHAIN_NUMBERS];
    int64_t at[3 * CHAIN_LENGTH];
    struct byte_codes recode[CHAIN_LENGTH];
    int reg[CHAIN_LENGTH]; /* of each member's result */
    bool full;
};

/* ---- operations ---------------------------------------------------------------------------------------------------------------------- */

static int put(struct code *c, int op, int a, int b)
{
    if (c->n == CHAIN_LENGTH) {
        c->full = true;
        return RESULTS;
    }
    c->at[3 * c->n] = op;
    c->at[3 * c->n + 1] = a;
    c->at[3 * c->n + 2] = b;
    return RESULTS + c->n++;
}

static int number(struct code *c, double x)
{
    int i = 0;
    while (i < c->nimm && memcmp(&c->imm[i], &x, sizeof x) != 0)
        i++;
    if (i == CHAIN_NUMBERS) {
        c->full = true;
        return NUMBERS;
    }
    if (i == c->nimm)
        c->imm[c->nimm++] = x;
    return NUMBERS + i;
}

static int by(struct code *c, int op, int a, double x)
{
    return put(c, op, a, number(c, x));
}

static int clamp(struct code *c, int a, double lo, double hi)
{
    return by(c, CHAIN_Min, by(c, CHAIN_Max, a, lo), hi);
}

/* ---- nodes --------------------------------------------------------------------------------------------------------------------------- */

static int operation(const struct node *n)
{
    int op = n->op && !*n->domain ? chain_find(n->optype) : -1;
    if (op == CHAIN_Gelu && strcmp(attr_string(n, "approximate"), "tanh") == 0)
        return CHAIN_GeluTanh;
    return op;
}

static int hard_sigmoid(struct code *c, const struct node *n, int a)
{
    return clamp(c, by(c, CHAIN_Add, by(c, CHAIN_Mul, a, (float)attr_float(n, "alpha")), (float)attr_float(n, "beta")), 0, 1);
}

static int hard_swish(struct code *c, const struct node *n, int a)
{
    (void)n;
    return put(c, CHAIN_Mul, a, clamp(c, by(c, CHAIN_Add, by(c, CHAIN_Div, a, 6), 0.5), 0, 1));
}

static int leaky_relu(struct code *c, const struct node *n, int a)
{
    return put(c, CHAIN_Max, by(c, CHAIN_Mul, a, (float)attr_float(n, "alpha")), a);
}

static int swish(struct code *c, const struct node *n, int a)
{
    return put(c, CHAIN_Mul, a, put(c, CHAIN_Sigmoid, by(c, CHAIN_Mul, a, (float)attr_float(n, "alpha")), 0));
}

static const struct composed {
    const char *name;
    int instructions;
    int (*put)(struct code *, const struct node *, int a);
} composed[] = {{"HardSigmoid", 4, hard_sigmoid}, {"HardSwish", 5, hard_swish}, {"LeakyRelu", 2, leaky_relu}, {"Swish", 3, swish}};

/* The node as a function with parameters; NULL: it is none. */
static const struct composed *composed_of(const struct node *n)
{
    if (op_is_onnx(n, "LeakyRelu") && !(attr_float(n, "alpha") > 0 && attr_float(n, "alpha") <= 1))
        return NULL;
    for (size_t i = 0; n->op && i < sizeof composed / sizeof *composed; i++)
        if (op_is_onnx(n, composed[i].name))
            return &composed[i];
    return NULL;
}

bool chain_computes(const struct node *n)
{
    int op = operation(n);
    return composed_of(n) ? n->nin == 1 : op >= 0 && n->nin == (chain_binary[op] ? 2 : 1);
}

/* The exponent if it is the number 2 or 3, else 0. */
static int small_power(const struct node *n)
{
    if (operation(n) != CHAIN_Pow || !chain_is_number(n->in[1]))
        return 0;
    double x = constant_float(n->in[1]->constant, n->in[1]->name, 0);
    return x >= 2 && x <= 2 ? 2 : x >= 3 && x <= 3 ? 3 : 0;
}

int chain_instructions(const struct node *n)
{
    return composed_of(n) ? composed_of(n)->instructions : operation(n) == CHAIN_Pow ? 2 : 1;
}

bool chain_is_number(const struct value *v)
{
    return v->constant && constant_elements(v->constant) == 1 && v->constant->dtype != DT_STRING && v->constant->dtype != DT_F64;
}

struct node *chain_encoder(const struct node *n)
{
    return op_is_onnx(n, "DequantizeLinear") ? n->in[0]->producer : NULL;
}

int chain_operands(const struct node *n, struct value *const **in)
{
    const struct node *q = chain_encoder(n);
    *in = q ? q->in : n->in;
    return q || byte_scale_encodes(n) ? 1 : n->nin;
}

/* ---- code ---------------------------------------------------------------------------------------------------------------------------- */

static int register_of(struct code *c, const struct value *v)
{
    for (int i = 0; i < c->group->n; i++)
        if (c->group->member[i]->out[0] == v)
            return c->reg[i];
    if (chain_is_number(v))
        return number(c, constant_float(v->constant, v->name, 0));
    for (int i = 0; i < c->nin; i++)
        if (c->in[i] == v)
            return i;
    bug("an operand of a chain is lost");
}

static int put_node(struct code *c, const struct node *n)
{
    struct value *const *in;
    int nin = chain_operands(n, &in), a = register_of(c, in[0]);
    if (byte_scale_encodes(n))
        return a;
    if (chain_encoder(n)) {
        c->recode[c->nrecodes] = byte_scale_of(n);
        return put(c, CHAIN_RECODE, a, c->nrecodes++);
    }
    if (composed_of(n))
        return composed_of(n)->put(c, n, a);
    if (!small_power(n))
        return put(c, operation(n), a, nin > 1 ? register_of(c, in[1]) : a);
    int square = put(c, CHAIN_Mul, a, a);
    return small_power(n) == 2 ? square : put(c, CHAIN_Mul, a, square);
}

/* Orders nodes so that operands come first. */
static void put_nodes(struct code *c)
{
    for (int i = c->group->n - 1; i >= 0; i--)
        c->reg[i] = put_node(c, c->group->member[i]);
}

/* The final register: operands, then numbers, then results. */
static int64_t numbered(const struct code *c, int64_t reg)
{
    return reg < NUMBERS ? reg : reg < RESULTS ? reg - NUMBERS + c->nin : reg - RESULTS + c->nin + c->nimm;
}

static void number_registers(struct code *c)
{
    for (int i = 0; i < c->n; i++) {
        c->at[3 * i + 1] = numbered(c, c->at[3 * i + 1]);
        if (c->at[3 * i] != CHAIN_RECODE)
            c->at[3 * i + 2] = numbered(c, c->at[3 * i + 2]);
    }
}

/* ---- the node ------------------------------------------------------------------------------------------------------------------------ */

static void set_floats(struct node *n, const char *name, int count, const double *floats)
{
    struct attr *a = node_attr(n, name);
    a->set = true;
    a->n = count;
    a->floats = floats;
}

static void put_scale(double *floats, int *n, struct byte_codes s)
{
    floats[(*n)++] = s.scale;
    floats[(*n)++] = s.zero;
    floats[(*n)++] = s.least;
}

/* Replaces decoded operands by their codes. */
static void set_scales(struct graph *g, const struct code *c, struct value **in, struct node *n)
{
    const struct node *root = c->group->member[0];
    double *scales = NEWN(g->arena, double, 3 * CHAIN_SCALES);
    int count = 0;
    bool some = byte_scale_encodes(root) || c->nrecodes > 0;
    for (int k = 0; k < c->nin; k++) {
        const struct node *d = byte_scale_decoder(c->in[k]);
        some = some || d;
        in[k] = d ? d->in[0] : c->in[k];
        put_scale(scales, &count, d ? byte_scale_of(d) : (struct byte_codes){0});
    }
    put_scale(scales, &count, byte_scale_encodes(root) ? byte_scale_of(root) : (struct byte_codes){0});
    for (int i = 0; i < c->nrecodes; i++)
        put_scale(scales, &count, c->recode[i]);
    if (some)
        set_floats(n, "scales", count, scales);
}

struct node *chain_code(struct graph *g, const struct chain_group *group, int nin, struct value *const *in)
{
    struct code c = {.group = group, .nin = nin, .in = in};
    struct value **read = NEWN(g->arena, struct value *, nin);
    struct node *root = group->member[0];
    put_nodes(&c);
    if (c.full)
        return NULL;
    number_registers(&c);
    memcpy(read, in, (size_t)nin * sizeof(struct value *));
    struct node *n = graph_node(g, op_find("tpc", "Chain"), root->name, nin, read, 1);
    double *imm = NEWN(g->arena, double, c.nimm);
    memcpy(imm, c.imm, (size_t)c.nimm * sizeof *imm);
    attr_set_ints(g, n, "code", 3 * c.n, c.at);
    set_floats(n, "imm", c.nimm, imm);
    set_scales(g, &c, n->in, n);
    node_output(g, n, 0, root->out[0]);
    return n;
}
