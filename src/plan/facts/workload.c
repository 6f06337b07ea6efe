/* workload: the sizes that a plan is made for. One plan serves prompt and decode, and they want different ones, so both are planned for.
 *
 * Roles are derived, never read from names. A symbol of a state pair's growing dimension is past. A symbol that is a row of a product
 * and is contracted over between activations (as the key length is) is a sequence. One that is only contracted over, in read-only state,
 * is a context: the prompt that an encoder has read. What data decides is guessed (op_guess_size). All others are as small as their facts
 * and the equations allow. The prompt is the longest one up to 512 under which every equation can still hold (a table of 64 positions caps
 * it); a graph without state has no decode steps. */
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 512, CONTEXT = 1024, STEPS = 256, MOST_SYMBOLS = 64, LARGEST = 512, MOST_TRIES = 1 << 16 };

struct symbol {
    const char *name;
    int64_t lo;
    bool past, sequence, context;
    const struct dim *form, *guess; /* an equation gives it; what it is taken for where data decides it */
};
struct roles {
    struct graph *g;
    VEC(struct symbol) list;
    int of_inputs;
}; /* the first ones are sizes of inputs */

/* ---- symbols and their roles ----------------------------------------------------------------------------------------------------- */

static struct symbol *symbol_find(struct roles *roles, const char *name)
{
    for (int i = 0; i < roles->list.n; i++)
        if (strcmp(roles->list.at[i].name, name) == 0)
            return &roles->list.at[i];
    return NULL;
}

static void add_symbol(void *to, const struct dim *d)
{
    struct roles *roles = to;
    if (!symbol_find(roles, d->name))
        VEC_PUSH(roles->g->arena, &roles->list, ((struct symbol){.name = d->name, .lo = d->lo > 0 ? d->lo : 0}));
}

static void add_all(struct roles *roles)
{
    const struct equation *eq;
    for (int i = 0; i < roles->g->inputs.n; i++)
        for (int d = 0; d < roles->g->inputs.at[i]->type.rank; d++)
            dim_each_symbol(roles->g->inputs.at[i]->type.dim[d], add_symbol, roles);
    roles->of_inputs = roles->list.n;
    for (int i = 0; i < roles->g->values.n; i++)
        for (int d = 0; d < roles->g->values.at[i]->type.rank; d++)
            dim_each_symbol(roles->g->values.at[i]->type.dim[d], add_symbol, roles);
    int n = alg_equations(roles->g->alg, &eq);
    for (int i = 0; i < n; i++) {
        dim_each_symbol(eq[i].left, add_symbol, roles);
        dim_each_symbol(eq[i].right, add_symbol, roles);
    }
}

static void mark_past(struct roles *roles)
{
    for (int i = 0; i < roles->g->states.n; i++) {
        const struct state *s = &roles->g->states.at[i];
        if (!s->past || s->dim < 0)
            continue;
        const struct dim *size = dim_rewrite(roles->g->alg, s->past->type.dim[s->dim]);
        struct symbol *past = size->kind == DIM_SYM ? symbol_find(roles, size->name) : NULL;
        if (past)
            past->past = true;
    }
}

struct marks {
    bool *contracted, *row;
}; /* by symbol */

static void mark(struct roles *roles, bool *at, const struct dim *size)
{
    for (int i = 0; i < roles->list.n; i++)
        if (dim_uses(size, roles->list.at[i].name))
            at[i] = true;
}

static bool contains(const struct rule_operand *operand, int factor)
{
    for (int d = 0; d < operand->rank; d++)
        for (int p = 0; p < operand->dim[d].n; p++)
            for (int i = 0; i < operand->dim[d].part[p].n; i++)
                if (operand->dim[d].part[p].factor[i] == factor)
                    return true;
    return false;
}

static void mark_product(struct roles *roles, const struct node *node, struct marks *marks)
{
    const struct rule *rule = rule_of(roles->g, node);
    for (int f = 0; rule && f < rule->nfactor; f++) { /* the rows of a packed attention are its new keys as well */
        if (rule->factor[f].flags & FACTOR_CONTRACTED)
            mark(roles, marks->contracted, rule->factor[f].size);
        if (contains(&rule->in[0], f) && rule->nout > 0 && contains(&rule->out[0], f))
            mark(roles, marks->row, rule->factor[f].size);
    }
}

