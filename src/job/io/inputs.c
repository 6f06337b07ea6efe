/* inputs: makes the global inputs of a run on rank 0, which sends them to the others. So only one host needs the files, and all ranks have
 * the same inputs. Each rank reads its own shards ({rank} in a file name). Files of --input take precedence over --test-data; --random
 * makes the rest from their types. Random floats are normal, booleans 0 or 1, strings a letter. Integers are rows of the table that they
 * index, 1 in a mask, else 0 to 7. The generator is SplitMix64 (Steele, Lea, Flood 2014), so a seed gives the same inputs everywhere. */
#include "ir/rank_meta.h"
#include "job/io/io.h"
#include "onnx/onnx.h"
#include "op/analysis/analysis.h"
#include "op/canon/canon.h"

#include <math.h>
#include <string.h>

struct inputs {
    int n;
    struct graph *graph;
    struct tensor *at;
    const char **from; /* the file; NULL: not given */
    bool *sharded;     /* every rank has read its shard */
    struct value_use *use;
};

static int input_index(const struct graph *g, const char *name, size_t n)
{
    for (int i = 0, given = job_given_inputs(g); i < given; i++)
        if (strlen(g->inputs.at[i]->name) == n && strncmp(g->inputs.at[i]->name, name, n) == 0)
            return i;
    return -1;
}

enum { MOST_NAMED = 8 };

const char *job_names(struct arena *a, struct value *const *at, int n)
{
    const char *list = "";
    for (int i = 0; i < n && i < MOST_NAMED; i++)
        list = arena_printf(a, "%s%s%s", list, i ? ", " : "", at[i]->name);
    return n > MOST_NAMED ? arena_printf(a, "%s and %d more", list, n - MOST_NAMED) : list;
}

const char *job_input_names(struct arena *a, const struct graph *g)
{
    return job_names(a, g->inputs.at, job_given_inputs(g));
}

const char *job_why_default(struct arena *a, const struct graph *g, const char *name)
{
    return arena_printf(a, "%s: input '%s' has its initializer's value here: 'tpc-shard --keep-input %s' makes a folder whose runs give it",
                        graph_file(g), name, name);
}

/* True if --bind fixed the input, or if nothing reads it any more. A fixed input may still be given, with the same value. */
static bool is_bound_or_unread(struct arena *a, const struct graph *g, const char *name, const struct tensor *t)
{
    const char *values = rank_meta_bind(g, name);
    if (rank_meta_is_default(g, name))
        fail("%s", job_why_default(a, g, name));
    if (!values)
        return rank_meta_is_unread(g, name);
    int64_t n;
    const void *data = op_bound_data(a, name, t->dtype, values, &n);
    if (n != tensor_elements(t) || (n > 0 && memcmp(data, t->data, tensor_bytes(t))))
        fail("input '%s' was fixed to %s by --bind and is given another value", name, values);
    return true;
}

static const char rank_placeholder[] = "{rank}";

/* The file with {rank} replaced by the number of this rank. */
static const char *rank_input_file(struct arena *a, const struct graph *g, const char *name)
{
    const char *at = strstr(name, rank_placeholder);
    if (!at)
        return name;
    return arena_printf(a, "%.*s%d%s", (int)(at - name), name, g->rank < 0 ? 0 : g->rank,
                        rank_input_file(a, g, at + strlen(rank_placeholder)));
}

/* shards: takes only files of shards, else only files of global inputs. */
static void take_named(struct arena *a, struct session *s, struct inputs *in, const char *text, bool shards)
{
    const char *equal = strchr(text, '=');
    if (!equal || equal == text || !equal[1])
        fail_usage("--input '%s': expected NAME=FILE or NAME=NUMBERS", text);
    const char *file = rank_input_file(a, in->graph, equal + 1);
    if ((file != equal + 1) != shards)
        return;
    int i = input_index(in->graph, text, (size_t)(equal - text));
    struct tensor t = job_read_tensor(a, file, i < 0 ? NULL : in->graph->inputs.at[i]);
    if (i < 0 && is_bound_or_unread(a, in->graph, arena_strndup(a, text, (size_t)(equal - text)), &t))
        return;
    if (i < 0)
        fail_usage("--input '%s': there is no such input; the inputs are %s", text, job_input_names(a, in->graph));
    if (in->from[i])
        fail_usage("--input: '%s' is given twice", in->graph->inputs.at[i]->name);
    in->at[i] = shards ? session_set_shard(s, i, file, &t) : t;
    in->from[i] = equal + 1;
    in->sharded[i] = shards;
}

