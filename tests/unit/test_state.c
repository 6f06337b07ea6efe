/* State of a session: that a present lies where its past does and stays there, that ops which can't read memory with room get the right
 * elements, that a present of another form is copied, and that a second graph takes what the first one left. */
#include "ir/text/text.h"
#include "op/op.h"
#include "run/run.h"
#include "tests/unit/main.h"

#include <string.h>

enum { HEADS = 2, SIZE = 3, STEPS = 40 };
static struct arena *a;
static struct comm *comm;
static void setup(void)
{
    a = arena_new();
    comm = comm_self();
}
static void teardown(void)
{
    comm->free(comm);
    arena_free(a);
}

/* A graph with the inputs new and past, and what nodes makes of them. */
static struct session *session_of(const char *nodes)
{
    const char *text = arena_printf(
        a, "graph g { opset 23 dim S >= 1 dim P >= 0 input new: f32[1, 2, S, 3] input past: f32[1, 2, P, 3] %s }", nodes);
    return session_new(graph_parse(a, alg_new(a), text, "test", op_find), comm, (struct session_options){.threads = 1, .keep_state = true});
}

static const char pair[] = "output present state past -> present dim 2";
static const char appended[] = "node c: present: f32[1, 2, P + S, 3] = Concat(past, new) {axis = 2}";

/* Element of row r: unlike any other one. */
static float element(int64_t head, int64_t row, int64_t i)
{
    return (float)(1000 * row + 10 * head + i);
}

static struct tensor rows(int64_t first, int64_t n)
{
    struct tensor t = {.dtype = DT_F32, .rank = 4, .dim = {1, HEADS, n, SIZE}};
    float *x = t.data = arena_alloc(a, tensor_bytes(&t));
    for (int64_t k = 0; k < tensor_elements(&t); k++)
        x[k] = element(k / SIZE / n, first + k / SIZE % n, k % SIZE);
    return t;
}

static void check_rows(struct session *s, int output, const struct tensor *piece, int64_t n)
{
    struct tensor got = session_gather(s, a, output, piece);
    ck_assert_int_eq(got.dim[2], n);
    ck_assert_mem_eq(got.data, rows(0, n).data, tensor_bytes(&got));
}

static struct tensor step(struct session *s, int64_t first, int64_t n, struct tensor *out)
{
    struct tensor in[2] = {rows(first, n), {.dtype = DT_F32}};
    session_run(s, in, out);
    return out[0];
}

START_TEST(appends_in_place)
{
    struct session *s = session_of(arena_printf(a, "%s %s", appended, pair));
    struct tensor out[1];
    int moves = 0, written = 3;
    void *last = step(s, 0, 3, out).data;
    for (int i = 0; i < STEPS; i++, written++) {
        const void *now = step(s, written, 1, out).data;
        moves += now != last;
        last = out[0].data;
        check_rows(s, 0, out, written + 1);
    }
    ck_assert_int_ge(moves, 1);
    ck_assert_int_le(moves, 2);
    ck_assert_int_lt(session_stats(s)->state_moved, 2 * HEADS * STEPS * SIZE * (int64_t)sizeof(float));
    session_free(s);
}
END_TEST

/* Relu and a view need dense operands, Slice does not. */
START_TEST(others_read_it)
{
    struct session *s = session_of(
        arena_printf(a,
                     "%s node r: y: f32[1, 2, P + S, 3] = Relu(present) node v: w: f32[2, P + S, 3] = Reshape(present) "
                     "node b: z: f32[1, 1, P + S, 3] = Slice(present) {starts = [1], ends = [2], axes = [1], steps = [1]} "
                     "%s output y output w output z",
                     appended, pair));
    struct tensor out[4];
    for (int i = 0; i < 3; i++) {
        step(s, 2 * i, 2, out);
        struct tensor want = rows(0, 2 * i + 2);
        check_rows(s, 0, &out[0], 2 * i + 2);
        check_rows(s, 1, &out[1], 2 * i + 2);
        ck_assert_mem_eq(out[2].data, want.data, tensor_bytes(&want));
        ck_assert_mem_eq(out[3].data, (char *)want.data + tensor_bytes(&want) / 2, tensor_bytes(&want) / 2);
    }
    session_free(s);
}
END_TEST

/* A past that something else reads, and new rows in front, are not appended in place. */
static const char *const copied[] = {
    "node c: present: f32[1, 2, P + S, 3] = Concat(past, new) {axis = 2} node r: y: f32[1, 2, P, 3] = Relu(past) output present "
    "output y state past -> present dim 2",
    "node n: m: f32[1, 2, P, 3] = Relu(past) node c: present: f32[1, 2, P + S, 3] = Concat(m, new) {axis = 2} output present "
    "state past -> present dim 2"};

START_TEST(copies_the_rest)
{
    struct session *s = session_of(copied[_i]);
    struct tensor out[2];
    for (int i = 0; i < 5; i++) {
        step(s, i, 1, out);
        check_rows(s, 0, out, i + 1);
    }
    ck_assert_int_eq(session_stats(s)->state_moved, (1 + 2 + 3 + 4 + 5) * HEADS * SIZE * (int64_t)sizeof(float));
    session_free(s);
}
END_TEST

START_TEST(taken_from_another)
{
    struct session *first = session_of("node r: left: f32[1, 2, S, 3] = Relu(new) output left"),
                   *s = session_of(arena_printf(a, "%s %s", appended, pair));
    struct tensor in[2] = {rows(0, 4), rows(0, 0)}, out[1];
    session_run(first, in, out);
    session_copy_state(s, 1, first, 0);
    session_free(first);
    for (int i = 4; i < 8; i++) {
        step(s, i, 1, out);
        check_rows(s, 0, out, i + 1);
    }
    session_free(s);
}
END_TEST

