/* char: classes of characters, by utf8proc. */
#include "tokenizer/tokenizer.h"

#include <utf8proc.h>

static utf8proc_category_t category(int32_t c)
{
    return utf8proc_category(c);
}

bool char_is_space(int32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x85 || category(c) == UTF8PROC_CATEGORY_ZS || c == 0x2028 || c == 0x2029;
}

/* Punctuation added to Unicode since version 9. Hugging Face's tokenizers use the categories of version 8. */
static bool is_new_punctuation(int32_t c)
{
    static const int32_t block[][2] = {
        {0x61d, 0x61d},     {0x9fd, 0x9fd},     {0xa76, 0xa76},     {0xc77, 0xc77},     {0xc84, 0xc84},     {0x166d, 0x166d},
        {0x1b7d, 0x1b7e},   {0x2e43, 0x2e4f},   {0x2e52, 0x2e5d},   {0x10ead, 0x10ead}, {0x10f55, 0x10f59}, {0x10f86, 0x10f89},
        {0x111c9, 0x111c9}, {0x1144b, 0x1144f}, {0x1145a, 0x1145b}, {0x1145d, 0x1145d}, {0x11660, 0x1166c}, {0x116b9, 0x116b9},
        {0x1183b, 0x1183b}, {0x11944, 0x11946}, {0x119e2, 0x119e2}, {0x11a3f, 0x11a46}, {0x11a9a, 0x11a9c}, {0x11a9e, 0x11aa2},
        {0x11b00, 0x11b09}, {0x11c41, 0x11c45}, {0x11c70, 0x11c71}, {0x11ef7, 0x11ef8}, {0x11f43, 0x11f4f}, {0x11fff, 0x11fff},
        {0x12ff1, 0x12ff2}, {0x16e97, 0x16e9a}, {0x16fe2, 0x16fe2}, {0x1e95e, 0x1e95f},
    };
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        if (c >= block[i][0] && c <= block[i][1])
            return true;
    return false;
}

bool char_is_punctuation(int32_t c)
{
    utf8proc_category_t k = category(c);
    bool ascii = (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    return ascii || (k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO && !is_new_punctuation(c));
}

bool char_is_number(int32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_NO;
}

bool char_is_control(int32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CO || k == UTF8PROC_CATEGORY_CS;
}

bool char_is_nonspacing(int32_t c)
{
    return category(c) == UTF8PROC_CATEGORY_MN;
}

bool char_is_mark(int32_t c)
{
    utf8proc_category_t k = category(c);
    return k == UTF8PROC_CATEGORY_MN || k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_ME;
}

/* Alphabetic, marks, digits, connectors and joiners: \\w in Rust's regular expressions. */
bool char_is_word(int32_t c)
{
    utf8proc_category_t k = category(c);
    bool circled = (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) || (c >= 0x1f150 && c <= 0x1f169) ||
        (c >= 0x1f170 && c <= 0x1f189);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || char_is_mark(c) || k == UTF8PROC_CATEGORY_ND ||
        k == UTF8PROC_CATEGORY_NL || k == UTF8PROC_CATEGORY_PC || c == 0x200c || c == 0x200d || circled;
}

/* The blocks of CJK ideographs that BERT separates. */
bool char_is_cjk(int32_t c)
{
    static const int32_t block[][2] = {{0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
                                       {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof block / sizeof *block; i++)
        if (c >= block[i][0] && c <= block[i][1])
            return true;
    return false;
}
