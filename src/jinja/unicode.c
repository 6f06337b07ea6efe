/* Characters as Python's str sees them: classes, and case mappings, which may change the number of characters. */
#include "jinja/jinja.h"

#include <utf8proc.h>

static const int32_t more_digits[][2] = {{0xb2, 0xb3},     {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},   {0x2070, 0x2070},
                                         {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247c},   {0x2488, 0x2490},
                                         {0x24ea, 0x24ea}, {0x24f5, 0x24fd},   {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},
                                         {0x278a, 0x2792}, {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
static const int32_t more_upper[][2] = {{0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};
static const int32_t more_lower[][2] = {{0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},    {0x2e0, 0x2e4},
                                        {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},  {0x1d9b, 0x1dbf},
                                        {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2170, 0x217f},  {0x24d0, 0x24e9},
                                        {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f},
                                        {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
static const struct special {
    int32_t from, to[2][3]; /* in upper case, in title case */
} specials[] = {
    {0xdf, {{0x53, 0x53}, {0x53, 0x73}}},
    {0x149, {{0x2bc, 0x4e}, {0x2bc, 0x4e}}},
    {0x1f0, {{0x4a, 0x30c}, {0x4a, 0x30c}}},
    {0x390, {{0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}}},
    {0x3b0, {{0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}}},
    {0x587, {{0x535, 0x552}, {0x535, 0x582}}},
    {0x1e96, {{0x48, 0x331}, {0x48, 0x331}}},
    {0x1e97, {{0x54, 0x308}, {0x54, 0x308}}},
    {0x1e98, {{0x57, 0x30a}, {0x57, 0x30a}}},
    {0x1e99, {{0x59, 0x30a}, {0x59, 0x30a}}},
    {0x1e9a, {{0x41, 0x2be}, {0x41, 0x2be}}},
    {0x1f50, {{0x3a5, 0x313}, {0x3a5, 0x313}}},
    {0x1f52, {{0x3a5, 0x313, 0x300}, {0x3a5, 0x313, 0x300}}},
    {0x1f54, {{0x3a5, 0x313, 0x301}, {0x3a5, 0x313, 0x301}}},
    {0x1f56, {{0x3a5, 0x313, 0x342}, {0x3a5, 0x313, 0x342}}},
    {0x1f80, {{0x1f08, 0x399}, {0x1f88}}},
    {0x1f81, {{0x1f09, 0x399}, {0x1f89}}},
    {0x1f82, {{0x1f0a, 0x399}, {0x1f8a}}},
    {0x1f83, {{0x1f0b, 0x399}, {0x1f8b}}},
    {0x1f84, {{0x1f0c, 0x399}, {0x1f8c}}},
    {0x1f85, {{0x1f0d, 0x399}, {0x1f8d}}},
    {0x1f86, {{0x1f0e, 0x399}, {0x1f8e}}},
    {0x1f87, {{0x1f0f, 0x399}, {0x1f8f}}},
    {0x1f88, {{0x1f08, 0x399}, {0x1f88}}},
    {0x1f89, {{0x1f09, 0x399}, {0x1f89}}},
    {0x1f8a, {{0x1f0a, 0x399}, {0x1f8a}}},
    {0x1f8b, {{0x1f0b, 0x399}, {0x1f8b}}},
    {0x1f8c, {{0x1f0c, 0x399}, {0x1f8c}}},
    {0x1f8d, {{0x1f0d, 0x399}, {0x1f8d}}},
    {0x1f8e, {{0x1f0e, 0x399}, {0x1f8e}}},
    {0x1f8f, {{0x1f0f, 0x399}, {0x1f8f}}},
    {0x1f90, {{0x1f28, 0x399}, {0x1f98}}},
    {0x1f91, {{0x1f29, 0x399}, {0x1f99}}},
    {0x1f92, {{0x1f2a, 0x399}, {0x1f9a}}},
    {0x1f93, {{0x1f2b, 0x399}, {0x1f9b}}},
    {0x1f94, {{0x1f2c, 0x399}, {0x1f9c}}},
    {0x1f95, {{0x1f2d, 0x399}, {0x1f9d}}},
    {0x1f96, {{0x1f2e, 0x399}, {0x1f9e}}},
    {0x1f97, {{0x1f2f, 0x399}, {0x1f9f}}},
    {0x1f98, {{0x1f28, 0x399}, {0x1f98}}},
    {0x1f99, {{0x1f29, 0x399}, {0x1f99}}},
    {0x1f9a, {{0x1f2a, 0x399}, {0x1f9a}}},
    {0x1f9b, {{0x1f2b, 0x399}, {0x1f9b}}},
    {0x1f9c, {{0x1f2c, 0x399}, {0x1f9c}}},
    {0x1f9d, {{0x1f2d, 0x399}, {0x1f9d}}},
    {0x1f9e, {{0x1f2e, 0x399}, {0x1f9e}}},
    {0x1f9f, {{0x1f2f, 0x399}, {0x1f9f}}},
    {0x1fa0, {{0x1f68, 0x399}, {0x1fa8}}},
    {0x1fa1, {{0x1f69, 0x399}, {0x1fa9}}},
    {0x1fa2, {{0x1f6a, 0x399}, {0x1faa}}},
    {0x1fa3, {{0x1f6b, 0x399}, {0x1fab}}},
    {0x1fa4, {{0x1f6c, 0x399}, {0x1fac}}},
    {0x1fa5, {{0x1f6d, 0x399}, {0x1fad}}},
    {0x1fa6, {{0x1f6e, 0x399}, {0x1fae}}},
    {0x1fa7, {{0x1f6f, 0x399}, {0x1faf}}},
    {0x1fa8, {{0x1f68, 0x399}, {0x1fa8}}},
    {0x1fa9, {{0x1f69, 0x399}, {0x1fa9}}},
    {0x1faa, {{0x1f6a, 0x399}, {0x1faa}}},
    {0x1fab, {{0x1f6b, 0x399}, {0x1fab}}},
    {0x1fac, {{0x1f6c, 0x399}, {0x1fac}}},
    {0x1fad, {{0x1f6d, 0x399}, {0x1fad}}},
    {0x1fae, {{0x1f6e, 0x399}, {0x1fae}}},
    {0x1faf, {{0x1f6f, 0x399}, {0x1faf}}},
    {0x1fb2, {{0x1fba, 0x399}, {0x1fba, 0x345}}},
    {0x1fb3, {{0x391, 0x399}, {0x1fbc}}},
    {0x1fb4, {{0x386, 0x399}, {0x386, 0x345}}},
    {0x1fb6, {{0x391, 0x342}, {0x391, 0x342}}},
    {0x1fb7, {{0x391, 0x342, 0x399}, {0x391, 0x342, 0x345}}},
    {0x1fbc, {{0x391, 0x399}, {0x1fbc}}},
    {0x1fc2, {{0x1fca, 0x399}, {0x1fca, 0x345}}},
    {0x1fc3, {{0x397, 0x399}, {0x1fcc}}},
    {0x1fc4, {{0x389, 0x399}, {0x389, 0x345}}},
    {0x1fc6, {{0x397, 0x342}, {0x397, 0x342}}},
    {0x1fc7, {{0x397, 0x342, 0x399}, {0x397, 0x342, 0x345}}},
    {0x1fcc, {{0x397, 0x399}, {0x1fcc}}},
    {0x1fd2, {{0x399, 0x308, 0x300}, {0x399, 0x308, 0x300}}},
    {0x1fd3, {{0x399, 0x308, 0x301}, {0x399, 0x308, 0x301}}},
    {0x1fd6, {{0x399, 0x342}, {0x399, 0x342}}},
    {0x1fd7, {{0x399, 0x308, 0x342}, {0x399, 0x308, 0x342}}},
    {0x1fe2, {{0x3a5, 0x308, 0x300}, {0x3a5, 0x308, 0x300}}},
    {0x1fe3, {{0x3a5, 0x308, 0x301}, {0x3a5, 0x308, 0x301}}},
    {0x1fe4, {{0x3a1, 0x313}, {0x3a1, 0x313}}},
    {0x1fe6, {{0x3a5, 0x342}, {0x3a5, 0x342}}},
    {0x1fe7, {{0x3a5, 0x308, 0x342}, {0x3a5, 0x308, 0x342}}},
    {0x1ff2, {{0x1ffa, 0x399}, {0x1ffa, 0x345}}},
    {0x1ff3, {{0x3a9, 0x399}, {0x1ffc}}},
    {0x1ff4, {{0x38f, 0x399}, {0x38f, 0x345}}},
    {0x1ff6, {{0x3a9, 0x342}, {0x3a9, 0x342}}},
    {0x1ff7, {{0x3a9, 0x342, 0x399}, {0x3a9, 0x342, 0x345}}},
    {0x1ffc, {{0x3a9, 0x399}, {0x1ffc}}},
    {0xfb00, {{0x46, 0x46}, {0x46, 0x66}}},
    {0xfb01, {{0x46, 0x49}, {0x46, 0x69}}},
    {0xfb02, {{0x46, 0x4c}, {0x46, 0x6c}}},
    {0xfb03, {{0x46, 0x46, 0x49}, {0x46, 0x66, 0x69}}},
    {0xfb04, {{0x46, 0x46, 0x4c}, {0x46, 0x66, 0x6c}}},
    {0xfb05, {{0x53, 0x54}, {0x53, 0x74}}},
    {0xfb06, {{0x53, 0x54}, {0x53, 0x74}}},
    {0xfb13, {{0x544, 0x546}, {0x544, 0x576}}},
    {0xfb14, {{0x544, 0x535}, {0x544, 0x565}}},
    {0xfb15, {{0x544, 0x53b}, {0x544, 0x56b}}},
    {0xfb16, {{0x54e, 0x546}, {0x54e, 0x576}}},
    {0xfb17, {{0x544, 0x53d}, {0x544, 0x56d}}},
};

#define WITHIN(c, table) within(c, sizeof table / sizeof *table, table)
static bool within(int32_t c, size_t n, const int32_t (*table)[2])
{
    for (size_t i = 0; i < n; i++)
        if (c >= table[i][0] && c <= table[i][1])
            return true;
    return false;
}

static bool is_letter(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool is_number(int32_t c)
{
    utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}

bool jinja_char_is_space(int32_t c)
{
    return (c >= 0x09 && c <= 0x0d) || (c >= 0x1c && c <= 0x20) || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
        c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool jinja_char_is_printable(int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP: return false;
    case UTF8PROC_CATEGORY_ZS: return c == ' ';
    default: return true;
    }
}

static bool is_of(int32_t c, enum jinja_class class)
{
    bool decimal = utf8proc_category(c) == UTF8PROC_CATEGORY_ND;
    switch (class) {
    case JINJA_ALPHA: return is_letter(c);
    case JINJA_DECIMAL: return decimal;
    case JINJA_DIGIT: return decimal || WITHIN(c, more_digits);
    case JINJA_ALNUM: return is_letter(c) || is_number(c);
    case JINJA_SPACE: return jinja_char_is_space(c);
    case JINJA_PRINTABLE: return jinja_char_is_printable(c);
    case JINJA_ASCII: return c < 0x80;
    }
    return false;
}

bool jinja_all(const struct jinja_string *s, enum jinja_class class)
{
    for (size_t i = 0; i < s->n;)
        if (!is_of(jinja_next(s, &i), class))
            return false;
    return s->n > 0 || class == JINJA_PRINTABLE || class == JINJA_ASCII;
}

/* ---- case -------------------------------------------------------------------------------------------------------------- */

static bool is_upper(int32_t c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LU || WITHIN(c, more_upper);
}

static bool is_lower(int32_t c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LL || WITHIN(c, more_lower);
}

static bool is_title(int32_t c)
{
    return utf8proc_category(c) == UTF8PROC_CATEGORY_LT;
}

static bool is_cased(int32_t c)
{
    return is_upper(c) || is_lower(c) || is_title(c);
}

bool jinja_is_cased(const struct jinja_string *s, bool upper)
{
    bool any = false;
    for (size_t i = 0; i < s->n;) {
        int32_t c = jinja_next(s, &i);
        if (is_title(c) || (upper ? is_lower(c) : is_upper(c)))
            return false;
        any = any || (upper ? is_upper(c) : is_lower(c));
    }
    return any;
}

bool jinja_is_title(const struct jinja_string *s)
{
    bool any = false, within_word = false;
    for (size_t i = 0; i < s->n;) {
        int32_t c = jinja_next(s, &i);
        if (is_lower(c) ? !within_word : (is_upper(c) || is_title(c)) && within_word)
            return false;
        within_word = is_cased(c);
        any = any || within_word;
    }
    return any;
}

static bool is_ignored(int32_t c)
{
    static const int32_t mark[][2] = {{0x27, 0x27},     {0x2e, 0x2e},     {0x3a, 0x3a},     {0xb7, 0xb7},
                                      {0x387, 0x387},   {0x55f, 0x55f},   {0x5f4, 0x5f4},   {0x2018, 0x2019},
                                      {0x2024, 0x2024}, {0x2027, 0x2027}, {0xfe13, 0xfe13}, {0xfe52, 0xfe52},
                                      {0xfe55, 0xfe55}, {0xff07, 0xff07}, {0xff0e, 0xff0e}, {0xff1a, 0xff1a}};
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_SK: return true;
    default: return WITHIN(c, mark);
    }
}

/* The range is a word-final sigma, which has another lower case. */
static bool ends_word(const struct jinja_string *s, size_t from, size_t to)
{
    bool before = false;
    for (size_t i = from; i > 0;) {
        int32_t c = jinja_before(s, &i);
        if (!is_ignored(c)) {
            before = is_cased(c);
            break;
        }
    }
    for (size_t i = to; before && i < s->n;) {
        int32_t c = jinja_next(s, &i);
        if (!is_ignored(c))
            return !is_cased(c);
    }
    return before;
}

static void put_lower(struct jinja_builder *b, const struct jinja_string *s, size_t from, size_t to, int32_t c, bool marked)
{
    enum { SIGMA = 0x3a3, FINAL_SIGMA = 0x3c2, I_WITH_DOT = 0x130, DOT = 0x307 };
    if (c == SIGMA) {
        jinja_put_char(b, ends_word(s, from, to) ? FINAL_SIGMA : utf8proc_tolower(c), marked);
    } else if (c == I_WITH_DOT) {
        jinja_put_char(b, 'i', marked);
        jinja_put_char(b, DOT, marked);
    } else {
        jinja_put_char(b, utf8proc_tolower(c), marked);
    }
}

static void put_upper(struct jinja_builder *b, int32_t c, bool title, bool marked)
{
    for (size_t i = 0; c >= specials[0].from && i < sizeof specials / sizeof *specials; i++)
        if (specials[i].from == c) {
            for (int k = 0; k < 3 && specials[i].to[title][k]; k++)
                jinja_put_char(b, specials[i].to[title][k], marked);
            return;
        }
    jinja_put_char(b, title ? utf8proc_totitle(c) : utf8proc_toupper(c), marked);
}

void jinja_put_case(struct jinja_builder *b, const struct jinja_string *s, enum jinja_case kind)
{
    bool within_word = false;
    jinja_step(b->run, s->n * 4);
    for (size_t i = 0; i < s->n;) {
        size_t from = i;
        int32_t c = jinja_next(s, &i);
        bool marked = s->mark && s->mark[from];
        bool lower = kind == JINJA_LOWER || (kind == JINJA_TITLE && within_word) || (kind == JINJA_SWAP && is_upper(c));
        bool upper = kind == JINJA_UPPER || kind == JINJA_TITLE || (kind == JINJA_SWAP && is_lower(c));
        if (lower)
            put_lower(b, s, from, i, c, marked);
        else if (upper)
            put_upper(b, c, kind == JINJA_TITLE, marked);
        else
            jinja_put_char(b, c, marked);
        if (kind == JINJA_TITLE)
            within_word = is_cased(c);
    }
}

void jinja_put_capitalized(struct jinja_builder *b, const struct jinja_string *s)
{
    jinja_step(b->run, s->n * 4);
    for (size_t i = 0; i < s->n;) {
        size_t from = i;
        int32_t c = jinja_next(s, &i);
        bool marked = s->mark && s->mark[from];
        if (from == 0)
            put_upper(b, c, true, marked);
        else
            put_lower(b, s, from, i, c, marked);
    }
}
