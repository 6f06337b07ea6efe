/* agree: all ranks of a job must be the same program with the same options. Rank 0 sends its own; a rank that differs ends the job and
 * names the difference. Otherwise ranks with different steps or inputs could wait for each other forever, or compute wrong results. */
#include "job/job.h"

#include <string.h>

enum { PROGRAM_BYTES = 128 };

struct settings_head {
    char program[PROGRAM_BYTES];
    int64_t bytes;
};

/* Concatenates the texts, each with its NUL. */
static char *join_texts(struct arena *a, const struct text_list *list, int64_t *bytes)
{
    *bytes = 0;
    for (int i = 0; i < list->text.n; i++)
        *bytes += (int64_t)strlen(list->text.at[i]) + 1;
    char *all = arena_alloc(a, (size_t)*bytes + 1), *at = all;
    for (int i = 0; i < list->text.n; i++) {
        size_t n = strlen(list->text.at[i]) + 1;
        memcpy(at, list->text.at[i], n);
        at += n;
    }
    return all;
}

static struct text_list split_texts(struct arena *a, const char *all, int64_t bytes)
{
    struct text_list list = {0};
    for (const char *at = all; at < all + bytes; at += strlen(at) + 1)
        VEC_PUSH(a, &list.text, at);
    return list;
}

/* The text that sets the same option as this one; NULL: none. */
static const char *same_setting(const struct text_list *list, const char *text)
{
    size_t n = strcspn(text, " =");
    for (int i = 0; i < list->text.n; i++)
        if (strcspn(list->text.at[i], " =") == n && strncmp(list->text.at[i], text, n) == 0)
            return list->text.at[i];
    return NULL;
}

/* Reports the first text of `list` that `other` lacks. */
static void compare_settings(struct arena *a, const struct text_list *list, const struct text_list *other, bool own)
{
    for (int i = 0; i < list->text.n; i++) {
        const char *text = list->text.at[i], *found = same_setting(other, text);
        if (found && strcmp(found, text) == 0)
            continue;
        const char *none = arena_printf(a, "no %.*s", (int)strcspn(text, " ="), text);
        found = found ? found : none;
        fail_usage("this rank was given %s, rank 0 %s: all ranks of a job take the same options", own ? text : found, own ? found : text);
    }
}

void job_agree(struct comm *comm, const char *program, const struct text_list *settings)
{
    struct arena *a = arena_new();
    struct settings_head own = {.bytes = 0}, first;
    char *text = join_texts(a, settings, &own.bytes);
    snprintf(own.program, sizeof own.program, "%s", program);
    first = own;
    comm_from_first(comm, "comparison of options", &first, sizeof first);
    if (strncmp(first.program, own.program, sizeof own.program))
        fail("this rank is %s, rank 0 is %.127s: all ranks of a job run the same build", own.program, first.program);
    if (comm->rank)
        text = arena_alloc(a, (size_t)first.bytes + 1);
    comm_from_first(comm, "comparison of options", text, first.bytes);
    struct text_list theirs = split_texts(a, text, first.bytes);
    compare_settings(a, settings, &theirs, true);
    compare_settings(a, &theirs, settings, false);
    comm->barrier(comm);
    arena_free(a);
}
