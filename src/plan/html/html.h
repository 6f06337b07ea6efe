/* html: the plan as one page that needs nothing else. The text is all there without a script; numbers are <data> elements, whose value is
 * the one of plan.json. */
#ifndef TPC_HTML_H
#define TPC_HTML_H

#include "plan/plan.h"
#include "plan/report/report.h"

/* page.c: writes the page, after the pass memory and with plan->alternatives. */
#define HTML_KIND "{color-scheme:light dark;--paper:" /* near its beginning: of page.css */
void plan_html(FILE *, struct graph *global, const struct options *, const struct plan *);

/* groups.c: the parts of the step, folded: equal layers are one group, and so are the parts before, between and after layers. */
/* Within a repetition of a group, such as the experts of a layer: `times` runs of `period` parts from part `first` on are alike. */
struct html_fold {
    int first, period, times;
};
struct html_folds {
    VEC(struct html_fold) list; /* in order */
};
struct html_group {
    const char *title, *path; /* "layers 2 to 32", what the labels of its nodes begin with */
    int first, end, times;    /* parts of one repetition; repetitions */
    struct html_folds folds;
    double *compute, *sent; /* seconds of one repetition, by workload */
    double *unsharded;
};
struct html_groups {
    VEC(struct html_group) list;
    VEC(int) order; /* the group of each repetition, in the order of time */
    int *of_part;   /* by part of the step */
    int *shown;     /* by part: the part of the same repetition that is shown in its place, which is itself but in a fold; -1: none */
};
/* measured.c: a run that tpc-run --trace recorded. */
enum html_share { HTML_WORK, HTML_WAIT, HTML_SENT, HTML_SHARES };
struct html_measured {
    int load, ranks, runs;          /* the workload whose sizes it had; runs: of like layers, in the order of the step */
    double (*seconds)[HTML_SHARES]; /* [rank][run] */
    double *total, most;            /* of each rank; of the slowest */
};
struct html_page {
    FILE *f;
    struct arena *arena;
    struct graph *g; /* with explicit reshards */
    const struct options *options;
    const struct plan *plan;
    int loads; /* workloads */
    struct html_groups groups;
    struct name_index *bodies;            /* details of nodes, by their text: the first part that has them */
    const struct uses *uses;              /* of the graph as it was planned */
    const struct html_measured *measured; /* NULL: no trace is given */
};
struct html_groups html_groups_of(struct arena *, const struct plan *);
/* folds.c: of the parts first..end-1. The fold that part i is of, and is shown; NULL: of none. The part that is shown after part i. */
struct html_folds html_folds_find(struct arena *, const struct plan *, int first, int end);
const struct html_fold *html_fold_of(const struct html_group *, int i);
int html_next_part(const struct html_group *, int i);
/* The seconds of part i and of the parts that it represents; fold: from html_fold_of. */
double html_folded_seconds(const struct html_page *, const struct html_fold *, int i, int workload);
bool html_part_sends(const struct step_part *);
const struct html_measured *html_measured_read(const struct html_page *, const char *path);

/* write.c: escaped text, and readable numbers with the exact ones as values. Of the numbers by workload, only the selected tab's are
 * shown. */
/* The output of `write` for an object, kept in the arena. */
const char *html_captured(const struct html_page *, void (*write)(const struct html_page *, const void *), const void *);
void html_text(const struct html_page *, const char *);
void html_seconds(const struct html_page *, double);
void html_bytes(const struct html_page *, double);
void html_seconds_by(const struct html_page *, const double *by_workload);
void html_bytes_by(const struct html_page *, const double *by_workload);
void html_load_begin(const struct html_page *, const char *tag, const char *class, int workload); /* <tag> of a workload */
bool html_timed(const struct html_page *);                                                        /* are speeds claimed? */
/* "c1": the class of a kind of collective in page.css. "R", "S", "P" of a placement. */
const char *html_kind_class(struct arena *, enum collective);
const char *html_place_class(struct placement);
const char *html_part_class(const struct html_page *, const struct step_part *);
const char *html_part_label(const struct html_page *, const struct step_part *);
/* The components that the labels of the nodes from part first to end - 1 begin with, numbers as *: "model/layers.*". */
const char *html_common_path(const struct html_page *, int first, int end);
void html_head(const struct html_page *, const char *id, const char *title, const char *about);

/* The panels, a file each. */
void html_tiles(const struct html_page *);
void html_memory(const struct html_page *);
void html_what_if(const struct html_page *);
void html_timeline(const struct html_page *);
void html_layers(const struct html_page *);
void html_graph(const struct html_page *, const struct html_group *);
void html_nodes(const struct html_page *, const struct html_group *);
void html_weights(const struct html_page *);
void html_collectives(const struct html_page *);

#endif
