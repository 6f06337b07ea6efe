/* svg: a picture of one layer (layer.c) over the ranks: a column per rank, a row per group of products, attention, collective and other
 * nodes. Weights are drawn as matrices with the part that the rank holds filled. */
#include "op/op.h"
#include "op/rule/rule.h"
#include "plan/cost/cost.h"
#include "plan/report/report.h"
#include "plan/report/svg_draw.h"

#include <string.h>

enum {
    PICTURE_WIDE = 900,
    MARGIN = 16,
    GUTTER = 188,
    GAP = 14,
    DRAWN = 4,
    MORE = 26,
    HEAD_HIGH = 74,
    PAD = 9,
    LINE = 16,
    MOST_WORKLOADS = 4
};
enum { PRODUCTS_HIGH = 100, ATTENTION_HIGH = 50, OTHER_HIGH = 24, BAND_HIGH = 30, MATRIX_HIGH = 56, MATRIX_WIDE = 150 };

struct picture {
    FILE *f;
    struct arena *arena;
    struct graph *g;
    const struct plan *plan;
    const struct dim_roles *roles;
    int ranks; /* ranks in the picture */
    double wide, y;
};

/* ---- texts --------------------------------------------------------------------------------------------------------------------- */

/* "MatMul", "MatMul_3", "Repeat". */
static bool is_op_name(const struct picture *p, const char *held_part)
{
    const char *op = arena_strndup(p->arena, held_part, strcspn(held_part, "_0123456789"));
    return op_find("", op) || op_find("tpc", op);
}

/* The last part of a name that is not an op's: "q_proj" in "/layers.0/q_proj/MatMul". */
static const char *short_name(const struct picture *p, const struct node *n)
{
    const char *module = node_module(p->g, n);
    char *name = arena_strdup(p->arena, module ? module : n->name);
    for (char *cut; (cut = strrchr(name, '/')) && is_op_name(p, cut + 1);)
        *cut = '\0';
    const char *slash = strrchr(name, '/'), *dot = strrchr(slash ? slash : name, '.');
    return dot && dot[1] ? dot + 1 : slash ? slash + 1 : *name ? name : n->optype;
}

/* Each op of a row once, in order. */
static const char *ops_text(const struct picture *p, const struct layer_row *r)
{
    const char *text = "";
    for (int i = 0; i < r->nodes.n; i++) {
        bool seen = false;
        for (int k = 0; k < i && !seen; k++)
            seen = strcmp(r->nodes.at[k]->optype, r->nodes.at[i]->optype) == 0;
        if (!seen)
            text = arena_printf(p->arena, "%s%s%s", text, *text ? ", " : "", r->nodes.at[i]->optype);
    }
    return text;
}

/* ---- what a rank holds ---------------------------------------------------------------------------------------------------------- */

struct held_part {
    int n;
    struct interval *at;
    int64_t size, held;
};

/* For the first workload. */
static struct held_part held_part_of(const struct picture *p, struct placement place, int rank)
{
    const struct bindings *dims = &p->plan->workloads.at[0].dims;
    struct held_part held_part = {0};
    if (place.kind != PLACE_S || !dim_eval(split_size(p->g->alg, place.split), dims, &held_part.size))
        return held_part;
    held_part.n = split_pieces(p->arena, place.split, rank, false, dims, &held_part.at);
    for (int i = 0; i < held_part.n; i++)
        held_part.held += held_part.at[i].hi - held_part.at[i].lo;
    require(held_part.held <= held_part.size);
    return held_part;
}

/* "64 of 128 columns", "1/2 of sequence_length", "replicated"; without the unit, or as "64/128", if that is too wide. */
static const char *share_text(const struct picture *p, const struct value *v, int rank, const char *unit, double wide)
{
    struct held_part held_part = held_part_of(p, v->place, rank);
    if (v->place.kind == PLACE_R)
        return svg_fitting(p->arena, "replicated", wide, 11);
    if (v->place.kind == PLACE_P)
        return svg_fitting(p->arena, "partial", wide, 11);
    const char *size = dim_str(p->arena, v->type.dim[v->place.dim]);
    if (!dim_is_int(v->type.dim[v->place.dim], NULL))
        return svg_fitting(p->arena, arena_printf(p->arena, "1/%d of %s", p->g->ranks, size), wide, 11);
    const char *text[] = {arena_printf(p->arena, "%lld of %s %s", (long long)held_part.held, size, unit),
                          arena_printf(p->arena, "%lld of %s", (long long)held_part.held, size),
                          arena_printf(p->arena, "%lld/%s", (long long)held_part.held, size)};
    for (int i = *unit ? 0 : 1; i < 2; i++)
        if (strcmp(svg_fitting(p->arena, text[i], wide, 11), text[i]) == 0)
            return text[i];
    return svg_fitting(p->arena, text[2], wide, 11);
}

