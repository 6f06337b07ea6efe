/* workload: the sizes that a plan is made for. One plan serves prefill and decode, whose sizes differ, so tpc plans for both.
 *
 * Roles of symbols come from dim_roles.c. Data-dependent sizes are guessed (op_guess_size). Other symbols are as small as their facts and
 * the equations allow. The prompt is the longest one up to 512 for which every equation can hold and position tables have rows; a graph
 * without state has no decode steps. A recurrent net has as many steps as the prompt, audio lasts a second at 16 kHz. A picture has the
 * size that classifiers are trained for, or if outputs grow with it, the size that detectors use. Both are multiples of all usual strides;
 * so is the smaller size if equations allow neither. */
#include "op/analysis/analysis.h"
#include "plan/facts/facts.h"
#include "plan/input/input.h"
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PROMPT = 512, CONTEXT = 1024, STEPS = 256, SECOND = 16000, CLASSIFIED = 224, DETECTED = 640, TRAINING_BATCH = 8 };
/* Limits of a search for sizes: symbols of an equation, the largest size, tries per equation and in total. */
enum { MOST_SYMBOLS = 64, LARGEST = 512, MOST_TRIES = 1 << 16, ALL_TRIES = 1 << 19 };

struct symbol {
    const char *name;
    int64_t least, lo; /* least size to plan for; least possible size */
    bool of_input, leading, of_output;
    enum symbol_kind kind;
    const struct dim *form, *guess; /* an equation gives it; the guess if data decides it */
};
struct symbol_sizes {
    struct graph *g;
    VEC(struct symbol) list;
    struct name_index index;
    int tries;                  /* of all searches */
    uint64_t *failed;           /* by equation: hash of the sizes at which a search failed; 0: none */
    bool smallest;              /* steps and sides are minimal: usual ones contradict the equations */
    struct index_limits limits; /* for the default */
};

static struct symbol *symbol_find(const struct symbol_sizes *all, const char *name)
{
    int at = name_index_find(&all->index, name);
    return at >= 0 ? &all->list.at[at] : NULL;
}

static void symbol_add(struct symbol_sizes *all, struct symbol s)
{
    name_index_put(all->g->arena, &all->index, s.name, all->list.n);
    VEC_PUSH(all->g->arena, &all->list, s);
}

static void symbols_ready(struct symbol_sizes *all)
{
    const struct equation *eq;
    all->failed = NEWN(all->g->arena, uint64_t, alg_equations(all->g->alg, &eq) + 1);
}

/* Finds symbols that an equation defines in terms of others. */
static void find_forms(struct symbol_sizes *all)
{
    for (int i = 0; i < all->list.n; i++) {
        const struct dim *form = dim_sym(all->g->alg, all->list.at[i].name, INT64_MAX);
        if (form->kind != DIM_SYM || strcmp(form->name, all->list.at[i].name) != 0)
            all->list.at[i].form = form;
    }
}

/* False: they already have these values. */
static bool apply_forms(const struct symbol_sizes *all, struct bindings *b)
{
    int64_t value;
    bool changed = false;
    EACH (const struct symbol, s, all->list) {
        if (!s->form || !dim_eval(s->form, b, &value))
            continue;
        const int64_t *before = bindings_get(b, s->name);
        changed |= !before || *before != value;
        bindings_set(all->g->arena, b, s->name, value);
    }
    return changed;
}

static void guess_result(struct symbol_sizes *all, const struct node *n, int i)
{
    for (int d = 0; d < n->out[i]->type.rank; d++) {
        const struct dim *size = n->out[i]->type.dim[d];
        struct symbol *s = size->kind == DIM_SYM ? symbol_find(all, size->name) : NULL;
        if (s && !s->guess && !s->of_input)
            s->guess = op_guess_size(all->g, n, i, d);
    }
}

/* Finds guesses, from the first node with each size. */
static void find_guesses(struct symbol_sizes *all)
{
    for (int i = 0; i < all->g->nodes.n; i++)
        for (int k = 0; k < all->g->nodes.at[i]->nout; k++)
            if (all->g->nodes.at[i]->out[k])
                guess_result(all, all->g->nodes.at[i], k);
}

