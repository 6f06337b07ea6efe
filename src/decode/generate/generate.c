/* generate: decoding. The prefill runs every graph once; then the last graph decodes every further token. KV caches and scores stay
 * sharded: only each rank's best scores are exchanged to pick a token. */
#include "decode/generate/generate.h"

#include "job/timing/timing.h"

static struct stage *last_stage(const struct decoder *d)
{
    return &d->stage[d->nstage - 1];
}

/* Adds the batch dimension to the tokens of one row, and to their mask and positions. */
static void add_row_dim(struct tensor *given, const struct type *type)
{
    if (!given->data || given->rank != 1 || type->rank != 2)
        return;
    given->rank = 2;
    given->dim[1] = given->dim[0];
    given->dim[0] = 1;
}

/* Gives each replica its rows. All graphs have the batch size of the first one with given inputs; 1 without any. */
static void shard_rows(struct decoder *d, struct arena *a)
{
    int64_t total = 0;
    for (int k = 0; k < d->nstage; k++) {
        struct stage *s = &d->stage[k];
        for (int i = 0; i < s->graph->inputs.n; i++)
            add_row_dim(&s->given[i], session_input_type(s->session, i));
        d->shard = replica_shard_batch(d->replicas, s->graph, s->session, s->given);
        replica_take_rows(a, &d->shard, s->graph, s->session, s->given);
        if (total && d->shard.total && d->shard.total != total)
            fail("%s: %lld rows are given, and %lld to the graphs before it", s->path, (long long)d->shard.total, (long long)total);
        if (d->shard.total)
            total = d->shard.total;
    }
    if (!d->replicas->across)
        return;
    d->shard.total = total ? total : 1;
    d->shard.rows = replica_range_of(&d->replicas->shares, d->shard.total, d->replicas->index);
}

/* A token outside of the vocabulary ends no row. */
static void check_ends(const struct stage *s, const struct job_options *o)
{
    const struct type *t = !s->decides || s->chosen ? NULL : &s->logits_type;
    int64_t vocabulary;
    if (!t || t->rank < 1 || !dim_is_int(t->dim[t->rank - 1], &vocabulary))
        return;
    for (int i = 0; i < o->eos.list.n; i++)
        if (o->eos.list.at[i] >= vocabulary)
            fail_usage("--eos is %lld, but %s has tokens 0 to %lld", (long long)o->eos.list.at[i], s->path, (long long)vocabulary - 1);
}

/* Limits the default number of tokens to the remaining positions. */
static void limit_length(const struct decoder *d, const struct stage *last, struct job_options *o)
{
    int i = decode_find_input(last, ROLE_TOKENS);
    int64_t given = i >= 0 && last->given[i].data ? last->given[i].dim[last->given[i].rank - 1] : 0;
    int64_t left = last->positions - (d->before ? d->history.length : given);
    o->generate = left < 1 ? 1 : left < o->generate ? left : o->generate;
}

static void load_stages(struct decoder *d, struct arena *a, struct job_options *o)
{
    int first = o->load_state ? o->paths.text.n - 1 : 0; /* the last graph makes all tokens then */
    d->nstage = o->paths.text.n - first;
    d->stage = NEWN(a, struct stage, d->nstage);
    for (int k = 0; k < d->nstage; k++) {
        d->stage[k].path = o->paths.text.at[first + k];
        d->stage[k].number = first + k + 1;
        stage_load(a, d->comm, o, &d->stage[k]);
    }
}

static void check_goes_on(const struct decoder *d)
{
    for (int64_t b = 0; b < d->history.batch; b++)
        if (!generate_is_end(d, generate_last_token(&d->history, b)))
            return;
    fail("%s: all its rows have ended: --eos says at which tokens rows end", d->options->load_state);
}

/* The starting point of decoding. */
static void take_beginning(struct decoder *d, struct arena *a, struct job_options *o)
{
    struct comm *all = d->replicas->all;
    struct stage *last = last_stage(d);
    struct saved_run saved = {0};
    if (o->load_state) {
        d->loaded = arena_new();
        d->history = saved_read(a, d->loaded, all, last, o, &saved);
        d->before = saved.made;
        d->fed = d->history.length - 1;
        check_goes_on(d);
    }
    if (saved.text || (o->load_state && o->tokenizer))
        d->text = prompt_text_again(a, all, o);
    else if (o->prompt.text.n || o->prompt_file)
        d->text = prompt_text_give(a, all, d->stage, d->nstage, o);
    if (d->nstage > 1 && (o->prompt.text.n || o->prompt_file))
        o->start = config_start(a, all, o);
    if (d->text && d->before)
        prompt_text_skip(d->text, d->history.token + d->history.length - d->before, d->before);
    if (o->usual_length && last->positions > 0)
        limit_length(d, last, o);
}

