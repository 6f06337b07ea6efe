/* Grammars: their texts, refusals, and masks compared with trying every token. */
#include "grammar/grammar.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *arena;
static const char *fault;

static void setup(void)
{
    arena = arena_new();
}

static void teardown(void)
{
    arena_free(arena);
}

static struct automaton *compiled(struct grammar_build *b, int root)
{
    const struct grammar *g = root < 0 ? NULL : grammar_compile(b, root);
    fault = grammar_fault(b);
    ck_assert_msg(!g == !!fault, "a grammar, or a fault");
    return g ? automaton_new(g) : NULL;
}

static struct automaton *of_gbnf(const char *text)
{
    struct grammar_build *b = grammar_begin(arena);
    return compiled(b, grammar_gbnf(b, text, strlen(text)));
}

static struct automaton *of_schema(const char *text)
{
    struct grammar_build *b = grammar_begin(arena);
    struct grammar_json j = grammar_json_new(b);
    json_t *schema = json_loads(text, JSON_DECODE_ANY, NULL);
    ck_assert_ptr_nonnull(schema);
    struct automaton *a = compiled(b, grammar_schema(&j, schema));
    json_decref(schema);
    return a;
}

/* 2: a whole text; 1: the beginning of one; 0: neither. */
static int match(struct automaton *a, const char *text)
{
    int state = AUTOMATON_START;
    for (; *text; text++)
        state = automaton_next(a, state, (uint8_t)*text);
    return state == AUTOMATON_DEAD ? 0 : 1 + automaton_accepts(a, state);
}

struct group {
    const char *grammar;
    const char *texts[12]; /* each after its expected match */
};

static void check(struct automaton *(*of)(const char *), const struct group *g)
{
    struct automaton *a = of(g->grammar);
    ck_assert_msg(a != NULL, "%s: %s", g->grammar, fault);
    for (int i = 0; g->texts[i]; i++)
        ck_assert_msg(match(a, g->texts[i] + 1) == g->texts[i][0] - '0', "%s: %s", g->grammar, g->texts[i]);
    automaton_free(a);
}

/* ---- GBNF ---- */