static void take(struct inputs *in, int i, const char *path, struct tensor t)
{
    if (in->from[i])
        return;
    in->at[i] = t;
    in->from[i] = path;
}

/* The elements of a sequence, or the content of an optional. False: the file has a tensor. */
static bool take_list(struct arena *a, struct inputs *in, const char *path)
{
    struct tensor_list list = sequence_read_pb(a, path);
    int whole = list.name ? input_index(in->graph, list.name, strlen(list.name)) : -1;
    if (!list.name)
        return false;
    if (whole >= 0 && list.n == 1) {
        take(in, whole, path, list.at[0]);
        return true;
    }
    if (whole >= 0)
        fail("%s: '%s' holds %d tensors, and the graph was made for one", path, list.name, list.n);
    for (int k = 0; k <= list.n; k++) {
        const char *name = arena_printf(a, "%s.%d", list.name, k);
        int i = input_index(in->graph, name, strlen(name));
        if (i >= 0 && k < list.n)
            take(in, i, path, list.at[k]);
        else if (k < list.n ? !rank_meta_is_unread(in->graph, name) : i >= 0 || rank_meta_is_unread(in->graph, name))
            fail("%s: '%s' has %d elements, and the graph was made for %s", path, list.name, list.n, k < list.n ? "fewer" : "more");
    }
    return true;
}

/* Reads input_0.pb, input_1.pb and so on. The name in a file finds the input; a file without such a name goes by its number. */
static void take_folder(struct arena *a, struct inputs *in, const char *folder)
{
    for (int k = 0;; k++) {
        const char *path = path_join(a, folder, arena_printf(a, "input_%d.pb", k)), *name = NULL;
        if (!path_exists(path)) {
            if (k == 0 && in->n > 0)
                fail("%s: has no input_0.pb", folder);
            return;
        }
        if (take_list(a, in, path))
            continue;
        struct tensor t = tensor_read_pb(a, path, &name);
        int i = name && *name ? input_index(in->graph, name, strlen(name)) : -1;
        if (i < 0 && name && is_bound_or_unread(a, in->graph, name, &t))
            continue;
        if (i < 0)
            i = k;
        if (i >= in->n)
            fail("%s: '%s' is no input: the inputs are %s", path, name && *name ? name : "(unnamed)", job_input_names(a, in->graph));
        take(in, i, path, t);
    }
}

/* ---- random inputs ---------------------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state)
{
    uint64_t drawn = splitmix(*state);
    *state += SPLITMIX_STEP;
    return drawn;
}

static double uniform_random(uint64_t *state)
{
    return ((double)(next_random(state) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal_random(uint64_t *state)
{
    double u = uniform_random(state), v = uniform_random(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double random_integer(const struct tensor *t, const struct value_use *use, uint64_t *state)
{
    uint64_t bits = next_random(state) >> 32;
    if (t->dtype == DT_BOOL)
        return (double)(bits & 1);
    return use->mask ? 1 : (double)(use->rows > 0 ? bits % (uint64_t)use->rows : bits & 7);
}

static int64_t random_letter(uint64_t *state)
{
    char letter = (char)('a' + (next_random(state) >> 32) % 8);
    return string_number(&letter, 1);
}

static void fill_random(struct tensor *t, const struct value_use *use, uint64_t *state)
{
    int64_t n = tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        if (t->dtype == DT_STRING)
            ((int64_t *)t->data)[i] = random_letter(state);
        else if (dtype_is_float(t->dtype))
            tensor_put(t, i, normal_random(state));
        else
            tensor_put(t, i, random_integer(t, use, state));
    }
}

/* True if an input, or an assumption about sizes, uses the symbol. */
static bool is_symbol(struct session *s, const struct graph *g, const char *name)
{
    const struct equation *e;
    int n = alg_equations(g->alg, &e);
    for (int i = 0; i < n; i++)
        if (dim_uses(e[i].left, name) || dim_uses(e[i].right, name))
            return true;
    for (int i = 0; i < g->inputs.n; i++)
        if (type_uses(session_input_type(s, i), name))
            return true;
    return false;
}

