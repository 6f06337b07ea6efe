/* weights: weights that are alike in all layers are one row, with a picture of the cut. */
#include "plan/cost/cost.h"
#include "plan/html/html.h"

#include <stdlib.h>
#include <string.h>

enum { PICTURE_WIDE = 60, PICTURE_HIGH = 36, MOST_PIECES = 160, SMALL = 1024, COLOURS = 8 };

struct weight_row {
    const char *label;
    const struct value *first;
    struct use use;
    int count;
    double bytes, held; /* of all of them; on the fullest rank */
};
struct weight_rows {
    VEC(struct weight_row) list;
    struct name_index index;
    int small;
    double small_bytes;
};

static double held_bytes(const struct graph *g, const struct value *v)
{
    double most = 0;
    for (int r = 0; r < g->ranks; r++) {
        struct value local = *v;
        local.type = placement_local(g->alg, &v->type, v->place, r);
        double bytes = (double)weight_bytes(&local);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void add_weight(const struct html_page *p, struct weight_rows *all, const struct uses *uses, const struct value *v)
{
    const char *label = label_pattern(p->arena, label_weight(p->arena, p->g, uses, v));
    const char *key = arena_printf(p->arena, "%s %s %s", label, type_str(p->arena, &v->type), placement_str(p->arena, v->place));
    int at = name_index_find(&all->index, key);
    if (at < 0) {
        at = all->list.n;
        name_index_put(p->arena, &all->index, key, at);
        VEC_PUSH(p->arena, &all->list, ((struct weight_row){label, v, uses[v->id].at[0], 0, 0, 0}));
    }
    all->list.at[at].count++;
    all->list.at[at].bytes += (double)weight_bytes(v);
    all->list.at[at].held += held_bytes(p->g, v);
}

static struct weight_rows find_rows(const struct html_page *p)
{
    struct weight_rows all = {.small = 0};
    const struct uses *uses = graph_uses(p->g, p->arena);
    for (int i = 0; i < p->g->values.n; i++) {
        const struct value *v = p->g->values.at[i];
        if (!v->constant || !uses[i].n)
            continue;
        if (weight_bytes(v) < SMALL && v->place.kind == PLACE_R) {
            all.small++;
            all.small_bytes += (double)weight_bytes(v);
        } else {
            add_weight(p, &all, uses, v);
        }
    }
    return all;
}

/* ---- the cut ---------------------------------------------------------------------------------------------------------------------- */

static void draw_piece(const struct html_page *p, int rank, bool rows, double lo, double hi)
{
    double side = rows ? PICTURE_HIGH : PICTURE_WIDE;
    fprintf(p->f, "<rect class=r%d %s=%.4g %s=%.4g />", rank % COLOURS, rows ? "y" : "x", lo * side, rows ? "height" : "width",
            (hi - lo) * side);
}

static void draw_cut(const struct html_page *p, const struct value *v)
{
    const struct split *s = v->place.kind == PLACE_S ? v->place.split : NULL;
    bool rows = s && v->place.dim == 0 && v->type.rank > 1;
    int64_t size = 0;
    int pieces = 0;
    fprintf(p->f, "<svg class=cut viewBox=\"0 0 %d %d\">", PICTURE_WIDE, PICTURE_HIGH);
    fprintf(p->f, "<rect class=all width=%d height=%d />", PICTURE_WIDE, PICTURE_HIGH);
    if (s)
        dim_is_int(split_size(p->g->alg, s), &size);
    for (int r = 0; size > 0 && r < s->ranks; r++) {
        struct interval *at;
        int n = split_pieces(p->arena, s, r, true, &p->plan->workloads.at[0].dims, &at);
        for (int i = 0; i < n && pieces < MOST_PIECES; i++, pieces++)
            draw_piece(p, r, rows, (double)at[i].lo / (double)size, (double)at[i].hi / (double)size);
    }
    fputs("</svg>", p->f);
}

/* ---- the table ---------------------------------------------------------------------------------------------------------------------- */

static int by_bytes(const void *a, const void *b)
{
    const struct weight_row *x = a, *y = b;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes ? 1 : x->first->id - y->first->id;
}

static void show_row(const struct html_page *p, const struct weight_row *r)
{
    const struct value *v = r->first;
    const char *unit = v->place.kind == PLACE_S ? words_weight_unit(p->g, &r->use, v, v->place.dim) : NULL;
    fputs("<tr class=row><td>", p->f);
    draw_cut(p, v);
    fputs("<td class=name>", p->f);
    html_text(p, r->label);
    fprintf(p->f, "%s<br><small>", r->count > 1 ? arena_printf(p->arena, " <b>×%d</b>", r->count) : "");
    html_text(p, words_placement(p->arena, p->g, p->plan, &v->type, v->place, unit));
    fputs(" · ", p->f);
    html_text(p, type_str(p->arena, &v->type));
    fputs("</small><td class=n>", p->f);
    html_bytes(p, r->bytes);
    fputs("<td class=n>", p->f);
    html_bytes(p, r->held);
    fputc('\n', p->f);
}

void html_weights(const struct html_page *p)
{
    struct weight_rows all = find_rows(p);
    if (!all.list.n && !all.small)
        return;
    if (all.list.n)
        qsort(all.list.at, (size_t)all.list.n, sizeof *all.list.at, by_bytes);
    html_head(p, "weights", "Weights", "A colour for each rank; gray is on every rank. A * is a number: the same weight of each layer.");
    fputs("<table class=wide><tr><th>cut<th>weight<th class=n>all<th class=n>fullest rank\n", p->f);
    for (int i = 0; i < all.list.n; i++)
        show_row(p, &all.list.at[i]);
    if (all.small) {
        fprintf(p->f, "<tr class=row><td><td>%d constants below 1 KiB, replicated<td class=n>", all.small);
        html_bytes(p, all.small_bytes);
        fputs("<td class=n>", p->f);
        html_bytes(p, all.small_bytes);
    }
    fputs("</table></section>\n", p->f);
}
