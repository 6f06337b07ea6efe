/* run_checks: which options of tpc-run may be combined. */
#include "cli/run.h"
#include "job/adapters/adapters.h"

#include <math.h>
#include <string.h>

static bool samples(const struct run_options *o)
{
    return o->job.temperature >= 0 || o->job.top_p >= 0 || o->job.min_p >= 0 || o->job.penalty >= 0 || o->top_k ||
        !isnan(o->job.presence) || !isnan(o->job.frequency);
}

/* For options that measure the machine, without a model. */
static void check_no_model(const struct args *args, const char *option, const struct text_list *paths)
{
    static const char *const taken[] = {"doctor", "calibrate", "seconds", "local", "threads", "timeout", "quiet", "verbose", NULL};
    const char *other = args_other(args, taken);
    if (other || paths->text.n)
        fail_usage("--%s runs no model: %s%s does not go with it", option, other ? "--" : "", other ? other : paths->text.at[0]);
}

static void check_shards(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool shards = job->write_shards, alone = !job->generate && !o->groups;
    if (job->write_shards && !job->output)
        fail_usage("--pieces needs --output: where to write the shards");
    for (int i = 0; i < job->input.text.n; i++)
        shards = shards || strstr(job->input.text.at[i], "{rank}");
    if (shards && !alone)
        fail_usage("shards per rank (--pieces, {rank} in --input) cannot be combined with --groups or --generate");
}

static void check_rounding(const struct run_options *o)
{
    if (o->job.fast && o->job.deterministic)
        fail_usage("--fast rounds more: it does not go with --deterministic");
    if (o->job.wire > WIRE_F32 && (o->job.deterministic || o->job.train))
        fail_usage("--wire rounds sums: it cannot be combined with --deterministic or --train");
    if (o->cache && !o->job.generate && !o->job.serve && !o->bench.given)
        fail_usage("--cache is for --generate, --prompt, --serve and --bench");
}

/* The first option of training that is given; NULL: none. */
static const char *training_option(const struct train_options *t)
{
    const struct {
        const char *name;
        bool given;
    } option[] = {{"data", t->data.text.n},
                  {"mix", t->mix},
                  {"batch", t->batch},
                  {"sequence", t->sequence},
                  {"accumulate", t->accumulate},
                  {"steps", t->steps},
                  {"lr", t->lr >= 0},
                  {"optimizer", t->optimizer},
                  {"save", t->save},
                  {"save-every", t->save_every},
                  {"keep", t->keep},
                  {"resume", t->resume},
                  {"validate", t->validate.text.n},
                  {"validate-every", t->validate_every},
                  {"log", t->log},
                  {"plot", t->plot}};
    for (size_t i = 0; i < sizeof option / sizeof *option; i++)
        if (option[i].given)
            return option[i].name;
    return NULL;
}

static void check_training(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    const char *trains = training_option(&o->train);
    if (!job->train && trains)
        fail_usage("--%s is for --train", trains);
    if (o->train.validate_every && !o->train.validate.text.n)
        fail_usage("--validate-every is given without --validate");
    if (o->train.plot && !path_ends(o->train.plot, ".svg"))
        fail_usage("--plot is '%s', expected FILE.svg: it is a picture in SVG", o->train.plot);
    if (o->train.mix && !o->train.data.text.n)
        fail_usage("--mix is given without --data");
    if (o->train.keep && !o->train.save && !o->train.resume)
        fail_usage("--keep is given without --save");
    if (job->train && o->groups && strchr(o->groups, ':'))
        fail_usage("--groups is '%s': --train distributes the rows itself, and takes only a number of replicas", o->groups);
    if (job->train && (job->generate || job->test_data || o->check || job->output || o->random.given || o->dim.text.n || job->repeat > 1))
        fail_usage(
            "--train takes none of --generate, --prompt, --load-state, --test-data, --check, --output, --random, --dim and --repeat");
}

/* A benchmark's inputs are made up; --dim, --generate and --repeat set sizes. */
static void check_bench(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool other = job->serve || job->train || job->input.text.n || job->test_data || o->check || job->output || o->random.given ||
        job->prompt.text.n || job->prompt_file || job->save_state || job->load_state || o->groups || o->stats.given || job->profile ||
        job->trace || job->paths.text.n > 1;
    if (other)
        fail_usage("--bench makes up inputs of one graph: it takes none of --serve, --train, --input, --test-data, --check, --output, "
                   "--random, --prompt, --prompt-file, --save-state, --load-state, --groups, --stats, --profile and --trace");
}

