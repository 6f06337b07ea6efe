/* pattern: the driver of patterns.def. */
#include "lower/pattern.h"

#include "ir/text/text.h"
#include "lower/matcher.h"
#include "lower/predicates.h"
#include "op/op.h"

#include <string.h>

static const struct pattern {
    const char *name;
    enum pattern_group group;
    bool (*holds)(struct match *); /* of predicates.c */
    const char *find, *become;
} rows[] = {
#define TEXT(...) #__VA_ARGS__
#define PATTERN(name, group, holds, find, become) {#name, PATTERN_##group, lower_##holds, find, become},
#include "lower/patterns.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- what takes its place ---------------------------------------------------------------------------------------------------------- */

/* The found node for the pattern's node of that name; NULL: the pattern has none. */
static const struct node *found_node(const struct match *m, const char *name)
{
    for (int i = 0; i < m->find->nodes.n; i++)
        if (strcmp(m->find->nodes.at[i]->name, name) == 0)
            return m->s.bound[m->find->nodes.at[i]->out[0]->id]->producer;
    return NULL;
}

/* "$x": the number or text that the pattern names x, or the integer x = node.attribute. */
static void set_bound(struct match *m, struct node *n, const char *attr, const char *x)
{
    const char *dot = strchr(x, '.');
    enum attr_kind kind = node_attr(n, attr)->kind;
    if (dot)
        attr_set_int(n, attr, attr_int(found_node(m, arena_strndup(m->g->arena, x, (size_t)(dot - x))), dot + 1));
    else if (kind == ATTR_STRING)
        attr_set_string(n, attr, match_text(m, x));
    else if (kind == ATTR_INT)
        attr_set_int(n, attr, (int64_t)match_number(m, x));
    else
        attr_set_float(n, attr, match_number(m, x));
}

static void set_list(struct match *m, struct node *n, const struct attr *a)
{
    int64_t *at = NEWN(m->g->arena, int64_t, a->n + 1);
    for (int i = 0; i < a->n; i++)
        at[i] = a->ints[i];
    attr_set_ints(m->g, n, a->name, a->n, at);
}

static void set_attr(struct match *m, struct node *n, const struct attr *a)
{
    if (a->kind == ATTR_STRING && *a->s == '$')
        set_bound(m, n, a->name, a->s + 1);
    else if (a->kind == ATTR_INT)
        attr_set_int(n, a->name, match_axis(n, a->name, a->i));
    else if (a->kind == ATTR_STRING)
        attr_set_string(n, a->name, arena_strdup(m->g->arena, a->s)); /* the pattern is freed */
    else if (a->kind == ATTR_FLOAT)
        attr_set_float(n, a->name, a->f);
    else if (a->kind == ATTR_INTS)
        set_list(m, n, a);
    else
        bug("attribute '%s' of kind %s is made by no pattern", a->name, attr_kind_name(a->kind));
}

static struct node *make_node(struct match *m, const struct node *like, struct value *const *in)
{
    const struct op *op = op_find(like->domain, like->optype);
    const struct node *from = found_node(m, like->name);
    require(op && like->nout == 1);
    const char *name = from ? from->name : arena_printf(m->g->arena, "%s/%s", m->root->name, like->name);
    int nin = like->nin;
    while (nin > 0 && !in[nin - 1])
        nin--;
    struct node *n = graph_node(m->g, op, name, nin, in, 1);
    if (from)
        attr_copy(n, from);
    for (int i = 0; i < like->nattr; i++)
        set_attr(m, n, &like->attr[i]);
    return n;
}

/* Inserts the nodes of `become` before position at; the last one replaces the node there. */
static void replace(struct match *m, int at)
{
    struct value *made[MATCH_VALUES] = {NULL};
    const struct graph *to = m->become;
    require(to->values.n <= MATCH_VALUES && to->outputs.n == 1 && to->nodes.n > 0);
    for (int i = 0; i < to->inputs.n; i++)
        made[to->inputs.at[i]->id] = match_value(m, to->inputs.at[i]->name);
    for (int i = 0; i < to->nodes.n; i++) {
        const struct node *like = to->nodes.at[i];
        struct value *in[MATCH_VALUES];
        for (int k = 0; k < like->nin; k++)
            in[k] = like->in[k] ? made[like->in[k]->id] : NULL;
        struct node *n = make_node(m, like, in);
        if (like->out[0] == to->outputs.at[0]) {
            node_output(m->g, n, 0, m->root->out[0]);
            m->g->nodes.at[at] = n;
            return;
        }
        const char *name = found_node(m, like->name) ? arena_printf(m->g->arena, "%s/%s", m->root->out[0]->name, like->out[0]->name)
                                                     : n->name;
        node_output(m->g, n, 0, graph_value(m->g, name, NULL));
        op_infer(m->g, n);
        made[like->out[0]->id] = n->out[0];
        graph_insert(m->g, at++, n);
    }
    bug("a pattern makes no result");
}

/* ---- all rows of a group ------------------------------------------------------------------------------------------------------------ */

static const struct op *no_rows(const char *domain, const char *name)
{
    (void)domain;
    (void)name;
    return NULL;
}

/* A pattern's nodes have no rows of ops.def, and its values no types. */
static struct graph *parse(struct arena *a, const struct pattern *row, const char *text)
{
    return graph_parse(a, alg_new(a), arena_printf(a, "graph %s { %s }", row->name, text), row->name, no_rows);
}

/* The replacement has the inputs and the output of the pattern. */
static struct graph *parse_become(struct arena *a, const struct pattern *row, const struct graph *find)
{
    const char *text = row->become;
    for (int i = 0; i < find->inputs.n; i++)
        text = arena_printf(a, "input %s: ? %s", find->inputs.at[i]->name, text);
    return parse(a, row, arena_printf(a, "%s output %s", text, find->outputs.at[0]->name));
}

static int apply_row(struct graph *g, const struct pattern *row)
{
    struct arena *tmp = arena_new();
    struct match m = {.g = g, .find = parse(tmp, row, row->find), .nuses = g->values.n, .shared = row->group <= PATTERN_DECODED};
    m.become = parse_become(tmp, row, m.find);
    const char *last = m.find->outputs.at[0]->producer->optype;
    int found = 0;
    for (int i = 0; i < g->nodes.n; i++) {
        struct node *n = g->nodes.at[i];
        m.nmore = 0;
        if (!n->op || n->nout != 1 || !n->out[0] || strcmp(n->optype, last))
            continue;
        if (!m.uses) {
            m.uses = graph_uses(g, tmp);
            m.find_uses = graph_uses(m.find, tmp);
        }
        if (!match_node(&m, n) || !row->holds(&m))
            continue;
        int before = g->nodes.n;
        replace(&m, i);
        i += g->nodes.n - before;
        found++;
    }
    arena_free(tmp);
    return found;
}

int pattern_apply(struct graph *g, enum pattern_group group)
{
    int found = 0;
    for (int i = 0; i < ROWS; i++)
        if (rows[i].group == group)
            found += apply_row(g, &rows[i]);
    if (found > 0)
        graph_prune(g);
    return found;
}
