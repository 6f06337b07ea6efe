/* Parses the text form (grammar: text.h) by recursive descent of fixed depth. Any text is accepted or refused with file, line and column:
 * names are defined before they are used and once, attributes and arity fit the op's row, the bytes of a constant fit its type. */
#include "ir/parse.h"

#include <limits.h>
#include <string.h>

static void parse_leaf(struct parser *p, bool input)
{
    struct declaration d = parse_declaration(p);
    struct value *v = parse_definition(p, &d);
    if (!v)
        lex_fail(&p->lex, "an absent value is no %s", input ? "input" : "constant");
    if (input)
        VEC_PUSH(p->g->arena, &p->g->inputs, v);
    else
        lex_expect(&p->lex, "=");
    if (!input || lex_accept(&p->lex, "="))
        v->constant = parse_constant_of(p, &v->type);
}

static void parse_input(struct parser *p)
{
    parse_leaf(p, true);
}

static void parse_const(struct parser *p)
{
    parse_leaf(p, false);
}

static void parse_output(struct parser *p)
{
    struct value *v = parse_use(p);
    if (!v)
        lex_fail(&p->lex, "an absent value is no output");
    VEC_PUSH(p->g->arena, &p->g->outputs, v);
}

static void parse_state(struct parser *p)
{
    struct state s = {.dim = -1};
    s.past = parse_use(p);
    lex_expect(&p->lex, "->");
    s.present = parse_use(p);
    if (!lex_accept_word(&p->lex, "dim"))
        lex_fail(&p->lex, "expected 'dim'");
    s.dim = (int)lex_int(&p->lex, -1, MAX_RANK - 1);
    VEC_PUSH(p->g->arena, &p->g->states, s);
}

/* The symbol is made with the fact, so its expression is read as text first. Without a fact: only makes the expression, for the order. */
static void parse_fact(struct parser *p)
{
    const char *error = NULL;
    char *text = lex_raw(&p->lex, ">\n");
    int64_t lo = lex_accept(&p->lex, ">=") ? lex_int(&p->lex, INT64_MIN, INT64_MAX) : 1;
    const struct dim *d = dim_parse(p->g->alg, text, lo, &error);
    if (!d)
        lex_fail(&p->lex, "'%s': %s", text, error ? error : "not a symbol");
}

/* Both sides are read before any equation holds: they are printed as met. */
static void parse_assumption(struct parser *p)
{
    struct equation e = {.left = parse_dim(p, "=\n")};
    lex_expect(&p->lex, "=");
    e.right = parse_dim(p, "\"\n");
    if (lex_at_quote(&p->lex))
        e.why = lex_quoted(&p->lex);
    VEC_PUSH(p->g->arena, &p->equations, e);
}

/* Anything but a fact or an equation follows: from here on the equations hold. */
static void settle_equations(struct parser *p)
{
    for (int i = 0; i < p->equations.n; i++) {
        const struct equation *e = &p->equations.at[i];
        if (alg_equate(p->g->alg, e->left, e->right, e->why) == EQ_FALSE)
            lex_fail(&p->lex, "assumption %d contradicts those before it", i + 1);
    }
    p->equations.n = 0;
}

static struct meta parse_meta(struct parser *p)
{
    struct meta m = {.key = lex_name(&p->lex)};
    m.text = lex_quoted(&p->lex);
    return m;
}

static void parse_meta_statement(struct parser *p)
{
    struct meta m = parse_meta(p);
    VEC_PUSH(p->g->arena, &p->g->meta, m);
}

static void parse_import(struct parser *p)
{
    struct meta m = parse_meta(p);
    VEC_PUSH(p->g->arena, &p->g->opsets, m);
}

static void parse_ir(struct parser *p)
{
    p->g->ir_version = lex_int(&p->lex, 0, INT64_MAX);
}

static void parse_opset(struct parser *p)
{
    p->g->opset = (int)lex_int(&p->lex, 0, INT_MAX);
}

static void parse_properties(struct parser *p)
{
    p->g->properties = (unsigned)lex_int(&p->lex, 0, UINT_MAX);
}

static void parse_ranks(struct parser *p)
{
    p->g->ranks = (int)lex_int(&p->lex, 0, INT_MAX);
}

static void parse_rank(struct parser *p)
{
    p->g->rank = (int)lex_int(&p->lex, 0, INT_MAX);
}

static void parse_captures(struct parser *p)
{
    p->g->captures = (int)lex_int(&p->lex, 0, INT_MAX);
}

static void parse_statement(struct parser *p)
{
    static const struct {
        const char *word;
        void (*parse)(struct parser *);
        bool settles;
    } statements[] = {{"node", parse_node, true},           {"const", parse_const, true},
                      {"input", parse_input, true},         {"output", parse_output, true},
                      {"state", parse_state, true},         {"dim", parse_fact, false},
                      {"assume", parse_assumption, false},  {"ir", parse_ir, false},
                      {"opset", parse_opset, false},        {"properties", parse_properties, false},
                      {"ranks", parse_ranks, false},        {"rank", parse_rank, false},
                      {"captures", parse_captures, false},  {"import", parse_import, false},
                      {"meta", parse_meta_statement, false}};
    static const struct {
        const char *word;
        void (*parse)(struct lexer *, struct graph *);
    } annotations[] = {{"configuration", parse_configuration}, {"shard", parse_shard}, {"stage", parse_stage}};
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (lex_accept_word(&p->lex, statements[i].word)) {
            if (statements[i].settles)
                settle_equations(p);
            statements[i].parse(p);
            return;
        }
    for (size_t i = 0; i < sizeof annotations / sizeof *annotations; i++)
        if (lex_accept_word(&p->lex, annotations[i].word)) {
            annotations[i].parse(&p->lex, p->g);
            return;
        }
    lex_fail(&p->lex, *p->lex.at ? "expected a statement, found '%.12s'" : "expected '}', found the end%.0s", p->lex.at);
}

void parse_graph(struct parser *p)
{
    lex_expect(&p->lex, "graph");
    p->g->name = lex_name(&p->lex);
    lex_expect(&p->lex, "{");
    while (!lex_accept(&p->lex, "}"))
        parse_statement(p);
    settle_equations(p);
    graph_name_nodes(p->g);
}

struct graph *graph_parse(struct arena *arena, struct alg *alg, const char *text, const char *file, op_lookup *find)
{
    struct parser p = {.find = find, .lex = {.arena = arena, .file = file, .start = text, .at = text}};
    p.g = graph_new(arena, alg, NULL);
    p.g->path = file ? arena_strdup(arena, file) : NULL;
    parse_graph(&p);
    if (!lex_end(&p.lex))
        lex_fail(&p.lex, "text behind the graph");
    return p.g;
}

char *graph_text(struct arena *arena, const char *path)
{
    struct map m = map_file(path);
    bool text = m.bytes > 6 && (!memcmp(m.at, "graph ", 6) || m.at[0] == '#');
    char *copy = text ? arena_strndup(arena, (const char *)m.at, m.bytes) : NULL;
    unmap(m);
    return copy;
}
