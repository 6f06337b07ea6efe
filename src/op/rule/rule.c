/* rule: builds factor rules and checks them against the types. A rule names the factors of every dimension of every operand and result
 * (docs/architecture.md); rule_project derives every division of a tensor between ranks from that. */
#include "op/rule/rule.h"

#include "op/op.h"

#include <string.h>

static struct rule_operand *operands_new(struct graph *g, int n, struct value *const *value)
{
    struct rule_operand *at = NEWN(g->arena, struct rule_operand, n > 0 ? n : 1);
    for (int i = 0; i < n; i++) {
        at[i].present = value[i] != NULL;
        at[i].rank = value[i] ? value[i]->type.rank : 0;
    }
    return at;
}

bool rule_factor_splits(const struct factor *f)
{
    return !(f->flags & (FACTOR_REPLICATED | FACTOR_POSITION)) || (f->flags & FACTOR_LOWERED);
}

struct rule *rule_new(struct graph *g, const struct node *node)
{
    struct rule *r = NEW(g->arena, struct rule);
    r->nin = node->nin;
    r->nout = node->nout;
    r->in = operands_new(g, node->nin, node->in);
    r->out = operands_new(g, node->nout, node->out);
    r->query_outer = r->query_inner = -1;
    return r;
}

enum { FEW_FACTORS = 32 };

static bool name_in_use(const struct rule *r, const char *name)
{
    if (r->nfactor > FEW_FACTORS)
        return name_index_find(&r->names, name) >= 0;
    for (int i = 0; i < r->nfactor; i++)
        if (strcmp(r->factor[i].name, name) == 0)
            return true;
    return false;
}

/* Names are only printed, but a rule must read back: a name in use gets a number. */
static void name_factor(const struct rule *r, struct factor *f, const char *name)
{
    snprintf(f->name, sizeof f->name, "%s", name);
    for (unsigned n = 1; name_in_use(r, f->name); n++)
        snprintf(f->name, sizeof f->name, "%.5s_%u", name, n % 10000u);
}

static void index_names(struct graph *g, struct rule *r)
{
    for (int i = r->nfactor == FEW_FACTORS ? 0 : r->nfactor; r->nfactor >= FEW_FACTORS && i <= r->nfactor; i++)
        name_index_put(g->arena, &r->names, arena_strdup(g->arena, r->factor[i].name), i);
}

int rule_factor(struct graph *g, struct rule *r, const char *name, const struct dim *size, unsigned flags)
{
    if (r->nfactor == r->factor_cap)
        r->factor = vec_grow(g->arena, r->factor, &r->factor_cap, r->nfactor, sizeof *r->factor);
    struct factor *f = &r->factor[r->nfactor];
    name_factor(r, f, name);
    f->size = dim_rewrite(g->alg, size);
    f->flags = flags;
    index_names(g, r);
    return r->nfactor++;
}

int rule_numbered(struct graph *g, struct rule *r, const char *stem, int number, const struct dim *size, unsigned flags)
{
    return rule_factor(g, r, arena_printf(g->arena, "%s%d", stem, number), size, flags);
}

/* Adds parts up to n, empty. Most dimensions have one, so capacity for more comes with the second. */
static void grow_parts(struct graph *g, struct rule_dim *dim, int n)
{
    if (!dim->part && n == 1)
        dim->part = NEW(g->arena, struct rule_part);
    while (n > 1 && dim->cap < n) {
        dim->cap = dim->cap < dim->n ? dim->n : dim->cap;
        dim->part = vec_grow(g->arena, dim->part, &dim->cap, dim->n, sizeof *dim->part);
    }
    dim->n = dim->n < n ? n : dim->n;
}

void rule_put(struct graph *g, struct rule_operand *operand, int d, int part, int f)
{
    require(d >= 0 && d < operand->rank && part >= 0);
    grow_parts(g, &operand->dim[d], part + 1);
    struct rule_part *p = &operand->dim[d].part[part];
    require(p->n < MAX_RANK);
    p->factor[p->n++] = f;
}

int rule_same_dim(struct graph *g, struct rule *r, const char *stem, int d, const struct dim *size, unsigned flags)
{
    int f = rule_numbered(g, r, stem, d, size, flags);
    rule_put(g, &r->in[0], d, 0, f);
    rule_put(g, &r->out[0], d, 0, f);
    return f;
}

void rule_slide(struct graph *g, struct rule *r, int d, int f, const struct sliding *window)
{
    struct sliding *own = NEW(g->arena, struct sliding);
    *own = *window;
    rule_put(g, &r->in[0], d, 0, f);
    rule_put(g, &r->out[0], d, 0, f);
    r->in[0].dim[d].window = own;
}

