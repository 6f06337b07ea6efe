/* test_dim.c: dimension expressions, equations and types.
 *
 * Besides the identities that shape inference needs: random expressions are built twice, as dimensions and as plain trees that are
 * evaluated directly; for random values of the symbols both must agree, lie within the bounds, and survive printing and parsing. */
#include "algebra/algebra.h"
#include "tests/unit/main.h"

#include <stdlib.h>
#include <string.h>

static struct arena *arena;
static struct alg *alg;

static const char *const positive[] = {"A", "B", "C", "D", "E", "F", "G", "H", "K", "L", "M",
                                       "N", "R", "S", "T", "U", "V", "W", "X", "Y", "Z"};

static void setup(void)
{
    arena = arena_new();
    alg = alg_new(arena);
    (void)dim_sym(alg, "P", 0);
    for (int i = 0; i < (int)(sizeof positive / sizeof positive[0]); i++)
        (void)dim_at_least(alg, dim_sym(alg, positive[i], 1), 1);
}

static void teardown(void)
{
    arena_free(arena);
}

static const struct dim *D(const char *text)
{
    const char *error = NULL;
    const struct dim *d = dim_parse(alg, text, 1, &error);
    ck_assert_msg(d != NULL, "%s: %s", text, error);
    return d;
}

static void same(const char *a, const char *b)
{
    const struct dim *x = D(a), *y = D(b);
    ck_assert_msg(x == y, "%s gives %s, but %s gives %s", a, dim_str(arena, x), b, dim_str(arena, y));
}

START_TEST(identities)
{
    static const char *const pair[][2] = {
        {"max(S, 1)", "S"},
        {"min(P + S, S)", "S"},
        {"4*S/4", "S"},
        {"(4*S + 3)/4", "S"},
        {"(B*S*64)/(B*S)", "64"},
        {"(7*B + P)/7", "B + P/7"},
        {"(B*S + B*P)/(S + P)", "B"},
        {"4*(S/4) + S%4", "S"},
        {"(S*P)%P", "0"},
        {"(4*S + 3)%4", "3"},
        {"-(-S/4)", "S/4"},
        {"-((-S)/4)", "(S + 3)/4"},
        {"(H - 1)/2 + 1", "(H + 1)/2"},
        {"((H + 1)/2 + 1)/2", "(H + 3)/4"},
        {"min(min(S, 64), T)", "min(T, 64, S)"},
        {"min(S, max(S, T))", "S"},
        {"max(0, min(S, 64))", "min(64, S)"},
        {"max(B*S - S, 0)", "B*S - S"},
        {"min(S - 1, S)", "S - 1"},
        {"S/2 + (S + 1)/2", "S"},
        {"S - S/2", "(S + 1)/2"},
        {"3 + 2*S - 2*((S + 1)/2)", "2*(S/2) + 3"},
        {"T/8 - T/16", "(T + 8)/16"},
        {"S - 2*(S/2)", "S - 2*(S/2)"},
        {"(S%4)/4", "0"},
        {"B*((S+3)/4) + B*((S+2)/4) + B*((S+1)/4) + B*(S/4)", "B*S"},
        {"(w + (4 - w%4)%4)%4", "0"},
        {"min(S%4, 4)", "S%4"},
        {"(w + (4 - w%4)%4)/4", "(w + 3)/4"},
        {"2*(B + 1)*(S + P)", "2*B*S + 2*B*P + 2*S + 2*P"},
        {"-9 - 3*S", "0 - 3*(S + 3)"},
        {"(B*S)%S", "0"},
        {"(S/4)/T", "S/(4*T)"},
        {"min(2*S, S)", "S"},
        {"max(min(P + S, S), P)", "max(P, S)"},
    };
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++)
        same(pair[i][0], pair[i][1]);
}
END_TEST

