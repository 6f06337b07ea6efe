/* strings: a program's string tensors hold texts (const char *); tpc's hold their numbers. */
#include "api/api.h"

#include <string.h>

int strings_check(const struct tpc_session *s, const tpc_tensor *t, int64_t n)
{
    const char *const *text = t->data;
    for (int64_t i = 0; i < n; i++) {
        const char *fault = text[i] ? string_fault(text[i], strlen(text[i])) : "is NULL";
        if (fault)
            return error_invalid("%s: input '%s': string %lld %s", s->path, t->name, (long long)i, fault);
    }
    return TPC_OK;
}

void strings_take(struct arena *a, struct tensor *t)
{
    const char *const *text = t->data;
    int64_t n = tensor_elements(t), *number = NEWN(a, int64_t, n + 1);
    for (int64_t i = 0; i < n; i++)
        number[i] = string_number(text[i], strlen(text[i]));
    t->data = number;
}

const void *strings_give(struct arena *a, const struct tensor *t)
{
    const int64_t *number = t->data;
    int64_t n = tensor_elements(t);
    const char **text = NEWN(a, const char *, n + 1);
    for (int64_t i = 0; i < n; i++)
        text[i] = string_text(number[i]);
    return text;
}
