/* literal: the elements of an input on the command line, as 1,2,3 or [1,2],[3,4] or "a","b": JSON's nested lists, without the outermost
 * brackets and leading dimensions of 1. */
#include "job/io/io.h"

#include <math.h>
#include <string.h>

struct literal {
    const char *text;
    struct tensor tensor;
    int64_t filled;
};

_Noreturn static void refuse(const struct literal *l, const char *what)
{
    fail_usage("--input: '%s': %s", l->text, what);
}

bool literal_is_one(const char *text)
{
    bool words = text[strspn(text, "[ ")] == '"';
    return words || (*text && strspn(text, "[-0123456789tf ") > 0 && strspn(text, "[]-+.,0123456789eE trufals") == strlen(text));
}

/* From the first element of each list; check_sizes compares the others. */
static void take_sizes(struct literal *l, const json_t *list)
{
    for (; json_is_array(list); list = json_array_get(list, 0)) {
        if (l->tensor.rank == MAX_RANK)
            refuse(l, "has too many dimensions");
        l->tensor.dim[l->tensor.rank++] = (int64_t)json_array_size(list);
    }
}

static void put_string(struct literal *l, const json_t *text)
{
    if (!json_is_string(text))
        refuse(l, "expected strings, each in double quotes");
    ((int64_t *)l->tensor.data)[l->filled++] = string_number(json_string_value(text), json_string_length(text));
}

static void put_number(struct literal *l, const json_t *number)
{
    struct tensor *t = &l->tensor;
    int64_t lo = 0, hi = 1, x = json_is_boolean(number) ? json_is_true(number) : json_integer_value(number);
    bool whole = t->dtype == DT_BOOL || dtype_is_integer(t->dtype);
    struct arena *tmp = arena_new();
    if (!json_is_number(number) && !json_is_boolean(number))
        refuse(l, "expected numbers in lists of one length");
    if (whole && json_is_real(number))
        refuse(l, arena_printf(tmp, "%g is no %s", json_real_value(number), dtype_name(t->dtype)));
    if (dtype_is_integer(t->dtype))
        dtype_range(t->dtype, &lo, &hi);
    if (whole && (x < lo || x > hi))
        refuse(
            l,
            arena_printf(tmp, "%lld is no %s, which has %lld to %lld", (long long)x, dtype_name(t->dtype), (long long)lo, (long long)hi));
    if (t->dtype == DT_I64 || t->dtype == DT_U64)
        ((int64_t *)t->data)[l->filled++] = x;
    else
        tensor_put(t, l->filled++, whole ? (double)x : json_is_boolean(number) ? (double)x : json_number_value(number));
    arena_free(tmp);
}

static void fill(struct literal *l, const json_t *at, int dim)
{
    struct arena *tmp = arena_new();
    if (dim == l->tensor.rank && l->tensor.dtype == DT_STRING) {
        put_string(l, at);
    } else if (dim == l->tensor.rank) {
        put_number(l, at);
    } else {
        int64_t n = (int64_t)json_array_size(at);
        if (!json_is_array(at) || n != l->tensor.dim[dim])
            refuse(l,
                   json_is_array(at) ? arena_printf(tmp, "has lists of %lld and of %lld", (long long)l->tensor.dim[dim], (long long)n)
                                     : "expected numbers in lists of one length");
        for (int64_t i = 0; i < n; i++)
            fill(l, json_array_get(at, (size_t)i), dim + 1);
    }
    arena_free(tmp);
}

/* Drops leading dimensions of 1 that the input lacks, and adds missing ones; the outermost brackets may be missing. */
static void fit_rank(struct tensor *t, int rank)
{
    while (t->rank > rank && t->dim[0] == 1)
        memmove(t->dim, t->dim + 1, (size_t)--t->rank * sizeof *t->dim);
    while (t->rank < rank) {
        memmove(t->dim + 1, t->dim, (size_t)t->rank++ * sizeof *t->dim);
        t->dim[0] = 1;
    }
}

/* The smallest type that they fit, if the type is unknown. */
static enum dtype own_type(const char *text)
{
    return strchr(text, '"') ? DT_STRING : strpbrk(text, "tf") ? DT_BOOL : strpbrk(text, ".eE") ? DT_F32 : DT_I64;
}

struct tensor literal_read(struct arena *a, const char *text, const struct value *input)
{
    struct literal l = {.text = text};
    json_error_t error;
    json_t *all = json_loads(arena_printf(a, "[%s]", text), 0, &error);
    if (!all)
        refuse(&l, "expected numbers as 1,2,3 or [1,2],[3,4]");
    take_sizes(&l, all);
    int64_t n, bytes;
    l.tensor.dtype = input ? input->type.dtype : own_type(text);
    if (!type_sizes_product(l.tensor.dim, l.tensor.rank, &n) || !i64_mul(n, (int64_t)dtype_size(l.tensor.dtype), &bytes))
        refuse(&l, "has too many numbers");
    l.tensor.data = arena_alloc(a, (size_t)bytes + 1);
    fill(&l, all, 0);
    json_decref(all);
    fit_rank(&l.tensor, input ? input->type.rank : l.tensor.rank - (l.tensor.rank > 1 && l.tensor.dim[0] == 1));
    if (input && l.tensor.rank != input->type.rank)
        refuse(&l, arena_printf(a, "has %d dimensions, and '%s' is %s", l.tensor.rank, input->name, type_str(a, &input->type)));
    return l.tensor;
}
