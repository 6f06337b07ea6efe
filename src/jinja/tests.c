/* The table of tests, the words after "is". */
#include "jinja/jinja.h"

#include <math.h>

#define TEST(name) static struct jinja_value name(struct jinja_run *r, const struct jinja_call *c)
/* A test of a value alone. */
#define TEST_OF(name, holds)                  \
    TEST(name)                                \
    {                                         \
        const struct jinja_value v = c->self; \
        (void)r;                              \
        return jinja_bool(holds);             \
    }
#define COMPARISON(name, sign, holds)                           \
    TEST(name)                                                  \
    {                                                           \
        int order = jinja_compare(r, c->self, c->arg[0], sign); \
        return jinja_bool(holds);                               \
    }

TEST_OF(test_defined, v.type != JINJA_UNDEFINED)
TEST_OF(test_undefined, v.type == JINJA_UNDEFINED)
TEST_OF(test_none, v.type == JINJA_NONE)
TEST_OF(test_boolean, v.type == JINJA_BOOL)
TEST_OF(test_true, v.type == JINJA_BOOL && v.truth)
TEST_OF(test_false, v.type == JINJA_BOOL && !v.truth)
TEST_OF(test_integer, v.type == JINJA_INT)
TEST_OF(test_float, v.type == JINJA_FLOAT)
TEST_OF(test_number, jinja_is_number(v))
TEST_OF(test_string, v.type == JINJA_STRING)
TEST_OF(test_mapping, v.type == JINJA_DICT)
TEST_OF(test_iterable, jinja_iterable(v) || v.type == JINJA_LOOP)
TEST_OF(test_sequence, jinja_size(v) >= 0 && v.type != JINJA_VIEW)
TEST_OF(test_callable,
        v.type == JINJA_UNDEFINED || v.type == JINJA_MACRO || v.type == JINJA_LOOP || v.type == JINJA_FUNCTION || v.type == JINJA_METHOD ||
            v.type == JINJA_JOINER)
TEST_OF(test_lower, jinja_is_cased(jinja_text_of(r, v), false))
TEST_OF(test_upper, jinja_is_cased(jinja_text_of(r, v), true))

COMPARISON(test_lt, "<", order < 0)
COMPARISON(test_le, "<=", order <= 0)
COMPARISON(test_gt, ">", order == 1)
COMPARISON(test_ge, ">=", order == 0 || order == 1)

TEST(test_eq)
{
    return jinja_bool(jinja_equal(r, c->self, c->arg[0]));
}

TEST(test_ne)
{
    return jinja_bool(!jinja_equal(r, c->self, c->arg[0]));
}

TEST(test_in)
{
    return jinja_bool(jinja_contains(r, c->arg[0], c->self));
}

static bool leaves(struct jinja_run *r, struct jinja_value v, struct jinja_value by, int64_t rest)
{
    return jinja_equal(r, jinja_operate(r, "%", v, by), jinja_int(rest));
}

TEST(test_odd)
{
    return jinja_bool(leaves(r, c->self, jinja_int(2), 1));
}

TEST(test_even)
{
    return jinja_bool(leaves(r, c->self, jinja_int(2), 0));
}

TEST(test_divisibleby)
{
    return jinja_bool(leaves(r, c->self, c->arg[0], 0));
}

/* Python has one object of these, and does not copy others. */
TEST(test_sameas)
{
    struct jinja_value a = c->self, b = c->arg[0];
    if (a.type != b.type)
        return jinja_bool(false);
    if (a.type == JINJA_BOOL || a.type == JINJA_NONE)
        return jinja_bool(a.type == JINJA_NONE || a.truth == b.truth);
    if (a.type == JINJA_INT || a.type == JINJA_FLOAT || a.type == JINJA_STRING || a.type == JINJA_UNDEFINED)
        jinja_fail(r, "the test 'sameas' of a %s is not supported", jinja_type_name(a));
    return jinja_bool(a.list == b.list);
}

static const struct jinja_callable tests[] = {{"!=", "-", 1, test_ne, 0},
                                              {"<", "-", 1, test_lt, 0},
                                              {"<=", "-", 1, test_le, 0},
                                              {"==", "-", 1, test_eq, 0},
                                              {">", "-", 1, test_gt, 0},
                                              {">=", "-", 1, test_ge, 0},
                                              {"boolean", "", 0, test_boolean, 0},
                                              {"callable", "", 0, test_callable, 0},
                                              {"defined", "", 0, test_defined, 0},
                                              {"divisibleby", "num", 1, test_divisibleby, 0},
                                              {"eq", "-", 1, test_eq, 0},
                                              {"equalto", "-", 1, test_eq, 0},
                                              {"even", "", 0, test_even, 0},
                                              {"false", "", 0, test_false, 0},
                                              {"float", "", 0, test_float, 0},
                                              {"ge", "-", 1, test_ge, 0},
                                              {"greaterthan", "-", 1, test_gt, 0},
                                              {"gt", "-", 1, test_gt, 0},
                                              {"in", "seq", 1, test_in, 0},
                                              {"integer", "", 0, test_integer, 0},
                                              {"iterable", "", 0, test_iterable, 0},
                                              {"le", "-", 1, test_le, 0},
                                              {"lessthan", "-", 1, test_lt, 0},
                                              {"lower", "", 0, test_lower, 0},
                                              {"lt", "-", 1, test_lt, 0},
                                              {"mapping", "", 0, test_mapping, 0},
                                              {"ne", "-", 1, test_ne, 0},
                                              {"none", "", 0, test_none, 0},
                                              {"number", "", 0, test_number, 0},
                                              {"odd", "", 0, test_odd, 0},
                                              {"sameas", "other", 1, test_sameas, 0},
                                              {"sequence", "", 0, test_sequence, 0},
                                              {"string", "", 0, test_string, 0},
                                              {"true", "", 0, test_true, 0},
                                              {"undefined", "", 0, test_undefined, 0},
                                              {"upper", "", 0, test_upper, 0}};

const struct jinja_callable *jinja_test(const struct jinja_string *name)
{
    return jinja_row(tests, (int)(sizeof tests / sizeof *tests), name);
}