static const struct group gbnf[] = {
    {"root ::= \"a\"", {"2a", "1", "0b", "0aa"}},
    {"root ::= (\"a\" | \"bc\")* # and so on\n", {"2", "2aabc", "1ab", "0ac"}},
    {"root ::=\n x+ |\n y?\nx ::= [a-c]\ny ::= \"\\\"\"", {"2", "2abc", "2\"", "0a\""}},
    {"root ::= \"x\"{2} \"y\"{1,} \"z\"{,2} [^\\n]{0,1}", {"1xx", "2xxy", "2xxyyyzz", "2xxyzzz", "0xxx", "0xxyzz\n", "0xxyzzzz"}},
    {"root ::= [\\u00e9-\\u20ac] \"\\x41\" .",
     {"2\xc3\xa9"
      "A\xf0\x9f\x98\x80",
      "1\xc3\xa9"
      "A\xf0\x9f",
      "0\xc3\xa8", "1\xe2\x82", "0\xe2\x82\xad",
      "0\xc3\xa9"
      "A\xed\xa0"}},
    {"root ::= \"(\" root \")\" | \"\"", {"2", "2(())", "1(()", "0())"}},
    {"root ::= a a\na ::= b*\nb ::= \"x\"", {"2", "2xxx", "0y"}},
    {"root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"", {"2aaaaaaaaaaaaaaaaaaaaaaaadbcbcbcbcbcbcbcbcbcbcbcbc", "1aad", "0db"}},
    {"root ::= \"a\" (\"bx\" [] | \"c\")", {"1a", "0ab", "2ac"}}, /* no text continues after ab */
    {"root ::= a\na ::= o a \")\" | \"x\"\no ::= \"(\" | \"((\"", {"2((x)", "2((x))", "1(((x)", "2(((x))", "2(((x)))", "0(x))"}},
    {"root ::= a\na ::= o (a \")\")?\no ::= \"((\" | p\np ::= q \"z\"?\nq ::= \"(\" \"w\"?", {"2((", "2(()", "2(", "0()", "2(((())"}},
    {"root ::= a-b\na-b ::= \"q\" | root2\nroot2 ::= [-a]", {"2q", "2-", "2a", "0b"}},
};
static const char *const no_gbnf[][2] = {
    {"", "no rule 'root'"},
    {"root ::= x", "no rule 'x'"},
    {"root ::= root \"a\" | \"b\"", "'root' begins with itself"},
    {"root ::= x? root \"a\" | \"b\"\nx ::= \"x\"", "'root' begins with itself"},
    {"root ::= \"a\" root", "no text of it ever ends"},
    {"root ::= \"a", "line 1: expected \" behind a text"},
    {"\nroot ::= [a", "line 2: expected ] behind"},
    {"root ::= [b-a]", "a range whose first"},
    {"root ::= (\"a\"", "expected )"},
    {"root ::= \"a\"{3,2}", "a first number"},
    {"root ::= \"a\"{999999}", "too large"},
    {"root ::= \"\\q\"", "behind a backslash"},
    {"root ::= \"\\ud800\"", "a character of Unicode"},
    {"root ::= \"a\" <x>", "a part of a rule"},
    {"root = \"a\"", "expected ::="},
    {"root ::= \"a\"\nroot ::= \"b\"", "one definition of 'root'"},
    {"root ::= \"\xff\"", "is not UTF-8"},
};

START_TEST(texts_of_gbnf)
{
    check(of_gbnf, &gbnf[_i]);
}
END_TEST

START_TEST(refused_gbnf)
{
    struct automaton *a = of_gbnf(no_gbnf[_i][0]);
    ck_assert_msg(!a && strstr(fault, no_gbnf[_i][1]), "%s: %s", no_gbnf[_i][0], fault ? fault : "it was taken");
}
END_TEST

/* ---- schemas ---- */

static const struct group schemas[] = {
    {"true", {"2[1,{\"a\":null}]", "2-0.5e+10", "001", "0.5", "0\"\n\"", "2\"\\u00e9\\n\"", "0\"\\ud800"}},
    {"{\"type\": \"object\"}", {"2{}", "2{\"\": []}", "0[", "0{\"a\":1,}"}},
    {"{\"properties\": {\"a\": {\"type\": \"integer\"}, \"b\": {\"type\": \"null\"}, \"c\": {\"type\": \"boolean\"}}, "
     "\"required\": [\"b\"]}",
     {"2{\"b\":null}", "2{\"a\":-3, \"b\":null,\"c\":true}", "0{\"a\":1}", "0{\"b\":null,\"a\"", "0{\"d\"", "0{}"}},
    {"{\"properties\": {\"ab\": {\"type\": \"integer\"}}, \"additionalProperties\": {\"type\": \"string\"}}",
     {"2{\"ab\":1,\"abc\":\"x\"}", "0{\"ab\":\"", "2{\"a\":\"x\",\"\xc3\xa9\":\"\"}", "0{\"\\u0061b\"", "2{}"}},
    {"{\"type\": \"object\", \"required\": [\"x\"]}", {"2{\"x\":[]}", "0{}"}},
    {"{\"type\": [\"integer\", \"null\"], \"minimum\": -12, \"maximum\": 105}",
     {"2-12", "0-13", "2-3", "2105", "0106", "299", "2null", "00123", "0-0"}},
    {"{\"type\": \"integer\", \"exclusiveMinimum\": 0.5, \"exclusiveMaximum\": 3}", {"21", "22", "03", "00"}},
    {"{\"type\": \"number\", \"minimum\": 0, \"maximum\": 1}", {"20", "21", "20.25", "01.", "0-", "02"}},
    {"{\"type\": \"number\", \"exclusiveMinimum\": -2, \"exclusiveMaximum\": 0}", {"2-1", "2-1.5", "1-0", "1-0.0", "2-0.01", "0-2", "01"}},
    {"{\"enum\": [\"x\", \"xy\", 1.5, null, [1, {}]]}", {"2\"x\"", "2\"xy\"", "21.5", "2[1,{}]", "0\"z", "01.6"}},
    {"{\"enum\": [\"x\", 1], \"type\": \"string\"}", {"2\"x\"", "01"}},
    {"{\"const\": \"\xc3\xa9\\\"\"}", {"2\"\xc3\xa9\\\"\"", "0\"e"}},
    {"{\"type\": \"array\", \"items\": {\"type\": \"null\"}, \"minItems\": 1, \"maxItems\": 2}",
     {"0[]", "2[null]", "2[null, null]", "0[null,null,"}},
    {"{\"type\": \"array\", \"prefixItems\": [{\"type\": \"null\"}, {\"type\": \"boolean\"}], \"items\": {\"type\": \"integer\"}}",
     {"2[]", "2[null]", "2[null,true,1,2]", "0[1"}},
    {"{\"type\": \"string\", \"minLength\": 1, \"maxLength\": 2}", {"0\"\"", "2\"\xc3\xa9\\n\"", "0\"abc"}},
    {"{\"type\": \"string\", \"pattern\": \"^a[^\\\"]{2}(\\\\d|x+)$|^z\"}",
     {"2\"a\xc3\xa9y7\"", "2\"abcxx\"", "0\"ab\\\"", "2\"zoo\"", "0\"b"}},
    {"{\"type\": \"string\", \"pattern\": \"b\\\\n\"}", {"2\"abb\\nc\"", "1\"ab", "0\"a\""}},
    {"{\"type\": \"string\", \"pattern\": \"^a.$\"}", {"0\"a\"", "2\"a\\\"\"", "0\"a\n", "2\"a\xe2\x82\xac\""}},
    {"{\"type\": \"string\", \"format\": \"date\"}", {"2\"2024-02-28\"", "0\"2024-02-3", "0\"2024-13"}},
    {"{\"$ref\": \"#/$defs/a~1b\", \"$defs\": {\"a/b\": {\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"array\", \"items\": {\"$ref\": "
     "\"#/$defs/a%2Fb\"}}]}}}",
     {"2null"}},
    {"{\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"array\", \"items\": {\"$ref\": \"#\"}}]}", {"2[null,[[]]]", "01"}},
    {"{\"properties\": {\"a/properties/b\": {\"type\": \"null\"}, \"a\": {\"properties\": {\"b\": {\"type\": \"boolean\"}}}}}",
     {"2{\"a/properties/b\":null,\"a\":{\"b\":true}}", "0{\"a/properties/b\":t"}},
    {"{\"properties\": {\"x\": {\"$ref\": \"#/$defs/i\"}}, \"$defs\": {\"i\": {\"properties\": {\"y\": {\"$ref\": \"#/$defs/i\"}}, "
     "\"required\": [\"y\"]}}}", /* no x ever ends */
     {"2{}", "0{\"", "2{ }"}},
    {"{\"oneOf\": [{\"type\": \"string\"}, {\"type\": \"integer\"}]}", {"21", "2\"\""}},
};
static const char *const no_schemas[][2] = {
    {"{\"not\": {}}", "#: 'not' is not supported"},
    {"{\"properties\": {\"a\": {\"multipleOf\": 2}}}", "#/properties/a: 'multipleOf'"},
    {"{\"items\": {\"uniqueItems\": true}}", "#/items: 'uniqueItems'"},
    {"{\"type\": \"strin\"}", "type: expected object"},
    {"{\"oneOf\": [{\"type\": \"number\"}, {\"type\": \"integer\"}]}", "oneOf: it is supported where"},
    {"{\"anyOf\": [{}], \"properties\": {}}", "beside 'anyOf'"},
    {"{\"anyOf\": []}", "anyOf: expected a list"},
    {"{\"$ref\": \"#/no\"}", "there is no '#/no'"},
    {"{\"$ref\": \"#\"}", "without an end"},
    {"{\"$ref\": \"http://x\"}", "there is no 'http://x'"},
    {"{\"anyOf\": [{\"$ref\": \"#\"}, {\"type\": \"null\"}]}", "begins with itself"},
    {"{\"type\": \"object\", \"properties\": {\"x\": {\"$ref\": \"#\"}}, \"required\": [\"x\"]}", "no text of it ever ends"},
    {"{\"type\": \"string\", \"format\": \"x\"}", "the format 'x'"},
    {"{\"type\": \"string\", \"pattern\": \"(?=a)\"}", "groups that begin with (?"},
    {"{\"type\": \"string\", \"pattern\": \"a\\\\b\"}", "is not supported"},
    {"{\"type\": \"string\", \"pattern\": \"a\", \"minLength\": 2}", "beside 'minLength"},
    {"{\"type\": \"string\", \"minLength\": 3, \"maxLength\": 2}", "below 'minLength'"},
    {"{\"type\": \"string\", \"minLength\": -1}", "minLength: expected"},
    {"{\"type\": \"number\", \"minimum\": 0.5}", "minimum: of numbers"},
    {"{\"type\": \"integer\", \"minimum\": 3, \"maximum\": 2}", "no number is left"},
    {"{\"required\": [\"x\"], \"additionalProperties\": false}", "'x' is no property"},
    {"{\"enum\": [1], \"type\": \"string\"}", "no value is left"},
    {"{\"type\": \"array\", \"prefixItems\": [{}], \"items\": false, \"minItems\": 2}", "more items than"},
    {"{\"type\": \"string\", \"maxLength\": 2000000}", "too large"},
    {"3", "expected an object"},
};

START_TEST(texts_of_schemas)
{
    check(of_schema, &schemas[_i]);
}
END_TEST

START_TEST(refused_schemas)
{
    struct automaton *a = of_schema(no_schemas[_i][0]);
    ck_assert_msg(!a && strstr(fault, no_schemas[_i][1]), "%s: %s", no_schemas[_i][0], fault ? fault : "it was taken");
}
END_TEST

/* ---- masks ---- */

enum { TOKENS = 700, STEPS = 60 };

/* With the grammars' alphabet, so that many fit; some twice, some without text. */
static struct grammar_token *made_tokens(uint64_t *random)
{
    static const char alphabet[] = "{}[]\":, \nab01.-etrufals\\n\xc3\xa9";
    struct grammar_token *token = NEWN(arena, struct grammar_token, TOKENS);
    for (int i = 0; i < TOKENS; i++) {
        char *at = arena_alloc(arena, 6);
        size_t n = (*random = splitmix(*random)) % 5;
        for (size_t k = 0; k < n; k++)
            at[k] = alphabet[(*random = splitmix(*random)) % (sizeof alphabet - 1)];
        token[i] = (struct grammar_token){at, n};
    }
    return token;
}

static bool may_follow(struct automaton *a, const char *text, size_t n, struct grammar_token t)
{
    int state = AUTOMATON_START;
    for (size_t i = 0; i < n + t.n; i++)
        state = automaton_next(a, state, (uint8_t)(i < n ? text[i] : t.at[i - n]));
    return t.n && state != AUTOMATON_DEAD;
}

static const char *const mask_schemas[] = {
    "true",
    ("{\"properties\": {\"a\": {\"type\": \"number\"}, \"ab\": {\"enum\": [\"a\", true]}}, "
     "\"additionalProperties\": {\"type\": \"string\"}}"),
    "{\"anyOf\": [{\"type\": \"null\"}, {\"type\": \"array\", \"items\": {\"$ref\": \"#\"}}, {\"type\": \"string\", \"maxLength\": 5}]}",
};

/* forgets: the automaton forgets its states now and then, as a full one does. */
static void check_masks(const char *schema, uint64_t random, bool forgets)
{
    const struct grammar_token *token = made_tokens(&random);
    const struct token_tree *tree = token_tree_new(arena, token, TOKENS);
    struct automaton *a = of_schema(schema), *other = of_schema(schema);
    struct matcher *m = matcher_new(arena, a);
    char text[6 * STEPS];
    size_t n = 0;
    for (int step = 0; step < STEPS && !matcher_is_last(m); step++) {
        if (forgets && step % 7 == 6)
            automaton_forget(a);
        const uint64_t *mask = matcher_mask(m, tree);
        int64_t allowed[TOKENS], count = 0;
        for (int64_t i = 0; i < TOKENS; i++) {
            bool set = mask[i >> 6] >> (i & 63) & 1;
            ck_assert_msg(set == may_follow(other, text, n, token[i]), "%.*s, then %.*s", (int)n, text, (int)token[i].n, token[i].at);
            if (set)
                allowed[count++] = i;
        }
        if (!count)
            break;
        const struct grammar_token *t = &token[allowed[(random = splitmix(random)) % (uint64_t)count]];
        ck_assert(matcher_take(m, t->at, t->n));
        memcpy(text + n, t->at, t->n);
        n += t->n;
        ck_assert_int_eq(matcher_accepts(m),
                         may_follow(other, text, n - 1, (struct grammar_token){text + n - 1, 1}) &&
                             match(other, arena_strndup(arena, text, n)) == 2);
    }
    automaton_free(a);
    automaton_free(other);
}

START_TEST(masks)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        check_masks(mask_schemas[_i], seed, seed % 2);
}
END_TEST

