/* written: the files that tpc-shard writes to an output folder. It removes these and nothing else, through a descriptor of the folder, so
 * that no link leads it elsewhere. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "plan/folder/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const fixed_names[] = {"plan.json", "model.onnx", "manifest.json", FOLDER_MARK};
static const char *const rank_endings[] = {".onnx", ".data"};
enum { FIXED = sizeof fixed_names / sizeof *fixed_names, ENDINGS = sizeof rank_endings / sizeof *rank_endings };

/* Is it rank-R.onnx or rank-R.data, with R as it is written? */
static bool is_rank_name(const char *name)
{
    const char *prefix = "rank-";
    char same[32];
    if (strncmp(name, prefix, strlen(prefix)) != 0)
        return false;
    unsigned long rank = strtoul(name + strlen(prefix), NULL, 10);
    for (int i = 0; i < ENDINGS && rank < PLAN_RANKS; i++) {
        (void)snprintf(same, sizeof same, "%s%lu%s", prefix, rank, rank_endings[i]);
        if (strcmp(name, same) == 0)
            return true;
    }
    return false;
}

static bool is_written_name(const char *name)
{
    return NAMED_ROW(fixed_names, name) >= 0 || NAMED_AT(model_texts, MODEL_TEXTS, name) >= 0 || is_rank_name(name);
}

static bool is_foreign(int folder, const char *name)
{
    struct stat st;
    return !is_written_name(name) || fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode);
}

struct folder_files folder_list(struct arena *a, int folder)
{
    struct folder_files found = {0, NULL};
    int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return (struct folder_files){-1, strerror(errno)};
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        found.n++;
        if (!found.foreign && is_foreign(folder, e->d_name))
            found.foreign = arena_strdup(a, e->d_name);
    }
    (void)closedir(d);
    return found;
}

/* Removes the files of ranks that a look into the folder finds; false: none. The descriptor itself is read, so that no other is needed. */
static bool remove_rank_files(int folder)
{
    union {
        struct dirent64 first;
        char bytes[4096];
    } room;
    bool removed = false;
    ssize_t n;
    if (lseek(folder, 0, SEEK_SET) != 0)
        return false;
    while ((n = getdents64(folder, &room, sizeof room)) > 0)
        for (ssize_t at = 0; at < n; at += ((struct dirent64 *)(void *)(room.bytes + at))->d_reclen) {
            const char *name = ((struct dirent64 *)(void *)(room.bytes + at))->d_name;
            removed |= is_rank_name(name) && unlinkat(folder, name, 0) == 0;
        }
    return removed;
}

/* Scans again after files were removed, because removal may change the scan. The mark is removed last, so that leftovers after a kill still
 * have it. */
void folder_remove_written(int folder)
{
    while (remove_rank_files(folder)) {
    }
    for (int i = 0; i < MODEL_TEXTS; i++)
        (void)unlinkat(folder, model_texts[i], 0);
    for (int i = 0; i < FIXED; i++)
        (void)unlinkat(folder, fixed_names[i], 0);
}

void folder_keep(const char *path)
{
    struct arena *a = arena_new();
    bool ours = is_written_name(path_base(path)) && path_exists(path) && path_exists(path_join(a, path_dir(a, path), "manifest.json"));
    arena_free(a);
    if (ours)
        fail("%s is a file of a folder that tpc-shard wrote: name another one", path);
}
