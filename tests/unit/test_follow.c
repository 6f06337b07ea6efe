/* A stage that follows texts made by others: its next tokens equal those of a stage that reads all texts from the start, whatever it read
 * before. */
#include "decode/small/small.h"
#include "tests/unit/main.h"

enum { ROOM = 160, ROUNDS = 60 };

struct follower {
    struct arena *arena;
    struct stage stage;
    struct follow follow;
};

static struct follower *follower_new(struct arena *a, struct comm *comm, const char *path)
{
    struct follower *f = NEW(a, struct follower);
    struct job_options o = job_defaults();
    VEC_PUSH(a, &o.paths.text, path);
    f->stage = (struct stage){.path = path, .number = 1};
    stage_load(a, comm, &o, &f->stage);
    roles_find(a, comm, &f->stage, 1, &o);
    positions_find(a, comm, &o, &f->stage);
    stage_prepare(a, comm, &o, 1, &f->stage, 0);
    stage_place_given(a, &f->stage);
    f->follow = follow_new(&f->stage);
    return f;
}

static void follower_end(struct follower *f)
{
    follow_end(&f->follow);
    stage_free(&f->stage);
}

/* Rows of this many columns that go on as the last ones up to a column; some begin or end with padding before `prompt`. */
static void change(struct history *h, int64_t rows, int64_t from, int64_t to, int64_t prompt, bool behind, uint64_t *state)
{
    h->length = from;
    for (int64_t c = from; c < to; c++, h->length++)
        for (int64_t b = 0; b < rows; b++) {
            bool seen = c >= prompt || (behind ? c < prompt - b : c >= b);
            history_put(h, b, seen ? (int64_t)(splitmix((*state)++) % 250) : 0, seen);
        }
}

/* n tokens by the follower, and by a stage that reads the texts for the first time. */
static void compare(struct follower *f, struct follower *first, const struct history *h, int64_t n)
{
    int64_t got[4], want[4];
    follow_rows(&f->follow, h, n + 1);
    for (int64_t i = 0; i < n; i++) {
        struct history all = f->follow.own;
        follow_step(&f->follow, NULL, got);
        session_states_compose(first->stage.session, NULL, 0, 0, NULL);
        follow_end(&first->follow);
        first->follow.own = (struct history){0};
        first->follow.fed = 0;
        follow_rows(&first->follow, &all, 2);
        follow_step(&first->follow, NULL, want);
        for (int64_t b = 0; b < h->batch; b++)
            ck_assert_int_eq(got[b], want[b]);
    }
}

static void follow(const char *model, bool behind)
{
    struct arena *a = arena_new();
    struct comm *comm = comm_self();
    const char *srcdir = getenv("srcdir"), *path = path_join(a, srcdir ? srcdir : ".", model);
    struct follower *f = follower_new(a, comm, path), *first = follower_new(a, comm, path);
    ck_assert_int_eq(f->follow.behind, behind);
    uint64_t state = 3;
    for (int64_t rows = 1; rows <= 3; rows++) {
        struct history h = history_empty(a, rows, ROOM);
        int64_t prompt = rows == 1 ? 90 : 9, most = (f->stage.positions > 0 && f->stage.positions < ROOM ? f->stage.positions : ROOM) - 6;
        prompt = prompt < most - 10 ? prompt : most - 20;
        for (int round = 0; round < ROUNDS; round++) {
            bool other = round % 20 == 0, shorter = round % 7 == 3 && h.length > prompt + 2;
            int64_t from = other ? 0 : h.length - (int64_t)(splitmix(state++) % 4), to = from + 1 + (int64_t)(splitmix(state++) % 4);
            if (other)
                to = prompt + 1;
            if (to > most)
                continue;
            if (shorter)
                h.length -= 2;
            else
                change(&h, rows, from < prompt ? 0 : from, to > prompt ? to : prompt + 1, prompt, behind, &state);
            compare(f, first, &h, 1 + round % 3);
        }
    }
    follower_end(f);
    follower_end(first);
    comm->free(comm);
    arena_free(a);
}

START_TEST(pads_in_front)
{
    follow("samples/llama/model.onnx", false);
}
END_TEST

START_TEST(pads_behind)
{
    follow("samples/llama-genai-fp32/model.onnx", true);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("follow");
    TCase *c = unit_case(suite, "follow", NULL, NULL);
    tcase_add_test(c, pads_in_front);
    tcase_add_test(c, pads_behind);
    return unit_run(suite);
}