/* Stacks share what they have in common: states of such grammars do not double with every byte. */
START_TEST(ambiguous)
{
    struct automaton *a = of_gbnf("root ::= x\nx ::= \"a\" x \"b\" | \"a\" x x | \"a\" x \"b\" x | \"a\"");
    ck_assert_ptr_nonnull(a);
    int state = AUTOMATON_START;
    for (int i = 0; i < 201; i++)
        state = automaton_next(a, state, 'a');
    ck_assert(state != AUTOMATON_DEAD && automaton_accepts(a, state) && !automaton_is_full(a));
    automaton_free(a);
}
END_TEST

/* So many ways to read a text take too long: no mask is found. */
START_TEST(too_long)
{
    enum { PARTS = 700, MADE = 20000, LETTERS = 6 };
    struct grammar_token *token = NEWN(arena, struct grammar_token, MADE);
    struct captured text;
    uint64_t random = 1;
    captured_begin(&text);
    (void)fputs("root ::= \"a\"?", text.to);
    for (int i = 0; i < PARTS; i++)
        (void)fprintf(text.to, " ([a-%c]? | \"b\")*", 'b' + i % 20);
    struct automaton *a = of_gbnf(captured_end(&text, arena));
    ck_assert_msg(a != NULL, "%s", fault);
    for (int i = 0; i < MADE; i++) {
        char *at = arena_alloc(arena, LETTERS);
        for (int k = 0; k < LETTERS; k++)
            at[k] = (char)('a' + (random = splitmix(random)) % 21);
        token[i] = (struct grammar_token){at, LETTERS};
    }
    struct matcher *m = matcher_new(arena, a);
    ck_assert_ptr_null(matcher_mask(m, token_tree_new(arena, token, MADE)));
    automaton_free(a);
}
END_TEST

