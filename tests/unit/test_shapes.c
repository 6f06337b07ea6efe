/* Shapes: types and canonical form of source graphs, factor rules of Reshape and its like, the lowering of Gather. */
#include "ir/text/text.h"
#include "op/infer/infer.h"
#include "op/lower/lower.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "op/table/table.h"
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

static void parse(const char *body)
{
    const char *text = arena_printf(arena, "graph g { import \"\" \"23\"\n%s\n}", body);
    graph = graph_parse(arena, alg_new(arena), text, "test", op_find);
}

static void shapes(const char *body)
{
    parse(body);
    struct compile c = {.arena = arena, .graph = graph};
    pass_shapes(&c);
}

static void canon(const char *body)
{
    shapes(body);
    graph->properties |= PROP_TYPED;
    struct compile c = {.arena = arena, .graph = graph};
    pass_canon(&c);
    graph_verify(graph, "canon");
}

static const char *type_of(const char *name)
{
    struct value *v = graph_find(graph, name);
    ck_assert_msg(v != NULL, "no value %s", name);
    return type_str(arena, &v->type);
}

static const char *made_by(const char *name)
{
    struct value *v = graph_find(graph, name);
    return v && v->producer ? v->producer->optype : "nothing";
}

static const char *rule_text(const char *name)
{
    struct value *v = graph_find(graph, name);
    struct rule *rule = rule_of(graph, v->producer);
    return rule ? rule_str(arena, rule) : "none";
}

#define ck_rule(name, expected) ck_assert_msg(strncmp(rule_text(name), expected, strlen(expected)) == 0, "%s", rule_text(name))

/* ---- types ----------------------------------------------------------------------------------------------------------------- */

START_TEST(range_of_real_bounds)
{
    shapes("dim B >= 1 input x: f32[B, 3]  const zero: f32[] = [0]  const one: f32[] = [1]  const end: f32[] = [2]  const step: "
           "f32[] = [0.75]\n"
           "const at: i64[] = [0] node a: n: ? = Shape(x) node b: m: ? = Gather(n, at) node c: l: ? = Cast(m) {to = 1}\n"
           "node d: y: ? = Range(zero, l, one) node e: z: ? = Range(one, end, step) output y output z");
    ck_assert_str_eq(type_of("y"), "f32[B]");
    ck_assert_str_eq(type_of("z"), "f32[2]");
}
END_TEST

/* As torch's exporter writes arange: its start and step are real numbers made whole. */
START_TEST(range_of_cast_bounds)
{
    canon("input x: f32[S]  const zero: f32[] = [0]  const one: f32[] = [1]  const i: i64[] = [0]  node h: s: ? = Shape(x)  node "
          "g: n: ? = Gather(s, i)\n"
          "node a: from: ? = CastLike(zero, n)  node b: by: ? = Cast(one) {to = 7}  node r: y: ? = Range(from, n, by)  output y");
    ck_assert_str_eq(type_of("y"), "i64[S]");
    ck_assert_int_eq(graph_find(graph, "y")->producer->nin, 0);
}
END_TEST

START_TEST(reshape_copies_and_divides)
{
    shapes("input x: f32[B, S, 64]  const t: i64[4] = [0, 0, -1, 16]\n"
           "node r: y: ? = Reshape(x, t)  output y");
    ck_assert_str_eq(type_of("y"), "f32[B, S, 4, 16]");
    ck_assert_int_eq(graph->nodes.at[0]->nin, 1);
}
END_TEST

START_TEST(shape_arithmetic_disappears)
{
    shapes("input x: f32[B, S, 64]  const one: i64[] = [1]  const zero: i64[1] = [0]  const w: i64[1] = [-1]\n"
           "node a: s: ? = Shape(x)  node b: n: ? = Gather(s, one)  node c: u: ? = Unsqueeze(n, zero)\n"
           "node d: t: ? = Concat(w, u) {axis = 0}  node e: f: ? = Slice(s, zero, u)\n"
           "node r: y: ? = Reshape(x, t)  output y");
    ck_assert_int_eq(graph->nodes.n, 1);
    ck_assert_str_eq(type_of("y"), "f32[64*B, S]");
}
END_TEST

