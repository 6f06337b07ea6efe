/* test_split_text.c: the text of splits and placements: formulas and lists, and what is neither. */
#include "algebra/algebra.h"
#include "tests/unit/main.h"

#include <string.h>

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

static const struct dim *I(int64_t k)
{
    return dim_int(alg, k);
}

static const struct split *parse(const char *text)
{
    const char *error = NULL;
    const struct split *s = split_parse(alg, text, &error);
    ck_assert_msg(s != NULL, "%s: %s", text, error);
    return s;
}

/* What makes the list is its text, and the text of both is read as the same split. */
START_TEST(formulas)
{
    static const char *const both[][2] = {
        {"t3:balanced(8)", "t3:8:0-3/3-6/6-8"},
        {"t3:balanced(4);inner=2", "t3:8:0-4/4-6/6-8"},
        {"t2:balanced(2);outer=4", "t2:8:0-1,2-3,4-5,6-7/1-2,3-4,5-6,7-8"},
        {"t2:balanced(4)|balanced(2)|balanced(2)", "t2:8:0-2,4-5,6-7/2-4,5-6,7-8"},
        {"t2:balanced(2)|balanced(2)|balanced(4)", "t2:balanced(2);outer=2|balanced(4)"},
        {"t2:balanced(4)|whole(2)", "t2:6:0-2,4-6/2-6"},
        {"t2:whole(2)|balanced(4)", "t2:6:0-4/0-2,4-6"},
        {"t4:balanced(4)/2;inner=4", "t4:8:0-4/0-4/4-8/4-8"},
        {"t4:balanced(12)/4", "t4:3:0-1/0-2/1-3/2-3"},
        {"t4:balanced(2)/2", "t4:1:0-1/0-1/-/-"},
        {"t2:balanced(3);outer=3*B;inner=4*(S+1)", "t2:9;outer=B;inner=4*S+4:0-2,3-5,6-8/2-3,5-6,8-9"},
        {"t2:8:0-5/3-8", "t2:8:0-5/3-8"},
        {"t2:4:0-1/2-4", "t2:4:0-1/2-4"},
        {"t2:8:0-5/4-8", "t2:8:0-5/4-8"},
        {"t2:8:0-2,3-4/2-3,4-8", "t2:8:0-2,3-4/2-3,4-8"},
    };
    for (size_t i = 0; i < sizeof both / sizeof *both; i++) {
        const struct split *s = parse(both[i][0]);
        ck_assert_ptr_eq(parse(both[i][1]), s);
        ck_assert_str_eq(split_str(arena, s), both[i][0]);
    }
    for (int ranks = 2; ranks <= PLAN_RANKS; ranks *= 2) {
        const struct split *heads = split_scale(alg, split_image(alg, split_even(alg, ranks, I(128)), 16), I(1), I(64));
        ck_assert(strlen(split_str(arena, split_even(alg, ranks, I(128256)))) < 24 && strlen(split_str(arena, heads)) < 48);
        ck_assert_ptr_eq(parse(split_str(arena, heads)), heads);
    }
}
END_TEST

START_TEST(text_after_an_equation)
{
    const struct split *s = parse("t2:balanced(total)");
    ck_assert_ptr_eq(parse("t2:balanced(total)"), s);
    ck_assert(alg_equate(alg, dim_sym(alg, "total", 1), dim_parse(alg, "past + step", 1, NULL), "sizes") == EQ_ADDED);
    ck_assert_ptr_eq(parse("t2:balanced(total)"), parse("t2:balanced(past+step)"));
}
END_TEST

START_TEST(texts_of_placements)
{
    ck_assert_str_eq(placement_texts(alg, "R S(1; t2:8:0-4/4-8) S(0;*) -> S(2; t2:4;outer=B;inner=S:0-2/2-4) P(sum)"),
                     "R S(1; t2:balanced(8)) S(0;*) -> S(2; t2:balanced(4);outer=B;inner=S) P(sum)");
    ck_assert_str_eq(placement_outlines(arena, "R S(1; t2:balanced(4);inner=2*(S+1)) -> P(sum) S(0; t2:4:0-1/1-4)"),
                     "R S(1) -> P(sum) S(0)");
}
END_TEST

START_TEST(bad_text)
{
    static const char *const text[] = {
        "",
        "t",
        "t0:4:",
        "t2:4:0-2",
        "t2:4:0-2/2-5",
        "t2:4:2-2/0-4",
        "t2:4:3-1/-",
        "x2:4:-/-",
        "t2:whole(4",
        "t2:whole(-4)",
        "t2:4:0-2/2-4/",
        "t99999999999:4:0-4",
        "t2:4;outer=:0-2/2-4",
        "t2:balanced()",
        "t2:4:0-2/2-4 ",
        "t2:99999999999999999999:-/-",
        "t2:4;outer=4611686018427387904:0-1/1-4",
        "t4097:balanced(4)",
        "t2:balanced(4)/3",
        "t2:balanced(4)/0",
        "t2:balanced(S)/2",
        "t2:balanced(4)|",
        "t2:balanced(4)|0-4",
        "t2:balanced(4)balanced(4)",
        "t2:balanced(4)|balanced(S)",
        "t2:balanced(9223372036854775807);inner=2",
        "t2:balanced(9223372036854775807)|balanced(2)",
        ("t2:whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|whole(1)|"
         "whole(1)|whole(1)|whole(1)"),
    };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++) {
        const char *error = NULL;
        ck_assert_msg(split_parse(alg, text[i], &error) == NULL && error != NULL, "%s", text[i]);
    }
    static const char *const placement[] = {
        "", "Q", "R(", "S()", "S(1)", "S(9; t2:4:0-2/2-4)", "P(avg)", "P(none)", "S(1; t2:4:0-2/2-4",
    };
    for (size_t i = 0; i < sizeof placement / sizeof placement[0]; i++) {
        struct placement p;
        const char *error = NULL;
        ck_assert_msg(!placement_parse(alg, placement[i], &p, &error) && error != NULL, "%s", placement[i]);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("split_text");
    TCase *t = unit_case(suite, "split_text", setup, teardown);
    tcase_add_test(t, formulas);
    tcase_add_test(t, text_after_an_equation);
    tcase_add_test(t, texts_of_placements);
    tcase_add_test(t, bad_text);
    return unit_run(suite);
}