static void check_dump(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool other = job->serve || o->bench.given || job->test_data || o->check || job->output || o->random.given || job->repeat > 1 ||
        o->stats.given || job->profile || job->trace || job->save_state || job->load_state;
    if (strcmp(o->dump_after, "fuse_kernels") != 0)
        fail_usage("--dump-after is '%s', expected fuse_kernels: tpc-shard prints the graph after the other passes", o->dump_after);
    if (other)
        fail_usage("--dump-after runs nothing: it takes none of --serve, --bench, --test-data, --check, --output, --random, --repeat, "
                   "--stats, --profile, --trace, --save-state and --load-state");
}

static void check_serving(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool other = job->generate || job->train || job->test_data || o->check || job->output || o->random.given || o->dim.text.n ||
        job->repeat > 1 || job->stats || o->stats.given || o->groups || (o->start && job->paths.text.n < 2) || job->prompt.text.n ||
        job->prompt_file || job->trace || job->profile;
    const struct serve_options *s = &o->serve;
    bool own = o->port || s->host || o->slots || s->context || s->cors.text.n || s->api_key_file || s->per_address || s->request_seconds ||
        o->prefix_cache || job->pooling;
    if (!job->serve && own)
        fail_usage(
            "--host, --port, --slots, --context, --prefix-cache, --pooling, --cors, --api-key-file, --per-address and --request-timeout "
            "are for --serve");
    if (job->serve && other)
        fail_usage("--%s takes none of --generate, --prompt, --prompt-file, --load-state, --start, --train, --test-data, "
                   "--check, --output, --random, --dim, --repeat, --stats, --trace, --profile and --groups",
                   job->chat ? "chat" : "serve");
    if (job->chat &&
        (o->port || s->host || o->slots || s->cors.text.n || s->api_key_file || s->per_address || s->request_seconds || job->pooling))
        fail_usage("--chat has no address: it takes none of --host, --port, --slots, --pooling, --cors, --api-key-file, --per-address and "
                   "--request-timeout");
}

static void check_restart(const struct run_options *o)
{
    const bool restarts = o->restart.given;
    if (!restarts && (o->launch || o->restart_limit || o->hosts))
        fail_usage("--launch, --hosts and --restart-limit are for --restart");
    if (restarts && (o->job.chat || (!o->job.serve && !o->job.train)))
        fail_usage("--restart is for --serve and --train");
    if (restarts && o->job.train && !o->train.save && !o->train.resume)
        fail_usage("--restart of --train goes on from the last checkpoint: say with --save where it is");
    if (o->launch && o->job.local)
        fail_usage("--launch starts processes, and --local threads: give only one");
    if (o->hosts && (!o->launch || !strstr(o->launch, "{hosts}") || !strstr(o->launch, "{ranks}")))
        fail_usage("--hosts needs --launch with {hosts} and {ranks}, as in 'mpirun -n {ranks} --host {hosts}'");
    if (!o->hosts && o->launch && strstr(o->launch, "{hosts}"))
        fail_usage("--launch has {hosts}, and --hosts names none");
    if (restarts && o->restart.text && !o->hosts)
        fail_usage("--restart=%s says what fewer ranks are made of, and needs --hosts", o->restart.text);
}

/* A chat is a server with one user. */
static void check_chat(struct job_options *job)
{
    if (job->chat && job->serve)
        fail_usage("--chat and --serve are given: give only one");
    if (job->system && !job->chat)
        fail_usage("--system is for --chat");
    if (job->chat_template && !job->chat && !job->serve && !job->train)
        fail_usage("--chat-template is for --serve, --chat and --train");
    job->serve = job->serve || job->chat;
}

/* Text continues until the model ends it, or for this many tokens. */
enum { USUAL_TOKENS = 256 };

static void check_states(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    if (job->load_state && (job->prompt.text.n || job->prompt_file || job->input.text.n || o->start))
        fail_usage("--load-state continues a stopped run: it cannot be combined with --prompt, --prompt-file, --input or --start");
    if (job->save_state && !job->generate)
        fail_usage("--save-state is for --generate, --prompt and --load-state");
    if ((job->save_state || job->load_state) && o->groups)
        fail_usage("--save-state and --load-state don't go with --groups");
}