START_TEST(expand_idiom_keeps_the_target)
{
    shapes("input m: f32[B, 1, 1, T]  input x: f32[B, S]  const none: i64[1] = [-1]  const k: i64[] = [-1]\n"
           "node a: s: ? = Shape(x)  node b: t: ? = Concat(s, none, none) {axis = 0}\n"
           "node c: n: ? = Shape(t)  node d: o: ? = ConstantOfShape(n) {value = i64[1] [1]}\n"
           "node e: q: ? = Mul(o, k)  node f: eq: ? = Equal(t, q)  node h: w: ? = Where(eq, o, t)\n"
           "node i: y: ? = Expand(m, w)  output y");
    ck_assert_str_eq(made_by("y"), "Expand");
    ck_assert_int_eq(graph->nodes.n, 1);
}
END_TEST

START_TEST(slice_clamps)
{
    shapes("input x: f32[S, 8]  const a: i64[2] = [-3, 1]  const b: i64[2] = [9223372036854775807, -1]  const ax: i64[2] = [1, 0]\n"
           "const st: i64[2] = [2, 1]  node s: y: ? = Slice(x, a, b, ax, st)\n"
           "const ra: i64[1] = [-1]  const rb: i64[1] = [-9223372036854775808]  const rx: i64[1] = [1]  const rs: i64[1] = [-1]\n"
           "node r: z: ? = Slice(x, ra, rb, rx, rs)  output y output z");
    ck_assert_str_eq(type_of("z"), "f32[S, 8]");
    const struct dim **end;
    ck_assert_int_eq(attr_dims(graph_find(graph, "z")->producer, "ends", &end), 1);
    ck_assert(dim_equals(end[0], -9));
    ck_assert_str_eq(type_of("y") + strlen(type_of("y")) - 4, ", 2]");
}
END_TEST

START_TEST(meeting_symbols_are_equal)
{
    shapes("input x: f32[B, S]  input y: f32[B, T]  node a: z: ? = Concat(x, y) {axis = 0}  output z");
    const struct equation *e;
    ck_assert_int_eq(alg_equations(graph->alg, &e), 1);
    ck_assert(graph_find(graph, "x")->type.dim[1] == graph_find(graph, "y")->type.dim[1]);
}
END_TEST

START_TEST(past_may_be_empty)
{
    shapes("input past: f32[B, 4, P, 16]  input x: f32[B, 4, S, 16]\n"
           "node c: now: ? = Concat(past, x) {axis = -2}  output now");
    ck_assert_int_eq(graph->states.n, 1);
    ck_assert_int_eq(graph->states.at[0].dim, 2);
    ck_assert_int_eq(graph_find(graph, "past")->type.dim[2]->lo, 0);
}
END_TEST

START_TEST(sizes_used_as_data)
{
    shapes("input x: i64[B, S]  const one: i64[] = [1]  node a: s: ? = Shape(x)  node b: n: ? = Gather(s, one)\n"
           "node c: y: ? = Mul(x, n)  node d: z: ? = Add(x, n)  output y output z");
    ck_assert_int_eq(graph->nodes.n, 3);
    ck_assert_str_eq(graph->nodes.at[0]->optype, "Dims");
    ck_assert(graph_find(graph, "y")->producer->in[1] == graph_find(graph, "z")->producer->in[1]);
}
END_TEST

START_TEST(unknown_shape_stays_data)
{
    shapes("input x: f32[B, S]  input t: i64[2]  node r: y: ? = Reshape(x, t)  output y");
    ck_assert_int_eq(graph->nodes.at[0]->nin, 2);
    ck_assert_int_eq(graph_find(graph, "y")->type.rank, 2);
    ck_assert_str_eq(rule_text("y"), "none");
}
END_TEST

START_TEST(wrong_sizes_are_refused)
{
    shapes("input x: f32[3, 5]  const t: i64[2] = [4, 4]  node r: y: ? = Reshape(x, t)  output y");
}
END_TEST

/* ---- rules ------------------------------------------------------------------------------------------------------------------ */

static void reshape(const char *in, const char *out)
{
    struct type type;
    const char *error;
    parse(arena_printf(arena, "input x: %s", in));
    ck_assert(type_parse(graph->alg, out, 1, &type, &error));
    struct value *x = graph_find(graph, "x");
    struct node *node = graph_node(graph, op_find("", "Reshape"), "r", 1, &x, 1);
    node_output(graph, node, 0, graph_value(graph, "y", &type));
    graph_append(graph, node);
    op_infer(graph, node);
}

