/* metrics: counts, times and what is served, in Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "serve/reply/reply.h"

#include <string.h>

/* Upper limits of the buckets, in seconds; a last one has no limit. */
static const double limit_first[METRICS_BUCKETS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100};
static const double limit_next[METRICS_BUCKETS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

static void observe(struct histogram *h, const double *limit, double seconds)
{
    int i = 0;
    while (i < METRICS_BUCKETS && seconds > limit[i])
        i++;
    h->in[i]++;
    h->seconds += seconds;
}

void metrics_first_token(struct counts *n, double seconds)
{
    observe(&n->first, limit_first, seconds);
}

void metrics_next_token(struct counts *n, double seconds)
{
    observe(&n->next, limit_next, seconds);
}

/* ---- as text ---- */

struct page {
    struct arena *arena;
    struct text_builder to;
};

static void put(struct page *p, const char *text)
{
    text_put(&p->to, text, strlen(text));
}

static void put_head(struct page *p, const char *name, const char *type, const char *what)
{
    put(p, arena_printf(p->arena, "# HELP tpc_%s %s\n# TYPE tpc_%s %s\n", name, what, name, type));
}

static void put_number(struct page *p, const char *name, const char *type, const char *what, double value)
{
    put_head(p, name, type, what);
    put(p, arena_printf(p->arena, "tpc_%s %.17g\n", name, value));
}

static void put_count(struct page *p, const char *name, const char *what, int64_t n)
{
    put_number(p, name, "counter", what, (double)n);
}

static void put_gauge(struct page *p, const char *name, const char *what, int64_t n)
{
    put_number(p, name, "gauge", what, (double)n);
}

/* Buckets are cumulative. */
static void put_histogram(struct page *p, const char *name, const char *what, const struct histogram *h, const double *limit)
{
    int64_t n = 0;
    put_head(p, name, "histogram", what);
    for (int i = 0; i < METRICS_BUCKETS; i++) {
        n += h->in[i];
        put(p, arena_printf(p->arena, "tpc_%s_bucket{le=\"%g\"} %lld\n", name, limit[i], (long long)n));
    }
    n += h->in[METRICS_BUCKETS];
    put(p,
        arena_printf(p->arena, "tpc_%s_bucket{le=\"+Inf\"} %lld\ntpc_%s_sum %.17g\ntpc_%s_count %lld\n", name, (long long)n, name,
                     h->seconds, name, (long long)n));
}

/* The value of a label, without its quotes. */
static const char *label(struct arena *a, const char *text)
{
    struct text_builder to = {.arena = a};
    for (; *text; text++)
        if (*text == '\n')
            text_put(&to, "\\n", 2);
        else {
            if (*text == '"' || *text == '\\')
                text_put(&to, "\\", 1);
            text_put(&to, text, 1);
        }
    text_put(&to, "", 1);
    return text_built(&to).at;
}

static void put_info(struct page *p, const struct service *s)
{
    put_head(p, "build_info", "gauge", "The program.");
    put(p, "tpc_build_info{version=\"" PACKAGE_VERSION "\"} 1\n");
    put_head(p, "model_info", "gauge", "What is served, and on how many ranks.");
    json_t *name = reply_text(text_of(s->model));
    put(p,
        arena_printf(p->arena, "tpc_model_info{model=\"%s\",ranks=\"%d\",transport=\"%s\"} 1\n", label(p->arena, json_string_value(name)),
                     (int)s->ranks, s->transport ? s->transport : ""));
    json_decref(name);
    put_gauge(p, "context_tokens", "Tokens of a text with its prompt, at most.", s->context);
}

static void put_texts(struct page *p, const struct counts *n)
{
    put_count(p, "requests_total", "Requests for completions.", n->requests);
    put_count(p, "requests_refused_total", "Those that were refused.", n->refused);
    put_count(p, "clients_vanished_total", "Clients that left before their texts ended.", n->vanished);
    put_count(p, "texts_total", "Texts that ended.", n->texts);
    put_count(p, "prompt_tokens_total", "Tokens of prompts.", n->prompt_tokens);
    put_count(p, "generated_tokens_total", "Tokens that were made.", n->made_tokens);
    put_histogram(p, "first_token_seconds", "From a request to the first token of a text.", &n->first, limit_first);
    put_histogram(p, "next_token_seconds", "From a token of a text to the next one.", &n->next, limit_next);
}

static void put_runs(struct page *p, const struct counts *n)
{
    put_number(p, "prompt_seconds_total", "counter", "Time spent on prompts.", n->prompt_seconds);
    put_count(p, "prompt_runs_total", "Runs of prompts, which may have several.", n->prompt_runs);
    put_count(p, "steps_total", "Steps, each of a token for every row.", n->steps);
    put_number(p, "step_seconds_total", "counter", "Time spent on steps.", n->step_seconds);
    put_count(p, "drafted_tokens_total", "Tokens that were guessed.", n->drafted);
    put_count(p, "drafted_tokens_kept_total", "Those of them that were kept.", n->kept);
}

static void put_stored(struct page *p, const struct prefix_counts *n)
{
    put_count(p, "prefix_cache_hits_total", "Texts that began behind stored tokens.", n->hits);
    put_count(p, "prefix_cache_tokens_total", "Tokens of prompts that were stored and did not run.", n->tokens);
    put_count(p, "prefix_cache_dropped_total", "Stored blocks that gave way to others.", n->dropped);
    put_gauge(p, "prefix_cache_blocks", "Blocks that are stored.", n->blocks);
    put_gauge(p, "prefix_cache_blocks_most", "Blocks that may be; 0: no prefix cache.", n->most);
    put_gauge(p, "prefix_cache_bytes", "Bytes of stored blocks on rank 0.", n->bytes);
}

static void put_supervision(struct page *p, struct supervisor *supervisor)
{
    int restarts;
    enum supervision state = supervisor_state(supervisor, &restarts, NULL);
    put_count(p, "restarts_total", "Restarts of the job.", restarts);
    put_gauge(p, "serving", "1: the job makes texts; 0: it starts, or starts again.", state == SUPERVISE_RUNS);
}

const char *metrics_text(struct arena *a, const struct service *s)
{
    struct page p = {.arena = a, .to.arena = a};
    put_info(&p, s);
    put_texts(&p, &s->counts);
    put_runs(&p, &s->counts);
    put_stored(&p, &s->stored);
    put_gauge(&p, "rows", "Rows in use.", s->active);
    put_gauge(&p, "rows_most", "Rows there are.", s->slots);
    put_gauge(&p, "waiting", "Texts that wait for a row.", s->waiting);
    if (s->supervisor)
        put_supervision(&p, s->supervisor);
    text_put(&p.to, "", 1);
    return text_built(&p.to).at;
}
