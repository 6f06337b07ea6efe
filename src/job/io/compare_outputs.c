/* compare_outputs: compares two tensors within a tolerance. Two NaNs or equal infinities agree; integers and booleans must be equal. For an
 * output that differs, a line has the reference, the first position with both values, and the largest difference. */
#include "job/io/io.h"
#include "kern/gemm/gemm.h"
#include "op/op.h"

#include <math.h>
#include <string.h>

static double largest(const struct tensor *t)
{
    double most = 0;
    int64_t n = t->dtype == DT_STRING ? 0 : tensor_elements(t);
    for (int64_t i = 0; i < n; i++) {
        double x = fabs(tensor_element(t, i));
        if (isfinite(x) && x > most)
            most = x;
    }
    return most;
}

/* 0 if equal, infinity if one is not finite. */
static double difference(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b)))
        return 0;
    return isfinite(a) && isfinite(b) ? fabs(a - b) : INFINITY;
}

enum { MOST_TOLD = 8 };

/* Counts another differing output. Returns whether to print it. */
static bool tells(struct verdict *v)
{
    v->failed = true;
    return v->different++ < MOST_TOLD;
}

static bool compare_types(struct verdict *v, const char *name, const struct tensor *got, const struct tensor *want)
{
    struct arena *a = arena_new();
    bool same = got->dtype == want->dtype && got->rank == want->rank &&
        memcmp(got->dim, want->dim, (size_t)got->rank * sizeof *got->dim) == 0;
    if (!same && tells(v))
        printf("output '%s' is %s, expected %s as in %s\n", name, outputs_shape_text(a, got), outputs_shape_text(a, want), v->source);
    if (!same)
        v->worst = INFINITY;
    if (!same)
        v->name = name;
    arena_free(a);
    return same;
}

/* Control characters as '?'. */
static void print_strings(const char *got, const char *want)
{
    struct arena *a = arena_new();
    char *text = arena_printf(a, "'%s', expected '%s'", got, want);
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = '?';
    puts(text);
    arena_free(a);
}

/* The first difference of an output, the tolerance there, and the largest difference. */
struct found {
    int64_t first; /* -1: none */
    double allowed, worst;
};

static void print_found(const char *source, const char *name, const struct tensor *got, const struct tensor *want, const struct found *f)
{
    int64_t index[MAX_RANK], rest = f->first;
    for (int k = got->rank - 1; k >= 0; k--) {
        index[k] = rest % got->dim[k];
        rest /= got->dim[k];
    }
    printf("output '%s' differs from %s first at [", name, source);
    for (int k = 0; k < got->rank; k++)
        printf("%s%lld", k ? ", " : "", (long long)index[k]);
    fputs("]: ", stdout);
    if (got->dtype == DT_STRING)
        print_strings(string_text(((const int64_t *)got->data)[f->first]), string_text(((const int64_t *)want->data)[f->first]));
    else
        printf("%.9g, expected %.9g, allowed difference %.3g; worst difference %.3g\n", tensor_element(got, f->first),
               tensor_element(want, f->first), f->allowed, f->worst);
}

static void compare_tensors(struct verdict *v, const char *name, const struct tensor *got, const struct tensor *want, double rtol,
                            double base, double scale)
{
    bool exact = !dtype_is_float(got->dtype);
    int64_t n = tensor_elements(got);
    double squares = 0, whole = 0;
    struct found f = {.first = -1};
    for (int64_t i = 0; i < n; i++) {
        double b = tensor_element(want, i), d = difference(tensor_element(got, i), b),
               allowed = exact ? 0 : rtol * (isfinite(b) ? fabs(b) : 0) + base;
        squares += d * d;
        whole += isfinite(b) ? b * b : 0;
        f.worst = fmax(f.worst, d / scale);
        if (d > allowed && f.first < 0)
            f = (struct found){i, allowed, f.worst};
    }
    if (f.worst > v->worst || !v->name) {
        v->worst = f.worst;
        v->name = name;
    }
    v->mean = fmax(v->mean, sqrt(whole > 0 ? squares / whole : squares));
    if (f.first >= 0 && tells(v))
        print_found(v->source, name, got, want, &f);
}

void compare_close(struct verdict *v, const char *name, const struct tensor *got, const struct tensor *want, double rtol, double atol)
{
    v->outputs++;
    if (!compare_types(v, name, got, want))
        return;
    double scale = fmax(1, largest(want));
    compare_tensors(v, name, got, want, rtol, atol * scale, scale);
}

