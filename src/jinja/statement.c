/* Parser of statements: tags, and the text between them. Unknown tags are refused. */
#include "jinja/jinja.h"

#include <string.h>

/* Words that end a body; NULL ends the list. */
#define UNTIL(...)        \
    (const char *const[]) \
    {                     \
        __VA_ARGS__, NULL \
    }

static struct jinja_node *parse_until(struct jinja_parser *, const char *const *words);

static void deeper(struct jinja_parser *p)
{
    if (++p->nesting > JINJA_NESTING)
        jinja_refuse(p, jinja_peek(p)->from, "expressions and blocks are nested more than %d deep", JINJA_NESTING);
}

static void end_tag(struct jinja_parser *p)
{
    jinja_expect_type(p, JINJA_BLOCK_END, "'%}'");
}

/* The body after the rest of a tag, up to one of the words, which is the next token. */
static struct jinja_node *parse_body(struct jinja_parser *p, const char *const *words)
{
    jinja_skip_sign(p, ":");
    end_tag(p);
    deeper(p);
    struct jinja_node *body = parse_until(p, words);
    p->nesting--;
    return body;
}

/* The same up to one word, which is skipped. */
static struct jinja_node *parse_block(struct jinja_parser *p, const char *word)
{
    struct jinja_node *body = parse_body(p, UNTIL(word));
    p->next++;
    return body;
}

/* A body that is a function in Jinja2: break and continue can't leave it. */
static struct jinja_node *parse_function(struct jinja_parser *p, const char *word)
{
    int loops = p->loops;
    p->loops = 0;
    struct jinja_node *body = parse_block(p, word);
    p->loops = loops;
    return body;
}

static struct jinja_node *parse_if(struct jinja_parser *p, size_t at)
{
    struct jinja_node *first = NULL, **to = &first;
    for (;;) {
        struct jinja_node *node = jinja_node(p, JINJA_S_IF, at);
        *to = node;
        to = &node->otherwise;
        node->test = jinja_parse_tuple(p, false);
        node->body = parse_body(p, UNTIL("elif", "else", "endif"));
        at = jinja_peek(p)->from;
        if (jinja_skip_word(p, "elif"))
            continue;
        if (jinja_skip_word(p, "else"))
            node->otherwise = parse_body(p, UNTIL("endif"));
        p->next++;
        return first;
    }
}

static void refuse_loop_target(struct jinja_parser *p, const struct jinja_node *target)
{
    if (target->kind == JINJA_E_NAME && jinja_is(&target->text, "loop"))
        jinja_refuse(p, target->at, "the variable of a loop can't be 'loop'");
    JINJA_NODES(item, target->list)
    refuse_loop_target(p, *item);
}

static struct jinja_node *parse_for(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_FOR, at);
    struct jinja_string loop = jinja_literal("loop");
    node->symbol = jinja_symbol(p, &loop);
    node->left = jinja_parse_target(p, false);
    refuse_loop_target(p, node->left);
    if (!jinja_skip_word(p, "in"))
        jinja_refuse(p, jinja_peek(p)->from, "expected 'in', found %s", jinja_shown(p, jinja_peek(p)));
    node->right = jinja_parse_tuple(p, false);
    if (jinja_skip_word(p, "if"))
        node->test = jinja_parse_expression(p, true);
    node->recursive = jinja_skip_word(p, "recursive");
    p->loops++;
    node->body = parse_body(p, UNTIL("endfor", "else"));
    p->loops--;
    if (jinja_skip_word(p, "else"))
        node->otherwise = parse_body(p, UNTIL("endfor"));
    p->next++;
    return node;
}

static struct jinja_node *parse_set(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_SET, at);
    node->left = jinja_parse_target(p, true);
    if (jinja_skip_sign(p, "=")) {
        node->right = jinja_parse_tuple(p, true);
        return node;
    }
    node->kind = JINJA_S_SET_BLOCK;
    node->right = jinja_parse_filters(p, NULL, false);
    node->body = parse_block(p, "endset");
    return node;
}

static struct jinja_node *parse_with(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_WITH, at);
    while (jinja_peek(p)->type != JINJA_BLOCK_END) {
        if (node->list.n)
            jinja_expect_sign(p, ",");
        struct jinja_node *pair = jinja_node(p, JINJA_S_SET, jinja_peek(p)->from);
        pair->left = jinja_parse_target(p, false);
        jinja_expect_sign(p, "=");
        pair->right = jinja_parse_expression(p, true);
        VEC_PUSH(p->arena, &node->list, pair);
    }
    node->body = parse_block(p, "endwith");
    return node;
}

/* ---- macros ------------------------------------------------------------------------------------------------------------ */

static void parse_parameters(struct jinja_parser *p, struct jinja_node *macro)
{
    bool has_default = false;
    jinja_expect_sign(p, "(");
    while (!jinja_peek_sign(p, ")")) {
        if (macro->list.n)
            jinja_expect_sign(p, ",");
        struct jinja_node *name = jinja_node(p, JINJA_E_KEYWORD, jinja_peek(p)->from);
        name->text = jinja_expect_name(p);
        name->symbol = jinja_symbol(p, &name->text);
        if (jinja_skip_sign(p, "=")) {
            name->left = jinja_parse_expression(p, true);
            has_default = true;
        } else if (has_default) {
            jinja_refuse(p, name->at, "a parameter without a default stands behind one that has it");
        }
        VEC_PUSH(p->arena, &macro->list, name);
    }
    jinja_expect_sign(p, ")");
}

static bool has_parameter(const struct jinja_node *macro, const char *name, bool plain)
{
    JINJA_NODES(param, macro->list)
    if (jinja_is(&(*param)->text, name))
        return !plain || !(*param)->left;
    return false;
}

