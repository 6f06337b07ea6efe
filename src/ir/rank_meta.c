/* Metadata of rank files, decoded and encoded. */
#include "ir/rank_meta.h"

#include <inttypes.h>
#include <string.h>

#define PLAN "tpc.plan"
#define RANK "tpc.rank"
#define RANKS "tpc.ranks"
#define SUMS "tpc.sums"
/* Followed by a name or a number. */
#define ASSUME "tpc.assume."
#define BIND "tpc.bind."
#define DEFAULT "tpc.default."
#define DIMS "tpc.dims."
#define INPUT "tpc.input."
#define LIMIT "tpc.limit."
#define MIXES "tpc.mixes"
#define OUTPUT "tpc.output."
#define OVERLAP "tpc.overlap"
#define ROWS "tpc.rows."
#define STATE "tpc.state."
#define SIZES "tpc.sizes."
#define SUM "tpc.sum."
#define UNREAD "tpc.unread."
#define VALUES "tpc.values."
#define WIRE "tpc.wire"
#define WORKLOAD "tpc.workload." /* then its number, a full stop and a symbol */

#define INDEPENDENT "independent"

/* ---- keys ---- */

static const char *key_of(const struct graph *g, const char *prefix, const char *name)
{
    return arena_printf(g->arena, "%s%s", prefix, name);
}

/* The part after the prefix of an entry's key; NULL: the key has another prefix. */
static const char *name_in(const struct meta *m, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(m->key, prefix, n) ? NULL : m->key + n;
}

static const struct meta *find_entry(const struct graph *g, const char *prefix, const char *name)
{
    for (int i = 0; i < g->meta.n; i++) {
        const char *found = name_in(&g->meta.at[i], prefix);
        if (found && strcmp(found, name) == 0)
            return &g->meta.at[i];
    }
    return NULL;
}

static const struct meta *numbered_entry(const struct graph *g, const char *prefix, int number)
{
    for (int i = 0; i < g->meta.n; i++)
        if (name_in(&g->meta.at[i], prefix) && !number--)
            return &g->meta.at[i];
    return NULL;
}

static int count_entries(const struct graph *g, const char *prefix)
{
    int n = 0;
    for (int i = 0; i < g->meta.n; i++)
        n += name_in(&g->meta.at[i], prefix) != NULL;
    return n;
}

/* ---- reading ---- */

static int64_t int_of(const struct graph *g, const char *key, const char *text)
{
    int64_t k;
    if (!i64_parse(text, 0, INT32_MAX, &k))
        fail("%s: metadata '%s' is '%s', expected an integer of 0 to %d", graph_file(g), key, text, INT32_MAX);
    return k;
}

static int int_or(const struct graph *g, const char *key, int absent)
{
    const char *text = graph_meta(g, key);
    return text ? (int)int_of(g, key, text) : absent;
}

/* "LEAST|USUAL"; what is below USUAL is not usual. */
static struct rank_bound read_bound(const struct graph *g, const struct meta *e, const char *symbol)
{
    const char *bar = strchr(e->text, '|');
    int64_t least = int_of(g, e->key, bar ? arena_strndup(g->arena, e->text, (size_t)(bar - e->text)) : e->text);
    return (struct rank_bound){symbol, least, bar ? int_of(g, e->key, bar + 1) : least};
}

/* "LEFT == RIGHT # WHY" */
static struct rank_assumption read_assumption(const struct graph *g, const char *text)
{
    char *left = arena_strdup(g->arena, text), *right = strstr(left, " == ");
    if (!right)
        fail("%s: the assumption '%s' is not an equation", graph_file(g), text);
    *right = '\0';
    right += strlen(" == ");
    char *why = strstr(right, " # ");
    if (why)
        *why = '\0';
    return (struct rank_assumption){left, right, why ? why + strlen(" # ") : "stated by the file", text};
}