/* A given past is the content from then on. */
START_TEST(given)
{
    struct session *s = session_of(arena_printf(a, "%s %s", appended, pair));
    struct tensor in[2] = {rows(4, 1), rows(0, 4)}, out[1];
    step(s, 0, 2, out);
    session_run(s, in, out);
    check_rows(s, 0, out, 5);
    step(s, 5, 1, out);
    check_rows(s, 0, out, 6);
    session_free(s);
}
END_TEST

START_TEST(other_shape_fails)
{
    struct session *first = session_of(
        "node r: left: f32[1, 2, S, 3] = Relu(new) node f: flat: f32[1, 2, S, 3, 1] = Reshape(left) output flat");
    struct session *s = session_of(arena_printf(a, "%s %s", appended, pair));
    struct tensor in[2] = {rows(0, 4), rows(0, 0)}, out[1];
    session_run(first, in, out);
    session_copy_state(s, 1, first, 0);
}
END_TEST

/* ---- columns of a row ---- */

/* Two rows of a batch, whose head h of column c is element(h, c, i), and 5000 more in the second row. */
static struct tensor batch(int64_t first, int64_t n)
{
    struct tensor one = rows(first, n), two = one;
    two.dim[0] = 2;
    float *x = two.data = arena_alloc(a, tensor_bytes(&two));
    for (int64_t k = 0; k < tensor_elements(&two); k++)
        x[k] = ((const float *)one.data)[k % tensor_elements(&one)] + (k < tensor_elements(&one) ? 0 : 5000);
    return two;
}

static struct session *session_of_rows(const char *nodes)
{
    const char *text = arena_printf(
        a, "graph g { opset 23 dim B >= 1 dim S >= 1 dim P >= 0 input new: f32[B, 2, S, 3] input past: f32[B, 2, P, 3] %s }", nodes);
    return session_new(graph_parse(a, alg_new(a), text, "test", op_find), comm, (struct session_options){.threads = 1, .keep_state = true});
}

static const char row_pair[] =
    "node c: present: f32[B, 2, P + S, 3] = Concat(past, new) {axis = 2} output present state past -> present dim 2";

/* Columns of the second row become the first columns of a new row, which continues. */
START_TEST(columns_go_on)
{
    struct session *s = session_of_rows(row_pair);
    struct tensor in[2] = {batch(0, 9), {.dtype = DT_F32}}, out[1];
    session_run(s, in, out);
    ck_assert(!session_states_without_columns(s, a, "B"));
    const struct session_columns *c = session_columns_new(a, s, "B");
    ck_assert_int_eq(session_columns_bytes(c), HEADS * SIZE * (int64_t)sizeof(float));
    float kept[2][3 * HEADS * SIZE], guard = -1;
    kept[1][2 * HEADS * SIZE] = guard;
    session_columns_read(c, s, 1, 2, 3, kept[0]);
    session_columns_read(c, s, 1, 5, 2, kept[1]);
    ck_assert_mem_eq(&kept[1][2 * HEADS * SIZE], &guard, sizeof guard);
    session_columns_begin(c, s, 5);
    session_columns_write(c, s, 0, 3, kept[0]);
    session_columns_write(c, s, 3, 2, kept[1]);
    in[0] = rows(7, 1);
    for (int k = 0; k < HEADS * SIZE; k++)
        ((float *)in[0].data)[k] += 5000;
    session_run(s, in, out);
    struct tensor got = session_gather(s, a, 0, out), want = rows(2, 6);
    ck_assert_int_eq(got.dim[0], 1);
    ck_assert_int_eq(got.dim[2], 6);
    for (int64_t k = 0; k < tensor_elements(&want); k++)
        ((float *)want.data)[k] += 5000;
    ck_assert_mem_eq(got.data, want.data, tensor_bytes(&want));
    session_free(s);
}
END_TEST

/* A state that is changed, that keeps only its last columns, or that does not grow has no columns of its tokens. */
static const struct {
    const char *nodes, *why;
} without_columns[] = {
    {"node n: m: f32[B, 2, P, 3] = Relu(past) node c: present: f32[B, 2, P + S, 3] = Concat(m, new) {axis = 2} output present "
     "state past -> present dim 2",
     "its state 'past' is more than what is appended to it"},
    {"node c: all: f32[B, 2, P + S, 3] = Concat(past, new) {axis = 2} "
     "node l: present: f32[B, 2, P + S - max(-4 + P + S, 0), 3] = Slice(all) {starts = [-4], ends = [9223372036854775807], axes = [2], "
     "steps = [1]} "
     "output present state past -> present dim 2",
     "its state 'past' is more than what is appended to it"},
    {"node s: present: f32[B, 2, P, 3] = Relu(past) node y: y: f32[B, 2, S, 3] = Neg(new) output present output y "
     "state past -> present dim -1",
     "its state 'past' does not grow"}};

START_TEST(has_no_columns)
{
    struct session *s = session_of_rows(without_columns[_i].nodes);
    ck_assert_str_eq(session_states_without_columns(s, a, "B"), without_columns[_i].why);
    session_free(s);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("state");
    TCase *t = unit_case(suite, "state", setup, teardown);
    tcase_add_test(t, appends_in_place);
    tcase_add_test(t, others_read_it);
    tcase_add_loop_test(t, copies_the_rest, 0, 2);
    tcase_add_test(t, taken_from_another);
    tcase_add_test(t, given);
    tcase_add_exit_test(t, other_shape_fails, 1);
    tcase_add_test(t, columns_go_on);
    tcase_add_loop_test(t, has_no_columns, 0, 3);
    return unit_run(suite);
}