/* A step of such a grammar is given up at a bounded work, and a trial says so before a text waits. */
START_TEST(too_long_a_step)
{
    const char *text = "root ::= (\"a\"?){500} \"a\"{500}", *usual = "root ::= \"a\" [a-z]{1,200}";
    struct grammar_build *b = grammar_begin(arena), *c = grammar_begin(arena);
    const struct grammar *g = grammar_compile(b, grammar_gbnf(b, text, strlen(text)));
    ck_assert_ptr_nonnull(g);
    ck_assert_ptr_nonnull(grammar_trial(g));
    struct automaton *a = automaton_new(g);
    int64_t before = automaton_work(a);
    ck_assert_int_eq(automaton_next(a, AUTOMATON_START, 'a'), AUTOMATON_DEAD);
    ck_assert_int_eq(automaton_given_up(a), 1);
    ck_assert_int_lt(automaton_work(a) - before, 600000);
    struct grammar_token token = {"a", 1};
    ck_assert_ptr_null(matcher_mask(matcher_new(arena, a), token_tree_new(arena, &token, 1)));
    automaton_free(a);
    ck_assert_ptr_null(grammar_trial(grammar_compile(c, grammar_gbnf(c, usual, strlen(usual)))));
}
END_TEST

/* A text of this grammar has an odd length: whoever waits for a rule is kept with all others that do. */
START_TEST(joined)
{
    struct automaton *a = of_gbnf("root ::= x \"b\"\nx ::= \"a\" x x | \"a\"");
    int state = AUTOMATON_START;
    for (int i = 1; i < 40; i++) {
        state = automaton_next(a, state, 'a');
        ck_assert_int_eq(automaton_next(a, state, 'b') != AUTOMATON_DEAD, i % 2);
    }
    automaton_free(a);
}
END_TEST

