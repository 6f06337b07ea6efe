/* print: writes a graph in the text form (grammar: text.h): expressions under the equations of the graph, the constants that are used,
 * attributes that differ from their default, and every byte of inline constants. */
#include "ir/text/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { INLINE_ELEMENTS = 16 }; /* constants of up to this many elements are printed as a list */

struct symbol_order {
    const struct dim *dim;
    bool ordered;
    UT_hash_handle hh;
};
struct graph_printer {
    const struct graph *g;
    FILE *to;
    struct arena *tmp;
    struct symbol_order *symbols;
    int indent;
};

static void print_graph(const struct graph *, FILE *, int indent);

static void start_line(struct graph_printer *p, const char *word)
{
    fprintf(p->to, "%*s%s", p->indent, "", word);
}

/* ---- names and strings ------------------------------------------------------------------------------------------------- */

static void print_quoted(struct graph_printer *p, const char *text)
{
    lex_put_quoted(p->to, text);
}

static void print_name(struct graph_printer *p, const char *name)
{
    lex_put_name(p->to, name);
}

static void put_value_name(struct graph_printer *p, const struct value *v)
{
    if (v)
        print_name(p, v->name);
    else
        fputc('_', p->to);
}

static void put_hex(struct graph_printer *p, const void *data, int64_t bytes)
{
    const uint8_t *at = data;
    fputc('"', p->to);
    for (int64_t i = 0; i < bytes; i++)
        fprintf(p->to, "%02x", at[i]);
    fputc('"', p->to);
}

/* The shortest text that reads back as the same float32: the type of ONNX attributes. */
static void put_single(struct graph_printer *p, double d)
{
    char text[40];
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)(float)d);
        if (strtof(text, NULL) == (float)d)
            break;
    }
    fputs(text, p->to);
}

/* The shortest text that reads back as d. */
static void put_double(struct graph_printer *p, double d)
{
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, d);
        if (strtod(text, NULL) == d)
            break;
    }
    fputs(text, p->to);
}

/* ---- expressions, types, placements ------------------------------------------------------------------------------------ */

static void put_dims(struct graph_printer *p, const struct dim *const *at, int n)
{
    fputc('[', p->to);
    for (int i = 0; i < n; i++) {
        fputs(i ? ", " : "", p->to);
        fputs(dim_str(p->tmp, dim_rewrite(p->g->alg, at[i])), p->to);
    }
    fputc(']', p->to);
}

static struct type rewritten_type(struct graph_printer *p, struct type t)
{
    for (int i = 0; i < t.rank; i++)
        t.dim[i] = dim_rewrite(p->g->alg, t.dim[i]);
    return t;
}

static void put_type(struct graph_printer *p, const struct type *type)
{
    struct type t = rewritten_type(p, *type);
    fputs(t.dtype == DT_NONE ? "?" : type_str(p->tmp, &t), p->to);
}

static void put_declaration(struct graph_printer *p, const struct value *v)
{
    print_name(p, v->name);
    fputs(": ", p->to);
    put_type(p, &v->type);
    if (v->placed)
        fprintf(p->to, " @%s", placement_str(p->tmp, v->place));
    if (v->dims && !v->constant) {
        fputs(" dims ", p->to);
        put_dims(p, v->dims->at, v->dims->n);
    }
}

/* ---- constants --------------------------------------------------------------------------------------------------------- */

static bool lists_exactly(struct constant *c)
{
    if (dtype_is_integer(c->dtype))
        return true;
    if (!dtype_is_float(c->dtype) && c->dtype != DT_BOOL)
        return false;
    int64_t n = constant_elements(c);
    for (int64_t i = 0; i < n; i++) {
        double d = c->dtype == DT_BOOL ? 0 : constant_float(c, "", i);
        uint8_t byte = c->dtype == DT_BOOL ? ((const uint8_t *)constant_data(c, ""))[i] : 0;
        if (d != d || byte > 1)
            return false;
    }
    return true;
}

static void put_list(struct graph_printer *p, struct constant *c, const char *name)
{
    int64_t n = constant_elements(c);
    fputc('[', p->to);
    for (int64_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", p->to);
        if (c->dtype == DT_STRING)
            print_quoted(p, string_text(constant_int(c, name, i)));
        else if (c->dtype == DT_U64)
            fprintf(p->to, "%" PRIu64, (uint64_t)constant_int(c, name, i));
        else if (c->dtype == DT_F64)
            put_double(p, constant_float(c, name, i));
        else if (dtype_is_float(c->dtype))
            put_single(p, constant_float(c, name, i));
        else
            fprintf(p->to, "%" PRId64, constant_int(c, name, i));
    }
    fputc(']', p->to);
}

