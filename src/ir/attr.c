/* attr: attributes by their names in the op's row. A name or kind that the row lacks is a bug(); a missing required attribute is a
 * failure. */
#include "ir/ir.h"

#include <string.h>

static const char *const kinds[] = {
    [ATTR_INT] = "i",      [ATTR_FLOAT] = "f", [ATTR_STRING] = "s", [ATTR_INTS] = "is",     [ATTR_FLOATS] = "fs",
    [ATTR_STRINGS] = "ss", [ATTR_DIMS] = "ds", [ATTR_TENSOR] = "t", [ATTR_GRAPH] = "graph", [ATTR_RAW] = "raw"};

const char *attr_kind_name(enum attr_kind kind)
{
    return kinds[kind];
}

bool attr_kind_parse(const char *name, enum attr_kind *out)
{
    int at = NAMED_ROW(kinds, name);
    if (at >= 0)
        *out = (enum attr_kind)at;
    return at >= 0;
}

struct attr *attr_find(const struct node *n, const char *name)
{
    int at = NAMED_AT(n->attr, n->nattr, name);
    return at < 0 ? NULL : &n->attr[at];
}

struct attr *node_attr(const struct node *n, const char *name)
{
    struct attr *a = attr_find(n, name);
    if (a)
        return a;
    bug("node '%s' (%s): the op has no attribute '%s'", n->name, n->optype, name);
}

static struct attr *attr_of_kind(const struct node *n, const char *name, enum attr_kind kind)
{
    struct attr *a = node_attr(n, name);
    if (a->kind != kind)
        bug("node '%s' (%s): attribute '%s' is of kind %d, read as %d", n->name, n->optype, name, (int)a->kind, (int)kind);
    return a;
}

static const struct attr *attr_present(const struct node *n, const char *name, enum attr_kind kind)
{
    const struct attr *a = attr_of_kind(n, name, kind);
    if (!a->set)
        fail("node '%s' (%s): attribute '%s' is missing", n->name, n->optype, name);
    return a;
}

bool attr_is_set(const struct node *n, const char *name)
{
    return node_attr(n, name)->set;
}

int64_t attr_int(const struct node *n, const char *name)
{
    return attr_present(n, name, ATTR_INT)->i;
}

double attr_float(const struct node *n, const char *name)
{
    return attr_present(n, name, ATTR_FLOAT)->f;
}

const char *attr_string(const struct node *n, const char *name)
{
    return attr_present(n, name, ATTR_STRING)->s;
}

/* The integers of a DIMS attribute, made at first use and kept in addition to the expressions. */
static void fill_ints(struct arena *arena, const struct node *n, struct attr *a)
{
    int64_t *ints = NEWN(arena, int64_t, a->n + 1);
    for (int i = 0; i < a->n; i++)
        if (!dim_is_int(a->dims[i], &ints[i]))
            bug("node '%s' (%s): attribute '%s' is not all integers", n->name, n->optype, a->name);
    a->ints = ints;
}

int attr_ints(const struct graph *g, const struct node *n, const char *name, const int64_t **out)
{
    struct attr *a = node_attr(n, name);
    if (a->kind != ATTR_INTS && a->kind != ATTR_DIMS)
        bug("node '%s' (%s): attribute '%s' is not a list of integers", n->name, n->optype, name);
    if (a->kind == ATTR_DIMS && !a->ints)
        fill_ints(g->arena, n, a);
    *out = a->ints;
    return a->set ? a->n : 0;
}

int attr_floats(const struct node *n, const char *name, const double **out)
{
    const struct attr *a = attr_of_kind(n, name, ATTR_FLOATS);
    *out = a->floats;
    return a->set ? a->n : 0;
}

int attr_strings(const struct node *n, const char *name, const char *const **out)
{
    const struct attr *a = attr_of_kind(n, name, ATTR_STRINGS);
    *out = a->strings;
    return a->set ? a->n : 0;
}

int attr_dims(const struct node *n, const char *name, const struct dim ***out)
{
    const struct attr *a = attr_of_kind(n, name, ATTR_DIMS);
    *out = a->dims;
    return a->set ? a->n : 0;
}

void attr_set_int(struct node *n, const char *name, int64_t i)
{
    struct attr *a = attr_of_kind(n, name, ATTR_INT);
    a->i = i;
    a->set = true;
}

void attr_set_float(struct node *n, const char *name, double f)
{
    struct attr *a = attr_of_kind(n, name, ATTR_FLOAT);
    a->f = f;
    a->set = true;
}

void attr_set_string(struct node *n, const char *name, const char *s)
{
    struct attr *a = attr_of_kind(n, name, ATTR_STRING);
    a->s = s;
    a->set = true;
}

void attr_set_dims(struct graph *g, struct node *n, const char *name, int count, const struct dim *const *dims)
{
    struct attr *a = attr_of_kind(n, name, ATTR_DIMS);
    a->dims = NEWN(g->arena, const struct dim *, count + 1);
    for (int i = 0; i < count; i++)
        a->dims[i] = dims[i];
    a->n = count;
    a->ints = NULL;
    a->set = true;
}

static void set_plain_ints(struct graph *g, struct attr *a, int count, const int64_t *at)
{
    int64_t *ints = NEWN(g->arena, int64_t, count + 1);
    if (count)
        memcpy(ints, at, (size_t)count * sizeof *at);
    a->ints = ints;
    a->n = count;
    a->set = true;
}

void attr_set_ints(struct graph *g, struct node *n, const char *name, int count, const int64_t *at)
{
    struct attr *a = node_attr(n, name);
    if (a->kind == ATTR_INTS) {
        set_plain_ints(g, a, count, at);
        return;
    }
    const struct dim **dims = NEWN(g->arena, const struct dim *, count + 1);
    for (int i = 0; i < count; i++)
        dims[i] = dim_int(g->alg, at[i]);
    attr_set_dims(g, n, name, count, dims);
}

void attr_copy(struct node *to, const struct node *from)
{
    for (int i = 0; i < to->nattr; i++) {
        const struct attr *a = attr_find(from, to->attr[i].name);
        if (a && a->kind == to->attr[i].kind)
            to->attr[i] = *a;
    }
}

void attr_rewrite_dims(struct graph *g, struct node *n)
{
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].dims && k < n->attr[i].n; k++)
            n->attr[i].dims[k] = dim_rewrite(g->alg, n->attr[i].dims[k]);
}
