/* Chat templates: places of faults, marks of what is untrusted, limits; what Jinja2 is not needed to say. */
#include "jinja/jinja.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static json_t *variables;
static struct jinja_fault fault;

static void setup(void)
{
    arena = arena_new();
    variables = json_pack("{s:s, s:s, s:[s, s], s:{s:s}, s:s, s:s}", "mine", "trusted", "user", "A<b>\xc3\xa9", "words", "x y", "z",
                          "keyed", "k", "v", "digits", "42", "percent", "%%");
    ck_assert_ptr_nonnull(variables);
}

static void teardown(void)
{
    json_decref(variables);
    arena_free(arena);
}

static bool render(const char *template, struct jinja_text *out)
{
    const char *const untrusted[] = {"user", "words", "keyed", "digits", "percent", NULL};
    struct jinja *t = jinja_parse(arena, template, strlen(template), &fault);
    return t && jinja_render(t, arena, variables, untrusted, out, &fault);
}

/* The text with what is untrusted between braces. */
static const char *marked(const char *template)
{
    struct jinja_text t;
    ck_assert_msg(render(template, &t), "%s: %s", template, fault.sentence);
    char *out = arena_alloc(arena, t.n * 3 + 1);
    size_t n = 0;
    int range = 0;
    for (size_t i = 0; i <= t.n; i++) {
        if (range < t.ranges && i == t.untrusted[range].to) {
            out[n++] = '}';
            range++;
        }
        if (range < t.ranges && i == t.untrusted[range].from)
            out[n++] = '{';
        if (i < t.n)
            out[n++] = t.at[i];
    }
    ck_assert_int_eq(range, t.ranges);
    return out;
}

/* A template, and its text; NULL: it is refused. */
static const char *const cases[][2] = {
    {"a{{ user }}b", "a{A<b>\xc3\xa9}b"},
    {"{{ mine }}", "trusted"},
    {"{{ 'p' ~ user ~ 's' }}", "p{A<b>\xc3\xa9}s"},
    {"{{ 'p' + user }}", "p{A<b>\xc3\xa9}"},
    {"{{ user[0] }}{{ user[-1] }}{{ user[1:3] }}{{ user[::-1] }}", "{A\xc3\xa9<b\xc3\xa9>b<A}"},
    {"{{ user * 2 }}",
     "{A<b>\xc3\xa9"
     "A<b>\xc3\xa9}"},
    {"{{ user | upper }}{{ user.lower() }}",
     "{A<B>\xc3\x89"
     "a<b>\xc3\xa9}"},
    {"{{ 'x-y' | replace('-', user) }}", "x{A<b>\xc3\xa9}y"},
    {"{{ user | replace('<', '(') }}", "{A}({b>\xc3\xa9}"},
    {"{{ words | join(', ') }}", "{x y}, {z}"},
    {"{{ words | join(user) }}", "{x yA<b>\xc3\xa9z}"},
    {"{{ words[0].split() }}", "['{x}', '{y}']"},
    {"{{ '-'.join(words[0]) }}", "{x}-{ }-{y}"},
    {"{{ (' ' ~ user ~ ' ') | trim }}", "{A<b>\xc3\xa9}"},
    {"{{ user.strip('A') }}", "{<b>\xc3\xa9}"},
    {"{{ {'q': user} | tojson }}", "{\"q\": \"{A<b>\xc3\xa9}\"}"},
    {"{{ user | tojson(ensure_ascii=true) }}", "\"{A<b>\\u00e9}\""},
    {"{{ keyed | tojson }}", "{\"{k}\": \"{v}\"}"},
    {"{% for k, v in keyed.items() %}{{ k }}={{ v }}{% endfor %}", "{k}={v}"},
    {"{{ '%s|%5s' % (user, digits) }}", "{A<b>\xc3\xa9}|   {42}"},
    {"{{ '{}|{:>4}'.format(user, digits) }}", "{A<b>\xc3\xa9}|  {42}"},
    {"{{ user | format }}", "{A<b>\xc3\xa9}"},
    {"{{ user | indent(2, true) }}", "  {A<b>\xc3\xa9}"},
    {"{{ digits.zfill(4) }}{{ digits.center(4) }}", "00{42} {42} "},
    {"{{ mine.center(9, user[0]) }}", "{A}trusted{A}"},
    {"{{ ('{:' ~ user[0] ~ '>3}').format('x') }}", "{AA}x"},
    {"{{ percent % () }}", "{%}"},
    {"{{ digits | int + 1 }}", "43"},
    {"{{ [user] }}", "['{A<b>\xc3\xa9}']"},
    {"{% set x %}<{{ user }}>{% endset %}{{ x | length }}{{ x }}", "7<{A<b>\xc3\xa9}>"},
    {"{% macro m(t) %}<{{ t }}>{% endmacro %}{{ m(user) }}{% call m(mine) %}{% endcall %}", NULL},
    {"{% filter upper %}<{{ user }}>{% endfilter %}", "<{A<B>\xc3\x89}>"},
    {"{{ user | safe + '<' }}", "{A<b>\xc3\xa9}&lt;"},
    {"{{ '' | safe + user }}", "{A&lt;b&gt;\xc3\xa9}"},
    {"{{ user if user == 'A<b>\xc3\xa9' else 1 }}", "{A<b>\xc3\xa9}"},
    {"{{ words | map('upper') | list | last }}{{ words | sort | first }}", "{Zx y}"},
    {"{% set ns = namespace(t='') %}{% for w in words %}{% set ns.t = ns.t ~ w ~ '.' %}{% endfor %}{{ ns.t }}", "{x y}.{z}."},
};