/* A training step reads a batch, and rows of labels. */
static void set_training_roles(struct symbol_sizes *all)
{
    const struct value *labels = all->g->trained.n ? graph_find(all->g, "labels") : NULL;
    for (int d = 0; labels && d < labels->type.rank; d++) {
        const struct dim *size = labels->type.dim[d];
        struct symbol *s = size->kind == DIM_SYM ? symbol_find(all, size->name) : NULL;
        if (!s)
            continue;
        s->kind = d == 0 ? SYMBOL_OTHER : SYMBOL_SEQUENCE;
        s->least = d == 0 && s->least < TRAINING_BATCH ? TRAINING_BATCH : s->least;
    }
}

static struct symbol_sizes symbol_sizes_of(struct graph *g)
{
    const struct dim_roles *roles = dim_symbol_roles(g->arena, g);
    struct symbol_sizes all = {.g = g};
    EACH (const struct symbol_role, s, roles->symbols) {
        int64_t least = s->usual > s->lo ? s->usual : s->lo;
        symbol_add(&all, (struct symbol){s->name, least, s->lo, s->of_input, s->leading, s->of_output, s->kind, NULL, NULL});
    }
    symbols_ready(&all);
    find_forms(&all);
    find_guesses(&all);
    return all;
}

/* ---- sizes that the equations allow -------------------------------------------------------------------------------------------- */

static bool equation_holds(const struct equation *eq, const struct bindings *b)
{
    int64_t left, right;
    return dim_eval(eq->left, b, &left) && dim_eval(eq->right, b, &right) && left == right;
}

static bool all_hold(const struct alg *alg, const struct bindings *b)
{
    const struct equation *eq;
    int n = alg_equations(alg, &eq);
    for (int i = 0; i < n; i++)
        if (!equation_holds(&eq[i], b))
            return false;
    return true;
}

struct size_search {
    struct symbol_sizes *all;
    const struct equation *eq;
    struct bindings *b;
    const char *free[MOST_SYMBOLS];
    int n, tries;
};

/* Tries all values up to `most` of the free symbols from i on, at least one of them equal to `most`. */
static bool try_from(struct size_search *s, int i, int64_t most, bool reached)
{
    if (i == s->n)
        return s->tries++ < MOST_TRIES && s->all->tries++ < ALL_TRIES && equation_holds(s->eq, s->b);
    int64_t least = symbol_find(s->all, s->free[i])->least;
    if (i + 1 == s->n && !reached && least < most)
        least = most;
    for (int64_t k = least; k <= most && s->tries < MOST_TRIES && s->all->tries < ALL_TRIES; k++) {
        bindings_set(s->all->g->arena, s->b, s->free[i], k);
        if (try_from(s, i + 1, most, reached || k == most))
            return true;
    }
    return false;
}

/* Whether a search may choose the symbol's size. */
static bool is_free(const struct symbol_sizes *all, const struct symbol *s)
{
    return s->kind == SYMBOL_OTHER || (s->kind >= SYMBOL_STEPS && all->smallest);
}

static void add_free(void *size_search, const struct dim *d)
{
    struct size_search *s = size_search;
    const struct symbol *symbol = symbol_find(s->all, d->name);
    bool known = !symbol || !is_free(s->all, symbol) || symbol->form;
    for (int i = 0; i < s->n; i++)
        known = known || strcmp(s->free[i], d->name) == 0;
    if (!known && s->n < MOST_SYMBOLS)
        s->free[s->n++] = d->name;
}

struct size_hash {
    const struct size_search *s;
    uint64_t hash;
};

static void hash_size(void *size_hash, const struct dim *d)
{
    struct size_hash *h = size_hash;
    const int64_t *value = bindings_get(h->s->b, d->name);
    for (int i = 0; i < h->s->n; i++)
        if (strcmp(h->s->free[i], d->name) == 0)
            return;
    h->hash = (h->hash ^ (uint64_t)(value ? *value : -1)) * 0x9E3779B97F4A7C15u;
    h->hash ^= h->hash >> 29;
}

/* Hash of the sizes that a search may not change. */
static uint64_t hash_given(const struct size_search *s)
{
    struct size_hash h = {s, 1};
    dim_each_symbol(s->eq->left, hash_size, &h);
    dim_each_symbol(s->eq->right, hash_size, &h);
    return h.hash | 1;
}

