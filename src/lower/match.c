/* match: whether a node is the last one of a subgraph like a pattern. Operands of commutative ops may be swapped, products may be written
 * in any way (monomial.c), and numbers may differ in their last digits. Intermediate values may have no other readers. */
#include "lower/matcher.h"
#include "op/op.h"

#include <string.h>

static bool solve(struct match *, struct match_state);

static void push_goal(struct match_state *s, const struct value *want, struct value *have)
{
    require(s->ngoal < MATCH_GOALS);
    s->goal[s->ngoal].want = want;
    s->goal[s->ngoal++].have = have;
}

static bool push_node(struct match_state *s, struct node *n)
{
    if (s->nnode == MATCH_NODES)
        return false;
    s->node[s->nnode++] = n;
    return true;
}

/* ---- attributes -------------------------------------------------------------------------------------------------------------- */

int64_t match_axis(const struct node *n, const char *attr, int64_t k)
{
    return k < 0 && (strcmp(attr, "axis") == 0 || strcmp(attr, "axes") == 0) && node_operand(n, 0) ? k + n->in[0]->type.rank : k;
}

static bool same_list(const struct node *n, const struct attr *want, const struct attr *have)
{
    if (have->n != want->n)
        return false;
    for (int i = 0; i < want->n; i++) {
        int64_t k = want->ints[i], is;
        if (have->kind == ATTR_DIMS ? !dim_is_int(have->dims[i], &is) : have->kind != ATTR_INTS)
            return false;
        is = have->kind == ATTR_DIMS ? is : have->ints[i];
        if (match_axis(n, want->name, k) != match_axis(n, want->name, is))
            return false;
    }
    return true;
}

static bool same_attr(const struct node *n, const struct attr *want)
{
    const struct attr *have = attr_find(n, want->name);
    if (!have || !have->set)
        return false;
    switch (want->kind) {
    case ATTR_INT: return have->kind == ATTR_INT && match_axis(n, want->name, want->i) == match_axis(n, want->name, have->i);
    case ATTR_FLOAT: return have->kind == ATTR_FLOAT && monomial_near(have->f, want->f);
    case ATTR_STRING: return have->kind == ATTR_STRING && strcmp(have->s, want->s) == 0;
    case ATTR_INTS: return same_list(n, want, have);
    default: bug("a pattern compares attribute '%s' of kind %s", want->name, attr_kind_name(want->kind));
    }
}

static bool same_op(const struct node *want, const struct node *n)
{
    if (!n || !n->op || strcmp(want->optype, n->optype) || strcmp(want->domain, n->domain))
        return false;
    for (int i = 0; i < want->nattr; i++)
        if (!same_attr(n, &want->attr[i]))
            return false;
    return true;
}

/* ---- products ---------------------------------------------------------------------------------------------------------------- */

/* Matches pattern factors from k on with different factors of the product that are not in `taken`. */
static bool pair_factors(struct match *m, struct match_state s, const struct monomial *want, const struct monomial *have, int k,
                         unsigned taken)
{
    if (k == want->n)
        return solve(m, s);
    for (int i = 0; i < have->n; i++) {
        struct match_state next = s;
        if (taken >> i & 1 || have->factor[i].power != want->factor[k].power)
            continue;
        push_goal(&next, want->factor[k].value, have->factor[i].value);
        if (pair_factors(m, next, want, have, k + 1, taken | 1u << i))
            return true;
    }
    return false;
}

static bool solve_factors(struct match *m, struct match_state s, const struct monomial *want, const struct monomial *have)
{
    if (want->n != have->n || !monomial_near(have->number, want->number))
        return false;
    for (int i = 0; i < have->nnode; i++)
        if (!push_node(&s, have->node[i]))
            return false;
    return pair_factors(m, s, want, have, 0, 0);
}

/* A factor that several nodes read is a factor of the pattern, or is expanded as a product. */
static bool solve_product(struct match *m, struct match_state s, const struct value *want, struct value *have)
{
    struct monomial p = monomial_of(m->find_uses, m->find->values.n, want->producer->out[want->index], false);
    struct monomial x = monomial_of(m->uses, m->nuses, have, false);
    require(p.n <= MOST_FACTORS);
    if (solve_factors(m, s, &p, &x))
        return true;
    if (!m->shared)
        return false;
    x = monomial_of(m->uses, m->nuses, have, true);
    return solve_factors(m, s, &p, &x);
}

/* ---- other nodes --------------------------------------------------------------------------------------------------------------- */

