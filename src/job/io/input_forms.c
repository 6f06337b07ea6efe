/* input_forms: what given inputs determine before the graph is loaded: the number of tensors of a sequence, whether an optional is present,
 * and small integers, as texts like those of --bind (src/onnx/compose/sequence_ends.c). */
#include "job/io/io.h"
#include "onnx/onnx.h"

#include <math.h>
#include <string.h>

enum { MOST_BOUND = 64 };

bool input_is_small_integer(const struct tensor *t)
{
    int64_t n = tensor_elements(t);
    bool small = (dtype_is_integer(t->dtype) || t->dtype == DT_BOOL) && t->dtype != DT_U64 && n > 0 && n <= MOST_BOUND;
    for (int64_t i = 0; small && i < n; i++)
        small = fabs(tensor_element(t, i)) < 0x1p53;
    return small;
}

const char *input_values_text(struct arena *a, const struct tensor *t)
{
    const char *text = "";
    for (int64_t i = 0; i < tensor_elements(t); i++)
        text = arena_printf(a, "%s%s%lld", text, i ? "," : "", (long long)tensor_element(t, i));
    return text;
}

static const char *list_text(struct arena *a, int n, const struct tensor *at)
{
    const char *text = "";
    for (int i = 0; i < n; i++) {
        text = arena_printf(a, "%s%s[", text, i ? "," : "");
        for (int d = 0; d < at[i].rank; d++)
            text = arena_printf(a, "%s%s%lld", text, d ? ", " : "", (long long)at[i].dim[d]);
        text = arena_printf(a, "%s]", text);
    }
    return n ? text : "0";
}

/* The file that --input gives for an input; NULL: none. */
static const char *named_file(const struct job_options *o, const char *input)
{
    size_t n = strlen(input);
    for (int i = 0; i < o->input.text.n; i++)
        if (strncmp(o->input.text.at[i], input, n) == 0 && o->input.text.at[i][n] == '=')
            return o->input.text.at[i] + n + 1;
    return NULL;
}

/* Elements by --input NAME.0=FILE, --input NAME.1=FILE ... */
static const char *named_list(struct arena *a, const struct job_options *o, const char *input)
{
    int n = 0;
    while (named_file(o, arena_printf(a, "%s.%d", input, n)))
        n++;
    struct tensor *at = NEWN(a, struct tensor, n + 1);
    for (int i = 0; i < n; i++)
        at[i] = job_read_tensor(a, named_file(o, arena_printf(a, "%s.%d", input, i)), NULL);
    return n ? list_text(a, n, at) : NULL;
}

static const char *tested_file(struct arena *a, const struct job_options *o, int k)
{
    const char *path = o->test_data ? path_join(a, o->test_data, arena_printf(a, "input_%d.pb", k)) : NULL;
    return path && path_exists(path) ? path : NULL;
}

static const char *tested_list(struct arena *a, const struct job_options *o, const char *input)
{
    const char *path;
    for (int k = 0; (path = tested_file(a, o, k)); k++) {
        struct tensor_list list = sequence_read_pb(a, path);
        if (list.name && strcmp(list.name, input) == 0)
            return list.absent ? "none" : list_text(a, list.n, list.at);
    }
    return NULL;
}

static const char *tested_values(struct arena *a, const struct job_options *o, const char *input)
{
    const char *path, *name;
    for (int k = 0; (path = tested_file(a, o, k)); k++) {
        if (sequence_read_pb(a, path).name)
            continue;
        struct tensor t = tensor_read_pb(a, path, &name);
        if (strcmp(name, input) == 0)
            return input_is_small_integer(&t) ? input_values_text(a, &t) : NULL;
    }
    return NULL;
}

static bool is_tested(struct arena *a, const struct job_options *o, const char *input)
{
    const char *path, *name;
    for (int k = 0; (path = tested_file(a, o, k)); k++) {
        if (sequence_read_pb(a, path).name)
            continue;
        (void)tensor_read_pb(a, path, &name);
        if (name && strcmp(name, input) == 0)
            return true;
    }
    return false;
}

bool job_input_given(const void *options, struct arena *a, const char *input)
{
    const struct job_options *o = options;
    return named_file(o, input) || is_tested(a, o, input);
}

const char *job_input_held(const void *options, struct arena *a, const char *input, bool tensor)
{
    const struct job_options *o = options;
    const char *file = tensor ? named_file(o, input) : NULL, *list = tensor ? NULL : named_list(a, o, input);
    if (file && !strstr(file, "{rank}")) {
        struct tensor t = job_read_tensor(a, file, NULL);
        return input_is_small_integer(&t) ? input_values_text(a, &t) : NULL;
    }
    return list ? list : tensor ? tested_values(a, o, input) : tested_list(a, o, input);
}
