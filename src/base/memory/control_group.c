/* control_group: the control groups (version 1 or 2) that a process is in. The system reports them, and other counts, in short files of
 * numbers. It allocates nothing, because code that is out of memory calls it, too. */
#include "base/base.h"

#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

const struct control_root control_system = {"/sys/fs/cgroup", "/proc/self/cgroup"};

/* The number after `before` others; -1: not a number. */
static int64_t number_behind(const char *text, int before)
{
    int64_t found = -1;
    int used = 0;
    for (int i = 0; i <= before; i++, text += used)
        if (sscanf(text, "%" SCNd64 "%n", &found, &used) != 1)
            return -1;
    return found;
}

int64_t control_read(const char *path, const char *key, int before)
{
    char text[8192];
    size_t length = strlen(key);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    text[n > 0 ? n : 0] = '\0';
    if (fd >= 0)
        (void)close(fd);
    for (const char *line = text; line; line = (line = strchr(line, '\n')) ? line + 1 : NULL)
        if (strncmp(line, key, length) == 0 && (length == 0 || line[length] == ' ' || line[length] == '\t'))
            return number_behind(line + length, before);
    return -1;
}

int64_t control_number(const char *folder, const char *file, const char *key, int before)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    return n > 0 && n < (int)sizeof path ? control_read(path, key, before) : -1;
}

/* The group and its ancestors. Inside a container the path may be the host's, of which only the root is mounted: then only "". */
static void look_around(const struct control_root *root, int version, const char *of, char *group, control_look *look, void *data)
{
    char folder[8192];
    bool last = false;
    while (!last) {
        char *slash = strrchr(group, '/');
        last = !slash;
        (void)snprintf(folder, sizeof folder, "%s%s%s%s", root->folder, *of ? "/" : "", of, last ? "" : group);
        look(data, version, folder);
        if (slash)
            *slash = '\0';
    }
}

/* Whether a list "A,B" contains it. */
static bool lists(const char *list, const char *controller)
{
    size_t length = strlen(controller);
    for (const char *at = list; at; at = (at = strchr(at, ',')) ? at + 1 : NULL)
        if (strcspn(at, ",") == length && strncmp(at, controller, length) == 0)
            return true;
    return false;
}

/* A line of the list is "0::PATH" or "N:CONTROLLERS:PATH". */
void control_groups(const struct control_root *root, const char *controller, control_look *look, void *data)
{
    char line[4096];
    FILE *f = fopen(root->list, "r");
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = '\0';
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (controllers[1] == '\0')
            look_around(root, 2, "", group, look, data);
        else if (lists(controllers + 1, controller))
            look_around(root, 1, controller, group, look, data);
    }
    if (f)
        (void)fclose(f);
}
