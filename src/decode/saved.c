/* saved: decoding that continues later, maybe on other ranks with another plan (--save-state, --load-state).
 *
 * One safetensors file holds the last graph's inputs, unsharded: its states and constants under the names of its inputs, and the tokens so
 * far with their masks and positions. Metadata texts identify the model and the sampling settings. */
#include "decode/decode.h"
#include "job/io/io.h"
#include "onnx/onnx.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT "tpc decoding 2"
#define OWN "tpc." /* before names of tensors that are no inputs */
enum { TOKENS, MASK, POSITIONS, ENDS, OWNS };
static const char *const own_name[OWNS] = {OWN "tokens", OWN "mask", OWN "positions", OWN "ends"};
enum { MOST_TOKEN = INT32_MAX };

/* ---- identity of the model ---- */

/* The digest of the source; a folder has it in plan.json. */
static const char *source_digest(struct arena *a, const char *path)
{
    struct written model;
    if (!path_is_folder(path)) {
        if (!digest_file_get(digest_file(a, path), &model))
            fail("%s: can't be read", path);
        return arena_printf(a, "%016" PRIx64, model.digest);
    }
    json_t *plan = json_load_file(path_join(a, path, "plan.json"), 0, NULL);
    const char *digest = json_string_value(json_object_get(json_object_get(plan, "source"), "xxh3"));
    if (!digest)
        fail("%s: has no plan.json that says which model it is of, so its state can't be told from another's", path);
    digest = arena_strdup(a, digest);
    json_decref(plan);
    return digest;
}

/* ---- writing ---- */

struct saved_file {
    struct out out;
    const char *digest;
};

struct saved_file *saved_begin(struct arena *a, const struct comm *all, const struct stage *last, const struct job_options *o)
{
    struct saved_file *w = NEW(a, struct saved_file);
    if (!o->save_state || all->rank)
        return w;
    if (!safetensors_takes(last->path))
        fail("%s: --save-state: the path of the model is not UTF-8, which the file's header must be", last->path);
    w->digest = source_digest(a, last->path);
    out_open_whole(a, &w->out, o->save_state);
    return w;
}

static struct tensor table_of(struct arena *a, const struct history *h, const int64_t *table)
{
    struct tensor t = {.dtype = DT_I64, .rank = 2, .dim = {h->batch, h->length}, .data = NEWN(a, int64_t, h->batch * h->length + 1)};
    for (int64_t b = 0; b < h->batch; b++)
        memcpy((int64_t *)t.data + b * h->length, table + b * h->room, (size_t)h->length * sizeof *table);
    return t;
}

static bool is_kept(const struct stage *s, int input)
{
    return s->role[input] == ROLE_STATE || s->role[input] == ROLE_CONSTANT;
}

static const char *real_text(struct arena *a, double x)
{
    return arena_printf(a, "%.17g", x);
}

/* Tensors without data have only sizes. */
static void write_head(struct arena *a, struct saved_file *w, const struct stage *s, const struct saved_run *now, int n,
                       const char *const *name, const struct tensor *tensor)
{
    const struct sampling *r = &now->sampling;
    const struct named_text text[] = {{"format", FORMAT},
                                      {"model", s->path},
                                      {"model_xxh3", w->digest},
                                      {"made", arena_printf(a, "%" PRId64, now->made)},
                                      {"past", arena_printf(a, "%" PRId64, now->past)},
                                      {"text", now->text ? "true" : "false"},
                                      {"temperature", real_text(a, r->temperature)},
                                      {"top_k", arena_printf(a, "%" PRId64, r->top_k)},
                                      {"top_p", real_text(a, r->top_p)},
                                      {"min_p", real_text(a, r->min_p)},
                                      {"repetition_penalty", real_text(a, r->penalty)},
                                      {"presence_penalty", real_text(a, r->presence)},
                                      {"frequency_penalty", real_text(a, r->frequency)},
                                      {"seed", arena_printf(a, "%" PRIu64, r->seed)}};
    safetensors_begin(&w->out, n, name, tensor, sizeof text / sizeof *text, text);
}

