/* parse: reads the text form (grammar: text.h) by recursive descent of bounded depth. Any text is accepted, or refused with file, line and
 * column: names are defined once and before their use, attributes and arity fit the op's row, the bytes of a constant fit its type. */
#include "ir/text/text.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

/* A body is a graph in an attribute of a node. */
static void parse_graph(struct parser *);

/* ---- attributes -------------------------------------------------------------------------------------------------------- */

static void parse_attr_ints(struct parser *p, struct attr *a)
{
    VEC(int64_t) list = {NULL, 0, 0};
    lex_expect(&p->lex, "[");
    while (!lex_accept(&p->lex, "]")) {
        if (list.n)
            lex_expect(&p->lex, ",");
        VEC_PUSH(p->g->arena, &list, lex_int(&p->lex, INT64_MIN, INT64_MAX));
    }
    a->ints = list.at;
    a->n = list.n;
}

static double parse_single(struct parser *p)
{
    return (double)(float)lex_float(&p->lex);
}

static void parse_attr_floats(struct parser *p, struct attr *a)
{
    VEC(double) list = {NULL, 0, 0};
    lex_expect(&p->lex, "[");
    while (!lex_accept(&p->lex, "]")) {
        if (list.n)
            lex_expect(&p->lex, ",");
        VEC_PUSH(p->g->arena, &list, parse_single(p));
    }
    a->floats = list.at;
    a->n = list.n;
}

static void parse_attr_strings(struct parser *p, struct attr *a)
{
    VEC(const char *) list = {NULL, 0, 0};
    lex_expect(&p->lex, "[");
    while (!lex_accept(&p->lex, "]")) {
        if (list.n)
            lex_expect(&p->lex, ",");
        const char *text = lex_quoted(&p->lex), *fault = string_fault(text, strlen(text));
        if (fault)
            lex_fail(&p->lex, "a string %s", fault);
        VEC_PUSH(p->g->arena, &list, text);
    }
    a->strings = list.at;
    a->n = list.n;
}

static void parse_raw(struct parser *p, struct attr *a)
{
    int64_t bytes;
    if (!lex_accept_word(&p->lex, "hex"))
        lex_fail(&p->lex, "expected hex");
    a->raw = lex_hex(&p->lex, &bytes);
    if (bytes > INT_MAX)
        lex_fail(&p->lex, "an attribute of %" PRId64 " bytes", bytes);
    a->n = (int)bytes;
}

static void parse_attr_dims(struct parser *p, struct attr *a)
{
    struct dim_list list = parse_dims(p);
    a->dims = list.at;
    a->n = list.n;
}

static struct graph *parse_body(struct parser *p)
{
    struct parser inner = {.lex = p->lex, .find = p->find, .depth = p->depth + 1};
    if (inner.depth > DEEPEST_BODY)
        lex_fail(&p->lex, "bodies are nested more than %d deep", DEEPEST_BODY);
    inner.g = graph_new(p->g->arena, alg_new(p->g->arena), NULL);
    inner.g->path = p->g->path;
    parse_graph(&inner);
    p->lex = inner.lex;
    return inner.g;
}

static void parse_attr_value(struct parser *p, struct attr *a)
{
    struct type type;
    a->set = true;
    switch (a->kind) {
    case ATTR_INT: a->i = lex_int(&p->lex, INT64_MIN, INT64_MAX); break;
    case ATTR_FLOAT: a->f = parse_single(p); break;
    case ATTR_STRING: a->s = lex_quoted(&p->lex); break;
    case ATTR_INTS: parse_attr_ints(p, a); break;
    case ATTR_FLOATS: parse_attr_floats(p, a); break;
    case ATTR_STRINGS: parse_attr_strings(p, a); break;
    case ATTR_DIMS: parse_attr_dims(p, a); break;
    case ATTR_TENSOR:
        type = parse_type(p);
        a->tensor = parse_constant(p, &type);
        break;
    case ATTR_GRAPH: a->graph = parse_body(p); break;
    case ATTR_RAW: parse_raw(p, a); break;
    }
}

/* The attribute of that name in the op's row. */
static struct attr *row_attr(struct parser *p, struct node *n, const char *name)
{
    struct attr *a = attr_find(n, name);
    if (a)
        return a;
    lex_fail(&p->lex, "%s has no attribute '%s'", n->optype, name);
}