static bool in_read_only_state(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->states.n; i++) {
        const struct state *s = &g->states.at[i];
        for (int d = 0; s->past && s->dim < 0 && d < s->past->type.rank; d++)
            if (dim_uses(dim_rewrite(g->alg, s->past->type.dim[d]), name))
                return true;
    }
    return false;
}

static void mark_sequences(struct roles *roles)
{
    struct marks marks = {NEWN(roles->g->arena, bool, roles->list.n), NEWN(roles->g->arena, bool, roles->list.n)};
    for (int i = 0; i < roles->g->nodes.n; i++)
        if (roles->g->nodes.at[i]->op && (roles->g->nodes.at[i]->op->flags & OP_PRODUCT))
            mark_product(roles, roles->g->nodes.at[i], &marks);
    for (int i = 0; i < roles->list.n; i++) {
        struct symbol *s = &roles->list.at[i];
        bool contracted = !s->past && marks.contracted[i];
        s->sequence = contracted && marks.row[i];
        s->context = contracted && !marks.row[i] && in_read_only_state(roles->g, s->name);
    }
}

/* A symbol that an equation was solved for takes its value from the others. */
static void find_forms(struct roles *roles)
{
    for (int i = 0; i < roles->list.n; i++) {
        const struct dim *form = dim_sym(roles->g->alg, roles->list.at[i].name, INT64_MAX);
        if (form->kind != DIM_SYM || strcmp(form->name, roles->list.at[i].name) != 0)
            roles->list.at[i].form = form;
    }
}

static void apply_forms(const struct roles *roles, struct bindings *b)
{
    int64_t value;
    for (int i = 0; i < roles->list.n; i++)
        if (roles->list.at[i].form && dim_eval(roles->list.at[i].form, b, &value))
            bindings_set(roles->g->arena, b, roles->list.at[i].name, value);
}

static void guess_result(struct roles *roles, const struct node *n, int i)
{
    for (int d = 0; d < n->out[i]->type.rank; d++) {
        const struct dim *size = n->out[i]->type.dim[d];
        struct symbol *s = size->kind == DIM_SYM ? symbol_find(roles, size->name) : NULL;
        if (s && !s->guess && s >= &roles->list.at[roles->of_inputs])
            s->guess = op_guess_size(roles->g, n, i, d);
    }
}

/* By the first node that has it. */
static void find_guesses(struct roles *roles)
{
    for (int i = 0; i < roles->g->nodes.n; i++)
        for (int k = 0; k < roles->g->nodes.at[i]->nout; k++)
            if (roles->g->nodes.at[i]->out[k])
                guess_result(roles, roles->g->nodes.at[i], k);
}

static struct roles roles_of(struct graph *g)
{
    struct roles roles = {.g = g};
    add_all(&roles);
    mark_past(&roles);
    mark_sequences(&roles);
    find_forms(&roles);
    find_guesses(&roles);
    return roles;
}

/* ---- sizes that the equations allow -------------------------------------------------------------------------------------------- */

static bool holds(const struct equation *eq, const struct bindings *b)
{
    int64_t left, right;
    return dim_eval(eq->left, b, &left) && dim_eval(eq->right, b, &right) && left == right;
}

static bool all_hold(const struct alg *alg, const struct bindings *b)
{
    const struct equation *eq;
    int n = alg_equations(alg, &eq);
    for (int i = 0; i < n; i++)
        if (!holds(&eq[i], b))
            return false;
    return true;
}

struct search {
    struct roles *roles;
    const struct equation *eq;
    struct bindings *b;
    const char *free[MOST_SYMBOLS];
    int n, tries;
};

/* Tries all values of the free symbols from number i on up to most, at least one of them equal to it. */
static bool try_from(struct search *s, int i, int64_t most, bool reached)
{
    if (i == s->n)
        return s->tries++ < MOST_TRIES && holds(s->eq, s->b);
    int64_t lo = symbol_find(s->roles, s->free[i])->lo;
    if (i + 1 == s->n && !reached && lo < most)
        lo = most;
    for (int64_t k = lo; k <= most && s->tries < MOST_TRIES; k++) {
        bindings_set(s->roles->g->arena, s->b, s->free[i], k);
        if (try_from(s, i + 1, most, reached || k == most))
            return true;
    }
    return false;
}

