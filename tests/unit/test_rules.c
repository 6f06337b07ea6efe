/* Factor rules: text both ways, and the placements that splitting a factor gives every operand and result. */
#include "op/infer/infer.h"
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/facts/facts.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static struct graph *graph;

static void setup(void)
{
    arena = arena_new();
    graph = graph_new(arena, alg_new(arena), "test");
}

static void teardown(void)
{
    arena_free(arena);
}

/* ---- making nodes -------------------------------------------------------------------------------------------------------- */

static struct value *value_of(const char *type)
{
    struct type t;
    const char *error;
    if (strcmp(type, "-") == 0)
        return NULL;
    ck_assert_msg(type_parse(graph->alg, type, 1, &t, &error), "%s: %s", type, error);
    return graph_value(graph, "v", &t);
}

/* A node with operands of the given types ("-": absent), not yet inferred. */
static struct node *node_of(const char *domain, const char *op, int nin, const char *const *type, int nout)
{
    struct value *in[16];
    struct type untyped = {.dtype = DT_NONE};
    ck_assert(op_find(domain, op) != NULL);
    for (int i = 0; i < nin; i++)
        in[i] = value_of(type[i]);
    struct node *node = graph_node(graph, op_find(domain, op), op, nin, in, nout);
    for (int i = 0; i < nout; i++)
        node_output(graph, node, i, graph_value(graph, "y", &untyped));
    return node;
}

#define TYPES(...) ((const char *const[]){__VA_ARGS__})

static struct node *inferred(const char *op, int nin, const char *const *type)
{
    struct node *node = node_of("", op, nin, type, 1);
    op_infer(graph, node);
    return node;
}

static const char *result_type(const struct node *node, int i)
{
    return type_str(arena, &node->out[i]->type);
}

/* ---- text ------------------------------------------------------------------------------------------------------------------- */

static void check_text(const struct node *node, const char *expected)
{
    struct rule *rule = rule_of(graph, node);
    ck_assert(rule != NULL);
    const char *text = rule_str(arena, rule);
    ck_assert_str_eq(text, expected);
    ck_assert_str_eq(rule_str(arena, rule_parse(graph, node, text)), expected);
}

START_TEST(rules_print_and_parse)
{
    check_text(inferred("MatMul", 2, TYPES("f32[B, S, 8]", "f32[8, 6]")), "(b0 m k)(k n) -> (b0 m n)  k: sum contracted  linear 0, 1");
    check_text(inferred("Gemm", 3, TYPES("f32[S, 8]", "f32[8, 6]", "f32[6]")),
               "(m k)(k n)+(n) -> (m n)  k: sum contracted  linear 0+2, 1+2  increasing 2");
    check_text(inferred("Add", 2, TYPES("f32[B, 1, 8]", "f32[S, 8]")), "(a0 1 a2)(a1 a2) -> (a0 a1 a2)  linear 0+1  increasing 0, 1");
    check_text(inferred("Sub", 2, TYPES("f32[8]", "f32[8]")), "(a0)(a0) -> (a0)  linear 0+1  increasing 0  decreasing 1");
    check_text(inferred("Max", 2, TYPES("f32[8]", "f32[1]")), "(a0)(1) -> (a0)  increasing 0, 1  max-linear 0+1");
    check_text(inferred("Softmax", 1, TYPES("f32[B, S]")), "(a0 n1) -> (a0 n1)  n1: lowered");
    check_text(inferred("LayerNormalization", 3, TYPES("f32[B, S, 8]", "f32[8]", "f32[8]")),
               "(a0 a1 h2)(h2)(h2) -> (a0 a1 h2)  h2: dropped lowered  linear 1+2  increasing 2");
    check_text(inferred("ReduceMax", 1, TYPES("f32[B, 4]")), "(n0 n1) -> (1 1)  n0: max  n1: max  max-linear 0");
}
END_TEST

