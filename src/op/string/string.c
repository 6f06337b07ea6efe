/* string: ops on strings. Every rank has all strings, so ops that read or make them have no rules (rule_of). */
#include "kern/string/string.h"

#include "op/infer/infer.h"
#include "op/rule/rule.h"
#include "op/table/table.h"

#include <string.h>

/* Texts for kernels must be strings. */
static void check_text(const struct graph *g, const struct node *node, const char *attr, const char *text)
{
    const char *fault = string_fault(text, strlen(text));
    if (fault)
        fail("%s: attribute '%s' %s", node_where(g, node), attr, fault);
}

void infer_stringsplit(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK + 1];
    if (attr_is_set(node, "delimiter"))
        check_text(g, node, "delimiter", attr_string(node, "delimiter"));
    if (x->rank == MAX_RANK)
        fail("%s: operand '%s' has %d dimensions, at most %d are handled", node_where(g, node), node->in[0]->name, x->rank, MAX_RANK - 1);
    memcpy(dim, x->dim, sizeof x->dim);
    dim[x->rank] = op_counted_dim(g, node, x->rank, 1, string_most_parts);
    op_result(g, node, 0, DT_STRING, x->rank + 1, dim);
    op_result(g, node, 1, DT_I64, x->rank, dim);
}

/* A row, or one row of a table. */
void infer_stringnormalizer(struct graph *g, struct node *node)
{
    op_need_rank(g, node, 0, 1, 2);
    const struct type *x = op_operand(g, node, 0);
    const struct dim *one = dim_int(g->alg, 1), *dim[2] = {one, one};
    if (x->rank == 2)
        op_same_dim(g, node, x->dim[0], one, "the number of rows and 1");
    dim[x->rank - 1] = attr_is_set(node, "stopwords") ? op_counted_dim(g, node, x->rank - 1, 1, string_kept)
                                                      : dim_max(g->alg, x->dim[x->rank - 1], one);
    op_result(g, node, 0, DT_STRING, x->rank, dim);
}

void infer_regexfullmatch(struct graph *g, struct node *node)
{
    if (!attr_is_set(node, "pattern"))
        fail("%s: has no attribute 'pattern'", node_where(g, node));
    check_text(g, node, "pattern", attr_string(node, "pattern"));
    infer_test(g, node);
}

/* ---- LabelEncoder ----------------------------------------------------------------------------------------------------------------- */

struct list {
    const char *attr; /* NULL: absent */
    enum dtype dtype;
    int64_t n;
};

/* The only list of keys or of values. */
static struct list list_of(const struct graph *g, const struct node *node, const char *kind)
{
    static const struct {
        const char *end;
        enum dtype dtype;
    } ends[] = {{"floats", DT_F32}, {"int64s", DT_I64}, {"strings", DT_STRING}, {"tensor", DT_NONE}};
    struct list found = {NULL, DT_NONE, 0};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *name = arena_printf(g->arena, "%s_%s", kind, ends[i].end);
        const struct attr *a = node_attr(node, name);
        const struct constant *c = a->tensor;
        if (!a->set)
            continue;
        if (found.attr)
            fail("%s: has the attributes '%s' and '%s', expected one of them", node_where(g, node), found.attr, name);
        found = (struct list){name, c ? c->dtype : ends[i].dtype, c ? constant_elements(c) : a->n};
    }
    if (!found.attr)
        fail("%s: has no attribute that gives its %s", node_where(g, node), kind);
    if (dtype_is_small(found.dtype))
        fail("%s: its %s are %s, expected numbers of whole bytes or strings", node_where(g, node), kind, dtype_name(found.dtype));
    return found;
}

static enum dtype type_of_classes(struct graph *g, struct node *node, enum dtype from)
{
    if (from != DT_STRING && from != DT_I64)
        fail("%s: operand '%s' is %s, expected string or i64", node_where(g, node), node->in[0]->name, dtype_name(from));
    return from == DT_STRING ? DT_I64 : DT_STRING;
}

static enum dtype type_of_values(struct graph *g, struct node *node, enum dtype from)
{
    const struct list keys = list_of(g, node, "keys"), values = list_of(g, node, "values");
    const struct constant *c = node_attr(node, "default_tensor")->tensor;
    if (keys.dtype != from)
        fail("%s: operand '%s' is %s, its keys are %s", node_where(g, node), node->in[0]->name, dtype_name(from), dtype_name(keys.dtype));
    if (keys.n != values.n)
        fail("%s: has %lld keys and %lld values", node_where(g, node), (long long)keys.n, (long long)values.n);
    if (c && (c->dtype != values.dtype || constant_elements(c) != 1))
        fail("%s: 'default_tensor' is %lld elements of %s, expected one of %s", node_where(g, node), (long long)constant_elements(c),
             dtype_name(c->dtype), dtype_name(values.dtype));
    return values.dtype;
}

void infer_labelencoder(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    check_text(g, node, "default_string", attr_string(node, "default_string"));
    enum dtype to = (attr_is_set(node, "classes_strings") ? type_of_classes : type_of_values)(g, node, x->dtype);
    op_result(g, node, 0, to, x->rank, x->dim);
}

/* ---- CategoryMapper, OneHotEncoder ------------------------------------------------------------------------------------------- */

static int entries(const struct node *node, const char *attr)
{
    const struct attr *a = node_attr(node, attr);
    return a->set ? a->n : 0;
}

void infer_categorymapper(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    check_text(g, node, "default_string", attr_string(node, "default_string"));
    if (entries(node, "cats_strings") != entries(node, "cats_int64s"))
        fail("%s: has %d strings and %d integers", node_where(g, node), entries(node, "cats_strings"), entries(node, "cats_int64s"));
    op_result(g, node, 0, x->dtype == DT_STRING ? DT_I64 : DT_STRING, x->rank, x->dim);
}

void infer_onehotencoder(struct graph *g, struct node *node)
{
    const struct type *x = op_operand(g, node, 0);
    const struct dim *dim[MAX_RANK + 1];
    int strings = entries(node, "cats_strings"), ints = entries(node, "cats_int64s"), n = x->dtype == DT_STRING ? strings : ints;
    if (n == 0 || (strings && ints))
        fail("%s: operand '%s' is %s, and its categories are %d strings and %d integers", node_where(g, node), node->in[0]->name,
             dtype_name(x->dtype), strings, ints);
    memcpy(dim, x->dim, sizeof x->dim);
    dim[x->rank] = dim_int(g->alg, n);
    op_result(g, node, 0, DT_F32, x->rank + 1, dim);
}
