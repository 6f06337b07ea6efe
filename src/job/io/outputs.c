/* outputs: writes outputs to files, or prints their digests, and prints times. */
#include "job/io/io.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *outputs_shape_text(struct arena *a, const struct tensor *t)
{
    char *text = arena_printf(a, "%s[", dtype_name(t->dtype));
    for (int k = 0; k < t->rank; k++)
        text = arena_printf(a, "%s%s%lld", text, k ? ", " : "", (long long)t->dim[k]);
    return arena_printf(a, "%s]", text);
}

/* A file name from a tensor's name and an ending: '/' and control characters become '_'. */
static char *file_name(struct arena *a, const char *name, const char *end)
{
    char *file = arena_printf(a, "%s%s", name, end);
    for (char *c = file; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20)
            *c = '_';
    return file;
}

/* The folder of results, and the files that a rank wrote. */
struct results {
    struct arena *arena;
    const char *folder;
    bool existed;
    VEC(const char *) files;
};

static void drop_results(void *data, int status)
{
    const struct results *r = data;
    (void)status;
    for (int i = 0; i < r->files.n; i++)
        (void)unlink(r->files.at[i]);
    (void)rmdir(r->folder);
}

static struct results results_in(struct arena *a, const char *folder)
{
    return (struct results){.arena = a, .folder = folder, .existed = path_exists(folder)};
}

/* A failure removes a new folder with its content. */
static void begin_results(struct results *r)
{
    if (mkdir(r->folder, 0777) != 0 && errno != EEXIST)
        fail("%s: %s", r->folder, strerror(errno));
    if (!r->existed)
        diag_on_failure(drop_results, r);
}

static void end_results(struct results *r)
{
    if (!r->existed)
        diag_forget(drop_results, r);
}

static void write_result(struct results *r, const char *name, const char *end, const struct tensor *t)
{
    const char *path = path_join(r->arena, r->folder, file_name(r->arena, name, end));
    for (int i = 0; i < r->files.n; i++)
        if (strcmp(r->files.at[i], path) == 0)
            fail("%s: is the file of output '%s' and of another one: rename one of them in the model", path, name);
    if (map_reads(path))
        fail("%s: is a file that this run reads, so output '%s' does not replace it: name another folder with --output", path, name);
    VEC_PUSH(r->arena, &r->files, path);
    tensor_write_npy(path, t);
}

/* Ranks share the folder: all check whether it exists before one makes it, and it is kept once all have written. */
void outputs_write_shards(struct arena *a, struct comm *comm, const struct graph *g, const struct session *s, const struct tensor *shards,
                          const char *folder)
{
    struct results results = results_in(a, folder);
    comm->barrier(comm);
    begin_results(&results);
    comm->barrier(comm);
    for (int i = 0; i < g->outputs.n; i++) {
        bool replicated = session_output_placement(s, i)->kind == PLACE_R;
        const char *end = replicated ? ".npy" : arena_printf(a, ".rank-%d.npy", comm->rank);
        if (comm->rank == 0 || !replicated)
            write_result(&results, g->outputs.at[i]->name, end, &shards[i]);
    }
    comm->barrier(comm);
    end_results(&results);
}

static void print_digest(struct arena *a, const char *name, const struct tensor *t)
{
    char *plain = arena_strdup(a, name);
    diag_make_printable(plain);
    printf("%s %s xxh3:%016llx\n", plain, outputs_shape_text(a, t), (unsigned long long)tensor_digest(a, t));
}

void outputs_write(struct arena *a, const struct graph *g, const struct tensor *outputs, const char *folder)
{
    struct results results = {.arena = a};
    if (folder) {
        results = results_in(a, folder);
        begin_results(&results);
    }
    for (int i = 0; i < g->outputs.n; i++) {
        const struct tensor *t = &outputs[i];
        if (folder)
            write_result(&results, g->outputs.at[i]->name, ".npy", t);
        else
            print_digest(a, g->outputs.at[i]->name, t);
    }
    if (folder)
        end_results(&results);
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

void outputs_print_times(const double *seconds, int64_t n)
{
    if (n < 2) {
        printf("time: %.3f ms\n", 1e3 * seconds[0]);
        return;
    }
    struct arena *a = arena_new();
    double *rest = NEWN(a, double, n - 1);
    memcpy(rest, seconds + 1, (size_t)(n - 1) * sizeof *rest);
    qsort(rest, (size_t)(n - 1), sizeof *rest, by_value);
    printf("time: first %.3f ms, then min %.3f, median %.3f, max %.3f ms in %lld runs\n", 1e3 * seconds[0], 1e3 * rest[0],
           1e3 * rest[(n - 1) / 2], 1e3 * rest[n - 2], (long long)n - 1);
    arena_free(a);
}
