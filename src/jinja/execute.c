/* Statements and scopes. Each iteration of a loop, each macro body and each captured block opens a scope; its variables end with it. An if
 * opens none. */
#include "jinja/jinja.h"

#include <string.h>

/* ---- variables --------------------------------------------------------------------------------------------------------- */

struct jinja_scope *jinja_scope(struct jinja_run *r, struct jinja_scope *parent)
{
    struct jinja_scope *s = jinja_take(r, 1, sizeof *s);
    s->parent = parent;
    return s;
}

void jinja_bind(struct jinja_run *r, struct jinja_scope *s, int symbol, struct jinja_value v)
{
    jinja_step(r, (size_t)s->bindings.n * 4);
    EACH (struct jinja_binding, b, s->bindings)
        if (b->symbol == symbol) {
            b->value = v;
            return;
        }
    if (s->bindings.n == s->bindings.cap)
        jinja_charge(r, ((size_t)s->bindings.cap + 8) * 2 * sizeof(struct jinja_binding));
    VEC_PUSH(r->arena, &s->bindings, ((struct jinja_binding){symbol, v}));
}

struct jinja_value jinja_look_up(struct jinja_run *r, const struct jinja_node *name)
{
    for (const struct jinja_scope *s = r->scope; s; s = s->parent) {
        jinja_step(r, (size_t)s->bindings.n * 4);
        EACH (const struct jinja_binding, b, s->bindings)
            if (b->symbol == name->symbol)
                return b->value;
    }
    if (r->variable[name->symbol].type != JINJA_ABSENT)
        return r->variable[name->symbol];
    return jinja_undefined(r, NULL, name->text);
}

static void assign_member(struct jinja_run *r, const struct jinja_node *target, struct jinja_value v)
{
    struct jinja_value space = jinja_look_up(r, target->left);
    r->at = target->at;
    if (space.type != JINJA_NAMESPACE)
        jinja_fail(r, "an attribute is set of a %s, expected a namespace", jinja_type_name(space));
    jinja_set(r, space.dict, jinja_string(r, target->text), v);
}

void jinja_assign(struct jinja_run *r, const struct jinja_node *target, struct jinja_value v)
{
    if (target->kind == JINJA_E_NAME) {
        jinja_bind(r, r->scope, target->symbol, v);
    } else if (target->kind == JINJA_E_MEMBER) {
        assign_member(r, target, v);
    } else {
        const struct jinja_list *all = jinja_items(r, v);
        if (all->items.n != target->list.n)
            jinja_fail(r, "expected %d values to unpack, found %d", target->list.n, all->items.n);
        for (int i = 0; i < target->list.n; i++)
            jinja_assign(r, target->list.at[i], all->items.at[i]);
    }
}

/* ---- statements -------------------------------------------------------------------------------------------------------- */

static enum jinja_flow within(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *body)
{
    struct jinja_scope *outside = r->scope;
    r->scope = scope;
    enum jinja_flow flow = jinja_execute(r, body);
    r->scope = outside;
    return flow;
}

struct jinja_value jinja_capture(struct jinja_run *r, struct jinja_scope *parent, const struct jinja_node *body, enum jinja_flow *flow)
{
    struct jinja_builder text = {.run = r}, *outside = r->out;
    r->out = &text;
    *flow = within(r, jinja_scope(r, parent), body);
    r->out = outside;
    return jinja_built(&text);
}

static enum jinja_flow execute_if(struct jinja_run *r, const struct jinja_node *s)
{
    for (; s && s->kind == JINJA_S_IF; s = s->otherwise)
        if (jinja_truth(jinja_evaluate(r, s->test)))
            return jinja_execute(r, s->body);
    return s ? jinja_execute(r, s) : JINJA_ON;
}

static void print(struct jinja_run *r, struct jinja_value v)
{
    jinja_write(r->out, v);
}