/* ---- shapes --------------------------------------------------------------------------------------------------------------------- */

static double column(const struct picture *p, int rank)
{
    return MARGIN + GUTTER + rank * (p->wide + GAP);
}

/* A box, filled along one side in proportion to the rank's part. */
static void filled_box(const struct picture *p, struct placement place, int rank, bool upright, const double box[4])
{
    struct held_part held_part = held_part_of(p, place, rank);
    const char *class = arena_printf(p->arena, "r%d", rank);
    svg_rect(p->f, "box", box[0], box[1], box[2], box[3]);
    if (place.kind != PLACE_S)
        svg_rect(p->f, place.kind == PLACE_R ? "all" : arena_printf(p->arena, "r%d partial", rank), box[0], box[1], box[2], box[3]);
    for (int i = 0; i < held_part.n && held_part.size > 0; i++) {
        double lo = (double)held_part.at[i].lo / (double)held_part.size, hi = (double)held_part.at[i].hi / (double)held_part.size;
        if (upright)
            svg_rect(p->f, class, box[0], box[1] + lo * box[3], box[2], (hi - lo) * box[3]);
        else
            svg_rect(p->f, class, box[0] + lo * box[2], box[1], (hi - lo) * box[2], box[3]);
    }
}

static void row_label(const struct picture *p, double high, const char *what, const char *how)
{
    double y = p->y + high / 2 + (how ? -3 : 4);
    svg_text(p->f, MARGIN, y, "label", svg_fitting(p->arena, what, GUTTER - 12, 12));
    if (how)
        svg_text(p->f, MARGIN, y + 15, "small", svg_fitting(p->arena, how, GUTTER - 12, 11));
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------ */

/* Whether the product sums over the dimension along which its weight is split. */
static bool is_row_parallel(const struct picture *p, const struct node *n, const struct value *weight)
{
    const struct rule *r = rule_of(p->g, n);
    for (int i = 0; r && i < n->nin; i++)
        if (n->in[i] == weight && weight->place.kind == PLACE_S) {
            int f = rule_factor_at(&r->in[i], weight->place.dim);
            return f >= 0 && (r->factor[f].flags & FACTOR_CONTRACTED);
        }
    return false;
}

static const char *unit_of(const struct picture *p, const struct node *n, const struct value *weight)
{
    bool experts = (n->op->flags & OP_ROUTES) && weight->place.dim == 0;
    return experts ? "experts" : is_row_parallel(p, n, weight) ? "rows" : "columns";
}

static void draw_product(const struct picture *p, const struct node *n, int rank, double x, double wide)
{
    const struct value *w = layers_weight(p->roles, n);
    double matrix = wide < MATRIX_WIDE ? wide : MATRIX_WIDE, left = x + (wide - matrix) / 2, middle = x + wide / 2;
    svg_text(p->f, middle, p->y + 13, "name", svg_fitting(p->arena, short_name(p, n), wide, 12));
    filled_box(p, w->place, rank, is_row_parallel(p, n, w), (const double[4]){left, p->y + 20, matrix, MATRIX_HIGH});
    svg_text(p->f, middle, p->y + 20 + MATRIX_HIGH + 14, "share", share_text(p, w, rank, unit_of(p, n, w), wide));
}

static const char *product_style(const struct picture *p, const struct layer_row *r)
{
    const struct node *n = r->nodes.at[0];
    const struct value *w = layers_weight(p->roles, n);
    return w->place.kind != PLACE_S                ? "replicated"
        : strcmp(unit_of(p, n, w), "experts") == 0 ? "expert-parallel"
        : is_row_parallel(p, n, w)                 ? "row-parallel"
                                                   : "column-parallel";
}

static const char *result_text(const struct value *v)
{
    return v->place.kind == PLACE_P ? "leaves partial sums" : v->place.kind == PLACE_S ? "leaves a sharded result" : NULL;
}

static void draw_products(const struct picture *p, const struct layer_row *r)
{
    row_label(p, PRODUCTS_HIGH, product_style(p, r), result_text(r->nodes.at[r->nodes.n - 1]->out[0]));
    for (int k = 0; k < p->ranks; k++) {
        double wide = (p->wide - (r->nodes.n + 1) * PAD) / r->nodes.n;
        svg_rect(p->f, "frame", column(p, k), p->y, p->wide, PRODUCTS_HIGH);
        for (int i = 0; i < r->nodes.n; i++)
            draw_product(p, r->nodes.at[i], k, column(p, k) + PAD + i * (wide + PAD), wide);
    }
}

/* The first result of a product of activations in the row. */
static const struct value *scores_of(const struct picture *p, const struct layer_row *r)
{
    for (int i = 0; i < r->nodes.n; i++)
        if (r->nodes.at[i]->op->flags & OP_PRODUCT && dim_node_multiplies_activations(p->roles, r->nodes.at[i]))
            return r->nodes.at[i]->out[0];
    bug("a row of attention that multiplies nothing");
}

/* The value that the row passes to the next step; NULL: none. */
static const struct value *cache_of(const struct picture *p, const struct layer_row *r)
{
    for (int i = 0; i < r->nodes.n; i++)
        for (int k = 0; k < r->nodes.at[i]->nout; k++)
            if (r->nodes.at[i]->out[k] && graph_is_present(p->g, r->nodes.at[i]->out[k]))
                return r->nodes.at[i]->out[k];
    return NULL;
}

/* Fused attention splits the heads in its packed result. */
static const char *heads_unit(const struct value *v)
{
    return v->place.kind == PLACE_S && dim_is_int(v->type.dim[v->place.dim], NULL) ? v->type.rank > 3 ? "heads" : "columns of heads" : "";
}

static void draw_attention(const struct picture *p, const struct layer_row *r)
{
    const struct value *scores = scores_of(p, r), *cache = cache_of(p, r);
    row_label(p, ATTENTION_HIGH, "attention", scores->place.kind == PLACE_S ? "a rank has its own heads" : "replicated");
    for (int k = 0; k < p->ranks; k++) {
        double middle = column(p, k) + p->wide / 2, y = p->y + (cache ? 21 : 29);
        bool split = scores->place.kind == PLACE_S;
        svg_rect(p->f, "paper", column(p, k), p->y, p->wide, ATTENTION_HIGH);
        svg_rect(p->f, split ? arena_printf(p->arena, "r%d soft", k) : "all", column(p, k), p->y, p->wide, ATTENTION_HIGH);
        svg_text(p->f, middle, y, "name", share_text(p, scores, k, heads_unit(scores), p->wide));
        if (cache)
            svg_text(p->f, middle, y + 17, "share",
                     arena_printf(p->arena, "KV cache: %s", share_text(p, cache, k, heads_unit(cache), p->wide - 70)));
    }
}

static void draw_other(const struct picture *p, const struct layer_row *r)
{
    const struct value *v = r->nodes.at[r->nodes.n - 1]->out[0];
    row_label(p, OTHER_HIGH, ops_text(p, r), NULL);
    for (int k = 0; k < p->ranks; k++) {
        filled_box(p, v->place, k, false, (const double[4]){column(p, k), p->y, p->wide, OTHER_HIGH});
        svg_text(p->f, column(p, k) + p->wide / 2, p->y + 16, "share", share_text(p, v, k, "", p->wide));
    }
}

/* "128.0 KiB", or "128.0 KiB at workload 1, 512 B at workload 2". */
static const char *payload_text(const struct picture *p, const struct node *n)
{
    const char *text = "";
    for (int w = 0; w < p->plan->workloads.n; w++) {
        double bytes = (double)cost_payload(p->g, n, &p->plan->workloads.at[w].dims, p->g->ranks);
        text = arena_printf(p->arena, "%s%s%s", text, w ? ", " : "", units_bytes(p->arena, bytes));
        if (p->plan->workloads.n > 1)
            text = arena_printf(p->arena, "%s at workload %d", text, w + 1);
    }
    return text;
}

static void draw_collective(const struct picture *p, const struct layer_row *r)
{
    const struct node *n = r->nodes.at[0];
    double left = MARGIN + GUTTER, wide = PICTURE_WIDE - MARGIN - left, name = 7.5 * (double)strlen(n->optype);
    fputs("<g><title>", p->f);
    escape_text(p->f, n->in[0]->name);
    fprintf(p->f, "</title><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"15\" fill=\"%s\"/>\n", left, p->y, wide, BAND_HIGH,
            dot_collective_colour(collective_parse(n->optype)));
    svg_text(p->f, left + 20, p->y + 19, "band", n->optype);
    svg_text(p->f, PICTURE_WIDE - MARGIN - 20, p->y + 19, "bytes", svg_fitting(p->arena, payload_text(p, n), wide - name - 50, 11));
    fputs("</g>\n", p->f);
}

static int row_high(const struct layer_row *r)
{
    switch (r->kind) {
    case ROW_PRODUCTS: return PRODUCTS_HIGH;
    case ROW_ATTENTION: return ATTENTION_HIGH;
    case ROW_OTHER: return OTHER_HIGH;
    case ROW_COLLECTIVE: return BAND_HIGH;
    }
    bug("a row of kind %d", (int)r->kind);
}

static void draw_row(const struct picture *p, const struct layer_row *r)
{
    switch (r->kind) {
    case ROW_PRODUCTS: draw_products(p, r); break;
    case ROW_ATTENTION: draw_attention(p, r); break;
    case ROW_OTHER: draw_other(p, r); break;
    case ROW_COLLECTIVE: draw_collective(p, r); break;
    }
}

/* ---- the picture ------------------------------------------------------------------------------------------------------------------ */

static double rows_high(const struct layer *l)
{
    double high = 0;
    for (int i = 0; i < l->rows.n; i++)
        high += row_high(&l->rows.at[i]) + GAP;
    return high;
}

/* Experts of one layer repeat, too. */
static const char *block_name(const struct layer *l)
{
    for (int i = 0; i < l->rows.n; i++)
        if (l->rows.at[i].kind == ROW_ATTENTION)
            return "layer";
    return "block";
}

static void draw_head(const struct picture *p, const struct options *o, const struct layer *l)
{
    svg_text(p->f, MARGIN, 30, "title",
             svg_fitting(p->arena,
                         arena_printf(p->arena, "%s on %d ranks: %s %d of %d", o->model, p->g->ranks, block_name(l), l->number, l->repeat),
                         PICTURE_WIDE - 2 * MARGIN, 16));
    for (int k = 0; k < p->ranks; k++)
        svg_text(p->f, column(p, k) + p->wide / 2, HEAD_HIGH - 14, "rank", arena_printf(p->arena, "rank %d", k));
    if (p->ranks < p->g->ranks)
        svg_text(p->f, PICTURE_WIDE - MARGIN - MORE / 2.0, HEAD_HIGH - 14, "rank", "…");
}

/* Draws the arrows between rows, below them. */
static void draw_flow(const struct picture *p, double end)
{
    for (int k = 0; k < p->ranks; k++)
        fprintf(p->f, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%.1f\" class=\"flow\"/>\n", column(p, k) + p->wide / 2, HEAD_HIGH - 8,
                column(p, k) + p->wide / 2, end);
}

static void draw_foot(const struct picture *p, const struct layer *l)
{
    double y = p->y + 14;
    svg_text(p->f, MARGIN, y, "small",
             "Filled: the part of a matrix or value that the rank holds. Gray: replicated. Bytes: what one rank puts in.");
    for (int w = 0; w < p->plan->workloads.n && w < MOST_WORKLOADS; w++)
        svg_text(p->f, MARGIN, y += LINE, "small",
                 svg_fitting(p->arena, arena_printf(p->arena, "Workload %d: %s", w + 1, p->plan->workloads.at[w].text),
                             PICTURE_WIDE - 2 * MARGIN, 11));
    if (l->repeat > 1)
        svg_text(p->f, MARGIN, y + LINE, "small",
                 arena_printf(p->arena, "%d of %d %ss %s split like this one.", l->alike, l->repeat, block_name(l),
                              l->alike == 1 ? "is" : "are"));
}

static int foot_high(const struct picture *p)
{
    return 2 * LINE + LINE * (p->plan->workloads.n < MOST_WORKLOADS ? p->plan->workloads.n : MOST_WORKLOADS) + 8;
}

void plan_svg(FILE *f, struct graph *g, const struct options *options, const struct plan *plan)
{
    struct arena *a = arena_new();
    struct picture p = {.f = f, .arena = a, .g = g, .plan = plan, .roles = dim_symbol_roles(a, g), .y = HEAD_HIGH};
    struct layer l = layer_find(a, g, p.roles);
    p.ranks = g->ranks < DRAWN ? g->ranks : DRAWN;
    p.wide = (PICTURE_WIDE - 2 * MARGIN - GUTTER - (g->ranks > DRAWN ? MORE : 0) - (p.ranks - 1) * GAP) / (double)p.ranks;
    require(plan->workloads.n > 0 && p.wide > 0);
    double end = HEAD_HIGH + rows_high(&l), high = end + foot_high(&p);
    svg_begin(f, PICTURE_WIDE, high);
    draw_head(&p, options, &l);
    draw_flow(&p, end - 4);
    for (int i = 0; i < l.rows.n; i++) {
        draw_row(&p, &l.rows.at[i]);
        p.y += row_high(&l.rows.at[i]) + GAP;
    }
    draw_foot(&p, &l);
    fputs("</svg>\n", f);
    arena_free(a);
}
