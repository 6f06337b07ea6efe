/* roles: finds the role of each graph input in the decode loop. --role wins, then state, then the usual names of exporters. Other floats
 * and fixed shapes are constants. An integer input as long as past plus sequence is the mask. The only other one of shape [batch, sequence]
 * holds the tokens. */
#include "decode/stage/stage.h"
#include "job/adapters/adapters.h"
#include "job/io/io.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *word, *usual;
    enum role role;
} known[] = {{"tokens", "input_ids", ROLE_TOKENS},          {"mask", "attention_mask", ROLE_MASK},
             {"positions", "position_ids", ROLE_POSITIONS}, {"cache_position", "cache_position", ROLE_CACHE_POSITION},
             {"cached", "use_cache_branch", ROLE_CACHED},   {"constant", "encoder_attention_mask", ROLE_CONSTANT},
             {"segments", "token_type_ids", ROLE_SEGMENTS}};
enum { KNOWN = sizeof known / sizeof *known };
static const char words[] = "tokens, mask, positions, cache_position, cached, segments, constant; of an output: logits, tokens, embedding";

/* ---- the graph before there is a session ---------------------------------------------------------------------------------------- */

struct type roles_type(struct graph *g, enum rank_end end, const struct value *v)
{
    struct type global = v->type;
    struct placement place;
    if (g->rank_meta)
        rank_meta_value(g, end, v->name, &global, &place);
    return global;
}

static struct type input_type(const struct stage *s, int i)
{
    return roles_type(s->graph, RANK_INPUT, s->graph->inputs.at[i]);
}

/* ---- options that name an input or output: [K:]NAME=VALUE ------------------------------------------------------------------------ */
struct named_option {
    const char *option;
    int number;
    const char *name, *value;
}; /* number 0: of any graph */

static struct named_option named_option_parse(struct arena *a, const char *option, const char *text)
{
    const char *equal = strchr(text, '='), *name = text + strspn(text, "0123456789");
    struct named_option o = {.option = arena_printf(a, "%s '%s'", option, text)};
    if (!equal)
        fail_usage("%s: expected NAME=VALUE", o.option);
    bool numbered = name > text && *name == ':';
    if (numbered)
        o.number = (int)number_read(option, arena_strndup(a, text, (size_t)(name - text)), 1, INT32_MAX);
    o.name = numbered ? name + 1 : text;
    o.name = arena_strndup(a, o.name, (size_t)(equal - o.name));
    o.value = equal + 1;
    return o;
}

static int named_input(const struct named_option *o, const struct stage *s)
{
    return o->number && o->number != s->number ? -1 : graph_input_named(s->graph, o->name);
}

static bool is_output_role(const char *word)
{
    return strcmp(word, "logits") == 0 || strcmp(word, "embedding") == 0;
}

/* The name is of no input; of no output, if what it is given is for one. */
_Noreturn static void fail_unknown(struct arena *a, const struct named_option *o, const struct stage *stage, int n)
{
    const char *list = "";
    bool output = is_output_role(o->value);
    if (o->number > n)
        fail_usage("%s: there %s %d graph%s", o->option, n == 1 ? "is" : "are", n, n == 1 ? "" : "s");
    for (int k = 0; k < n; k++)
        if (!o->number || o->number == stage[k].number)
            list = arena_printf(a, "%s%sthe %s of %s are %s", list, *list ? "; " : "", output ? "outputs" : "inputs", stage[k].path,
                                output ? job_names(a, stage[k].ends->outputs.at, stage[k].ends->outputs.n)
                                       : job_input_names(a, stage[k].graph));
    fail_usage("%s: %s", o->option, list);
}

/* Integers of other widths are also tokens; numbers with fractions are not. */
static void check_integers(struct arena *a, const struct stage *s, int i, const struct tensor *t)
{
    const struct type wanted = input_type(s, i);
    bool whole = dtype_is_integer(wanted.dtype) || wanted.dtype == DT_BOOL;
    if (whole && !dtype_is_integer(t->dtype) && t->dtype != DT_BOOL)
        fail("%s: input '%s' has elements of %s, expected %s", s->path, s->graph->inputs.at[i]->name, dtype_name(t->dtype),
             type_str(a, &wanted));
}