START_TEST(comparison)
{
    ck_assert(dim_ge(alg, D("B*S"), D("S")));
    ck_assert(dim_ge(alg, D("P + S"), D("S")));
    ck_assert(dim_ge(alg, D("S"), D("min(S, T)")));
    ck_assert(dim_ge(alg, D("max(S, T)"), D("T")));
    ck_assert(dim_ge(alg, D("B*S"), D("B*min(S, 64)")));
    ck_assert(dim_ge(alg, D("S"), D("4*(S/4)")));
    ck_assert(!dim_ge(alg, D("S"), D("B")) && !dim_ge(alg, D("min(S, 64)"), D("S")) && !dim_ge(alg, D("P"), D("1")));
}
END_TEST

START_TEST(quotients)
{
    ck_assert_ptr_eq(dim_quotient(alg, D("12*B*S"), D("4*S")), D("3*B"));
    ck_assert_ptr_eq(dim_quotient(alg, D("B*S + B"), D("S + 1")), D("B"));
    ck_assert_ptr_null(dim_quotient(alg, D("S"), D("4")));
    ck_assert_ptr_null(dim_quotient(alg, D("S"), D("B")));
    ck_assert_ptr_null(dim_quotient(alg, D("S"), D("0")));
    ck_assert_ptr_eq(dim_quotient(alg, D("0"), D("B")), D("0"));
}
END_TEST

START_TEST(any_size_may_be_zero)
{
    ck_assert_ptr_ne(dim_max(alg, D("q"), D("1")), D("q"));
    (void)dim_at_least(alg, D("q"), 1);
    ck_assert_ptr_eq(dim_max(alg, D("q"), D("1")), D("q"));
    same("min(q + r + min(r, 1), 1)", "1");
    same("min(r + 2*min(r, 1), 1)", "min(r, 1)");
    same("r + min(r, 1) - min(r + min(r, 1), 1)", "r");
}
END_TEST

/* What holds for usual sizes becomes an assumption about as few of them as do. */
START_TEST(usual_sizes)
{
    const struct equation *e;
    (void)dim_sym(alg, "past", 0);
    ck_assert_int_eq(dim_usual_lo(alg, D("b*s + past")), 1);
    ck_assert_int_eq(D("b*s")->lo, 0);
    ck_assert(!alg_assume_ge(alg, D("s"), D("2"), "two"));
    ck_assert(!alg_assume_ge(alg, D("past"), D("1"), "a past"));
    ck_assert(!alg_assume_ge(alg, D("b"), D("s"), "order"));
    ck_assert_int_eq(alg_equations(alg, &e), 0);
    ck_assert(alg_assume_ge(alg, D("b + s + t"), D("1"), "any"));
    ck_assert(alg_assume_ge(alg, D("-1"), D("-b"), "sign"));
    ck_assert_int_eq(alg_equations(alg, &e), 1);
    ck_assert_str_eq(e[0].why, "any");
    ck_assert_ptr_eq(dim_min(alg, D("b"), D("1")), D("1"));
    ck_assert(alg_assume_ge(alg, D("s*t"), D("1"), "product"));
    ck_assert_int_eq(alg_equations(alg, &e), 3);
}
END_TEST

/* n*a = n*b is taken for a = b, and checked as such. */
START_TEST(divided_equations)
{
    const struct equation *e;
    ck_assert_int_eq(alg_equate(alg, D("4*n*a"), D("4*n*b"), "rows"), EQ_ADDED);
    same("a", "b");
    ck_assert_int_eq(alg_equations(alg, &e), 1);
    ck_assert_str_eq(dim_str(arena, e[0].left), "a");
    ck_assert_str_eq(dim_str(arena, e[0].right), "b");
    ck_assert_int_eq(alg_equate(alg, D("m"), D("0"), ""), EQ_ADDED);
    same("m", "0");
    ck_assert_int_eq(alg_equate(alg, D("k*l + k"), D("0"), ""), EQ_ADDED);
    ck_assert_int_eq(alg_equate(alg, D("k*l"), D("-k"), ""), EQ_KNOWN);
    ck_assert_int_eq(alg_equate(alg, D("4*h"), D("5*h"), ""), EQ_ADDED);
    same("h", "0");
}
END_TEST

