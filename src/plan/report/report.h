/* report: the plan for users and programs: text, HTML, graphviz, plan.json, and explanations. */
#ifndef TPC_REPORT_H
#define TPC_REPORT_H

#include "plan/facts/facts.h"
#include "plan/plan.h"
#include "plan/stages/stages.h"

#include <jansson.h>

/* The digest of the model file in plan.json; NULL: none, as of a text form. */
const char *plan_source_digest(struct arena *, const struct options *);
/* plan_write.c: plan.json as text (schemas/plan.schema.json); report.c: one screen of text. source: the graph before sharding. */
#define PLAN_KIND "\"xxh3\": " /* near the beginning */
char *plan_json(const struct graph *source, const struct graph *global, const struct options *, const struct plan *);
/* The same as an object; ranks are numbered from first_rank. */
json_t *plan_object(const struct graph *source, const struct graph *global, const struct options *, const struct plan *, int first_rank);
/* stages_write.c, stages_report.c: the same for a model in stages (schemas/stages.schema.json). */
char *plan_json_stages(const struct graph *source, const struct options *, const struct stage_plan *);
void plan_report_stages(FILE *, const struct options *, const struct stage_plan *);
#define REPORT_KIND ", machine " /* near the beginning */
void plan_report(FILE *, const struct graph *global, const struct options *, const struct plan *);
/* alternatives.c: alternative_around: the local cost of a node's strategy, while all else stays. alternative_allowed: whether it may be
 * chosen. plan_price, between the passes choose and insert, notes both for the HTML page (plan/html). */
int64_t alternative_around(struct space *, int node, const struct strategy *);
bool alternative_allowed(const struct space *, int node, const struct strategy *);
void plan_price(struct space *);
/* dot.c: the graph for graphviz. */
#define DOT_KIND "digraph plan {" /* near the beginning */
void plan_dot(FILE *, struct graph *global);

/* svg.c: a picture of one layer over the ranks. */
#define SVG_KIND "text { font: 11px sans-serif" /* near the beginning */
void plan_svg(FILE *, struct graph *global, const struct options *, const struct plan *);
/* svg_stages.c: a picture of pipeline stages, and of when each one works. */
void plan_svg_stages(FILE *, const struct options *, const struct stage_plan *);

/* explain.c: why the node, value or weight `name` has its placement, after the pass choose. Solves again for every alternative, so the
 * graph and the space must not be used afterwards. name may be a part of a name, or a kind of collective. An unknown name fails with the
 * nearest one. */
void plan_explain(FILE *, struct space *, const char *name);

/* explain_name.c: finds things with this text as a part of their name or label; * and ? are allowed. True if there are any: *out if it is
 * one thing, or the same in several layers; otherwise they are listed. */
struct explained {
    int node; /* position; -1: a value, or none */
    const struct value *value;
};
bool explain_part(FILE *, struct space *, const char *name, struct explained *out);
/* explain_collective.c: why there are collectives of a kind. explain_emitted: the value that the collective of this name in a rank file
 * reshards; NULL: none. */
void explain_collectives(FILE *, struct space *, enum collective);
const struct value *explain_emitted(const struct space *, const char *name);

/* compare.c: the collectives of a plan by kind, after insert and fuse; the plan's figures, after the pass memory. */
struct kind_uses plan_kinds(struct arena *, const struct graph *, const struct plan *);
struct compared plan_compared(struct arena *, const char *name, const struct graph *, const struct options *, const struct plan *);

/* units.c: "1.2 MiB", "313.4 us". */
const char *units_bytes(struct arena *, double bytes);
/* The largest part of a rank's memory, with the names of its largest weight and activation ("": none). */
const char *units_largest(struct arena *, const struct rank_use *, const char *weight, const char *value);
const char *units_seconds(struct arena *, double seconds);
/* "1.25 GB/s", and "25 us" with its significant digits, up to three. */
const char *units_rate(struct arena *, double bytes_per_second);
const char *units_delay(struct arena *, double seconds);
/* report.c: one line per workload. */
void report_workloads(FILE *, const struct plan *);
/* How many of the weights are trained; nothing without --train. */
void report_trained(FILE *, struct arena *, const struct plan *);
/* compare.c: "2 AllGather, 4 AllReduce", or none. */
const char *compare_kinds(struct arena *, const struct kind_uses *, const char *none);
/* report.c: the gain of --fast in a step, if it is a quarter or more. fast: as in struct plan, fast_seconds. */
void report_fast(FILE *, struct arena *, double seconds, double fast);
/* report.c: the time of the first assignment that fits relative to the plan's, and what the plan costs in memory if that is faster; NULL:
 * not known. */
const char *report_first(struct arena *, const struct plan *);
/* differences.c: the choices of the plan, copied to the arena. Then a list of differences to other choices; equal ones in several layers
 * share a line. */
struct choices *differences_choices(struct arena *, const struct graph *, const struct plan *);
void differences_text(FILE *, struct arena *, const struct choices *own, const char *name, const struct choices *other);
/* compare.c: a table of the plan and those it is compared with; nothing if there are none. */
void compare_text(FILE *, const struct graph *, const struct options *, const struct plan *);
/* layer.c: one layer of the planned graph, in rows from inputs to outputs. */
enum layer_row_kind { ROW_PRODUCTS, ROW_ATTENTION, ROW_OTHER, ROW_COLLECTIVE };
struct layer_row {
    enum layer_row_kind kind;
    VEC(const struct node *) nodes; /* products with weights that share an operand; nodes in between; the collective */
};
struct layer {
    VEC(struct layer_row) rows;
    int number, repeat, alike; /* layer `number` of `repeat`, from 1; `alike` layers are split in the same way */
};
struct layer layer_find(struct arena *, const struct graph *, const struct dim_roles *);

/* words.c: "columns, 32 of 128", "partial sums", "sequence_length, 1/4 each", in the first workload. unit: what is counted; NULL: by the
 * dimension. words_weight_unit: dimension d of a weight for this use: "columns", "rows", "experts". */
const char *words_placement(struct arena *, struct graph *, const struct plan *, const struct type *, struct placement, const char *unit);
const char *words_weight_unit(struct graph *, const struct use *, const struct value *, int d);

/* escape.c: writes text with the special characters of HTML and XML escaped. */
void escape_text(FILE *, const char *);
/* dot.c: the colour of a kind of collective, "#rrggbb". */
const char *dot_collective_colour(enum collective);

#endif