struct rank_state rank_meta_read_state(const struct graph *g, const char *text)
{
    char *field[4] = {arena_strdup(g->arena, text)};
    int64_t dim;
    int n = 1;
    while (n < 4 && (field[n] = strchr(field[n - 1], '|')))
        *field[n++]++ = '\0';
    if (n < 3 || !i64_parse(field[2], -1, MAX_RANK - 1, &dim))
        fail("%s: state '%s' is not of the form PAST|PRESENT|DIMENSION", graph_file(g), text);
    return (struct rank_state){field[0], field[1], n > 3 && *field[3] ? field[3] : NULL, (int)dim};
}

static void read_lists(struct graph *g, struct rank_meta *m)
{
    m->bound = NEWN(g->arena, struct rank_bound, count_entries(g, DIMS));
    m->assumption = NEWN(g->arena, struct rank_assumption, count_entries(g, ASSUME));
    m->state = NEWN(g->arena, struct rank_state, count_entries(g, STATE));
    EACH (const struct meta, e, g->meta) {
        const char *symbol = name_in(e, DIMS);
        if (symbol)
            m->bound[m->nbound++] = read_bound(g, e, symbol);
        if (name_in(e, ASSUME))
            m->assumption[m->nassumption++] = read_assumption(g, e->text);
        if (name_in(e, STATE))
            m->state[m->nstate++] = rank_meta_read_state(g, e->text);
    }
}

/* Data-dependent sizes are named after the first name of a value, which an output that is resharded on its way takes over. */
static void read_first_names(const struct graph *g)
{
    for (int i = 0; i < g->meta.n; i++) {
        const char *name = name_in(&g->meta.at[i], SIZES);
        struct value *v = name ? graph_find(g, name) : NULL;
        if (v)
            v->first_name = g->meta.at[i].text;
    }
}

static void read_stage(const struct graph *g, struct rank_meta *m)
{
    m->stage = int_or(g, RANK_META_STAGE, 0);
    m->stages = int_or(g, RANK_META_STAGES, 1);
    if (m->stages < 1 || m->stages > PLAN_RANKS || m->stage >= m->stages)
        fail("%s: stage %d of %d stages", graph_file(g), m->stage, m->stages);
}

void rank_meta_read(struct graph *g)
{
    if (!graph_meta(g, RANKS))
        return;
    read_first_names(g);
    struct rank_meta *m = NEW(g->arena, struct rank_meta);
    m->plan = graph_meta(g, PLAN);
    m->weights = graph_meta(g, RANK_META_WEIGHTS);
    m->ranks = int_or(g, RANKS, 0);
    m->rank = int_or(g, RANK, -1);
    read_stage(g, m);
    read_lists(g, m);
    g->rank_meta = m;
    if (m->ranks < 1 || m->rank < 0)
        return;
    if (m->rank >= m->ranks)
        fail("%s: rank %d of %d ranks", graph_file(g), m->rank, m->ranks);
    g->ranks = m->ranks;
    g->rank = m->rank;
}

/* ---- writing ---- */

static void write_value(struct graph *g, enum rank_end end, const struct value *global)
{
    rank_meta_set_value(g, end, global->name, &global->type, global->place);
}

static void write_bound(void *graph, const struct dim *symbol)
{
    struct graph *g = graph;
    graph_set_meta(g, key_of(g, DIMS, symbol->name), arena_printf(g->arena, "%" PRId64 "|%" PRId64, symbol->lo, symbol->usual));
}

static void write_assumptions(struct graph *g)
{
    const struct equation *eq;
    int n = alg_equations(g->alg, &eq);
    for (int i = 0; i < n; i++) {
        graph_set_meta(g, arena_printf(g->arena, ASSUME "%d", i),
                       arena_printf(g->arena, "%s == %s # %s", dim_str(g->arena, eq[i].left), dim_str(g->arena, eq[i].right), eq[i].why));
        dim_each_symbol(eq[i].left, write_bound, g);
        dim_each_symbol(eq[i].right, write_bound, g);
    }
}

