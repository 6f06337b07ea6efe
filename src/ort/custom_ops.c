/* custom_ops: ONNX Runtime's side. The ops of domain tpc, their kernels, and RegisterCustomOps, the only exported name of this library.
 * Failures are sentences of an OrtStatus. */
#include "ort/ort.h"

#include <limits.h>
#include <string.h>

const OrtApi *ort_api;

struct kernel {
    struct scope *scope; /* of the kernel's memory, this struct included */
    struct arena *arena;
    enum collective kind;
    struct member *member;
};

/* Fails with the status's message. */
static void need(OrtStatus *status)
{
    char sentence[512];
    if (!status)
        return;
    (void)snprintf(sentence, sizeof sentence, "%s", ort_api->GetErrorMessage(status));
    ort_api->ReleaseStatus(status);
    fail("ONNX Runtime: %s", sentence);
}

static OrtStatus *failed(const char *sentence)
{
    return ort_api->CreateStatus(ORT_FAIL, sentence);
}

/* ---- a kernel from its node ---- */

struct making {
    const OrtKernelInfo *info;
    struct kernel *kernel;
};

static bool worked(OrtStatus *status)
{
    bool good = !status;
    if (status)
        ort_api->ReleaseStatus(status);
    return good;
}

/* NULL: not given. */
static const char *string_attribute(struct arena *a, const OrtKernelInfo *info, const char *name)
{
    size_t bytes = 0;
    if (!worked(ort_api->KernelInfoGetAttribute_string(info, name, NULL, &bytes)) || bytes == 0)
        return NULL;
    char *text = NEWN(a, char, bytes);
    need(ort_api->KernelInfoGetAttribute_string(info, name, text, &bytes));
    return text;
}

static int64_t int_attribute(const OrtKernelInfo *info, const char *name, int64_t otherwise)
{
    int64_t value = otherwise;
    return worked(ort_api->KernelInfoGetAttribute_int64(info, name, &value)) ? value : otherwise;
}

static const char *node_name(struct arena *a, const OrtKernelInfo *info)
{
    size_t bytes = 0;
    need(ort_api->KernelInfo_GetNodeName(info, NULL, &bytes));
    char *text = NEWN(a, char, bytes + 1);
    need(ort_api->KernelInfo_GetNodeName(info, text, &bytes));
    return text;
}

static void make_kernel(void *making)
{
    struct kernel *k = ((struct making *)making)->kernel;
    const OrtKernelInfo *info = ((struct making *)making)->info;
    const struct member_text t = {
        .name = node_name(k->arena, info),
        .op = collective_name(k->kind),
        .red = string_attribute(k->arena, info, "op"),
        .from = string_attribute(k->arena, info, "from"),
        .to = string_attribute(k->arena, info, "to"),
        .axis = int_attribute(info, "axis", 0),
        .split_axis = int_attribute(info, "split_axis", 0),
        .concat_axis = int_attribute(info, "concat_axis", 0),
        .root = int_attribute(info, "root", 0),
        .rank = int_attribute(info, "rank", -1),
        .ranks = int_attribute(info, "ranks", -1),
    };
    k->member = member_new(&t, ranks_own());
}

static void make_room(void *making)
{
    struct arena *a = arena_new();
    struct kernel *k = NEW(a, struct kernel);
    k->arena = a;
    ((struct making *)making)->kernel = k;
}

static OrtStatus *create_kernel(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **kernel)
{
    struct scope *scope = scope_new();
    struct making m = {.info = info};
    (void)api;
    if (!scope)
        return failed("out of memory");
    if (scope_do(scope, make_room, &m)) {
        m.kernel->scope = scope;
        m.kernel->kind = ((const struct custom_op *)op)->kind;
        if (scope_do(scope, make_kernel, &m)) {
            *kernel = m.kernel;
            return NULL;
        }
    }
    OrtStatus *status = failed(scope_sentence(scope));
    scope_free(scope);
    return status;
}

static void destroy_kernel(void *kernel)
{
    scope_free(((struct kernel *)kernel)->scope);
}

/* ---- a kernel's run ---- */

struct running {
    struct kernel *kernel;
    OrtKernelContext *context;
};

static void read_tensor(const OrtValue *value, struct tensor *t)
{
    OrtTensorTypeAndShapeInfo *info;
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    size_t rank = 0;
    void *data;
    need(ort_api->GetTensorTypeAndShape(value, &info));
    OrtStatus *status = ort_api->GetTensorElementType(info, &type);
    if (!status)
        status = ort_api->GetDimensionsCount(info, &rank);
    if (!status && rank <= MAX_RANK)
        status = ort_api->GetDimensions(info, t->dim, rank);
    ort_api->ReleaseTensorTypeAndShapeInfo(info);
    need(status);
    if (rank > MAX_RANK)
        fail("a tensor of %zu dimensions reached a collective, which takes up to %d", rank, MAX_RANK);
    t->dtype = (enum dtype)type; /* the numbers are ONNX's, there and here */
    t->rank = (int)rank;
    need(ort_api->GetTensorMutableData((OrtValue *)(uintptr_t)value, &data));
    t->data = data;
}

