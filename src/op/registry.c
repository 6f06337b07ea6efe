/* registry: finds the row of an op. The rows are in op_rows (op/table/table.c); their texts (operands, results, attributes) are parsed
 * once, at the first look-up, into an arena that lives as long as the process. After that any thread only reads. */
#include "ir/rank_meta.h"
#include "op/op.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

enum { KEY_MAX = 256 };

struct registry_key {
    char text[KEY_MAX];
    const struct op *op;
    UT_hash_handle hh;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct arena *table_arena;
static struct op *ops; /* one per row, in order */
static int nop;
static struct registry_key *keys;

/* ---- parsing of row texts ---------------------------------------------------------------------------------------------- */

/* The next word of a row's text, or NULL at its end. */
static char *next_word(const char **text)
{
    const char *start = *text + strspn(*text, " ");
    size_t n = strcspn(start, " ");
    *text = start + n;
    return n ? arena_strndup(table_arena, start, n) : NULL;
}

static int count_words(const char *text)
{
    int n = 0;
    for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
        text += strcspn(text, " ");
        n++;
    }
    return n;
}

/* "name", "name?", "name*", "name?*", each with an optional "!" before and "@size" after. */
static struct op_param parse_operand(char *word)
{
    struct op_param o = {.name = word};
    char *at = strchr(word, '@');
    if (at) {
        o.size = arena_printf(table_arena, "%s", at);
        *at = 0;
    }
    size_t n = strlen(word);
    o.variadic = word[n - 1] == '*';
    n -= o.variadic;
    o.optional = word[n - 1] == '?';
    n -= o.optional;
    o.given = word[n - 1] == '!';
    word[n - o.given] = 0;
    return o;
}

/* Numbers and booleans of whole bytes. */
#define PLAIN_TYPES                                                                                                                        \
    (1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16 | 1u << DT_F64 | 1u << DT_I8 | 1u << DT_I16 | 1u << DT_I32 | 1u << DT_I64 | 1u << DT_U8 | \
     1u << DT_U16 | 1u << DT_U32 | 1u << DT_U64 | 1u << DT_BOOL)

/* Strings only if a row says so. */
#define STORED_TYPES (~(1u << DT_STRING))

static const struct {
    const char *name;
    uint32_t types;
} type_classes[] = {
    {"any", UINT32_MAX},
    {"float", 1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16},
    {"index", 1u << DT_I32 | 1u << DT_I64},
    {"plain", PLAIN_TYPES},
    {"stored", STORED_TYPES},
    {"texts", 1u << DT_STRING | 1u << DT_I64},
    {"labels", 1u << DT_STRING | 1u << DT_I32 | 1u << DT_I64 | 1u << DT_F32 | 1u << DT_F64},
};

/* The name of a class or of a type. */
static uint32_t parse_types(const char *word)
{
    int i = NAMED_ROW(type_classes, word);
    if (i >= 0)
        return type_classes[i].types;
    enum dtype one = dtype_parse(word);
    if (one == DT_NONE)
        bug("schemas/ops.def: TAKES names '%s', which is no type", word);
    return 1u << one;
}

/* A word for each of the first operands; a variadic one covers all that follow. */
static void set_types(struct op_param *operands, int n, const char *takes)
{
    const char *word;
    for (int i = 0; i < n; i++)
        operands[i].types = STORED_TYPES;
    for (int i = 0; takes && (word = next_word(&takes)); i++) {
        if (i == n)
            bug("schemas/ops.def: TAKES has more words than the row has operands");
        operands[i].types = parse_types(word);
    }
}

static const struct op_param *row_operands(const char *text, const char *takes, int *n, int *min, int *max)
{
    *n = count_words(text);
    *min = *max = 0;
    struct op_param *all = NEWN(table_arena, struct op_param, *n);
    for (int i = 0; i < *n; i++) {
        all[i] = parse_operand(next_word(&text));
        if (!all[i].optional)
            *min = i + 1;
        *max = all[i].variadic ? -1 : i + 1;
    }
    set_types(all, *n, takes);
    return all;
}

static enum attr_kind parse_kind(const char *kind)
{
    static const struct {
        const char *text;
        enum attr_kind kind;
    } kinds[] = {{"i", ATTR_INT},      {"f", ATTR_FLOAT}, {"s", ATTR_STRING}, {"is", ATTR_INTS}, {"fs", ATTR_FLOATS},
                 {"ss", ATTR_STRINGS}, {"ds", ATTR_DIMS}, {"t", ATTR_TENSOR}, {"g", ATTR_GRAPH}};
    int i = NAMED_ROW(kinds, kind);
    if (i >= 0)
        return kinds[i].kind;
    bug("schemas/ops.def: no attribute kind '%s'", kind);
}

static void parse_default(struct attr *a, const char *text)
{
    char *end = NULL;
    a->set = true;
    switch (a->kind) {
    case ATTR_INT: a->i = strtoll(text, &end, 10); break;
    case ATTR_FLOAT: a->f = (double)strtof(text, &end); break;
    case ATTR_STRING: a->s = text; return;
    default: bug("schemas/ops.def: attribute '%s' is of a kind that takes no default", a->name);
    }
    if (end == text || *end)
        bug("schemas/ops.def: attribute '%s' has default '%s'", a->name, text);
}