/* A state is gathered only when it is written, so that no rank holds more than one whole state. */
static void put_tensor(struct saved_file *w, const struct stage *s, int input, const struct tensor *own)
{
    struct arena *tmp = arena_new();
    struct tensor t = own ? *own : s->role[input] == ROLE_STATE ? session_gather_state(s->session, tmp, input) : s->in[input];
    if (w->out.file)
        out_put(&w->out, t.data, tensor_bytes(&t));
    arena_free(tmp);
}

void saved_write(struct saved_file *w, const struct stage *s, const struct history *h, const struct job_options *o,
                 const struct saved_run *now)
{
    struct arena *a = arena_new();
    int inputs = s->graph->inputs.n, n = OWNS, *input = NEWN(a, int, OWNS + inputs);
    const char **name = NEWN(a, const char *, OWNS + inputs);
    struct tensor *tensor = NEWN(a, struct tensor, OWNS + inputs);
    memcpy(name, own_name, sizeof own_name);
    tensor[TOKENS] = table_of(a, h, h->token);
    tensor[MASK] = table_of(a, h, h->seen);
    tensor[POSITIONS] = table_of(a, h, h->position);
    tensor[ENDS] = (struct tensor){.dtype = DT_I64, .rank = 1, .dim = {o->eos.list.n}, .data = o->eos.list.at};
    for (int i = 0; i < inputs; i++) {
        if (!is_kept(s, i))
            continue;
        name[n] = s->graph->inputs.at[i]->name;
        tensor[n] = s->role[i] == ROLE_STATE ? session_state_sizes(s->session, i) : s->in[i];
        input[n++] = i;
    }
    if (w->out.file)
        write_head(a, w, s, now, n, name, tensor);
    for (int i = 0; i < n; i++)
        put_tensor(w, s, input[i], i < OWNS ? &tensor[i] : NULL);
    if (w->out.file) {
        safetensors_end(&w->out);
        (void)out_close(&w->out);
    }
    arena_free(a);
}

/* ---- reading, on rank 0: the file is hostile ---- */

struct reading {
    struct arena *arena, *states; /* states: of their data */
    const struct safetensors *file;
    const struct stage *stage;
};

static const char *text_of(const struct reading *r, const char *key)
{
    const char *text = safetensors_text(r->file, key);
    if (!text)
        fail("%s: has no '%s': not a state that tpc-run --save-state wrote", r->file->path, key);
    return text;
}

static int64_t integer_of(const struct reading *r, const char *key, int64_t most)
{
    int64_t n = 0;
    if (!i64_parse(text_of(r, key), 0, most, &n))
        fail("%s: its %s is '%s', expected an integer of 0 to %" PRId64, r->file->path, key, text_of(r, key), most);
    return n;
}

static double real_of(const struct reading *r, const char *key)
{
    char *end;
    double x = strtod(text_of(r, key), &end);
    if (*end || end == text_of(r, key) || !isfinite(x))
        fail("%s: its %s is '%s', expected a number", r->file->path, key, text_of(r, key));
    return x;
}

static void check_model(const struct reading *r)
{
    const char *own = source_digest(r->arena, r->stage->path);
    safetensors_check(r->file, FORMAT);
    if (strcmp(text_of(r, "model_xxh3"), own) != 0)
        fail("%s: is the state of another model: of '%s' with digest %s, and %s has digest %s", r->file->path, text_of(r, "model"),
             text_of(r, "model_xxh3"), r->stage->path, own);
}

static struct saved_run read_texts(const struct reading *r)
{
    struct saved_run s = {.made = integer_of(r, "made", MOST_TOKEN), .past = integer_of(r, "past", MOST_TOKEN)};
    s.text = strcmp(text_of(r, "text"), "true") == 0;
    s.sampling = (struct sampling){.temperature = real_of(r, "temperature"),
                                   .top_k = integer_of(r, "top_k", INT32_MAX),
                                   .top_p = real_of(r, "top_p"),
                                   .min_p = real_of(r, "min_p"),
                                   .penalty = real_of(r, "repetition_penalty"),
                                   .presence = real_of(r, "presence_penalty"),
                                   .frequency = real_of(r, "frequency_penalty"),
                                   .seed = (uint64_t)integer_of(r, "seed", INT64_MAX)};
    const struct sampling_fault f = sampling_fault(&s.sampling);
    if (f.key)
        fail("%s: %s: expected %s", r->file->path, f.key, f.expected);
    return s;
}

