/* plan_write: writes plan.json, the plan for users and scripts (schemas/plan.schema.json). Never read at run time. Keys come in a fixed
 * order and nothing depends on the machine or the output folder, so the same input gives the same bytes; their digest ties rank files
 * together. */
#include "ir/configuration.h"
#include "op/plugin/plugin.h"
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/folder/folder.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "plan/report/report.h"

#include <inttypes.h>
#include <string.h>

struct plan_writer {
    struct arena *tmp;
    const struct graph *source, *global;
    const struct options *options;
    const struct plan *plan;
    int first; /* the number of its first rank: 0, except in stages */
};

static json_t *json_place(const struct plan_writer *w, struct placement p)
{
    return json_text_of(placement_str(w->tmp, p));
}

/* NULL for NULL, which objects leave out. */
static json_t *json_maybe(const char *text)
{
    return text ? json_text_of(text) : NULL;
}

const char *plan_source_digest(struct arena *a, const struct options *options)
{
    struct written model;
    if (options->folder)
        return options->folder->digest;
    return digest_file_get(options->digest, &model) ? arena_printf(a, "%016" PRIx64, model.digest) : NULL;
}

static json_t *source_object(const struct plan_writer *w)
{
    const struct folder *f = w->options->folder;
    struct written model;
    json_t *o = json_object();
    json_object_set_new(o, "file", json_text_of(f ? f->file : path_base(w->options->model)));
    if (f || digest_file_get(w->options->digest, &model)) {
        json_object_set_new(o, "bytes", json_integer(f ? (json_int_t)f->bytes : (json_int_t)model.bytes));
        json_object_set_new(o, "xxh3", json_text_of(plan_source_digest(w->tmp, w->options)));
    }
    return o;
}

static json_t *options_object(const struct plan_writer *w)
{
    static const char *const sp[] = {"off", "on", "auto"};
    json_t *o = json_object(), *fixed = json_array(), *plugins = json_array();
    json_object_set_new(o, "sp", json_text_of(sp[w->options->sp]));
    if (w->options->sp_symbol)
        json_object_set_new(o, "sp_symbol", json_text_of(w->options->sp_symbol));
    json_object_set_new(o, "solver", json_text_of(w->options->solver_first ? "first" : "exact"));
    if (weight_converted(w->options))
        json_object_set_new(o, "weights", json_text_of(weight_type_name(w->options->weights)));
    if (w->options->machine.wire != WIRE_F32)
        json_object_set_new(o, "wire", json_text_of(sum_wire_name(w->options->machine.wire)));
    for (const struct plugin *p = plugin_first(); p; p = p->next)
        if (plugin_is_used(p, w->source))
            json_array_append_new(plugins, json_pack("{s:s, s:s}", "name", p->name, "xxh3", p->digest));
    if (json_array_size(plugins))
        json_object_set(o, "plugins", plugins);
    json_decref(plugins);
    json_object_set_new(o, "dims", json_sizes(&w->options->dims));
    for (int i = 0; i < w->options->fixed.list.n; i++)
        json_array_append_new(fixed, json_text_of(w->options->fixed.list.at[i]));
    if (json_array_size(fixed))
        json_object_set(o, "bind", fixed);
    json_decref(fixed);
    if (w->options->memory)
        json_object_set_new(o, "memory", json_integer(w->options->memory));
    if (w->plan->configuration)
        json_object_set_new(o, "configuration", json_text_of(w->plan->configuration->name));
    json_object_set_new(o, "strict",
                        w->options->strict == STRICT_WARN ? json_string("warn") : json_boolean(w->options->strict == STRICT_ON));
    if (w->options->plan_file && w->options->plan_file->text)
        json_object_set_new(o, "plan", json_loads(w->options->plan_file->text, 0, NULL));
    return o;
}

static void symbol_object(void *to, const struct dim *symbol)
{
    json_t *o = to;
    if (!json_object_get(o, symbol->name))
        json_object_set_new(o, symbol->name, json_pack("{s:I}", "at_least", (json_int_t)symbol->lo));
}

static json_t *dims_object(const struct plan_writer *w)
{
    json_t *o = json_object();
    for (int i = 0; i < w->global->inputs.n; i++)
        for (int d = 0; d < w->global->inputs.at[i]->type.rank; d++)
            dim_each_symbol(w->global->inputs.at[i]->type.dim[d], symbol_object, o);
    return o;
}