static void print_bytes(struct graph_printer *p, struct constant *c, const char *name)
{
    if (c->source.path) {
        fputs("file ", p->to);
        print_quoted(p, c->source.path);
        fprintf(p->to, " %" PRId64 " %" PRId64, c->source.offset, c->source.length);
    } else if (c->dtype == DT_STRING || (constant_elements(c) <= INLINE_ELEMENTS && lists_exactly(c))) {
        put_list(p, c, name);
    } else {
        fputs("hex ", p->to);
        put_hex(p, constant_data(c, name), c->bytes);
    }
    if (c->origin) {
        fputs(" origin ", p->to);
        print_name(p, c->origin);
    }
}

static struct type constant_type(struct graph_printer *p, const struct constant *c)
{
    struct type t = {.dtype = c->dtype, .rank = c->rank};
    for (int i = 0; i < c->rank; i++)
        t.dim[i] = dim_int(p->g->alg, c->dim[i]);
    return t;
}

static void put_constant(struct graph_printer *p, const struct value *v)
{
    struct type own = constant_type(p, v->constant), shown = rewritten_type(p, v->type);
    fputs(" = ", p->to);
    if (!type_eq(&own, &shown)) {
        put_type(p, &own);
        fputc(' ', p->to);
    }
    print_bytes(p, v->constant, v->name);
}

/* ---- attributes -------------------------------------------------------------------------------------------------------- */

static bool attr_is_default(const struct node *n, int i)
{
    const struct attr *a = &n->attr[i];
    if (!n->op)
        return false;
    const struct op_attr *row = &n->op->attr[i];
    if (!a->set)
        return true;
    if (!row->has_default)
        return false;
    switch (a->kind) {
    case ATTR_INT: return a->i == row->value.i;
    case ATTR_FLOAT: return a->f >= row->value.f && a->f <= row->value.f;
    case ATTR_STRING: return strcmp(a->s, row->value.s) == 0;
    default: return false;
    }
}

static void put_numbers(struct graph_printer *p, const struct attr *a)
{
    fputc('[', p->to);
    for (int i = 0; i < a->n; i++) {
        fputs(i ? ", " : "", p->to);
        if (a->kind == ATTR_INTS)
            fprintf(p->to, "%" PRId64, a->ints[i]);
        else
            put_single(p, a->floats[i]);
    }
    fputc(']', p->to);
}

static void put_strings(struct graph_printer *p, const struct attr *a)
{
    fputc('[', p->to);
    for (int i = 0; i < a->n; i++) {
        fputs(i ? ", " : "", p->to);
        print_quoted(p, a->strings[i]);
    }
    fputc(']', p->to);
}

static void put_tensor(struct graph_printer *p, struct constant *c, const char *name)
{
    struct type own = constant_type(p, c);
    put_type(p, &own);
    fputc(' ', p->to);
    print_bytes(p, c, name);
}

static void put_attr_value(struct graph_printer *p, const struct attr *a)
{
    switch (a->kind) {
    case ATTR_INT: fprintf(p->to, "%" PRId64, a->i); break;
    case ATTR_FLOAT: put_single(p, a->f); break;
    case ATTR_STRING: print_quoted(p, a->s); break;
    case ATTR_INTS:
    case ATTR_FLOATS: put_numbers(p, a); break;
    case ATTR_STRINGS: put_strings(p, a); break;
    case ATTR_DIMS: put_dims(p, a->dims, a->n); break;
    case ATTR_TENSOR: put_tensor(p, a->tensor, a->name); break;
    case ATTR_GRAPH: print_graph(a->graph, p->to, p->indent + 2); break;
    case ATTR_RAW:
        fputs("hex ", p->to);
        put_hex(p, a->raw, a->n);
        break;
    }
}

static void put_attrs(struct graph_printer *p, const struct node *n)
{
    bool any = false;
    for (int i = 0; i < n->nattr; i++) {
        const struct attr *a = &n->attr[i];
        if (attr_is_default(n, i))
            continue;
        fputs(any ? ", " : " {", p->to);
        print_name(p, a->name);
        if (!n->op)
            fprintf(p->to, ": %s", attr_kind_name(a->kind));
        fputs(" = ", p->to);
        put_attr_value(p, a);
        any = true;
    }
    fputs(any ? "}" : "", p->to);
}

