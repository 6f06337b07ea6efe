/* folder: the output appears whole or not at all. Everything is written to a sibling folder, which takes the name at the end and is
 * removed on failure. An existing folder is replaced only when asked for, only if tpc-shard wrote it (or it is empty), and only after
 * the new one is complete. */
#include "plan/plan.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_empty(const char *dir)
{
    DIR *d = opendir(dir);
    bool empty = d != NULL;
    for (struct dirent *e = d ? readdir(d) : NULL; e; e = readdir(d))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            empty = false;
    if (d)
        (void)closedir(d);
    return empty;
}

static bool is_ours(const char *dir)
{
    struct arena *tmp = arena_new();
    bool plan = path_exists(path_join(tmp, dir, "plan.json")) && path_exists(path_join(tmp, dir, "rank-0.onnx"));
    arena_free(tmp);
    return plan || is_empty(dir);
}

void folder_check(const char *out, bool force)
{
    if (!path_exists(out))
        return;
    if (!force)
        fail("%s exists already: name another folder with -o, or replace it with --force", out);
    if (!is_ours(out))
        fail("%s is not a folder that tpc-shard wrote, so --force does not replace it", out);
}

static char *new_sibling(struct arena *a, const char *out, const char *suffix)
{
    char *dir = arena_printf(a, "%s.%s-%ld", out, suffix, (long)getpid());
    if (mkdir(dir, 0777) != 0)
        fail("%s: the folder cannot be made: %s", out, strerror(errno));
    return dir;
}

static void drop_folder(void *path, int status)
{
    (void)status;
    remove_folder(path);
}

char *folder_begin(struct arena *a, const char *out)
{
    char *dir = new_sibling(a, out, "part");
    diag_on_failure(drop_folder, dir);
    return dir;
}

static void move_folder(const char *from, const char *to)
{
    if (rename(from, to) != 0)
        fail("%s: cannot be renamed to %s: %s", from, to, strerror(errno));
}

/* The old folder moves aside (over an empty one) before the new one takes its name. */
void folder_commit(struct arena *a, char *made, const char *out)
{
    char *old = NULL;
    if (path_exists(out)) {
        old = new_sibling(a, out, "old");
        move_folder(out, old);
    }
    move_folder(made, out);
    diag_forget(drop_folder, made);
    if (old)
        remove_folder(old);
}
