/* claim: one process at a time writes checkpoints to a file. It locks the next checkpoint, a file beside it that takes the name once it is
 * complete and on the disk, and keeps this lock until the next one has the name. The lock ends with the process, and another process finds
 * it at the name or beside it. A file that a killed process left beside is removed if it is the beginning of a checkpoint. */
#include "onnx/onnx.h"
#include "train/train.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct part {
    struct arena *arena;
    struct out out;
};
struct claim {
    const char *path;
    struct part *next; /* NULL: there is none */
    int held;          /* the file that was written last; -1: none */
};

/* ---- others ---- */

/* "NAME.part-", a number, and perhaps another one. */
static bool is_beside(const char *name, const char *of)
{
    static const char mark[] = ".part-";
    size_t n = strlen(of);
    if (strncmp(name, of, n) != 0 || strncmp(name + n, mark, sizeof mark - 1) != 0)
        return false;
    const char *digits = name + n + sizeof mark - 1, *end = digits + strspn(digits, "0123456789");
    return end > digits && (!*end || (*end == '-' && end[1] && !end[1 + strspn(end + 1, "0123456789")]));
}

static void look_at(const struct claim *c, int folder, const char *name, const struct stat *own)
{
    struct stat st;
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return;
    bool other = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (st.st_dev != own->st_dev || st.st_ino != own->st_ino);
    bool ours = other && flock(fd, LOCK_SH | LOCK_NB) == 0; /* where files can't be locked, nothing is taken for a killed process's */
    if (other && !ours && errno == EWOULDBLOCK)
        fail("%s: another run writes its checkpoints there, and has '%s' open: give this one a --save of its own", c->path, name);
    if (ours && strcmp(name, path_base(c->path)) != 0 && safetensors_is_begun(fd, SAFETENSORS_CHECKPOINT))
        (void)unlinkat(folder, name, 0);
    (void)close(fd);
}

static void look_around(struct arena *tmp, const struct claim *c)
{
    struct stat own;
    DIR *d = opendir(path_dir(tmp, c->path));
    if (!d || fstat(fileno(c->next->out.file), &own) != 0)
        fail("%s: a checkpoint can't be written: %s", c->path, strerror(errno));
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (strcmp(e->d_name, path_base(c->path)) == 0 || is_beside(e->d_name, path_base(c->path)))
            look_at(c, dirfd(d), e->d_name, &own);
    (void)closedir(d);
}

/* ---- the next checkpoint ---- */

/* Who looks at it holds it for a moment. A file system without locks has none. It bears from the beginning what tells it. */
static void begin_part(struct claim *c)
{
    struct arena *a = arena_new();
    c->next = NEW(a, struct part);
    c->next->arena = a;
    out_open_whole(a, &c->next->out, c->path);
    FILE *f = c->next->out.file;
    (void)flock(fileno(f), LOCK_EX);
    if (!safetensors_mark(f, SAFETENSORS_CHECKPOINT))
        out_fail(&c->next->out);
}

struct claim *claim_begin(struct arena *a, const char *path)
{
    struct claim *c = NEW(a, struct claim);
    if (path_is_folder(path) || path_is_special(path))
        fail("%s: a checkpoint can't be written: it is a %s", path, path_is_folder(path) ? "folder" : "device or a pipe");
    c->path = path_followed(a, path);
    c->held = -1;
    begin_part(c);
    look_around(a, c);
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