START_TEST(text_form)
{
    static const char *const text[] = {
        "2*B*(S + P) + 1", "-S/4",  "-(S + 3)/4 - 2",  "64 - S", "min(S, 64)*B", "(S/B)/7",         "`a b`*2",
        "`x\\60y`",        "`min`", "max(S - P, 0)/3", "0",      "-5",           "seq_len.1*past$", "(S*B)/(P + 7)",
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        ck_assert_ptr_eq(D(dim_str(arena, D(text[i]))), D(text[i]));
    const struct dim *odd = dim_sym(alg, "a+b \"`\\", 1);
    ck_assert_ptr_eq(D(dim_str(arena, odd)), odd);
    ck_assert_ptr_eq(dim_sym(alg, "batch#1", 1), D("batch#1"));
    ck_assert_ptr_eq(D("past_len + len"), dim_add(alg, D("past_len"), D("len")));
    ck_assert_str_eq(dim_str(arena, D("P + S")), "P + S");
}
END_TEST

START_TEST(bad_text)
{
    static const char *const text[] = {
        "", "1 +", "(S", "S)", "5/0", "S%0", "99999999999999999999", "2B", "f(S)", "min(S", "`a", "`\\zz`", "`\\00`", "S T", "*S", "min()",
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const char *error = NULL;
        ck_assert_msg(dim_parse(alg, text[i], 1, &error) == NULL && error != NULL, "%s", text[i]);
    }
    char deep[10001];
    memset(deep, '(', 10000);
    deep[10000] = 0;
    const char *error = NULL;
    ck_assert(dim_parse(alg, deep, 1, &error) == NULL && error != NULL);
}
END_TEST

START_TEST(coefficient_overflow_fails)
{
    (void)dim_mul(alg, D("9223372036854775807*S"), D("2"));
}
END_TEST

/* The sum of n symbols, from or to the first. */
static const struct dim *sum_of(int n, bool backwards)
{
    const struct dim *sum = dim_int(alg, 0);
    for (int i = 0; i < n; i++)
        sum = dim_add(alg, sum, dim_sym(alg, arena_printf(arena, "s%d", backwards ? n - 1 - i : i), 0));
    return sum;
}

/* Sums of many terms leave their blocks to others. */
START_TEST(long_sums)
{
    const struct dim *two = dim_int(alg, 2), *first = dim_sym(alg, "s0", 0);
    for (int n = 62; n <= 1024; n += n < 67 ? 1 : 319) {
        const struct dim *sum = sum_of(n, false), *twice = dim_add(alg, sum, sum);
        ck_assert(sum == sum_of(n, true));
        ck_assert(twice == dim_mul(alg, sum, two) && dim_quotient(alg, twice, two) == sum && dim_div(alg, twice, two) == sum);
        ck_assert(dim_equals(dim_sub(alg, twice, dim_mul(alg, two, sum)), 0) && dim_ge(alg, sum, first) && !dim_ge(alg, first, sum));
        ck_assert(dim_quotient(alg, dim_mul(alg, sum, first), first) == sum);
    }
}
END_TEST

START_TEST(too_long_sum_fails)
{
    (void)sum_of(1025, false);
}
END_TEST

START_TEST(bindings)
{
    struct bindings b = {0};
    int64_t value = -1;
    ck_assert(!dim_eval(D("B*S"), &b, &value));
    bindings_set(arena, &b, "B", 3);
    bindings_set(arena, &b, "S", 5);
    bindings_set(arena, &b, "S", 6);
    ck_assert(dim_eval(D("B*S + S/4 + min(B, 2)"), &b, &value));
    ck_assert_int_eq(value, 21);
    bindings_set(arena, &b, "S", INT64_MAX);
    ck_assert(!dim_eval(D("B*S"), &b, &value));
    const char *name[4];
    ck_assert_int_eq(dim_symbols(D("B*S + S/4"), name, 4), 2);
    ck_assert(dim_uses(D("min(B, S)"), "S") && !dim_uses(D("min(B, S)"), "T"));
}
END_TEST

/* ---- equations ---- */

static enum equate equate(const char *a, const char *b)
{
    return alg_equate(alg, D(a), D(b), "test");
}

START_TEST(equation_drops_a_clamp)
{
    const struct dim *old = D("3*min(S, 64) + 1");
    ck_assert_int_eq(equate("min(S, 64)", "S"), EQ_ADDED);
    same("min(S, 64)", "S");
    same("min(S, 128)", "S");
    ck_assert_ptr_eq(dim_rewrite(alg, old), D("3*S + 1"));
    ck_assert_int_eq(equate("min(S, 64)", "S"), EQ_KNOWN);
    const struct equation *list;
    ck_assert_int_eq(alg_equations(alg, &list), 1);
    ck_assert_str_eq(list[0].why, "test");
}
END_TEST

START_TEST(equation_raises_a_fact)
{
    ck_assert_int_eq(equate("min(S, 64)", "64"), EQ_ADDED);
    (void)dim_sym(alg, "S", 1);
    same("max(S - 32, 0)", "S - 32");
    ck_assert_ptr_ne(D("max(S - 65, 0)"), D("S - 65"));
}
END_TEST

START_TEST(equation_replaces_a_product)
{
    ck_assert_int_eq(equate("1 + (h/8)*(w/8)", "17"), EQ_ADDED);
    same("(h/8)*(w/8)", "16");
    same("B*(w/8)*(h/8)*64 + h/8", "1024*B + h/8");
    ck_assert_int_eq(equate("h", "32"), EQ_ADDED);
    same("w/8", "4");
}
END_TEST

START_TEST(equation_replaces_the_composite_name)
{
    const struct dim *total = D("total"), *sum = D("past + seq");
    ck_assert_int_eq(alg_equate(alg, total, sum, "x"), EQ_ADDED);
    ck_assert_ptr_eq(D("2*total"), D("2*past + 2*seq"));
    ck_assert_ptr_eq(dim_rewrite(alg, total), sum);
    teardown();
    setup();
    sum = D("past + seq");
    total = D("total");
    ck_assert_int_eq(alg_equate(alg, sum, total, "x"), EQ_ADDED);
    ck_assert_ptr_eq(dim_rewrite(alg, total), sum);
}
END_TEST

START_TEST(equation_says_nothing_of_inputs_by_data)
{
    (void)dim_data_sym(alg, "rows");
    ck_assert_int_eq(equate("B", "rows/4"), EQ_ADDED);
    same("rows/4", "B");
    ck_assert_str_eq(dim_str(arena, dim_rewrite(alg, D("B"))), "B");
    ck_assert_int_eq(equate("S*T", "2*rows"), EQ_ADDED);
    ck_assert_str_eq(dim_str(arena, dim_rewrite(alg, D("S*T"))), "S*T");
}
END_TEST

START_TEST(equations_settle)
{
    ck_assert_int_eq(equate("a", "b + c"), EQ_ADDED);
    ck_assert_int_eq(equate("b", "c"), EQ_ADDED);
    same("a", "2*c");
    ck_assert_int_eq(equate("a", "8"), EQ_ADDED);
    same("b", "4");
    ck_assert_int_eq(equate("c", "5"), EQ_FALSE);
}
END_TEST

/* A quotient of a symbol that an equation replaced: no rewriting of the sum ends where it began. */
START_TEST(quotients_from_before_an_equation)
{
    const struct dim *t = D("t/4"), *s = D("s/4"), *two = dim_int(alg, 2);
    alg_equate(alg, D("t"), D("4*(t/4)"), "test");
    alg_equate(alg, D("s"), D("4*(s/4)"), "test");
    alg_equate(alg, s, t, "test");
    ck_assert_ptr_eq(dim_add(alg, t, two), dim_add(alg, s, two));
}
END_TEST

START_TEST(equation_kinds)
{
    ck_assert_int_eq(equate("4", "5"), EQ_FALSE);
    ck_assert_int_eq(equate("4", "4"), EQ_KNOWN);
    ck_assert_int_eq(equate("2*q", "7"), EQ_FALSE);
    ck_assert_int_eq(equate("S", "0"), EQ_FALSE);
    ck_assert_int_eq(equate("B*k", "4*B"), EQ_ADDED);
    same("k", "4");
    ck_assert_int_eq(equate("u%4", "0"), EQ_ADDED);
    same("4*(u/4)", "u");
    same("12*(u/4)", "3*u");
    ck_assert_ptr_eq(dim_quotient(alg, D("u"), D("4")), D("u/4"));
    ck_assert_int_eq(equate("2*x + 2*y", "8"), EQ_ADDED);
    same("x + y", "4");
    ck_assert_int_eq(equate("m*n", "i*j"), EQ_ADDED);
    same("m*n", "i*j");
    ck_assert_int_eq(equate("max(Z, 1)", "Z"), EQ_KNOWN);
}
END_TEST

/* ---- random expressions ---- */

struct tree {
    int op;
    int64_t k;
    const char *name;
    struct tree *a, *b;
};

static unsigned seed;

static int pick(int n)
{
    seed = seed * 1103515245u + 12345u;
    return (int)((seed >> 16) % (unsigned)n);
}

static struct tree *grow(int depth)
{
    static const char *const names[] = {"B", "S", "P"};
    struct tree *t = NEW(arena, struct tree);
    t->op = depth == 0 ? pick(2) : 2 + pick(7);
    t->k = pick(13) - 3;
    t->name = names[pick(3)];
    if (t->op >= 2)
        t->a = grow(depth - 1);
    if (t->op >= 2)
        t->b = grow(t->op == 5 || t->op == 6 ? 0 : depth - 1);
    if (t->op == 5 || t->op == 6) {
        t->b->op = 0;
        t->b->k = 1 + pick(6);
    }
    return t;
}

static const struct dim *build(const struct tree *t)
{
    if (t->op < 2)
        return t->op == 0 ? dim_int(alg, t->k) : dim_sym(alg, t->name, 1);
    const struct dim *a = build(t->a), *b = build(t->b);
    switch (t->op) {
    case 2: return dim_add(alg, a, b);
    case 3: return dim_sub(alg, a, b);
    case 4: return dim_mul(alg, a, b);
    case 5: return dim_div(alg, a, b);
    case 6: return dim_mod(alg, a, b);
    case 7: return dim_min(alg, a, b);
    default: return dim_max(alg, a, b);
    }
}

static int64_t value_of(const struct tree *t, const struct bindings *bound)
{
    if (t->op < 2)
        return t->op == 0 ? t->k : *bindings_get(bound, t->name);
    int64_t a = value_of(t->a, bound), b = value_of(t->b, bound);
    switch (t->op) {
    case 2: return a + b;
    case 3: return a - b;
    case 4: return a * b;
    case 5: return i64_floor_div(a, b);
    case 6: return i64_floor_mod(a, b);
    case 7: return a < b ? a : b;
    default: return a > b ? a : b;
    }
}

static void check_tree(const struct tree *t)
{
    const struct dim *d = build(t);
    char *shown = dim_str(arena, d);
    ck_assert_msg(D(shown) == d, "%s parses to another pointer", shown);
    ck_assert_ptr_eq(dim_rewrite(alg, d), d);
    for (int trial = 0; trial < 12; trial++) {
        struct bindings b = {0};
        bindings_set(arena, &b, "B", 1 + pick(trial < 4 ? 3 : 40));
        bindings_set(arena, &b, "S", 1 + pick(trial < 4 ? 3 : 40));
        bindings_set(arena, &b, "P", pick(trial < 4 ? 3 : 40));
        int64_t expected = value_of(t, &b), found = 0;
        ck_assert(dim_eval(d, &b, &found));
        ck_assert_msg(found == expected, "%s is %lld, not %lld", shown, (long long)found, (long long)expected);
        ck_assert_msg(d->lo <= found && found <= d->hi, "%s is %lld, outside %lld .. %lld", shown, (long long)found, (long long)d->lo,
                      (long long)d->hi);
    }
}

START_TEST(random_expressions)
{
    for (int i = 0; i < 600; i++) {
        teardown();
        setup();
        seed = (unsigned)i * 7919u + 1u;
        check_tree(grow(1 + pick(4)));
    }
}
END_TEST

/* a = b becomes a rule that must hold wherever the equation does. */
START_TEST(random_equations)
{
    for (int i = 0; i < 1500; i++) {
        teardown();
        setup();
        seed = (unsigned)i * 104729u + 5u;
        struct tree *left = grow(1 + pick(2)), *right = grow(pick(2)), *t = grow(3);
        enum equate result = alg_equate(alg, build(left), build(right), "random");
        const struct dim *d = build(t);
        for (int64_t v = 0; v < 6 * 6 * 6; v++) {
            struct bindings b = {0};
            bindings_set(arena, &b, "B", 1 + v % 6);
            bindings_set(arena, &b, "S", 1 + v / 6 % 6);
            bindings_set(arena, &b, "P", v / 36);
            int64_t found = 0;
            if (value_of(left, &b) != value_of(right, &b))
                continue;
            ck_assert_int_ne(result, EQ_FALSE);
            ck_assert(dim_eval(d, &b, &found));
            ck_assert_msg(found == value_of(t, &b), "case %d: %s", i, dim_str(arena, d));
            ck_assert_msg(d->lo <= found && found <= d->hi, "case %d: %s", i, dim_str(arena, d));
        }
    }
}
END_TEST

/* ---- types ---- */

START_TEST(types)
{
    static const char *const text[] = {"f32[B, S, 64]", "i64[]", "bool[min(S, 4), `a b`]", "none[]", "bf16[P + S]"};
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        struct type t, again;
        const char *error = NULL;
        ck_assert_msg(type_parse(alg, text[i], 1, &t, &error), "%s: %s", text[i], error);
        ck_assert(type_parse(alg, type_str(arena, &t), 1, &again, &error) && type_eq(&t, &again));
    }
    static const char *const bad[] = {"f32", "f32[", "f33[1]", "f32[1", "f32[1 2]", "f32[1,2,3,4,5,6,7,8,9]", "f32[1]x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct type t;
        const char *error = NULL;
        ck_assert_msg(!type_parse(alg, bad[i], 1, &t, &error) && error, "%s", bad[i]);
    }
    struct type t;
    const char *error;
    ck_assert(type_parse(alg, "f32[B, S, 64]", 1, &t, &error));
    ck_assert_ptr_eq(type_elements(alg, &t), D("64*B*S"));
    ck_assert_int_eq(dtype_parse("f16"), DT_F16);
    ck_assert_uint_eq(dtype_size((enum dtype)99), 0);
}
END_TEST