static void take_input(struct arena *a, struct stage *stage, int n, const char *text)
{
    struct named_option o = named_option_parse(a, "--input", text);
    for (int k = 0; k < n; k++) {
        int i = named_input(&o, &stage[k]);
        if (i < 0)
            continue;
        if (stage[k].given[i].data)
            fail_usage("%s: '%s' is given twice", o.option, o.name);
        stage[k].given[i] = job_read_tensor(a, o.value, stage[k].graph->inputs.at[i]);
        check_integers(a, &stage[k], i, &stage[k].given[i]);
        return;
    }
    fail_unknown(a, &o, stage, n);
}

static enum role role_parse(const struct named_option *o)
{
    int k = NAMED_ROW(known, o->value);
    if (k >= 0)
        return known[k].role;
    fail_usage("%s: the roles are %s", o->option, words);
}

/* Of the whole graph. */
static struct type output_type(const struct stage *s, int i)
{
    return s->pipeline ? s->ends->outputs.at[i]->type : roles_type(s->graph, RANK_OUTPUT, s->graph->outputs.at[i]);
}

/* output: of the whole graph; -1: none. */
static void take_logits(struct stage *s, int output, bool chosen)
{
    struct rank_result made = {0};
    s->decides = output >= 0;
    if (!s->decides)
        return;
    s->logits_name = s->ends->outputs.at[output]->name;
    s->logits_type = output_type(s, output);
    s->chosen = chosen;
    if (s->pipeline && !rank_meta_result(s->graph, output, &made))
        bug("output '%s' is of no stage", s->logits_name);
    s->home = made.stage;
    s->logits = s->pipeline && s->home != pipeline_number(s->pipeline) ? -1 : graph_output_named(s->graph, s->logits_name);
}

static bool take_output(const struct named_option *o, struct stage *s)
{
    bool chosen = strcmp(o->value, "tokens") == 0, embedding = strcmp(o->value, "embedding") == 0;
    bool decides = chosen || strcmp(o->value, "logits") == 0, other = o->number && o->number != s->number;
    int i = other || !(decides || embedding) ? -1 : graph_output_named(s->ends, o->name);
    if (i >= 0 && embedding)
        s->embedding = i;
    else if (i >= 0)
        take_logits(s, i, chosen);
    return i >= 0;
}

static void take_role(struct arena *a, struct stage *stage, int n, const char *text)
{
    struct named_option o = named_option_parse(a, "--role", text);
    bool found = false;
    for (int k = 0; k < n; k++) {
        int i = named_input(&o, &stage[k]);
        if (i >= 0)
            stage[k].role[i] = role_parse(&o);
        found = take_output(&o, &stage[k]) || i >= 0 || found;
    }
    if (!found)
        fail_unknown(a, &o, stage, n);
}

static bool is_present(const struct stage *s, int i)
{
    struct rank_state other;
    const char *name = s->ends->outputs.at[i]->name;
    int own = graph_output_named(s->graph, name);
    for (int k = 0; rank_meta_other_state(s->graph, k, &other); k++)
        if (strcmp(other.present, name) == 0)
            return true;
    return own >= 0 && graph_is_present(s->graph, s->graph->outputs.at[own]);
}

/* Of another pipeline stage. */
static bool is_elsewhere(const struct stage *s, int i)
{
    const char *name = s->graph->inputs.at[i]->name;
    return s->pipeline && (rank_meta_kept_elsewhere(s->graph, name) || rank_meta_sender(s->graph, name) >= 0);
}

static bool is_state(const struct stage *s, int i)
{
    const struct graph *g = s->graph;
    const struct value *v = g->inputs.at[i];
    for (int k = 0; g->rank_meta && k < g->rank_meta->nstate; k++)
        if (strcmp(g->rank_meta->state[k].past, v->name) == 0)
            return true;
    const struct state *state = g->rank_meta ? NULL : graph_state(g, v);
    return state && state->past == v;
}