static void add_free(void *search, const struct dim *d)
{
    struct search *s = search;
    const struct symbol *symbol = symbol_find(s->roles, d->name);
    bool known = !symbol || symbol->past || symbol->sequence || symbol->context || symbol->form;
    for (int i = 0; i < s->n; i++)
        known = known || strcmp(s->free[i], d->name) == 0;
    if (!known && s->n < MOST_SYMBOLS)
        s->free[s->n++] = d->name;
}

/* The smallest values (by the largest of them) of an equation's other symbols under which it holds. */
static bool satisfy(struct roles *roles, const struct equation *eq, struct bindings *b)
{
    struct search s = {.roles = roles, .eq = eq, .b = b};
    dim_each_symbol(eq->left, add_free, &s);
    dim_each_symbol(eq->right, add_free, &s);
    for (int64_t most = 0; s.n > 0 && most <= LARGEST && s.tries < MOST_TRIES; most++)
        if (try_from(&s, 0, most, false))
            return true;
    for (int i = 0; i < s.n; i++)
        bindings_set(roles->g->arena, b, s.free[i], symbol_find(roles, s.free[i])->lo);
    return false;
}

static bool satisfy_all(struct roles *roles, struct bindings *b)
{
    const struct equation *eq;
    int n = alg_equations(roles->g->alg, &eq);
    apply_forms(roles, b);
    for (int i = 0; i < n; i++) {
        if (!holds(&eq[i], b) && !satisfy(roles, &eq[i], b))
            return false;
        apply_forms(roles, b);
    }
    return all_hold(roles->g->alg, b);
}

/* ---- the default ------------------------------------------------------------------------------------------------------------------- */

struct lengths {
    int64_t sequence, past, context;
};

static struct bindings sized(struct roles *roles, struct lengths at)
{
    struct bindings b = {{NULL, 0, 0}};
    int64_t guess;
    for (int i = 0; i < roles->list.n; i++) {
        const struct symbol *s = &roles->list.at[i];
        int64_t k = s->past ? at.past : s->sequence ? at.sequence : s->context ? at.context : s->lo;
        bindings_set(roles->g->arena, &b, s->name, k < s->lo ? s->lo : k);
    }
    for (int i = 0; i < roles->list.n; i++) {
        const struct symbol *s = &roles->list.at[i];
        if (s->guess && !s->sequence && dim_eval(s->guess, &b, &guess))
            bindings_set(roles->g->arena, &b, s->name, guess < s->lo ? s->lo : guess);
    }
    return b;
}

static bool any(struct roles *roles, bool past)
{
    for (int i = 0; i < roles->list.n; i++)
        if (past ? roles->list.at[i].past : roles->list.at[i].sequence)
            return true;
    return false;
}

/* The longest past up to that of at, or else sequence, and context with it, that satisfies the equations; false: none does. */
static bool longest(struct roles *roles, bool past, struct lengths *at, struct bindings *out)
{
    struct lengths most = *at;
    for (int64_t k = past ? most.past : most.sequence; k >= (past ? 0 : 1); k--) {
        *at = past ? (struct lengths){most.sequence, k, most.context} : (struct lengths){k, most.past, k};
        *out = sized(roles, *at);
        if (satisfy_all(roles, out))
            return true;
        if (!any(roles, past))
            break;
    }
    *out = sized(roles, most);
    return false;
}

static const char *describe(struct roles *roles, const struct bindings *b)
{
    const char *text = "";
    for (int i = 0; i < b->list.n; i++) {
        const struct symbol *s = symbol_find(roles, b->list.at[i].name);
        if (!s || !s->guess)
            text = arena_printf(roles->g->arena, "%s%s%s=%lld", text, *text ? "," : "", b->list.at[i].name, (long long)b->list.at[i].value);
    }
    return text;
}