static json_t *assumptions_array(const struct plan_writer *w)
{
    const struct equation *eq;
    int n = alg_equations(w->global->alg, &eq);
    json_t *a = json_array();
    for (int i = 0; i < n; i++) {
        json_t *left = json_text_of(dim_str(w->tmp, eq[i].left)), *right = json_text_of(dim_str(w->tmp, eq[i].right));
        json_array_append_new(a, json_pack("{s:o, s:o, s:o}", "left", left, "right", right, "why", json_text_of(eq[i].why)));
    }
    return a;
}

static json_t *workload_array(const struct plan_writer *w)
{
    json_t *a = json_array();
    EACH (const struct workload, load, w->plan->workloads) {
        json_array_append_new(a, json_pack("{s:o, s:o*}", "dims", json_sizes(&load->dims), "weight", json_real(load->weight)));
    }
    return a;
}

static json_t *machine_object(const struct machine *m)
{
    json_t *o = json_object();
    json_object_set_new(o, "name", json_text_of(path_base(m->name)));
    machine_put(o, m);
    return o;
}

static json_t *ranks_array(const struct plan_writer *w)
{
    json_t *a = json_array();
    for (int r = 0; w->plan->use && r < w->global->ranks; r++) {
        const struct rank_use *use = &w->plan->use[r];
        json_t *files = json_pack("{s:s, s:s}", "graph", arena_printf(w->tmp, "rank-%d.onnx", w->first + r), "weights",
                                  arena_printf(w->tmp, "rank-%d.data", w->first + r));
        json_t *bytes = json_pack("{s:I, s:I, s:I, s:I, s:I}", "weight_bytes", (json_int_t)use->weights, "table_bytes",
                                  (json_int_t)use->tables, "state_bytes", (json_int_t)use->state, "peak_bytes", (json_int_t)use->peak,
                                  "block_bytes", (json_int_t)use->blocks);
        json_object_update(files, bytes);
        json_decref(bytes);
        json_array_append_new(a, files);
    }
    return a;
}

static json_t *values_object(const struct plan_writer *w)
{
    json_t *o = json_object();
    for (int i = 0; i < w->global->values.n; i++) {
        const struct value *v = w->global->values.at[i];
        bool input = false;
        for (int k = 0; k < w->global->inputs.n; k++)
            input = input || w->global->inputs.at[k] == v;
        if (v->producer || input)
            json_object_set_new(o, v->name, json_place(w, v->place));
    }
    return o;
}

static json_t *weights_object(const struct plan_writer *w)
{
    json_t *all = json_object();
    struct uses *uses = graph_uses(w->global, w->tmp);
    for (int i = 0; i < w->global->values.n; i++) {
        const struct value *v = w->global->values.at[i];
        if (!v->constant || !uses[i].n)
            continue;
        const char *origin = v->constant->origin && strcmp(v->constant->origin, v->name) != 0 ? v->constant->origin : NULL;
        json_object_set_new(all, v->name, json_pack("{s:o, s:o*}", "placement", json_place(w, v->place), "origin", json_maybe(origin)));
    }
    return all;
}

/* Seconds; NULL for a plan that tpc-run cannot run. */
static json_t *json_seconds(const struct plan *p, double seconds)
{
    return p->missing.list.n ? json_null() : json_real(seconds);
}

static json_t *collectives_array(const struct plan_writer *w)
{
    json_t *all = json_array();
    for (int i = 0; i < w->plan->collectives.n; i++) {
        const struct planned_collective *c = &w->plan->collectives.at[i];
        json_t *bytes = json_array(), *seconds = json_array();
        require(c->kind != COLL_NONE && c->node && c->value);
        for (int k = 0; k < w->plan->workloads.n; k++) {
            const struct bindings *dims = &w->plan->workloads.at[k].dims;
            json_array_append_new(bytes, json_integer(cost_payload(w->global, c->node, dims, w->global->ranks)));
            json_array_append_new(
                seconds, json_seconds(w->plan, cost_collective_seconds(&w->options->machine, w->global, c->node, dims, w->global->ranks)));
        }
        json_array_append_new(all,
                              json_pack("{s:s, s:o, s:o, s:i, s:o, s:o, s:o}", "op", collective_name(c->kind), "node",
                                        json_text_of(c->node->name), "value", json_text_of(c->value->name), "axis", c->axis, "bytes", bytes,
                                        "seconds", seconds, "reason", json_text_of(c->reason)));
    }
    return all;
}

