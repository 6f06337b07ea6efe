/* string_case: texts in lower or upper case, character by character. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "kern/string/string.h"

#ifdef HAVE_TEXT
#include <utf8proc.h>
#endif
#include <string.h>

static uint32_t char_in_case(const struct kcall *call, uint32_t c, enum string_case to)
{
    if (c < 0x80)
        return to == STRING_LOWER && c >= 'A' && c <= 'Z' ? c + 32 : to == STRING_UPPER && c >= 'a' && c <= 'z' ? c - 32 : c;
#ifdef HAVE_TEXT
    enum { SHARP_S = 0xdf }; /* utf8proc maps it to an unusual letter */
    (void)call;
    if (c == SHARP_S)
        return c;
    return (uint32_t)(to == STRING_LOWER ? utf8proc_tolower((utf8proc_int32_t)c) : utf8proc_toupper((utf8proc_int32_t)c));
#else
    fail("%s: a string has the character U+%04X, and this build knows the case of no letters but ASCII's: ./configure --with-text",
         kcall_where(call), (unsigned)c);
#endif
}

int64_t string_in_case(const struct kcall *call, int64_t number, enum string_case to)
{
    const char *at = string_text(number);
    struct arena *tmp = arena_new();
    char *out = arena_array(tmp, strlen(at) + 1, 4), *end = out;
    for (uint32_t c = string_next_char(&at); c; c = string_next_char(&at))
        end += string_put_char(to == STRING_AS_IS ? c : char_in_case(call, c, to), end);
    number = string_number(out, (size_t)(end - out));
    arena_free(tmp);
    return number;
}

const int64_t *string_numbers(const struct kcall *call, const char *attr, enum room room, int *n)
{
    const char *const *text = NULL;
    *n = attr_is_set(call->node, attr) ? attr_strings(call->node, attr, &text) : 0;
    int64_t *number = kenv_room(call->env, room, kcall_bytes(call, *n + 1, sizeof *number));
    for (int i = 0; i < *n; i++)
        number[i] = string_number(text[i], strlen(text[i]));
    return number;
}