/* The text of a block after filters: with a target it is set, else printed. */
static enum jinja_flow execute_block(struct jinja_run *r, const struct jinja_node *s)
{
    enum jinja_flow flow;
    struct jinja_value text = jinja_capture(r, r->scope, s->body, &flow);
    if (flow != JINJA_ON)
        return flow;
    if (s->right) {
        r->filtered = &text;
        text = jinja_evaluate(r, s->right);
    }
    if (s->left)
        jinja_assign(r, s->left, text);
    else
        print(r, text);
    return JINJA_ON;
}

static enum jinja_flow execute_with(struct jinja_run *r, const struct jinja_node *s)
{
    struct jinja_scope *inner = jinja_scope(r, r->scope), *outside = r->scope;
    JINJA_NODES(pair, s->list)
    {
        struct jinja_value v = jinja_evaluate(r, (*pair)->right);
        r->scope = inner;
        jinja_assign(r, (*pair)->left, v);
        r->scope = outside;
    }
    return within(r, inner, s->body);
}

static struct jinja_value macro_of(struct jinja_run *r, const struct jinja_node *s)
{
    struct jinja_macro *m = jinja_take(r, 1, sizeof *m);
    *m = (struct jinja_macro){s, r->scope, s->kind == JINJA_S_MACRO ? s->text : jinja_literal("caller")};
    return (struct jinja_value){.type = JINJA_MACRO, .macro = m};
}

static void execute_call(struct jinja_run *r, const struct jinja_node *s)
{
    struct jinja_arguments arguments = {.named = NULL};
    struct jinja_value callee = jinja_evaluate(r, s->left->left), caller = jinja_string_of(r, "caller");
    jinja_evaluate_arguments(r, s->left, &arguments);
    if (!arguments.named)
        arguments.named = jinja_dict(r).dict;
    r->at = s->at;
    if (jinja_get(r, arguments.named, caller))
        jinja_fail(r, "a call block gives the argument 'caller' itself");
    jinja_set(r, arguments.named, caller, macro_of(r, s));
    struct jinja_value text = jinja_call(r, callee, &arguments);
    if (text.type != JINJA_STRING)
        jinja_fail(r, "what is called gives a %s, expected a str", jinja_type_name(text));
    print(r, text);
}

static enum jinja_flow execute(struct jinja_run *r, const struct jinja_node *s)
{
    switch (s->kind) {
    case JINJA_S_DATA: jinja_put(r->out, &s->text); return JINJA_ON;
    case JINJA_S_PRINT:
        JINJA_NODES(e, s->list)
        print(r, jinja_evaluate(r, *e));
        return JINJA_ON;
    case JINJA_S_IF: return execute_if(r, s);
    case JINJA_S_FOR: return jinja_for(r, s);
    case JINJA_S_SET: jinja_assign(r, s->left, jinja_evaluate(r, s->right)); return JINJA_ON;
    case JINJA_S_SET_BLOCK:
    case JINJA_S_FILTER: return execute_block(r, s);
    case JINJA_S_WITH: return execute_with(r, s);
    case JINJA_S_MACRO: jinja_bind(r, r->scope, s->symbol, macro_of(r, s)); return JINJA_ON;
    case JINJA_S_CALL: execute_call(r, s); return JINJA_ON;
    case JINJA_S_GENERATION: return within(r, jinja_scope(r, r->scope), s->body);
    case JINJA_S_BREAK: return JINJA_BREAK;
    case JINJA_S_CONTINUE: return JINJA_CONTINUE;
    default: bug("a node of kind %d is no statement", (int)s->kind);
    }
}

enum jinja_flow jinja_execute(struct jinja_run *r, const struct jinja_node *body)
{
    enum jinja_flow flow = JINJA_ON;
    jinja_deeper(r);
    for (int i = 0; i < body->list.n && flow == JINJA_ON; i++) {
        r->at = body->list.at[i]->at;
        jinja_step(r, 0);
        flow = execute(r, body->list.at[i]);
    }
    r->depth--;
    return flow;
}
