/* chained: texts from several graphs, an encoder and its decoder, one at a time: the encoder runs on the prompt, the decoder makes the
 * first token after a start token, and the last graph every further one. */
#include "decode/decode.h"

#include <string.h>

struct chained {
    struct comm *comm;
    struct stage *stage;
    int n;
    int64_t start, most;   /* the start token; most tokens after it */
    struct tensor **given; /* by stage and input: from the command line */
    struct arena *arena;   /* of the current text; NULL: none */
    struct row_sampling how;
    enum form_state form;
    int64_t repeats; /* tokens to make again, */
    const int64_t *repeat;
    struct history prompt, history;
    int ready; /* stages that have their earlier stages' results */
    int64_t fed;
    struct session_collective chosen;
};

struct chained *chained_new(struct arena *a, struct comm *comm, struct stage *stage, int n, int64_t start, int64_t most)
{
    struct chained *c = NEW(a, struct chained);
    *c = (struct chained){.comm = comm, .stage = stage, .n = n, .start = start, .most = most};
    c->chosen = (struct session_collective){.name = "next tokens", .op = "AllGather"};
    c->given = NEWN(a, struct tensor *, n);
    for (int k = 0; k < n; k++) {
        int inputs = stage[k].graph->inputs.n;
        c->given[k] = NEWN(a, struct tensor, inputs + 1);
        memcpy(c->given[k], stage[k].given, (size_t)inputs * sizeof *c->given[k]);
    }
    return c;
}

/* Resets the stages as before the first text. */
static void forget_text(struct chained *c)
{
    for (int k = 0; k < c->n; k++) {
        struct stage *s = &c->stage[k];
        memcpy(s->given, c->given[k], (size_t)s->graph->inputs.n * sizeof *s->given);
        memset(s->in, 0, (size_t)s->graph->inputs.n * sizeof *s->in);
        if (s->keeps)
            session_states_compose(s->session, NULL, 0, 0, NULL);
    }
    if (c->how.form)
        form_free(c->how.form);
    if (c->arena)
        arena_free(c->arena);
    c->how.form = NULL;
    c->arena = NULL;
    c->ready = 0;
}

void chained_begin(struct chained *c, const int64_t *prompt, int64_t n, const struct row_sampling *how, struct form *form)
{
    forget_text(c);
    c->arena = arena_new();
    c->how = sampling_copy(c->arena, how);
    c->how.prompts = 1; /* the start token */
    c->how.form = form;
    c->form = FORM_GOES_ON;
    c->repeats = how->made;
    c->repeat = memcpy(NEWN(c->arena, int64_t, how->made + 1), prompt + n, (size_t)how->made * sizeof *prompt);
    c->prompt = history_empty(c->arena, 1, n);
    for (; c->prompt.length < n; c->prompt.length++)
        history_put(&c->prompt, 0, prompt[c->prompt.length], true);
    c->history = history_start(c->arena, 1, c->start, c->most);
    c->fed = 0;
}

static struct stage *get_ready(struct chained *c, const struct history *h)
{
    stage_get_ready(c->arena, c->stage, c->ready, h);
    return &c->stage[c->ready++];
}

static void run_encoder(struct chained *c)
{
    const struct history *h = decode_find_input(&c->stage[c->ready], ROLE_TOKENS) >= 0 ? &c->prompt : NULL;
    stage_run(get_ready(c, h), h, 0);
}

int64_t chained_next(struct chained *c, struct logprobs *scored)
{
    int64_t next;
    while (!c->stage[c->ready < c->n ? c->ready : c->n - 1].decides)
        run_encoder(c);
    struct stage *s = c->ready < c->n ? get_ready(c, &c->history) : &c->stage[c->n - 1];
    stage_run(s, &c->history, c->fed);
    c->fed = c->history.length;
    pick_next(s, &c->history, &c->how, &next, &c->chosen);
    logprobs_next(s, &c->history, &c->how, &next, &c->chosen, scored);
    if (c->repeats) {
        next = *c->repeat++;
        c->repeats--;
    }
    if (c->how.form)
        c->form = form_take(c->how.form, &next);
    history_add(&c->history, &next);
    return next;
}

enum form_state chained_form(const struct chained *c)
{
    return c->form;
}

void chained_free(struct chained *c)
{
    forget_text(c);
}