/* The file's data may be unaligned. */
static struct tensor tensor_of(const struct reading *r, const char *name, struct arena *to)
{
    const struct tensor *found = safetensors_find(r->file, name);
    if (!found)
        fail("%s: lacks '%s'", r->file->path, name);
    struct tensor t = *found;
    t.data = arena_alloc(to, tensor_bytes(found) + 1);
    if (tensor_bytes(found))
        memcpy(t.data, found->data, tensor_bytes(found));
    return t;
}

static struct tensor integers_of(const struct reading *r, int own, int rank, int64_t most)
{
    struct tensor t = tensor_of(r, own_name[own], r->arena);
    const int64_t *at = t.data;
    if (t.dtype != DT_I64 || t.rank != rank)
        fail("%s: '%s' is %s of %d dimensions, expected i64 of %d", r->file->path, own_name[own], dtype_name(t.dtype), t.rank, rank);
    for (int64_t i = 0, n = tensor_elements(&t); i < n; i++)
        if (at[i] < 0 || at[i] > most)
            fail("%s: '%s' holds %" PRId64 ", expected 0 to %" PRId64, r->file->path, own_name[own], at[i], most);
    return t;
}

static void read_tables(const struct reading *r, const struct saved_run *s, struct tensor *to)
{
    to[TOKENS] = integers_of(r, TOKENS, 2, MOST_TOKEN);
    to[MASK] = integers_of(r, MASK, 2, 1);
    to[POSITIONS] = integers_of(r, POSITIONS, 2, MOST_TOKEN);
    to[ENDS] = integers_of(r, ENDS, 1, MOST_TOKEN);
    const int64_t rows = to[TOKENS].dim[0], columns = to[TOKENS].dim[1];
    for (int i = MASK; i <= POSITIONS; i++)
        if (to[i].dim[0] != rows || to[i].dim[1] != columns)
            fail("%s: '%s' is %" PRId64 " by %" PRId64 ", and the tokens are %" PRId64 " by %" PRId64, r->file->path, own_name[i],
                 to[i].dim[0], to[i].dim[1], rows, columns);
    if (rows < 1 || columns < 2 || s->made < 1 || s->past + s->made > columns)
        fail("%s: says %" PRId64 " tokens were made after a past of %" PRId64 ", and has %" PRId64 " rows of %" PRId64, r->file->path,
             s->made, s->past, rows, columns);
}

/* The dimension of a state with a column per token in the cache; -1: none. */
static int column_dim(const struct stage *s, int input)
{
    return s->role[input] == ROLE_STATE ? session_state_grows_along(s->session, input) : -1;
}

static struct tensor read_input(const struct reading *r, int input, int64_t cached)
{
    const struct stage *s = r->stage;
    const char *name = s->graph->inputs.at[input]->name;
    const struct type *type = session_input_type(s->session, input);
    struct tensor t = tensor_of(r, name, s->role[input] == ROLE_STATE ? r->states : r->arena);
    int column = column_dim(s, input);
    bool fits = t.dtype == type->dtype && t.rank == type->rank;
    for (int d = 0; fits && d < t.rank; d++) {
        int64_t size = t.dim[d];
        fits = (!dim_is_int(type->dim[d], &size) || size == t.dim[d]) && (d != column || t.dim[d] == cached);
    }
    if (!fits)
        fail("%s: '%s' is %s, and %s takes %s with %" PRId64 " tokens in the cache%s", r->file->path, name,
             outputs_shape_text(r->arena, &t), s->path, type_str(r->arena, type), cached,
             t.dtype != type->dtype ? ": --cache was another when it was saved" : "");
    return t;
}

