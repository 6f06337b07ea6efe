/* Rows: which symbols are said to count independent rows, and why others do not. */
#include "ir/rank_meta.h"
#include "ir/text/text.h"
#include "op/analysis/analysis.h"
#include "op/op.h"
#include "passes/pass.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static struct graph *graph;

static void setup(void)
{
    arena = arena_new();
}

static void teardown(void)
{
    arena_free(arena);
}

static void given(const char *body)
{
    const char *text = arena_printf(arena, "graph g { import \"\" \"23\"\n%s\n}", body);
    graph = graph_parse(arena, alg_new(arena), text, "test", op_find);
    struct compile c = {.arena = arena, .graph = graph};
    pass_shapes(&c);
    graph->properties |= PROP_TYPED;
    pass_canon(&c);
    op_note_rows(graph);
}

static const char *said(const char *symbol)
{
    const char *found, *why;
    for (int i = 0; rank_meta_rows(graph, i, &found, &why); i++)
        if (strcmp(found, symbol) == 0)
            return why ? why : "independent";
    return "nothing";
}

/* The text that is said of a symbol has this in it. */
static void says(const char *symbol, const char *what)
{
    ck_assert_msg(strstr(said(symbol), what) != NULL, "%s: %s, expected %s", symbol, said(symbol), what);
}

static void is_independent(const char *symbol)
{
    ck_assert_str_eq(said(symbol), "independent");
}

START_TEST(rows_of_a_product)
{
    given("input x: f32[B, S, 4] input k: f32[B, 4, T] node n: y: ? = MatMul(x, k) node m: z: ? = Softmax(y) output z");
    is_independent("B");
    is_independent("S");
    says("T", "node 'm' (Softmax) mixes its rows");
}
END_TEST

START_TEST(rows_within_a_product_of_sizes)
{
    given("input x: f32[B, S, 4] const s: i64[2] = [-1, 4] const one: i64[1] = [0] const two: i64[1] = [2] node n: r: ? = "
          "Reshape(x, s) node m: a: ? = Relu(r) "
          "node shape: d: ? = Shape(x) node back: b: ? = Reshape(a, d) node half: h: ? = Slice(b, one, two, two) "
          "output h");
    is_independent("B");
    is_independent("S");
}
END_TEST

START_TEST(reduced_rows)
{
    given("input x: f32[B, 4] node n: y: ? = ReduceMax(x) {keepdims = 0} output y");
    says("B", "node 'n' (ReduceMax) mixes its rows");
    given("input x: f32[B, 4] input w: f32[5, B] node n: y: ? = MatMul(w, x) output y");
    says("B", "node 'n' (MatMul) mixes its rows");
}
END_TEST

START_TEST(ends_without_rows_of_their_own)
{
    given("input x: f32[B, B] node n: y: ? = Relu(x) output y");
    says("B", "input 'x' (f32[B, B]) has no dimension that is just it");
    given("input x: f32[B, S] const s: i64[1] = [-1] node n: y: ? = Reshape(x, s) output y");
    says("B", "output 'y' (f32[B*S]) has no dimension that is just it");
    given("input x: f32[B] input z: f32[C] node n: y: ? = Relu(z) output y");
    says("B", "no output has it");
    is_independent("C");
}
END_TEST

START_TEST(rows_that_meet)
{
    given("input x: f32[B, 4] node n: y: ? = Concat(x, x) {axis = 0} output y");
    says("B", "node 'n' (Concat) mixes its rows");
    given("input x: f32[B, 4] input z: f32[C, 4] node n: y: ? = Add(x, z) output y");
    ck_assert(strcmp(said("B"), "independent") == 0 || strcmp(said("C"), "independent") == 0);
    given("input x: f32[B, 4] input z: f32[B, 4] node t: w: ? = Transpose(z) node n: y: ? = MatMul(x, w) output y");
    says("B", "node 'n' (MatMul) mixes its rows");
}
END_TEST

START_TEST(sizes_as_numbers)
{
    given("input x: f32[B, 4] node s: s: ? = Shape(x) {start = 0, end = 1} node c: f: ? = Cast(s) {to = 1} node n: y: ? = Mul(x, "
          "f) output y");
    says("B", "(Dims) depends on how many rows there are");
}
END_TEST

/* ---- numbers of rows ------------------------------------------------------------------------------------------------------------- */