static void check_form(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    if (job->grammar && job->json_schema)
        fail_usage("--grammar and --json-schema both give texts a form: give only one");
    if (!job->grammar && !job->json_schema)
        return;
    if (!(job->generate || job->chat) || o->bench.given || o->dump_after || o->check || o->groups || job->save_state || job->load_state)
        fail_usage("--%s is for --generate, --prompt and --chat, without --bench, --dump-after, --check, --groups, --save-state and "
                   "--load-state",
                   job->grammar ? "grammar" : "json-schema");
}

static void check_drafts(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    if (!o->lookup.given && !job->draft)
        return;
    if (o->lookup.given && job->draft)
        fail_usage("--lookup and --draft both guess tokens: give only one");
    if (!(job->generate || job->serve) || o->bench.given || o->dump_after || o->check || job->output)
        fail_usage(
            "--%s is for --generate, --prompt, --load-state, --chat and --serve, without --bench, --dump-after, --check and --output",
            job->draft ? "draft" : "lookup");
}

static void check_lora(const struct job_options *job, const char *resume)
{
    struct arena *a = arena_new();
    struct named_adapters *named;
    if (job->lora.text.n && job->paths.text.n > 1)
        fail_usage("--lora is about one graph, and there are %d", job->paths.text.n);
    if (job->lora.text.n && resume)
        fail_usage("--resume goes on from its own adapters: --lora does not go with it");
    if (adapters_named(a, &job->lora, &named) && named[0].name && (!job->serve || job->chat))
        fail_usage("--lora NAME=FILE is for --serve: expected FILE, found '%s'", job->lora.text.at[0]);
    arena_free(a);
}

void run_options_check(const struct args *args, struct run_options *o)
{
    struct job_options *job = &o->job;
    bool text = job->prompt.text.n || job->prompt_file;
    int n = job->paths.text.n;
    if (job->calibrate && job->doctor)
        fail_usage("--doctor and --calibrate both measure the machine: give only one");
    if (job->seconds && !job->calibrate)
        fail_usage("--seconds is for --calibrate");
    if (job->calibrate || job->doctor) {
        check_no_model(args, job->doctor ? "doctor" : "calibrate", &job->paths);
        return;
    }
    check_chat(job);
    if ((text || job->load_state) && !job->generate)
        job->usual_length = true, job->generate = USUAL_TOKENS;
    bool form = job->grammar || job->json_schema;
    if (job->tokenizer && !text && !form && !job->train && !job->serve && !job->load_state)
        fail_usage("--tokenizer is for --prompt, --prompt-file, --load-state, --serve, --grammar, --json-schema and text for --train");
    check_serving(o);
    if (o->bench.given)
        check_bench(o);
    if (o->dump_after)
        check_dump(o);
    bool compares = job->test_data || o->random.given || o->dim.text.n || job->repeat > 1;
    if (n < 1)
        fail_usage("expected a model or folder, found none: --help shows the usage");
    if (n > 1 && !job->generate && !job->serve)
        fail_usage("expected one graph, found %d: --generate, --prompt, --chat and --serve run several", n);
    check_lora(job, o->train.resume);
    check_shards(o);
    check_training(o);
    check_rounding(o);
    check_states(o);
    check_drafts(o);
    check_form(o);
    check_restart(o);
    bool decodes = (job->generate && !o->bench.given) || job->serve;
    if (job->generate && compares && !o->bench.given)
        fail_usage("--generate takes none of --test-data, --random, --dim and --repeat");
    if (job->generate && o->check && o->groups)
        fail_usage("--check of decoding doesn't go with --groups");
    if (!decodes && (o->eos.text.n || o->start || (job->role.text.n && !o->bench.given)))
        fail_usage("--eos, --start and --role are for --generate");
    if (!decodes && samples(o))
        fail_usage("--temperature, --top-k, --top-p, --min-p and penalties are for --generate and --prompt");
    if (!decodes && !job->train && o->seed)
        fail_usage("--seed is for --generate, --prompt and --train");
    if (job->repeat < 1)
        fail_usage("--repeat is 0, expected at least 1");
}
