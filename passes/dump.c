/* dump: the text form of the graph after every pass, as files in a new folder (--dump-after all=DIR): 00-load.graph, 01-shapes.graph, ...;
 * for rank R, from localize on, 18-localize.rank-R.graph. The folder appears complete or not at all. */
#include "ir/text/text.h"
#include "passes/pass.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct pass_dump {
    struct arena *arena;
    const char *dir, *part; /* the unfinished folder that files are written to */
    VEC(const char *) files;
};

static const char all[] = "all=";

bool dump_is_folder(const char *after)
{
    return after && strncmp(after, all, strlen(all)) == 0;
}

static void drop_part(void *dump, int status)
{
    struct pass_dump *d = dump;
    (void)status;
    for (int i = 0; i < d->files.n; i++)
        (void)unlink(d->files.at[i]);
    (void)rmdir(d->part);
}

struct pass_dump *dump_begin(struct arena *a, const char *after)
{
    struct pass_dump *d = NEW(a, struct pass_dump);
    struct stat st;
    d->arena = a;
    d->dir = after + strlen(all);
    if (!*d->dir)
        fail_usage("--dump-after all= names no folder");
    if (lstat(d->dir, &st) == 0)
        fail("%s exists already: --dump-after all= makes a new folder", d->dir);
    d->part = arena_printf(a, "%s.part-%ld", d->dir, (long)getpid());
    if (mkdir(d->part, 0777) != 0)
        fail("%s: the folder cannot be made: %s", d->part, strerror(errno));
    diag_on_failure(drop_part, d);
    return d;
}

static void write_graph(struct pass_dump *d, struct graph *g, const char *name)
{
    const char *path = path_join(d->arena, d->part, name);
    struct out out;
    VEC_PUSH(d->arena, &d->files, path);
    out_open(&out, path);
    graph_print(g, out.file);
    out_close(&out);
}

void dump_pass(struct pass_dump *d, const struct compile *c, int row)
{
    write_graph(d, c->graph, arena_printf(d->arena, "%02d-%s.graph", row, pass_rows[row].name));
    for (int r = 0; c->rank_graphs && r < c->graph->ranks; r++)
        write_graph(d, c->rank_graphs[r], arena_printf(d->arena, "%02d-%s.rank-%d.graph", row, pass_rows[row].name, r));
}

void dump_end(struct pass_dump *d)
{
    if (rename(d->part, d->dir) != 0)
        fail("%s: cannot take the name %s: %s", d->part, d->dir, strerror(errno));
    diag_forget(drop_part, d);
}