static bool solve_operands(struct match *m, struct match_state s, const struct node *want, const struct node *n, bool swapped)
{
    for (int i = (want->nin > n->nin ? want->nin : n->nin) - 1; i >= 0; i--) {
        struct value *have = node_operand(n, swapped && i < 2 ? 1 - i : i), *named = node_operand(want, i);
        if (have ? !named : named && strncmp(named->name, "maybe_", 6))
            return false;
        if (have)
            push_goal(&s, named, have);
    }
    return solve(m, s);
}

static bool solve_node(struct match *m, struct match_state s, const struct value *want, struct value *have)
{
    struct node *n = have->producer;
    if (!same_op(want->producer, n) || have->index != want->index || !push_node(&s, n))
        return false;
    return solve_operands(m, s, want->producer, n, false) ||
        (n->op->flags & OP_COMMUTES && n->nin == 2 && solve_operands(m, s, want->producer, n, true));
}

/* ---- all goals ----------------------------------------------------------------------------------------------------------------- */

static bool was_found(const struct match_state *s, const struct node *n)
{
    for (int i = 0; i < s->nnode; i++)
        if (s->node[i] == n)
            return true;
    return false;
}

static bool is_input(const struct match *m, const struct match_state *s, const struct value *v)
{
    for (int i = 0; i < m->find->inputs.n; i++)
        if (s->bound[m->find->inputs.at[i]->id] == v)
            return true;
    return false;
}

/* Nothing else reads the values that will be removed. */
static bool read_only_here(const struct match *m, const struct match_state *s)
{
    for (int i = 0; i < s->nnode; i++)
        for (int k = 0; k < s->node[i]->nout; k++) {
            const struct value *v = s->node[i]->out[k];
            if (!v || s->node[i] == m->root || is_input(m, s, v))
                continue;
            if (v->id >= m->nuses)
                return false;
            for (int u = 0; u < m->uses[v->id].n; u++)
                if (!m->uses[v->id].at[u].node || !was_found(s, m->uses[v->id].at[u].node))
                    return false;
        }
    return true;
}

static bool solve(struct match *m, struct match_state s)
{
    if (s.ngoal == 0) {
        if (!m->shared && !read_only_here(m, &s))
            return false;
        m->s = s;
        return true;
    }
    const struct value *want = s.goal[--s.ngoal].want;
    struct value *have = s.goal[s.ngoal].have;
    double x, y;
    if (op_constant_real(want, &x))
        return op_constant_real(have, &y) && monomial_near(y, x) && solve(m, s);
    if (s.bound[want->id])
        return s.bound[want->id] == have && solve(m, s);
    if (want->type.dtype != DT_NONE && want->type.dtype != have->type.dtype)
        return false;
    s.bound[want->id] = have;
    if (!want->producer)
        return solve(m, s);
    if (monomial_node(want->producer) && monomial_node(have->producer) && solve_product(m, s, want, have))
        return true;
    return solve_node(m, s, want, have);
}

bool match_node(struct match *m, struct node *root)
{
    struct match_state s = {0};
    require(m->find->values.n <= MATCH_VALUES && m->find->outputs.n == 1);
    m->root = root;
    push_goal(&s, m->find->outputs.at[0], root->out[0]);
    return solve(m, s);
}

/* ---- what was found -------------------------------------------------------------------------------------------------------------- */

struct graph *match_graph(struct match *m)
{
    return m->g;
}

const struct value *match_result(struct match *m)
{
    return m->root->out[0];
}

struct value *match_value(struct match *m, const char *name)
{
    for (int i = 0; i < m->nmore; i++)
        if (strcmp(m->more[i].name, name) == 0)
            return m->more[i].value;
    const struct value *v = graph_find(m->find, name);
    require(v);
    return m->s.bound[v->id];
}

const char *match_text(const struct match *m, const char *name)
{
    for (int i = 0; i < m->nmore; i++)
        if (strcmp(m->more[i].name, name) == 0)
            return m->more[i].text;
    bug("a pattern has no text '%s'", name);
}

double match_number(struct match *m, const char *name)
{
    double x = 0;
    for (int i = 0; i < m->nmore; i++)
        if (strcmp(m->more[i].name, name) == 0)
            return m->more[i].number;
    require(op_constant_real(match_value(m, name), &x));
    return x;
}

static void bind(struct match *m, struct match_more more)
{
    require(m->nmore < (int)(sizeof m->more / sizeof *m->more));
    m->more[m->nmore++] = more;
}

void match_bind(struct match *m, const char *name, struct value *v)
{
    bind(m, (struct match_more){.name = name, .value = v});
}

void match_bind_number(struct match *m, const char *name, double number)
{
    bind(m, (struct match_more){.name = name, .number = number});
}

void match_bind_text(struct match *m, const char *name, const char *text)
{
    bind(m, (struct match_more){.name = name, .text = text});
}