void rule_linear(struct rule *r, uint32_t operands)
{
    require(r->nlinear < (int)(sizeof r->linear / sizeof *r->linear));
    r->linear[r->nlinear++] = operands;
}

void rule_addend(struct rule *r, int i)
{
    r->in[i].addend = true;
    r->increasing |= UINT32_C(1) << i;
}

/* Replaced elements are moved; added, multiplied and compared ones pass partial values as the operation does. */
void rule_scatter(struct rule *r, const struct node *node)
{
    const char *how = attr_string(node, "reduction");
    bool floats = dtype_is_float(node->in[0]->type.dtype), adds = strcmp(how, "add") == 0, most = strcmp(how, "max") == 0;
    r->moves = strcmp(how, "none") == 0;
    if (floats && (r->moves || adds))
        rule_linear(r, 1 | 4);
    else if (floats && strcmp(how, "mul") == 0)
        rule_linear(r, 1);
    r->increasing = floats && adds ? 1 : 0;
    if (most || strcmp(how, "min") == 0) {
        r->increasing = 1;
        r->extremal = 1 | 4;
        r->extremum = most ? RED_MAX : RED_MIN;
    }
}

static int add_pass(struct rule_pass *list, int n, uint32_t operands, enum redop from, enum redop to)
{
    for (int i = 0; i < n; i++)
        if (list[i].operands == operands && list[i].from == from && list[i].to == to)
            return n;
    require(n < MOST_PASSES);
    list[n] = (struct rule_pass){operands, from, to};
    return n + 1;
}

/* Max and min through each operand separately. */
static int add_single(struct rule_pass *list, int n, uint32_t operands, bool exchanged)
{
    for (int i = 0; i < 32; i++)
        if (operands >> i & 1) {
            n = add_pass(list, n, UINT32_C(1) << i, RED_MAX, exchanged ? RED_MIN : RED_MAX);
            n = add_pass(list, n, UINT32_C(1) << i, RED_MIN, exchanged ? RED_MAX : RED_MIN);
        }
    return n;
}

int rule_passes(const struct rule *r, struct rule_pass *list)
{
    int n = 0;
    uint32_t moved = 0;
    for (int i = 0; i < r->nlinear; i++) {
        n = add_pass(list, n, r->linear[i], RED_SUM, RED_SUM);
        for (enum redop op = RED_MAX; r->moves && op <= RED_MIN; op++)
            n = add_pass(list, n, r->linear[i], op, op);
        moved |= r->moves ? r->linear[i] : 0;
    }
    n = add_single(list, n, r->increasing | moved, false);
    n = add_single(list, n, r->decreasing, true);
    return r->extremal ? add_pass(list, n, r->extremal, r->extremum, r->extremum) : n;
}

const struct dim *rule_sizes(struct graph *g, const struct rule *r, const int *list, int from, int to)
{
    const struct dim *size = dim_int(g->alg, 1);
    for (int i = from; i < to; i++)
        size = dim_mul(g->alg, size, r->factor[list[i]].size);
    return size;
}

const struct dim *rule_part_size(struct graph *g, const struct rule *r, const struct rule_part *part)
{
    return rule_sizes(g, r, part->factor, 0, part->n);
}

void rule_broadcast(struct graph *g, const struct rule *r, struct rule_operand *operand, const struct type *type, int rank,
                    const int *factor)
{
    for (int d = 0; d < type->rank; d++) {
        int at = rank - type->rank + d;
        if (at < 0 || factor[at] < 0)
            continue;
        if (!dim_equals(type->dim[d], 1) || dim_equals(r->factor[factor[at]].size, 1))
            rule_put(g, operand, d, 0, factor[at]);
    }
}

/* ---- factors of dimensions ------------------------------------------------------------------------------------------------- */

int rule_lone_factor(const struct rule_dim *rd)
{
    return rd->n == 1 && rd->part[0].n == 1 && !rd->window ? rd->part[0].factor[0] : -1;
}

int rule_factor_at(const struct rule_operand *o, int d)
{
    return o->present && d < o->rank ? rule_lone_factor(&o->dim[d]) : -1;
}

static bool dim_has_factor(const struct rule_dim *dim, int factor)
{
    for (int p = 0; p < dim->n; p++)
        for (int i = 0; i < dim->part[p].n; i++)
            if (dim->part[p].factor[i] == factor)
                return true;
    return false;
}

bool rule_has_factor(const struct rule_operand *operand, int factor)
{
    for (int d = 0; d < operand->rank; d++)
        if (dim_has_factor(&operand->dim[d], factor))
            return true;
    return false;
}