const char *rank_meta_state_text(struct arena *a, const struct rank_state *s)
{
    return arena_printf(a, "%s|%s|%d%s%s", s->past, s->present, s->dim, s->from ? "|" : "", s->from ? s->from : "");
}

struct rank_state rank_meta_state_of(const struct state *s)
{
    return (struct rank_state){s->past ? s->past->name : "", s->present ? s->present->name : "", s->from, s->dim};
}

static void write_states(struct graph *g, const struct graph *global)
{
    for (int i = 0; i < global->states.n; i++) {
        const struct rank_state s = rank_meta_state_of(&global->states.at[i]);
        graph_set_meta(g, arena_printf(g->arena, STATE "%d", i), rank_meta_state_text(g->arena, &s));
    }
}

static void write_first_names(struct graph *g)
{
    for (int i = 0; i < g->values.n; i++) {
        const struct value *v = g->values.at[i];
        for (int d = 0; v->producer && strcmp(v->name, v->first_name) && d < v->type.rank; d++)
            if (dim_uses(v->type.dim[d], arena_printf(g->arena, "%s.%d", v->first_name, d)))
                graph_set_meta(g, key_of(g, SIZES, v->name), v->first_name);
    }
}

void rank_meta_write(struct graph *to, const struct graph *global, const char *plan)
{
    graph_set_meta(to, PLAN, plan);
    graph_set_meta(to, RANK, arena_printf(to->arena, "%d", to->rank));
    graph_set_meta(to, RANKS, arena_printf(to->arena, "%d", to->ranks));
    write_assumptions(to);
    write_first_names(to);
    for (int i = 0; i < global->inputs.n; i++) {
        write_value(to, RANK_INPUT, global->inputs.at[i]);
        for (int d = 0; d < global->inputs.at[i]->type.rank; d++)
            dim_each_symbol(global->inputs.at[i]->type.dim[d], write_bound, to);
    }
    for (int i = 0; i < global->outputs.n; i++)
        write_value(to, RANK_OUTPUT, global->outputs.at[i]);
    write_states(to, global);
}

/* ---- inputs and outputs: "TYPE|PLACEMENT" ---- */

static const char *end_prefix(enum rank_end end)
{
    return end == RANK_INPUT ? INPUT : OUTPUT;
}

static const char *end_name(enum rank_end end)
{
    return end == RANK_INPUT ? "input" : "output";
}

/* Cuts the text of an entry in two; NULL: none. */
static char *split_entry(const struct graph *g, enum rank_end end, const char *name, const char **place)
{
    const struct meta *m = find_entry(g, end_prefix(end), name);
    if (!m)
        return NULL;
    char *type = arena_strdup(g->arena, m->text), *bar = strchr(type, '|');
    if (!bar)
        fail("%s: metadata of %s '%s' is '%s', expected a type and a placement separated by '|'", graph_file(g), end_name(end), name,
             m->text);
    *bar = '\0';
    *place = bar + 1 + strspn(bar + 1, " ");
    for (char *last = bar; last > type && last[-1] == ' ';)
        *--last = '\0';
    return type;
}

static void parse_placement(struct graph *g, enum rank_end end, const char *name, const char *text, struct placement *place)
{
    const char *error = NULL;
    if (!placement_parse(g->alg, text, place, &error))
        fail("%s: metadata of %s '%s': %s", graph_file(g), end_name(end), name, error);
}

bool rank_meta_value(struct graph *g, enum rank_end end, const char *name, struct type *type, struct placement *place)
{
    const char *place_text, *error = NULL, *type_text = split_entry(g, end, name, &place_text);
    if (!type_text)
        return false;
    if (!type_parse(g->alg, type_text, 0, type, &error))
        fail("%s: metadata of %s '%s': %s", graph_file(g), end_name(end), name, error);
    parse_placement(g, end, name, place_text, place);
    if (place->kind == PLACE_S && (place->dim < 0 || place->dim >= type->rank))
        fail("%s: metadata of %s '%s' splits dimension %d of %d", graph_file(g), end_name(end), name, place->dim, type->rank);
    return true;
}

