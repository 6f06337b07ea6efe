/* The dim_param of a dimension: an expression, or the name of a symbol. */
#include "onnx/message/message.h"

#include <ctype.h>
#include <string.h>

/* A '-' or '/' between letters is part of a name ("batch-size"), not arithmetic. */
static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_hyphenated(const char *text)
{
    for (const char *at = text; *at; at++)
        if (at > text && strchr("-/.", *at) && is_name_char(at[-1]) && is_name_char(at[1]))
            return true;
    return false;
}

/* No letter or digit, as in "?": exporters write it for every unknown dimension. */
static bool is_no_name(const char *text)
{
    for (; *text; text++)
        if (isalnum((unsigned char)*text) || (unsigned char)*text >= 0x80)
            return false;
    return true;
}

const struct dim *dim_param_parse(struct alg *alg, const char *text)
{
    const char *error = NULL;
    if (is_no_name(text))
        return NULL;
    const struct dim *dim = is_hyphenated(text) ? NULL : dim_parse(alg, text, 1, &error);
    if (dim && dim->kind == DIM_INT && dim->k < 0)
        return NULL;
    return dim ? dim : dim_sym(alg, text, 1);
}
