/* result_function: functions of a convolution's results. They equal the operators' (pointwise.def) to the bit, except Swish, which is
 * conv_swish.c's, and HardSwish, which multiplies by 1/6. */
#include "kern/conv/conv.h"
#include "kern/core/core.h"
#include "kern/pointwise/pointwise.h"

#include <string.h>

#define CLAMP_01(t) ((t) < 0 ? 0 : (t) > 1 ? 1 : (t))
#define FUNCTION(NAME, EXPRESSION)                                                     \
    static SIMD void NAME##_run(const struct result_function *f, float *at, int64_t n) \
    {                                                                                  \
        const float a = f->alpha, b = f->beta;                                         \
        (void)a, (void)b;                                                              \
        LOOP for (int64_t i = 0; i < n; i++)                                           \
        {                                                                              \
            float x = at[i];                                                           \
            at[i] = (EXPRESSION);                                                      \
        }                                                                              \
    }
#define FUNCTIONS(F)                    \
    F(LeakyRelu, x < 0 ? a * x : x)     \
    F(Clip, x<a ? a : x> b ? b : x)     \
    F(HardSwish, x *CLAMP_01(a *x + b)) \
    F(HardSigmoid, CLAMP_01(a *x + b))
FUNCTIONS(FUNCTION)

/* From the table of pointwise functions. */
#define OPERATOR(NAME, EXPRESSION)                                                \
    static void NAME##_run(const struct result_function *f, float *at, int64_t n) \
    {                                                                             \
        (void)f;                                                                  \
        chain_unary[CHAIN_##NAME](at, at, n);                                     \
    }
#define OPERATORS(F) F(Sigmoid, ) F(Tanh, ) F(Gelu, )
OPERATORS(OPERATOR)

static SIMD void line(float scale, float shift, float *at, int64_t n)
{
    LOOP for (int64_t i = 0; i < n; i++) at[i] = at[i] * scale + shift;
}

#define LINED(NAME, EXPRESSION)                                                     \
    static void NAME##_lined(const struct result_function *f, float *at, int64_t n) \
    {                                                                               \
        NAME##_run(f, at, n);                                                       \
        line(f->scale, f->shift, at, n);                                            \
    }
FUNCTIONS(LINED)
OPERATORS(LINED)

struct result_function result_function_of(const struct node *n)
{
#define ROW(NAME, EXPRESSION) {#NAME, NAME##_run, NAME##_lined},
    static const struct {
        const char *name;
        void (*run)(const struct result_function *, float *, int64_t), (*lined)(const struct result_function *, float *, int64_t);
    } table[] = {FUNCTIONS(ROW) OPERATORS(ROW){"Swish", conv_swish_run, conv_swish_run}};
    struct result_function f = {.alpha = (float)attr_float(n, "alpha"),
                                .beta = (float)attr_float(n, "beta"),
                                .scale = (float)attr_float(n, "scale"),
                                .shift = (float)attr_float(n, "shift")};
    const char *name = attr_string(n, "activation");
    size_t i = 0;
    if (!*name)
        return f;
    while (strcmp(table[i].name, name) != 0)
        require(++i < sizeof table / sizeof *table);
    bool plain = f.scale >= 1 && f.scale <= 1 && f.shift >= 0 && f.shift <= 0;
    f.run = plain ? table[i].run : table[i].lined;
    return f;
}
