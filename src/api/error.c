/* error: the result of a call, and the sentence of tpc_error: one per thread of the caller. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "api/api.h"

#include <stdarg.h>

enum { MAX_SENTENCE = 4096 };
static _Thread_local char sentence[MAX_SENTENCE];

const char *tpc_version(void)
{
    return PACKAGE_VERSION;
}

const char *tpc_error(void)
{
    return sentence;
}

size_t tpc_type_size(int type)
{
    if (type == TPC_STRING)
        return sizeof(const char *);
    return type == TPC_F32 || (type >= TPC_U8 && type <= TPC_I64) || (type >= TPC_BOOL && type <= TPC_U64) || type == TPC_BF16
        ? dtype_size((enum dtype)type)
        : 0;
}

int error_invalid(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    return TPC_INVALID;
}

int error_of_scope(const struct scope *s)
{
    (void)error_invalid("%s", scope_sentence(s));
    return scope_status(s) == 2 ? TPC_INVALID : TPC_FAILED;
}

int error_memory(void)
{
    (void)error_invalid("out of memory");
    return TPC_FAILED;
}