START_TEST(products_of_sizes)
{
    int64_t out = 7, big[] = {INT64_MAX, 2}, zero[] = {INT64_MAX, 0, 1}, beside[] = {INT64_MAX, 0, 2}, negative[] = {0, -1},
            plain[] = {2, 3, 4};
    ck_assert(!type_sizes_product(big, 2, &out) && !type_sizes_product(negative, 2, &out));
    ck_assert(!type_sizes_product(beside, 3, &out));
    ck_assert_int_eq(out, 7);
    ck_assert(type_sizes_product(zero, 3, &out) && out == 0);
    ck_assert(type_sizes_product(plain, 3, &out) && out == 24);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dim");
    TCase *t = unit_case(suite, "dim", setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, identities);
    tcase_add_test(t, comparison);
    tcase_add_test(t, quotients);
    tcase_add_test(t, any_size_may_be_zero);
    tcase_add_test(t, usual_sizes);
    tcase_add_test(t, divided_equations);
    tcase_add_test(t, text_form);
    tcase_add_test(t, bad_text);
    tcase_add_exit_test(t, coefficient_overflow_fails, 1);
    tcase_add_test(t, long_sums);
    tcase_add_exit_test(t, too_long_sum_fails, 1);
    tcase_add_test(t, bindings);
    tcase_add_test(t, equation_drops_a_clamp);
    tcase_add_test(t, equation_raises_a_fact);
    tcase_add_test(t, equation_replaces_a_product);
    tcase_add_test(t, equation_replaces_the_composite_name);
    tcase_add_test(t, equation_says_nothing_of_inputs_by_data);
    tcase_add_test(t, equations_settle);
    tcase_add_test(t, quotients_from_before_an_equation);
    tcase_add_test(t, equation_kinds);
    tcase_add_test(t, random_expressions);
    tcase_add_test(t, random_equations);
    tcase_add_test(t, types);
    tcase_add_test(t, products_of_sizes);
    return unit_run(suite);
}
