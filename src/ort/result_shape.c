/* result_shape: a result's shape before the run: its dimensions, as far as operand and split give them. */
#include "ort/ort.h"

#include <stdatomic.h>
#include <string.h>

enum { SYMBOL_BYTES = 32, TEXT_BYTES = 1 << 16 };

struct shape {
    size_t rank;
    int64_t dim[MAX_RANK];        /* -1: not an integer */
    const char *symbol[MAX_RANK]; /* "": none */
    char fresh[MAX_RANK][SYMBOL_BYTES];
};
struct inference {
    OrtShapeInferContext *context;
    enum collective kind;
    struct shape *shape;
};

/* A symbol means one size everywhere, so each unknown size has its own. */
static void forget_dim(struct shape *s, size_t k)
{
    static atomic_uint made;
    (void)snprintf(s->fresh[k], SYMBOL_BYTES, "tpc_size_%u", atomic_fetch_add(&made, 1));
    s->dim[k] = -1;
    s->symbol[k] = s->fresh[k];
}

static void set_dim(struct shape *s, size_t k, const struct dim *size)
{
    if (dim_is_int(size, &s->dim[k]))
        s->symbol[k] = "";
    else
        forget_dim(s, k);
}

static bool read_attribute(const struct inference *f, const char *name, OrtOpAttrType type, void *to, size_t room)
{
    const OrtOpAttr *attribute = NULL;
    size_t bytes;
    OrtStatus *status = ort_api->ShapeInferContext_GetAttribute(f->context, name, &attribute);
    if (!status)
        status = ort_api->ReadOpAttr(attribute, type, to, room, &bytes);
    if (status)
        ort_api->ReleaseStatus(status);
    return !status;
}

static size_t axis_of(const struct inference *f, const char *name)
{
    int64_t axis = 0, rank = (int64_t)f->shape->rank;
    if (!read_attribute(f, name, ORT_OP_ATTR_INT, &axis, sizeof axis) || axis < -rank || axis >= rank)
        fail("no axis");
    return (size_t)(axis < 0 ? axis + rank : axis);
}

static const struct split *split_of(const struct inference *f, struct alg *alg, const char *name)
{
    char *text = NEWN(alg_arena(alg), char, TEXT_BYTES);
    const char *error;
    const struct split *s = read_attribute(f, name, ORT_OP_ATTR_STRING, text, TEXT_BYTES - 1) ? split_parse(alg, text, &error) : NULL;
    if (!s || s->ranks != ranks_own().size)
        fail("no split");
    return s;
}

/* Fails for a wrong attribute; that is ignored here and reported when the kernel is made. */
static void infer_dims(void *inference)
{
    const struct inference *f = inference;
    struct alg *alg = alg_new(arena_new());
    bool both = f->kind == COLL_ALLTOALL;
    if (f->kind == COLL_ALLGATHER || both) {
        const struct split *from = split_of(f, alg, "from");
        set_dim(f->shape, axis_of(f, both ? "concat_axis" : "axis"), split_size(alg, from));
    }
    if (f->kind == COLL_REDUCESCATTER || f->kind == COLL_REDISTRIBUTE || both) {
        const struct split *to = split_of(f, alg, "to");
        set_dim(f->shape, axis_of(f, both ? "split_axis" : "axis"), split_extent(alg, to, ranks_own().rank));
    }
}

static OrtStatus *read_shape(const OrtTensorTypeAndShapeInfo *info, struct shape *s)
{
    OrtStatus *status = ort_api->GetDimensions(info, s->dim, s->rank);
    if (!status)
        status = ort_api->GetSymbolicDimensions(info, s->symbol, s->rank);
    for (size_t k = 0; !status && k < s->rank; k++)
        if (s->dim[k] < 0 && !*s->symbol[k])
            forget_dim(s, k);
    return status;
}

static OrtStatus *write_shape(OrtShapeInferContext *context, ONNXTensorElementDataType type, struct shape *s)
{
    OrtTensorTypeAndShapeInfo *info;
    OrtStatus *status = ort_api->CreateTensorTypeAndShapeInfo(&info);
    if (status)
        return status;
    status = ort_api->SetTensorElementType(info, type);
    if (!status)
        status = ort_api->SetDimensions(info, s->dim, s->rank);
    if (!status)
        status = ort_api->SetSymbolicDimensions(info, s->symbol, s->rank);
    if (!status)
        status = ort_api->ShapeInferContext_SetOutputTypeShape(context, 0, info);
    ort_api->ReleaseTensorTypeAndShapeInfo(info);
    return status;
}

/* An operand of unknown rank looks like a scalar. */
OrtStatus *result_shape(const OrtCustomOp *op, OrtShapeInferContext *context)
{
    OrtTensorTypeAndShapeInfo *info;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    struct shape shape = {0};
    struct inference f = {context, ((const struct custom_op *)op)->kind, &shape};
    OrtStatus *status = ort_api->ShapeInferContext_GetInputTypeShape(context, 0, &info);
    if (!status)
        status = ort_api->GetTensorElementType(info, &type);
    if (!status)
        status = ort_api->GetDimensionsCount(info, &shape.rank);
    if (!status && (shape.rank == 0 || shape.rank > MAX_RANK))
        return NULL;
    if (!status)
        status = read_shape(info, &shape);
    if (status)
        return status;
    struct scope *scope = scope_new();
    bool known = scope && scope_do(scope, infer_dims, &f);
    scope_free(scope);
    return known ? write_shape(context, type, &shape) : NULL;
}
