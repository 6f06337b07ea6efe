/* tpc_plugin: operators of a shared library, for tpc-shard --plugin FILE.so and tpc-run --plugin FILE.so. docs/plugins.md explains it by an
 * example. A plug-in includes this header and links with nothing of tpc. */
#ifndef TPC_PLUGIN_H
#define TPC_PLUGIN_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the declarations below. A library of another version is rejected. */
#define TPC_PLUGIN_ABI 1

/* Row-major, dense. type: the number in ONNX's TensorProto, as in tpc.h. */
enum { TPC_PLUGIN_F32 = 1, TPC_PLUGIN_I64 = 7 };
typedef struct {
    int32_t type, rank;
    const int64_t *dim;
    void *data; /* read-only for operands */
} tpc_plugin_tensor;

/* The value of an attribute: i, f or s, as its kind says. */
typedef struct {
    int64_t i;
    double f;
    const char *s;
} tpc_plugin_value;

/* One run of one node: of a whole model, or of a rank's shards. in, out: as in the signature, with matching types and dimensions; out is
 * allocated. attr: in the order of the row. threads: the number that the kernel may use. */
typedef struct {
    const tpc_plugin_tensor *in, *out;
    const tpc_plugin_value *attr;
    int32_t threads;
} tpc_plugin_call;

/* One operator. Texts stay valid as long as the library is loaded.
 *
 *   signature   "x: f32[b.., n], w: f32[n] -> y: f32[b.., n]": names, types (f32, i64) and dimensions. A dimension is a name, which is the
 *               same size everywhere, a multiple of one, "2*h", or an integer; "b.." is any number of dimensions. A result's dimension
 *               may be an expression: "2*n", "m + n". "ids: i64[b..] < v": the numbers are indices below v.
 *   attributes  "epsilon:f=1e-5 axis:i=-1 mode:s=plain": integers, floats and strings, each with a default; NULL: none
 *   rule        the dimensions that may be split: "(b.. n)(n) -> (b.. n)", in the grammar of src/op/rule/rule.h, with one factor, 1, or
 *               units of a factor for each dimension; NULL: every rank computes everything
 *   kernel      computes out from in. Returns NULL on success; else a sentence with the reason, without a full stop, which stays valid.
 *               Several threads may call it at the same time. */
typedef struct {
    const char *domain, *name;
    const char *signature, *attributes, *rule;
    const char *(*kernel)(const tpc_plugin_call *);
} tpc_plugin_op;

typedef struct {
    uint32_t abi;     /* TPC_PLUGIN_ABI; the first member in every version */
    uint32_t ops;     /* number of op */
    const char *name; /* of the plug-in: letters, digits, - and _ */
    const tpc_plugin_op *op;
} tpc_plugin;

/* The one symbol of the library that tpc looks for. */
#if defined __GNUC__
__attribute__((visibility("default")))
#endif
const tpc_plugin *
tpc_plugin_entry(void);

#ifdef __cplusplus
}
#endif
#endif