#define ROWS                                                                                                                              \
    "input x: f32[B, T] const zero: i64[] = [0] const one: i64[] = [1] node shape: shape: ? = Shape(x) const at0: i64[] = [0] "           \
    "const at1: i64[] = [1] node n0: b: ? = Gather(shape, at0) node n1: t: ? = Gather(shape, at1) node rows: r: ? = Range(zero, b, one) " \
    "node columns: c: ? = Range(zero, t, one) const axis1: i64[1] = [1] node wide: rw: ? = Unsqueeze(r, axis1) "
#define FLAT "const flat: i64[1] = [-1] node flat: f: ? = Reshape(x, flat) node start: s: ? = Mul(rw, t) node index: i: ? = Add(s, c) "
#define TUPLES                                                                                         \
    "node grid: rg: ? = Expand(rw, shape) node cg: cg: ? = Expand(c, shape) const last: i64[1] = [2] " \
    "node ru: ru: ? = Unsqueeze(rg, last) "                                                            \
    "node cu: cu: ? = Unsqueeze(cg, last) "

START_TEST(each_row_looks_itself_up)
{
    given(ROWS FLAT "node find: y: ? = Gather(f, i) output y");
    is_independent("B");
    given(ROWS TUPLES "node tuples: i: ? = Concat(ru, cu) {axis = 2} node find: y: ? = GatherND(x, i) output y");
    is_independent("B");
    given(ROWS TUPLES
          "node tuples: i: ? = Concat(ru, cu) {axis = 2} node act: a: ? = Relu(x) node put: y: ? = ScatterND(x, i, a) output y");
    is_independent("B");
}
END_TEST

START_TEST(a_row_looks_another_up)
{
    given(ROWS FLAT "node beyond: j: ? = Add(i, one) node find: y: ? = Gather(f, j) output y");
    says("B", "node 'find' (Gather) mixes its rows");
    given(ROWS FLAT "node before: j: ? = Sub(i, one) node find: y: ? = Gather(f, j) output y");
    says("B", "node 'find' (Gather) mixes its rows");
    given(ROWS FLAT "node twice: j: ? = Add(i, s) node find: y: ? = Gather(f, j) output y");
    says("B", "node 'find' (Gather) mixes its rows");
    given(ROWS "node next: j: ? = Add(r, one) node find: y: ? = Gather(x, j) output y");
    says("B", "node 'find' (Gather) mixes its rows");
    given(ROWS TUPLES "node tuples: i: ? = Concat(ru, ru) {axis = 2} node find: y: ? = GatherND(x, i) output y");
    says("B", "node 'find' (GatherND) mixes its rows");
    given(ROWS TUPLES "node tuples: i: ? = Concat(cu, ru) {axis = 2} node find: y: ? = GatherND(x, i) output y");
    says("B", "node 'find' (GatherND) mixes its rows");
}
END_TEST

START_TEST(numbers_of_rows_as_values)
{
    given(ROWS "node n: y: ? = Cast(rw) {to = 1} node m: z: ? = Add(x, y) output z");
    says("B", "node 'n' (Cast) mixes its rows");
    given(ROWS "node n: y: ? = Less(rw, one) output y");
    says("B", "node 'n' (Less) mixes its rows");
    given(ROWS "const table: f32[9, 2] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9] node n: y: ? = Gather(table, r) output y");
    says("B", "node 'n' (Gather) mixes its rows");
    given(ROWS "node n: y: ? = Identity(rw) node m: z: ? = Add(y, one) output z");
    says("B", "output 'z' holds numbers of rows");
    given(ROWS "node n: y: ? = Sub(rw, rw) output y");
    is_independent("B");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rows");
    TCase *tc = unit_case(suite, "rows", setup, teardown);
    tcase_add_test(tc, rows_of_a_product);
    tcase_add_test(tc, rows_within_a_product_of_sizes);
    tcase_add_test(tc, reduced_rows);
    tcase_add_test(tc, ends_without_rows_of_their_own);
    tcase_add_test(tc, rows_that_meet);
    tcase_add_test(tc, sizes_as_numbers);
    tcase_add_test(tc, each_row_looks_itself_up);
    tcase_add_test(tc, a_row_looks_another_up);
    tcase_add_test(tc, numbers_of_rows_as_values);
    return unit_run(suite);
}