static const char *list_symbols(struct arena *a, const struct session *s, int inputs)
{
    const struct type **types = NEWN(a, const struct type *, inputs + 1);
    for (int i = 0; i < inputs; i++)
        types[i] = session_input_type(s, i);
    return symbol_list(a, inputs, types);
}

_Noreturn static void contradiction(struct arena *a, const struct equation *e, int64_t left, int64_t right)
{
    const struct dim *zero = dim_of_not_zero(e->left, e->right);
    const char *why = e->why ? e->why : "assumed";
    if (zero)
        fail("size %s is %lld, expected at least 1 for %s", dim_str(a, zero), (long long)left, why);
    fail("the sizes given contradict %s = %s (%s): %lld and %lld", dim_str(a, e->left), dim_str(a, e->right), why, (long long)left,
         (long long)right);
}

/* Fails if the sizes contradict an assumption of the plan, or a size that it fixed. */
static void check_known(struct arena *a, const struct graph *g, const struct bindings *b)
{
    const struct equation *e;
    int64_t left, right, most;
    int n = alg_equations(g->alg, &e);
    for (int i = 0; i < n; i++) {
        if (!dim_eval(e[i].left, b, &left) || !dim_eval(e[i].right, b, &right) || left == right)
            continue;
        const struct dim *bounded = dim_at_most(e[i].left, e[i].right, &most);
        if (bounded)
            fail("the sizes given are too large: %s is %lld, and is at most %lld for this model, by %s", dim_str(a, bounded),
                 (long long)(bounded == e[i].left ? left : right), (long long)most, e[i].why ? e[i].why : "its assumptions");
        contradiction(a, &e[i], left, right);
    }
}

/* Given integers need not be those of a text without padding. */
static void check_limits(struct arena *a, const struct inputs *in, const struct bindings *b)
{
    bool given = false;
    for (int i = 0; i < in->n; i++)
        given = given || (in->from[i] && !dtype_is_float(in->graph->inputs.at[i]->type.dtype));
    job_check_limits(a, in->graph, b, given);
}

/* The sizes of symbols, from --dim and from given inputs. */
static struct bindings known_sizes(struct arena *a, struct session *s, const struct inputs *in, const struct job_options *o)
{
    struct bindings b = {0};
    for (int i = 0; i < in->n; i++) {
        const struct type *t = session_input_type(s, i);
        for (int k = 0; in->from[i] && k < t->rank && k < in->at[i].rank; k++)
            if (t->dim[k]->kind == DIM_SYM)
                bindings_set(a, &b, t->dim[k]->name, in->at[i].dim[k]);
    }
    for (int i = 0; i < o->dims.list.n; i++) {
        struct binding given = o->dims.list.at[i];
        if (!is_symbol(s, in->graph, given.name))
            fail_usage("--dim '%s': the model has no dimension of this name; %s", given.name, list_symbols(a, s, in->n));
        bindings_set(a, &b, given.name, given.value);
    }
    return b;
}

/* Sizes of all missing inputs; if no size is given, those of the workload. */
static void complete_sizes(struct arena *a, struct session *s, struct inputs *in, const struct job_options *o, struct bindings *b)
{
    struct bindings planned;
    int64_t dim[MAX_RANK];
    const char *missing = NULL;
    bool any = rank_meta_workload(in->graph, o->workload ? o->workload : 1, &planned);
    for (int i = 0; i < in->n; i++) {
        while (!in->from[i] && !session_input_sizes(s, b, i, dim, &missing)) {
            const int64_t *size = any ? bindings_get(&planned, missing) : NULL;
            if (!size)
                fail_usage("input '%s' is %s: give its size with --dim %s=N", in->graph->inputs.at[i]->name,
                           type_str(a, session_input_type(s, i)), missing);
            bindings_set(a, b, missing, *size);
        }
    }
}

