/* rule_parse: parses factor rules (op/rule/rule.h). Makes factors for ".."; sizes come from the types. */
#include "op/rule/rule.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading: tokens ---------------------------------------------------------------------------------------------------------------- */

struct rule_reader {
    struct arena *tmp;
    struct graph *g;
    const struct node *node;
    struct rule *rule;
    const char *text, *at;
};
struct tokens {
    bool present, addend;
    int n;
    const char *dim[MAX_RANK + 1];
}; /* of one operand */

static _Noreturn void misread(const struct rule_reader *in, const char *what)
{
    if (in->node->op && in->node->op->plugin)
        fail("%s: rule '%s': %s at '%s'", node_where(in->g, in->node), in->text, what, in->at);
    bug("%s: rule text '%s': %s at '%s'", node_where(in->g, in->node), in->text, what, in->at);
}

static void skip_rule_space(struct rule_reader *in)
{
    while (*in->at == ' ')
        in->at++;
}

static bool take_text(struct rule_reader *in, const char *token)
{
    size_t n = strlen(token);
    if (strncmp(in->at, token, n) != 0)
        return false;
    in->at += n;
    return true;
}

static const char *take_name(struct rule_reader *in)
{
    const char *start = in->at;
    while (isalnum((unsigned char)*in->at) || *in->at == '_')
        in->at++;
    if (in->at == start)
        misread(in, "expected a name");
    return arena_strndup(in->tmp, start, (size_t)(in->at - start));
}

/* One dimension up to a space outside parentheses, or the operand's end. */
static const char *take_dim(struct rule_reader *in)
{
    const char *start = in->at;
    for (int depth = 0; *in->at; in->at++) {
        depth += *in->at == '(';
        if (depth == 0 && (*in->at == ' ' || *in->at == ')'))
            break;
        depth -= *in->at == ')';
    }
    return arena_strndup(in->tmp, start, (size_t)(in->at - start));
}

static struct tokens take_operand(struct rule_reader *in)
{
    struct tokens t = {.present = !take_text(in, "-")};
    if (!t.present)
        return t;
    t.addend = take_text(in, "+");
    if (!take_text(in, "("))
        misread(in, "expected (");
    for (skip_rule_space(in); !take_text(in, ")"); skip_rule_space(in)) {
        if (!*in->at || t.n > MAX_RANK)
            misread(in, "expected )");
        t.dim[t.n++] = take_dim(in);
    }
    return t;
}

static void take_operands(struct rule_reader *in, int n, struct tokens *out)
{
    for (int i = 0; i < n; i++) {
        skip_rule_space(in);
        out[i] = take_operand(in);
    }
    skip_rule_space(in);
}

/* ---- reading: factors -------------------------------------------------------------------------------------------------------- */

static int named_factor_of(struct rule_reader *in, const char *name, unsigned flags)
{
    for (int f = 0; f < in->rule->nfactor; f++)
        if (strcmp(in->rule->factor[f].name, name) == 0) {
            in->rule->factor[f].flags |= flags;
            return f;
        }
    int f = rule_factor(in->g, in->rule, name, dim_int(in->g->alg, 0), flags);
    in->rule->factor[f].size = NULL;
    return f;
}

static int known_factor(struct rule_reader *in)
{
    const char *name = take_name(in);
    int before = in->rule->nfactor, f = named_factor_of(in, name, 0);
    if (f == before)
        misread(in, "no such factor");
    return f;
}

static unsigned take_marks(struct rule_reader *in)
{
    unsigned flags = take_text(in, "!") ? FACTOR_REPLICATED : 0;
    return take_text(in, "@") ? flags | FACTOR_POSITION : flags;
}

static void take_term(struct rule_reader *in, struct rule_part *part)
{
    if (take_text(in, "1"))
        return;
    unsigned flags = take_marks(in);
    if (part->n == MAX_RANK)
        misread(in, "too many factors");
    part->factor[part->n++] = named_factor_of(in, take_name(in), flags);
}

static struct rule_part take_part(struct rule_reader *in)
{
    struct rule_part part = {0};
    if (!take_text(in, "(")) {
        take_term(in, &part);
        return part;
    }
    for (skip_rule_space(in); !take_text(in, ")"); skip_rule_space(in))
        take_term(in, &part);
    return part;
}

