/* sampling: how a token is drawn. Each token has a random number from Gumbel's distribution added to its score: the largest sum is at a
 * token with its softmax probability (Gumbel, 1954). So ranks draw over a sharded vocabulary without a sum over all of it, and no order of
 * additions changes the result.
 *
 * A draw is a function of seed, row, position and token. If a limit needs probabilities, they are integers in units of 2^-40 of the best
 * one's: their sums are exact. */
#include "decode/sampling/sampling.h"

#include <math.h>
#include <string.h>
#include <sys/random.h>

/* ---- draws ---- */

struct draws sampling_draws(const struct row_sampling *how, int64_t position)
{
    return (struct draws){splitmix(splitmix(splitmix(how->of.seed) ^ how->number) ^ (uint64_t)position), 1 / how->of.temperature};
}

/* -log(-log(u)) is at most -log(1 - u), for which the exponent gives an upper bound. */
static double most_drawn(uint64_t bits)
{
    uint64_t left = (UINT64_C(1) << 53) - 1 - bits;
    return (left ? __builtin_clzll(left) - 10 : 54) * 0.69314718055994531;
}

double sampling_draw(const struct draws *d, int64_t token, double score, double than)
{
    uint64_t bits = splitmix(d->base ^ splitmix((uint64_t)token)) >> 11;
    double scaled = score * d->per_score;
    if (scaled + most_drawn(bits) < than)
        return -INFINITY;
    return scaled - log(-log(((double)bits + 0.5) * 0x1p-53));
}

struct row_sampling sampling_copy(struct arena *a, const struct row_sampling *how)
{
    struct row_sampling copy = *how;
    struct scored_token *bias = NEWN(a, struct scored_token, how->biases + 1);
    if (how->biases)
        memcpy(bias, how->bias, (size_t)how->biases * sizeof *bias);
    copy.bias = bias;
    return copy;
}

/* ---- limits ---- */

bool sampling_filters(const struct sampling *s)
{
    return s->temperature > 0 && (s->top_k > 0 || s->top_p < 1 || s->min_p > 0);
}

int64_t sampling_weight(const struct sampling *s, double score, double best)
{
    return score == best ? INT64_C(1) << 40 : (int64_t)(exp((score - best) / s->temperature) * 0x1p40 + 0.5);
}

/* ---- the settings ---- */

struct sampling_fault sampling_fault(const struct sampling *s)
{
    if (!(s->temperature >= 0 && s->temperature <= 1e6))
        return (struct sampling_fault){"temperature", "a number of 0 to 1000000"};
    if (s->top_k < 0)
        return (struct sampling_fault){"top_k", "a whole number of 0 or more"};
    if (!(s->top_p > 0 && s->top_p <= 1))
        return (struct sampling_fault){"top_p", "a number above 0, at most 1"};
    if (!(s->min_p >= 0 && s->min_p <= 1))
        return (struct sampling_fault){"min_p", "a number of 0 to 1"};
    if (!(s->penalty > 0 && s->penalty <= 1e6))
        return (struct sampling_fault){"repetition_penalty", "a number above 0, at most 1000000"};
    if (!(s->presence >= -2 && s->presence <= 2))
        return (struct sampling_fault){"presence_penalty", "a number of -2 to 2"};
    if (!(s->frequency >= -2 && s->frequency <= 2))
        return (struct sampling_fault){"frequency_penalty", "a number of -2 to 2"};
    return (struct sampling_fault){0};
}

static void take_number(const json_t *root, const char *path, const char *key, double *to)
{
    const json_t *v = json_object_get(root, key);
    if (!v || json_is_null(v))
        return;
    if (!json_is_number(v))
        fail("%s: %s: expected a number", path, key);
    *to = json_number_value(v);
}

/* Prints the settings of the file next to the model on a line of its own. */
static void take_configuration(struct arena *a, const struct job_options *o, struct sampling *s)
{
    const char *path;
    json_t *root = config_sampling(a, o, &path);
    double top_k = 0;
    if (!root)
        return;
    s->temperature = 1;
    take_number(root, path, "temperature", &s->temperature);
    take_number(root, path, "top_k", &top_k);
    take_number(root, path, "top_p", &s->top_p);
    take_number(root, path, "min_p", &s->min_p);
    take_number(root, path, "repetition_penalty", &s->penalty);
    s->top_k = top_k >= 0 && top_k < INT32_MAX ? (int64_t)top_k : -1;
    json_decref(root);
    const struct sampling_fault f = sampling_fault(s);
    if (f.key)
        fail("%s: %s: expected %s", path, f.key, f.expected);
    diag_tell("%s asks for sampling; --temperature 0 decodes greedily", path);
}

static uint64_t new_seed(void)
{
    uint32_t seed = 0;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        fail("the system gave no random number: give --seed N");
    return seed;
}

static void tell(struct arena *a, const struct sampling *s, bool own_seed)
{
    const char *rest = arena_printf(a, "temperature %g", s->temperature);
    if (s->top_k)
        rest = arena_printf(a, "%s, top-k %lld", rest, (long long)s->top_k);
    if (s->top_p < 1)
        rest = arena_printf(a, "%s, top-p %g", rest, s->top_p);
    if (s->min_p > 0)
        rest = arena_printf(a, "%s, min-p %g", rest, s->min_p);
    if (s->penalty != 1)
        rest = arena_printf(a, "%s, repetition penalty %g", rest, s->penalty);
    if (s->presence != 0)
        rest = arena_printf(a, "%s, presence penalty %g", rest, s->presence);
    if (s->frequency != 0)
        rest = arena_printf(a, "%s, frequency penalty %g", rest, s->frequency);
    if (own_seed)
        rest = arena_printf(a, "%s; the same again with --seed %llu", rest, (unsigned long long)s->seed);
    diag_tell("sampling: %s", rest);
}

static struct sampling resolve(struct arena *a, const struct job_options *o)
{
    struct sampling s = {.top_p = 1, .penalty = 1};
    bool draws = o->top_k >= 0 || o->top_p >= 0 || o->min_p >= 0 || o->sampling_seed >= 0;
    if (o->prompt.text.n || o->prompt_file || o->serve)
        take_configuration(a, o, &s);
    if (o->temperature >= 0)
        s.temperature = o->temperature;
    else if ((draws || o->serve) && s.temperature <= 0)
        s.temperature = 1;
    s.top_k = o->top_k >= 0 ? o->top_k : s.top_k;
    s.top_p = o->top_p >= 0 ? o->top_p : s.top_p;
    s.min_p = o->min_p >= 0 ? o->min_p : s.min_p;
    s.penalty = o->penalty >= 0 ? o->penalty : s.penalty;
    s.presence = isnan(o->presence) ? 0 : o->presence;
    s.frequency = isnan(o->frequency) ? 0 : o->frequency;
    const struct sampling_fault f = sampling_fault(&s);
    if (f.key)
        fail_usage("--%s: expected %s", f.key, f.expected);
    s.seed = o->sampling_seed >= 0 ? (uint64_t)o->sampling_seed : s.temperature > 0 ? new_seed() : 0;
    if (s.temperature > 0 && !o->serve)
        tell(a, &s, o->sampling_seed < 0);
    return s;
}

struct sampling sampling_agree(struct arena *a, struct comm *all, const struct job_options *o)
{
    struct sampling s = {0};
    if (all->rank == 0)
        s = resolve(a, o);
    comm_from_first(all, "sampling", &s, sizeof s);
    return s;
}
