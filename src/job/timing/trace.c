/* trace: the last run of all ranks as JSON of Chrome's Trace Event Format, for Perfetto and chrome://tracing (--trace): a process per rank,
 * and one for the predicted step of these sizes. */
#include "job/timing/timing.h"
#include "plan/input/input.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

static json_t *event(const char *name, const char *category, int process, double at, double seconds)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:i, s:f, s:f}", "name", name, "cat", category, "ph", "X", "pid", process, "tid", 0, "ts",
                     1e6 * at, "dur", 1e6 * seconds);
}

static json_t *process_name(int process, const char *name)
{
    return json_pack("{s:s, s:s, s:i, s:{s:s}}", "name", "process_name", "ph", "M", "pid", process, "args", "name", name);
}

/* ---- what a rank measured ---------------------------------------------------------------------------------------------------- */

/* "128x768 768x3072", of what the node reads. */
static const char *sizes_text(struct arena *a, const struct session_timed *t)
{
    const char *text = "";
    for (int k = 0; k < t->node->nin; k++) {
        text = t->node->in[k] && *text ? arena_printf(a, "%s ", text) : text;
        for (int d = 0; t->node->in[k] && d < t->in[k].rank; d++)
            text = arena_printf(a, "%s%s%lld", text, d ? "x" : "", (long long)t->in[k].dim[d]);
    }
    return text;
}

static json_t *own_events(struct arena *a, int rank, const struct session_timed *t, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) {
        const char *name = t[i].node->name && *t[i].node->name ? t[i].node->name : t[i].node->optype;
        json_t *work = event(name, t[i].collective ? "collective" : "compute", rank, t[i].at + t[i].wait, t[i].seconds);
        if (t[i].collective)
            json_array_append_new(list, event("waiting", "wait", rank, t[i].at, t[i].wait));
        json_object_set_new(work, "args",
                            json_pack("{s:s, s:s, s:f, s:f, s:I}", "op", t[i].node->optype, "sizes", sizes_text(a, &t[i]), "operations",
                                      t[i].operations, "bytes", t[i].moved, "sent_bytes", (json_int_t)t[i].bytes));
        json_array_append_new(list, work);
    }
    return list;
}

/* ---- what the plan predicted --------------------------------------------------------------------------------------------------- */

/* The workload of plan.json with the sizes of the run; -1: none. */
static int workload_of(const json_t *plan, const struct bindings *sizes)
{
    const json_t *workload;
    size_t k;
    json_array_foreach(json_object_get(plan, "workload"), k, workload)
    {
        if (json_sizes_are(json_object_get(workload, "dims"), sizes))
            return (int)k;
    }
    return -1;
}

json_t *trace_plan(struct arena *a, const char *folder)
{
    const char *path = path_join(a, folder, "plan.json");
    return path_exists(path) ? json_read(path) : NULL;
}

double trace_predicted(const json_t *plan, const struct bindings *sizes)
{
    int k = workload_of(plan, sizes);
    const json_t *all = json_object_get(json_object_get(plan, "cost"), "workloads");
    return k >= 0 ? json_number_value(json_object_get(json_array_get(all, (size_t)k), "seconds")) : 0;
}

static void predicted_events(struct arena *a, json_t *list, int process, const json_t *plan, const struct bindings *sizes)
{
    const json_t *step;
    int k = workload_of(plan, sizes);
    double at = 0;
    size_t i;
    if (k >= 0)
        json_array_append_new(list, process_name(process, "predicted"));
    json_array_foreach(k >= 0 ? json_object_get(plan, "steps") : NULL, i, step)
    {
        const char *node = json_string_value(json_object_get(step, "node")), *of = json_string_value(json_object_get(step, "reshard")),
                   *by = json_string_value(json_object_get(step, "by"));
        double seconds = json_number_value(json_array_get(json_object_get(step, "seconds"), (size_t)k));
        const char *name = node ? node : arena_printf(a, "%s of %s", by ? by : "reshard", of ? of : "");
        json_array_append_new(list, event(name, by ? "collective" : "compute", process, at, seconds));
        at += seconds;
    }
}

/* ---- the file --------------------------------------------------------------------------------------------------------------------- */

static void write_events(struct arena *a, json_t *events, int ranks, const struct bindings *sizes, const json_t *plan, const char *path)
{
    struct out out;
    json_t *root = json_pack("{s:o, s:s, s:{s:i, s:o}}", TRACE_FIRST, events, "displayTimeUnit", "ms", "otherData", "ranks", ranks, "sizes",
                             json_sizes(sizes));
    json_t *model = json_object_get(json_object_get(plan, "source"), "xxh3");
    if (model)
        json_object_set(json_object_get(root, "otherData"), "model", model);
    out_open_whole(a, &out, path);
    if (json_dumpf(root, out.file, JSON_COMPACT | JSON_REAL_PRECISION(9)) != 0)
        out_fail(&out);
    fputc('\n', out.file);
    (void)out_close(&out);
    json_decref(root);
}

void trace_write(struct arena *a, struct comm *all, const struct session *s, const json_t *plan, const char *path)
{
    int n;
    int64_t *bytes, from = 0;
    const struct session_timed *t = session_times(s, &n);
    json_t *own = own_events(a, all->rank, t, n), *events = json_array();
    const char *texts = comm_gather_texts(all, a, "trace", json_dump(a, own, JSON_COMPACT | JSON_REAL_PRECISION(9)), &bytes);
    json_decref(own);
    for (int r = 0; all->rank == 0 && r < all->size; from += bytes[r++]) {
        json_t *one = json_loadb(texts + from, (size_t)bytes[r], 0, NULL);
        require(one);
        json_array_append_new(events, process_name(r, arena_printf(a, "rank %d", r)));
        json_array_extend(events, one);
        json_decref(one);
    }
    if (all->rank == 0) {
        predicted_events(a, events, all->size, plan, session_bindings(s));
        write_events(a, events, all->size, session_bindings(s), plan, path);
    } else {
        json_decref(events);
    }
}
