/* normalize: removes stop words from a list of strings and changes case. If no string is left, the result is one empty string. */
#include "kern/string/string.h"

#include <string.h>

struct normalize {
    enum string_case to, compared; /* compared: the case for comparisons with stop words */
    const int64_t *stop;
    int stops;
};

static enum string_case case_of(const struct kcall *call)
{
    static const char *const name[] = {[STRING_AS_IS] = "NONE", [STRING_LOWER] = "LOWER", [STRING_UPPER] = "UPPER"};
    const char *given = attr_string(call->node, "case_change_action");
    for (enum string_case c = STRING_AS_IS; c <= STRING_UPPER; c++)
        if (strcmp(given, name[c]) == 0)
            return c;
    fail("%s: attribute 'case_change_action' is '%s', expected NONE, LOWER or UPPER", kcall_where(call), given);
}

static struct normalize normalize_of(const struct kcall *call)
{
    struct normalize m = {.to = case_of(call)};
    m.compared = attr_int(call->node, "is_case_sensitive") ? STRING_AS_IS : STRING_LOWER;
    m.stop = string_numbers(call, "stopwords", ROOM_A, &m.stops);
    int64_t *stop = kenv_room(call->env, ROOM_B, kcall_bytes(call, m.stops + 1, sizeof *stop));
    for (int i = 0; i < m.stops; i++)
        stop[i] = string_in_case(call, m.stop[i], m.compared);
    m.stop = stop;
    return m;
}

static bool is_kept(const struct kcall *call, const struct normalize *m, int64_t number)
{
    int64_t compared = m->stops ? string_in_case(call, number, m->compared) : number;
    for (int i = 0; i < m->stops; i++)
        if (m->stop[i] == compared)
            return false;
    return true;
}

int64_t string_kept(struct kcall *call)
{
    const struct normalize m = normalize_of(call);
    const int64_t *x = call->in[0].data;
    int64_t n = 0;
    for (int64_t i = 0; i < tensor_elements(&call->in[0]); i++)
        n += is_kept(call, &m, x[i]);
    return n ? n : 1;
}

void kern_StringNormalizer(struct kcall *call)
{
    int64_t kept = string_kept(call), k = 0, *y = call->out[0].data;
    const struct normalize m = normalize_of(call);
    const int64_t *x = call->in[0].data;
    if (call->out[0].dim[call->out[0].rank - 1] != kept)
        fail("%s: its result has another size than the %lld strings that are kept", kcall_where(call), (long long)kept);
    y[0] = 0;
    for (int64_t i = 0; i < tensor_elements(&call->in[0]); i++)
        if (is_kept(call, &m, x[i]))
            y[k++] = string_in_case(call, x[i], m.to);
}
