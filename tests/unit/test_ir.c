/* The IR: the table of ops, text round trips, refusal of malformed texts, walks over the graph, constants, the verifier. */
#include "ir/ir.h"
#include "ir/text/text.h"
#include "op/op.h"
#include "passes/pass.h"
#include "tests/printed.h"
#include "tests/unit/main.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct arena *arena;
static struct alg *alg;

static void setup(void)
{
    arena = arena_new();
    alg = alg_new(arena);
}

static void teardown(void)
{
    arena_free(arena);
}

static struct graph *parsed(const char *text)
{
    struct graph *g = graph_parse(arena, alg_new(arena), text, "test", op_find);
    graph_verify(g, "parse");
    return g;
}

/* ---- the table --------------------------------------------------------------------------------------------------------- */

START_TEST(rows_are_found_by_domain_and_name)
{
    for (int i = 0; i < op_count(); i++)
        ck_assert_ptr_eq(op_find(op_at(i)->domain, op_at(i)->name), op_at(i));
    ck_assert_ptr_eq(op_find("ai.onnx", "MatMul"), op_find("", "MatMul"));
    ck_assert_ptr_null(op_find("", "NoSuchOp"));
    ck_assert_ptr_null(op_find("com.microsoft", "MatMul"));
    char name[1000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    ck_assert_ptr_null(op_find(name, "MatMul"));
}
END_TEST

START_TEST(row_texts_are_parsed)
{
    const struct op *slice = op_find("", "Slice"), *concat = op_find("", "Concat"), *gqa = op_find("com.microsoft", "GroupQueryAttention");
    ck_assert_int_eq(slice->nin, 5);
    ck_assert_int_eq(slice->min_in, 3);
    ck_assert_str_eq(slice->in[1].size, "@starts");
    ck_assert(slice->in[3].optional && !slice->in[2].optional);
    ck_assert_str_eq(slice->in[3].name, "axes");
    ck_assert(slice->attr[0].kind == ATTR_DIMS && !slice->attr[0].has_default);
    ck_assert_int_eq(concat->max_in, -1);
    ck_assert(concat->in[0].variadic && !concat->in[0].size);
    ck_assert_int_eq(gqa->min_in, 7);
    const struct op *norm = op_find("", "LayerNormalization");
    ck_assert(norm->attr[1].has_default && norm->attr[1].value.f == (double)1e-5f);
    ck_assert_int_eq(norm->attr[0].value.i, -1);
    ck_assert_int_eq(norm->max_out, 3);
    ck_assert_int_eq(norm->min_out, 1);
}
END_TEST

START_TEST(absent_functions_are_null)
{
    const struct op *reduce = op_find("tpc", "AllReduce");
    ck_assert(!reduce->rule && !reduce->kernel && !reduce->lower && reduce->infer);
    ck_assert_str_eq(reduce->kernel_name, "none");
    ck_assert(op_find("", "MatMul")->kernel != NULL);
}
END_TEST

/* ---- text -------------------------------------------------------------------------------------------------------------- */

static const char everything[] =
    "graph \"a graph\" {\n"
    "  ir 10  opset 23  properties 3  ranks 2\n"
    "  import \"\" \"17\"\n"
    "  import \"com.example\" \"1\"\n"
    "  meta \"key\" \"line\\none \\\"two\\\" \\x01\"\n"
    "  dim B >= 1\n"
    "  dim S >= 1\n"
    "  dim P >= 0\n"
    "  input ids: i64[B, S]\n"
    "  input \"past key\": f32[B, 4, P, 8]\n"
    "  const w: f32[64, 8] = file \"weights.bin\" 64 2048 origin \"the weight\"\n"
    "  const i: i64[3] = [-1, 0, 9223372036854775807]\n"
    "  const u: u64[1] = [18446744073709551615]\n"
    "  const b: bool[2] = [0, 1]\n"
    "  const f: f32[4] = [0.1, -0, inf, 1.4013e-45]\n"
    "  const d: f64[1] = [0.1]\n"
    "  const h: f16[2] = [1, -2]\n"
    "  const nan: f32[1] = hex \"0100c07f\"\n"
    "  const empty: f32[0] = []\n"
    "  node \"0/gather\": x: f32[B, S, 8] = Gather(w, ids)\n"
    "  node split: y: f32[B, S, 4], _, z: f32[B, S, 4] = Split(x) {axis = 2, split = [4, 0, 4]}\n"
    "  node sum: t: f32[B, S, 4] @P(sum) = Add(y, z)\n"
    "  node r: \"_\": f32[B*S, 4] = Reshape(t)\n"
    "  node g: a: f32[B*S, 4] = Gelu(\"_\") {approximate = \"tanh\\\\\"}\n"
    "  node n: m: f32[B*S, 4] = LayerNormalization(a, f) {epsilon = 1e-06}\n"
    "  node s: l: i64[2] dims [B*S, 4] = tpc::Dims() {dims = [B*S, 4]}\n"
    "  node c: k: f32[B, S] = ConstantOfShape() {value = f32[1] [1.5]}\n"
    "  node o: q: ? = com.example::\"Odd op\"(m, _, i, u, b, d, h, nan, empty) opset 1 {alpha: i = 3, \"x y\": raw = hex \"00ff\", "
    "fs: fs = [0.5, 1]}\n"
    "  output m\n"
    "  output l\n"
    "  output k\n"
    "  output q\n"
    "  state \"past key\" -> m dim 2\n"
    "  state \"past key\" -> _ dim -1\n"
    "}\n";

START_TEST(text_reads_back_as_itself)
{
    ck_assert_str_eq(graph_printed(arena, parsed(everything)), everything);
}
END_TEST

START_TEST(equations_hold_behind_them)
{
    struct graph *g = parsed("graph g { dim S >= 1 assume min(S, 64) = S \"bert's mask\" input x: f32[min(S, 64)]"
                             " node n: y: f32[S] = Relu(x) output y }");
    ck_assert_ptr_eq(g->inputs.at[0]->type.dim[0], g->outputs.at[0]->type.dim[0]);
    char *once = graph_printed(arena, g);
    ck_assert_ptr_nonnull(strstr(once, "  assume min(S, 64) = S \"bert's mask\"\n"));
    ck_assert_str_eq(graph_printed(arena, parsed(once)), once);
}
END_TEST

/* Canonical forms are sorted by age, which the text must keep. */
START_TEST(order_of_terms_reads_back)
{
    struct graph *g = graph_new(arena, alg, "g");
    const struct dim *s = dim_sym(alg, "S", 1), *quarter = dim_div(alg, s, dim_int(alg, 4)), *p = dim_sym(alg, "P", 0);
    const struct dim *least = dim_min(alg, dim_int(alg, 64), s), *sum = dim_add(alg, p, dim_add(alg, least, quarter));
    struct type type = {.dtype = DT_F32, .rank = 2, .dim = {least, sum}};
    VEC_PUSH(arena, &g->inputs, graph_value(g, "x", &type));
    char *once = graph_printed(arena, g);
    ck_assert_ptr_nonnull(strstr(once, "min(S, 64)"));
    ck_assert_str_eq(graph_printed(arena, parsed(once)), once);
}
END_TEST

START_TEST(placements_read_back)
{
    struct type type = {.dtype = DT_F32, .rank = 2, .dim = {dim_sym(alg, "S", 1), dim_int(alg, 7)}};
    struct graph *g = graph_new(arena, alg, "g");
    g->ranks = 3;
    struct value *x = graph_value(g, "x", &type);
    VEC_PUSH(arena, &g->inputs, x);
    struct node *n = graph_node(g, op_find("", "Relu"), "relu", 1, &x, 1);
    struct value *y = graph_value(g, "y", &type);
    node_output(g, n, 0, y);
    graph_append(g, n);
    graph_add_output(g, y);
    x->place = placement_split(0, split_even(alg, 3, type.dim[0]));
    y->place = placement_split(1, split_even(alg, 3, type.dim[1]));
    x->placed = y->placed = true;
    graph_verify(g, "test");
    char *once = graph_printed(arena, g);
    struct graph *again = parsed(once);
    ck_assert_str_eq(graph_printed(arena, again), once);
    ck_assert(again->inputs.at[0]->placed && again->inputs.at[0]->place.kind == PLACE_S);
}
END_TEST

static const char *const malformed[] = {"",
                                        "graph",
                                        "graph g",
                                        "graph g {",
                                        "graph g { bogus }",
                                        "graph g { } }",
                                        "graph \"g",
                                        "graph g { input }",
                                        "graph g { input x: f32[ }",
                                        "graph g { input x: f33[2] }",
                                        "graph g { input x: f32[2] input x: f32[2] }",
                                        "graph g { const c: f32[2] = [1] }",
                                        "graph g { const c: f32[2] = hex \"00\" }",
                                        "graph g { const c: i8[1] = [300] }",
                                        "graph g { const c: i64[1] = [99999999999999999999] }",
                                        "graph g { const c: f32[S] = [1] }",
                                        "graph g { const c: string[1] = [1] }",
                                        "graph g { const c: f32[9223372036854775807, 4] = [1] }",
                                        "graph g { const c: f32[-1] = [] }",
                                        "graph g { const c: f32[1] }",
                                        "graph g { node n: y: f32[1] = Relu(x) }",
                                        "graph g { node n: y: f32[1] = Relu(y) }",
                                        "graph g { input x: f32[1] node n: y: f32[1] = Relu(x, x) }",
                                        "graph g { input x: f32[1] node n: y: f32[1] = Relu(x) {axis = 1} }",
                                        "graph g { input x: f32[1] node n: y: f32[1] = Softmax(x) {axis = \"a\"} }",
                                        "graph g { input x: f32[1] node n: y: f32[1] = Softmax(x) {axis = 1 }",
                                        "graph g { input x: f32[1] node n: y: f32[1] = Odd(x) {axis = 1} }",
                                        "graph g { output x }",
                                        "graph g { state a -> b dim 1 }",
                                        "graph g { state _ -> _ dim 99 }",
                                        "graph g { assume 4 = 5 }",
                                        "graph g { dim 4 + >= 1 }",
                                        "graph g { dim S > 1 }",
                                        "graph g { dim S >= }",
                                        "graph g { input x: f32[1, 1, 1, 1, 1, 1, 1, 1, 1] }",
                                        "graph g { input x: f32[1] @Q }",
                                        "graph g { input x: f32[1] @S(0; }",
                                        "graph g { input \"\": f32[1] }",
                                        "graph g { input \"\\q\": f32[1] }",
                                        "graph g { input \"\\x00\": f32[1] }",
                                        "graph g { input x: f32[((((1] }",
                                        "graph g { ranks -1 }",
                                        "graph g { node n: x: ? = \"\"::Relu }"};

START_TEST(malformed_text_is_refused)
{
    graph_parse(arena, alg, malformed[_i], "test", op_find);
}
END_TEST

START_TEST(cut_text_is_refused)
{
    graph_parse(arena, alg, arena_strndup(arena, everything, (size_t)_i * 16), "test", op_find);
}
END_TEST

/* ---- walks ------------------------------------------------------------------------------------------------------------- */

static struct node *node_named(const struct graph *g, const char *name)
{
    for (int i = 0; i < g->nodes.n; i++)
        if (strcmp(g->nodes.at[i]->name, name) == 0)
            return g->nodes.at[i];
    return NULL;
}

static const char chain[] =
    "graph g { input x: f32[2] node a: p: f32[2] = Relu(x) node b: q: f32[2] = Identity(p) node c: r: f32[2] = Neg(q)"
    " node dead: z: f32[2] = Neg(x) output r output q }";

START_TEST(sort_is_stable_and_finds_the_order)
{
    struct graph *g = parsed(chain);
    struct node *a = g->nodes.at[0], *b = g->nodes.at[1], *c = g->nodes.at[2], *dead = g->nodes.at[3];
    struct node *mixed[] = {dead, c, b, a};
    memcpy(g->nodes.at, mixed, sizeof mixed);
    graph_sort(g);
    ck_assert(g->nodes.at[0] == dead && g->nodes.at[1] == a && g->nodes.at[2] == b && g->nodes.at[3] == c);
    graph_verify(g, "sort");
}
END_TEST

START_TEST(cycle_is_refused)
{
    struct graph *g = parsed(chain);
    g->nodes.at[0]->in[0] = graph_find(g, "r");
    graph_sort_read(g);
}
END_TEST

/* No file has it, so no sentence blames one. */
START_TEST(cycle_that_a_pass_made_is_a_bug)
{
    struct graph *g = parsed(chain);
    g->nodes.at[0]->in[0] = graph_find(g, "r");
    graph_sort(g);
}
END_TEST

START_TEST(prune_drops_what_no_output_needs)
{
    struct graph *g = parsed(chain);
    graph_prune(g);
    ck_assert_int_eq(g->nodes.n, 3);
    ck_assert_ptr_null(node_named(g, "dead"));
    ck_assert_ptr_null(graph_find(g, "z")->producer);
}
END_TEST

START_TEST(replacing_an_output_keeps_its_name)
{
    struct graph *g = parsed("graph g { input x: f32[2] node a: p: f32[2] = Relu(x) node b: q: f32[2] = Identity(p) output q }");
    graph_replace(g, graph_find(g, "q"), graph_find(g, "p"), true);
    graph_prune(g);
    graph_verify(g, "replace");
    ck_assert_int_eq(g->nodes.n, 1);
    ck_assert_str_eq(g->outputs.at[0]->name, "q");
    ck_assert_ptr_eq(g->outputs.at[0]->producer, g->nodes.at[0]);
    ck_assert_ptr_eq(graph_find(g, "q"), g->outputs.at[0]);
}
END_TEST

START_TEST(an_input_never_becomes_an_output_by_replacing)
{
    struct graph *g = parsed("graph g { input x: f32[2] node b: q: f32[2] = Identity(x) output q }");
    graph_replace(g, graph_find(g, "q"), graph_find(g, "x"), true);
    graph_prune(g);
    ck_assert_int_eq(g->nodes.n, 1);
    ck_assert_str_eq(g->inputs.at[0]->name, "x");
    ck_assert_str_eq(g->outputs.at[0]->name, "q");
}
END_TEST

START_TEST(rewiring_follows_chains)
{
    struct graph *g = parsed(chain);
    struct value **to = NEWN(arena, struct value *, g->values.n);
    to[graph_find(g, "q")->id] = graph_find(g, "p");
    to[graph_find(g, "p")->id] = graph_find(g, "x");
    graph_rewire(g, to, false);
    ck_assert_ptr_eq(node_named(g, "c")->in[0], graph_find(g, "x"));
}
END_TEST

START_TEST(uses_are_all_found)
{
    struct graph *g = parsed(chain);
    struct uses *uses = graph_uses(g, arena);
    const struct uses *x = &uses[graph_find(g, "x")->id], *q = &uses[graph_find(g, "q")->id];
    ck_assert_int_eq(x->n, 2);
    ck_assert(x->at[0].node == node_named(g, "a") && x->at[1].node == node_named(g, "dead"));
    ck_assert_int_eq(q->n, 2);
    ck_assert(q->at[0].node == node_named(g, "c") && !q->at[1].node && q->at[1].index == 1);
}
END_TEST

START_TEST(names_get_suffixes)
{
    struct graph *g = parsed(chain);
    ck_assert_str_eq(graph_value(g, "x", NULL)->name, "x_1");
    ck_assert_str_eq(graph_value(g, "x", NULL)->name, "x_2");
    g->nodes.at[1]->name = "a";
    g->nodes.at[2]->name = "";
    graph_name_nodes(g);
    ck_assert_str_eq(g->nodes.at[0]->name, "a");
    ck_assert_str_eq(g->nodes.at[1]->name, "a_1");
    ck_assert_str_eq(g->nodes.at[2]->name, "Neg");
}
END_TEST

/* ---- constants --------------------------------------------------------------------------------------------------------- */

static char path[] = P_tmpdir "/test_ir.XXXXXX";

static void write_data(void)
{
    int to = mkstemp(path);
    ck_assert_int_ge(to, 0);
    ck_assert_int_eq(write(to, "\0\0\0\0\0\0\200?\0\0\0\300", 12), 12);
    ck_assert_int_eq(close(to), 0);
}
static void remove_data(void)
{
    unlink(path);
}

static struct constant external(int64_t offset, int64_t n)
{
    return (struct constant){
        .dtype = DT_F32, .rank = 1, .dim = {n}, .bytes = 4 * n, .source = {.path = path, .offset = offset, .length = 4 * n}};
}

START_TEST(external_bytes_are_read_in_place)
{
    struct constant c = external(4, 2);
    double first = constant_float(&c, "w", 0), second = constant_float(&c, "w", 1);
    ck_assert(first == 1 && second == -2);
}
END_TEST

START_TEST(short_file_is_refused)
{
    static const int64_t offsets[] = {8, INT64_MAX - 2, -4};
    struct constant c = external(offsets[_i], 2);
    constant_data(&c, "w");
}
END_TEST

START_TEST(missing_file_is_refused)
{
    struct constant c = external(0, 1);
    c.source.path = "no such file";
    constant_data(&c, "w");
}
END_TEST

START_TEST(elements_of_every_type)
{
    struct graph *g = parsed(everything);
    struct constant *h = graph_find(g, "h")->constant, *i = graph_find(g, "i")->constant, *b = graph_find(g, "b")->constant;
    double one = constant_float(h, "h", 0), two = constant_float(h, "h", 1);
    ck_assert(one == 1 && two == -2);
    ck_assert(constant_int(i, "i", 0) == -1 && constant_int(i, "i", 2) == INT64_MAX && constant_int(b, "b", 1) == 1);
}
END_TEST

/* ---- folding ----------------------------------------------------------------------------------------------------------- */

static struct graph *folded(const char *text)
{
    struct compile c = {.arena = arena, .graph = parsed(text)};
    c.graph->properties = PROP_LOADED | PROP_TYPED;
    pass_run(&c, "fold", "fold", NULL);
    return c.graph;
}

START_TEST(chains_of_constants_fold)
{
    struct graph *g = folded("graph g { opset 23 input x: f32[2] const a: f32[2] = [1, 2] const b: f32[2] = [3, 4]"
                             " node s: s: f32[2] = Add(a, b) node n: n: f32[2] = Neg(s) node y: y: f32[2] = Mul(x, n) output y }");
    ck_assert_int_eq(g->nodes.n, 1);
    struct constant *c = g->nodes.at[0]->in[1]->constant;
    double first = constant_float(c, "n", 0), second = constant_float(c, "n", 1);
    ck_assert(first == -4 && second == -6);
}
END_TEST

START_TEST(weights_do_not_fold)
{
    char *zeros = arena_alloc(arena, 2049);
    memset(zeros, '0', 2048);
    const char *text = "graph g { opset 23 const w: f32[8, 32] = hex \"%s\"%s node t: t: f32[32, 8] = Transpose(w) {perm = [1, 0]}"
                       " node y: y: f32[32, 8] = Neg(t) output y }";
    ck_assert_int_eq(folded(arena_printf(arena, text, zeros, " origin w"))->nodes.n, 2);
    ck_assert_int_eq(folded(arena_printf(arena, text, zeros, ""))->nodes.n, 1);
}
END_TEST

START_TEST(large_results_do_not_fold)
{
    struct graph *g = folded("graph g { opset 23 input x: f32[32768] node c: c: f32[32768] = ConstantOfShape() {value = f32[1] [1]}"
                             " node d: d: f32[16] = ConstantOfShape() {value = f32[1] [1]} node y: y: f32[32768] = Mul(x, c)"
                             " node z: z: f32[16] = Neg(d) output y output z }");
    ck_assert_int_eq(g->nodes.n, 3);
    ck_assert_ptr_nonnull(graph_find(g, "d")->constant);
}
END_TEST

START_TEST(equal_small_constants_become_one)
{
    struct graph *g = folded(
        "graph g { opset 23 input x: f32[2] const a: f32[] = [1] const b: f32[] = [1] const c: f32[1] = [1]"
        " const v: f32[2] = [1, 1] const w: f32[2] = [1, 1] node p: p: f32[2] = Mul(x, a) node q: q: f32[2] = Mul(p, b)"
        " node r: r: f32[2] = Mul(q, c) node s: s: f32[2] = Mul(r, v) node t: t: f32[2] = Mul(s, w) output t }");
    ck_assert_ptr_eq(g->nodes.at[0]->in[1], g->nodes.at[1]->in[1]);
    ck_assert_ptr_ne(g->nodes.at[0]->in[1], g->nodes.at[2]->in[1]);
    ck_assert_ptr_ne(g->nodes.at[3]->in[1], g->nodes.at[4]->in[1]);
}
END_TEST

/* ---- the verifier ------------------------------------------------------------------------------------------------------ */

static void break_order(struct graph *g)
{
    struct node *n = g->nodes.at[0];
    g->nodes.at[0] = g->nodes.at[1];
    g->nodes.at[1] = n;
}
static void break_link(struct graph *g)
{
    g->nodes.at[0]->out[0]->producer = g->nodes.at[1];
}
static void break_name(struct graph *g)
{
    g->nodes.at[1]->name = g->nodes.at[0]->name;
}
static void break_value_name(struct graph *g)
{
    g->nodes.at[1]->out[0]->name = g->nodes.at[0]->out[0]->name;
}
static void break_operand(struct graph *g)
{
    g->nodes.at[1]->in[0] = NULL;
}
static void break_attrs(struct graph *g)
{
    g->nodes.at[1]->attr = NEWN(g->arena, struct attr, 1);
    g->nodes.at[1]->nattr = 1;
}
static void break_output(struct graph *g)
{
    graph_find(g, "r")->producer = NULL;
    g->nodes.n = 2;
}
static void break_type(struct graph *g)
{
    g->properties |= PROP_TYPED;
    g->nodes.at[1]->out[0]->type.dtype = DT_NONE;
}
static void break_split(struct graph *g)
{
    struct value *v = g->nodes.at[1]->out[0];
    v->placed = true;
    v->place = placement_split(0, split_even(g->alg, 2, dim_int(g->alg, 5)));
}
static void break_partial(struct graph *g)
{
    struct value *v = g->nodes.at[1]->out[0];
    v->placed = true;
    v->type.dtype = DT_BOOL;
    v->place = placement_partial(RED_SUM);
}
static void (*const breaks[])(struct graph *) = {break_order, break_link,   break_name, break_value_name, break_operand,
                                                 break_attrs, break_output, break_type, break_split,      break_partial};

START_TEST(broken_graph_is_noticed)
{
    struct graph *g = parsed(chain);
    breaks[_i](g);
    graph_verify(g, "breaking it");
}
END_TEST

/* ---- state between two graphs ------------------------------------------------------------------------------------------- */

static struct handover handover_of(const char *const *line, int n) /* "name type" */
{
    struct handed *at = NEWN(arena, struct handed, n);
    for (int i = 0; i < n; i++) {
        const char *error = NULL, *space = strchr(line[i], ' ');
        at[i].name = arena_strndup(arena, line[i], (size_t)(space - line[i]));
        ck_assert(type_parse(alg, space + 1, 0, &at[i].type, &error));
    }
    return (struct handover){"file", n, at};
}

START_TEST(state_goes_by_the_ends_of_names)
{
    static const char *const step[] = {"past_key_values.0.decoder.key f32[B, 4, P, 8]", "past_key_values.0.encoder.key f32[B, 4, E, 8]",
                                       "past_key_values.10.encoder.key f32[B, 4, E, 8]", "past_key_values.1.encoder.key f32[B, 4, E, 8]",
                                       "other/key f32[B, 4, E, 8]"};
    static const char *const first[] = {"present.10.encoder.key f32[B, 4, 7, 8]", "present.0.encoder.key f32[B, 4, 7, 8]",
                                        "present.1.encoder.key f32[B, 3, 7, 8]", "present.0.encoder.value f32[B, 4, 7, 8]",
                                        "present/0/decoder/key f32[C, 4, Q, 8]"};
    static const int want[] = {4, 1, 0, -1, -1};
    struct handover to = handover_of(step, 5), from = handover_of(first, 5);
    int match[5];
    state_match(&to, &from, match);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(match[i], want[i]);
}
END_TEST

START_TEST(state_that_fits_twice_is_refused)
{
    static const char *const two[] = {"a.self.0.key f32[B, 4]", "b.cross.0.key f32[B, 4]"}, *const one[] = {"past.0.key f32[B, 4]"};
    struct handover many = handover_of(two, 2), single = handover_of(one, 1);
    int match[2];
    state_match(_i ? &many : &single, _i ? &single : &many, match);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ir");
    TCase *tc = unit_case(suite, "ir", setup, teardown);
    tcase_add_test(tc, rows_are_found_by_domain_and_name);
    tcase_add_test(tc, row_texts_are_parsed);
    tcase_add_test(tc, absent_functions_are_null);
    tcase_add_test(tc, text_reads_back_as_itself);
    tcase_add_test(tc, equations_hold_behind_them);
    tcase_add_test(tc, order_of_terms_reads_back);
    tcase_add_test(tc, placements_read_back);
    tcase_add_loop_exit_test(tc, malformed_text_is_refused, 1, 0, COUNT(malformed));
    tcase_add_loop_exit_test(tc, cut_text_is_refused, 1, 0, COUNT(everything) / 16);
    tcase_add_test(tc, sort_is_stable_and_finds_the_order);
    tcase_add_exit_test(tc, cycle_is_refused, 1);
    tcase_add_test_raise_signal(tc, cycle_that_a_pass_made_is_a_bug, SIGABRT);
    tcase_add_test(tc, prune_drops_what_no_output_needs);
    tcase_add_test(tc, replacing_an_output_keeps_its_name);
    tcase_add_test(tc, an_input_never_becomes_an_output_by_replacing);
    tcase_add_test(tc, rewiring_follows_chains);
    tcase_add_test(tc, uses_are_all_found);
    tcase_add_test(tc, names_get_suffixes);
    tcase_add_exit_test(tc, missing_file_is_refused, 1);
    tcase_add_test(tc, elements_of_every_type);
    tcase_add_test(tc, chains_of_constants_fold);
    tcase_add_test(tc, weights_do_not_fold);
    tcase_add_test(tc, large_results_do_not_fold);
    tcase_add_test(tc, equal_small_constants_become_one);
    tcase_add_test(tc, state_goes_by_the_ends_of_names);
    tcase_add_loop_exit_test(tc, state_that_fits_twice_is_refused, 1, 0, 2);
    tcase_add_loop_test_raise_signal(tc, broken_graph_is_noticed, SIGABRT, 0, COUNT(breaks));
    TCase *data = unit_case(suite, "external data", setup, teardown);
    tcase_add_unchecked_fixture(data, write_data, remove_data); /* not in the process of a test, which may end by exit */
    tcase_add_test(data, external_bytes_are_read_in_place);
    tcase_add_loop_exit_test(data, short_file_is_refused, 1, 0, 3);
    return unit_run(suite);
}