bool rank_meta_placement(struct graph *g, enum rank_end end, const char *name, struct placement *place)
{
    const char *text;
    if (!split_entry(g, end, name, &text))
        return false;
    parse_placement(g, end, name, text, place);
    return true;
}

void rank_meta_set_placement(struct graph *g, enum rank_end end, const char *name, struct placement place)
{
    const char *old, *type = split_entry(g, end, name, &old);
    require(type);
    graph_set_meta(g, key_of(g, end_prefix(end), name), arena_printf(g->arena, "%s|%s", type, placement_str(g->arena, place)));
}

void rank_meta_set_value(struct graph *g, enum rank_end end, const char *name, const struct type *type, struct placement place)
{
    graph_set_meta(g, key_of(g, end_prefix(end), name),
                   arena_printf(g->arena, "%s|%s", type_str(g->arena, type), placement_str(g->arena, place)));
}

/* ---- partial sums: "DIM SPLIT", "term", "once", "each" ---- */

static const char *const sum_names[] = {[RANK_SUM_TERM] = "term", [RANK_SUM_ONCE] = "once", [RANK_SUM_EACH] = "each"};

static const char *sum_text(const struct graph *g, const struct node *n)
{
    const struct meta *m = g->keeps_sums && n->name ? find_entry(g, SUM, n->name) : NULL;
    return m ? m->text : NULL;
}

bool rank_meta_has_sum(const struct graph *g, const struct node *n)
{
    return sum_text(g, n) != NULL;
}

static struct rank_sum parse_split_sum(struct graph *g, const struct node *n, const char *text, const char *space)
{
    const char *error = NULL;
    const struct split *s = split_parse(g->alg, space + 1, &error);
    int64_t dim;
    if (!s)
        fail("%s: metadata of its sum is '%s': %s", node_where(g, n), text, error);
    if (!i64_parse(arena_strndup(g->arena, text, (size_t)(space - text)), 0, n->nin && n->in[0] ? n->in[0]->type.rank - 1 : -1, &dim))
        fail("%s: metadata of its sum is '%s', expected a dimension of the first operand and a split", node_where(g, n), text);
    if (s->ranks != g->ranks || !s->partition)
        fail("%s: metadata of its sum has the split '%s', expected each index on one of %d ranks", node_where(g, n), space + 1, g->ranks);
    return (struct rank_sum){RANK_SUM_SPLIT, (int)dim, s};
}

struct rank_sum rank_meta_sum(struct graph *g, const struct node *n)
{
    const char *text = sum_text(g, n), *space = text ? strchr(text, ' ') : NULL;
    if (space)
        return parse_split_sum(g, n, text, space);
    for (int i = RANK_SUM_TERM; text && i <= RANK_SUM_EACH; i++)
        if (strcmp(text, sum_names[i]) == 0)
            return (struct rank_sum){.kind = (enum rank_sum_kind)i};
    if (text)
        fail("%s: metadata of its sum is '%s', expected a split, term, once or each", node_where(g, n), text);
    return (struct rank_sum){.kind = RANK_SUM_NONE};
}

void rank_meta_set_sum(struct graph *g, const char *node, const struct rank_sum *sum)
{
    const char *text = sum->kind == RANK_SUM_SPLIT ? arena_printf(g->arena, "%d %s", sum->dim, split_str(g->arena, sum->split))
                                                   : sum_names[sum->kind];
    graph_set_meta(g, key_of(g, SUM, node), text);
}

/* A number of 0 to most; -1: not stated. */
static int64_t meta_number(const struct graph *g, const char *key, int64_t most)
{
    const char *text = graph_meta(g, key);
    int64_t n;
    return text && i64_parse(text, 0, most, &n) ? n : -1;
}

