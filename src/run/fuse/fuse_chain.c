/* Elementwise operations that feed each other become one Chain node (kern/pointwise/pointwise.h), which reads and writes memory
 * once.
 *
 * From the last node of the file backwards, each elementwise node is the root of a group. A producer joins when all its users are in
 * the group, it is no graph output, and it has the root's type (a smaller one would be computed again for every repetition). Groups of
 * two or more are replaced at the root's place; single numbers become immediates. */
#include "kern/pointwise/pointwise.h"
#include "op/op.h"
#include "run/fuse/fuse.h"

#include <string.h>

enum { MEMBERS = CHAIN_LENGTH - 4 };

struct group {
    int n;
    struct node *member[MEMBERS];
}; /* root first */
struct fusion {
    struct graph *graph;
    struct arena *tmp;
    const struct uses *uses;
    int nvalues;
    bool *taken; /* by value id of a node's output: the node is in a chain */
};

static int operation(const struct node *n)
{
    int op = n->op && !*n->domain ? chain_find(n->optype) : -1;
    if (op == CHAIN_Gelu && strcmp(attr_string(n, "approximate"), "tanh") == 0)
        return CHAIN_GeluTanh;
    return op;
}

/* One number that changes no shape: an immediate. Any numeric type will do for an exponent. */
static bool is_number(const struct value *v, const struct value *result)
{
    return v->constant && constant_elements(v->constant) == 1 && v->constant->rank <= result->type.rank &&
        v->constant->dtype != DT_STRING && v->constant->dtype != DT_F64;
}

static bool fusable(const struct node *n)
{
    int op = operation(n);
    if (op < 0 || n->nout != 1 || n->nin != (chain_binary[op] ? 2 : 1))
        return false;
    const struct value *y = n->out[0];
    if (y->type.dtype != DT_F32 && y->type.dtype != DT_F16 && y->type.dtype != DT_BF16)
        return false;
    for (int k = 0; k < n->nin; k++)
        if (n->in[k]->type.dtype != y->type.dtype && !is_number(n->in[k], y))
            return false;
    return true;
}

static bool in_group(const struct group *g, const struct node *n)
{
    for (int i = 0; i < g->n; i++)
        if (g->member[i] == n)
            return true;
    return false;
}

static bool only_used_by(const struct fusion *f, const struct value *v, const struct group *g)
{
    const struct uses *u = &f->uses[v->id];
    for (int i = 0; i < u->n; i++)
        if (!u->at[i].node || !in_group(g, u->at[i].node))
            return false;
    return true;
}

/* Operands from outside, each once; numbers don't count. -1: too many. */
static int outside(const struct group *g, struct value **out)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->member[i]->nin; k++) {
            struct value *v = g->member[i]->in[k];
            int at = 0;
            if (is_number(v, g->member[i]->out[0]) || (v->producer && in_group(g, v->producer)))
                continue;
            while (at < n && out[at] != v)
                at++;
            if (at == CHAIN_INPUTS)
                return -1;
            if (at == n)
                out[n++] = v;
        }
    return n;
}

/* A producer that may join; NULL: none. */
static struct node *can_join_chain(const struct fusion *f, const struct group *g)
{
    const struct value *y = g->member[0]->out[0];
    for (int i = 0; i < g->n; i++)
        for (int k = 0; k < g->member[i]->nin; k++) {
            const struct value *v = g->member[i]->in[k];
            struct node *p = v->producer;
            if (!p || v->id >= f->nvalues || in_group(g, p) || !fusable(p) || !type_eq(&v->type, &y->type) || !only_used_by(f, v, g))
                continue;
            return p;
        }
    return NULL;
}

/* Cost in instructions: a power of 3 becomes two products. */
static int most_instructions(const struct group *g)
{
    int n = 0;
    for (int i = 0; i < g->n; i++)
        n += operation(g->member[i]) == CHAIN_Pow ? 2 : 1;
    return n;
}

static void grow(const struct fusion *f, struct group *g)
{
    struct value *operand[CHAIN_INPUTS];
    struct node *p;
    while (g->n < MEMBERS && most_instructions(g) < CHAIN_LENGTH - 2 && (p = can_join_chain(f, g))) {
        g->member[g->n++] = p;
        if (outside(g, operand) >= 0)
            continue;
        g->n--;
        return;
    }
}

/* ---- code ------------------------------------------------------------------------------------------------------------------------ */

struct code {
    const struct group *group;
    int nin, nimm, n;
    struct value *in[CHAIN_INPUTS];
    double imm[CHAIN_NUMBERS];
    int64_t at[3 * CHAIN_LENGTH];
    int reg[MEMBERS]; /* of each member's result; counted from 0 for the first instruction */
};

static int immediate(struct code *c, double x)
{
    int i = 0;
    while (i < c->nimm && (c->imm[i] < x || c->imm[i] > x))
        i++;
    if (i == CHAIN_NUMBERS)
        return -1;
    if (i == c->nimm)
        c->imm[c->nimm++] = x;
    return i;
}