void compare_relative(struct verdict *v, const char *name, const struct tensor *got, const struct tensor *want, double rel, double least)
{
    v->outputs++;
    if (!compare_types(v, name, got, want))
        return;
    double most = fmax(largest(want), least);
    compare_tensors(v, name, got, want, 0, rel * most, most > 0 ? most : 1);
}

double compare_difference(const struct tensor *got, const struct tensor *want)
{
    double worst = 0, most = largest(want);
    int64_t n = tensor_elements(want);
    if (got->dtype != want->dtype || tensor_elements(got) != n)
        return INFINITY;
    for (int64_t i = 0; dtype_is_float(got->dtype) && i < n; i++)
        worst = fmax(worst, difference(tensor_element(got, i), tensor_element(want, i)));
    return most > 0 ? worst / most : worst;
}

/* The larger one of u and the unit roundoff of v's type, if that is f16 or bf16. */
static double rougher(double u, const struct value *v)
{
    double own = !v ? 0 : v->type.dtype == DT_BF16 ? 0x1p-8 : v->type.dtype == DT_F16 ? 0x1p-11 : 0;
    return own > u ? own : u;
}

/* Whether a product rounds activations to 8 bits. */
static bool rounds_to_bytes(const struct node *n)
{
    bool quantised = op_is_tpc(n, "QuantMatMul") || (n->op && strcmp(n->optype, "MatMulNBits") == 0);
    return quantised && attr_int(n, "accuracy_level") == 4;
}

/* The largest unit roundoff in the graph; 0: all is float32 or wider. */
static double unit_roundoff(const struct graph *g)
{
    double u = 0;
    for (int i = 0; i < g->outputs.n; i++)
        u = rougher(u, g->outputs.at[i]);
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (rounds_to_bytes(n))
            u = fmax(u, 0x1p-8);
        for (int k = 0; k < n->nin; k++)
            u = rougher(u, n->in[k]);
        for (int k = 0; k < n->nout; k++)
            u = rougher(u, n->out[k]);
    }
    return u;
}

/* Whether a computed value is rounded to 8-bit codes: for a sum between two codes, the order of additions decides. */
static bool makes_codes(const struct graph *g)
{
    for (int i = 0; i < g->nodes.n; i++) {
        const struct node *n = g->nodes.at[i];
        if (op_is_onnx(n, "QuantizeLinear") || op_is_onnx(n, "DynamicQuantizeLinear") || op_is_tpc(n, "IntegerConv"))
            return true;
    }
    return false;
}

/* Two orders of sums are one sample of the effect of orders, and ranks are a third: four times the sample is enough. If a model loses more
 * digits than the limit allows, it computes noise and no comparison is meaningful; but 8-bit codes that differ by one are no noise. */
double compare_allowance(const struct graph *g, double rel, double noise)
{
    double limit = makes_codes(g) ? fmax(100 * rel, 8 * 0x1p-8) : 100 * rel;
    return fmax(rel, fmin(4 * noise, limit));
}

struct tolerance compare_tolerance(const struct graph *g, const struct job_options *o)
{
    double u = fmax(unit_roundoff(g), o->cache == DT_I8 || (o->fast && dnnl_narrows()) ? 0x1p-8 : 0);
    struct tolerance t = u > 0 ? (struct tolerance){8 * u, 8 * u, 8 * u} : (struct tolerance){1e-4, 1e-5, 1e-5};
    if (o->rtol >= 0)
        t.rtol = o->rtol;
    if (o->atol >= 0)
        t.atol = o->atol;
    if (o->rel >= 0)
        t.rel = o->rel;
    return t;
}

void compare_print(const struct graph *g, const struct verdict *v)
{
    if (v->different > MOST_TOLD)
        printf("and %d more outputs differ\n", v->different - MOST_TOLD);
    if (v->failed && makes_codes(g))
        puts("this model rounds what it computes to 8 bits: the order of sums decides where a number lies between two codes");
    printf("%s: %d outputs, worst difference %.3g%s%s%s, root mean square %.3g\n", v->failed ? "FAILED" : "PASSED", v->outputs, v->worst,
           v->name ? " in '" : "", v->name ? v->name : "", v->name ? "'" : "", v->mean);
}
