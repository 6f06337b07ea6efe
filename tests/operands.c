/* operands: every sample of the self-check with each of its operands, and then all operands of one type, in every other type, and with each
 * input in other shapes. What an op does not take is refused by a sentence, when types are inferred or by the kernel: nothing ends in a bug
 * or a signal. */
#include "ir/text/text.h"
#include "kern/core/core.h"
#include "op/infer/infer.h"
#include "op/op.h"
#include "tests/ready.h"
#include "tests/selfcheck.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sample samples[] = {
#include "tests/selfcheck.def"
};
enum { SAMPLES = sizeof samples / sizeof *samples };
static const enum dtype types[] = {DT_F32,    DT_U8,   DT_I8,       DT_U16,        DT_I16,    DT_I32, DT_I64,
                                   DT_STRING, DT_BOOL, DT_F16,      DT_F64,        DT_U32,    DT_U64, DT_BF16,
                                   DT_U4,     DT_I4,   DT_F8E4M3FN, DT_F8E5M2FNUZ, DT_F8E8M0, DT_U2,  DT_F4E2M1};
enum { TYPES = sizeof types / sizeof *types };

/* ---- the type of an operand in the text ------------------------------------------------------------------------------------------- */

/* The type's name in the declaration of operand k, "input NAME: f32[" or "const NAME: f32["; NULL: there are fewer. */
static const char *declared(const char *text, int k)
{
    for (const char *at = text; (at = strpbrk(at, "ic")); at++) {
        if (strncmp(at, "input ", 6) != 0 && strncmp(at, "const ", 6) != 0)
            continue;
        const char *colon = strstr(at, ": ");
        if (colon && k-- == 0)
            return colon + 2;
    }
    return NULL;
}

static bool is_called(const char *at, const char *type)
{
    size_t n = strlen(type);
    return strncmp(at, type, n) == 0 && at[n] == '[';
}

/* The text with type `to` for the operand at `first`, and if all: for every operand of its type. */
static const char *retyped(struct arena *a, const char *text, const char *first, bool all, enum dtype to)
{
    const char *from = arena_strndup(a, first, strcspn(first, "[")), *out = "", *at = text, *each;
    for (int k = 0; (each = declared(text, k)); k++)
        if (each == first || (all && is_called(each, from))) {
            out = arena_printf(a, "%s%.*s%s", out, (int)(each - at), at, dtype_name(to));
            at = each + strlen(from);
        }
    return arena_printf(a, "%s%s", out, at);
}

/* The text with another shape for the operand at `first`; NULL: it is a constant, whose numbers would not fit. */
static const char *reshaped(struct arena *a, const char *text, const char *first, const char *shape)
{
    const char *name = first - 2, *from = strchr(first, '[');
    while (name > text && name[-1] != ' ')
        name--;
    if (name - text < 6 || strncmp(name - 6, "input ", 6) != 0)
        return NULL;
    return arena_printf(a, "%.*s%s%s", (int)(from - text), text, shape, strchr(from, ']') + 1);
}

/* ---- running ---------------------------------------------------------------------------------------------------------------------- */

static struct tensor zeros(struct arena *a, const struct type *type, const struct bindings *sizes)
{
    struct tensor t = {.dtype = type->dtype, .rank = type->rank};
    for (int d = 0; d < type->rank; d++)
        if (!dim_eval(type->dim[d], sizes, &t.dim[d]))
            fail("a size has no value");
    t.data = arena_alloc(a, tensor_bytes(&t) + 64);
    return t;
}

/* What the lengths of attention are: past plus sequence, less one per row; other integers are 0. */
static void put_lengths(struct tensor *t)
{
    for (int64_t i = 0; i < tensor_elements(t); i++)
        if (t->dtype == DT_I64 || t->dtype == DT_I32)
            convert_from_i64(t->dtype, &(int64_t){t->rank == 0 ? 7 : 6}, 1, element_at(t->data, dtype_size(t->dtype), i));
}

/* The sizes are such as the op assumes. */
static bool sizes_agree(const struct alg *alg, const struct bindings *sizes)
{
    const struct equation *eq;
    int64_t left, right;
    for (int i = 0, n = alg_equations(alg, &eq); i < n; i++)
        if (!dim_eval(eq[i].left, sizes, &left) || !dim_eval(eq[i].right, sizes, &right) || left != right)
            return false;
    return true;
}

