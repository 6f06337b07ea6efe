/* state_rows: states as rows of a batch: rows of different lengths join and leave. A session has one current set of states, and a caller
 * may have others to switch to. Columns of a row may be copied from states and to them. */
#include "run/session/session.h"

#include <string.h>

struct session_states {
    struct arena *arena;
    int n;
    struct state_slot *at; /* only what slot_content holds */
};

/* ---- sets ---- */

struct session_states *session_states_new(const struct session *s)
{
    struct arena *a = arena_new();
    struct session_states *set = NEW(a, struct session_states);
    set->arena = a;
    set->n = s->states.n;
    set->at = NEWN(a, struct state_slot, set->n);
    for (int i = 0; i < set->n; i++) {
        set->at[i] = s->states.at[i];
        state_empty(&set->at[i]);
    }
    return set;
}

void session_states_free(struct session_states *set)
{
    for (int i = 0; i < set->n; i++)
        buffer_free(&set->at[i].memory);
    arena_free(set->arena);
}

void session_states_swap(struct session *s, struct session_states *set)
{
    for (int i = 0; i < set->n; i++) {
        struct state_slot other = set->at[i];
        set->at[i] = s->states.at[i];
        s->states.at[i] = other;
        s->stats.state_bytes += (int64_t)other.memory.bytes - (int64_t)set->at[i].memory.bytes;
    }
    s->planned = false;
}

/* ---- rows ---- */

/* The dimension of a state whose size is the symbol; -1: none, or several. */
static int row_dim(const struct session *s, const struct state_slot *k, const char *symbol)
{
    const struct type *t = &s->sig.in[k->input].type;
    int found = -1, n = 0;
    for (int d = 0; d < t->rank; d++)
        if (t->dim[d]->kind == DIM_SYM && strcmp(t->dim[d]->name, symbol) == 0 && ++n)
            found = d;
    return n == 1 ? found : -1;
}

const char *session_states_without_rows(const struct session *s, const char *symbol)
{
    EACH (const struct state_slot, k, s->states) {
        const struct placement *p = &s->sig.in[k->input].place;
        int rows = row_dim(s, k, symbol);
        if (k->output < 0 || rows < 0 || (k->axis >= 0 && rows > k->axis) || (p->kind == PLACE_S && p->dim == rows))
            return s->sig.in[k->input].name;
    }
    return NULL;
}

bool session_states_grow(const struct session *s)
{
    for (int i = 0; i < s->states.n; i++)
        if (s->states.at[i].axis >= 0)
            return true;
    return false;
}

/* A tensor seen as [outer][row][mid][column][inner bytes]. */
struct row_view {
    char *at;
    int64_t outer, rows, mid, columns, inner; /* columns: including spare ones */
};

static int64_t product(const struct tensor *t, int from, int to)
{
    int64_t n;
    return type_sizes_product(t->dim + from, to - from, &n) ? n : 0;
}

static struct row_view view_rows(const struct tensor *t, int rows, int axis)
{
    int last = axis < 0 ? rows : axis;
    struct row_view v = {.at = t->data, .outer = product(t, 0, rows), .rows = t->dim[rows], .mid = 1, .columns = 1};
    v.inner = product(t, last + 1, t->rank) * (int64_t)dtype_size(t->dtype);
    if (axis >= 0) {
        v.mid = product(t, rows + 1, axis);
        v.columns = t->room ? t->room : t->dim[axis];
    }
    return v;
}

static char *place_in(const struct row_view *v, int64_t outer, int64_t row, int64_t mid, int64_t column)
{
    return v->at + (((outer * v->rows + row) * v->mid + mid) * v->columns + column) * v->inner;
}

static void copy_row(const struct row_view *to, int64_t row, const struct row_view *from, const struct session_state_row *r, bool grows)
{
    int64_t n = grows ? r->columns : 1;
    for (int64_t o = 0; o < to->outer; o++)
        for (int64_t m = 0; m < to->mid; m++)
            memcpy(place_in(to, o, row, m, grows ? r->to : 0), place_in(from, o, r->row, m, grows ? r->column : 0),
                   (size_t)(n * to->inner));
}

/* The slot that holds a row's content. */
static const struct state_slot *source(const struct session *s, int slot, const struct session_state_row *r)
{
    return r->from ? &r->from->at[slot] : &s->states.at[slot];
}

static void compose_slot(struct session *s, int slot, const char *symbol, int64_t rows, int64_t columns,
                         const struct session_state_row *row)
{
    struct state_slot *k = &s->states.at[slot], made = *k;
    int dim = row_dim(s, k, symbol);
    const struct state_slot *like = source(s, slot, &row[0]);
    made.global = like->global;
    made.local = like->local;
    made.local.room = 0;
    made.global.dim[dim] = made.local.dim[dim] = rows;
    if (k->axis >= 0)
        made.global.dim[k->axis] = made.local.dim[k->axis] = columns;
    made.memory = (struct buffer){0};
    state_reserve(s, &made);
    memset(made.memory.at, 0, made.memory.bytes);
    struct row_view to = view_rows(&made.local, dim, k->axis);
    for (int64_t i = 0; i < rows; i++) {
        const struct state_slot *from = source(s, slot, &row[i]);
        struct row_view view = view_rows(&from->local, dim, k->axis);
        copy_row(&to, i, &view, &row[i], k->axis >= 0);
    }
    s->stats.state_bytes += (int64_t)made.memory.bytes - (int64_t)k->memory.bytes;
    buffer_free(&k->memory);
    *k = made;
}

