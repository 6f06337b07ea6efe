/* replay: what drafted tokens are worth:  replay MODEL.onnx TOKENS K [ROUNDS]
 *
 * Decodes tokens greedily after a made-up prompt, by steps. Then the same text again, at most K tokens of it drafted for each run: as they
 * were, or wrong, so that the model keeps 0, 50 or 90 % of them. Every text must equal the first one. Prints the tokens per run, and the
 * speed relative to steps: the best of interleaved rounds. One rank, one thread. */
#include "decode/decode.h"
#include "decode/draft/draft.h"

#include <stdlib.h>
#include <string.h>

enum { PROMPT = 32, KINDS = 4 };
static const double share[KINDS] = {-1, 0, 0.5, 0.9}; /* of drafted tokens that are right; -1: none is drafted */

struct replay {
    const char *path;
    int64_t n, k, rounds;
    struct arena *arena;
    struct comm *comm;
    struct stage stage;
    int64_t *text; /* tokens that steps made */
    double best[KINDS];
    int64_t runs[KINDS];
};

static void load(struct replay *r)
{
    struct job_options o = job_defaults();
    VEC_PUSH(r->arena, &o.paths.text, r->path);
    r->stage = (struct stage){.path = r->path, .number = 1};
    stage_load(r->arena, r->comm, &o, &r->stage);
    roles_find(r->arena, r->comm, &r->stage, 1, &o);
    positions_find(r->arena, r->comm, &o, &r->stage);
    stage_prepare(r->arena, r->comm, &o, 1, &r->stage, 0);
    stage_place_given(r->arena, &r->stage);
}

/* The next tokens, each correct with this probability. */
static void draft(const struct replay *r, double right, int64_t made, int64_t k, int64_t *to)
{
    for (int64_t i = 0; i < k; i++) {
        double chance = (double)(splitmix((uint64_t)(made + i) * 2654435761u) >> 11) * 0x1p-53;
        to[i] = r->text[made + i] ^ (chance >= right);
    }
}

/* The seconds of all tokens but the first; the text is written, or compared. */
static double decode(struct replay *r, int kind)
{
    struct arena *tmp = arena_new();
    struct stage *s = &r->stage;
    struct history h = history_empty(tmp, 1, PROMPT + r->n + 1);
    struct draft_pace pace = draft_pace_new(r->k, 0);
    struct session_collective count = {.name = "next tokens", .op = "AllGather"};
    int64_t made = 0, drafted[DRAFT_MOST], next[DRAFT_MOST + 1];
    double start = 0;
    session_states_compose(s->session, NULL, 0, 0, NULL);
    for (; h.length < PROMPT; h.length++)
        history_put(&h, 0, (13 + 7919 * h.length) % 251, true);
    h.scored = r->k + 1;
    history_reserve(tmp, &h, s);
    h.scored = 1;
    for (r->runs[kind] = 0; made < r->n; r->runs[kind]++) {
        int64_t k = share[kind] < 0 || made == 0 ? 0 : draft_pace_next(&pace), kept = 0;
        k = k < r->n - made - 1 ? k : r->n - made - 1;
        draft(r, share[kind], made, k, drafted);
        draft_run(s, &h, made ? h.length - 1 : 0, NULL, k, drafted, next, &count);
        while (kept < k && next[kept] == drafted[kept])
            kept++;
        for (int64_t i = 0; i <= kept; i++, made++) {
            history_add(&h, &next[i]);
            if (kind && r->text[made] != next[i])
                fail("token %lld of the text is another one", (long long)made);
            r->text[made] = next[i];
        }
        draft_pace_note(&pace, k, kept);
        if (kept < k)
            session_states_cut(s->session, h.length - 1);
        if (start <= 0)
            start = clock_seconds();
    }
    arena_free(tmp);
    return clock_seconds() - start;
}

static void measure(struct comm *comm, void *data)
{
    struct replay *r = data;
    r->comm = comm;
    load(r);
    r->text = NEWN(r->arena, int64_t, r->n);
    for (int64_t round = 0; round < r->rounds; round++)
        for (int kind = 0; kind < KINDS; kind++) {
            double seconds = decode(r, kind);
            if (round == 0 || seconds < r->best[kind])
                r->best[kind] = seconds;
        }
    printf("steps: %.1f tokens/s\n", (double)(r->n - 1) / r->best[0]);
    for (int kind = 1; kind < KINDS; kind++)
        printf("%2.0f %% right: %.2f tokens a run, %.2f times the tokens/s of steps\n", 100 * share[kind],
               (double)(r->n - 1) / (double)(r->runs[kind] - 1), r->best[0] / r->best[kind]);
    session_free(r->stage.session);
}

int main(int argc, char **argv)
{
    struct replay r = {.arena = arena_new()};
    diag_setup("replay", -1);
    if (argc < 4 || argc > 5)
        fail_usage("replay MODEL.onnx TOKENS K [ROUNDS]");
    r.path = argv[1];
    r.n = number_read("TOKENS", argv[2], 2, 100000);
    r.k = number_read("K", argv[3], 1, DRAFT_MOST);
    r.rounds = argc > 4 ? number_read("ROUNDS", argv[4], 1, 1000) : 3;
    comm_local_run(1, measure, &r);
    arena_free(r.arena);
    return 0;
}
