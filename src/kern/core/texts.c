/* texts: the content of a tensor of strings, for other processes and files. */
#include "kern/kern.h"

#include <string.h>

char *tensor_texts(struct arena *a, const struct tensor *t, int64_t *bytes)
{
    const int64_t *number = t->data;
    int64_t n = tensor_elements(t), size;
    *bytes = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i64_add(*bytes, (int64_t)strlen(string_text(number[i])) + 1, bytes))
            fail("the strings of a tensor are too many");
    char *texts = arena_alloc(a, (size_t)*bytes + 1), *at = texts;
    for (int64_t i = 0; i < n; i++, at += size) {
        size = (int64_t)strlen(string_text(number[i])) + 1;
        memcpy(at, string_text(number[i]), (size_t)size);
    }
    return texts;
}

bool tensor_take_texts(struct tensor *t, const char *texts, int64_t bytes)
{
    int64_t *number = t->data, n = tensor_elements(t), i = 0;
    const char *end = texts + bytes;
    for (const char *at = texts; at < end && i < n; at += strlen(at) + 1)
        number[i++] = string_number(at, strlen(at));
    return i == n;
}

uint64_t tensor_digest(struct arena *a, const struct tensor *t)
{
    int64_t bytes;
    const char *texts = t->dtype == DT_STRING ? tensor_texts(a, t, &bytes) : NULL;
    return texts ? digest_bytes(texts, (size_t)bytes) : digest_bytes(t->data, tensor_bytes(t));
}
