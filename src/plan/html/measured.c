/* measured: a run that tpc-run --trace recorded, folded as the predicted step is: what each rank spent in each run of like layers. */
#include "plan/html/html.h"
#include "plan/input/input.h"

#include <string.h>

struct reader {
    struct arena *a;
    const char *path;
    const struct html_page *page;
    struct html_measured *to;
    struct name_index run; /* of nodes, by name */
};

/* A change of group begins a run. */
static void name_runs(struct reader *r)
{
    const struct plan *plan = r->page->plan;
    const struct graph *g = plan->alternatives->graph;
    const int *group = r->page->groups.of_part;
    int run = 0;
    for (int i = 0; i < plan->step.list.n; i++) {
        const struct step_part *part = &plan->step.list.at[i];
        run += i > 0 && group[i] != group[i - 1];
        if (!part->to && g->nodes.at[part->node]->name)
            name_index_put(r->a, &r->run, g->nodes.at[part->node]->name, run);
    }
    r->to->runs = run + 1;
}

/* The workload whose sizes the run had. */
static int load_of(const struct reader *r, const json_t *sizes)
{
    const struct plan *plan = r->page->plan;
    for (int w = 0; w < plan->workloads.n; w++) {
        if (json_sizes_are(sizes, &plan->workloads.at[w].dims))
            return w;
    }
    fail("%s: its sizes, %s, match no workload of this plan (give them with --workload)", r->path, json_dump(r->a, sizes, JSON_COMPACT));
}

static void read_head(struct reader *r, const json_t *root)
{
    const json_t *head = json_member(r->path, root, "otherData", JSON_OBJECT);
    if (!head)
        fail("%s: expected a trace of tpc-run --trace, found no 'otherData'", r->path);
    const json_t *ranks = json_member(r->path, head, "ranks", JSON_INTEGER), *sizes = json_member(r->path, head, "sizes", JSON_OBJECT);
    if (json_integer_value(ranks) != r->page->g->ranks)
        fail("%s: is of %lld ranks, and this plan has %d", r->path, (long long)json_integer_value(ranks), r->page->g->ranks);
    const char *model = json_text(r->a, r->path, head, "model"), *own = plan_source_digest(r->a, r->page->options);
    if (model && own && strcmp(model, own) != 0)
        fail("%s: is of another model (digest %s, and this one has %s)", r->path, model, own);
    r->to->load = load_of(r, sizes);
}

static enum html_share share_of(const char *category)
{
    return strcmp(category, "wait") == 0 ? HTML_WAIT : strcmp(category, "collective") == 0 ? HTML_SENT : HTML_WORK;
}

/* Events come in the order of time; one of no node that was planned belongs to the run before it. at: the run of each rank. */
static void read_event(const struct reader *r, const json_t *event, int *at)
{
    struct html_measured *m = r->to;
    const char *name = json_text(r->a, r->path, event, "name"), *category = json_text(r->a, r->path, event, "cat");
    json_int_t rank = json_integer_value(json_object_get(event, "pid"));
    double from = json_number_value(json_object_get(event, "ts")), seconds = 1e-6 * json_number_value(json_object_get(event, "dur"));
    if (!name || !category || rank < 0 || rank >= m->ranks || !(seconds >= 0) || seconds > 1e9 || !(from >= 0) || from > 1e15)
        return;
    int run = name_index_find(&r->run, name);
    at[rank] = run >= at[rank] ? run : at[rank];
    m->seconds[rank * m->runs + at[rank]][share_of(category)] += seconds;
    m->total[rank] = 1e-6 * from + seconds > m->total[rank] ? 1e-6 * from + seconds : m->total[rank];
}

const struct html_measured *html_measured_read(const struct html_page *page, const char *path)
{
    struct html_measured *m = NEW(page->arena, struct html_measured);
    struct reader r = {.a = page->arena, .path = path, .page = page, .to = m};
    json_t *root = json_read(path);
    const json_t *event;
    size_t i;
    read_head(&r, root);
    name_runs(&r);
    m->ranks = page->g->ranks;
    m->total = NEWN(r.a, double, m->ranks);
    m->seconds = arena_array(r.a, (size_t)(m->ranks * m->runs), sizeof *m->seconds);
    int *at = NEWN(r.a, int, m->ranks);
    json_array_foreach(json_member(path, root, "traceEvents", JSON_ARRAY), i, event) read_event(&r, event, at);
    for (int k = 0; k < m->ranks; k++)
        m->most = m->total[k] > m->most ? m->total[k] : m->most;
    json_decref(root);
    return m;
}