static bool collect_numbers(struct code *c)
{
    for (int i = 0; i < c->group->n; i++) {
        const struct node *n = c->group->member[i];
        for (int k = 0; k < n->nin; k++)
            if (is_number(n->in[k], n->out[0]) && immediate(c, constant_float(n->in[k]->constant, n->in[k]->name, 0)) < 0)
                return false;
    }
    return true;
}

static int register_of(struct code *c, const struct node *n, int k)
{
    const struct value *v = n->in[k];
    for (int i = 0; i < c->group->n; i++)
        if (c->group->member[i]->out[0] == v)
            return c->nin + c->nimm + c->reg[i];
    if (is_number(v, n->out[0]))
        return c->nin + immediate(c, constant_float(v->constant, v->name, 0));
    for (int i = 0; i < c->nin; i++)
        if (c->in[i] == v)
            return i;
    bug("an operand of a chain is lost");
}

static int put(struct code *c, int op, int a, int b)
{
    c->at[3 * c->n] = op;
    c->at[3 * c->n + 1] = a;
    c->at[3 * c->n + 2] = b;
    return c->n++;
}

/* The exponent when it is the number 2 or 3, else 0. */
static int small_power(const struct node *n)
{
    if (operation(n) != CHAIN_Pow || !is_number(n->in[1], n->out[0]))
        return 0;
    double x = constant_float(n->in[1]->constant, n->in[1]->name, 0);
    return x >= 2 && x <= 2 ? 2 : x >= 3 && x <= 3 ? 3 : 0;
}

static int encode_chain(struct code *c, const struct node *n)
{
    int a = register_of(c, n, 0), power = small_power(n);
    if (!power)
        return put(c, operation(n), a, n->nin > 1 ? register_of(c, n, 1) : a);
    int square = put(c, CHAIN_Mul, a, a);
    return power == 2 ? square : put(c, CHAIN_Mul, c->nin + c->nimm + square, a);
}

static bool ready(const struct code *c, const struct node *n)
{
    for (int k = 0; k < n->nin; k++)
        for (int i = 0; i < c->group->n; i++)
            if (c->group->member[i]->out[0] == n->in[k] && c->reg[i] < 0)
                return false;
    return true;
}

/* Operands first; the root, which uses all the others, comes last. */
static void encode_all(struct code *c)
{
    for (int i = 0; i < c->group->n; i++)
        c->reg[i] = -1;
    for (int done = 0; done < c->group->n;)
        for (int i = c->group->n - 1; i >= 0; i--) {
            if (c->reg[i] >= 0 || !ready(c, c->group->member[i]))
                continue;
            c->reg[i] = encode_chain(c, c->group->member[i]);
            done++;
        }
}

static struct node *chain_node(struct fusion *f, struct code *c)
{
    struct graph *g = f->graph;
    struct node *root = c->group->member[0];
    struct node *n = graph_node(g, op_find("tpc", "Chain"), root->name, c->nin, c->in, 1);
    struct attr *imm = node_attr(n, "imm");
    double *floats = NEWN(g->arena, double, c->nimm);
    memcpy(floats, c->imm, (size_t)c->nimm * sizeof *floats);
    attr_set_ints(g, n, "code", 3 * c->n, c->at);
    imm->set = true;
    imm->n = c->nimm;
    imm->floats = floats;
    node_output(g, n, 0, root->out[0]);
    return n;
}

static struct node *try_fuse(struct fusion *f, struct node *root)
{
    struct group g = {.n = 1, .member = {root}};
    struct code c = {.group = &g};
    grow(f, &g);
    if (g.n < 2)
        return NULL;
    c.nin = outside(&g, c.in);
    if (c.nin < 1 || !collect_numbers(&c))
        return NULL;
    encode_all(&c);
    struct node *n = chain_node(f, &c);
    for (int i = 0; i < g.n; i++)
        f->taken[g.member[i]->out[0]->id] = true;
    return n;
}

int fuse_chains(struct graph *g)
{
    struct arena *tmp = arena_new();
    struct fusion f = {.graph = g, .tmp = tmp, .uses = graph_uses(g, tmp), .nvalues = g->values.n};
    f.taken = NEWN(tmp, bool, g->values.n);
    struct node **made = NEWN(tmp, struct node *, g->nodes.n);
    for (int i = g->nodes.n - 1; i >= 0; i--) {
        struct node *n = g->nodes.at[i];
        if (fusable(n) && !f.taken[n->out[0]->id])
            made[i] = try_fuse(&f, n);
    }
    int kept = 0, before = g->nodes.n;
    for (int i = 0; i < before; i++) {
        struct node *n = g->nodes.at[i];
        bool gone = fusable(n) && f.taken[n->out[0]->id] && !made[i];
        if (!gone)
            g->nodes.at[kept++] = made[i] ? made[i] : n;
    }
    g->nodes.n = kept;
    arena_free(tmp);
    return before - kept;
}
