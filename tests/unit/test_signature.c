/* The signature of a graph: what a rank file's metadata may say of its inputs and outputs, and the sizes of inputs that bind its symbols.
 */
#include "ir/rank_meta.h"
#include "ir/text/text.h"
#include "op/op.h"
#include "run/session/session.h"
#include "tests/unit/main.h"

#include <string.h>

static struct arena *a;
static void setup(void)
{
    a = arena_new();
}
static void teardown(void)
{
    arena_free(a);
}

/* in: the types of given inputs; with ~ in front it is a state that is kept, -1 is a size that is not known. */
struct trial {
    const char *graph, *in[2], *refused; /* NULL: it is not */
    const char *binds;                   /* S == 4 */
};

#define META(x, y) RANKED("1", x, y)
#define RANKED(ranks, x, y)                                                                                                        \
    "graph g { opset 23 meta \"tpc.plan\" \"1\" meta \"tpc.rank\" \"0\" meta \"tpc.ranks\" \"" ranks "\" meta \"tpc.sums\" \"0\" " \
    "meta \"tpc.overlap\" \"0\" meta \"tpc.weights\" \"0\" " x " " y                                                               \
    " dim S >= 1 input x: f32[S, 6] node n: y: f32[S, 6] = Neg(x) output y }"
#define X(type) "meta \"tpc.input.x\" \"" type "\""
#define Y(type) "meta \"tpc.output.y\" \"" type "\""
#define ASSUMING(text) META(X("f32[S, 6]|R") " meta \"tpc.assume.1\" \"" text "\"", Y("f32[S, 6]|R"))
#define PLAIN(dims, types) "graph g { opset 23 " dims " " types " node n: y: f32[S] = Neg(x) output y }"

static const struct trial trials[] = {
    /* what metadata say */
    {META(X("f32[S, 6]|R"), Y("f32[S, 6]|R")), {"f32[4, 6]"}, NULL, "S == 4"},
    {META(X("f64[S, 6]|R"), Y("f32[S, 6]|R")), {"f32[4, 6]"}, "metadata of input 'x' says f64[S, 6], the graph f32[S, 6]", NULL},
    {META(X("f32[S]|R"), Y("f32[S, 6]|R")), {"f32[4, 6]"}, "metadata of input 'x' says f32[S], the graph f32[S, 6]", NULL},
    {META(X("f32[S, 5]|R"), Y("f32[S, 6]|R")), {"f32[4, 6]"}, "metadata of input 'x' says f32[S, 5], the graph f32[S, 6]", NULL},
    {RANKED("2", X("f32[S, 12]|S(1; t2:12:0-6/6-12)"), Y("f32[S, 6]|R")), {"f32[4, 12]"}, NULL, "S == 4"},
    {RANKED("2", X("f32[2*S, 12]|S(1; t2:12:0-6/6-12)"), Y("f32[S, 6]|R")),
     {"f32[4, 12]"},
     "metadata of input 'x' says f32[2*S, 12]",
     NULL},
    {META(X("f32[S, 6]|R"), Y("i64[S, 6]|R")), {"f32[4, 6]"}, "metadata of output 'y' says i64[S, 6], the graph f32[S, 6]", NULL},
    {META(X("f32[S, 6]|R"), Y("f32[]|R")), {"f32[4, 6]"}, "metadata of output 'y' says f32[], the graph f32[S, 6]", NULL},
    {META("", Y("f32[S, 6]|R")), {"f32[4, 6]"}, "metadata has no entry for input 'x'", NULL},
    {META(X("f32[S, 6]|R"), ""), {"f32[4, 6]"}, "metadata has no entry for output 'y'", NULL},
    {META(X("f32[S, 6]|P(sum)"), Y("f32[S, 6]|R")), {"f32[4, 6]"}, "input 'x' is declared partial", NULL},
    {META(X("f32[S, 6]|R"), Y("f32[S, 6]|P(sum)")), {"f32[4, 6]"}, NULL, "S == 4"},
    {ASSUMING("S * == 4 # it"), {"f32[4, 6]"}, "assumption 'S * == 4 # it': ", NULL},
    {ASSUMING("S == 4 # it"), {"f32[4, 6]"}, NULL, "S == 4"},
    {ASSUMING("S == 5 # it"), {"f32[4, 6]"}, "assumption the graph was compiled under, S == 5 # it: left is 4 (S = 4), right is 5", NULL},
    {ASSUMING("max(S, 1) == S # it"), {"f32[4, 6]"}, NULL, "S == 4"},
    {ASSUMING("min(S, 3) == S # the table"),
     {"f32[4, 6]"},
     "the inputs are too large: S is 4, and is at most 3 for this model, by the table",
     NULL},
    {META(X("f32[S, 6]|R") " meta \"tpc.dims.S\" \"5|5\"", Y("f32[S, 6]|R")), {"f32[4, 6]"}, "size S is 4, expected at least 5", NULL},
    {ASSUMING("U == 2*S # it"), {"f32[4, 6]"}, NULL, "U == 8"},
    {ASSUMING("2*S == U # it"), {"f32[4, 6]"}, NULL, "U == 8"},
    {META(X("f32[S, 6]|R"), Y("f32[2*S, 7]|R")), {"f32[4, 6]"}, NULL, "S == 4"},
    {PLAIN("dim S >= 1 assume min(S, 3) = S \"the table\"", "input x: f32[S]"),
     {"f32[4]"},
     "S is 4, and is at most 3 for this model, by the table",
     NULL},
    /* inputs */
    {PLAIN("dim S >= 1", "input x: f32[S]"), {"f64[4]"}, "input 'x' is f64, expected f32[S]", NULL},
    {PLAIN("dim S >= 1", "input x: f32[S]"), {"f32[4, 1]"}, "input 'x' has 2 dimensions, expected f32[S]", NULL},
    {PLAIN("dim S >= 1", "input x: f32[S]"), {"f32[]"}, "input 'x' has 0 dimensions, expected f32[S]", NULL},
    {PLAIN("dim S >= 2", "input x: f32[S]"), {"f32[1]"}, "size S is 1, expected at least 2", NULL},
    {PLAIN("dim S >= 1", "input x: f32[S] input z: f32[S, 6]"),
     {"f32[4]", "f32[4, 5]"},
     "input 'z' has 5 in dimension 1, expected 6",
     NULL},
    {PLAIN("dim S >= 1", "input x: f32[S] input z: f32[2*S]"),
     {"f32[4]", "f32[9]"},
     "input 'z' has 9 in dimension 0, expected 2*S = 8 (S = 4)",
     NULL},
    {PLAIN("dim S >= 1", "input x: f32[S] input z: f32[S]"),
     {"f32[4]", "~f32[3]"},
     "input 'x' has 4 in dimension 0, expected S = 3 (S = 3), behind the state that is kept",
     NULL},
    {PLAIN("dim S >= 1", "input x: f32[S] input z: f32[S]"), {"f32[-1]", "f32[3]"}, NULL, "S == 3"},
    /* solving */
    {PLAIN("dim S >= 1 dim T >= 1", "input x: f32[S] input z: f32[S + 2*T]"), {"f32[4]", "f32[10]"}, NULL, "T == 3"},
    {PLAIN("dim S >= 1 dim T >= 1", "input x: f32[S] input z: f32[S + 2*T]"),
     {"f32[4]", "f32[9]"},
     "input 'z': size S + 2*T of dimension 0 can't be computed",
     NULL},
    {PLAIN("dim S >= 1 dim T >= 1", "input x: f32[S] input z: f32[T*U]"),
     {"f32[4]", "f32[9]"},
     "input 'z': size T*U of dimension 0 can't be computed",
     NULL},
    {PLAIN("dim S >= 1 dim T >= 1", "input x: f32[S] input z: f32[min(T, 3)]"),
     {"f32[4]", "f32[3]"},
     "input 'z': size min(T, 3) of dimension 0 can't be computed",
     NULL},
    {PLAIN("dim S >= 1 dim T >= 1", "input x: f32[S] input z: f32[max(T, 5)]"),
     {"f32[4]", "f32[5]"},
     "input 'z': size max(T, 5) of dimension 0 can't be computed",
     NULL},
};

