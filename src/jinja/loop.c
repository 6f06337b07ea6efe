/* Loops. A loop's condition tests an item at its iteration, or when `loop` looks ahead. */
#include "jinja/jinja.h"

/* Advances to the item of an iteration, counted from 0; false: none. */
static bool reach(struct jinja_run *r, struct jinja_loop *l, int turn)
{
    while (l->items.n <= turn && l->at < l->source->items.n) {
        struct jinja_value item = l->source->items.at[l->at++];
        jinja_step(r, 0);
        if (l->node->test) {
            struct jinja_scope *outside = r->scope;
            size_t at = r->at;
            r->scope = jinja_scope(r, l->scope);
            jinja_assign(r, l->node->left, item);
            bool passes = jinja_truth(jinja_evaluate(r, l->node->test));
            r->scope = outside;
            r->at = at;
            if (!passes)
                continue;
        }
        if (l->items.n == l->items.cap)
            jinja_charge(r, ((size_t)l->items.cap + 8) * 2 * sizeof item);
        VEC_PUSH(r->arena, &l->items, item);
    }
    return turn < l->items.n;
}

static enum jinja_flow take_turns(struct jinja_run *r, const struct jinja_node *node, struct jinja_loop *l, int loop_symbol)
{
    enum jinja_flow flow = JINJA_ON;
    struct jinja_scope *outside = r->scope;
    bool ended = false; /* the iteration came to its end */
    for (; flow != JINJA_BREAK && reach(r, l, l->index); l->index++) {
        r->scope = jinja_scope(r, l->scope);
        if (loop_symbol >= 0)
            jinja_bind(r, r->scope, loop_symbol, (struct jinja_value){.type = JINJA_LOOP, .loop = l});
        jinja_assign(r, node->left, l->items.at[l->index]);
        flow = jinja_execute(r, node->body);
        ended = ended || flow == JINJA_ON;
    }
    if (!ended && node->otherwise) {
        r->scope = jinja_scope(r, l->scope);
        flow = jinja_execute(r, node->otherwise);
        r->scope = outside;
        return flow;
    }
    r->scope = outside;
    return JINJA_ON;
}

static enum jinja_flow run_loop(struct jinja_run *r, const struct jinja_node *node, struct jinja_scope *scope, struct jinja_value source,
                                int depth)
{
    struct jinja_loop *l = jinja_take(r, 1, sizeof *l);
    *l = (struct jinja_loop){.node = node, .scope = scope, .source = jinja_items(r, source), .depth = depth};
    return take_turns(r, node, l, node->symbol);
}

enum jinja_flow jinja_for(struct jinja_run *r, const struct jinja_node *node)
{
    struct jinja_value source = jinja_evaluate(r, node->right);
    r->at = node->at;
    return run_loop(r, node, r->scope, source, 1);
}

struct jinja_value jinja_loop_again(struct jinja_run *r, const struct jinja_loop *l, const struct jinja_arguments *arguments)
{
    if (!l->node->recursive)
        jinja_fail(r, "a loop is called that is not marked as 'recursive'");
    if (arguments->list.n != 1 || (arguments->named && arguments->named->pairs.n))
        jinja_fail(r, "a loop is called with %d arguments, expected one", arguments->list.n);
    struct jinja_builder text = {.run = r}, *outside = r->out;
    r->out = &text;
    jinja_deeper(r);
    run_loop(r, l->node, l->scope, arguments->list.at[0], l->depth + 1);
    r->depth--;
    r->out = outside;
    return jinja_built(&text);
}

static int64_t length(struct jinja_run *r, struct jinja_loop *l)
{
    reach(r, l, l->source->items.n);
    return l->items.n;
}

static struct jinja_value neighbour(struct jinja_run *r, struct jinja_loop *l, int turn, const char *otherwise)
{
    return turn >= 0 && reach(r, l, turn) ? l->items.at[turn] : jinja_undefined(r, "", jinja_literal(otherwise));
}

bool jinja_loop_attribute(struct jinja_run *r, struct jinja_loop *l, const struct jinja_string *name, struct jinja_value *out)
{
    if (jinja_is(name, "index"))
        *out = jinja_int(l->index + 1);
    else if (jinja_is(name, "index0"))
        *out = jinja_int(l->index);
    else if (jinja_is(name, "first"))
        *out = jinja_bool(l->index == 0);
    else if (jinja_is(name, "last"))
        *out = jinja_bool(!reach(r, l, l->index + 1));
    else if (jinja_is(name, "length"))
        *out = jinja_int(length(r, l));
    else if (jinja_is(name, "revindex"))
        *out = jinja_int(length(r, l) - l->index);
    else if (jinja_is(name, "revindex0"))
        *out = jinja_int(length(r, l) - l->index - 1);
    else if (jinja_is(name, "previtem"))
        *out = neighbour(r, l, l->index - 1, "there is no previous item");
    else if (jinja_is(name, "nextitem"))
        *out = neighbour(r, l, l->index + 1, "there is no next item");
    else if (jinja_is(name, "depth"))
        *out = jinja_int(l->depth);
    else if (jinja_is(name, "depth0"))
        *out = jinja_int(l->depth - 1);
    else
        return false;
    return true;
}