/* A reader of another piece of text; shares the factors. */
static struct rule_reader inner_reader(const struct rule_reader *in, const char *text)
{
    return (struct rule_reader){in->tmp, in->g, in->node, in->rule, in->text, text};
}

static int64_t take_number(struct rule_reader *in, const char *before)
{
    char *end;
    if (!take_text(in, before))
        misread(in, before);
    long long k = strtoll(in->at, &end, 10);
    if (end == in->at)
        misread(in, "expected a number");
    in->at = end;
    return k;
}

/* "[reach/stride-pad]", "[reach/stride:per-pad]" */
static const struct sliding *take_window(struct rule_reader *in, const struct dim *size)
{
    struct sliding *w = NEW(in->g->arena, struct sliding);
    w->reach = take_number(in, "[");
    w->stride = take_number(in, "/");
    w->per = *in->at == ':' ? take_number(in, ":") : 1;
    w->pad = take_number(in, "-");
    w->size = size;
    if (!take_text(in, "]"))
        misread(in, "expected ]");
    return w;
}

static struct rule_dim read_rule_dim(const struct rule_reader *in, const char *text, const struct dim *size)
{
    struct rule_reader r = inner_reader(in, text);
    struct rule_dim dim = {0};
    VEC(struct rule_part) parts = {0};
    do
        VEC_PUSH(in->g->arena, &parts, take_part(&r));
    while (take_text(&r, "|"));
    if (*r.at == '[')
        dim.window = take_window(&r, size);
    if (*r.at)
        misread(&r, "a dimension does not end");
    dim.part = parts.at;
    dim.n = parts.n;
    return dim;
}

/* ---- reading: "b.." ---------------------------------------------------------------------------------------------------------- */

static bool is_dotted(const char *dim)
{
    size_t n = strlen(dim);
    return n > 2 && strcmp(dim + n - 2, "..") == 0;
}

static int dotted_at(const struct tokens *t)
{
    for (int d = 0; d < t->n; d++)
        if (is_dotted(t->dim[d]))
            return d;
    return -1;
}

/* Operand i, or a result after them. */
static struct rule_operand *operand_at(const struct rule *r, int i)
{
    return i < r->nin ? &r->in[i] : &r->out[i - r->nin];
}

static const struct value *value_at(const struct node *node, int i)
{
    return i < node->nin ? node->in[i] : node->out[i - node->nin];
}

/* The most dimensions that a dotted name stands for in any operand. */
static int most_dotted(const char *name, const struct rule *r, const struct tokens *t)
{
    int most = 0;
    for (int i = 0; i < r->nin + r->nout; i++) {
        int at = dotted_at(&t[i]);
        int count = operand_at(r, i)->rank - (t[i].n - 1);
        if (at >= 0 && strcmp(t[i].dim[at], name) == 0 && count > most)
            most = count;
    }
    return most;
}

static struct rule_dim dotted_dim(struct rule_reader *in, const char *name, int index, const struct dim *size)
{
    struct rule_dim dim = {.n = 1, .part = NEW(in->g->arena, struct rule_part)};
    const char *stem = name;
    unsigned flags = 0;
    if (*stem == '!' || *stem == '@')
        flags = *stem++ == '!' ? FACTOR_REPLICATED : FACTOR_POSITION;
    if (dim_equals(size, 1))
        return dim;
    const char *full = arena_printf(in->tmp, "%.*s%d", (int)strlen(stem) - 2, stem, index);
    dim.part->factor[dim.part->n++] = named_factor_of(in, full, flags);
    return dim;
}

static void place_operand(struct rule_reader *in, const struct tokens *t, struct rule_operand *operand, const struct value *value, int most)
{
    if (t->present != operand->present)
        misread(in, "operands present differ from the node's");
    if (!t->present)
        return;
    operand->addend = t->addend;
    int dotted = dotted_at(t), spread = dotted < 0 ? 0 : operand->rank - (t->n - 1), d = 0;
    if (spread < 0 || (dotted < 0 && t->n != operand->rank))
        misread(in, "an operand's dimensions differ from its type's");
    for (int k = 0; k < t->n; k++) {
        if (k != dotted) {
            operand->dim[d] = read_rule_dim(in, t->dim[k], value->type.dim[d]);
            d++;
            continue;
        }
        for (int i = 0; i < spread; i++, d++)
            operand->dim[d] = dotted_dim(in, t->dim[k], most - spread + i, value->type.dim[d]);
    }
}

