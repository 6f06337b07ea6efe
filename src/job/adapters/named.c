/* named: parses the texts of --lora. */
#include "job/adapters/adapters.h"

#include <string.h>

static struct named_adapters read_text(struct arena *a, const char *text)
{
    const char *equal = path_exists(text) ? NULL : strchr(text, '=');
    if (!equal)
        return (struct named_adapters){NULL, text};
    if (equal == text)
        fail_usage("--lora is '%s', expected FILE or NAME=FILE", text);
    return (struct named_adapters){arena_strndup(a, text, (size_t)(equal - text)), equal + 1};
}

int adapters_named(struct arena *a, const struct text_list *given, struct named_adapters **to)
{
    const int n = given->text.n;
    struct named_adapters *all = NEWN(a, struct named_adapters, n + 1);
    if (n > ADAPTERS_MOST)
        fail_usage("--lora is given %d times, expected at most %d", n, ADAPTERS_MOST);
    for (int i = 0; i < n; i++) {
        all[i] = read_text(a, given->text.at[i]);
        if (n > 1 && !all[i].name)
            fail_usage("--lora is '%s', expected NAME=FILE, for there are several", given->text.at[i]);
        for (int k = 0; k < i; k++)
            if (strcmp(all[k].name, all[i].name) == 0)
                fail_usage("--lora: two adapters are called '%s'", all[i].name);
    }
    *to = all;
    return n;
}
