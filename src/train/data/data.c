/* data: memory-mapped files of tokens: a .npy of integers, one stream [n] or samples [n, positions]; raw tokens of 16 bits, or of 32 bits
 * in a file *.u32; llm.c's files, with a header. */
#include "onnx/onnx.h"
#include "train/train.h"

#include <string.h>

enum { HEAD = 256 * sizeof(int32_t), HEAD_TOKENS = 2 * sizeof(int32_t) };    /* llm.c's header; the offset of its number of tokens */
static const int32_t head_u16[] = {20240520, 1}, head_u32[] = {20240801, 7}; /* magic and version of llm.c */

static struct token_file open_npy(const char *path)
{
    struct tensor t = tensor_map_npy(path);
    bool number = t.dtype == DT_U8 || t.dtype == DT_U16 || t.dtype == DT_I32 || t.dtype == DT_U32 || t.dtype == DT_I64;
    if (!number || t.rank < 1 || t.rank > 2)
        fail("%s: has %d dimensions of %s, expected tokens [n] or [samples, positions] of u8, u16, i32, u32 or i64", path, t.rank,
             dtype_name(t.dtype));
    return (struct token_file){path, t.dtype, t.data, t.rank == 2 ? t.dim[0] : 1, t.dim[t.rank - 1], NULL};
}

/* The header of llm.c's file has the number of tokens: it must match, unless the file was truncated. */
static void check_head(const struct token_file *f, const uint8_t *head)
{
    uint32_t n;
    memcpy(&n, head + HEAD_TOKENS, sizeof n);
    if (n != f->row)
        fail("%s: its header says %lu tokens, but it has %lld", f->path, (unsigned long)n, (long long)f->row);
}

static struct token_file open_raw(const char *path)
{
    if (!path_ends(path, ".bin") && !path_ends(path, ".u16") && !path_ends(path, ".u32"))
        fail_usage("%s: expected text in a .txt, .md, .rst, .tex or .html, samples in a .jsonl, "
                   "tokens in a .npy, or raw ones in a .bin, .u16 or .u32",
                   path);
    struct map m = map_file(path);
    struct token_file f = {path, path_ends(path, ".u32") ? DT_U32 : DT_U16, m.at, 1, 0, NULL};
    size_t bytes = m.bytes;
    bool u16 = bytes >= sizeof head_u16 && memcmp(m.at, head_u16, sizeof head_u16) == 0,
         u32 = bytes >= sizeof head_u32 && memcmp(m.at, head_u32, sizeof head_u32) == 0;
    if ((u16 || u32) && bytes < HEAD)
        fail("%s: begins with the head of a file of llm.c, of %d bytes, and has %zu", path, HEAD, bytes);
    if (u16 || u32) {
        f.dtype = u16 ? DT_U16 : DT_U32;
        f.at = m.at + HEAD;
        bytes -= HEAD;
    }
    if (bytes % dtype_size(f.dtype))
        fail("%s: has %zu bytes, which are no tokens of %zu bytes", path, bytes, dtype_size(f.dtype));
    f.row = (int64_t)(bytes / dtype_size(f.dtype));
    if (u16 || u32)
        check_head(&f, m.at);
    return f;
}

struct token_file data_open(const char *path)
{
    return path_ends(path, ".npy") ? open_npy(path) : open_raw(path);
}

int64_t data_token(const struct token_file *f, int64_t i)
{
    const char *at = (const char *)f->at + i * (int64_t)dtype_size(f->dtype);
    uint16_t small;
    uint32_t wide;
    int64_t widest;
    switch (f->dtype) {
    case DT_U8: return *(const uint8_t *)at;
    case DT_U16: memcpy(&small, at, sizeof small); return small;
    case DT_U32: memcpy(&wide, at, sizeof wide); return wide;
    case DT_I32: memcpy(&wide, at, sizeof wide); return (int32_t)wide;
    case DT_I64: memcpy(&widest, at, sizeof widest); return widest;
    default: bug("tokens of type %s", dtype_name(f->dtype));
    }
}

int64_t data_draw(int64_t seed, int64_t number, int64_t n)
{
    uint64_t own = splitmix((uint64_t)seed - SPLITMIX_STEP); /* so that neighbouring seeds start far apart */
    return (int64_t)(splitmix(own + (uint64_t)number * SPLITMIX_STEP) % (uint64_t)n);
}

bool data_is_text(const char *path)
{
    static const char *const end[] = {".txt", ".md", ".rst", ".tex", ".html"};
    bool is = data_is_samples(path);
    for (size_t i = 0; i < sizeof end / sizeof *end; i++)
        is = is || path_ends(path, end[i]);
    return is;
}

bool data_is_samples(const char *path)
{
    return path_ends(path, ".jsonl");
}