/* ---- roles by name and shape -------------------------------------------------------------------------------------------------------- */
int decode_find_input(const struct stage *s, enum role role)
{
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == role)
            return i;
    return -1;
}

/* Segments indicate an encoder: with scores, the graph does not continue texts. */
static enum role usual_role(const struct stage *s, int i, bool encodes)
{
    if (strcmp(s->graph->inputs.at[i]->name, ADAPTERS_INPUT) == 0)
        return ROLE_ADAPTER;
    for (int k = 0; k < KNOWN; k++)
        if (strcmp(s->graph->inputs.at[i]->name, known[k].usual) == 0 && (encodes || known[k].role != ROLE_SEGMENTS))
            return known[k].role;
    return ROLE_UNKNOWN;
}

static bool has_fixed_shape(const struct type *t)
{
    for (int d = 0; d < t->rank; d++)
        if (!dim_is_int(t->dim[d], NULL))
            return false;
    return true;
}

static bool covers(const struct dim *last, const struct value *past, int dim)
{
    const struct dim *d = past && dim >= 0 && dim < past->type.rank ? past->type.dim[dim] : NULL;
    return d && d->kind == DIM_SYM && last != d && dim_uses(last, d->name);
}

/* True if the last dimension is an expression of a past length, and longer. */
static bool covers_past(const struct graph *g, const struct type *t)
{
    const struct dim *last = t->rank == 2 ? dim_rewrite(g->alg, t->dim[1]) : NULL;
    struct rank_state other;
    for (int i = 0; last && i < g->states.n; i++)
        if (covers(last, g->states.at[i].past, g->states.at[i].dim))
            return true;
    for (int i = 0; last && rank_meta_other_state(g, i, &other); i++) {
        int input = graph_input_named(g, other.past);
        if (input >= 0 && covers(last, g->inputs.at[input], other.dim))
            return true;
    }
    return false;
}

static void find_by_shape(struct stage *s)
{
    int candidate = -1, count = 0;
    for (int i = 0; i < s->graph->inputs.n; i++) {
        const struct type t = input_type(s, i);
        if (s->role[i] != ROLE_UNKNOWN)
            continue;
        if (dtype_is_float(t.dtype) || has_fixed_shape(&t))
            s->role[i] = ROLE_CONSTANT;
        else if (covers_past(s->graph, &s->graph->inputs.at[i]->type))
            s->role[i] = ROLE_MASK;
        else if (t.rank == 2 && t.dtype != DT_BOOL && ++count)
            candidate = i;
    }
    if (count == 1 && decode_find_input(s, ROLE_TOKENS) < 0)
        s->role[candidate] = ROLE_TOKENS;
}

static _Noreturn void refuse_input(struct arena *a, const struct stage *s, int i)
{
    const struct type t = input_type(s, i);
    const char *name = s->graph->inputs.at[i]->name, *type = type_str(a, &t);
    if (s->keeps)
        fail_usage("%s: the role of input '%s' (%s) is not clear: give --role %s=ROLE, one of %s", s->path, name, type, name, words);
    fail_usage(
        "%s: it does not look like a decoder, so it can't generate text: it has no KV cache, and the role of input '%s' (%s) is not clear; "
        "if it is one, give --role %s=ROLE, one of %s",
        s->path, name, type, name, words);
}

static void find_inputs(struct arena *a, struct stage *s, bool encodes)
{
    for (int i = 0; i < s->graph->inputs.n; i++) {
        bool state = is_state(s, i), elsewhere = is_elsewhere(s, i);
        s->keeps = s->keeps || state || (elsewhere && i < job_given_inputs(s->graph));
        if (s->role[i] == ROLE_UNKNOWN)
            s->role[i] = state ? ROLE_STATE : elsewhere ? ROLE_ELSEWHERE : usual_role(s, i, encodes);
    }
    find_by_shape(s);
    if (graph_output_named(s->ends, "loss_sum") >= 0)
        fail("%s: computes a loss, for 'tpc-run --train': text comes from what 'tpc-shard' compiles without --train", s->path);
    for (int i = 0; i < s->graph->inputs.n; i++)
        if (s->role[i] == ROLE_UNKNOWN)
            refuse_input(a, s, i);
}