/* Finds the smallest values (by their maximum) of an equation's other symbols for which it holds. */
static bool satisfy(struct symbol_sizes *all, const struct equation *eq, struct bindings *b, uint64_t *failed)
{
    struct size_search s = {.all = all, .eq = eq, .b = b};
    dim_each_symbol(eq->left, add_free, &s);
    dim_each_symbol(eq->right, add_free, &s);
    uint64_t given = hash_given(&s);
    bool open = s.n > 0 && *failed != given;
    for (int64_t most = 0; open && most <= LARGEST && s.tries < MOST_TRIES && all->tries < ALL_TRIES; most++)
        if (try_from(&s, 0, most, false))
            return true;
    *failed = given;
    for (int i = 0; i < s.n; i++)
        bindings_set(all->g->arena, b, s.free[i], symbol_find(all, s.free[i])->least);
    return false;
}

static bool satisfy_all(struct symbol_sizes *all, struct bindings *b)
{
    const struct equation *eq;
    int n = alg_equations(all->g->alg, &eq);
    bool open = apply_forms(all, b);
    for (int i = 0; i < n; i++) {
        bool holds = equation_holds(&eq[i], b);
        if (!holds && !satisfy(all, &eq[i], b, &all->failed[i]))
            return false;
        open = (open || !holds) && apply_forms(all, b);
    }
    return all_hold(all->g->alg, b);
}

/* ---- the default ------------------------------------------------------------------------------------------------------------------- */

struct lengths {
    int64_t sequence, past, context;
};

/* The usual size of a symbol. */
static int64_t usual_size(const struct symbol_sizes *all, const struct symbol *s, struct lengths at)
{
    switch (s->kind) {
    case SYMBOL_PAST: return at.past;
    case SYMBOL_SEQUENCE: return at.sequence;
    case SYMBOL_CONTEXT: return at.context;
    case SYMBOL_STEPS: return all->smallest ? s->least : PROMPT;
    case SYMBOL_SAMPLES: return all->smallest ? s->least : SECOND;
    case SYMBOL_SIDE: return all->smallest ? s->least : s->of_output ? DETECTED : CLASSIFIED;
    default: return s->least;
    }
}

static struct bindings sizes_at(struct symbol_sizes *all, struct lengths at)
{
    struct bindings b = {0};
    int64_t guess;
    EACH (const struct symbol, s, all->list) {
        int64_t k = usual_size(all, s, at);
        bindings_set(all->g->arena, &b, s->name, k < s->least ? s->least : k);
    }
    EACH (const struct symbol, s, all->list) {
        if (s->guess && s->kind != SYMBOL_SEQUENCE && dim_eval(s->guess, &b, &guess))
            bindings_set(all->g->arena, &b, s->name, guess < s->least ? s->least : guess);
    }
    return b;
}

static bool any_of_kind(struct symbol_sizes *all, bool past)
{
    for (int i = 0; i < all->list.n; i++)
        if (all->list.at[i].kind == (past ? SYMBOL_PAST : SYMBOL_SEQUENCE))
            return true;
    return false;
}

/* Gives a table whose size nothing else determines as many rows as are read. */
static bool enlarge_table(struct symbol_sizes *all, const struct index_limit *l, struct bindings *b)
{
    const char *name[MOST_SYMBOLS];
    int n = dim_symbols(l->rows, name, MOST_SYMBOLS);
    int64_t last;
    for (int i = 0; i < n && i < MOST_SYMBOLS && dim_eval(l->last, b, &last) && last < INT32_MAX; i++) {
        const struct symbol *s = symbol_find(all, name[i]);
        if (!s || s->form || s->leading || s->kind != SYMBOL_OTHER || *bindings_get(b, s->name) > last)
            continue;
        bindings_set(all->g->arena, b, s->name, last + 1);
        return satisfy_all(all, b);
    }
    return false;
}

