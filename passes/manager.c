/* The pass manager runs a part of the pipeline. Before each pass it checks the properties it needs; after it, the graph.
 *
 * graph.properties holds the properties of a graph, compile.properties those of the compilation. After every pass nodes get unique
 * names, and the verifier runs on the global graph and on every rank's graph. --dump-after prints the same graphs. */
#include "ir/text/text.h"
#include "passes/pass.h"
#include "plan/cost/cost.h"

#include <string.h>

static int pass_index(const char *name)
{
    for (int i = 0; pass_rows[i].name; i++)
        if (strcmp(pass_rows[i].name, name) == 0)
            return i;
    if (strcmp(name, "all") == 0)
        fail_usage("--dump-after all needs a folder for the graphs of all passes: --dump-after all=DIR");
    fail_usage("there is no pass '%s': --list-passes shows them", name);
}

static void each_graph(struct compile *c, void (*visit)(struct graph *, const struct pass *), const struct pass *p)
{
    visit(c->graph, p);
    for (int r = 0; c->rank_graphs && r < c->graph->ranks; r++)
        if (c->rank_graphs[r])
            visit(c->rank_graphs[r], p);
}

static void check_graph(struct graph *g, const struct pass *p)
{
    g->properties = pass_after(p, g->properties) & PROP_GRAPH;
    graph_name_nodes(g);
    graph_verify(g, p->name);
}

static void dump_graph(struct graph *g, const struct pass *p)
{
    (void)p;
    graph_print(g, stdout);
}

/* Dumps the kernels that tpc-run would make of each rank's file, from copies: tpc-shard has no such pass. */
static void dump_kernels(const struct compile *c)
{
    for (int r = 0; c->rank_graphs && r < c->graph->ranks; r++) {
        struct arena *tmp = arena_new();
        graph_print(cost_graph_that_runs(tmp, c->rank_graphs[r]), stdout);
        arena_free(tmp);
    }
}

/* Refuses a dump of a pass outside this range. */
static void check_dump(const char *name, int dump, int from, int to)
{
    bool kernels = dump == pass_index("fuse_kernels") && to >= pass_index("localize");
    if (!kernels && (dump < from || dump > to))
        fail_usage("--dump-after %s: this run ends after %s", name, pass_rows[to].name);
}

unsigned pass_lacks(const struct pass *p, unsigned have)
{
    return p->needs & ~have;
}

unsigned pass_after(const struct pass *p, unsigned have)
{
    return (have & ~p->breaks) | p->gives;
}

void pass_run_one(struct compile *c, const struct pass *p)
{
    unsigned have = c->properties | (c->graph ? c->graph->properties : 0);
    if (pass_lacks(p, have))
        bug("pass %s lacks properties 0x%x of those it needs, 0x%x", p->name, pass_lacks(p, have), p->needs);
    p->run(c);
    if (!c->graph)
        bug("pass %s left no graph", p->name);
    c->properties = pass_after(p, have) & ~(unsigned)PROP_GRAPH;
    if (p->gives & ~(unsigned)PROP_READ_ONLY)
        each_graph(c, check_graph, p);
}

void pass_run(struct compile *c, const char *first, const char *last, const char *dump_after)
{
    bool whole = dump_is_folder(dump_after);
    int from = pass_index(first), to = pass_index(last), dump = dump_after && !whole ? pass_index(dump_after) : -1;
    if (dump >= 0)
        check_dump(dump_after, dump, from, to);
    struct pass_dump *folder = whole ? dump_begin(c->arena, dump_after) : NULL;
    for (int i = from; i <= to; i++) {
        double start = clock_seconds();
        pass_run_one(c, &pass_rows[i]);
        if (c->record)
            pass_record_add(c, i, clock_seconds() - start);
        if (i == dump)
            each_graph(c, dump_graph, &pass_rows[i]);
        if (folder)
            dump_pass(folder, c, i);
    }
    if (dump > to)
        dump_kernels(c);
    if (folder)
        dump_end(folder);
}