static struct tensor operand(const OrtKernelContext *context, size_t i)
{
    const OrtValue *value;
    struct tensor t = {0};
    need(ort_api->KernelContext_GetInput(context, i, &value));
    if (!value)
        fail("operand %zu of a collective is missing", i);
    read_tensor(value, &t);
    return t;
}

static struct tensor global_sizes(const OrtKernelContext *context)
{
    struct tensor t = operand(context, 1);
    if (t.dtype != DT_I64 || t.rank != 1 || t.dim[0] < 1 || t.dim[0] > INT_MAX)
        fail("the extent of a collective is no list of sizes");
    return t;
}

static void run_kernel(struct comm *comm, void *running)
{
    const struct running *r = running;
    struct kernel *k = r->kernel;
    struct tensor x = operand(r->context, 0);
    bool sized = k->kind != COLL_ALLREDUCE && k->kind != COLL_BROADCAST;
    struct tensor sizes = sized ? global_sizes(r->context) : (struct tensor){0};
    struct tensor y = member_result(k->member, comm, &x, sizes.data, (int)sizes.dim[0]);
    OrtValue *value;
    need(ort_api->KernelContext_GetOutput(r->context, 0, y.dim, (size_t)y.rank, &value));
    need(ort_api->GetTensorMutableData(value, &y.data));
    member_run(k->member, comm, &x, &y);
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context)
{
    return ranks_do(run_kernel, &(struct running){kernel, context}) ? NULL : failed(ranks_error());
}

/* ---- the ops ---- */

static enum collective kind_of(const OrtCustomOp *op)
{
    return ((const struct custom_op *)op)->kind;
}

static const char *get_name(const OrtCustomOp *op)
{
    return collective_name(kind_of(op));
}

static const char *get_provider(const OrtCustomOp *op)
{
    (void)op;
    return NULL;
}

static size_t count_inputs(const OrtCustomOp *op)
{
    bool travels = kind_of(op) == COLL_DISPATCH || kind_of(op) == COLL_COMBINE;
    return kind_of(op) == COLL_ALLREDUCE || kind_of(op) == COLL_BROADCAST ? 1 : travels ? 4 : 2;
}

static size_t count_outputs(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

/* All operands but the sizes, which are last, are of any type, and so is the result. */
static ONNXTensorElementDataType input_type(const OrtCustomOp *op, size_t i)
{
    return i == 0 || i + 1 < count_inputs(op) ? ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED : ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
}

static ONNXTensorElementDataType output_type(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
}

static OrtCustomOpInputOutputCharacteristic is_required(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return INPUT_OUTPUT_REQUIRED;
}

static OrtMemType memory_type(const OrtCustomOp *op, size_t i)
{
    (void)op;
    (void)i;
    return OrtMemTypeDefault;
}

static int start_version(const OrtCustomOp *op)
{
    (void)op;
    return 1;
}

static int end_version(const OrtCustomOp *op)
{
    (void)op;
    return INT_MAX;
}

static struct custom_op make_op(enum collective kind)
{
    return (struct custom_op){.base = {.version = ORT_VERSION,
                                       .GetName = get_name,
                                       .GetExecutionProviderType = get_provider,
                                       .GetInputType = input_type,
                                       .GetInputTypeCount = count_inputs,
                                       .GetOutputType = output_type,
                                       .GetOutputTypeCount = count_outputs,
                                       .KernelDestroy = destroy_kernel,
                                       .GetInputCharacteristic = is_required,
                                       .GetOutputCharacteristic = is_required,
                                       .GetInputMemoryType = memory_type,
                                       .CreateKernelV2 = create_kernel,
                                       .KernelComputeV2 = compute,
                                       .InferOutputShapeFn = result_shape,
                                       .GetStartVersion = start_version,
                                       .GetEndVersion = end_version},
                              .kind = kind};
}

/* ---- registering ---- */

static struct custom_op ops[] = {
#define NO_OP(constant, name) {.kind = COLL_##constant},
    COLLECTIVES(NO_OP)
#undef NO_OP
};
static OrtCustomOpDomain *domain; /* of all sessions: they keep a pointer */
static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;

static OrtStatus *make_domain(void)
{
    OrtCustomOpDomain *made;
    OrtStatus *status = ort_api->CreateCustomOpDomain("tpc", &made);
    for (size_t i = 0; !status && i < sizeof ops / sizeof *ops; i++) {
        ops[i] = make_op(ops[i].kind);
        status = ort_api->CustomOpDomain_Add(made, &ops[i].base);
    }
    if (!status)
        domain = made;
    return status;
}

__attribute__((visibility("default"))) OrtStatus *RegisterCustomOps(OrtSessionOptions *, const OrtApiBase *);
OrtStatus *RegisterCustomOps(OrtSessionOptions *options, const OrtApiBase *base)
{
    OrtStatus *status = NULL;
    ort_api = base->GetApi(ORT_VERSION);
    if (!ort_api) /* without this API: create the status with the oldest one, which has it, too */
        return base->GetApi(1)->CreateStatus(ORT_FAIL, "tpc's collectives need ONNX Runtime 1.17 or later");
    if (!ranks_join())
        return failed(ranks_error());
    pthread_mutex_lock(&registering);
    if (!domain)
        status = make_domain();
    pthread_mutex_unlock(&registering);
    return status ? status : ort_api->AddCustomOpDomain(options, domain);
}