START_TEST(dotted_dimensions_follow_the_types)
{
    struct node *node = inferred("MatMul", 2, TYPES("f32[2, H, S, 8]", "f32[2, 1, 8, 6]"));
    struct rule *rule = rule_parse(graph, node, "(b.. m k)(b.. k n) -> (b.. m n)  k: sum contracted  linear 0, 1");
    ck_assert_str_eq(rule_str(arena, rule), "(b0 b1 m k)(b0 1 k n) -> (b0 b1 m n)  k: sum contracted  linear 0, 1");
    ck_assert_str_eq(rule_str(arena, rule_of(graph, node)), rule_str(arena, rule));
}
END_TEST

START_TEST(templates_follow_the_node)
{
    const struct {
        const char *op;
        int nin;
        const char *type[3];
        uint32_t set;
        const char *text, *expected;
    } row[] = {
        {"Max", 3, {"f32[4]", "f32[2, 1]", "f32[1]"}, 0, "(a..)* -> (a..)  max-linear *", "(a1)(a0 1)(1) -> (a0 a1)  max-linear 0+1+2"},
        {"Clip",
         3,
         {"f32[4]", "f32[]", "f32[]"},
         0,
         "(a..)(x..)* -> (a..)  linear 0+2 if 2  linear 1 if not 2",
         "(a0)()() -> (a0)  linear 0+2"},
        {"Clip", 2, {"f32[4]", "f32[]"}, 0, "(a..)(x..)(y..) -> (a..)  linear 0+2 if 2  linear 1 if not 2", "(a0)() -> (a0)  linear 1"},
        {"Neg",
         1,
         {"f32[3, 4]"},
         2,
         "([n a]...) -> ([n a]...)  n*: lowered  linear 0 if float",
         "(a0 n1) -> (a0 n1)  n1: lowered  linear 0"},
        {"Neg", 1, {"i32[3, 4]"}, 0, "(b [@n a]...) -> (b [@n a]...)  n*: lowered  linear 0 if float", "(b a1) -> (b a1)"},
        {"ReduceSum", 1, {"f32[3, 4]"}, 3, "([n a]...) -> ([~ a]...)  n*: sum", "(n0 n1) -> (1 1)  n0: sum  n1: sum"},
        {"LayerNormalization", 2, {"f32[2, 3, 4]", "f32[1, 4]"}, 6, "([h a]...)([h a]..)* -> ([h a]..)*", "(a0 h1 h2)(1 h2) -> (a0 h1 h2)"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const struct node *node = inferred(row[i].op, row[i].nin, row[i].type);
        ck_assert_str_eq(rule_str(arena, rule_template(graph, node, row[i].set, row[i].text)), row[i].expected);
    }
}
END_TEST

/* ---- splitting one factor ------------------------------------------------------------------------------------------------------- */

static int factor_named(const struct rule *r, const char *name)
{
    for (int f = 0; f < r->nfactor; f++)
        if (strcmp(r->factor[f].name, name) == 0)
            return f;
    ck_abort_msg("no factor %s in %s", name, rule_str(arena, r));
}

/* "in, in -> out, out" under the assignment, or "illegal". */
static const char *projected(const struct rule *r, int ranks, const struct assignment *assignment)
{
    struct placement in[16], out[4];
    if (!rule_project(graph, r, ranks, assignment, in, out, NULL))
        return "illegal";
    const char *text = "";
    for (int i = 0; i < r->nin + r->nout; i++)
        text = arena_printf(arena, "%s%s%s", text,
                            i == r->nin ? " -> "
                                : i     ? ", "
                                        : "",
                            placement_str(arena, i < r->nin ? in[i] : out[i - r->nin]));
    return text;
}

static struct assignment choose(const struct rule *r, const char *name, const struct split *s)
{
    struct assignment c = {.factor = NEWN(arena, const struct split *, r->nfactor)};
    c.factor[factor_named(r, name)] = s;
    return c;
}

static const char *split_evenly(const struct rule *r, int ranks, const char *name)
{
    struct assignment c = choose(r, name, split_even(graph->alg, ranks, r->factor[factor_named(r, name)].size));
    return projected(r, ranks, &c);
}

/* Dimension d split as text says. */
static const char *at(int d, const char *text)
{
    const char *error;
    const struct split *s = split_parse(graph->alg, text, &error);
    ck_assert_msg(s != NULL, "%s: %s", text, error);
    return placement_str(arena, placement_split(d, s));
}

#define ck_assert_projects(actual, ...) ck_assert_str_eq(actual, arena_printf(arena, __VA_ARGS__))

START_TEST(a_contraction_leaves_partial_sums)
{
    struct rule *r = rule_of(graph, inferred("Gemm", 3, TYPES("f32[S, 8]", "f32[8, 6]", "f32[6]")));
    ck_assert_projects(split_evenly(r, 2, "k"), "%s, %s, P(sum) -> P(sum)", at(1, "t2:balanced(8)"), at(0, "t2:balanced(8)"));
    ck_assert_projects(split_evenly(r, 2, "n"), "R, %s, %s -> %s", at(1, "t2:balanced(6)"), at(0, "t2:balanced(6)"),
                       at(1, "t2:balanced(6)"));
}
END_TEST

START_TEST(a_sum_needs_a_partition_and_a_maximum_a_cover)
{
    const struct split *s = split_even(graph->alg, 4, dim_int(graph->alg, 2));
    const struct split *cover = split_image(graph->alg, split_even(graph->alg, 4, dim_int(graph->alg, 8)), 4);
    ck_assert(s->partition && cover->cover && !cover->partition);
    struct rule *sum = rule_of(graph, inferred("ReduceSum", 1, TYPES("f32[2]")));
    struct rule *max = rule_of(graph, inferred("ReduceMax", 1, TYPES("f32[2]")));
    struct assignment c = choose(sum, "n0", cover);
    ck_assert_str_eq(projected(sum, 4, &c), "illegal");
    ck_assert_projects(projected(max, 4, &c), "%s -> P(max)", at(0, "t4:balanced(4)/2"));
    c.factor[0] = s;
    ck_assert_projects(projected(sum, 4, &c), "%s -> P(sum)", placement_str(arena, placement_split(0, s)));
}
END_TEST

START_TEST(whole_and_position_factors_stay)
{
    struct rule *mean = rule_of(graph, inferred("ReduceMean", 1, TYPES("i64[8]")));
    ck_assert_str_eq(split_evenly(mean, 2, "n0"), "illegal");
}
END_TEST

/* ---- heads ----------------------------------------------------------------------------------------------------------------------- */

/* Packed projection: 8 query heads, kv key heads of size 4. */
static struct node *packed_attention(int kv, int width)
{
    const char *q = arena_printf(arena, "f32[B, S, %d]", width), *past = arena_printf(arena, "f32[B, %d, P, 4]", kv);
    struct node *node = node_of("com.microsoft", "GroupQueryAttention", 7, TYPES(q, "-", "-", past, past, "i32[B]", "i32[]"), 3);
    attr_set_int(node, "num_heads", 8);
    attr_set_int(node, "kv_num_heads", kv);
    op_infer(graph, node);
    return node;
}

static const char *split_heads(const struct rule *r, int ranks)
{
    struct assignment c = {.nproduct = 2, .product = {r->query_outer, r->query_inner}};
    c.product_split = split_even(graph->alg, ranks, rule_part_size(graph, r, &r->size[0].part));
    return projected(r, ranks, &c);
}

START_TEST(packed_heads_reach_columns_and_cache)
{
    struct node *node = packed_attention(4, 64);
    ck_assert_str_eq(result_type(node, 0), "f32[B, S, 32]");
    struct rule *r = rule_of(graph, node);
    const char *cache = at(1, "t2:balanced(4)"), *width = at(2, "t2:balanced(32)");
    ck_assert_projects(split_heads(r, 2), "%s, R, R, %s, %s, R, R -> %s, %s, %s", at(2, "t2:balanced(32)|balanced(16)|balanced(16)"), cache,
                       cache, width, cache, cache);
    ck_assert_str_eq(split_heads(r, 2), split_evenly(r, 2, "hk"));
}
END_TEST

START_TEST(key_heads_are_repeated_on_more_ranks)
{
    struct rule *r = rule_of(graph, packed_attention(2, 48));
    const char *cache = at(1, "t4:balanced(4)/2"), *width = at(2, "t4:balanced(32)");
    const char *packed = at(2, "t4:balanced(32)|balanced(4)/2;inner=4|balanced(4)/2;inner=4");
    ck_assert_projects(split_heads(r, 4), "%s, R, R, %s, %s, R, R -> %s, %s, %s", packed, cache, cache, width, cache, cache);
    struct assignment c = {.nproduct = 2, .product = {r->query_outer, r->query_inner}};
    c.product_split = split_even(graph->alg, 4, dim_int(graph->alg, 8));
    const struct split *kv = rule_part_split(graph, r, 4, &c, &r->size[1].part);
    ck_assert_str_eq(placement_str(arena, placement_split(1, kv)), cache);
}
END_TEST

START_TEST(ragged_groups_are_refused)
{
    /* 3, 3, 2 heads of groups of four: rank 1 would hold one head of a group and two of the next. */
    struct rule *r = rule_of(graph, packed_attention(2, 48));
    ck_assert_str_eq(split_heads(r, 3), "illegal");
}
END_TEST

START_TEST(one_key_head_is_whole_everywhere)
{
    struct rule *r = rule_of(graph, packed_attention(1, 40));
    ck_assert_int_eq(r->query_outer, -1);
    ck_assert_projects(split_evenly(r, 2, "g"), "%s, R, R, R, R, R, R -> %s, R, R", at(2, "t2:balanced(32)|whole(8)"),
                       at(2, "t2:balanced(32)"));
}
END_TEST

START_TEST(attention_in_four_dimensions)
{
    struct node *node = node_of("", "Attention", 4, TYPES("f32[B, 8, S, 4]", "f32[B, 2, T, 4]", "f32[B, 2, T, 6]", "bool[B, 1, S, T]"), 1);
    op_infer(graph, node);
    ck_assert_str_eq(result_type(node, 0), "f32[B, 8, S, 6]");
    struct rule *r = rule_of(graph, node);
    struct assignment c = {.nproduct = 2, .product = {r->query_outer, r->query_inner}};
    c.product_split = split_even(graph->alg, 4, dim_int(graph->alg, 8));
    const char *q = at(1, "t4:balanced(8)"), *kv = at(1, "t4:balanced(4)/2");
    ck_assert_projects(projected(r, 4, &c), "%s, %s, %s, R -> %s", q, kv, kv, q);
    ck_assert_str_eq(rule_str(arena, rule_parse(graph, node, rule_str(arena, r))), rule_str(arena, r));
}
END_TEST

/* ---- convolution --------------------------------------------------------------------------------------------------------------- */

START_TEST(groups_of_a_convolution)
{
    struct node *node = node_of("", "Conv", 3, TYPES("f32[B, 8, 9, 9]", "f32[12, 2, 3, 3]", "f32[12]"), 1);
    attr_set_int(node, "group", 4);
    op_infer(graph, node);
    ck_assert_str_eq(result_type(node, 0), "f32[B, 12, 7, 7]");
    struct rule *r = rule_of(graph, node);
    ck_assert_projects(split_evenly(r, 2, "g"), "%s, %s, %s -> %s", at(1, "t2:balanced(8)"), at(0, "t2:balanced(12)"),
                       at(0, "t2:balanced(12)"), at(1, "t2:balanced(12)"));
    ck_assert_projects(split_evenly(r, 2, "c"), "%s, %s, P(sum) -> P(sum)", at(1, "t2:balanced(2);outer=4"), at(1, "t2:balanced(2)"));
}
END_TEST

/* ---- shape information ------------------------------------------------------------------------------------------------------------ */

static struct value *dims_of(const char *const *text, int n)
{
    int64_t size = n;
    struct type type = {.dtype = DT_I64, .rank = 1, .dim = {dim_int(graph->alg, size)}};
    struct value *v = graph_value(graph, "d", &type);
    v->dims = NEW(arena, struct dims_value);
    v->dims->n = n;
    v->dims->at = NEWN(arena, const struct dim *, n);
    for (int i = 0; i < n; i++) {
        const char *error;
        v->dims->at[i] = dim_parse(graph->alg, text[i], 1, &error);
        ck_assert(v->dims->at[i] != NULL);
    }
    return v;
}

/* The values of a binary op on two vectors of dimensions, "?" when unknown. */
static const char *computed(const char *op, struct value *a, struct value *b)
{
    struct type untyped = {.dtype = DT_NONE};
    struct node *node = graph_node(graph, op_find("", op), op, 2, (struct value *const[]){a, b}, 1);
    node_output(graph, node, 0, graph_value(graph, "y", &untyped));
    op_infer(graph, node);
    const char *text = node->out[0]->dims ? "" : "?";
    for (int i = 0; node->out[0]->dims && i < node->out[0]->dims->n; i++)
        text = arena_printf(arena, "%s%s%s", text, i ? " " : "", dim_str(arena, node->out[0]->dims->at[i]));
    return text;
}

START_TEST(shape_arithmetic)
{
    struct value *shape = dims_of(TYPES("S", "-7", "S + 1"), 3), *minus = dims_of(TYPES("-1"), 1), *two = dims_of(TYPES("2"), 1);
    struct value *positive = dims_of(TYPES("S", "7"), 2);
    ck_assert_str_eq(computed("Equal", shape, minus), "0 0 0");
    ck_assert_str_eq(computed("Equal", shape, two), "?");
    ck_assert_str_eq(computed("Div", positive, two), "S/2 3");
    ck_assert_str_eq(computed("Div", shape, two), computed("Div", shape, two));
    ck_assert_str_eq(computed("Mul", positive, two), "2*S 14");
    ck_assert_str_eq(computed("Less", minus, shape), "1 0 1");
    ck_assert_str_eq(computed("Less", two, shape), "?");
    ck_assert_str_eq(computed("Less", minus, positive), "1 1");
}
END_TEST

/* ---- elements that share a byte -------------------------------------------------------------------------------------------------- */

static struct placement even(const struct value *v, int d, int ranks)
{
    return placement_split(d, split_even(graph->alg, ranks, v->type.dim[d]));
}

START_TEST(a_byte_is_not_cut)
{
    int64_t dim[2] = {4, 3};
    const uint8_t data[6] = {0x10, 0x32, 0x54, 0x76, 0x98, 0xba};
    struct value *w = graph_constant(graph, "w", DT_U4, 2, dim, data);
    const struct byte_range *range;
    ck_assert_int_eq(w->constant->bytes, 6);
    ck_assert_int_eq(constant_int(w->constant, "w", 7), 7);
    ck_assert(weight_divides(w, even(w, 0, 2)) && !weight_divides(w, even(w, 0, 4)) && !weight_divides(w, even(w, 1, 3)));
    ck_assert(!weight_divides(w, placement_partial(RED_SUM)));
    ck_assert_int_eq(weight_ranges(arena, w->constant, even(w, 0, 2), 1, &range), 1);
    ck_assert_int_eq(range[0].offset, 3);
    ck_assert_int_eq(range[0].bytes, 3);
    dim[1] = 2;
    struct value *signed_one = graph_constant(graph, "i", DT_I4, 2, dim, data);
    ck_assert(weight_divides(signed_one, even(signed_one, 0, 4)) && !weight_divides(signed_one, even(signed_one, 1, 2)));
    ck_assert_int_eq(constant_int(signed_one->constant, "i", 7), 7);
    ck_assert_int_eq(constant_int(graph_constant(graph, "j", DT_I4, 1, &dim[1], data + 4)->constant, "j", 0), -8);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("rules");
    TCase *c = unit_case(suite, "rules", setup, teardown);
    tcase_add_test(c, rules_print_and_parse);
    tcase_add_test(c, dotted_dimensions_follow_the_types);
    tcase_add_test(c, templates_follow_the_node);
    tcase_add_test(c, a_contraction_leaves_partial_sums);
    tcase_add_test(c, a_sum_needs_a_partition_and_a_maximum_a_cover);
    tcase_add_test(c, whole_and_position_factors_stay);
    tcase_add_test(c, packed_heads_reach_columns_and_cache);
    tcase_add_test(c, key_heads_are_repeated_on_more_ranks);
    tcase_add_test(c, ragged_groups_are_refused);
    tcase_add_test(c, one_key_head_is_whole_everywhere);
    tcase_add_test(c, attention_in_four_dimensions);
    tcase_add_test(c, groups_of_a_convolution);
    tcase_add_test(c, shape_arithmetic);
    tcase_add_test(c, a_byte_is_not_cut);
    return unit_run(suite);
}