/* Whether one dimension of the operand is exactly this factor and no other has it, or the operand lacks it. */
static bool alone_or_absent(const struct rule_operand *x, int factor)
{
    int dims = 0, alone = 0;
    for (int d = 0; x->present && d < x->rank; d++) {
        dims += dim_has_factor(&x->dim[d], factor);
        alone += rule_factor_at(x, d) == factor;
    }
    return dims == 0 || (dims == 1 && alone == 1);
}

static bool sizes_have(const struct rule *r, int factor)
{
    for (int i = 0; i < r->nsize; i++)
        for (int k = 0; k < r->size[i].part.n; k++)
            if (r->size[i].part.factor[k] == factor)
                return true;
    return false;
}

bool rule_cuts_anywhere(const struct rule *r, int d)
{
    int f = rule_factor_at(&r->out[0], d);
    const unsigned tied = FACTOR_REPLICATED | FACTOR_POSITION | FACTOR_CONTRACTED | FACTOR_DROPPED | FACTOR_LOWERED;
    if (f < 0 || r->factor[f].flags & tied || sizes_have(r, f))
        return false;
    for (int k = 0; k < r->nout; k++)
        if (r->out[k].present && (d >= r->out[k].rank || rule_factor_at(&r->out[k], d) != f))
            return false;
    for (int k = 0; k < r->nin; k++)
        if (!alone_or_absent(&r->in[k], f))
            return false;
    return true;
}

/* ---- the check ---------------------------------------------------------------------------------------------------------- */

static const struct dim *dim_of_parts(struct graph *g, const struct rule *r, const struct rule_dim *dim)
{
    if (dim->n == 0)
        return dim_int(g->alg, 1);
    if (dim->window)
        return dim_rewrite(g->alg, dim->window->size);
    const struct dim *sum = dim_int(g->alg, 0);
    for (int p = 0; p < dim->n; p++)
        sum = dim_add(g->alg, sum, rule_part_size(g, r, &dim->part[p]));
    return sum;
}

/* A size that depends on input sizes may equal another by equations that rewriting does not bring to one form, and so may a rank's part of
 * a dimension: S/3 is S - (S + 2)/3 - (S + 1)/3. A data-dependent size may be 1 although the other is not. */
static bool unsettled(const struct graph *g, const struct dim *a, const struct dim *b)
{
    const struct equation *list;
    return (!dim_is_int(a, NULL) || !dim_is_int(b, NULL)) &&
        (g->rank >= 0 || alg_equations(g->alg, &list) > 0 || dim_has_data(a) || dim_has_data(b));
}

/* False if the sizes cannot be proven to equal the type's. */
static bool check_operand(struct graph *g, const struct node *node, const struct rule *r, const struct rule_operand *operand,
                          const struct value *value)
{
    if (!value)
        return true;
    require(operand->present && operand->rank == value->type.rank);
    for (int d = 0; d < operand->rank; d++) {
        const struct dim *made = dim_of_parts(g, r, &operand->dim[d]), *is = dim_rewrite(g->alg, value->type.dim[d]);
        if (made != is && unsettled(g, made, is))
            return false;
        if (made != is && node->op->plugin)
            fail("%s: the rule %s gives dimension %d of '%s' size %s, its type is %s", node_where(g, node), rule_str(g->arena, r), d,
                 value->name, dim_str(g->arena, made), type_str(g->arena, &value->type));
        if (made != is)
            bug("%s: the rule %s gives dimension %d of '%s' size %s, its type is %s", node_where(g, node), rule_str(g->arena, r), d,
                value->name, dim_str(g->arena, made), type_str(g->arena, &value->type));
    }
    return true;
}

static bool any_strings(int n, struct value *const *v)
{
    for (int i = 0; i < n; i++)
        if (v[i] && v[i]->type.dtype == DT_STRING)
            return true;
    return false;
}

bool rule_of_strings(const struct node *n)
{
    return any_strings(n->nin, n->in) || any_strings(n->nout, n->out);
}

struct rule *rule_of(struct graph *g, const struct node *node)
{
    bool own = node->on_ranks && g->rank < 0; /* in a rank's own graph the types determine it */
    if (!node->op || !node->op->rule || !op_resolved(node) || rule_of_strings(node) || own)
        return NULL;
    const struct diag_subject before = node_work_on(g, node);
    struct rule *r = node->op->rule(g, node);
    (void)diag_work_on(before);
    if (!r)
        return NULL;
    require(r->nin == node->nin && r->nout == node->nout);
    bool settled = true;
    for (int i = 0; i < r->nin; i++)
        settled = check_operand(g, node, r, &r->in[i], node->in[i]) && settled;
    for (int i = 0; i < r->nout; i++)
        settled = check_operand(g, node, r, &r->out[i], node->out[i]) && settled;
    return settled ? r : NULL;
}