void session_states_compose(struct session *s, const char *symbol, int64_t rows, int64_t columns, const struct session_state_row *row)
{
    for (int i = 0; i < s->states.n; i++) {
        if (rows)
            compose_slot(s, i, symbol, rows, columns, row);
        else {
            s->stats.state_bytes -= (int64_t)s->states.at[i].memory.bytes;
            buffer_free(&s->states.at[i].memory);
            state_empty(&s->states.at[i]);
        }
    }
    s->planned = false;
}

/* ---- columns of a row ---- */

/* Of a state with one row of one column. */
struct column_form {
    int rows, axis;
    struct tensor global, local;
};
struct session_columns {
    int64_t bytes;
    int n;
    struct column_form *at;
};

static bool has_fixed_sizes(const struct session *s, const struct state_slot *k, int rows)
{
    const struct type *t = &s->sig.in[k->input].type;
    int64_t n;
    for (int d = 0; d < t->rank; d++)
        if (d != rows && d != k->axis && !dim_is_int(t->dim[d], &n))
            return false;
    return true;
}

const char *session_states_without_columns(const struct session *s, struct arena *a, const char *symbol)
{
    EACH (const struct state_slot, k, s->states) {
        const char *why = NULL;
        if (k->axis < 0)
            why = "does not grow";
        else if (!k->in_place)
            why = "is more than what is appended to it";
        else if (!has_fixed_sizes(s, k, row_dim(s, k, symbol)))
            why = "has sizes that follow from inputs";
        if (why)
            return arena_printf(a, "its state '%s' %s", s->sig.in[k->input].name, why);
    }
    return NULL;
}

void session_states_cut(struct session *s, int64_t columns)
{
    EACH (struct state_slot, k, s->states) {
        require(k->in_place && k->filled && columns <= k->local.dim[k->axis]);
        k->global.dim[k->axis] = k->local.dim[k->axis] = columns;
    }
}

struct session_columns *session_columns_new(struct arena *a, const struct session *s, const char *symbol)
{
    struct session_columns *c = NEW(a, struct session_columns);
    c->n = s->states.n;
    c->at = NEWN(a, struct column_form, c->n);
    for (int i = 0; i < c->n; i++) {
        const struct state_slot *k = &s->states.at[i];
        struct column_form f = {.rows = row_dim(s, k, symbol), .axis = k->axis, .global = k->global, .local = k->local};
        require(f.rows >= 0 && f.axis > f.rows && k->filled);
        f.global.dim[f.rows] = f.global.dim[f.axis] = f.local.dim[f.rows] = f.local.dim[f.axis] = 1;
        f.global.data = f.local.data = NULL;
        f.local.room = 0;
        c->bytes += (int64_t)tensor_bytes(&f.local);
        c->at[i] = f;
    }
    return c;
}

int64_t session_columns_bytes(const struct session_columns *c)
{
    return c->bytes;
}

/* This many columns, one state after another; advances *at. */
static struct row_view view_columns(const struct column_form *f, int64_t columns, char **at)
{
    struct tensor t = f->local;
    t.dim[f->axis] = columns;
    t.data = *at;
    *at += tensor_bytes(&t);
    return view_rows(&t, f->rows, f->axis);
}

void session_columns_read(const struct session_columns *c, const struct session *s, int64_t row, int64_t column, int64_t columns, void *to)
{
    const struct session_state_row from = {.row = row, .column = column, .columns = columns};
    char *at = to;
    for (int i = 0; i < c->n; i++) {
        const struct tensor *t = &s->states.at[i].local;
        require(row < t->dim[c->at[i].rows] && column >= 0 && column + columns <= t->dim[c->at[i].axis]);
        struct row_view all = view_rows(t, c->at[i].rows, c->at[i].axis), some = view_columns(&c->at[i], columns, &at);
        copy_row(&some, 0, &all, &from, true);
    }
}

void session_columns_begin(const struct session_columns *c, struct session *s, int64_t columns)
{
    for (int i = 0; i < c->n; i++) {
        struct state_slot *k = &s->states.at[i];
        s->stats.state_bytes -= (int64_t)k->memory.bytes;
        buffer_free(&k->memory);
        k->global = c->at[i].global;
        k->local = c->at[i].local;
        k->global.dim[k->axis] = k->local.dim[k->axis] = columns;
        k->filled = true;
        state_reserve(s, k);
        s->stats.state_bytes += (int64_t)k->memory.bytes;
    }
    s->planned = false;
}

void session_columns_write(const struct session_columns *c, struct session *s, int64_t column, int64_t columns, void *from)
{
    const struct session_state_row to = {.columns = columns, .to = column};
    char *at = from;
    for (int i = 0; i < c->n; i++) {
        const struct tensor *t = &s->states.at[i].local;
        require(column >= 0 && column + columns <= t->dim[c->at[i].axis]);
        struct row_view all = view_rows(t, c->at[i].rows, c->at[i].axis), some = view_columns(&c->at[i], columns, &at);
        copy_row(&all, 0, &some, &to, true);
    }
}