START_TEST(reshape_factors)
{
    reshape("f32[B, S, 64]", "f32[B, S, 4, 16]");
    ck_rule("y", "(f0 f1 (f2 f3)) -> (f0 f1 f2 f3)  f2: heads");
    reshape("f32[B, S, 192]", "f32[B, S, 3, 4, 16]");
    ck_rule("y", "(f0 f1 (f2 f3 f4)) -> (f0 f1 f2 f3 f4)  f2: heads  f3: heads");
    reshape("f32[B, 4, S, 16]", "f32[4*B, S, 16]");
    ck_rule("y", "(f0 f1 f2 f3) -> ((f0 f1) f2 f3)");
    reshape("f32[B, 1, S, 64]", "f32[B*S, 1, 64]");
    ck_rule("y", "(f0 1 f1 f2) -> ((f0 f1) 1 f2)");
    reshape("f32[B, 4, 6]", "f32[B, 6, 4]");
    ck_rule("y", "(f0 !f1 !f3) -> (f0 !f2 !f4)");
}
END_TEST

/* ---- canon ------------------------------------------------------------------------------------------------------------------ */

START_TEST(slices_become_a_split)
{
    canon("input x: f32[B, 8]  const a: i64[1] = [0]  const b: i64[1] = [4]  const c: i64[1] = [8]  const ax: i64[1] = [1]\n"
          "node p: y: ? = Slice(x, a, b, ax)  node q: z: ? = Slice(x, b, c, ax)  output y output z");
    ck_assert_int_eq(graph->nodes.n, 1);
    ck_assert_str_eq(made_by("z"), "Split");
    ck_rule("z", "(d0 part0|part1) -> (d0 part0)(d0 part1)");
}
END_TEST

START_TEST(repeated_heads)
{
    canon("input x: f32[B, 2, S, 16]  const ax: i64[1] = [2]  const g: i64[5] = [1, 1, 3, 1, 1]  const t: i64[4] = [0, 6, -1, 16]\n"
          "node u: a: ? = Unsqueeze(x, ax)  node e: b: ? = Expand(a, g)  node r: y: ? = Reshape(b, t)  output y");
    ck_assert_int_eq(graph->nodes.n, 1);
    ck_assert_str_eq(made_by("y"), "Repeat");
    ck_assert_str_eq(type_of("y"), "f32[B, 6, S, 16]");
}
END_TEST

START_TEST(copies_of_one)
{
    canon("input x: f32[1, S, 3]  input z: f32[B, 2]  const i: i64[] = [0]  const ones: i64[2] = [1, 1]  const two: i64[3] = [1, 1, 2]\n"
          "const ax: i64[1] = [0]  node s: s: ? = Shape(z)  node b: b: ? = Gather(s, i)  node u: u: ? = Unsqueeze(b, ax)\n"
          "node c: n: ? = Concat(u, ones) {axis = 0}  node t: y: ? = Tile(x, n)  node v: w: ? = Tile(x, two)  output y  output w");
    ck_assert_str_eq(made_by("y"), "Expand");
    ck_assert_str_eq(type_of("y"), "f32[B, S, 3]");
    ck_assert_str_eq(made_by("w"), "Tile");
}
END_TEST

START_TEST(flattened_gemm)
{
    canon("input x: f32[B, S, 4]  input w: f32[4, 6]  input c: f32[6]  const f: i64[2] = [-1, 4]\n"
          "node a: s: ? = Shape(x)  const i: i64[2] = [0, 1]  const n: i64[1] = [6]  node b: h: ? = Gather(s, i)\n"
          "node d: t: ? = Concat(h, n) {axis = 0}  node e: y: ? = Reshape(x, f)  node g: z: ? = Gemm(y, w, c)\n"
          "node r: o: ? = Reshape(z, t)  output o");
    ck_assert_int_eq(graph->nodes.n, 2);
    ck_assert_str_eq(made_by("o"), "Add");
}
END_TEST

START_TEST(rms_norm)
{
    canon("input x: f32[B, 4]  input w: f32[4]  const two: f32[] = [2]  const eps: f32[] = [0.5]  const ax: i64[1] = [-1]\n"
          "node a: p: ? = Pow(x, two)  node b: m: ? = ReduceMean(p, ax)  node c: s: ? = Add(m, eps)  node d: r: ? = Sqrt(s)\n"
          "node e: q: ? = Div(x, r)  node f: y: ? = Mul(w, q)  output y");
    ck_assert_int_eq(graph->nodes.n, 1);
    ck_assert_str_eq(made_by("y"), "RMSNormalization");
}
END_TEST

START_TEST(equal_nodes_merge)
{
    canon("input x: f32[B, 4]  input y: f32[B, 4]  node a: p: ? = Add(x, y)  node b: q: ? = Add(y, x)\n"
          "node c: z: ? = Mul(p, q)  output z");
    ck_assert_int_eq(graph->nodes.n, 2);
}
END_TEST

