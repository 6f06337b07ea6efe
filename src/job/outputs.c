/* outputs: writes outputs to files, or prints their digests, and prints times. */
#include "job/job.h"
#include "onnx/onnx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

char *outputs_shape_text(struct arena *a, const struct tensor *t)
{
    char *text = arena_printf(a, "%s[", dtype_name(t->dtype));
    for (int k = 0; k < t->rank; k++)
        text = arena_printf(a, "%s%s%lld", text, k ? ", " : "", (long long)t->dim[k]);
    return arena_printf(a, "%s]", text);
}

/* Makes a file name of a tensor's name and an ending: '/' and control characters become '_'. */
static char *file_name(struct arena *a, const char *name, const char *end)
{
    char *file = arena_printf(a, "%s%s", name, end);
    for (char *c = file; *c; c++)
        if (*c == '/' || (unsigned char)*c < 0x20)
            *c = '_';
    return file;
}

static void make_folder(const char *path)
{
    if (mkdir(path, 0777) && errno != EEXIST)
        fail("%s: %s", path, strerror(errno));
}

void outputs_write_shards(struct arena *a, const struct comm *comm, const struct graph *g, const struct session *s,
                          const struct tensor *shards, const char *folder)
{
    make_folder(folder);
    for (int i = 0; i < g->outputs.n; i++) {
        bool whole = session_output_placement(s, i)->kind == PLACE_R;
        const char *end = whole ? ".npy" : arena_printf(a, ".rank-%d.npy", comm->rank);
        if (comm->rank == 0 || !whole)
            tensor_write_npy(path_join(a, folder, file_name(a, g->outputs.at[i]->name, end)), &shards[i]);
    }
}

void outputs_write(struct arena *a, const struct graph *g, const struct tensor *outputs, const char *folder)
{
    if (folder)
        make_folder(folder);
    for (int i = 0; i < g->outputs.n; i++) {
        const struct tensor *t = &outputs[i];
        if (folder)
            tensor_write_npy(path_join(a, folder, file_name(a, g->outputs.at[i]->name, ".npy")), t);
        else
            printf("%s %s xxh3:%016llx\n", g->outputs.at[i]->name, outputs_shape_text(a, t),
                   (unsigned long long)XXH3_64bits(t->data, tensor_bytes(t)));
    }
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