/* ---- embeddings ---------------------------------------------------------------------------------------------------------------------- */

/* Exporters' names; pooled outputs come first. */
static const char *const embeddings[] = {"sentence_embedding", "last_hidden_state", "token_embeddings", "hidden_states"};
enum { EMBEDDINGS = sizeof embeddings / sizeof *embeddings };

static int usual_embedding(const struct stage *s)
{
    int found = -1;
    for (int k = 0; k < EMBEDDINGS && found < 0; k++)
        found = graph_output_named(s->ends, embeddings[k]);
    return found;
}

/* A server uses a graph without scores for embeddings. */
static bool only_embeds(const struct stage *s, int n, const struct job_options *o)
{
    int logits = graph_output_named(s->ends, "logits");
    return n == 1 && o->serve && !o->chat && s->embedding >= 0 && !s->decides && (logits < 0 || logits == s->embedding);
}

/* ---- logits ------------------------------------------------------------------------------------------------------------------------- */

/* True for scores [batch, vocabulary] or [batch, positions, vocabulary], and for tokens [batch, positions] or [batch, positions, 1]. */
static bool may_decide(const struct stage *s, int output)
{
    const struct type t = output_type(s, output);
    if (is_present(s, output) || output == s->embedding)
        return false;
    if (dtype_is_float(t.dtype))
        return t.rank == 2 || t.rank == 3;
    return t.dtype != DT_BOOL && (t.rank == 2 || (t.rank == 3 && dim_equals(t.dim[2], 1)));
}

/* The output named logits, or the only one that can be. */
static int only_logits(const struct stage *s)
{
    int found = graph_output_named(s->ends, "logits"), count = 0;
    if (found >= 0)
        return found;
    for (int i = 0; i < s->ends->outputs.n; i++)
        if (may_decide(s, i) && ++count)
            found = i;
    if (count != 1)
        fail_usage("%s: %d outputs may hold the logits, or tokens: give --role OUTPUT=logits or OUTPUT=tokens", s->path, count);
    return found;
}

static void take_logits_found(struct stage *s, int output)
{
    take_logits(s, output, output >= 0 && !dtype_is_float(output_type(s, output).dtype));
}

static bool positions_lead(const struct stage *s)
{
    int i = decode_find_input(s, ROLE_TOKENS);
    if (!s->decides || i < 0)
        return false;
    const struct type in = input_type(s, i), out = s->logits_type;
    return in.rank == 2 && out.rank > (s->chosen ? 1 : 2) && in.dim[0] != in.dim[1] && out.dim[0] == in.dim[1] && out.dim[1] == in.dim[0];
}

static void find_logits(struct stage *stage, int n)
{
    struct stage *last = &stage[n - 1];
    if (!last->decides)
        take_logits_found(last, only_logits(last));
    for (int k = 0; k < n - 1; k++)
        if (!stage[k].decides)
            take_logits_found(&stage[k], graph_output_named(stage[k].ends, last->logits_name));
}

void roles_find(struct arena *a, struct comm *all, struct stage *stage, int n, const struct job_options *o)
{
    for (int k = 0; k < n; k++)
        stage[k].logits = stage[k].embedding = -1;
    for (int i = 0; i < o->role.text.n; i++)
        take_role(a, stage, n, o->role.text.at[i]);
    for (int k = 0; k < n; k++)
        if (stage[k].embedding < 0)
            stage[k].embedding = usual_embedding(&stage[k]);
    bool embeds = only_embeds(stage, n, o);
    for (int k = 0; k < n; k++)
        find_inputs(a, &stage[k], embeds);
    if (!embeds)
        find_logits(stage, n);
    for (int k = 0; k < n; k++)
        stage[k].positions_lead = positions_lead(&stage[k]);
    for (int i = 0; all->rank == 0 && i < o->input.text.n; i++)
        take_input(a, stage, n, o->input.text.at[i]);
    for (int k = 0; k < n; k++)
        job_send_inputs(a, all, job_given_inputs(stage[k].graph), stage[k].given);
}