/* ---- nodes ------------------------------------------------------------------------------------------------------------- */

static void put_module(struct graph_printer *p, const struct node *n)
{
    const char *path = node_module(p->g, n);
    if (!path)
        return;
    fputs(" scope ", p->to);
    print_quoted(p, path);
}

static void print_node(struct graph_printer *p, const struct node *n)
{
    start_line(p, "node ");
    print_name(p, n->name);
    for (int i = 0; i < n->nout; i++) {
        fputs(i ? ", " : ": ", p->to);
        if (n->out[i])
            put_declaration(p, n->out[i]);
        else
            fputc('_', p->to);
    }
    fputs(" = ", p->to);
    if (*n->domain) {
        print_name(p, n->domain);
        fputs("::", p->to);
    }
    print_name(p, n->optype);
    fputc('(', p->to);
    for (int i = 0; i < n->nin; i++) {
        fputs(i ? ", " : "", p->to);
        put_value_name(p, n->in[i]);
    }
    fputc(')', p->to);
    if (!n->op)
        fprintf(p->to, " opset %d", n->opset);
    put_module(p, n);
    put_attrs(p, n);
    fputc('\n', p->to);
}

/* ---- symbols and equations --------------------------------------------------------------------------------------------- */

static struct symbol_order *note_dim(struct graph_printer *, const struct dim *);

/* The text of a sum or choice depends on which operand was made first, unless all are symbols. */
static bool order_matters(const struct dim *d)
{
    int parts = 0, compound = 0;
    for (int i = 0; i < d->n; i++) {
        parts += d->arg[i]->kind != DIM_INT;
        compound += d->arg[i]->kind != DIM_INT && d->arg[i]->kind != DIM_SYM;
    }
    return d->kind != DIM_DIV && d->kind != DIM_MOD && parts > 1 && compound > 0;
}

static void note_parts(struct graph_printer *p, const struct dim *d)
{
    bool ordered = order_matters(d);
    for (int i = 0; i < d->n; i++) {
        struct symbol_order *s = note_dim(p, d->arg[i]);
        if (s && ordered)
            s->ordered = true;
    }
}

/* NULL for an integer. */
static struct symbol_order *note_dim(struct graph_printer *p, const struct dim *d)
{
    struct symbol_order *s = NULL;
    if (d->kind == DIM_INT)
        return NULL;
    HASH_FIND_PTR(p->symbols, &d, s);
    if (s)
        return s;
    s = NEW(p->tmp, struct symbol_order);
    s->dim = d;
    HASH_ADD_PTR(p->symbols, dim, s);
    note_parts(p, d);
    return s;
}

static void note_shown(struct graph_printer *p, const struct dim *d)
{
    note_dim(p, dim_rewrite(p->g->alg, d));
}

static void note_symbols(struct graph_printer *p, const struct value *v)
{
    if (!v)
        return;
    for (int i = 0; i < v->type.rank; i++)
        note_shown(p, v->type.dim[i]);
    for (int i = 0; v->dims && i < v->dims->n; i++)
        note_shown(p, v->dims->at[i]);
    if (v->placed && v->place.kind == PLACE_S)
        note_dim(p, split_size(p->g->alg, v->place.split));
}

static void note_node(struct graph_printer *p, const struct node *n)
{
    for (int i = 0; i < n->nout; i++)
        note_symbols(p, n->out[i]);
    for (int i = 0; i < n->nattr; i++)
        for (int k = 0; n->attr[i].set && n->attr[i].kind == ATTR_DIMS && k < n->attr[i].n; k++)
            note_shown(p, n->attr[i].dims[k]);
}

static int by_id(const struct symbol_order *a, const struct symbol_order *b)
{
    return (a->dim->id > b->dim->id) - (a->dim->id < b->dim->id);
}

static void put_fact(struct graph_printer *p, const struct symbol_order *s)
{
    int64_t lo = s->dim->kind == DIM_SYM ? dim_stated_lo(s->dim) : 0; /* an equation that tells more is printed itself */
    if (s->dim->kind == DIM_SYM && lo >= s->dim->usual)
        fprintf(p->to, "%*sdim %s >= %" PRId64 "\n", p->indent, "", dim_str(p->tmp, s->dim), lo);
    else if (s->dim->kind == DIM_SYM || s->ordered)
        fprintf(p->to, "%*sdim %s\n", p->indent, "", dim_str(p->tmp, s->dim));
}