static json_t *ends_object(const struct plan_writer *w, int n, struct value *const *at)
{
    json_t *all = json_object();
    for (int i = 0; i < n; i++) {
        json_t *type = json_text_of(type_str(w->tmp, &at[i]->type));
        json_object_set_new(all, at[i]->name, json_pack("{s:o, s:o}", "type", type, "placement", json_place(w, at[i]->place)));
    }
    return all;
}

static json_t *state_array(const struct plan_writer *w)
{
    json_t *all = json_array();
    for (int i = 0; i < w->global->states.n; i++) {
        const struct state *s = &w->global->states.at[i];
        const struct value *any = s->past ? s->past : s->present;
        require(any);
        json_t *past = json_maybe(s->past ? s->past->name : NULL), *present = json_maybe(s->present ? s->present->name : NULL);
        json_array_append_new(all,
                              json_pack("{s:o*, s:o*, s:o*, s:i, s:o}", "past", past, "present", present, "from", json_maybe(s->from),
                                        "grows", s->dim, "placement", json_place(w, any->place)));
    }
    return all;
}

static json_t *named_object(const struct named_list *list)
{
    json_t *all = json_object();
    for (int i = 0; i < list->list.n; i++)
        json_object_set_new(all, list->list.at[i].name, json_text_of(list->list.at[i].text));
    return all;
}

static json_t *cost_object(const struct plan *p)
{
    json_t *each = json_array();
    EACH (const struct workload, load, p->workloads) {
        json_t *overlapped = load->overlapped > 0 ? json_seconds(p, load->overlapped) : NULL;
        json_array_append_new(each,
                              json_pack("{s:o*, s:o*, s:o*}", "seconds", json_seconds(p, plan_step_seconds(load)), "unsharded_seconds",
                                        json_seconds(p, load->unsharded_seconds), "overlapped_seconds", overlapped));
    }
    json_t *price = p->near.collective_price ? json_integer(p->near.collective_price) : NULL, *ranks = p->rank_time ? json_array() : NULL;
    for (int r = 0; ranks && r < p->ranks; r++)
        json_array_append_new(
            ranks, json_pack("{s:f, s:o*}", "share", p->rank_time[r].share, "seconds", json_seconds(p, p->rank_time[r].seconds)));
    return json_pack("{s:o*, s:o*, s:o*, s:o*, s:b, s:o*, s:o, s:o*}", "seconds", json_seconds(p, plan_seconds(p)), "unsharded_seconds",
                     json_seconds(p, p->unsharded_seconds), "objective", json_real(plan_objective(p)), "lower_bound",
                     json_real(p->lower_bound), "proven", p->proven, "collective_price", price, "workloads", each, "ranks", ranks);
}

static json_t *seconds_array(const struct plan *p, const double *at)
{
    json_t *all = json_array();
    for (int i = 0; i < p->workloads.n; i++)
        json_array_append_new(all, json_seconds(p, at[i]));
    return all;
}

/* Nodes and reshards in execution order. */
static json_t *steps_array(const struct plan *p)
{
    json_t *all = json_array();
    EACH (const struct step_part, part, p->step.list) {
        json_t *by = json_maybe(part->by ? collective_name(part->by) : NULL), *layer = part->layer >= 0 ? json_integer(part->layer) : NULL;
        json_array_append_new(all,
                              json_pack("{s:o, s:o*, s:o*, s:o*, s:o*, s:o}", part->to ? "reshard" : "node", json_text_of(part->name),
                                        "inside", json_maybe(part->into), "to", json_maybe(part->to), "by", by, "layer", layer, "seconds",
                                        seconds_array(p, part->seconds)));
    }
    return all;
}

static json_t *layers_array(const struct plan *p)
{
    json_t *all = json_array();
    for (int i = 0; i < p->step.layer.n; i++)
        json_array_append_new(all, json_integer(p->step.layer.at[i]));
    return all;
}

/* The limit of --memory, the fullest rank's bytes, the byte price of the plan, and the shares that unequal memory allows. */
static json_t *memory_object(const struct plan_writer *w)
{
    const struct rank_use *use = w->plan->use;
    int64_t most = 0;
    for (int r = 0; use && r < w->global->ranks; r++)
        most = memory_total(&use[r]) > most ? memory_total(&use[r]) : most;
    json_t *limit = w->options->memory ? json_integer(w->options->memory) : NULL, *shares = w->plan->memory_share ? json_array() : NULL;
    for (int r = 0; shares && r < w->global->ranks; r++)
        json_array_append_new(shares, json_integer(w->plan->memory_share[r]));
    return json_pack("{s:o*, s:I, s:o*, s:o*, s:o*}", "limit", limit, "reached", (json_int_t)most, "price", json_real(w->plan->byte_price),
                     "gap", json_real(w->plan->memory_gap), "shares", shares);
}

