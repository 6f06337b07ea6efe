/* dnnl_primitive: shared by products and convolutions in oneDNN: its state, primitives, and packed weights. For dnnl*.c. */
#ifndef TPC_KERN_DNNL_PRIMITIVE_H
#define TPC_KERN_DNNL_PRIMITIVE_H

#include "kern/gemm/dnnl_layout.h"

#include <uthash.h>

enum primitive_kind { PRODUCT = 1, CONVOLUTION };
enum primitive_operand { SRC, WEIGHTS, BIAS, DST, OPERANDS };
struct primitive_key {
    int kind, bias, narrow; /* narrow: both operands are bf16 */
    int64_t m, n, k;
    struct conv_shape conv;
}; /* zeroed before it is filled */
struct primitive {
    struct primitive_key key;
    dnnl_primitive_t run;
    struct md_layout layout[OPERANDS];
    dnnl_memory_t memory[OPERANDS];
    bool missing; /* this machine has no primitive for the key */
    bool panels;  /* a product whose weight has the layout of panel_row.c */
    UT_hash_handle hh;
};
/* The first layout chosen for weights of a shape. */
struct favourite {
    struct primitive_key key;
    struct md_layout layout;
    UT_hash_handle hh;
};
struct dnnl_state {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct primitive *primitives;
    struct favourite *favourites;
};
void dnnl_checked(dnnl_status_t, const char *what);
/* Before any other call of the library, which accepts a limit of its instruction set only then. */
void dnnl_limit(void);
void *dnnl_zeroed(size_t bytes);
/* The state in this environment; the library then uses as many threads. */
struct dnnl_state *dnnl_state_of(struct kenv *);
bool dnnl_is_reference(const_dnnl_primitive_desc_t);
/* Whether a product with a weight of this type multiplies in bf16. bf16 values are exact; others are rounded if that is allowed. */
bool dnnl_narrows_weight(const struct kenv *, enum dtype weight);
/* The type of both operands; sums and results are float32. */
dnnl_data_type_t dnnl_operand_type(const struct primitive_key *);
/* Makes the operands' layouts and the primitive's description; false: the library has none for the key. */
typedef bool plan_primitive(struct dnnl_state *, struct primitive *, dnnl_primitive_desc_t *);

struct primitive *dnnl_primitive_of(struct dnnl_state *, const struct primitive_key *, plan_primitive *);
void dnnl_run(struct dnnl_state *, struct primitive *, const void *const *data);
void dnnl_convert(struct dnnl_state *, const struct md_layout *from, const void *src, const struct md_layout *to, void *dst);
/* Memory for the weight of p in its layout, kept in *cache; ROOM_DNNL if cache is NULL. *full: it is filled; else the caller fills it
 * now. */
void *dnnl_packed_room(struct kenv *, void **cache, const struct primitive *p, bool *full);
/* w, of any float type and in this layout, in the layout of p: kept in *cache, or in scratch if w may change. factor: see dnnl_convolve. */
const void *dnnl_packed(struct kenv *, void **cache, const struct primitive *p, const struct md_layout *plain, const struct tensor *w,
                        const float *factor);

#endif