static void place_operands(struct rule_reader *in, const struct tokens *t)
{
    const char *name = NULL; /* of the last dotted dimensions; many operands may have the same */
    for (int i = 0, most = 0; i < in->rule->nin + in->rule->nout; i++) {
        int dotted = dotted_at(&t[i]);
        if (dotted >= 0 && (!name || strcmp(name, t[i].dim[dotted]))) {
            name = t[i].dim[dotted];
            most = most_dotted(name, in->rule, t);
        }
        place_operand(in, &t[i], operand_at(in->rule, i), value_at(in->node, i), most);
    }
}

/* ---- reading: sizes from the types ------------------------------------------------------------------------------------------- */

static int unsized(const struct rule *r, const struct rule_part *part, int *which)
{
    int n = 0;
    for (int i = 0; i < part->n; i++)
        if (!r->factor[part->factor[i]].size) {
            *which = part->factor[i];
            n++;
        }
    return n;
}

/* Product of the factors of the part that have sizes. */
static const struct dim *sized_factor(struct graph *g, const struct rule *r, const struct rule_part *part)
{
    const struct dim *size = dim_int(g->alg, 1);
    for (int i = 0; i < part->n; i++)
        if (r->factor[part->factor[i]].size)
            size = dim_mul(g->alg, size, r->factor[part->factor[i]].size);
    return size;
}

/* Gives the only factor of the dimension without a size the remaining size; false: nothing to do. */
static bool size_from(struct rule_reader *in, const struct rule_dim *dim, const struct dim *total)
{
    int missing = 0, which = -1, part = -1;
    const struct dim *rest = dim_rewrite(in->g->alg, total);
    for (int p = 0; p < dim->n; p++) {
        int n = unsized(in->rule, &dim->part[p], &which);
        missing += n;
        if (n > 0)
            part = p;
        else
            rest = dim_sub(in->g->alg, rest, sized_factor(in->g, in->rule, &dim->part[p]));
    }
    if (missing != 1)
        return false;
    const struct dim *size = dim_quotient(in->g->alg, rest, sized_factor(in->g, in->rule, &dim->part[part]));
    in->rule->factor[which].size = size;
    return size != NULL;
}

static bool sizes_once(struct rule_reader *in)
{
    struct rule *r = in->rule;
    bool changed = false;
    for (int i = 0; i < r->nin + r->nout; i++) {
        const struct rule_operand *o = operand_at(r, i);
        const struct value *value = value_at(in->node, i);
        for (int d = 0; o->present && d < o->rank; d++)
            changed |= !o->dim[d].window && size_from(in, &o->dim[d], value->type.dim[d]);
    }
    return changed;
}

static void find_sizes(struct rule_reader *in)
{
    while (sizes_once(in))
        continue;
    for (int f = 0; f < in->rule->nfactor; f++)
        if (!in->rule->factor[f].size && in->node->op && in->node->op->plugin)
            fail("%s: rule '%s': no type says the size of factor %s", node_where(in->g, in->node), in->text, in->rule->factor[f].name);
        else if (!in->rule->factor[f].size)
            bug("%s: rule text '%s': no type says the size of factor %s", node_where(in->g, in->node), in->text, in->rule->factor[f].name);
}

/* ---- reading: notes ---------------------------------------------------------------------------------------------------------- */

static unsigned flag_of(const char *word)
{
    int i = named_find(word, RULE_FLAGS, &rule_flag->name, sizeof *rule_flag);
    return i < 0 ? 0 : rule_flag[i].flag;
}

static void note_size(struct rule_reader *in, struct factor *factor)
{
    const char *error, *end = strstr(in->at, "  ");
    size_t n = end ? (size_t)(end - in->at) : strlen(in->at);
    factor->size = dim_parse(in->g->alg, arena_strndup(in->tmp, in->at, n), 0, &error);
    if (!factor->size)
        misread(in, error);
    in->at += n;
}

static bool at_note_end(const struct rule_reader *in)
{
    return !*in->at || strncmp(in->at, "  ", 2) == 0;
}

