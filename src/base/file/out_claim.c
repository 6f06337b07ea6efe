/* out_claim: the outputs that a command line names. No two may have the same name: the second would replace the first. */
#include "base/base.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

void out_claim(struct arena *a, const char *option, const char *path)
{
    enum { MOST = 32 };
    static struct {
        dev_t device;
        ino_t folder;
        char name[NAME_MAX + 1], option[32];
    } taken[MOST];
    static int n;
    struct stat st;
    const char *followed = path_followed(a, path_trimmed(a, path)), *name = path_base(followed);
    if (path_is_special(path) || stat(path_dir(a, followed), &st) != 0 || strlen(name) > NAME_MAX || n == MOST)
        return;
    for (int i = 0; i < n; i++)
        if (taken[i].device == st.st_dev && taken[i].folder == st.st_ino && strcmp(taken[i].name, name) == 0) {
            if (strcmp(taken[i].option, option) == 0)
                return;
            fail_usage("%s and %s both name '%s', expected a name of its own for each", taken[i].option, option, path);
        }
    taken[n].device = st.st_dev;
    taken[n].folder = st.st_ino;
    (void)snprintf(taken[n].name, sizeof taken[n].name, "%s", name);
    (void)snprintf(taken[n++].option, sizeof taken->option, "%s", option);
}