static bool fit_tables(struct symbol_sizes *all, struct bindings *b)
{
    enum { MOST_TABLES = 16 };
    const struct index_limit *broken;
    for (int i = 0; i < MOST_TABLES; i++) {
        if (index_limits_hold(&all->limits, b, &broken))
            return true;
        if (!enlarge_table(all, broken, b))
            return false;
    }
    return false;
}

/* The longest past, or else sequence with context, up to the one in `at`, that satisfies the equations; false: none does. */
static bool longest_length(struct symbol_sizes *all, bool past, struct lengths *at, struct bindings *out)
{
    struct lengths most = *at;
    for (int64_t k = past ? most.past : most.sequence; k >= (past ? 0 : 1); k--) {
        *at = past ? (struct lengths){most.sequence, k, most.context} : (struct lengths){k, most.past, k};
        *out = sizes_at(all, *at);
        if (satisfy_all(all, out) && fit_tables(all, out))
            return true;
        if (!any_of_kind(all, past))
            break;
    }
    *out = sizes_at(all, most);
    return false;
}

static const char *bindings_text(struct symbol_sizes *all, const struct bindings *b)
{
    enum { MOST_NAMED = 16 };
    const char *text = "";
    int named = 0;
    for (int i = 0; i < b->list.n; i++) {
        const struct symbol *s = symbol_find(all, b->list.at[i].name);
        if ((!s || s->of_input) && ++named <= MOST_NAMED)
            text = arena_printf(all->g->arena, "%s%s%s=%lld", text, *text ? "," : "", b->list.at[i].name, (long long)b->list.at[i].value);
    }
    return named > MOST_NAMED ? arena_printf(all->g->arena, "%s, and %d more", text, named - MOST_NAMED) : text;
}

/* The input sizes that were not given: "n, rows"; "sizes": none is given; NULL: all are. */
static const char *assumed_text(const struct symbol_sizes *all, const struct bindings *given)
{
    enum { MOST_NAMED = 8 };
    const char *text = NULL;
    int named = 0, open = 0;
    EACH (const struct symbol, s, all->list) {
        open += s->of_input && !s->form;
        if (!s->of_input || s->form || bindings_get(given, s->name))
            continue;
        if (++named <= MOST_NAMED)
            text = arena_printf(all->g->arena, "%s%s%s", text ? text : "", text ? ", " : "", s->name);
    }
    return named && named == open ? "sizes"
        : named > MOST_NAMED      ? arena_printf(all->g->arena, "%s and %d more", text, named - MOST_NAMED)
                                  : text;
}

static void add_workload(struct symbol_sizes *all, struct plan *plan, struct bindings b, double weight, const char *assumed)
{
    struct workload w = {.dims = b, .weight = weight, .text = bindings_text(all, &b), .assumed = assumed};
    VEC_PUSH(all->g->arena, &plan->workloads, w);
}

static const char *names_of(const struct symbol_sizes *all, enum symbol_kind kind)
{
    enum { MOST_NAMED = 8 };
    const char *names = "";
    int n = 0;
    for (int i = 0; i < all->list.n && n < MOST_NAMED; i++) {
        const struct symbol *s = &all->list.at[i];
        bool asked = s->kind == kind && s->of_input && !s->form && !(kind == SYMBOL_OTHER && s->leading);
        n += asked;
        if (asked)
            names = arena_printf(all->g->arena, "%s%s'%s'", names, *names ? ", " : "", s->name);
    }
    return names;
}

static void note_kind(const struct symbol_sizes *all, struct plan *plan, enum symbol_kind kind, const char *taken)
{
    const char *names = names_of(all, kind);
    if (*names)
        VEC_PUSH(all->g->arena, &plan->warnings,
                 arena_printf(all->g->arena, "taken for %s: %s (--workload gives other sizes)", taken, names));
}

/* Notes assumed sizes whose purpose no attention shows. */
static void note_assumed(const struct symbol_sizes *all, struct plan *plan)
{
    if (!all->smallest) {
        note_kind(all, plan, SYMBOL_SIDE, "sides of a picture");
        note_kind(all, plan, SYMBOL_SAMPLES, "samples of sound, a second at 16 kHz");
    }
    note_kind(all, plan, SYMBOL_OTHER, "as small as can be, because nothing tells what they count");
}

