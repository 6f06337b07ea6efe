/* Calls of tools in answers: what is one in each form, what stays content, and that an answer read as it grows is read as a whole one. */
#include "chat/chat.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static json_t *tools;

static void setup(void)
{
    arena = arena_new();
    tools = json_loads("[{\"function\": {\"name\": \"f\"}}, {\"function\": {\"name\": \"g-2\"}}]", 0, NULL);
}

static void teardown(void)
{
    json_decref(tools);
    arena_free(arena);
}

static struct chat_calls start(enum chat_calls_form form, bool single)
{
    return (struct chat_calls){.arena = arena, .form = form, .tools = tools, .single = single, .content.arena = arena};
}

/* Content, then each call. */
static const char *result(const struct chat_calls *c)
{
    struct text t = text_built(&c->content);
    const char *out = arena_strndup(arena, t.n ? t.at : "", t.n);
    for (int i = 0; i < c->call.n; i++)
        out = arena_printf(arena, "%s|%s %s", out, c->call.at[i].name, c->call.at[i].arguments);
    return out;
}

enum { T = CHAT_CALLS_TAGGED, M = CHAT_CALLS_MISTRAL, P = CHAT_CALLS_PLAIN, N = CHAT_CALLS_NONE };
static const struct {
    int form;
    const char *answer, *result;
} cases[] = {
    {T, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1.10}}\n</tool_call>", "|f {\"a\": 1.10}"},
    {T,
     "Well.\n<tool_call>{\"arguments\":{},\"name\":\"g-2\"}</tool_call>"
     "\n<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"}</tool_call>\\\"{\"}}</tool_call>\n",
     "Well.|g-2 {}|f {\"x\":\"}</tool_call>\\\"{\"}"},
    {T, "<tool_call>{\"name\": \"f\", \"parameters\": {\"b\": [{}]}}", "|f {\"b\": [{}]}"},
    {T, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 2}\"}</tool_call> and so on", " and so on|f {\"a\": 2}"},
    {T, "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"h\", \"arguments\": {}}</tool_call>"},
    {T, "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": 5}</tool_call>"},
    {T, "<tool_call>{name: f}</tool_call> x", "<tool_call>{name: f}</tool_call> x"},
    {T, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": ", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "},
    {T, "a <tool b <too", "a <tool b <too"},
    {T, "<tool_call>f()</tool_call>", "<tool_call>f()</tool_call>"},
    {T, "{\"name\": \"f\", \"arguments\": {}}", "{\"name\": \"f\", \"arguments\": {}}"},
    {T, "  text  ", "  text  "},
    {T, "<tool_call>", "<tool_call>"},
    {M, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": []}}, {\"name\": \"g-2\", \"arguments\": {}}]", "|f {\"a\": []}|g-2 {}"},
    {M, "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"h\", \"arguments\": {}}]",
     "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {}}, {\"name\": \"h\", \"arguments\": {}}]"},
    {M, "Yes[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g-2[CALL_ID]abc[ARGS]{}", "Yes|f {\"a\": 1}|g-2 {}"},
    {M, "[TOOL_CALLS]f{\"a\": 1}", "|f {\"a\": 1}"},
    {M, "[TOOL_CALLS]h{\"a\": 1}", "[TOOL_CALLS]h{\"a\": 1}"},
    {M, "[TOOL_CALLS]f[ARGS]x", "[TOOL_CALLS]f[ARGS]x"},
    {M, "[TOOL_CALLS][]", "[TOOL_CALLS][]"},
    {M, "[TOOL [TOOL_CALLS", "[TOOL [TOOL_CALLS"},
    {P, "{\"name\": \"f\", \"parameters\": {\"a\": \"b\"}}", "|f {\"a\": \"b\"}"},
    {P, " <|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g-2\", \"parameters\": {\"n\": null}}",
     "|f {}|g-2 {\"n\": null}"},
    {P, "[{\"name\": \"f\", \"arguments\": {}}]", "|f {}"},
    {P, "See: {\"name\": \"f\", \"parameters\": {}}", "See: {\"name\": \"f\", \"parameters\": {}}"},
    {P, "{\"name\": \"x\", \"parameters\": {}}", "{\"name\": \"x\", \"parameters\": {}}"},
    {P, "{\"answer\": 5}", "{\"answer\": 5}"},
    {P, "<|python_tag|>print(1)", "<|python_tag|>print(1)"},
    {P, "<|python", "<|python"},
    {N, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>"},
};

START_TEST(answers)
{
    const struct text t = text_of(cases[_i].answer);
    struct chat_calls whole = start((enum chat_calls_form)cases[_i].form, false), grown = whole;
    chat_calls_read(&whole, t, true);
    ck_assert_str_eq(result(&whole), cases[_i].result);
    for (size_t n = 0; n <= t.n; n++) {
        chat_calls_read(&grown, (struct text){t.at, n}, false);
        ck_assert_msg(grown.call.n <= whole.call.n && grown.content.to.n <= whole.content.to.n, "more than is there, at %zu", n);
    }
    chat_calls_read(&grown, t, true);
    ck_assert_str_eq(result(&grown), cases[_i].result);
}
END_TEST

/* A call is there as soon as it is whole. */
START_TEST(single)
{
    const char *one = "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>", *two = arena_printf(arena, "%s\n%s", one, one);
    struct chat_calls c = start(CHAT_CALLS_TAGGED, true);
    chat_calls_read(&c, text_of(one), false);
    ck_assert_str_eq(result(&c), "|f {}");
    chat_calls_read(&c, text_of(two), true);
    ck_assert_str_eq(result(&c), "|f {}");
}
END_TEST

int main(void)
{
    Suite *s = suite_create("calls");
    TCase *c = unit_case(s, "calls", setup, teardown);
    tcase_add_loop_test(c, answers, 0, COUNT(cases));
    tcase_add_test(c, single);
    return unit_run(s);
}
