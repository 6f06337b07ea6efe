/* claim: one process at a time writes checkpoints to a file (base/file/one_writer.c). It holds the next checkpoint, a temporary file that
 * takes the name once it is complete and on disk, and keeps that until the next one has the name. */
#include "onnx/onnx.h"
#include "train/train.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct part {
    struct arena *arena;
    struct out out;
};
struct claim {
    const char *path;
    struct part *next; /* NULL: none */
    int held;          /* the last file written; -1: none */
};

/* From the start, its content identifies it as a checkpoint. */
static void begin_part(struct claim *c)
{
    struct arena *a = arena_new();
    c->next = NEW(a, struct part);
    c->next->arena = a;
    out_open_whole(a, &c->next->out, c->path);
    FILE *f = c->next->out.file;
    one_writer_hold(f);
    if (!safetensors_mark(f, SAFETENSORS_CHECKPOINT))
        out_fail(&c->next->out);
}

static bool is_begun(int file)
{
    return safetensors_is_begun(file, SAFETENSORS_CHECKPOINT);
}

struct claim *claim_begin(struct arena *a, const char *path)
{
    struct claim *c = NEW(a, struct claim);
    if (path_is_folder(path) || path_is_special(path))
        fail("%s: a checkpoint can't be written: it is a %s", path, path_is_folder(path) ? "folder" : "device or a pipe");
    c->path = path_followed(a, path);
    c->held = -1;
    begin_part(c);
    one_writer_check(&(struct one_writer){c->path, "checkpoints", "--save", is_begun}, c->next->out.file);
    return c;
}

struct out *claim_write(struct claim *c)
{
    if (!c->next)
        begin_part(c);
    return &c->next->out;
}

void claim_end(struct claim *c)
{
    struct arena *a = c->next->arena;
    int before = c->held, folder = open(path_dir(a, c->path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    c->held = fcntl(fileno(c->next->out.file), F_DUPFD_CLOEXEC, 0);
    out_sync(&c->next->out);
    (void)out_close(&c->next->out);
    if (folder >= 0) {
        (void)fsync(folder);
        (void)close(folder);
    }
    if (before >= 0)
        (void)close(before);
    c->next = NULL;
    arena_free(a);
}