static struct tensor tensor_of(struct alg *alg, const char *type)
{
    static int content;
    struct tensor t = {.data = *type == '~' ? NULL : &content};
    struct type read;
    const char *error;
    char *text = arena_strdup(a, type + (*type == '~')), *unknown = strstr(text, "-1");
    if (unknown)
        memcpy(unknown, "99", 2);
    ck_assert_msg(type_parse(alg, text, 0, &read, &error), "%s: %s", type, error);
    t.dtype = read.dtype;
    t.rank = read.rank;
    for (int d = 0; d < t.rank; d++)
        ck_assert(dim_is_int(read.dim[d], &t.dim[d]));
    if (unknown)
        t.dim[0] = -1;
    return t;
}

struct binding_of {
    const struct trial *of;
    struct bindings bound;
};

static void bind(void *data)
{
    struct binding_of *b = data;
    struct alg *alg = alg_new(a);
    struct graph *g = graph_parse(a, alg, b->of->graph, "test", op_find);
    struct signature s;
    struct tensor in[2];
    g->path = "test";
    rank_meta_read(g);
    signature_read(a, g, &s);
    for (int i = 0; i < s.nin; i++)
        in[i] = tensor_of(alg, b->of->in[i]);
    signature_bind(a, &s, in, &b->bound);
}

START_TEST(inputs_and_metadata)
{
    struct binding_of b = {.of = &trials[_i]};
    const char *failed = diag_try(a, bind, &b), *refused = b.of->refused;
    ck_assert_msg(!failed == !refused && (!refused || strstr(failed, refused)), "%s: %s, expected %s", b.of->graph, failed, refused);
    if (b.of->binds) {
        const char *name = arena_strndup(a, b.of->binds, 1);
        ck_assert_int_eq(*bindings_get(&b.bound, name), b.of->binds[5] - '0');
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("signature");
    TCase *c = unit_case(suite, "signature", setup, teardown);
    tcase_add_loop_test(c, inputs_and_metadata, 0, COUNT(trials));
    return unit_run(suite);
}