struct wanted_room {
    struct arena *arena;
    size_t bytes;
    void *at;
};

static void take_room(void *wanted_room)
{
    struct wanted_room *w = wanted_room;
    w->at = arena_alloc(w->arena, w->bytes);
}

static void make_input(struct arena *a, struct session *s, struct inputs *in, int i, const struct bindings *b, uint64_t *state)
{
    const struct type *type = session_input_type(s, i);
    const char *missing = NULL;
    struct tensor t = {.dtype = type->dtype, .rank = type->rank};
    require(session_input_sizes(s, b, i, t.dim, &missing));
    int64_t n, bytes;
    if (!type_sizes_product(t.dim, t.rank, &n) || !i64_mul(n, (int64_t)dtype_size(t.dtype), &bytes))
        fail("input '%s': %s has no valid size here", in->graph->inputs.at[i]->name, type_str(a, type));
    struct wanted_room room = {a, (size_t)bytes + 1, NULL};
    const char *why = diag_try(a, take_room, &room);
    if (why)
        fail("input '%s', %s: %s", in->graph->inputs.at[i]->name, type_str(a, type), why);
    t.data = room.at;
    fill_random(&t, &in->use[i], state);
    in->at[i] = t;
    in->from[i] = "--random";
}

static void make_rest(struct arena *a, struct session *s, struct inputs *in, const struct job_options *o)
{
    struct bindings b = known_sizes(a, s, in, o);
    if (o->random) {
        complete_sizes(a, s, in, o, &b);
        check_known(a, in->graph, &b);
        check_limits(a, in, &b);
    }
    uint64_t state = o->seed;
    in->use = o->random ? job_value_uses(a, in->graph) : NULL;
    for (int i = 0; i < in->n; i++) {
        if (in->from[i])
            continue;
        if (!o->random)
            fail_usage("input '%s' (%s) is not given: --input %s=FILE or numbers, --test-data or --random", in->graph->inputs.at[i]->name,
                       type_str(a, session_input_type(s, i)), in->graph->inputs.at[i]->name);
        make_input(a, s, in, i, &b, &state);
    }
}

int64_t job_count_tokens(struct arena *a, struct graph *g, const struct tensor *in)
{
    int i = op_tokens_input(job_value_uses(a, g), g->inputs.n);
    return i >= 0 ? tensor_elements(&in[i]) : 0;
}

bool job_gives_nothing(const struct job_options *o)
{
    return !o->input.text.n && !o->test_data && !o->random && !o->dims.list.n;
}

/* ---- from rank 0 to all ----------------------------------------------------------------------------------------------------- */

struct sent_tensor {
    struct tensor tensor;
    bool given;
};

/* String numbers are valid in one process only: sends their texts. */
static void send_strings(struct arena *a, struct comm *comm, struct tensor *t)
{
    int64_t bytes = 0;
    char *texts = comm->rank ? NULL : tensor_texts(a, t, &bytes);
    comm_from_first(comm, "inputs", &bytes, sizeof bytes);
    texts = texts ? texts : arena_alloc(a, (size_t)bytes + 1);
    comm_from_first(comm, "inputs", texts, bytes);
    if (comm->rank && !tensor_take_texts(t, texts, bytes))
        bug("rank 0 sent other strings than it has");
}

void job_send_inputs(struct arena *a, struct comm *comm, int n, struct tensor *in)
{
    if (comm->size == 1)
        return;
    struct sent_tensor *sent = NEWN(a, struct sent_tensor, n);
    for (int i = 0; i < n; i++)
        sent[i] = (struct sent_tensor){in[i], in[i].data};
    comm_from_first(comm, "inputs", sent, n * (int64_t)sizeof *sent);
    for (int i = 0; i < n; i++) {
        if (!sent[i].given)
            continue;
        if (comm->rank) {
            in[i] = sent[i].tensor;
            in[i].data = arena_alloc(a, tensor_bytes(&in[i]) + 1);
        }
        if (in[i].dtype == DT_STRING)
            send_strings(a, comm, &in[i]);
        else
            comm_from_first(comm, "inputs", in[i].data, (int64_t)tensor_bytes(&in[i]));
    }
}