static void save_state(const struct decoder *d)
{
    const struct saved_run now = {.made = d->before + d->made, .past = d->history.past, .text = d->text, .sampling = d->sampling};
    if (d->options->save_state)
        saved_write(d->saving, last_stage(d), &d->history, d->options, &now);
}

/* Loads the graphs, and derives what follows from their inputs. */
static void open_stages(struct decoder *d, struct arena *a, struct job_options *o)
{
    struct comm *all = d->replicas->all;
    load_stages(d, a, o);
    roles_find(a, all, d->stage, d->nstage, o);
    for (int k = 0; k < d->nstage; k++)
        positions_find(a, all, o, &d->stage[k]);
}

/* Makes all graphs ready to run; finds the prompt or the saved state, and the rows of this replica. */
static void begin(struct decoder *d, struct arena *a, struct job_options *o, int threads)
{
    struct comm *all = d->replicas->all;
    open_stages(d, a, o);
    for (int k = 0; k < d->nstage; k++)
        stage_prepare(a, all, o, threads, d->stage, k);
    check_ends(last_stage(d), o);
    generate_try_drafts(d, a, threads);
    take_beginning(d, a, o);
    d->sampling = sampling_agree(a, all, o);
    generate_read_form(d, a);
    shard_rows(d, a);
}

/* Outputs the results, except whether they are right. */
static void deliver(struct decoder *d, struct arena *a, const struct decoded *r)
{
    const struct job_options *o = d->options;
    const struct stage *last = last_stage(d);
    if (d->replicas->all->rank == 0)
        generate_print_rest(d, &r->tokens);
    if (d->text)
        generate_tell_ends(d, &r->tokens);
    save_state(d);
    if (o->output)
        generate_write_outputs(d, a, last);
    if (o->stats)
        stats_report(a, d->replicas, &d->shard, last->session, 1, &d->chosen, o->stats_path);
    job_tell_times(a, d->replicas->all, last->session, last->path, o);
}

bool generate_run(struct arena *a, const struct replicas *replicas, const struct job_options *given, int threads)
{
    struct job_options own = *given;
    struct decoder d = {
        .replicas = replicas, .comm = replicas->process_group, .options = &own, .chosen = {.name = "next tokens", .op = "AllGather"}};
    struct comm *all = replicas->all;
    begin(&d, a, &own, threads);
    d.saving = saved_begin(a, all, last_stage(&d), &own);
    bool prints = all->rank == 0, runs = replica_runs(replicas, &d.shard), failed = false;
    if (prints && own.check.text.n && runs)
        d.unsharded = unsharded_new(a, d.stage, d.nstage, &own, threads);
    generate_watch(&d);
    all->barrier(all);
    if (runs && !generate_in_groups(&d, a))
        generate_tokens(&d, a);
    else if (!runs)
        generate_free_earlier(&d);
    const struct decoded r = generate_join_results(&d, a);
    generate_unwatch(&d);
    deliver(&d, a, &r);
    if (d.unsharded)
        failed = unsharded_end(d.unsharded, &d.history, d.text);
    else if (prints && !diag_is_quiet())
        generate_tell_rate(a, &d, &r);
    if (prints && !diag_is_quiet())
        generate_tell_drafts(&d);
    all->barrier(all);
    drafter_end(d.draft.from);
    stage_free(last_stage(&d));
    generate_forget_loaded(&d);
    generate_end_form(&d);
    return failed;
}

void generate_dump(struct arena *a, const struct replicas *replicas, const struct job_options *given)
{
    struct job_options own = *given;
    struct decoder d = {.replicas = replicas, .comm = replicas->process_group, .options = &own};
    open_stages(&d, a, &own);
    for (int k = 0; k < d.nstage; k++) {
        stage_fuse(a, &own, &d.stage[k]);
        job_dump_graph(a, replicas, d.stage[k].graph);
    }
}