static void add(struct roles *roles, struct plan *plan, struct bindings b, double weight)
{
    struct workload w = {.dims = b, .weight = weight, .text = describe(roles, &b)};
    VEC_PUSH(roles->g->arena, &plan->workloads, w);
}

static void plan_default(struct roles *roles, struct plan *plan)
{
    struct bindings b;
    struct lengths at = {.sequence = PROMPT, .past = 0, .context = PROMPT};
    bool good = longest(roles, false, &at, &b);
    add(roles, plan, b, 1);
    if (any(roles, true)) {
        at = (struct lengths){.sequence = 1, .past = CONTEXT - 1, .context = at.context};
        good = longest(roles, true, &at, &b) && good;
        add(roles, plan, b, STEPS);
    }
    if (!good)
        VEC_PUSH(roles->g->arena, &plan->warnings,
                 "no small sizes satisfy all assumptions of the model: state sizes to plan for with --workload");
}

/* ---- --workload DIM=INT,...[:WEIGHT] ---------------------------------------------------------------------------------------------------
 */

static double weight_of(const char *text, const char *after)
{
    char *end;
    errno = 0;
    double weight = strtod(after, &end);
    if (end == after || *end || errno || !(weight > 0) || weight > 1e12)
        fail_usage("--workload '%s': expected a weight above zero after ':', found '%s'", text, after);
    return weight;
}

static void bind_one(struct roles *roles, const char *text, const char *item, struct bindings *b)
{
    struct binding given;
    if (!binding_parse(roles->g->arena, item, &given))
        fail_usage("--workload '%s': expected DIM=INT, found '%s'", text, item);
    const struct symbol *symbol = symbol_find(roles, given.name);
    if (!symbol)
        fail_usage("--workload '%s': the model has no dimension '%s'", text, given.name);
    if (given.value < symbol->lo)
        fail_usage("--workload '%s': '%s' is %lld, expected at least %lld", text, given.name, (long long)given.value,
                   (long long)symbol->lo);
    bindings_set(roles->g->arena, b, given.name, given.value);
}

static void fix_named(struct roles *roles, const struct bindings *b)
{
    for (int i = 0; i < b->list.n; i++)
        symbol_find(roles, b->list.at[i].name)->sequence = true;
}

/* Sizes that the text does not give are as small as the equations allow. */
static void plan_text(struct roles *roles, struct plan *plan, const char *text)
{
    struct bindings given = {{NULL, 0, 0}};
    char *copy = arena_strdup(roles->g->arena, text), *colon = strrchr(copy, ':'), *save = NULL;
    double weight = colon ? weight_of(text, colon + 1) : 1;
    if (colon)
        *colon = '\0';
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save))
        bind_one(roles, text, item, &given);
    struct roles local = {.g = roles->g};
    for (int i = 0; i < roles->list.n; i++)
        VEC_PUSH(roles->g->arena, &local.list,
                 ((struct symbol){.name = roles->list.at[i].name, .lo = roles->list.at[i].lo, .guess = roles->list.at[i].guess}));
    fix_named(&local, &given);
    find_forms(&local);
    struct bindings b = sized(&local, (struct lengths){0, 0, 0});
    for (int i = 0; i < given.list.n; i++)
        bindings_set(roles->g->arena, &b, given.list.at[i].name, given.list.at[i].value);
    bool kept = satisfy_all(&local, &b);
    for (int i = 0; i < given.list.n; i++)
        kept = kept && *bindings_get(&b, given.list.at[i].name) == given.list.at[i].value;
    if (!kept)
        fail("--workload '%s' contradicts what the model assumes about its sizes (-v shows the assumptions)", text);
    add(roles, plan, b, weight);
}

void plan_workloads(struct graph *g, const struct options *options, struct plan *plan)
{
    struct roles roles = roles_of(g);
    const struct emitted *emitted = options->plan_file ? options->plan_file->emitted : NULL;
    if (emitted) {
        for (int i = 0; i < emitted->workloads.n; i++)
            add(&roles, plan, emitted->workloads.at[i].dims, emitted->workloads.at[i].weight);
        return;
    }
    for (int i = 0; i < options->workload.n; i++)
        plan_text(&roles, plan, options->workload.at[i]);
    if (options->workload.n == 0)
        plan_default(&roles, plan);
}