/* "name:kind" or "name:kind=default"; prefix "tpc." marks a noted one. */
static struct op_attr parse_attr(char *word)
{
    bool noted = strncmp(word, RANK_META_NOTE, strlen(RANK_META_NOTE)) == 0;
    struct op_attr a = {.name = word + (noted ? strlen(RANK_META_NOTE) : 0), .noted = noted};
    char *kind = strchr(word, ':');
    if (!kind)
        bug("schemas/ops.def: attribute '%s' has no kind", word);
    *kind++ = 0;
    char *value = strchr(kind, '=');
    if (value)
        *value++ = 0;
    a.kind = parse_kind(kind);
    if (noted && (value || (a.kind != ATTR_INT && a.kind != ATTR_STRING)))
        bug("schemas/ops.def: attribute '%s' of metadata is a plain integer or string", word);
    a.has_default = value != NULL;
    a.value.name = a.name;
    a.value.kind = a.kind;
    if (value)
        parse_default(&a.value, value);
    return a;
}

static const struct op_attr *row_attrs(const char *text, int *n)
{
    *n = count_words(text);
    struct op_attr *all = NEWN(table_arena, struct op_attr, *n);
    for (int i = 0; i < *n; i++)
        all[i] = parse_attr(next_word(&text));
    return all;
}

/* ---- look-up ----------------------------------------------------------------------------------------------------------- */

/* False if the two names are longer than any row's. */
static bool make_key(char *out, const char *domain, const char *name)
{
    if (strcmp(domain, "ai.onnx") == 0)
        domain = "";
    int n = snprintf(out, KEY_MAX, "%s:%s", domain, name);
    return n > 0 && n < KEY_MAX;
}

static const char *name_or_none(const char *name)
{
    return name ? name : "none";
}

static void name_absent(struct op *op)
{
    op->value_name = name_or_none(op->value_name);
    op->rule_name = name_or_none(op->rule_name);
    op->over_name = name_or_none(op->over_name);
    op->lower_name = name_or_none(op->lower_name);
    op->backward_name = name_or_none(op->backward_name);
    op->expand_name = name_or_none(op->expand_name);
    op->kernel_name = name_or_none(op->kernel_name);
}

static void fill_row(struct op *op, const struct op_row *row)
{
    *op = row->op;
    name_absent(op);
    op->in = row_operands(row->inputs, op->takes, &op->nin, &op->min_in, &op->max_in);
    op->out = row_operands(row->outputs, NULL, &op->nout, &op->min_out, &op->max_out);
    op->attr = row_attrs(row->attributes, &op->nattr);
}

static void registry_add(int i)
{
    struct op *op = &ops[i];
    fill_row(op, &op_rows[i]);
    struct registry_key *k = NEW(table_arena, struct registry_key), *twice = NULL;
    if (!make_key(k->text, op->domain, op->name))
        bug("schemas/ops.def: the name of %s is too long", op->name);
    HASH_FIND_STR(keys, k->text, twice);
    if (twice)
        bug("schemas/ops.def: two rows for %s", k->text);
    k->op = op;
    HASH_ADD_STR(keys, text, k);
}

static void build_table(void)
{
    struct scope *user = scope_swap(NULL);
    table_arena = arena_new();
    while (op_rows[nop].op.name)
        nop++;
    ops = NEWN(table_arena, struct op, nop);
    for (int i = 0; i < nop; i++)
        registry_add(i);
    (void)scope_swap(user);
}

static void ensure_table(void)
{
    if (pthread_once(&once, build_table))
        bug("pthread_once failed");
}

/* ---- rows of plug-ins: a list that threads may read while it grows --------------------------------------------------------- */

struct added_row {
    const struct op *op;
    struct added_row *next;
};
static _Atomic(struct added_row *) added;

static const struct op *find_added(const char *domain, const char *name)
{
    for (const struct added_row *at = atomic_load(&added); at; at = at->next)
        if (strcmp(at->op->domain, domain) == 0 && strcmp(at->op->name, name) == 0)
            return at->op;
    return NULL;
}

void op_fill(struct op *op, const struct op_row *row)
{
    ensure_table();
    struct scope *user = scope_swap(NULL);
    fill_row(op, row);
    (void)scope_swap(user);
}

void op_add(const struct op *op)
{
    struct scope *user = scope_swap(NULL);
    struct added_row *row = NEW(table_arena, struct added_row);
    (void)scope_swap(user);
    *row = (struct added_row){op, atomic_load(&added)};
    atomic_store(&added, row);
}

const struct op *op_find(const char *domain, const char *name)
{
    char text[KEY_MAX];
    struct registry_key *k = NULL;
    ensure_table();
    if (!make_key(text, domain ? domain : "", name))
        return NULL;
    HASH_FIND_STR(keys, text, k);
    return k ? k->op : find_added(domain ? domain : "", name);
}

int op_count(void)
{
    ensure_table();
    return nop;
}

const struct op *op_at(int index)
{
    ensure_table();
    require(index >= 0 && index < nop);
    return &ops[index];
}

struct node *op_made_by(const struct value *v, const char *op)
{
    return v && op_is_onnx(v->producer, op) ? v->producer : NULL;
}

bool op_is_tpc(const struct node *node, const char *name)
{
    return node && node->op && strcmp(node->op->domain, "tpc") == 0 && strcmp(node->op->name, name) == 0;
}

bool op_communicates(const struct node *node)
{
    if (!node->op)
        return false;
    bool own = (node->op->flags & OP_RECURS) && strcmp(node->op->domain, "tpc") == 0;
    return (node->op->flags & OP_COLLECTIVE) || (own && attr_is_set(node, "units"));
}

bool op_resolved(const struct node *node)
{
    const struct op *op = node->op;
    for (int i = 0; op && i < node->nin && i < op->nin; i++)
        if (node->in[i] && op->in[i].size)
            return false;
    return true;
}
