/* shell_word: a text as one word of a command line that people copy. */
#include "base/base.h"

#include <string.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";

const char *shell_word(struct arena *a, const char *text)
{
    const char *out = "'";
    if (*text && !text[strspn(text, plain)])
        return text;
    for (const char *quote; (quote = strchr(text, '\'')); text = quote + 1)
        out = arena_printf(a, "%s%.*s'\\''", out, (int)(quote - text), text);
    return arena_printf(a, "%s%s'", out, text);
}
