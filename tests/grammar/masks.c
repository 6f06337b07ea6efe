/* masks TOKENS gbnf|schema FILE TEXTS SEED: times masks over a vocabulary, TOKENS: a line each, its bytes in base 16. Texts are made of
 * tokens that may follow, drawn alike, up to 200 of them. Prints the times of a mask in microseconds, and how many texts ended. */
#include "grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 1 << 20, LONGEST_TEXT = 200 };

struct vocabulary {
    int64_t n;
    struct grammar_token *token;
};

static struct vocabulary read_tokens(struct arena *a, const char *path)
{
    struct vocabulary v = {.token = NEWN(a, struct grammar_token, MOST_TOKENS)};
    char line[1024];
    FILE *f = fopen(path, "r");
    require(f);
    while (v.n < MOST_TOKENS && fgets(line, sizeof line, f)) {
        size_t n = strcspn(line, "\n") / 2;
        char *at = arena_alloc(a, n + 1);
        for (size_t i = 0; i < n; i++) {
            char pair[] = {line[2 * i], line[2 * i + 1], 0};
            at[i] = (char)strtol(pair, NULL, 16);
        }
        v.token[v.n++] = (struct grammar_token){at, n};
    }
    (void)fclose(f);
    return v;
}

static const struct grammar *read_grammar(struct arena *a, const char *kind, const char *path)
{
    struct grammar_build *b = grammar_begin(a);
    struct grammar_json j = grammar_json_new(b);
    struct map file = map_file(path);
    json_t *schema = strcmp(kind, "schema") == 0 ? json_loadb((const char *)file.at, file.bytes, JSON_DECODE_ANY, NULL) : NULL;
    int root = schema ? grammar_schema(&j, schema) : grammar_gbnf(b, (const char *)file.at, file.bytes);
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    json_decref(schema);
    if (!g)
        fail("%s: %s", path, grammar_fault(b));
    return g;
}

/* As a rank uses it: scores of columns that may not follow are no more. */
static int64_t apply(const uint64_t *mask, int64_t n, double *score)
{
    int64_t allowed = 0;
    for (int64_t k = 0; k < n; k++) {
        bool may = mask[k >> 6] >> (k & 63) & 1;
        score[k] = may ? score[k] : -1;
        allowed += may;
    }
    return allowed;
}

static int64_t drawn(const uint64_t *mask, int64_t n, int64_t which)
{
    for (int64_t k = 0; k < n; k++)
        if ((mask[k >> 6] >> (k & 63) & 1) && which-- == 0)
            return k;
    return -1;
}

static int by_size(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return a < b ? -1 : a > b;
}

struct times {
    VEC(double) list;
};

/* True: the text ended. */
static bool make_text(struct arena *a, struct automaton *m, const struct vocabulary *v, const struct token_tree *t, uint64_t *random,
                      double *score, struct times *times)
{
    struct arena *own = arena_new();
    struct matcher *text = matcher_new(own, m);
    bool ended = false;
    for (int i = 0; i < LONGEST_TEXT && !ended; i++) {
        double start = clock_seconds();
        const uint64_t *mask = matcher_mask(text, t);
        int64_t allowed = mask ? apply(mask, v->n, score) : 0;
        VEC_PUSH(a, &times->list, clock_seconds() - start);
        *random = splitmix(*random);
        if (!allowed) { /* too many ways to read it */
            puts(mask ? "no token may follow" : "it takes too long");
            break;
        }
        int64_t token = drawn(mask, v->n, (int64_t)(*random % (uint64_t)allowed));
        require(matcher_take(text, v->token[token].at, v->token[token].n));
        ended = matcher_is_last(text);
    }
    arena_free(own);
    return ended;
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    diag_setup("masks", 0);
    if (argc != 6)
        fail_usage("masks TOKENS gbnf|schema FILE TEXTS SEED");
    const struct vocabulary v = read_tokens(a, argv[1]);
    double start = clock_seconds();
    const struct grammar *g = read_grammar(a, argv[2], argv[3]);
    double made = clock_seconds(), *score = NEWN(a, double, v.n);
    const struct token_tree *t = token_tree_new(a, v.token, v.n);
    double tree = clock_seconds() - made;
    struct automaton *m = automaton_new(g);
    int64_t texts = number_read("TEXTS", argv[4], 1, 1 << 20), ended = 0;
    uint64_t random = (uint64_t)number_read("SEED", argv[5], 0, INT64_MAX);
    struct times times = {0};
    for (int64_t i = 0; i < texts; i++)
        ended += make_text(a, m, &v, t, &random, score, &times);
    int n = times.list.n;
    qsort(times.list.at, (size_t)n, sizeof *times.list.at, by_size);
    printf("%lld tokens, %d masks: median %.0f us, p99 %.0f us, most %.0f us; %lld of %lld texts ended; grammar %.1f ms, tree %.0f ms\n",
           (long long)v.n, n, 1e6 * times.list.at[n / 2], 1e6 * times.list.at[n * 99 / 100], 1e6 * times.list.at[n - 1], (long long)ended,
           (long long)texts, 1e3 * (made - start), 1e3 * tree);
    automaton_free(m);
    arena_free(a);
    return EXIT_SUCCESS;
}