static void run(const char *text, const struct sample *s)
{
    struct arena *a = arena_new();
    struct bindings sizes = {0};
    struct graph *g = graph_parse(a, alg_new(a), text, s->op, op_find);
    struct node *n = g->nodes.at[0];
    for (int i = 0; i < 4; i++)
        bindings_set(a, &sizes, (const char *[]){"B", "S", "T", "P"}[i], (const int64_t[]){3, 5, 7, 2}[i]);
    if (!n->op)
        return;
    op_infer(g, n);
    (void)rule_of(g, n);
    if (!sizes_agree(g->alg, &sizes))
        return;
    struct tensor *in = NEWN(a, struct tensor, n->nin + 1), *out = NEWN(a, struct tensor, n->nout + 1);
    for (int i = 0; i < n->nin; i++)
        if (n->in[i])
            in[i] = zeros(a, &n->in[i]->type, &sizes);
    for (int i = 0; i < n->nin && s->below < 0; i++)
        put_lengths(&in[i]);
    for (int i = 0; i < n->nout; i++)
        if (n->out[i])
            out[i] = zeros(a, &n->out[i]->type, &sizes);
    struct kcall call = {
        .node = n, .graph = g, .nin = n->nin, .nout = n->nout, .in = in, .out = out, .bind = &sizes, .env = kenv_new(1, false)};
    n->op->kernel(&call);
}

struct form {
    const struct sample *sample;
    const char *text, *what;
};
struct forms {
    struct form *at;
    int n, cap;
};

static void run_form(void *form)
{
    const struct form *t = form;
    run(t->text, t->sample);
}

/* A sentence leaves the scope, and a bug ends the process. */
static _Noreturn void run_from(const struct forms *t, int *at)
{
    (void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
    for (; *at < t->n; ++*at) {
        struct scope *scope = scope_new();
        if (!scope_do(scope, run_form, &t->at[*at]) && scope_status(scope) == DIAG_BUG)
            abort();
        scope_free(scope);
    }
    _exit(0);
}

/* All in a separate process. A form that ends it is wrong, and the later ones run in another. */
static int run_forms(const struct forms *t, int *at)
{
    int wrong = 0, status;
    for (*at = 0; *at < t->n; ++*at) {
        fflush(stdout);
        pid_t child = fork();
        if (child == 0)
            run_from(t, at);
        if (child < 0 || waitpid(child, &status, 0) < 0)
            fail("can't run samples in a process of their own");
        if (*at == t->n)
            break;
        printf("%s: %s: %s\n", t->at[*at].sample->op, t->at[*at].what, t->at[*at].text);
        wrong++;
    }
    return wrong;
}

static void add_types(struct arena *a, struct forms *forms, const struct sample *s, int k, bool all)
{
    const char *first = declared(s->text, k);
    for (int t = 0; t < TYPES; t++)
        if (!is_called(first, dtype_name(types[t]))) {
            const char *what = arena_printf(a, "operand %d%s as %s", k, all ? " and those like it" : "", dtype_name(types[t]));
            VEC_PUSH(a, forms, ((struct form){s, retyped(a, s->text, first, all, types[t]), what}));
        }
}

static void add_shapes(struct arena *a, struct forms *forms, const struct sample *s, int k)
{
    static const char *const shape[] = {"[]", "[1]", "[4]", "[B]", "[1, 1]", "[4, 6]", "[B, 1, 4]", "[0]"};
    if (!strstr(s->text, ": ? =")) /* the passes, which state it, make the result */
        return;
    for (int i = 0; i < (int)(sizeof shape / sizeof *shape); i++) {
        const char *text = reshaped(a, s->text, declared(s->text, k), shape[i]);
        if (text)
            VEC_PUSH(a, forms, ((struct form){s, text, arena_printf(a, "operand %d as %s", k, shape[i])}));
    }
}

static int operand_count(const char *text)
{
    int n = 0;
    while (declared(text, n))
        n++;
    return n;
}

/* Another sample of the op has as many operands: forms of an op differ in its attributes. */
static bool has_other(int sample)
{
    for (int i = 0; i < sample; i++)
        if (strcmp(samples[i].op, samples[sample].op) == 0 && operand_count(samples[i].text) == operand_count(samples[sample].text))
            return true;
    return false;
}

/* tpc-run makes it when it loads a model. */
static bool is_of_no_file(const struct sample *s)
{
    const struct op *op = op_find("tpc", s->op);
    return op && (op->flags & OP_INTERNAL) && !op->expand;
}

int main(void)
{
    struct arena *a = arena_new();
    struct forms forms = {0};
    diag_setup("operands", 0);
    ready_products();
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; !has_other(i) && !is_of_no_file(&samples[i]) && k < operand_count(samples[i].text); k++) {
            add_types(a, &forms, &samples[i], k, false);
            add_shapes(a, &forms, &samples[i], k);
            if (operand_count(samples[i].text) > 1)
                add_types(a, &forms, &samples[i], k, true);
        }
    int *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        fail("no memory to share with a process");
    int wrong = run_forms(&forms, at);
    printf("%d forms, %d wrong\n", forms.n, wrong);
    return wrong != 0 || forms.n == 0;
}