/* Rounds a side to a multiple of usual strides if the equations allow it: lines of text are 48 pixels high, not 33. */
static void round_sides(struct symbol_sizes *all, struct bindings *b)
{
    EACH (const struct symbol, s, all->list) {
        bool open = s->kind == SYMBOL_SIDE && !s->form, holds = false;
        int64_t least = open ? *bindings_get(b, s->name) : 0;
        for (int64_t stride = 16; open && !holds && stride > 0; stride /= 2) {
            bindings_set(all->g->arena, b, s->name, (least + stride - 1) / stride * stride);
            (void)apply_forms(all, b);
            holds = all_hold(all->g->alg, b);
        }
    }
}

/* Tries usual sizes first. */
static bool find_prompt(struct symbol_sizes *all, int64_t prompt, struct lengths *at, struct bindings *b)
{
    bool good = false;
    for (int pass = 0; pass < 2 && !good; pass++) {
        all->smallest = pass > 0;
        *at = (struct lengths){.sequence = prompt, .past = 0, .context = prompt};
        good = longest_length(all, false, at, b);
    }
    if (good && all->smallest)
        round_sides(all, b);
    return good;
}

/* Tables with fewer rows are of token types, such as first and second sentence. */
enum { LEAST_POSITIONS = 16 };

/* Whether an input gives each token a row of a table other than the vocabulary. */
static bool is_positions(const struct graph *g, const struct value_use *use, int tokens, int i)
{
    return tokens >= 0 && i != tokens && use[i].rows >= LEAST_POSITIONS && type_eq(&g->inputs.at[i]->type, &g->inputs.at[tokens]->type);
}

/* Rows of the shortest position table that is read by token positions, or by an input of positions; -1: none. */
static int64_t position_rows(struct graph *g)
{
    struct arena *tmp = arena_new();
    const struct value_use *use = op_value_uses(tmp, g);
    int tokens = op_tokens_input(use, g->inputs.n);
    int64_t rows = op_position_tables(g, NULL).rows;
    for (int i = 0; i < g->inputs.n; i++) {
        int64_t more = is_positions(g, use, tokens, i) ? use[i].rows : -1;
        rows = more >= 0 && (rows < 0 || more < rows) ? more : rows;
    }
    arena_free(tmp);
    return rows;
}

/* The longest text of the model in tokens: by its tables, and by the configuration next to it. -1: unknown. */
static int64_t longest_text(struct symbol_sizes *all, const char *model, struct plan *plan)
{
    const enum config_side side = any_of_kind(all, true) ? CONFIG_DECODER : CONFIG_ENCODER;
    const struct config_limit none = {.tokens = -1},
                              c = model ? model_config_limit(all->g->arena, path_dir(all->g->arena, model), side) : none;
    int64_t rows = position_rows(all->g);
    if (c.note)
        VEC_PUSH(all->g->arena, &plan->warnings, c.note);
    return c.tokens > 0 && (rows < 0 || c.tokens < rows) ? c.tokens : rows;
}

static void plan_default(struct symbol_sizes *all, struct plan *plan, const char *model)
{
    struct bindings b;
    struct lengths at;
    int64_t rows = longest_text(all, model, plan);
    all->limits = op_size_limits(all->g->arena, all->g);
    bool good = find_prompt(all, rows > 0 && rows < PROMPT ? rows : PROMPT, &at, &b);
    const char *assumed = assumed_text(all, &(struct bindings){0});
    note_assumed(all, plan);
    add_workload(all, plan, b, 1, assumed);
    if (any_of_kind(all, true)) {
        int64_t context = rows > 1 && rows < CONTEXT ? rows : CONTEXT;
        at = (struct lengths){.sequence = 1, .past = context - 1, .context = at.context};
        good = longest_length(all, true, &at, &b) && good;
        add_workload(all, plan, b, STEPS, assumed);
    }
    if (!good)
        VEC_PUSH(all->g->arena, &plan->warnings,
                 "no small sizes satisfy all assumptions of the model: state sizes to plan for with --workload");
}

/* ---- --workload DIM=INT,...[:WEIGHT] ----------------------------------------------------------------------------------------- */