static json_t *texts_array(int n, const char *const *at)
{
    json_t *a = json_array();
    for (int i = 0; i < n; i++)
        json_array_append_new(a, json_text_of(at[i]));
    return a;
}

static json_t *missing_array(const struct missing_kernels *missing)
{
    json_t *all = json_array();
    for (int i = 0; i < missing->list.n; i++) {
        const struct missing_kernel *m = &missing->list.at[i];
        json_array_append_new(all,
                              json_pack("{s:o, s:i, s:o}", "op", json_text_of(m->op), "nodes", m->nodes, "first", json_text_of(m->first)));
    }
    return all;
}

static json_t *kinds_object(const struct kind_uses *all, int workloads)
{
    json_t *o = json_object();
    for (int i = 0; i < all->list.n; i++) {
        const struct kind_use *k = &all->list.at[i];
        json_t *bytes = json_array();
        for (int w = 0; w < workloads; w++)
            json_array_append_new(bytes, json_integer((json_int_t)k->bytes[w]));
        json_object_set_new(o, collective_name(k->kind), json_pack("{s:i, s:o}", "count", k->count, "bytes", bytes));
    }
    return o;
}

static json_t *compared_array(const struct plan *p)
{
    json_t *all = json_array();
    EACH (const struct compared, c, p->compared.list) {
        json_array_append_new(all,
                              json_pack("{s:o, s:o*, s:o*, s:o, s:o, s:I}", "plan", json_text_of(c->name), "seconds",
                                        json_seconds(p, c->seconds), "times", json_seconds(p, c->seconds / plan_seconds(p)), "workloads",
                                        seconds_array(p, c->step), "collectives", kinds_object(&c->kinds, p->workloads.n), "weight_bytes",
                                        (json_int_t)c->weights));
    }
    return all;
}

static json_t *root_object(const struct plan_writer *w)
{
    const struct plan *p = w->plan;
    json_t *o = json_object();
    json_object_set_new(o, "version", json_integer(PLAN_VERSION));
    json_object_set_new(o, "source", source_object(w));
    json_object_set_new(o, "tp", json_integer(w->global->ranks));
    json_object_set_new(o, "options", options_object(w));
    json_object_set_new(o, "dims", dims_object(w));
    json_object_set_new(o, "assumptions", assumptions_array(w));
    json_object_set_new(o, "workload", workload_array(w));
    json_object_set_new(o, "machine", machine_object(&w->options->machine));
    json_object_set_new(o, "ranks", ranks_array(w));
    json_object_set_new(o, "memory", memory_object(w));
    json_object_set_new(o, "values", values_object(w));
    json_object_set_new(o, "weights", weights_object(w));
    json_object_set_new(o, "collectives", collectives_array(w));
    json_object_set_new(o, "inputs", ends_object(w, w->global->inputs.n, w->global->inputs.at));
    json_object_set_new(o, "outputs", ends_object(w, w->global->outputs.n, w->global->outputs.at));
    json_object_set_new(o, "state", state_array(w));
    json_object_set_new(o, "nodes", named_object(&p->nodes));
    json_object_set_new(o, "pinned", named_object(&p->read_places));
    json_object_set_new(o, "cost", cost_object(p));
    json_object_set_new(o, "steps", steps_array(p));
    json_object_set_new(o, "layers", layers_array(p));
    if (p->compared.list.n)
        json_object_set_new(o, "compared", compared_array(p));
    if (p->missing.list.n)
        json_object_set_new(o, "missing_kernels", missing_array(&p->missing));
    json_object_set_new(o, "warnings", texts_array(p->warnings.n, p->warnings.at));
    return o;
}

json_t *plan_object(const struct graph *source, const struct graph *global, const struct options *options, const struct plan *plan,
                    int first_rank)
{
    const struct plan_writer w = {arena_new(), source, global, options, plan, first_rank};
    json_t *root = root_object(&w);
    arena_free(w.tmp);
    return root;
}

char *plan_json(const struct graph *source, const struct graph *global, const struct options *options, const struct plan *plan)
{
    json_t *root = plan_object(source, global, options, plan, 0);
    char *copy = json_dump(global->arena, root, JSON_INDENT(1));
    json_decref(root);
    return copy;
}
