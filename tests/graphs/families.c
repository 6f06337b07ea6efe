/* The families: which maker makes the operands of which op. */
#include "tests/graphs/families.h"

#include <string.h>

/* Operators of pointwise.def that have no row of their own below. */
#define WORD(name) " " #name
#define UNARY(name, kernel, chain, cost, set, real32, real64) WORD(name)
#define ACTIVATION(name, a, b, set, real32, real64) WORD(name)
#define TEST(name, real) WORD(name)
static const char unary_names[] =
#include "kern/pointwise/pointwise.def"
    " ";
#define COMPARE(name, kernel, any) WORD(name)
#define LOGIC(name, kernel, any)
static const char compare_names[] =
#include "kern/pointwise/pointwise.def"
    " ";
#define LOGIC(name, kernel, any) WORD(name)
static const char logic_names[] =
#include "kern/pointwise/pointwise.def"
    " ";
#define BINARY(name, kernel, chain, real32, real64, integer) WORD(name)
static const char binary_names[] =
#include "kern/pointwise/pointwise.def"
    " ";

static const struct family families[] = {
    {make_unary, true, " Abs Neg Floor Ceil Round Sign Relu "},
    {make_unary, false, unary_names},
    {make_unary, false, " com.microsoft::QuickGelu "},
    {make_binary, true, " Add Sub Mul "},
    {make_compare, true, compare_names},
    {make_several, true, " Max Min Sum "},
    {make_quotient, false, " Div "},
    {make_power, false, " Pow "},
    {make_modulo, true, " Mod "},
    {make_logic, true, logic_names},
    {make_not, true, " Not "},
    {make_bitnot, true, " BitwiseNot "},
    {make_bits, true, " BitwiseAnd BitwiseOr BitwiseXor "},
    {make_shift, true, " BitShift "},
    {make_where, true, " Where "},
    {make_clip, true, " Clip "},
    {make_cast, true, " Cast "},
    {make_castlike, true, " CastLike "},
    {make_prelu, true, " PRelu "},
    {make_binary, false, binary_names},

    {make_identity, true, " Identity "},
    {make_transpose, true, " Transpose "},
    {make_concat, true, " Concat "},
    {make_split, true, " Split "},
    {make_slice, true, " Slice "},
    {make_tile, true, " Tile "},
    {make_trilu, true, " Trilu "},
    {make_repeat, true, " tpc::Repeat "},
    {make_pad, true, " Pad "},
    {make_resize, true, " Resize "},
    {make_depth, true, " DepthToSpace SpaceToDepth "},

    {make_reshape, true, " Reshape "},
    {make_flatten, true, " Flatten "},
    {make_squeeze, true, " Squeeze "},
    {make_unsqueeze, true, " Unsqueeze "},
    {make_expand, true, " Expand "},
    {make_fill, true, " ConstantOfShape "},
    {make_range, true, " Range "},
    {make_shape, true, " Shape Size "},

    {make_gather, true, " Gather "},
    {make_gathernd, true, " GatherND "},
    {make_scatternd, true, " ScatterND "},
    {make_gatherelements, true, " GatherElements "},
    {make_scatterelements, true, " ScatterElements "},
    {make_arg, true, " ArgMax ArgMin "},
    {make_topk, true, " TopK "},
    {make_onehot, true, " OneHot "},
    {make_cumsum, true, " CumSum "},
    {make_cumsum, false, " CumProd "},
    {make_nonzero, true, " NonZero "},

    /* a product of many is exact for no integers but -1, 0 and 1: it overflows, and then meets a zero */
    {make_reduce, true, " ReduceMax ReduceMin ReduceSum "},
    {make_reduce, false, " ReduceMean ReduceProd "},
    {make_softmax, false, " Softmax LogSoftmax "},
    {make_softmax, true, " Hardmax "},
    {make_norm, false, " LayerNormalization RMSNormalization SimplifiedLayerNormalization com.microsoft::SimplifiedLayerNormalization "},
    {make_skipnorm, false, " SkipSimplifiedLayerNormalization com.microsoft::SkipSimplifiedLayerNormalization "},
    {make_channelnorm, false, " BatchNormalization InstanceNormalization GroupNormalization "},
    {make_pool, true, " MaxPool "},
    {make_pool, false, " AveragePool LpPool "},
    {make_globalpool, true, " GlobalMaxPool "},
    {make_globalpool, false, " GlobalAveragePool GlobalLpPool "},
    {make_lrn, false, " LRN "},
    {make_loss, false, " NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss "},

    {make_matmul, true, " MatMul "},
    {make_gemm, true, " Gemm "},
    {make_einsum, true, " Einsum "},
    {make_conv, true, " Conv "},
    {make_convtranspose, true, " ConvTranspose "},
    {make_moe, false, " com.microsoft::MoE "},
    {make_qmoe, false, " com.microsoft::QMoE "},

    {make_quantize, false, " QuantizeLinear "},
    {make_dequantize, false, " DequantizeLinear "},
    {make_dynamicquantize, false, " DynamicQuantizeLinear "},
    {make_matmulinteger, true, " MatMulInteger "},
    {make_matmulnbits, false, " com.microsoft::MatMulNBits "},
    {make_gatherblock, false, " com.microsoft::GatherBlockQuantized "},

    {make_recurrent, false, " RNN GRU LSTM com.microsoft::DynamicQuantizeLSTM "},

    {make_dft, false, " DFT "},
    {make_stft, false, " STFT "},
    {make_reverse, false, " ReverseSequence "},

    {make_attention, false, " Attention "},
    {make_gqa, false, " com.microsoft::GroupQueryAttention "},
    {make_rotary, false, " RotaryEmbedding "},
};