static void set_number(struct graph *g, const char *key, int64_t n)
{
    graph_set_meta(g, key, arena_printf(g->arena, "%" PRId64, n));
}

int64_t rank_meta_sum_count(const struct graph *g)
{
    return meta_number(g, SUMS, INT32_MAX);
}

void rank_meta_set_sum_count(struct graph *g, int64_t n)
{
    set_number(g, SUMS, n);
}

/* ---- sums that overlap with compute ---- */

int64_t rank_meta_overlap(const struct graph *g)
{
    return meta_number(g, OVERLAP, INT64_MAX);
}

void rank_meta_set_overlap(struct graph *g, int64_t bytes)
{
    set_number(g, OVERLAP, bytes);
}

/* ---- messages of sums ---- */

enum wire rank_meta_wire(const struct graph *g)
{
    enum wire wire = WIRE_F32;
    const char *text = graph_meta(g, WIRE);
    if (text && !sum_wire_parse(text, &wire))
        fail("%s: metadata '" WIRE "' is '%s', which this program does not know", graph_file(g), text);
    return wire;
}

void rank_meta_set_wire(struct graph *g, enum wire wire)
{
    graph_set_meta(g, WIRE, sum_wire_name(wire));
}

/* ---- independent rows ---- */

void rank_meta_set_rows(struct graph *g, const char *symbol, const char *why)
{
    graph_set_meta(g, key_of(g, ROWS, symbol), why ? why : INDEPENDENT);
}

bool rank_meta_rows(const struct graph *g, int i, const char **symbol, const char **why)
{
    const struct meta *m = numbered_entry(g, ROWS, i);
    if (!m)
        return false;
    *symbol = name_in(m, ROWS);
    *why = strcmp(m->text, INDEPENDENT) ? m->text : NULL;
    return true;
}

void rank_meta_copy_rows(struct graph *to, const struct graph *from)
{
    for (int i = 0; i < from->meta.n; i++)
        if (name_in(&from->meta.at[i], ROWS) || strcmp(from->meta.at[i].key, MIXES) == 0 ||
            strcmp(from->meta.at[i].key, RANK_META_ADAPTERS) == 0)
            graph_set_meta(to, from->meta.at[i].key, from->meta.at[i].text);
}

void rank_meta_set_mixing(struct graph *g, const char *why)
{
    graph_set_meta(g, MIXES, why);
}

const char *rank_meta_mixing(const struct graph *g)
{
    return graph_meta(g, MIXES);
}

/* ---- values of inputs: a number of rows, or "mask" ---- */

void rank_meta_set_values(struct graph *g, const char *input, int64_t rows, bool mask)
{
    if (rows > 0 || mask)
        graph_set_meta(g, key_of(g, VALUES, input), mask ? "mask" : arena_printf(g->arena, "%" PRId64, rows));
}

void rank_meta_values(const struct graph *g, const char *input, int64_t *rows, bool *mask)
{
    const struct meta *m = find_entry(g, VALUES, input);
    *mask = m && strcmp(m->text, "mask") == 0;
    *rows = -1;
    if (m && !*mask && !i64_parse(m->text, 1, INT64_MAX, rows))
        fail("%s: metadata '%s' is '%s', expected a number of rows or mask", graph_file(g), m->key, m->text);
}

/* ---- limits: "sizes: LAST < ROWS # NODE", or, of a text without padding, "tokens: ..." ---- */

static const char *limit_word(bool of_inputs)
{
    return of_inputs ? "tokens: " : "sizes: ";
}

void rank_meta_set_limit(struct graph *g, int i, const struct index_limit *l)
{
    graph_set_meta(g, arena_printf(g->arena, LIMIT "%d", i),
                   arena_printf(g->arena, "%s%s < %s # %s", limit_word(l->of_inputs), dim_str(g->arena, l->last),
                                dim_str(g->arena, l->rows), l->node));
}