static void parse_row_attr(struct parser *p, struct node *n)
{
    struct attr *a = row_attr(p, n, lex_name(&p->lex));
    lex_expect(&p->lex, "=");
    parse_attr_value(p, a);
}

static struct attr parse_free_attr(struct parser *p)
{
    struct attr a = {.name = lex_name(&p->lex)};
    lex_expect(&p->lex, ":");
    const char *kind = lex_name(&p->lex);
    if (!attr_kind_parse(kind, &a.kind))
        lex_fail(&p->lex, "no attribute kind '%s'", kind);
    if (a.kind == ATTR_GRAPH)
        lex_fail(&p->lex, "an op without a row has no body");
    lex_expect(&p->lex, "=");
    parse_attr_value(p, &a);
    return a;
}

static void parse_node_attrs(struct parser *p, struct node *n)
{
    VEC(struct attr) found = {NULL, 0, 0};
    if (!lex_accept(&p->lex, "{"))
        return;
    for (bool first = true; !lex_accept(&p->lex, "}"); first = false) {
        if (!first)
            lex_expect(&p->lex, ",");
        if (n->op)
            parse_row_attr(p, n);
        else
            VEC_PUSH(p->g->arena, &found, parse_free_attr(p));
    }
    if (!n->op) {
        n->attr = found.at;
        n->nattr = found.n;
    }
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

struct declarations {
    VEC(struct declaration) list;
};
struct operands {
    VEC(struct value *) list;
};

static void parse_declarations(struct parser *p, struct declarations *out)
{
    do {
        struct declaration d = parse_declaration(p);
        VEC_PUSH(p->g->arena, &out->list, d);
    } while (lex_accept(&p->lex, ","));
}

static void parse_node_operands(struct parser *p, struct operands *out)
{
    lex_expect(&p->lex, "(");
    while (!lex_accept(&p->lex, ")")) {
        if (out->list.n)
            lex_expect(&p->lex, ",");
        VEC_PUSH(p->g->arena, &out->list, parse_use(p));
    }
}

static struct node *rowless_node(struct graph *g, const char *domain, const char *optype, const struct operands *in, int nout)
{
    struct node *n = NEW(g->arena, struct node);
    n->optype = optype;
    n->domain = domain;
    n->nin = in->list.n;
    n->in = in->list.at;
    n->nout = nout;
    n->out = NEWN(g->arena, struct value *, nout);
    return n;
}

/* Operands that only give sizes may be absent. */
static bool operand_needed(const struct op *op, int i)
{
    return i >= op->nin || (!op->in[i].optional && !op->in[i].size);
}

static void check_arity(struct parser *p, const struct op *op, const struct operands *in, int nout)
{
    int nin = in->list.n;
    if ((op->max_in >= 0 && nin > op->max_in) || (op->max_out >= 0 && nout > op->max_out) || nout < op->min_out)
        lex_fail(&p->lex, "%s does not take %d operands and give %d results", op->name, nin, nout);
    for (int i = 0; i < op->nin || i < nin; i++)
        if ((i >= nin || !in->list.at[i]) && operand_needed(op, i))
            lex_fail(&p->lex, "%s lacks operand %s", op->name, i < op->nin ? op->in[i].name : "in its list");
}

static struct node *make_parsed_node(struct parser *p, char *domain, char *optype, const struct operands *in, int nout)
{
    const struct op *op = p->find(domain, optype);
    if (!op || (!op_has_bodies(op) && value_any_untyped(in->list.n, in->list.at)))
        return rowless_node(p->g, domain, optype, in, nout);
    check_arity(p, op, in, nout);
    return graph_node(p->g, op, NULL, in->list.n, in->list.at, nout);
}

static void define_outputs(struct parser *p, struct node *n, const struct declarations *outs)
{
    for (int i = 0; i < outs->list.n; i++) {
        struct value *v = parse_definition(p, &outs->list.at[i]);
        if (v)
            node_output(p->g, n, i, v);
    }
}

static void parse_module(struct parser *p, const struct node *n)
{
    const char *path = lex_quoted(&p->lex);
    if (!*path || strlen(path) > MODULE_PATH)
        lex_fail(&p->lex, "expected the path of a module, of 1 to %d characters", MODULE_PATH);
    graph_set_module(p->g, n->name, path);
}

static void parse_node(struct parser *p)
{
    struct declarations outs = {{NULL, 0, 0}};
    struct operands in = {{NULL, 0, 0}};
    char *name = lex_name(&p->lex);
    lex_expect(&p->lex, ":");
    parse_declarations(p, &outs);
    lex_expect(&p->lex, "=");
    char *optype = lex_name(&p->lex), *domain = arena_strdup(p->g->arena, "");
    if (lex_accept(&p->lex, "::")) {
        domain = optype;
        optype = lex_name(&p->lex);
    }
    parse_node_operands(p, &in);
    struct node *n = make_parsed_node(p, domain, optype, &in, outs.list.n);
    n->name = name;
    if (lex_accept_word(&p->lex, "opset"))
        n->opset = (int)lex_int(&p->lex, 0, INT_MAX);
    if (lex_accept_word(&p->lex, "scope"))
        parse_module(p, n);
    parse_node_attrs(p, n);
    const char *fault = node_bodies_fault(n);
    if (fault)
        lex_fail(&p->lex, "node '%s' (%s) %s", n->name, n->optype, fault);
    define_outputs(p, n, &outs);
    graph_append(p->g, n);
}

/* ---- statements --------------------------------------------------------------------------------------------------------- */

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
    if (v->output)
        lex_fail(&p->lex, "value '%s' is an output already", v->name);
    graph_add_output(p->g, v);
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
    graph_add_state(p->g, s);
}