START_TEST(a_table_of_sizes_is_put_together)
{
    shapes("input x: f32[B, S]  const o: i64[1] = [0]  const p: i64[1] = [1]  node h: s: ? = Shape(x)  node u: r: ? = Unsqueeze(s, o)  "
           "node v: c: ? = Unsqueeze(s, p)  node a: t: ? = Concat(r, r) {axis = 0}  node b: w: ? = Concat(c, c) {axis = 1}  "
           "const f: i64[1] = [4]  node k: y: ? = Reshape(t, f)  node l: z: ? = Reshape(w, f)  output y  output z");
    const struct dims_value *rows = graph_find(graph, "y")->dims, *columns = graph_find(graph, "z")->dims;
    ck_assert(rows && columns && rows->n == 4 && columns->n == 4);
    ck_assert(rows->at[1] == rows->at[3] && rows->at[0] == rows->at[2] && rows->at[0] != rows->at[1]);
    ck_assert(columns->at[0] == columns->at[1] && columns->at[2] == columns->at[3] && columns->at[0] == rows->at[0]);
}
END_TEST

START_TEST(a_size_keeps_what_decides_it)
{
    canon("input x: f32[4, 3]  node a: v: ? = NonZero(x)  node b: y: ? = Shape(v)  node c: z: ? = Relu(x)  node d: w: ? = "
          "NonZero(z)  output y");
    ck_assert_int_eq(graph->nodes.n, 2);
    ck_assert_str_eq(made_by("v"), "NonZero");
}
END_TEST

/* ---- lowering ---------------------------------------------------------------------------------------------------------------- */

static void split_table(int ranks)
{
    shapes("input i: i64[B, S]  const t: f32[3, 2] = [1, 2, 3, 4, 5, 6]  node a: y: ? = Gather(t, i)  output y");
    struct value *table = graph_find(graph, "t");
    table->place = placement_split(0, split_even(graph->alg, ranks, dim_int(graph->alg, 3)));
    struct lowering l = {.g = graph, .node = graph->nodes.at[0], .name = "a"};
    lower_gather(&l);
    graph->nodes.n = 0;
    for (int i = 0; i < l.nodes.n; i++)
        graph_append(graph, l.nodes.at[i]);
    graph_sort(graph);
}

START_TEST(gather_is_lowered)
{
    split_table(2);
    ck_assert_int_eq(graph->nodes.n, 4);
    ck_assert_str_eq(made_by("y"), "Where");
    ck_assert_str_eq(type_of("y"), "f32[B, S, 2]");
}
END_TEST

START_TEST(empty_ranks_look_something_up)
{
    split_table(4);
    ck_assert_int_eq(graph->nodes.n, 6);
    const struct value *table = graph_find(graph, "y")->producer->in[1]->producer->in[0];
    ck_assert_str_eq(table->producer->optype, "Concat");
    ck_assert(split_extent(graph->alg, table->place.split, 3) == dim_int(graph->alg, 1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("shapes");
    TCase *tc = unit_case(suite, "shapes", setup, teardown);
    tcase_add_test(tc, range_of_real_bounds);
    tcase_add_test(tc, range_of_cast_bounds);
    tcase_add_test(tc, reshape_copies_and_divides);
    tcase_add_test(tc, shape_arithmetic_disappears);
    tcase_add_test(tc, expand_idiom_keeps_the_target);
    tcase_add_test(tc, slice_clamps);
    tcase_add_test(tc, meeting_symbols_are_equal);
    tcase_add_test(tc, past_may_be_empty);
    tcase_add_test(tc, sizes_used_as_data);
    tcase_add_test(tc, unknown_shape_stays_data);
    tcase_add_exit_test(tc, wrong_sizes_are_refused, 1);
    tcase_add_test(tc, reshape_factors);
    tcase_add_test(tc, slices_become_a_split);
    tcase_add_test(tc, repeated_heads);
    tcase_add_test(tc, copies_of_one);
    tcase_add_test(tc, flattened_gemm);
    tcase_add_test(tc, rms_norm);
    tcase_add_test(tc, equal_nodes_merge);
    tcase_add_test(tc, a_table_of_sizes_is_put_together);
    tcase_add_test(tc, a_size_keeps_what_decides_it);
    tcase_add_test(tc, gather_is_lowered);
    tcase_add_test(tc, empty_ranks_look_something_up);
    return unit_run(suite);
}