static void factor_note(struct rule_reader *in, int f)
{
    while (!at_note_end(in) && take_text(in, " ")) {
        struct factor *factor = &in->rule->factor[f];
        if (take_text(in, "size ")) {
            note_size(in, factor);
            continue;
        }
        const char *word = take_name(in);
        unsigned flag = flag_of(word);
        factor->flags |= flag;
        if (!flag && (factor->red = redop_parse(word)) == RED_NONE)
            misread(in, "an unknown property");
    }
}

static uint32_t take_operand_bit(struct rule_reader *in)
{
    char *end;
    skip_rule_space(in);
    long k = strtol(in->at, &end, 10);
    if (end == in->at || k < 0 || k >= in->rule->nin || k > 31)
        misread(in, "expected an operand");
    in->at = end;
    return UINT32_C(1) << k;
}

static uint32_t take_set(struct rule_reader *in, const char *joint)
{
    uint32_t set = 0;
    do
        set |= take_operand_bit(in);
    while (take_text(in, joint));
    return set;
}

static void extremum_note(struct rule_reader *in, const char *which)
{
    in->rule->extremum = redop_parse(which);
    in->rule->extremal = take_set(in, "+");
}

static void linear_note(struct rule_reader *in)
{
    uint32_t set = 0;
    do {
        set |= take_operand_bit(in);
        if (take_text(in, "+"))
            continue;
        rule_linear(in->rule, set);
        set = 0;
        if (!take_text(in, ","))
            return;
    } while (*in->at);
}

static void names_note(struct rule_reader *in, int most, int *n, int *out)
{
    for (*n = 0; !at_note_end(in) && take_text(in, " ") && *n < most;)
        out[(*n)++] = known_factor(in);
}

static void size_note(struct rule_reader *in, const char *attr)
{
    if (in->rule->nsize == (int)(sizeof in->rule->size / sizeof *in->rule->size))
        misread(in, "too many size attributes");
    in->rule->size[in->rule->nsize++] = (struct rule_size){.attr = arena_strdup(in->g->arena, attr), .part = take_part(in)};
}

static void query_note(struct rule_reader *in)
{
    int n, product[2];
    names_note(in, 2, &n, product);
    if (n != 2)
        misread(in, "expected two factors");
    in->rule->query_outer = product[0];
    in->rule->query_inner = product[1];
}

static void take_note(struct rule_reader *in)
{
    const char *start = in->at, *word = take_name(in);
    if (take_text(in, " = ")) {
        size_note(in, word);
    } else if (take_text(in, ":")) {
        in->at = start;
        int f = known_factor(in);
        if (!take_text(in, ":"))
            misread(in, "expected :");
        factor_note(in, f);
    } else if (strcmp(word, "linear") == 0) {
        linear_note(in);
    } else if (strcmp(word, "moves") == 0) {
        in->rule->moves = true;
    } else if (strcmp(word, "increasing") == 0) {
        in->rule->increasing |= take_set(in, ",");
    } else if (strcmp(word, "decreasing") == 0) {
        in->rule->decreasing |= take_set(in, ",");
    } else if (take_text(in, "-linear")) {
        extremum_note(in, word);
    } else if (strcmp(word, "group") == 0) {
        names_note(in, (int)(sizeof in->rule->group / sizeof *in->rule->group), &in->rule->ngroup, in->rule->group);
    } else if (strcmp(word, "query") == 0) {
        query_note(in);
    } else {
        misread(in, "an unknown note");
    }
    if (!at_note_end(in))
        misread(in, "a note does not end");
    skip_rule_space(in);
}

/* ---- reading ----------------------------------------------------------------------------------------------------------------- */

/* Before the first note, as between two. */
static void check_blanks(const struct rule_reader *in)
{
    if (*in->at && (in->at - in->text < 2 || in->at[-1] != ' ' || in->at[-2] != ' '))
        misread(in, "expected two blanks before a note");
}

struct rule *rule_parse(struct graph *g, const struct node *node, const char *text)
{
    struct rule_reader in = {arena_new(), g, node, rule_new(g, node), text, text};
    struct rule *r = in.rule;
    struct tokens *t = NEWN(in.tmp, struct tokens, r->nin + r->nout + 1);
    take_operands(&in, r->nin, t);
    if (!take_text(&in, "->"))
        misread(&in, "expected ->");
    take_operands(&in, r->nout, t + r->nin);
    place_operands(&in, t);
    check_blanks(&in);
    while (*in.at)
        take_note(&in);
    find_sizes(&in);
    arena_free(in.tmp);
    return r;
}
