/* rule_condition: conditions in the texts of rules: of cases, and of notes. */
#include "op/rule/rule_condition.h"

#include "op/infer/infer.h"
#include "op/op.h"
#include "op/table/table.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_WORDS = 4, WORD_SIZE = 32 };

struct words {
    int n;
    char at[MOST_WORDS][WORD_SIZE];
};

static struct words words_of(const char *text, size_t n)
{
    struct words w = {0};
    for (const char *end = text + n; text < end;) {
        size_t length = strcspn(text, " ");
        length = length < (size_t)(end - text) ? length : (size_t)(end - text);
        require(w.n < MOST_WORDS && length && length < WORD_SIZE);
        memcpy(w.at[w.n++], text, length);
        text += length + strspn(text + length, " ");
    }
    return w;
}

static bool is(const char *word, const char *expected)
{
    return strcmp(word, expected) == 0;
}

/* The operand with the number in a word. */
static struct value *counted(const struct node *node, const char *word)
{
    if (!isdigit((unsigned char)*word))
        bug("%s: the rule's text has '%s', expected the number of an operand", node->op->name, word);
    return node_operand(node, atoi(word));
}

/* The sign of a constant number: 1, -1, or 0 if unknown. */
static int sign_of(struct value *v)
{
    double k;
    return !v || !op_constant_real(v, &k) ? 0 : k > 0 ? 1 : k < 0 ? -1 : 0;
}

/* Whether it is constant and no element is 0. */
static bool divides(const struct value *v)
{
    struct constant *by = v ? v->constant : NULL;
    return by && dtype_is_float(by->dtype) && op_constant_within(by, v->name, 1e-30, INFINITY, false);
}

/* A number, or the value of an attribute; false: the node lacks the attribute. */
static bool number_of(const struct node *node, const char *word, double *out)
{
    char *end;
    *out = strtod(word, &end);
    if (!*end)
        return true;
    const struct attr *a = attr_find(node, word);
    if (a)
        *out = a->kind == ATTR_FLOAT ? (double)a->f : (double)a->i;
    return a != NULL;
}

static bool compares(const struct node *node, const char *left, const char *how, const char *right)
{
    double a, b;
    if (is(how, "="))
        return is(attr_string(node, left), right);
    if (!number_of(node, left, &a) || !number_of(node, right, &b))
        return false;
    return is(how, "<=") ? a <= b : a >= b;
}

/* Attribute `name` is a number above 0 that divides dimension d of operand 0. */
static bool groups_divide(struct graph *g, const struct node *node, const char *name, const char *d)
{
    const struct dim *groups = dim_int(g->alg, attr_int(node, name));
    return !dim_equals(groups, 0) && dim_quotient(g->alg, node->in[0]->type.dim[atoi(d)], groups);
}

static bool one_result(const struct node *node)
{
    int n = 0;
    for (int i = 0; i < node->nout; i++)
        n += node->out[i] != NULL;
    return n == 1;
}

/* "float", "2", "over", or an attribute that is not 0. */
static bool word_holds(const struct node *node, uint32_t set, const char *word)
{
    if (is(word, "float"))
        return dtype_is_float(node->in[0]->type.dtype);
    if (is(word, "over"))
        return set != 0;
    if (isdigit((unsigned char)*word))
        return counted(node, word) != NULL;
    return attr_int(node, word) != 0;
}

static bool pair_holds(const struct node *node, const char *what, const char *which)
{
    enum dtype result = node->out[0] ? node->out[0]->type.dtype : DT_NONE;
    if (is(what, "float"))
        return dtype_is_float(result);
    if (is(what, "reducible"))
        return result != DT_BOOL && !dtype_is_small(result);
    if (is(what, "one"))
        return one_result(node);
    if (is(what, "result"))
        return node_result(node, atoi(which));
    if (is(what, "vector"))
        return counted(node, which)->type.rank == 1;
    if (is(what, "divides"))
        return divides(counted(node, which));
    if (is(what, "positive") || is(what, "negative"))
        return sign_of(counted(node, which)) == (is(what, "positive") ? 1 : -1);
    bug("%s: the rule's text has the condition '%s %s'", node->op->name, what, which);
}

static bool condition_holds(struct graph *g, const struct node *node, uint32_t set, const char *text, size_t n)
{
    struct words w = words_of(text, n);
    if (w.n == 4 && is(w.at[0], "not"))
        return !compares(node, w.at[1], w.at[2], w.at[3]);
    if (w.n > 1 && is(w.at[0], "not"))
        return !condition_holds(g, node, set, text + 4, n - 4);
    if (w.n == 3 && is(w.at[1], "is"))
        return attr_is_set(node, w.at[0]);
    if (w.n == 3 && is(w.at[1], "divides"))
        return groups_divide(g, node, w.at[0], w.at[2]);
    return w.n == 3 ? compares(node, w.at[0], w.at[1], w.at[2])
        : w.n == 2  ? pair_holds(node, w.at[0], w.at[1])
                    : word_holds(node, set, w.at[0]);
}

bool rule_conditions_hold(struct graph *g, const struct node *node, uint32_t set, const char *text, size_t n)
{
    for (const char *end = text + n; text < end;) {
        const char *next = strstr(text, " and ");
        size_t length = (size_t)((next && next < end ? next : end) - text);
        if (!condition_holds(g, node, set, text, length))
            return false;
        text += length + (length < (size_t)(end - text) ? strlen(" and ") : 0);
    }
    return true;
}