/* The body of a macro, and the special variables it reads. */
static void parse_macro_body(struct jinja_parser *p, struct jinja_node *macro, const char *word)
{
    bool varargs = p->sees_varargs, kwargs = p->sees_kwargs, caller = p->sees_caller;
    p->sees_varargs = p->sees_kwargs = p->sees_caller = false;
    macro->body = parse_function(p, word);
    if (p->sees_caller && has_parameter(macro, "caller", true))
        jinja_refuse(p, macro->at, "the parameter 'caller' has no default");
    macro->varargs = p->sees_varargs && !has_parameter(macro, "varargs", false);
    macro->kwargs = p->sees_kwargs && !has_parameter(macro, "kwargs", false);
    macro->caller = p->sees_caller;
    p->sees_varargs = p->sees_varargs || varargs;
    p->sees_kwargs = p->sees_kwargs || kwargs;
    p->sees_caller = p->sees_caller || caller;
}

static struct jinja_node *parse_macro(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_MACRO, at);
    node->text = jinja_expect_name(p);
    node->symbol = jinja_symbol(p, &node->text);
    parse_parameters(p, node);
    parse_macro_body(p, node, "endmacro");
    return node;
}

static struct jinja_node *parse_call_block(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_CALL, at);
    if (jinja_peek_sign(p, "("))
        parse_parameters(p, node);
    node->left = jinja_parse_expression(p, true);
    if (node->left->kind != JINJA_E_CALL)
        jinja_refuse(p, node->left->at, "expected a call, found another expression");
    parse_macro_body(p, node, "endcall");
    return node;
}

static struct jinja_node *parse_filter_block(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_FILTER, at);
    node->right = jinja_parse_filters(p, NULL, true);
    node->body = parse_block(p, "endfilter");
    return node;
}

static struct jinja_node *parse_generation(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_GENERATION, at);
    node->body = parse_function(p, "endgeneration");
    return node;
}

static struct jinja_node *parse_print(struct jinja_parser *p, size_t at)
{
    struct jinja_node *node = jinja_node(p, JINJA_S_PRINT, at);
    while (jinja_peek(p)->type != JINJA_BLOCK_END) {
        if (node->list.n)
            jinja_expect_sign(p, ",");
        VEC_PUSH(p->arena, &node->list, jinja_parse_expression(p, true));
    }
    return node;
}

static struct jinja_node *parse_leave(struct jinja_parser *p, size_t at)
{
    bool is_break = p->trap.text[at] == 'b';
    if (!p->loops)
        jinja_refuse(p, at, "'%s' stands outside of a loop", is_break ? "break" : "continue");
    return jinja_node(p, is_break ? JINJA_S_BREAK : JINJA_S_CONTINUE, at);
}

/* ---- tags -------------------------------------------------------------------------------------------------------------- */

static const struct tag {
    const char *name;
    struct jinja_node *(*parse)(struct jinja_parser *, size_t at);
} tags[] = {{"if", parse_if},         {"for", parse_for},
            {"set", parse_set},       {"with", parse_with},
            {"macro", parse_macro},   {"call", parse_call_block},
            {"print", parse_print},   {"filter", parse_filter_block},
            {"break", parse_leave},   {"generation", parse_generation},
            {"continue", parse_leave}};

static bool is_word_of(const struct jinja_parser *p, const char *const *words)
{
    for (; words && *words; words++)
        if (jinja_peek_word(p, *words))
            return true;
    return false;
}

static struct jinja_node *parse_tag(struct jinja_parser *p)
{
    const struct jinja_token *t = jinja_peek(p);
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (jinja_skip_word(p, tags[i].name)) {
            struct jinja_node *node = tags[i].parse(p, t->from);
            end_tag(p);
            return node;
        }
    if (t->type != JINJA_NAME)
        jinja_refuse(p, t->from, "expected the name of a tag, found %s", jinja_shown(p, t));
    jinja_refuse(p, t->from, "the tag %s is not supported here", jinja_shown(p, t));
}

static struct jinja_node *parse_until(struct jinja_parser *p, const char *const *words)
{
    struct jinja_node *body = jinja_node(p, JINJA_S_BODY, jinja_peek(p)->from);
    size_t tag = words ? p->tokens.list.at[p->next - 1].from : 0;
    for (;;) {
        const struct jinja_token *t = jinja_peek(p);
        struct jinja_node *node;
        if (t->type == JINJA_END) {
            if (words)
                jinja_refuse(p, tag, "the block that begins here has no end, expected '{%% %s %%}'", words[0]);
            return body;
        }
        p->next++;
        if (t->type == JINJA_DATA) {
            node = jinja_node(p, JINJA_S_DATA, t->from);
            node->text = jinja_token_text(p, t);
        } else if (t->type == JINJA_VARIABLE_BEGIN) {
            node = jinja_node(p, JINJA_S_PRINT, jinja_peek(p)->from);
            VEC_PUSH(p->arena, &node->list, jinja_parse_tuple(p, true));
            jinja_expect_type(p, JINJA_VARIABLE_END, "'}}'");
        } else if (is_word_of(p, words)) {
            return body;
        } else {
            node = parse_tag(p);
        }
        VEC_PUSH(p->arena, &body->list, node);
    }
}

static bool is_member(const struct jinja_parser *p, const struct jinja_string *name)
{
    EACH (const struct jinja_string, m, p->members)
        if (jinja_same(m, name))
            return true;
    return false;
}

struct jinja_node *jinja_parse_template(struct jinja_parser *p)
{
    struct jinja_node *body = parse_until(p, NULL);
    JINJA_NODES(call, p->calls)
    if (!is_member(p, &(*call)->text))
        jinja_refuse(p, (*call)->at, "the method '%.*s' is not supported", (int)(*call)->text.n, (*call)->text.at);
    return body;
}
