/* state_match: matches the states of two graphs of a model: the prefill graph of a decoder makes what its step graph takes.
 *
 * Names are compared by components between '.', '_' and '/'. The pairs with the most trailing components in common are made first, then,
 * among the rest, those with one less, so past.0.key takes present.0.key and not present.0.value or other.key. */
#include "ir/ir.h"

#include <string.h>

enum { MOST_COMPONENTS = 32 }; /* components compared: names in files may be of any length */

static bool is_separator(char c)
{
    return c == '.' || c == '_' || c == '/';
}

/* Whole components at the end of both names. */
static int common_components(const char *a, const char *b)
{
    size_t i = strlen(a), j = strlen(b);
    int n = 0;
    for (; i > 0 && j > 0 && (a[i - 1] == b[j - 1] || (is_separator(a[i - 1]) && is_separator(b[j - 1]))); i--, j--)
        n += is_separator(a[i - 1]);
    bool whole = (i == 0 || is_separator(a[i - 1])) && (j == 0 || is_separator(b[j - 1]));
    return n + whole < MOST_COMPONENTS ? n + whole : MOST_COMPONENTS;
}

/* Numbers in names count layers: they must be the same ones in the same order. */
static bool same_numbers(const char *a, const char *b)
{
    static const char digits[] = "0123456789";
    for (;;) {
        a += strcspn(a, digits);
        b += strcspn(b, digits);
        size_t n = strspn(a, digits);
        if (n != strspn(b, digits) || strncmp(a, b, n) != 0)
            return false;
        if (n == 0)
            return true;
        a += n;
        b += n;
    }
}

static bool same_form(const struct type *a, const struct type *b)
{
    int64_t k, l;
    for (int d = 0; d < a->rank && d < b->rank; d++)
        if (dim_is_int(a->dim[d], &k) && dim_is_int(b->dim[d], &l) && k != l)
            return false;
    return a->dtype == b->dtype && a->rank == b->rank;
}

static int likeness(const struct handed *a, const struct handed *b)
{
    return same_form(&a->type, &b->type) && same_numbers(a->name, b->name) ? common_components(a->name, b->name) : 0;
}

struct matching {
    const struct handover *to, *from;
    int *like, *match, *back;
}; /* like: [to * from->n + from]; back: by from */

static int like(const struct matching *m, int i, int j)
{
    return m->like[(int64_t)i * m->from->n + j];
}

_Noreturn static void fail_ambiguous(const struct handover *a, int i, const struct handover *b, int j, int k)
{
    fail("%s: state '%s' may be '%s' or '%s' of %s: name the state in a plan file", a->file, a->at[i].name, b->at[j].name, b->at[k].name,
         b->file);
}

/* Pairs states with `level` common components and no closer partner; the partner must be unique. */
static void match_level(struct matching *m, int level)
{
    for (int i = 0; i < m->to->n; i++)
        for (int j = 0; j < m->from->n; j++) {
            int other = m->match[i], rival = m->back[j];
            if (like(m, i, j) != level || (other >= 0 && like(m, i, other) > level) || (rival >= 0 && like(m, rival, j) > level))
                continue;
            if (other >= 0)
                fail_ambiguous(m->to, i, m->from, other, j);
            if (rival >= 0)
                fail_ambiguous(m->from, j, m->to, rival, i);
            m->match[i] = j;
            m->back[j] = i;
        }
}

void state_match(const struct handover *to, const struct handover *from, int *match)
{
    struct arena *tmp = arena_new();
    int64_t pairs = (int64_t)to->n * from->n;
    struct matching m = {to, from, NEWN(tmp, int, pairs + 1), match, NEWN(tmp, int, from->n + 1)};
    for (int64_t k = 0; k < pairs; k++)
        m.like[k] = likeness(&to->at[k / from->n], &from->at[k % from->n]);
    for (int i = 0; i < to->n; i++)
        match[i] = -1;
    for (int j = 0; j < from->n; j++)
        m.back[j] = -1;
    for (int level = MOST_COMPONENTS; level > 0; level--)
        match_level(&m, level);
    arena_free(tmp);
}
