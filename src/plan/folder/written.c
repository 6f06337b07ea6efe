/* written: the files that tpc-shard writes to an output folder. It removes these and nothing else, through a descriptor of the folder, so
 * that no link leads it elsewhere. */
#include "plan/folder/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const fixed_names[] = {"plan.json", "model.onnx", "manifest.json", FOLDER_MARK};
static const char *const rank_endings[] = {".onnx", ".data"};
enum { FIXED = sizeof fixed_names / sizeof *fixed_names, ENDINGS = sizeof rank_endings / sizeof *rank_endings };

static void rank_name(char name[32], int rank, int ending)
{
    (void)snprintf(name, 32, "rank-%d%s", rank, rank_endings[ending]);
}

static bool is_written_name(const char *name)
{
    char same[32];
    if (NAMED_ROW(fixed_names, name) >= 0 || NAMED_AT(model_texts, MODEL_TEXTS, name) >= 0)
        return true;
    for (int i = 0; i < ENDINGS * PLAN_RANKS; i++) {
        rank_name(same, i / ENDINGS, i % ENDINGS);
        if (strcmp(name, same) == 0)
            return true;
    }
    return false;
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

/* By name, so that no descriptor is needed. The mark goes last: what is left after a kill still bears it. */
void folder_remove_written(int folder)
{
    char name[32];
    for (int i = 0; i < ENDINGS * PLAN_RANKS; i++) {
        rank_name(name, i / ENDINGS, i % ENDINGS);
        (void)unlinkat(folder, name, 0);
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
