/* string_cast: floats as the shortest decimal that reads back as the same number, integers in decimal, booleans as 1 and 0. Texts to
 * numbers: decimals, with or without an exponent, NaN and INF. An integer drops the fraction. The locale has no effect. */
#include "kern/string/string.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST_PLAIN 1e15 /* integers below it have no exponent */

/* ---- numbers to texts ---- */

static bool reads_back(enum dtype t, const char *text, const void *element)
{
    uint8_t bytes[8] = {0};
    double d = t == DT_F32 ? (double)strtof(text, NULL) : strtod(text, NULL);
    convert_from_f64(t, &d, 1, bytes);
    return memcmp(bytes, element, dtype_size(t)) == 0;
}

static int float_text(enum dtype t, const void *element, char *out, size_t room)
{
    double d;
    convert_to_f64(t, element, 1, &d);
    if (isnan(d))
        return snprintf(out, room, "NaN");
    if (isinf(d))
        return snprintf(out, room, d < 0 ? "-INF" : "INF");
    if (d == floor(d) && fabs(d) < LARGEST_PLAIN)
        return snprintf(out, room, "%.0f", d);
    int n = 0;
    for (int digits = 1; digits <= 17; digits++) {
        n = snprintf(out, room, "%.*g", digits, d);
        if (reads_back(t, out, element))
            break;
    }
    return n;
}

static int number_text(enum dtype t, const void *element, char *out, size_t room)
{
    int64_t i;
    uint64_t u;
    if (dtype_is_float(t))
        return float_text(t, element, out, room);
    if (t == DT_U64) {
        convert_to_u64(t, element, 1, &u);
        return snprintf(out, room, "%" PRIu64, u);
    }
    convert_to_i64(t, element, 1, &i);
    return snprintf(out, room, "%" PRId64, i);
}

void string_from_numbers(const struct tensor *x, struct tensor *y)
{
    char text[64];
    int64_t *out = y->data, n = tensor_elements(x);
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), was = uselocale(plain);
    for (int64_t i = 0; i < n; i++) {
        int bytes = number_text(x->dtype, element_at_const(x->data, dtype_size(x->dtype), i), text, sizeof text);
        out[i] = string_number(text, (size_t)bytes);
    }
    (void)uselocale(was);
    freelocale(plain);
}

/* ---- texts to numbers ---- */

static bool float_of(const char *text, double *out)
{
    char *end;
    *out = strtod(text, &end);
    return end != text && !*end && !strpbrk(text, "xX(");
}

static bool whole_of(enum dtype t, const char *text, int64_t *out)
{
    int64_t lo = 0, hi = 1;
    double d;
    if (dtype_is_integer(t))
        dtype_range(t, &lo, &hi);
    if (t != DT_BOOL && i64_parse(text, lo, hi, out))
        return true;
    if (!float_of(text, &d) || isnan(d))
        return false;
    *out = t == DT_BOOL ? d != 0 : fabs(d) < 0x1p63 ? (int64_t)d : lo;
    return t == DT_BOOL || (fabs(d) < 0x1p63 && *out >= lo && *out <= hi);
}

static bool large_of(const char *text, uint64_t *out)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return end != text && !*end && !errno && !strchr(text, '-');
}

static bool number_of(enum dtype t, const char *text, void *element)
{
    double d;
    int64_t i;
    uint64_t u;
    if (dtype_is_float(t)) {
        bool read = float_of(text, &d);
        d = read && t == DT_F32 ? (double)strtof(text, NULL) : d;
        convert_from_f64(t, &d, 1, element);
        return read;
    }
    if (t == DT_U64 && large_of(text, &u)) {
        memcpy(element, &u, sizeof u);
        return true;
    }
    if (!whole_of(t, text, &i))
        return false;
    convert_from_i64(t, &i, 1, element);
    return true;
}

void string_to_numbers(const struct kcall *call, const struct tensor *x, struct tensor *y)
{
    const int64_t *number = x->data;
    int64_t n = tensor_elements(x), i = 0;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), was = uselocale(plain);
    while (i < n && number_of(y->dtype, string_text(number[i]), element_at(y->data, dtype_size(y->dtype), i)))
        i++;
    (void)uselocale(was);
    freelocale(plain);
    if (i < n)
        fail("%s: element %lld is '%.40s', which is no number of type %s", kcall_where(call), (long long)i, string_text(number[i]),
             dtype_name(y->dtype));
}