/* The symbol is made with the fact, so its expression is read as text first. Without a fact it is a plain size, or an expression made only
 * to fix the order. */
static void parse_fact(struct parser *p)
{
    const char *error = NULL;
    char *text = lex_raw(&p->lex, ">\n");
    int64_t lo = lex_accept(&p->lex, ">=") ? lex_int(&p->lex, 0, INT64_MAX) : -1;
    const struct dim *d = dim_parse(p->g->alg, text, lo == 0 ? 0 : 1, &error);
    if (!d || (lo >= 0 && d->kind != DIM_SYM))
        lex_fail(&p->lex, "'%s': %s", text, error ? error : "not a symbol");
    if (lo > 0)
        dim_at_least(p->g->alg, d, lo);
}

/* Both sides are read before any equation holds: they are printed as entered. */
static void parse_assumption(struct parser *p)
{
    struct equation e = {.left = parse_dim(p, "=\n")};
    lex_expect(&p->lex, "=");
    e.right = parse_dim(p, "\"\n");
    if (lex_at_quote(&p->lex))
        e.why = lex_quoted(&p->lex);
    VEC_PUSH(p->g->arena, &p->equations, e);
}

/* Not a fact or an equation: from here on the equations hold. */
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
    graph_set_meta(p->g, m.key, m.text);
}

static void parse_import(struct parser *p)
{
    struct meta m = parse_meta(p);
    VEC_PUSH(p->g->arena, &p->g->opsets, m);
}

#define NUMBER(word, member, type, most)                \
    static void parse_##word(struct parser *p)          \
    {                                                   \
        p->g->member = (type)lex_int(&p->lex, 0, most); \
    }
NUMBER(ir, ir_version, int64_t, INT64_MAX)
NUMBER(opset, opset, int, INT_MAX)
NUMBER(properties, properties, unsigned, UINT_MAX)
NUMBER(ranks, ranks, int, INT_MAX)
NUMBER(rank, rank, int, INT_MAX)
NUMBER(captures, captures, int, INT_MAX)

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
    } annotations[] = {
        {"configuration", shardings_parse_configuration}, {"shard", shardings_parse_shard}, {"stage", shardings_parse_stage}};
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

static void parse_graph(struct parser *p)
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
        lex_fail(&p.lex, "text after the graph");
    return p.g;
}

/* After empty lines and comments. */
static bool begins_graph(const char *at, size_t bytes)
{
    const char *end = at + bytes;
    while (at < end && (*at == '#' || *at == '\n')) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        at = line ? line + 1 : end;
    }
    return end - at > 6 && memcmp(at, "graph ", 6) == 0;
}

char *graph_text(struct arena *arena, const char *path)
{
    struct map m = map_file(path);
    bool text = begins_graph((const char *)m.at, m.bytes);
    char *copy = text ? arena_strndup(arena, (const char *)m.at, m.bytes) : NULL;
    map_close(m);
    return copy;
}