bool rank_meta_limit(struct graph *g, int i, struct index_limit *l)
{
    const struct meta *m = numbered_entry(g, LIMIT, i);
    if (!m)
        return false;
    l->exact = true;
    l->of_inputs = strncmp(m->text, limit_word(true), strlen(limit_word(true))) == 0;
    size_t word = strlen(limit_word(l->of_inputs));
    bool starts = strncmp(m->text, limit_word(l->of_inputs), word) == 0;
    char *last = arena_strdup(g->arena, starts ? m->text + word : ""), *rows = strstr(last, " < "),
         *node = rows ? strstr(rows, " # ") : NULL;
    const char *error = NULL;
    if (!node)
        fail("%s: metadata '%s' is '%s', expected 'sizes: LAST < ROWS # NODE'", graph_file(g), m->key, m->text);
    *rows = *node = '\0';
    l->node = node + strlen(" # ");
    l->last = dim_parse(g->alg, last, 0, &error);
    l->rows = l->last ? dim_parse(g->alg, rows + strlen(" < "), 0, &error) : NULL;
    if (!l->rows)
        fail("%s: metadata '%s' is '%s': %s", graph_file(g), m->key, m->text, error);
    return true;
}

/* ---- workloads ---- */

struct noted_workload {
    struct graph *to;
    const char *prefix;
    const struct bindings *sizes;
};

static const char *workload_prefix(const struct graph *g, int number)
{
    return arena_printf(g->arena, WORKLOAD "%d.", number);
}

static void note_size(void *noted_workload, const struct dim *symbol)
{
    const struct noted_workload *w = noted_workload;
    const int64_t *size = bindings_get(w->sizes, symbol->name);
    if (size)
        graph_set_meta(w->to, key_of(w->to, w->prefix, symbol->name), arena_printf(w->to->arena, "%" PRId64, *size));
}

void rank_meta_set_workload(struct graph *to, const struct graph *global, int number, const struct bindings *sizes)
{
    struct noted_workload w = {to, workload_prefix(to, number), sizes};
    for (int i = 0; i < global->inputs.n; i++)
        for (int d = 0; d < global->inputs.at[i]->type.rank; d++)
            dim_each_symbol(global->inputs.at[i]->type.dim[d], note_size, &w);
}

bool rank_meta_workload(const struct graph *g, int number, struct bindings *sizes)
{
    const char *prefix = workload_prefix(g, number);
    *sizes = (struct bindings){0};
    EACH (const struct meta, m, g->meta) {
        const char *symbol = name_in(m, prefix);
        int64_t size;
        if (!symbol)
            continue;
        if (!i64_parse(m->text, 0, INT64_MAX, &size))
            fail("%s: metadata '%s' is '%s', expected a size", graph_file(g), m->key, m->text);
        bindings_set(g->arena, sizes, symbol, size);
    }
    return sizes->list.n > 0;
}

/* ---- inputs that are gone ---- */

void rank_meta_set_bind(struct graph *g, const char *input, const char *values)
{
    graph_set_meta(g, key_of(g, BIND, input), values);
}

const char *rank_meta_bind(const struct graph *g, const char *input)
{
    const struct meta *m = find_entry(g, BIND, input);
    return m ? m->text : NULL;
}

bool rank_meta_binds(const struct graph *g, int i, const char **input, const char **values)
{
    const struct meta *m = numbered_entry(g, BIND, i);
    if (!m)
        return false;
    *input = name_in(m, BIND);
    *values = m->text;
    return true;
}

void rank_meta_set_default(struct graph *g, const char *input)
{
    graph_set_meta(g, key_of(g, DEFAULT, input), "");
}

bool rank_meta_is_default(const struct graph *g, const char *input)
{
    return find_entry(g, DEFAULT, input) != NULL;
}

void rank_meta_set_unread(struct graph *g, const char *input)
{
    graph_set_meta(g, key_of(g, UNREAD, input), "");
}

bool rank_meta_is_unread(const struct graph *g, const char *input)
{
    return find_entry(g, UNREAD, input) != NULL;
}
