/* unclaimed: for each sample of the self-check, whole factors are split and partial sums, maxima and minima are sent through every set of
 * up to three operands. What is right and no rule claims has a reason in tests/unclaimed.def, or is a failure, as is a reason for nothing.
 */
#include "op/rule/rule.h"
#include "tests/selfcheck.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct {
    const char *op, *what, *why;
} reasons[] = {
#include "tests/unclaimed.def"
};
static bool used[sizeof reasons / sizeof *reasons];
enum { REASONS = sizeof reasons / sizeof *reasons, MOST_FINDINGS = 64, MOST_FINDING = 48, SEARCHED = 6 };

/* Shared with the process that searches, which a bug() may end: then it continues after the current attempt. */
struct search {
    int attempt, n;
    char found[MOST_FINDINGS][MOST_FINDING];
};

static void report(struct search *s, const char *what)
{
    require(s->n < MOST_FINDINGS);
    snprintf(s->found[s->n++], MOST_FINDING, "%s", what);
}

/* Whether agreement with the whole results tells anything. */
static bool tells(const struct trial *t, bool sum)
{
    double most = 0;
    for (int i = 0; i < t->node->nout; i++) {
        const struct value *v = t->node->out[i];
        if (v && (v->type.dtype == DT_BOOL || (sum && !dtype_is_float(v->type.dtype))))
            return false;
        for (int64_t k = 0; v && k < tensor_elements(&t->whole[i]); k++) {
            double x = tensor_get(&t->whole[i], k);
            if (!isfinite(x))
                return false;
            most = fmax(most, fabs(x));
        }
    }
    return most > 0.05;
}

/* A whole factor that could be split. */
static void search_factor(struct search *s, struct trial *t, int f)
{
    struct factor *factor = &t->rule->factor[f];
    int before = t->legal;
    if (!(factor->flags & FACTOR_REPLICATED) || (factor->flags & FACTOR_POSITION))
        return;
    factor->flags &= ~(unsigned)FACTOR_REPLICATED;
    if (trial_factor(t, f) && t->legal > before)
        report(s, arena_printf(t->arena, "factor %s", factor->name));
    factor->flags |= FACTOR_REPLICATED;
}

/* Max and min pass some operands where they pass more. */
static bool is_claimed(const struct trial *t, const struct rule_pass *p)
{
    struct rule_pass claim[MOST_PASSES];
    int n = rule_passes(t->rule, claim);
    for (int i = 0; i < n; i++) {
        bool covers = p->from == RED_SUM ? p->operands == claim[i].operands : !(p->operands & ~claim[i].operands);
        if (covers && p->from == claim[i].from && p->to == claim[i].to)
            return true;
    }
    return false;
}

static int members(uint32_t set)
{
    int n = 0;
    for (; set; set &= set - 1)
        n++;
    return n;
}

static void search_pass(struct search *s, struct trial *t, const struct rule_pass *pass)
{
    if (members(pass->operands) > 3 || !addends_are_floats(t, pass->operands) || is_claimed(t, pass) || !tells(t, pass->from == RED_SUM))
        return;
    for (int i = 0; i < 3; i++) /* other addends each time */
        if (!trial_pass(t, pass))
            return;
    report(s, pass_text(t->arena, pass));
}

/* Attempts from number `from` on. */
static void search_sample(struct search *s, const struct sample *sample, int from)
{
    static const enum redop way[5][2] = {
        {RED_SUM, RED_SUM}, {RED_MAX, RED_MAX}, {RED_MIN, RED_MIN}, {RED_MAX, RED_MIN}, {RED_MIN, RED_MAX}};
    struct trial t;
    trial_start(&t, sample, DT_F32);
    if (!t.rule && from == 0)
        report(s, "no rule");
    if (!t.rule)
        return;
    s->attempt = -1;
    uint32_t sets = UINT32_C(1) << (t.node->nin < SEARCHED ? t.node->nin : SEARCHED);
    for (int f = 0; f < t.rule->nfactor; f++)
        if (++s->attempt >= from)
            search_factor(s, &t, f);
    for (uint32_t set = 1; set < sets; set++)
        for (int k = 0; k < 5; k++)
            if (++s->attempt >= from)
                search_pass(s, &t, &(struct rule_pass){set, way[k][0], way[k][1]});
}

static bool is_excused(const char *op, const char *what)
{
    for (int i = 0; i < REASONS; i++)
        if (strcmp(reasons[i].op, op) == 0 && strcmp(reasons[i].what, what) == 0)
            return used[i] = true;
    return false;
}

/* One for all samples. */
static struct search *shared_search(void)
{
    static struct search *shared;
    if (!shared)
        shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    require(shared != MAP_FAILED);
    return shared;
}

int search_unclaimed(const struct sample *sample)
{
    struct search *s = shared_search();
    int wrong = 0, from = 0, status;
    s->n = 0;
    do {
        fflush(stdout);
        s->attempt = from - 1;
        pid_t child = fork();
        if (child == 0) {
            if (!freopen("/dev/null", "w", stderr))
                _exit(1);
            search_sample(s, sample, from);
            _exit(0);
        }
        if (child < 0 || waitpid(child, &status, 0) < 0)
            fail("can't search a sample in a process of its own");
        if (status && s->attempt < from) {
            printf("%-36s fails before anything is split\n", sample->op);
            return 1;
        }
        from = s->attempt + 1;
    } while (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    for (int i = 0; i < s->n; i++)
        if (!is_excused(sample->op, s->found[i])) {
            printf("%-36s could claim, and has no reason not to: %s\n", sample->op, s->found[i]);
            wrong++;
        }
    return wrong;
}

int reasons_unused(void)
{
    int wrong = 0;
    for (int i = 0; i < REASONS; i++)
        if (!used[i]) {
            printf("%-36s has a reason not to claim what is not found: %s\n", reasons[i].op, reasons[i].what);
            wrong++;
        }
    return wrong;
}
