/* profile: the operators and modules of a graph that take the time of a run (--profile). */
#include "job/timing/timing.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 12 };

/* The work of one run. */
struct work {
    double seconds, operations, bytes;
};
struct share {
    const char *name;
    struct work work;
    int nodes;
};
struct time_shares {
    VEC(struct share) list;
    struct name_index index;
};

static void add_share(struct arena *a, struct time_shares *s, const char *name, struct work work, int nodes)
{
    int at = name_index_find(&s->index, name);
    if (at < 0) {
        at = s->list.n;
        name_index_put(a, &s->index, name, at);
        VEC_PUSH(a, &s->list, ((struct share){.name = name}));
    }
    struct work *sum = &s->list.at[at].work;
    sum->seconds += work.seconds;
    sum->operations += work.operations;
    sum->bytes += work.bytes;
    s->list.at[at].nodes += nodes;
}

static const char waiting[] = "(waiting for other ranks)";

/* The module of a node, independent of the layer: the exporter's path, or else the node's name up to the last slash, with * for each
 * number. */
static const char *module_of(struct arena *a, const struct session_timed *t)
{
    const char *name = t->module ? t->module : t->node->name ? t->node->name : "", *end = strrchr(name, '/');
    size_t n = t->module ? strlen(name) : end ? (size_t)(end - name) : 0, to = 0;
    char *path = arena_alloc(a, n + 1);
    for (size_t from = 0; from < n; to++) {
        size_t digits = strspn(name + from, "0123456789");
        path[to] = digits ? '*' : name[from];
        from += digits ? digits : 1;
    }
    path[to] = '\0';
    return *path ? path : "(no module)";
}

static int by_seconds(const void *x, const void *y)
{
    double a = ((const struct share *)x)->work.seconds, b = ((const struct share *)y)->work.seconds;
    return a > b ? -1 : a < b;
}

/* In billions per second; empty: no such work. */
static const char *rate_text(struct arena *a, double amount, double seconds)
{
    return amount > 0 && seconds > 0 ? arena_printf(a, "%.1f", 1e-9 * amount / seconds) : "";
}

static void print_shares(struct arena *a, const char *what, struct time_shares *s, double all)
{
    qsort(s->list.at, (size_t)s->list.n, sizeof *s->list.at, by_seconds);
    printf("%12s%9s%8s%9s%9s  %s\n", "ms", "share", "nodes", "GF/s", "GB/s", what);
    for (int i = 0; i < s->list.n && i < MOST_ROWS; i++) {
        const struct share *row = &s->list.at[i];
        const struct work *w = &row->work;
        char *name = arena_strdup(a, row->name);
        diag_make_printable(name);
        printf("%12.3f%8.1f%%%8d%9s%9s  %s\n", 1e3 * w->seconds, all > 0 ? 100 * w->seconds / all : 0, row->nodes,
               rate_text(a, w->operations, w->seconds), rate_text(a, w->bytes, w->seconds), name);
    }
    if (s->list.n > MOST_ROWS)
        printf("%12s and %d more\n", "", s->list.n - MOST_ROWS);
}

void profile_print(struct arena *a, struct session *s, const json_t *plan)
{
    double predicted = trace_predicted(plan, session_bindings(s));
    struct time_shares op = {0}, module = {0}, node = {0};
    int n, runs = (int)session_stats(s)->runs;
    const struct session_timed *t = session_times(s, &n);
    double all = 0, each = runs > 0 ? 1.0 / runs : 1;
    for (int i = 0; i < n; i++) {
        const char *name = t[i].node->name ? t[i].node->name : "";
        struct work work = {t[i].sum * each, t[i].operations_sum * each, t[i].moved_sum * each}, wait = {t[i].wait_sum * each, 0, 0};
        add_share(a, &op, t[i].node->optype, work, 1);
        add_share(a, &node, name, work, 1);
        add_share(a, &module, t[i].collective ? "(collectives)" : module_of(a, &t[i]), work, 1);
        if (t[i].collective) {
            add_share(a, &op, waiting, wait, 0);
            add_share(a, &module, waiting, wait, 0);
        }
        all += work.seconds + wait.seconds;
    }
    printf("profile of rank 0, a run of %.3f ms, mean of %d", 1e3 * all, runs);
    printf(predicted > 0 ? "; predicted %.3f ms\n" : "\n", 1e3 * predicted);
    print_shares(a, "operators", &op, all);
    print_shares(a, "modules", &module, all);
    print_shares(a, "nodes", &node, all);
}