static double weight_of(const char *text, const char *after)
{
    char *end;
    errno = 0;
    double weight = strtod(after, &end);
    if (end == after || *end || errno || !(weight > 0) || weight > 1e12)
        fail_usage("--workload '%s': expected a weight above zero after ':', found '%s'", text, after);
    return weight;
}

static void bind_one(struct symbol_sizes *all, const char *text, const char *item, struct bindings *b)
{
    struct binding given;
    if (!binding_parse(all->g->arena, item, &given))
        fail_usage("--workload '%s': expected DIM=INT, found '%s'", text, item);
    const struct symbol *symbol = symbol_find(all, given.name);
    if (!symbol)
        fail_usage("--workload '%s': the model has no dimension '%s'; %s", text, given.name, symbol_list_of_inputs(all->g->arena, all->g));
    if (given.value < symbol->lo)
        fail_usage("--workload '%s': '%s' is %lld, expected at least %lld", text, given.name, (long long)given.value,
                   (long long)symbol->lo);
    bindings_set(all->g->arena, b, given.name, given.value);
}

/* Marks the given symbols; the others are guessed from them. */
static void mark_given(struct symbol_sizes *all, const struct bindings *b)
{
    for (int i = 0; i < b->list.n; i++) {
        struct symbol *s = symbol_find(all, b->list.at[i].name);
        s->kind = SYMBOL_SEQUENCE;
        s->least = b->list.at[i].value;
    }
}

/* Gives sizes that the text omits their smallest values under the equations. */
static void plan_text(struct symbol_sizes *all, struct plan *plan, const char *text)
{
    struct bindings given = {0};
    char *copy = arena_strdup(all->g->arena, text), *colon = strrchr(copy, ':'), *save = NULL;
    double weight = colon ? weight_of(text, colon + 1) : 1;
    if (colon)
        *colon = '\0';
    for (char *item = strtok_r(copy, ",", &save); item; item = strtok_r(NULL, ",", &save))
        bind_one(all, text, item, &given);
    struct symbol_sizes local = {.g = all->g};
    for (int i = 0; i < all->list.n; i++)
        symbol_add(&local,
                   (struct symbol){.name = all->list.at[i].name,
                                   .least = all->list.at[i].least,
                                   .of_input = all->list.at[i].of_input,
                                   .guess = all->list.at[i].guess});
    symbols_ready(&local);
    mark_given(&local, &given);
    find_forms(&local);
    struct bindings b = sizes_at(&local, (struct lengths){0, 0, 0});
    for (int i = 0; i < given.list.n; i++)
        bindings_set(all->g->arena, &b, given.list.at[i].name, given.list.at[i].value);
    bool kept = satisfy_all(&local, &b);
    for (int i = 0; i < given.list.n; i++)
        kept = kept && *bindings_get(&b, given.list.at[i].name) == given.list.at[i].value;
    if (!kept)
        fail("--workload '%s' contradicts what the model assumes about its sizes (-v shows the assumptions)", text);
    add_workload(all, plan, b, weight, assumed_text(&local, &given));
}

int64_t workload_tokens(struct graph *g, const struct workload *w)
{
    struct arena *tmp = arena_new();
    int i = op_tokens_input(op_value_uses(tmp, g), g->inputs.n);
    int64_t n = i >= 0, size;
    for (int d = 0; i >= 0 && d < g->inputs.at[i]->type.rank; d++)
        n = dim_eval(g->inputs.at[i]->type.dim[d], &w->dims, &size) ? n * size : 0;
    arena_free(tmp);
    return n;
}

void plan_workloads(struct graph *g, const struct options *options, struct plan *plan)
{
    struct symbol_sizes all = symbol_sizes_of(g);
    const struct emitted *emitted = options->plan_file ? options->plan_file->emitted : NULL;
    if (emitted) {
        for (int i = 0; i < emitted->workloads.n; i++)
            add_workload(&all, plan, emitted->workloads.at[i].dims, emitted->workloads.at[i].weight, NULL);
        return;
    }
    for (int i = 0; i < options->workload.n; i++)
        plan_text(&all, plan, options->workload.at[i]);
    if (options->workload.n == 0)
        set_training_roles(&all);
    if (options->workload.n == 0)
        plan_default(&all, plan, options->model);
}
