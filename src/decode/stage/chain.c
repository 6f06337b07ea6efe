/* chain: passes state and constants of earlier graphs to a graph.
 *
 * State is found by the name in the plan, else by endings of names (src/ir/state_match.c); each rank hands over its own shard. A constant
 * is found by name: an earlier input or output of that name, or an earlier input whose name ends the constant's (encoder_attention_mask:
 * attention_mask). If no name matches, the only output of its type. */
#include "decode/stage/stage.h"

#include <string.h>

/* ---- state ---------------------------------------------------------------------------------------------------------------------- */

/* The missing state inputs; at[] gets their numbers. */
static struct handover open_states(struct arena *a, const struct stage *s, const bool *taken, int *at)
{
    struct handed *list = NEWN(a, struct handed, s->graph->inputs.n);
    int n = 0;
    for (int i = 0; i < s->graph->inputs.n; i++) {
        if (s->role[i] != ROLE_STATE || s->given[i].data || taken[i])
            continue;
        const char *from = session_state_source(s->session, i);
        at[n] = i;
        list[n++] = (struct handed){from ? from : s->graph->inputs.at[i]->name, *session_input_type(s->session, i)};
    }
    return (struct handover){s->path, n, list};
}

static struct handover left_states(struct arena *a, const struct stage *s, int *at)
{
    struct handed *list = NEWN(a, struct handed, s->graph->outputs.n);
    int n = 0;
    for (int i = 0; i < s->graph->outputs.n; i++) {
        if (i == s->logits)
            continue;
        at[n] = i;
        list[n++] = (struct handed){s->graph->outputs.at[i]->name, *session_output_type(s->session, i)};
    }
    return (struct handover){s->path, n, list};
}

/* Copies state from the nearest earlier graph that computed it. */
static void take_states(struct stage *stage, int k)
{
    struct arena *tmp = arena_new();
    struct stage *s = &stage[k];
    bool *taken = NEWN(tmp, bool, s->graph->inputs.n);
    int *input = NEWN(tmp, int, s->graph->inputs.n), *match = NEWN(tmp, int, s->graph->inputs.n);
    for (int j = k - 1; j >= 0; j--) {
        int *output = NEWN(tmp, int, stage[j].graph->outputs.n);
        struct handover to = open_states(tmp, s, taken, input), from = left_states(tmp, &stage[j], output);
        state_match(&to, &from, match);
        for (int i = 0; i < to.n; i++) {
            if (match[i] < 0)
                continue;
            session_copy_state(s->session, input[i], stage[j].session, output[match[i]]);
            taken[input[i]] = true;
        }
    }
    arena_free(tmp);
}

/* ---- constants -------------------------------------------------------------------------------------------------------------------- */

static bool ends_with_name(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0 && strchr("._/", text[n - m - 1]);
}

/* An input of an earlier graph. It is still valid if it is constant or if its graph ran once. */
static bool from_input(const struct stage *s, const char *name, bool whole_name, struct tensor *to)
{
    for (int i = 0; i < s->graph->inputs.n; i++) {
        const char *own = s->graph->inputs.at[i]->name;
        bool fits = whole_name ? strcmp(name, own) == 0 : ends_with_name(name, own);
        if (!fits || !s->in[i].data || (s->role[i] != ROLE_CONSTANT && s->logits >= 0))
            continue;
        *to = s->in[i];
        return true;
    }
    return false;
}

static bool from_output(struct arena *a, struct stage *s, int output, struct tensor *to)
{
    *to = session_gather(s->session, a, output, &s->out[output]);
    return true;
}

static bool by_name(struct arena *a, struct stage *stage, int k, const char *name, struct tensor *to)
{
    for (int whole = 1; whole >= 0; whole--)
        for (int j = k - 1; j >= 0; j--) {
            if (from_input(&stage[j], name, whole, to))
                return true;
            for (int i = 0; i < stage[j].graph->outputs.n; i++)
                if (whole && strcmp(stage[j].graph->outputs.at[i]->name, name) == 0)
                    return from_output(a, &stage[j], i, to);
        }
    return false;
}

static bool same_kind(const struct type *x, const struct type *y)
{
    int64_t m, n;
    for (int d = 0; d < x->rank && d < y->rank; d++)
        if (dim_is_int(x->dim[d], &m) && dim_is_int(y->dim[d], &n) && m != n)
            return false;
    return x->dtype == y->dtype && x->rank == y->rank;
}

static bool by_type(struct arena *a, struct stage *stage, int k, const struct type *type, struct tensor *to)
{
    int count = 0, at = -1, output = -1;
    for (int j = 0; j < k; j++)
        for (int i = 0; i < stage[j].graph->outputs.n; i++) {
            if (i == stage[j].logits || !same_kind(type, session_output_type(stage[j].session, i)))
                continue;
            count++;
            at = j;
            output = i;
        }
    return count == 1 && from_output(a, &stage[at], output, to);
}

void chain_take(struct arena *a, struct stage *stage, int k)
{
    struct stage *s = &stage[k];
    take_states(stage, k);
    for (int i = 0; i < s->graph->inputs.n; i++) {
        if (s->role[i] != ROLE_CONSTANT || s->given[i].data)
            continue;
        if (!by_name(a, stage, k, s->graph->inputs.at[i]->name, &s->given[i]))
            by_type(a, stage, k, session_input_type(s->session, i), &s->given[i]);
    }
}
