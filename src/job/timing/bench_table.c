/* bench_table: the results of --bench, a row per test, as Markdown, CSV or JSON. */
#include "job/timing/timing.h"
#include "plan/input/input.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

struct bench_table {
    struct arena *arena;
    enum bench_form form;
    const char *model, *comm;
    int ranks, threads;
    json_t *rows; /* for JSON, which is one list */
};

/* Mean and standard deviation of a sample. */
struct spread {
    double mean, deviation;
};

static struct spread spread_of(const double *at, int n)
{
    struct spread s = {0, 0};
    for (int i = 0; i < n; i++)
        s.mean += at[i] / n;
    for (int i = 0; i < n && n > 1; i++)
        s.deviation += (at[i] - s.mean) * (at[i] - s.mean) / (n - 1);
    s.deviation = sqrt(s.deviation);
    return s;
}

/* Tokens per second, or runs of a model without tokens. */
static struct spread rate_of(struct arena *a, const struct bench_test *t)
{
    double *rate = NEWN(a, double, t->runs);
    for (int i = 0; i < t->runs; i++)
        rate[i] = (double)(t->tokens ? t->tokens : 1) / t->seconds[i];
    return spread_of(rate, t->runs);
}

enum bench_form bench_form_of(const char *text)
{
    static const char *const name[] = {[BENCH_MD] = "md", [BENCH_CSV] = "csv", [BENCH_JSON] = "json"};
    for (int i = BENCH_MD; i <= BENCH_JSON; i++)
        if (!text || strcmp(text, name[i]) == 0)
            return (enum bench_form)i;
    fail_usage("--bench is '%s', expected md, csv or json", text);
}

/* For a file, with its folder: many models are called model.onnx. */
static const char *model_name(struct arena *a, const char *path)
{
    const char *plain = path_trimmed(a, path);
    return path_is_folder(plain) ? path_base(plain) : path_last_two(plain);
}

struct bench_table *bench_table_new(struct arena *a, const struct comm *all, const struct job_options *o, int threads)
{
    struct bench_table *t = NEW(a, struct bench_table);
    if (all->rank)
        return NULL;
    *t = (struct bench_table){a, o->bench, model_name(a, o->paths.text.at[0]), all->kind, all->size, threads, NULL};
    if (t->form == BENCH_MD)
        printf("| %-20s | ranks | threads | %-16s | runs | %20s | %28s |\n| %.20s | ----: | ------: | %.16s | ---: | %.19s: | %.27s: |\n",
               "model", "test", "ms per run", "rate", "--------------------", "----------------", "-------------------",
               "---------------------------");
    else if (t->form == BENCH_CSV)
        printf("model,ranks,comm,threads,test,tokens,runs,seconds,seconds_deviation,rate,rate_deviation,unit\n");
    else
        t->rows = json_array();
    return t;
}

static void add_json(const struct bench_table *t, const struct bench_test *test, struct spread rate)
{
    const struct spread seconds = spread_of(test->seconds, test->runs);
    json_t *runs = json_array();
    for (int i = 0; i < test->runs; i++)
        json_array_append_new(runs, json_real(test->seconds[i]));
    json_array_append_new(t->rows,
                          json_pack("{s:o, s:i, s:s, s:i, s:o, s:I, s:o, s:f, s:f, s:f, s:f, s:s}", "model", json_text_of(t->model),
                                    "ranks", t->ranks, "comm", t->comm, "threads", t->threads, "test", json_text_of(test->name), "tokens",
                                    (json_int_t)test->tokens, "runs", runs, "seconds", seconds.mean, "seconds_deviation", seconds.deviation,
                                    "rate", rate.mean, "rate_deviation", rate.deviation, "unit", test->tokens ? "tokens/s" : "runs/s"));
}

/* As a quoted field: quotes are doubled. */
static const char *csv_text(struct arena *a, const char *text)
{
    const char *out = "\"";
    for (size_t n; n = strcspn(text, "\""), text[n]; text += n + 1)
        out = arena_printf(a, "%s%.*s\"\"", out, (int)n, text);
    return arena_printf(a, "%s%s\"", out, text);
}

static const char *rate_text(struct arena *a, struct spread rate, bool tokens)
{
    int digits = rate.mean < 100 ? 2 : rate.mean < 1000 ? 1 : 0;
    return arena_printf(a, "%.*f ± %.*f %s/s", digits, rate.mean, digits, rate.deviation, tokens ? "tokens" : "runs");
}

void bench_table_add(struct bench_table *t, const struct bench_test *test)
{
    if (!t)
        return;
    const struct spread seconds = spread_of(test->seconds, test->runs), rate = rate_of(t->arena, test);
    if (t->form == BENCH_MD) /* one more byte than columns, for the plus-minus sign */
        printf("| %-20s | %5d | %7d | %-16s | %4d | %21s | %29s |\n", t->model, t->ranks, t->threads, test->name, test->runs,
               arena_printf(t->arena, "%.3f ± %.3f", 1e3 * seconds.mean, 1e3 * seconds.deviation),
               rate_text(t->arena, rate, test->tokens > 0));
    else if (t->form == BENCH_CSV)
        printf("%s,%d,%s,%d,%s,%lld,%d,%.9g,%.9g,%.9g,%.9g,%s\n", csv_text(t->arena, t->model), t->ranks, t->comm, t->threads,
               csv_text(t->arena, test->name), (long long)test->tokens, test->runs, seconds.mean, seconds.deviation, rate.mean,
               rate.deviation, test->tokens ? "tokens/s" : "runs/s");
    else
        add_json(t, test, rate);
    streams_flush();
}

void bench_table_end(struct bench_table *t)
{
    if (!t || !t->rows)
        return;
    printf("%s\n", json_dump(t->arena, t->rows, JSON_INDENT(1) | JSON_REAL_PRECISION(9)));
    json_decref(t->rows);
}