START_TEST(every_way_keeps_marks)
{
    if (cases[_i][1])
        ck_assert_str_eq(marked(cases[_i][0]), cases[_i][1]);
    else
        ck_assert(!render(cases[_i][0], &(struct jinja_text){.n = 0}));
}
END_TEST

START_TEST(faults_have_their_place)
{
    struct jinja_text out;
    ck_assert(!render("one\r\n\xc3\xa9 {{ mine | nosuch }}", &out));
    ck_assert_int_eq(fault.line, 2);
    ck_assert_int_eq(fault.column, 13);
    ck_assert_str_eq(fault.sentence, "the filter 'nosuch' is not supported");
    ck_assert(!render("{% if mine %}\n\n", &out));
    ck_assert_int_eq(fault.line, 1);
    ck_assert(!render("{{ raise_exception('a\x1b[0m') }}", &out));
    ck_assert_str_eq(fault.sentence, "the template raises: a?[0m");
}
END_TEST

/* What a template repeats without end. */
static const char *const piece[] = {"(",  "[",  "{{ {",  "not ",    "- ", "{% if a %}", "{% for a in b %}",
                                    "a.", "a[", "a if ", "a|upper", "a(", "a+"};

START_TEST(hostile_templates_are_refused)
{
    char *text = arena_alloc(arena, 4000000);
    struct jinja_text out;
    size_t n = 3;
    memcpy(text, "{{ ", 3);
    if (piece[_i][0] == '{')
        n = 0;
    for (int i = 0; i < 200000; i++) {
        memcpy(text + n, piece[_i], strlen(piece[_i]));
        n += strlen(piece[_i]);
    }
    struct jinja *t = jinja_parse(arena, text, n, &fault);
    ck_assert(!t || !jinja_render(t, arena, variables, NULL, &out, &fault));
}
END_TEST

/* Values that cost more than the template that makes them. */
static const char *const costly[] = {
    "{% set n = namespace(t=()) %}{% for i in range(9999) %}{% set n.t = (n.t,) %}{% endfor %}{{ {n.t: 1} }}",
    ("{% set n = namespace(a=[], b=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}"
     "{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}"),
    "{% set n = namespace(a=[]) %}{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% endfor %}{{ n.a }}",
    "{{ ('a' * 9000000).strip('b' * 9000000 ~ 'a') }}",
    "{% set t = 'a' * 9000000 %}{% for i in range(99999) %}{{ t.rpartition('b')[0] }}{{ t.removeprefix('b') | length }}{% endfor %}",
};

START_TEST(costly_values_are_refused)
{
    ck_assert(!render(costly[_i], &(struct jinja_text){.n = 0}));
    ck_assert_msg(strstr(fault.sentence, "more than"), "%s", fault.sentence);
}
END_TEST

START_TEST(bytes_that_are_no_text_are_refused)
{
    static const char bad[4][8] = {"\xff", "a\xc3", "\xed\xa0\x80", "\xc0\x80"};
    ck_assert_ptr_null(jinja_parse(arena, bad[_i], strlen(bad[_i]), &fault));
    ck_assert_str_eq(fault.sentence, "the template is not UTF-8");
}
END_TEST

/* Templates are only read when rendered: the same text again, and nothing kept of the variables. */
START_TEST(a_template_serves_many)
{
    const char text[] = "{% for i in range(n) %}{{ loop.index }}{% endfor %}{{ cycler('a', 'b').next() }}";
    struct jinja *t = jinja_parse(arena, text, sizeof text - 1, &fault);
    ck_assert_ptr_nonnull(t);
    for (int i = 0; i < 3; i++) {
        struct jinja_text out;
        json_t *n = json_pack("{s:i}", "n", i);
        ck_assert(jinja_render(t, arena, n, NULL, &out, &fault));
        json_decref(n);
        ck_assert_uint_eq(out.n, (size_t)i + 1);
        ck_assert_int_eq(out.at[i], 'a');
    }
}
END_TEST

START_TEST(variables_that_are_too_deep_are_refused)
{
    json_t *deep = json_array(), *all = json_object();
    for (int i = 0; i < 1500; i++) {
        json_t *outer = json_array();
        json_array_append_new(outer, deep);
        deep = outer;
    }
    json_object_set_new(all, "deep", deep);
    struct jinja *t = jinja_parse(arena, "{{ deep }}", 10, &fault);
    ck_assert(!jinja_render(t, arena, all, NULL, &(struct jinja_text){.n = 0}, &fault));
    ck_assert_ptr_nonnull(strstr(fault.sentence, "nested more than"));
    json_decref(all);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jinja");
    TCase *tests = unit_case(suite, "jinja", setup, teardown);
    tcase_add_loop_test(tests, every_way_keeps_marks, 0, COUNT(cases));
    tcase_add_test(tests, faults_have_their_place);
    tcase_add_loop_test(tests, hostile_templates_are_refused, 0, COUNT(piece));
    tcase_add_loop_test(tests, costly_values_are_refused, 0, COUNT(costly));
    tcase_add_loop_test(tests, bytes_that_are_no_text_are_refused, 0, 4);
    tcase_add_test(tests, a_template_serves_many);
    tcase_add_test(tests, variables_that_are_too_deep_are_refused);
    return unit_run(suite);
}
