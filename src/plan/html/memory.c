/* memory: what every rank holds, as bars, with the unsharded model and the limit. */
#include "plan/cost/cost.h"
#include "plan/facts/facts.h"
#include "plan/html/html.h"

enum { MOST_RANKS = 16 };

/* Training's extra state is placed like a decoder's. */
static const char *state_word(const struct html_page *p)
{
    return p->g->trained.n ? "gradients and moments" : "state";
}

static void memory_part(const struct html_page *p, const char *class, const char *word, int64_t bytes, double scale)
{
    if (bytes > 0)
        fprintf(p->f, "<i class=%s style=width:%.2f%% title=\"%s %s\"></i>", class, 100 * (double)bytes / scale, word,
                units_bytes(p->arena, (double)bytes));
}

/* limit: 0: none */
static void memory_bar(const struct html_page *p, const char *name, const struct rank_use *use, int64_t limit, double scale)
{
    fprintf(p->f, "<div class=bar><span>%s</span><div class=track>", name);
    memory_part(p, "weights", "weights", use->weights, scale);
    memory_part(p, "state", state_word(p), use->state, scale);
    memory_part(p, "activations", "activations", use->peak + use->blocks, scale);
    if (limit)
        fprintf(p->f, "<u style=left:%.2f%% title=\"limit %s\"></u>", 100 * (double)limit / scale, units_bytes(p->arena, (double)limit));
    fputs("</div><span class=n>", p->f);
    html_bytes(p, (double)memory_total(use));
    fputs("</span></div>\n", p->f);
}

void html_memory(const struct html_page *p)
{
    const struct plan *plan = p->plan;
    double scale = (double)memory_total(&plan->unsharded);
    for (int r = 0; r < p->g->ranks; r++)
        scale = (double)memory_total(&plan->use[r]) > scale ? (double)memory_total(&plan->use[r]) : scale;
    scale = (double)p->options->memory > scale ? (double)p->options->memory : scale;
    scale = scale > 0 ? scale : 1;
    html_head(p, "memory", "Memory", "What a rank holds in the workload that needs most.");
    fprintf(p->f,
            "<p class=key><span><i class=weights></i>weights</span> <span><i class=state></i>%s</span> "
            "<span><i class=activations></i>activations and buffers</span>",
            state_word(p));
    fputs(p->options->memory ? " <span><u></u>limit</span></p>\n" : "</p>\n", p->f);
    memory_bar(p, p->options->weights ? "unsharded, weights as they are" : "unsharded", &plan->unsharded, p->options->memory, scale);
    for (int r = 0; r < p->g->ranks && r < MOST_RANKS; r++)
        memory_bar(p, arena_printf(p->arena, "rank %d", r), &plan->use[r], limit_of(p->options, r), scale);
    if (p->g->ranks > MOST_RANKS) {
        struct rank_use most = memory_most(p->g->ranks, plan->use);
        memory_bar(p, arena_printf(p->arena, "%d more, at most", p->g->ranks - MOST_RANKS), &most,
                   limits_differ(p->options, p->g->ranks) ? 0 : p->options->memory, scale);
    }
    fputs("</section>\n", p->f);
}