/* The facts of every symbol that occurs, in the order of their making, by which canonical forms sort. */
static void put_facts(struct graph_printer *p)
{
    const struct equation *e;
    int n = alg_equations(p->g->alg, &e);
    for (int i = 0; i < p->g->inputs.n; i++)
        note_symbols(p, p->g->inputs.at[i]);
    for (int i = 0; i < n; i++) {
        note_dim(p, e[i].left);
        note_dim(p, e[i].right);
    }
    for (int i = 0; i < p->g->nodes.n; i++)
        note_node(p, p->g->nodes.at[i]);
    HASH_SORT(p->symbols, by_id);
    for (const struct symbol_order *s = p->symbols; s; s = s->hh.next)
        put_fact(p, s);
    HASH_CLEAR(hh, p->symbols);
}

static void put_equations(struct graph_printer *p)
{
    const struct equation *e;
    int n = alg_equations(p->g->alg, &e);
    for (int i = 0; i < n; i++) {
        fprintf(p->to, "%*sassume %s = %s", p->indent, "", dim_str(p->tmp, e[i].left), dim_str(p->tmp, e[i].right));
        if (e[i].why) {
            fputc(' ', p->to);
            print_quoted(p, e[i].why);
        }
        fputc('\n', p->to);
    }
}

/* ---- the graph --------------------------------------------------------------------------------------------------------- */

static void put_metas(struct graph_printer *p, const char *word, const struct meta *at, int n)
{
    for (int i = 0; i < n; i++) {
        fprintf(p->to, "%*s%s ", p->indent, "", word);
        print_quoted(p, at[i].key);
        fputc(' ', p->to);
        print_quoted(p, at[i].text);
        fputc('\n', p->to);
    }
}

static void put_header(struct graph_printer *p)
{
    const struct graph *g = p->g;
    fprintf(p->to, "%*sir %" PRId64 "  opset %d", p->indent, "", g->ir_version, g->opset);
    if (g->properties)
        fprintf(p->to, "  properties %u", g->properties);
    if (g->ranks)
        fprintf(p->to, "  ranks %d", g->ranks);
    if (g->rank >= 0)
        fprintf(p->to, "  rank %d", g->rank);
    if (g->captures)
        fprintf(p->to, "  captures %d", g->captures);
    fputc('\n', p->to);
    put_metas(p, "import", g->opsets.at, g->opsets.n);
    put_metas(p, "meta", g->meta.at, g->meta.n);
}

static void put_statement(struct graph_printer *p, const char *word, const struct value *v)
{
    fprintf(p->to, "%*s%s ", p->indent, "", word);
    put_declaration(p, v);
    if (v->constant)
        put_constant(p, v);
    fputc('\n', p->to);
}

static void put_leaves(struct graph_printer *p)
{
    const struct graph *g = p->g;
    const struct uses *uses = graph_uses(g, p->tmp);
    bool *is_input = NEWN(p->tmp, bool, g->values.n + 1);
    for (int i = 0; i < g->inputs.n; i++) {
        is_input[g->inputs.at[i]->id] = true;
        put_statement(p, "input", g->inputs.at[i]);
    }
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        if (v->constant && !is_input[i] && uses[i].n)
            put_statement(p, "const", v);
    }
}

static void put_ends(struct graph_printer *p)
{
    const struct graph *g = p->g;
    for (int i = 0; i < g->outputs.n; i++) {
        start_line(p, "output ");
        print_name(p, g->outputs.at[i]->name);
        fputc('\n', p->to);
    }
    for (int i = 0; i < g->states.n; i++) {
        start_line(p, "state ");
        put_value_name(p, g->states.at[i].past);
        fputs(" -> ", p->to);
        put_value_name(p, g->states.at[i].present);
        fprintf(p->to, " dim %d\n", g->states.at[i].dim);
    }
}

/* indent: of the graph's statements. */
static void print_graph(const struct graph *g, FILE *to, int indent)
{
    struct graph_printer p = {.g = g, .to = to, .tmp = arena_new(), .indent = indent};
    fputs("graph ", to);
    print_name(&p, g->name);
    fputs(" {\n", to);
    put_header(&p);
    put_facts(&p);
    put_equations(&p);
    put_leaves(&p);
    for (int i = 0; i < g->nodes.n; i++)
        print_node(&p, g->nodes.at[i]);
    put_ends(&p);
    shardings_print(g, to, indent);
    fprintf(to, "%*s}", indent - 2, "");
    arena_free(p.tmp);
}

void graph_print(const struct graph *g, FILE *to)
{
    print_graph(g, to, 2);
    fputc('\n', to);
}