START_TEST(until_a_tag)
{
    struct grammar_build *b = grammar_begin(arena);
    int rule = grammar_rule(b, "r"), mid = grammar_state(b);
    grammar_until(b, grammar_rule_start(b, rule), "</aa>", mid);
    grammar_skip(b, grammar_literal(b, mid, "x", 1), grammar_rule_end(b, rule));
    struct automaton *a = compiled(b, rule);
    ck_assert_int_eq(match(a, "so</a</aa>\n\nx"), 2);
    ck_assert_int_eq(match(a, "<</aa>x"), 2);
    ck_assert_int_eq(match(a, "</aa x"), 1);
    ck_assert_int_eq(match(a, "</aa>y"), 0);
    automaton_free(a);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("grammar");
    TCase *c = unit_case(s, "grammar", setup, teardown);
    tcase_add_loop_test(c, texts_of_gbnf, 0, COUNT(gbnf));
    tcase_add_loop_test(c, refused_gbnf, 0, COUNT(no_gbnf));
    tcase_add_loop_test(c, texts_of_schemas, 0, COUNT(schemas));
    tcase_add_loop_test(c, refused_schemas, 0, COUNT(no_schemas));
    tcase_add_loop_test(c, masks, 0, COUNT(mask_schemas));
    tcase_add_test(c, ambiguous);
    tcase_add_test(c, joined);
    tcase_add_test(c, too_long);
    tcase_add_test(c, too_long_a_step);
    tcase_add_test(c, until_a_tag);
    return unit_run(s);
}
