/* Expressions: the value of a node. */
#include "jinja/jinja.h"

#include <string.h>

static struct jinja_value evaluate_list(struct jinja_run *r, const struct jinja_node *node, enum jinja_type type)
{
    struct jinja_value out = jinja_list(r, type);
    JINJA_NODES(item, node->list)
    jinja_append(r, out, jinja_evaluate(r, *item));
    return out;
}

static struct jinja_value evaluate_dict(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value out = jinja_dict(r);
    for (int i = 0; i + 1 < node->list.n; i += 2) {
        struct jinja_value key = jinja_evaluate(r, node->list.at[i]);
        jinja_set(r, out.dict, key, jinja_evaluate(r, node->list.at[i + 1]));
    }
    return out;
}

static struct jinja_value evaluate_item(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value v = jinja_evaluate(r, node->left);
    const struct jinja_node *key = node->right;
    if (key->kind != JINJA_E_SLICE)
        return jinja_item(r, v, jinja_evaluate(r, key));
    const struct jinja_node *at[3] = {key->left, key->right, key->otherwise};
    struct jinja_value bound[3] = {{.type = JINJA_ABSENT}, {.type = JINJA_ABSENT}, {.type = JINJA_ABSENT}};
    for (int i = 0; i < 3; i++)
        if (at[i])
            bound[i] = jinja_evaluate(r, at[i]);
    return jinja_slice(r, v, bound);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

static void add_named(struct jinja_run *r, struct jinja_arguments *to, struct jinja_value key, struct jinja_value value)
{
    if (!to->named)
        to->named = jinja_dict(r).dict;
    if (key.type != JINJA_STRING)
        jinja_fail(r, "the name of an argument is a %s, expected a str", jinja_type_name(key));
    if (jinja_get(r, to->named, key))
        jinja_fail(r, "the argument '%.*s' is given twice", (int)(key.string->n < 100 ? key.string->n : 100), key.string->at);
    jinja_set(r, to->named, key, value);
}

static void add_list(struct jinja_run *r, struct jinja_arguments *to, struct jinja_value v)
{
    const struct jinja_list *all = jinja_items(r, v);
    jinja_charge(r, (size_t)all->items.n * 2 * sizeof v);
    EACH (const struct jinja_value, item, all->items)
        VEC_PUSH(r->arena, &to->list, *item);
}

void jinja_evaluate_arguments(struct jinja_run *r, const struct jinja_node *call, struct jinja_arguments *to)
{
    JINJA_NODES(a, call->list)
    {
        const struct jinja_node *argument = *a;
        bool has_name = argument->kind == JINJA_E_KEYWORD;
        bool spreads = argument->kind == JINJA_E_SPREAD || argument->kind == JINJA_E_SPREAD2;
        struct jinja_value v = jinja_evaluate(r, has_name || spreads ? argument->left : argument);
        if (has_name) {
            add_named(r, to, jinja_string(r, argument->text), v);
        } else if (argument->kind == JINJA_E_SPREAD) {
            add_list(r, to, v);
        } else if (argument->kind == JINJA_E_SPREAD2) {
            if (v.type != JINJA_DICT)
                jinja_fail(r, "'**' stands before a %s, expected a dict", jinja_type_name(v));
            EACH (const struct jinja_pair, p, v.dict->pairs)
                add_named(r, to, p->key, p->value);
        } else {
            jinja_charge(r, 2 * sizeof v);
            VEC_PUSH(r->arena, &to->list, v);
        }
    }
}

static struct jinja_value evaluate_call(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_arguments arguments = {.named = NULL};
    struct jinja_value callee = jinja_evaluate(r, node->left);
    jinja_evaluate_arguments(r, node, &arguments);
    r->at = node->at;
    return jinja_call(r, callee, &arguments);
}

static struct jinja_value evaluate_applied(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_arguments arguments = {.named = NULL};
    struct jinja_value v = node->left ? jinja_evaluate(r, node->left) : *r->filtered;
    jinja_evaluate_arguments(r, node, &arguments);
    r->at = node->at;
    return jinja_apply(r, node->kind == JINJA_E_FILTER ? "filter" : "test", node->row, v, &arguments);
}

/* ---- operators --------------------------------------------------------------------------------------------------------- */

static bool holds(struct jinja_run *r, const char *sign, struct jinja_value a, struct jinja_value b)
{
    if (strcmp(sign, "==") == 0)
        return jinja_equal(r, a, b);
    if (strcmp(sign, "!=") == 0)
        return !jinja_equal(r, a, b);
    if (strcmp(sign, "in") == 0)
        return jinja_contains(r, b, a);
    if (strcmp(sign, "not in") == 0)
        return !jinja_contains(r, b, a);
    int order = jinja_compare(r, a, b, sign);
    bool orderly = order <= 1; /* 2: a NaN */
    return (*sign == '<' && order < 0) || (*sign == '>' && order > 0 && orderly) || (sign[1] == '=' && order == 0);
}

static struct jinja_value evaluate_compare(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value a = jinja_evaluate(r, node->left);
    JINJA_NODES(right, node->list)
    {
        struct jinja_value b = jinja_evaluate(r, (*right)->left);
        r->at = (*right)->at;
        if (!holds(r, (*right)->sign, a, b))
            return jinja_bool(false);
        a = b;
    }
    return jinja_bool(true);
}

static struct jinja_value evaluate_operation(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value a = jinja_evaluate(r, node->left), b = jinja_evaluate(r, node->right);
    r->at = node->at;
    return jinja_operate(r, node->sign, a, b);
}

static struct jinja_value evaluate_either(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value a = jinja_evaluate(r, node->left);
    return jinja_truth(a) == (node->kind == JINJA_E_OR) ? a : jinja_evaluate(r, node->right);
}

static struct jinja_value evaluate_if(struct jinja_run *r, const struct jinja_node *node)
{
    if (jinja_truth(jinja_evaluate(r, node->test)))
        return jinja_evaluate(r, node->left);
    if (node->right)
        return jinja_evaluate(r, node->right);
    return jinja_undefined(r, "", jinja_literal("the condition of an 'if' without 'else' does not hold"));
}

static struct jinja_value evaluate(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value v;
    switch (node->kind) {
    case JINJA_E_CONSTANT: return node->value;
    case JINJA_E_NAME: return jinja_look_up(r, node);
    case JINJA_E_TUPLE: return evaluate_list(r, node, JINJA_TUPLE);
    case JINJA_E_LIST: return evaluate_list(r, node, JINJA_LIST);
    case JINJA_E_DICT: return evaluate_dict(r, node);
    case JINJA_E_ATTRIBUTE:
        v = jinja_evaluate(r, node->left);
        r->at = node->at;
        return jinja_attribute(r, v, &node->text);
    case JINJA_E_ITEM: return evaluate_item(r, node);
    case JINJA_E_CALL: return evaluate_call(r, node);
    case JINJA_E_FILTER:
    case JINJA_E_TEST: return evaluate_applied(r, node);
    case JINJA_E_NOT: return jinja_bool(!jinja_truth(jinja_evaluate(r, node->left)));
    case JINJA_E_MINUS:
    case JINJA_E_PLUS: return jinja_negative(r, jinja_evaluate(r, node->left), node->kind == JINJA_E_MINUS);
    case JINJA_E_OPERATE: return evaluate_operation(r, node);
    case JINJA_E_CONCATENATE: v = evaluate_list(r, node, JINJA_LIST); return jinja_concatenate(r, v.list->items.at, v.list->items.n);
    case JINJA_E_COMPARE: return evaluate_compare(r, node);
    case JINJA_E_AND:
    case JINJA_E_OR: return evaluate_either(r, node);
    case JINJA_E_IF: return evaluate_if(r, node);
    default: bug("a node of kind %d has no value", (int)node->kind);
    }
}

struct jinja_value jinja_evaluate(struct jinja_run *r, const struct jinja_node *node)
{
    r->at = node->at;
    jinja_step(r, 0);
    jinja_deeper(r);
    struct jinja_value v = evaluate(r, node);
    r->depth--;
    return v;
}
