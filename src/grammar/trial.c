/* trial: checks that leaving a grammar's first states takes bounded work, before texts wait for it. The work is counted, not timed, so that
 * the answer is always the same. */
#include "grammar/grammar.h"

enum { TRIAL_WORK = 500000 };

static bool goes_on(const struct automaton *a)
{
    return automaton_work(a) < TRIAL_WORK && !automaton_given_up(a);
}

/* Takes a state's step by each byte; new states are numbered after those so far. Returns the greatest state found. */
static int leave(struct automaton *a, int state, int last)
{
    for (int byte = 0; byte < 256 && goes_on(a); byte++) {
        int next = automaton_next(a, state, (uint8_t)byte);
        last = next > last ? next : last;
    }
    return last;
}

const char *grammar_trial(const struct grammar *g)
{
    struct automaton *a = automaton_new(g);
    int last = AUTOMATON_START;
    for (int state = AUTOMATON_START; state <= last && goes_on(a); state++)
        last = leave(a, state, last);
    bool given_up = automaton_given_up(a) > 0;
    automaton_free(a);
    return given_up ? "it has too many ways to read a text: each byte would take too long" : NULL;
}