/* All except inputs of which every rank has read its shard. */
static void send_global(struct arena *a, struct comm *all, struct inputs *in)
{
    struct tensor *global = NEWN(a, struct tensor, in->n);
    for (int i = 0; i < in->n; i++)
        if (!in->sharded[i])
            global[i] = in->at[i];
    job_send_inputs(a, all, in->n, global);
    for (int i = 0; i < in->n; i++)
        if (!in->sharded[i])
            in->at[i] = global[i];
}

static struct inputs new_inputs(struct arena *a, struct graph *g)
{
    struct inputs in = {.n = job_given_inputs(g), .graph = g};
    in.at = NEWN(a, struct tensor, g->inputs.n);
    in.from = NEWN(a, const char *, in.n);
    in.sharded = NEWN(a, bool, in.n);
    return in;
}

/* From files that hold global inputs. */
static void take_global(struct arena *a, struct inputs *in, const struct job_options *o)
{
    for (int i = 0; i < o->input.text.n; i++)
        take_named(a, NULL, in, o->input.text.at[i], false);
    if (o->test_data)
        take_folder(a, in, o->test_data);
}

struct tensor *job_inputs(struct arena *a, struct comm *all, struct session *s, struct graph *g, const struct job_options *o)
{
    struct inputs in = new_inputs(a, g);
    for (int i = 0; i < o->input.text.n; i++)
        take_named(a, s, &in, o->input.text.at[i], true);
    if (all->rank == 0) {
        take_global(a, &in, o);
        make_rest(a, s, &in, o);
    }
    send_global(a, all, &in);
    return in.at;
}

/* ---- sizes, before the session exists ------------------------------------------------------------------------------------------ */

static void state_sizes(struct graph *g, const struct value *v, const struct tensor *t)
{
    if (t->rank != v->type.rank)
        fail("%s: input '%s' has %d dimensions, expected %s", graph_file(g), v->name, t->rank, type_str(g->arena, &v->type));
    for (int d = 0; d < t->rank; d++)
        if (alg_equate(g->alg, v->type.dim[d], dim_int(g->alg, t->dim[d]), "the inputs of this run") == EQ_FALSE)
            fail("%s: input '%s' has %lld in dimension %d, expected %s", graph_file(g), v->name, (long long)t->dim[d], d,
                 type_str(g->arena, &v->type));
}

void job_state_sizes(const void *options, struct graph *g)
{
    const struct job_options *o = options;
    struct inputs in = new_inputs(g->arena, g);
    take_global(g->arena, &in, o);
    VEC(const char *) fixed = {NULL, 0, 0};
    for (int i = 0; i < in.n; i++) {
        if (!in.from[i])
            continue;
        state_sizes(g, g->inputs.at[i], &in.at[i]);
        if (input_is_small_integer(&in.at[i]) && op_decides_form(g, g->inputs.at[i]))
            VEC_PUSH(g->arena, &fixed, arena_printf(g->arena, "%s=%s", g->inputs.at[i]->name, input_values_text(g->arena, &in.at[i])));
    }
    for (int i = 0; i < fixed.n; i++)
        op_bind_input(g, fixed.at[i]);
    for (int i = 0; o->random && i < o->dims.list.n; i++) {
        const struct binding *b = &o->dims.list.at[i];
        alg_equate(g->alg, dim_sym(g->alg, b->name, INT64_MAX), dim_int(g->alg, b->value), "--dim");
    }
}

void job_state_sizes_of(const void *tensors, struct graph *g)
{
    const struct job_tensors *given = tensors;
    for (int i = 0; i < g->inputs.n; i++) {
        int k = input_index(given->of, g->inputs.at[i]->name, strlen(g->inputs.at[i]->name));
        if (k >= 0)
            state_sizes(g, g->inputs.at[i], &given->in[k]);
    }
}