static void check_all_read(const struct reading *r, const struct tensor *input)
{
    int n = 0;
    for (int i = 0; i < r->stage->graph->inputs.n; i++)
        n += input[i].data != NULL;
    if (r->file->n != OWNS + n)
        fail("%s: has %d tensors, expected %d: the tokens, and what %s takes", r->file->path, r->file->n, OWNS + n, r->stage->path);
}

static struct saved_run read_file(const struct reading *r, struct tensor *own, struct tensor *input)
{
    check_model(r);
    struct saved_run s = read_texts(r);
    read_tables(r, &s, own);
    for (int i = 0; i < r->stage->graph->inputs.n; i++)
        if (is_kept(r->stage, i))
            input[i] = read_input(r, i, own[TOKENS].dim[1] - 1);
    check_all_read(r, input);
    return s;
}

/* ---- continuing, on all ranks ---- */

/* Given options win. Options that need sampling start it if there was none. */
static void take_sampling(const struct sampling *s, struct job_options *o)
{
    o->penalty = o->penalty >= 0 ? o->penalty : s->penalty;
    o->presence = isnan(o->presence) ? s->presence : o->presence;
    o->frequency = isnan(o->frequency) ? s->frequency : o->frequency;
    if (s->temperature <= 0)
        return;
    o->temperature = o->temperature >= 0 ? o->temperature : s->temperature;
    o->top_k = o->top_k >= 0 ? o->top_k : s->top_k;
    o->top_p = o->top_p >= 0 ? o->top_p : s->top_p;
    o->min_p = o->min_p >= 0 ? o->min_p : s->min_p;
    o->sampling_seed = o->sampling_seed >= 0 ? o->sampling_seed : (int64_t)s->seed;
}

static struct history fill_history(struct arena *a, const struct stage *s, const struct tensor *own, int64_t more)
{
    const int64_t *token = own[TOKENS].data, *seen = own[MASK].data, *position = own[POSITIONS].data;
    int64_t rows = own[TOKENS].dim[0], columns = own[TOKENS].dim[1], room;
    if (!i64_add(columns, more, &room))
        fail("%s: a row of %" PRId64 " tokens and %" PRId64 " more is too long", s->path, columns, more);
    struct history h = history_empty(a, rows, room);
    for (; h.length < columns; h.length++)
        for (int64_t b = 0; b < rows; b++) {
            int64_t at = b * columns + h.length;
            history_put(&h, b, token[at], seen[at] != 0);
            h.position[b * room + h.length] = position[at];
        }
    return h;
}

/* Every run reads constants; only the first one reads states. */
static void send_inputs(struct arena *a, struct arena *states, struct comm *all, struct stage *s, struct tensor *input)
{
    int n = s->graph->inputs.n;
    struct tensor *state = NEWN(a, struct tensor, n), *constant = NEWN(a, struct tensor, n);
    for (int i = 0; i < n; i++)
        *(s->role[i] == ROLE_STATE ? &state[i] : &constant[i]) = input[i];
    job_send_inputs(states, all, n, state);
    job_send_inputs(a, all, n, constant);
    for (int i = 0; i < n; i++)
        s->given[i] = s->role[i] == ROLE_STATE ? state[i] : constant[i];
}

struct history saved_read(struct arena *a, struct arena *states, struct comm *all, struct stage *s, struct job_options *o,
                          struct saved_run *now)
{
    struct tensor *own = NEWN(a, struct tensor, OWNS), *input = NEWN(a, struct tensor, s->graph->inputs.n);
    if (all->rank == 0) {
        const struct reading r = {.arena = a, .states = states, .file = safetensors_read(a, o->load_state), .stage = s};
        *now = read_file(&r, own, input);
    }
    comm_from_first(all, "saved state", now, sizeof *now);
    job_send_inputs(a, all, OWNS, own);
    send_inputs(a, states, all, s, input);
    take_sampling(&now->sampling, o);
    for (int64_t i = 0, n = o->eos.list.n ? 0 : own[ENDS].dim[0]; i < n; i++)
        VEC_PUSH(a, &o->eos.list, ((const int64_t *)own[ENDS].data)[i]);
    struct history h = fill_history(a, s, own, o->generate);
    h.past = now->past;
    return h;
}
