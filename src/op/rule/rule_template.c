/* rule_template: rules whose text depends on a node: writes the text for this node, and rule_parse parses it. */
#include "op/rule/rule_condition.h"

#include <ctype.h>
#include <string.h>

enum { MOST_TERMS = 12 };

struct writer {
    struct arena *arena;
    struct graph *graph;
    const struct node *node;
    uint32_t set;
    const struct type *first; /* of the first operand with ... */
    int from, to;             /* the dimensions that this stands for; to < 0: unknown so far */
    VEC(char) out;
};

static void put(struct writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(w->arena, &w->out, text[i]);
}

static void put_text(struct writer *w, const char *text)
{
    put(w, text, strlen(text));
}

/* ---- operands ----------------------------------------------------------------------------------------------------------------------- */

/* One dimension of "...": a name with its number, 1, ~ (1 if dimensions are kept) or - (nothing). */
static void put_numbered(struct writer *w, const char *term, size_t n, int d)
{
    bool kept = *term == '~' && attr_int(w->node, "keepdims") != 0;
    if (*term == '-' || (*term == '~' && !kept))
        return;
    if (kept || *term == '1')
        put_text(w, "1 ");
    else
        put_text(w, arena_printf(w->arena, "%.*s%d ", (int)n, term, d));
}

/* "a..." or "[n a]...": n for dimensions of the set, a for the others. "[n a]..": for the dimensions of v, aligned at the right; 1 where it
 * is 1 and the first operand is not. */
static void put_spread(struct writer *w, const char *term, size_t n, const struct type *type, int dims)
{
    bool both = *term == '[', right = strncmp(term + n - 3, "...", 3) != 0;
    const char *in = both ? term + 1 : term, *space = both ? strchr(term, ' ') : term + n - 3;
    const char *other = both ? space + 1 : term, *end = both ? strchr(term, ']') : space;
    for (int d = right ? w->to - dims : w->from; d < w->to; d++) {
        bool set = w->set >> d & 1, grows = right && dim_equals(type->dim[type->rank - w->to + d], 1) && !dim_equals(w->first->dim[d], 1);
        put_numbered(w, grows ? "1" : set ? in : other, grows ? 1 : (size_t)(set ? space - in : end - other), d);
    }
}

static size_t term_length(const char *at)
{
    size_t n = 0;
    for (int depth = 0; depth || !strchr(" )", at[n]); n++)
        depth += (strchr("([", at[n]) != NULL) - (strchr(")]", at[n]) != NULL);
    return n;
}

static bool is_spread(const char *term, size_t n)
{
    return n > 3 && (strncmp(term + n - 3, "...", 3) == 0 || strncmp(term + n - 3, "]..", 3) == 0);
}

/* Writes "(b a...)" for this value; returns the rest of the text. The first operand with ... determines the dimensions. */
static const char *put_operand(struct writer *w, const char *at, const struct value *v)
{
    const char *term[MOST_TERMS];
    size_t length[MOST_TERMS];
    int n = 0, spread = -1;
    const char *start = at;
    for (at = strchr(at, '(') + 1; *at != ')'; at += strspn(at, " ")) {
        require(n < MOST_TERMS);
        length[n] = term_length(at);
        spread = is_spread(at, length[n]) ? n : spread;
        term[n++] = at;
        at += length[n - 1];
    }
    if (!v) {
        put_text(w, "-");
        return at + 1;
    }
    if (spread >= 0 && w->to < 0) {
        w->first = &v->type;
        w->from = spread;
        w->to = v->type.rank - (n - 1 - spread);
    }
    put(w, start, (size_t)(strchr(start, '(') + 1 - start));
    for (int i = 0; i < n; i++) {
        if (i == spread)
            put_spread(w, term[i], length[i], &v->type, v->type.rank - (n - 1));
        else
            put(w, term[i], length[i]);
        put_text(w, " ");
    }
    put_text(w, ")");
    return at + 1;
}

/* An operand with * stands for all that follow; operands that the node lacks are omitted. */
static const char *put_operands(struct writer *w, const char *at, int n, struct value *const *v)
{
    for (int i = 0; *at == '(' || *at == '+';) {
        const char *before = at;
        int written = w->out.n;
        at = put_operand(w, at, i < n ? v[i] : NULL);
        w->out.n = i < n ? w->out.n : written;
        if (*at == '*' && ++i < n)
            at = before;
        else if (*at == '*')
            at++;
        else
            i++;
    }
    return at;
}

/* ---- notes -------------------------------------------------------------------------------------------------------------------------- */

/* "increasing *", "linear *", "max-linear *": every operand that fits in a mask. */
static void put_all(struct writer *w, const char *note, size_t n)
{
    const char *joint = strncmp(note, "increasing", 10) == 0 ? ", " : "+";
    for (int i = 0; i < w->node->nin && w->node->nin < 32; i++) {
        put(w, i ? joint : note, i ? strlen(joint) : n);
        put_text(w, arena_printf(w->arena, "%d", i));
    }
}

static void put_note(struct writer *w, const char *note, size_t n)
{
    const char *stem = memchr(note, '*', n);
    if (stem && stem[1] == ':') {
        for (int d = w->from; d < w->to; d++)
            if (w->set >> d & 1)
                put_text(w, arena_printf(w->arena, "  %.*s%d%.*s", (int)(stem - note), note, d, (int)(note + n - stem - 1), stem + 1));
    } else if (stem) {
        put_text(w, "  ");
        put_all(w, note, (size_t)(stem - note));
    } else {
        put_text(w, "  ");
        put(w, note, n);
    }
}

/* Notes follow, two spaces apart; some only "if" a condition holds. */
static void put_notes(struct writer *w, const char *at)
{
    for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
        const char *end = strstr(at, "  "), *condition = strstr(at, " if ");
        end = end ? end : at + strlen(at);
        bool conditional = condition && condition < end;
        if (!conditional || rule_conditions_hold(w->graph, w->node, w->set, condition + 4, (size_t)(end - condition) - 4))
            put_note(w, at, (size_t)((conditional ? condition : end) - at));
        at = end;
    }
}

struct rule *rule_template(struct graph *g, const struct node *node, uint32_t set, const char *text)
{
    struct writer w = {.arena = arena_new(), .graph = g, .node = node, .set = set, .to = -1};
    const char *at = put_operands(&w, text, node->nin, node->in);
    at = strstr(at, "->");
    put_text(&w, " -> ");
    at = put_operands(&w, at + 3, node->nout, node->out);
    put_notes(&w, at);
    VEC_PUSH(w.arena, &w.out, 0);
    struct rule *r = rule_parse(g, node, w.out.at);
    arena_free(w.arena);
    return r;
}
