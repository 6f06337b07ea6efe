/* The text form on real graphs: every sample, after every pass up to localize at 2 ranks, reads back as itself. Placements, collectives,
 * equations and each rank's graph are all in it. */
#include "ir/text/text.h"
#include "op/op.h"
#include "passes/pass.h"
#include "plan/input/input.h"
#include "plan/plan.h"
#include "tests/printed.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>

/* The first line of a that b does not have at the same place. */
static void report(const char *a, const char *b)
{
    while (*a && *a == *b) {
        const char *next = strchr(a, '\n');
        if (!next || strncmp(a, b, (size_t)(next - a) + 1) != 0)
            break;
        b += next + 1 - a;
        a = next + 1;
    }
    printf("# printed: %.*s\n# again:   %.*s\n", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
}

static bool reads_back(const struct graph *g, const char *what)
{
    struct arena *arena = arena_new();
    const char *once = graph_printed(arena, g);
    struct graph *again = graph_parse(arena, alg_new(arena), once, what, op_find);
    graph_verify(again, what);
    const char *twice = graph_printed(arena, again);
    bool same = strcmp(once, twice) == 0;
    if (!same)
        report(once, twice);
    arena_free(arena);
    return same;
}

static bool all_read_back(const struct compile *c, const char *pass)
{
    bool good = reads_back(c->graph, pass);
    for (int r = 0; c->rank_graphs && r < c->graph->ranks; r++)
        good = reads_back(c->rank_graphs[r], pass) && good;
    return good;
}

static bool check_model(const char *path)
{
    struct arena *arena = arena_new();
    struct options options = {.ranks = 2, .model = path};
    options.machine = machine_reference();
    struct plan plan = {.ranks = options.ranks};
    struct compile c = {.arena = arena, .options = &options, .plan = &plan, .model_path = path};
    bool good = true;
    for (int i = 0; pass_rows[i].name && strcmp(pass_rows[i].name, "cut_weights") != 0; i++) {
        pass_run(&c, pass_rows[i].name, pass_rows[i].name, NULL);
        bool same = all_read_back(&c, pass_rows[i].name);
        printf("%sok - %s after %s\n", same ? "" : "not ", path, pass_rows[i].name);
        good = good && same;
    }
    arena_free(arena);
    return good;
}

int main(void)
{
    const char *srcdir = getenv("srcdir");
    char pattern[4096];
    glob_t found;
    diag_setup("roundtrip", -1);
    snprintf(pattern, sizeof pattern, "%s/samples/*/model.onnx", srcdir ? srcdir : ".");
    if (glob(pattern, 0, NULL, &found))
        return 77;
    bool good = true;
    for (size_t i = 0; i < found.gl_pathc; i++)
        good = check_model(found.gl_pathv[i]) && good;
    globfree(&found);
    return good ? 0 : 1;
}