/* These have samples in tests/selfcheck.def. */
#define SHAPES "its operands have shapes that no value of a random graph has"

static const struct {
    const char *op, *why;
} reasons[] = {
    {"AffineGrid", SHAPES},
    {"Bernoulli", "draws numbers"},
    {"BitCast", "the bits of a float differ where its last place does"},
    {"CausalConvWithState", SHAPES},
    {"CenterCropPad", SHAPES},
    {"Col2Im", SHAPES},
    {"Compress", SHAPES},
    {"Constant", "a constant as soon as a file is loaded"},
    {"DeformConv", SHAPES},
    {"Det", SHAPES},
    {"GridSample", SHAPES},
    {"If", "has bodies, which are no part of a random graph"},
    {"LinearAttention", SHAPES},
    {"Loop", "has a body"},
    {"MaxUnpool", SHAPES},
    {"MelWeightMatrix", "a constant, for its operands are"},
    {"NonMaxSuppression", "a score that differs in its last place selects another box"},
    {"RandomNormal", "draws numbers"},
    {"RandomNormalLike", "draws numbers"},
    {"RandomUniform", "draws numbers"},
    {"RandomUniformLike", "draws numbers"},
    {"RegexFullMatch", "a random graph has no strings"},
    {"RoiAlign", "regions of random numbers are no boxes"},
    {"Scan", "has a body"},
    {"StringConcat", "a random graph has no strings"},
    {"StringNormalizer", "a random graph has no strings"},
    {"StringSplit", "a random graph has no strings"},
    {"TensorScatter", "indices of random numbers do not fit the cache"},
    {"TfIdfVectorizer", "random tokens are in no pool"},
    {"Unique", "numbers that differ in their last place only are two"},
};

const struct family *family_of(const struct op *op)
{
    char word[96];
    (void)snprintf(word, sizeof word, " %s%s%s ", op->domain, *op->domain ? "::" : "", op->name);
    for (size_t i = 0; i < sizeof families / sizeof *families; i++)
        if (strstr(families[i].ops, word))
            return &families[i];
    return NULL;
}

bool family_is_exact(const struct op *op)
{
    const struct family *f = family_of(op);
    return f && f->exact;
}

const char *family_reason(const struct op *op)
{
    if (strcmp(op->domain, "tpc") == 0)
        return "made by tpc itself";
    if (strcmp(op->domain, "com.microsoft") == 0 && !op->kernel)
        return "written out as standard ops";
    if (strcmp(op->domain, "ai.onnx.ml") == 0)
        return "maps classes, of which random numbers are none";
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (!*op->domain && strcmp(reasons[i].op, op->name) == 0)
            return reasons[i].why;
    return NULL;
}
