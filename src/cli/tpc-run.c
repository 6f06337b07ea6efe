/* tpc-run: executes an ONNX model, or a folder of rank files that tpc-shard wrote. Ranks are processes under mpirun, or threads of one
 * process (--local N). Only rank 0 prints. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/args.h"
#include "cli/build.h"
#include "cli/launch.h"
#include "decode/decode.h"
#include "job/timing/timing.h"
#include "plan/folder/folder.h"
#ifdef HAVE_SERVE
#include "serve/serve.h"
#endif
#include "train/train.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct arg_prose usage[] = {{"mpirun -n N tpc-run DIR [options]", "run each rank as a process"},
                                         {"tpc-run DIR [options]", "run each rank as a thread of one process"},
                                         {"tpc-run MODEL.onnx [options]", "run a model unsharded on one rank"},
                                         {"tpc-run DIR --prompt TEXT", "write text; --serve: for clients"},
                                         {"tpc-run DIR --train --data FILE", "train what tpc-shard --train compiled"},
                                         {"mpirun -n N tpc-run --calibrate FILE", "measure this machine for tpc-shard --machine"},
                                         {NULL, NULL}};
static const struct arg_prose description[] = {
    {"",
     "tpc-run executes an ONNX model, or a folder that tpc-shard wrote, on CPUs. Ranks are processes started by mpirun, or threads of one "
     "process. It reads only the emitted ONNX files. Inputs and outputs are those of the unsharded model."},
    {"",
     "With --test-data or --check the last line is PASSED or FAILED and the worst difference. Otherwise it is the time of the run. Without "
     "any input, inputs are made up, and the times of runs at the sizes that the plan was made for are printed."},
    {NULL, NULL}};
static const struct arg_prose environment[] = {
    {"OMPI_ALLOW_RUN_AS_ROOT, OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "Open MPI runs as root if both are 1"},
    {"OMPI_MCA_rmaps_base_oversubscribe", "Open MPI starts more ranks than there are cores if it is 1"},
    {"TPC_MESSAGES", "processes of one machine send messages and share no memory if it is 1"},
    {NULL, NULL}};
static const struct arg_prose examples[] = {
    {"mpirun -n 4 tpc-run model.tp4 --input input_ids=ids.npy --output out", "Run four ranks on given inputs:"},
    {"tpc-run model.tp4 --local 4 --test-data test_data_set_0 --check model.onnx",
     "Compare with stored outputs and with the unsharded model:"},
    {"tpc-run model.tp2 --random --dim sequence_length=128 --repeat 10 --stats",
     "Measure on random inputs; --dim sets sizes, the plan's workload the others:"},
    {"mpirun -n 2 tpc-run model.tp2 --generate 64 --input input_ids=ids.npy", "Decode 64 tokens after a prompt:"},
    {NULL, NULL}};

/* The options as texts. job holds those that need no parsing. */
struct run_options {
    struct job_options job;
    struct train_options train;
    struct serve_options serve;
    struct text_list dim, bind, external_root, eos;
    struct text_maybe random, stats, bench;
    const char *start, *check, *groups, *cache, *top_k, *seed, *port, *slots, *wire, *timeout;
    bool verbose;
    struct text_list settings; /* what all ranks must have alike */
};

static bool samples(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    return job->temperature >= 0 || job->top_p >= 0 || job->min_p >= 0 || job->penalty >= 0 || o->top_k;
}

/* Of options that measure the machine, and no model. */
static void check_no_model(const struct run_options *o, const char *option)
{
    const struct job_options *job = &o->job;
    bool runs = job->serve || job->paths.text.n || job->generate || job->test_data || o->check || job->output || o->random.given ||
        o->dim.text.n || o->bind.text.n || job->input.text.n || job->repeat > 1 || o->stats.given || o->bench.given || o->groups ||
        job->write_shards || o->eos.text.n || o->start || job->prompt.text.n || job->prompt_file || job->tokenizer || job->role.text.n ||
        job->save_state || job->load_state || o->wire || o->external_root.text.n || samples(o) || o->seed || job->rtol >= 0 ||
        job->atol >= 0 || job->rel >= 0;
    if (runs)
        fail_usage("--%s runs no model: only --local, --threads, --quiet and --verbose go with it", option);
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
        fail_usage("shards per rank (--pieces, {rank} in --input) go with neither --groups nor --generate");
}

static void check_rounding(const struct run_options *o)
{
    if (o->job.fast && o->job.deterministic)
        fail_usage("--fast rounds more: it does not go with --deterministic");
    if (o->job.wire > WIRE_F32 && (o->job.deterministic || o->job.train))
        fail_usage("--wire rounds sums: it goes with neither --deterministic nor --train");
    if (o->cache && !o->job.generate && !o->job.serve && !o->bench.given)
        fail_usage("--cache is for --generate, --prompt, --serve and --bench");
}

/* The first option of training that is given; NULL: none is. */
static const char *training_option(const struct train_options *t)
{
    const struct {
        const char *name;
        bool given;
    } option[] = {{"data", t->data},
                  {"batch", t->batch},
                  {"sequence", t->sequence},
                  {"accumulate", t->accumulate},
                  {"steps", t->steps},
                  {"lr", t->lr >= 0},
                  {"optimizer", t->optimizer},
                  {"save", t->save},
                  {"save-every", t->save_every},
                  {"resume", t->resume},
                  {"validate", t->validate.text.n},
                  {"validate-every", t->validate_every},
                  {"log", t->log}};
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
    if (job->train && o->groups && strchr(o->groups, ':'))
        fail_usage("--groups is '%s': --train distributes the rows itself, and takes only a number of replicas", o->groups);
    if (job->train && (job->generate || job->test_data || o->check || job->output || o->random.given || o->dim.text.n || job->repeat > 1))
        fail_usage(
            "--train takes none of --generate, --prompt, --load-state, --test-data, --check, --output, --random, --dim and --repeat");
}

/* Its inputs are made up; --dim, --generate and --repeat set sizes. */
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

static void check_serving(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    bool other = job->generate || job->train || job->test_data || o->check || job->output || o->random.given || o->dim.text.n ||
        job->repeat > 1 || job->stats || o->stats.given || o->groups || (o->start && job->paths.text.n < 2) || job->prompt.text.n ||
        job->prompt_file || job->trace || job->profile;
    if (!job->serve && (o->port || o->serve.host || o->slots || o->serve.context || o->serve.cors.text.n || o->serve.per_address))
        fail_usage("--host, --port, --slots, --context, --cors and --per-address are for --serve");
    if (job->serve && other)
        fail_usage("--serve takes none of --generate, --prompt, --prompt-file, --load-state, --start, --train, --test-data, "
                   "--check, --output, --random, --dim, --repeat, --stats, --trace, --profile and --groups");
}

/* Text goes on until its model ends it, or for so many tokens. */
enum { USUAL_TOKENS = 256 };

static void check_states(const struct run_options *o)
{
    const struct job_options *job = &o->job;
    if (job->load_state && (job->prompt.text.n || job->prompt_file || job->input.text.n || o->start))
        fail_usage("--load-state goes on where a run stopped: it takes none of --prompt, --prompt-file, --input and --start");
    if (job->save_state && !job->generate)
        fail_usage("--save-state is for --generate, --prompt and --load-state");
    if ((job->save_state || job->load_state) && o->groups)
        fail_usage("--save-state and --load-state don't go with --groups");
}

static void check_options(struct run_options *o)
{
    struct job_options *job = &o->job;
    bool text = job->prompt.text.n || job->prompt_file;
    int n = job->paths.text.n;
    if (job->calibrate && job->doctor)
        fail_usage("--doctor and --calibrate both measure the machine: give only one");
    if (job->calibrate || job->doctor) {
        check_no_model(o, job->doctor ? "doctor" : "calibrate");
        return;
    }
    if ((text || job->load_state) && !job->generate)
        job->usual_length = true, job->generate = USUAL_TOKENS;
    if (job->tokenizer && !text && !job->train && !job->serve && !job->load_state)
        fail_usage("--tokenizer is for --prompt, --prompt-file, --load-state, --serve and text for --train");
    check_serving(o);
    if (o->bench.given)
        check_bench(o);
    bool compares = job->test_data || o->random.given || o->dim.text.n || job->repeat > 1;
    if (n < 1)
        fail_usage("expected a model or folder, found none: --help shows the usage");
    if (n > 1 && !job->generate && !job->serve)
        fail_usage("expected one graph, found %d: --generate, --prompt and --serve run several", n);
    check_shards(o);
    check_training(o);
    check_rounding(o);
    check_states(o);
    bool decodes = (job->generate && !o->bench.given) || job->serve;
    if (job->generate && compares && !o->bench.given)
        fail_usage("--generate takes none of --test-data, --random, --dim and --repeat");
    if (job->generate && o->check && o->groups)
        fail_usage("--check of decoding doesn't go with --groups");
    if (!decodes && (o->eos.text.n || o->start || (job->role.text.n && !o->bench.given)))
        fail_usage("--eos, --start and --role are for --generate");
    if (!decodes && samples(o))
        fail_usage("--temperature, --top-k, --top-p, --min-p and --repetition-penalty are for --generate and --prompt");
    if (!decodes && !job->train && o->seed)
        fail_usage("--seed is for --generate, --prompt and --train");
    if (job->repeat < 1)
        fail_usage("--repeat is 0, expected at least 1");
}

/* Hosts may have a folder in different places; its plan is compared when it is loaded. */
static const char *paths_given(struct arena *a, const struct text_list *paths)
{
    const char *all = "models:";
    for (int i = 0; i < paths->text.n; i++)
        all = arena_printf(a, "%s %s", all, path_is_folder(paths->text.at[i]) ? "folder" : "file");
    return all;
}

/* The table of options grows by parts. */
struct arg_table {
    VEC(struct arg) rows;
};

static void add_args(struct arena *a, struct arg_table *t, const struct arg *row, size_t n)
{
    for (size_t i = 0; i < n; i++)
        VEC_PUSH(a, &t->rows, row[i]);
}

static void add_rank_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Ranks"),
        {"local", 0, ARG_RANKS, &o->job.local, "N", "run N ranks as threads of this process"},
        {"groups", 0, ARG_TEXT, &o->groups, "G[:SYMBOL]", "run G replicas, each on its rows of the batch"},
        {"threads", 0, ARG_INT, &o->job.threads, "N", "threads per rank (default: cores that nobody uses / ranks on this machine)"},
        {"deterministic", 0, ARG_FLAG, &o->job.deterministic, NULL, "make f32 results of N ranks equal to those of one, bit for bit"},
        {"fast", 0, ARG_FLAG, &o->job.fast, NULL,
         "round what meets quantised weights to 8 bits, whatever accuracy the model asks for; with --train, what products read to bf16"},
        {"wire", 0, ARG_TEXT, &o->wire, "f32|bf16|q8",
         "between machines, send addends of f32 sums in 4 bytes, in 2, or in 1 (default: as tpc-shard --wire said)"},
        {"cache", 0, ARG_TEXT, &o->cache, "f16|int8",
         "with --generate, --prompt, --serve and --bench: keep KV caches of f32 in a half or a quarter of the bytes"},
        {"verify", 0, ARG_FLAG, &o->job.verify, NULL, "compare all bytes of the weights with what tpc-shard wrote"},
        {"timeout", 0, ARG_TEXT, &o->timeout, "S",
         "end the job if a process of mpirun that others wait for is stopped for S seconds (default: 300; 0: never)"},
        {"force", 0, ARG_FLAG, &o->job.force, NULL, "run even where memory is short; with --train: where rows may depend on each other"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_value_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Inputs and outputs"),
        {"input", 0, ARG_LIST, &o->job.input, "[K:]NAME=FILE",
         "an input (of graph K): .npy, .pb ({rank} in it: a shard per rank), 1,2 or [1,2],[3,4], or \"a\",\"b\""},
        {"random", 0, ARG_MAYBE_INT, &o->random, "[SEED]", "make random inputs for those not given"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT,..", "sizes of symbolic dimensions of random inputs (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of a model to a constant (repeatable)"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "allow weights in this folder too (repeatable)"},
        {"output", 'o', ARG_TEXT, &o->job.output, "DIR", "write outputs as .npy; without it, print a digest of each"},
        {"pieces", 0, ARG_FLAG, &o->job.write_shards, NULL, "with --output: write the shard of each rank as NAME.rank-R.npy"},
        {"test-data", 0, ARG_TEXT, &o->job.test_data, "DIR", "read inputs from input_*.pb, compare with output_*.pb"},
        {"rtol", 0, ARG_REAL, &o->job.rtol, "X", "|a-b| <= rtol |b| + atol max(1, max|b|) (default: by type)"},
        {"atol", 0, ARG_REAL, &o->job.atol, "X", "absolute part of the tolerance, see --rtol"},
        {"check", 0, ARG_TEXT, &o->check, "MODEL", "compare with MODEL, run unsharded"},
        {"rel", 0, ARG_REAL, &o->job.rel, "X", "with --check: max|a-b| <= rel max|b| (default: by type)"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_token_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Text and tokens"),
#ifdef HAVE_TEXT
        {"prompt", 0, ARG_LIST, &o->job.prompt, "TEXT", "decode after this text and print text (repeatable: a row each)"},
        {"prompt-file", 0, ARG_TEXT, &o->job.prompt_file, "FILE", "the same, with each line of FILE as a prompt; -: stdin"},
        {"tokenizer", 0, ARG_TEXT, &o->job.tokenizer, "FILE", "a tokenizer.json (default: the one beside the model)"},
#endif
        {"generate", 0, ARG_INT, &o->job.generate, "N", "decode N tokens; KV caches stay sharded"},
        {"save-state", 0, ARG_TEXT, &o->job.save_state, "FILE", "with --generate or --prompt: write what --load-state goes on from"},
        {"load-state", 0, ARG_TEXT, &o->job.load_state, "FILE", "decode on from a saved state, on any number of ranks"},
        {"eos", 0, ARG_LIST, &o->eos, "ID,..", "with --generate: the tokens that end a row (repeatable)"},
        {"start", 0, ARG_TEXT, &o->start, "ID", "first token of a decoder behind an encoder (default: generation_config.json's, or 0)"},
        {"role", 0, ARG_LIST, &o->job.role, "INPUT=ROLE", "with --generate: tokens, mask, positions, constant, ... (repeatable)"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_sampling_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Sampling"),
        {"temperature", 0, ARG_REAL, &o->job.temperature, "X", "sample: scores are divided by X; 0: take the best token (default)"},
        {"top-k", 0, ARG_TEXT, &o->top_k, "K", "sample from the K best tokens; 0: from all"},
        {"top-p", 0, ARG_REAL, &o->job.top_p, "X", "sample from the fewest best tokens that together have probability X"},
        {"min-p", 0, ARG_REAL, &o->job.min_p, "X", "sample from tokens with at least X times the best one's probability"},
        {"repetition-penalty", 0, ARG_REAL, &o->job.penalty, "X", "divide positive scores of a row's tokens by X, multiply negative ones"},
        {"seed", 0, ARG_TEXT, &o->seed, "N", "draw what N draws, on any number of ranks: tokens; with --train: rows (default: 0)"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_serve_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
#ifdef HAVE_SERVE
    const struct arg row[] = {
        ARG_HEADING("Serving"),
        {"serve", 0, ARG_FLAG, &o->job.serve, NULL, "keep the model loaded and answer OpenAI's /v1/completions over HTTP"},
        {"host", 0, ARG_TEXT, &o->serve.host, "ADDRESS", "with --serve: where to listen (default: 127.0.0.1)"},
        {"port", 0, ARG_TEXT, &o->port, "P", "with --serve: the port (default: 8080; 0: any that is free)"},
        {"slots", 0, ARG_TEXT, &o->slots, "N", "with --serve: texts that are made at the same time (default: 8)"},
        {"cors", 0, ARG_LIST, &o->serve.cors, "ORIGIN",
         "with --serve: pages of this origin, such as https://example.com, may use the server; repeatable; *: of any"},
        {"per-address", 0, ARG_INT, &o->serve.per_address, "N",
         "with --serve: connections from one address at most, but for this machine's own (default: any number)"},
        {"context", 0, ARG_INT, &o->serve.context, "N", "with --serve: tokens of a text with its prompt (default: 4096)"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
#else
    (void)a, (void)t, (void)o;
#endif
}

static void add_train_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Training"),
        {"train", 0, ARG_FLAG, &o->job.train, NULL, "train the weights of a folder that tpc-shard --train made"},
        {"data", 0, ARG_TEXT, &o->train.data, "FILE", "with --train: text (.txt), or tokens: .npy, raw of 16 bits (.u32: of 32 bits)"},
        {"batch", 0, ARG_INT, &o->train.batch, "N", "with --train: rows of a step, of all replicas (default: 8)"},
        {"sequence", 0, ARG_INT, &o->train.sequence, "N", "with --train: tokens of a row"},
        {"accumulate", 0, ARG_INT, &o->train.accumulate, "N", "with --train: run the rows of a step in N parts, to save memory"},
        {"steps", 0, ARG_INT, &o->train.steps, "N", "with --train: steps in all"},
        {"lr", 0, ARG_REAL, &o->train.lr, "X", "with --train: highest learning rate (default: 3e-4)"},
        {"optimizer", 0, ARG_TEXT, &o->train.optimizer, "NAME[,KEY=X..]",
         "adamw or sgd; beta1, beta2, eps, decay, momentum, clip, warmup, floor"},
        {"save", 0, ARG_TEXT, &o->train.save, "FILE", "with --train: write checkpoints (safetensors)"},
        {"save-every", 0, ARG_INT, &o->train.save_every, "N", "with --train: steps between checkpoints (default: 100)"},
        {"resume", 0, ARG_TEXT, &o->train.resume, "FILE", "with --train: go on from a checkpoint, on any number of ranks"},
        {"validate", 0, ARG_LIST, &o->train.validate, "FILE", "with --train: the loss of this file, too (NAME=FILE: samples; repeatable)"},
        {"validate-every", 0, ARG_INT, &o->train.validate_every, "N", "with --train: steps between validations (default: 100)"},
        {"log", 0, ARG_TEXT, &o->train.log, "FILE", "with --train: write a CSV line per step"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_measure_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Measuring"),
        {"repeat", 0, ARG_INT, &o->job.repeat, "N", "run N times and print the times"},
        {"bench", 0, ARG_MAYBE, &o->bench, "[=FORM]", "print a table of prefill and decode times; FORM: md, csv or json"},
        {"stats", 0, ARG_MAYBE, &o->stats, "[=FILE]", "print time, communication and memory of every rank; FILE: write JSON"},
        {"profile", 0, ARG_FLAG, &o->job.profile, NULL, "print which operators, modules and nodes take the time"},
        {"trace", 0, ARG_TEXT, &o->job.trace, "FILE", "write the times of the last run on all ranks, for Perfetto"},
        {"doctor", 0, ARG_FLAG, &o->job.doctor, NULL, "look at ranks, cores, memory and network, and say what to change"},
        {"calibrate", 0, ARG_TEXT, &o->job.calibrate, "FILE", "measure this machine and write a profile for tpc-shard --machine"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_message_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
    const struct arg row[] = {
        ARG_HEADING("Messages"),
        {"quiet", 'q', ARG_FLAG, &o->job.quiet, NULL, "print errors and results only"},
        {"verbose", 'v', ARG_FLAG, &o->verbose, NULL, "explain what is done"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

/* The unsharded model of --check. */
static struct text_list graphs_to_check(struct arena *a, const struct run_options *o)
{
    struct text_list graphs = {{NULL, 0, 0}};
    if (!o->check)
        return graphs;
    graphs = find_graphs(a, o->check);
    if (path_is_folder(graphs.text.at[0]))
        fail_usage("--check %s: expected the model, found a folder of its ranks", o->check);
    if (graphs.text.n > 1 && !o->job.generate)
        fail_usage("--check %s: holds %d graphs, name one: only --generate and --prompt run several", o->check, graphs.text.n);
    return graphs;
}

/* A folder may hold several. */
static struct text_list all_graphs(struct arena *a, struct text_list given)
{
    struct text_list all = {{NULL, 0, 0}};
    for (int i = 0; i < given.text.n; i++) {
        struct text_list graphs = find_graphs(a, given.text.at[i]);
        for (int k = 0; k < graphs.text.n; k++)
            VEC_PUSH(a, &all.text, graphs.text.at[k]);
    }
    return all;
}

static void parse_run_options(struct arena *a, struct run_options *o, int argc, char **argv)
{
    struct arg_table t = {{0}};
    add_rank_args(a, &t, o);
    add_value_args(a, &t, o);
    add_token_args(a, &t, o);
    add_sampling_args(a, &t, o);
    add_serve_args(a, &t, o);
    add_train_args(a, &t, o);
    add_measure_args(a, &t, o);
    add_message_args(a, &t, o);
    const struct args args = {
        "tpc-run", "execute an ONNX model, or the ranks of a sharded one", usage, t.rows.at, t.rows.n, description, environment, examples};
    static const char *const own[] = {"threads", "quiet", "verbose", NULL}; /* of each rank */
    o->job.paths = all_graphs(a, args_parse(a, &args, argc, argv));
    o->settings = args_given(a, &args, own);
    VEC_PUSH(a, &o->settings.text, paths_given(a, &o->job.paths));
    if (o->wire && !sum_wire_parse(o->wire, &o->job.wire))
        fail_usage("--wire is '%s', expected f32, bf16 or q8", o->wire);
    check_options(o);
    o->job.check = graphs_to_check(a, o);
}

static int64_t token_id(const char *what, const char *text)
{
    return text ? number_read(what, text, 0, INT32_MAX) : -1;
}

/* The tokens of "ID,ID,..." */
static void read_eos(struct arena *a, struct job_options *o, const char *text)
{
    for (size_t n; n = strcspn(text, ","), true; text += n + 1) {
        VEC_PUSH(a, &o->eos.list, token_id("--eos", arena_strndup(a, text, n)));
        if (!text[n])
            return;
    }
}

static void read_serve_options(struct run_options *o)
{
    o->serve.port = o->port ? number_read("--port", o->port, 0, 65535) : -1;
    o->serve.slots = o->slots ? number_read("--slots", o->slots, 1, SERVE_SLOTS) : 0;
#ifdef HAVE_SERVE
    for (int i = 0; i < o->serve.cors.text.n; i++)
        if (!origin_is_valid(o->serve.cors.text.at[i]))
            fail_usage("--cors is '%s', expected * or an origin such as https://example.com", o->serve.cors.text.at[i]);
#endif
}

/* Parses the command line and the texts of options. */
static void read_run_options(struct arena *a, struct run_options *o, int argc, char **argv)
{
    struct job_options *job = &o->job;
    *o = (struct run_options){.job = job_defaults(), .train = {.lr = -1}};
    parse_run_options(a, o, argc, argv);
    replica_read(a, o->groups, job);
    diag_setup("tpc-run", job->quiet ? -1 : o->verbose);
    for (int i = 0; i < o->dim.text.n; i++)
        args_bindings(a, o->dim.text.at[i], &job->dims);
    for (int i = 0; i < o->bind.text.n; i++)
        VEC_PUSH(a, &job->fixed.list, o->bind.text.at[i]);
    job->external_roots = args_folders(&o->external_root);
    job->random = o->random.given;
    job->seed = o->random.text ? (uint64_t)number_read("--random", o->random.text, 0, INT64_MAX) : 0;
    job->stats = o->stats.given;
    job->bench = o->bench.given ? bench_form_of(o->bench.text) : BENCH_NONE;
    job->stats_path = o->stats.text;
    for (int i = 0; i < o->eos.text.n; i++)
        read_eos(a, job, o->eos.text.at[i]);
    o->train.seed = o->seed ? number_read("--seed", o->seed, 0, INT64_MAX) : -1;
    job->start = token_id("--start", o->start);
    if (o->cache)
        job->cache = strcmp(o->cache, "f16") == 0 ? DT_F16 : strcmp(o->cache, "int8") == 0 ? DT_I8 : DT_NONE;
    if (o->cache && !job->cache)
        fail_usage("--cache is '%s', expected f16 or int8", o->cache);
    read_serve_options(o);
    job->top_k = o->top_k ? number_read("--top-k", o->top_k, 0, INT32_MAX) : -1;
    job->sampling_seed = o->seed ? number_read("--seed", o->seed, 0, INT64_MAX) : -1;
}

/* ---- one rank ----------------------------------------------------------------------------------------------------------------- */

struct job {
    const struct job_options *options;
    const struct train_options *train;
    const struct serve_options *serve;
    const char *launcher; /* what shows it; NULL: none */
    bool failed;
};

static void rank_main(struct comm *comm, void *data)
{
    struct job *job = data;
    struct arena *a = arena_new();
    int threads = job_thread_count(comm, job->options->threads);
    if (job->options->wire > WIRE_F32 && comm->local_size == comm->size && comm->rank == 0)
        diag_tell("--wire shortens messages between machines, and all ranks are on this one");
    struct replicas replicas = replica_form(comm, job->options);
    if (job->options->doctor)
        job_doctor(a, comm, job->launcher, threads);
    else if (job->options->calibrate)
        job_calibrate(a, comm, job->options, threads);
#ifdef HAVE_SERVE
    else if (job->options->serve)
        serve_requests(a, &replicas, job->options, job->serve, threads);
#endif
    else if (job->options->train)
        train_run(a, &replicas, job->options, job->train, threads);
    else if (job->options->bench)
        (void)(bench_tokens_run(a, &replicas, job->options, threads) || job_run(a, &replicas, job->options, threads));
    else if (job->options->generate ? generate_run(a, &replicas, job->options, threads) : job_run(a, &replicas, job->options, threads))
        job->failed = true;
    replica_leave(&replicas);
    arena_free(a);
}

/* ---- start --------------------------------------------------------------------------------------------------------------------- */

/* Before the run whose results they take. kind: what such a file has near its beginning. */
static void check_files(const struct run_options *o)
{
    const struct {
        const char *option, *path, *kind;
    } file[] = {{"--trace", o->job.trace, "{\"traceEvents\""},   {"--stats", o->job.stats_path, "\"sizes\": "},
                {"--save-state", o->job.save_state, SAVED_KIND}, {"--calibrate", o->job.calibrate, "\"link_bandwidth\": "},
                {"--log", o->train.log, "step,loss,"},           {"--save", o->train.save, CHECKPOINT_KIND}};
    for (int i = 0; i < (int)(sizeof file / sizeof *file); i++) {
        if (!file[i].path)
            continue;
        out_check(file[i].option, file[i].path, file[i].kind);
        folder_keep(file[i].path);
    }
    if (o->job.output)
        out_check_folder("--output", o->job.output);
}

/* A folder of several ranks without a launcher: they become threads. */
static void start_threads(struct arena *a, const struct comm *comm, struct job_options *o)
{
    int ranks = 1;
    if (comm->size > 1 || o->local || o->calibrate)
        return;
    if (o->doctor)
        o->local = cores_of_machine() > 1 ? 2 : 1;
    for (int i = 0; i < o->paths.text.n; i++) {
        int n = job_rank_files(a, o->paths.text.at[i]);
        ranks = n > ranks ? n : ranks;
    }
    if (ranks == 1)
        return;
    o->local = ranks * o->groups;
    diag_tell("the %lld ranks are threads of this process (mpirun -n %lld starts a process for each)", (long long)o->local,
              (long long)o->local);
}

int main(int argc, char **argv)
{
    struct arena *a = arena_new();
    struct run_options o;
    diag_setup("tpc-run", 0);
    streams_start();
    stack_start();
    signal_watch(!launch_variable()); /* a launcher reports the end of its processes itself */
    struct comm *comm = launch_comm(&argc, &argv);
    if (comm->rank)
        comm->barrier(comm);
    read_run_options(a, &o, argc, argv); /* rank 0 first, so that a wrong command line is reported once */
    if (!comm->rank)
        check_files(&o);
    find_missing(a, comm->rank, &o.job.paths);
    if (!comm->rank)
        comm->barrier(comm);
    if (o.timeout)
        comm->timeout = (double)number_read("--timeout", o.timeout, 0, INT32_MAX);
    job_agree(comm, "tpc-run " PACKAGE_VERSION ", build " TPC_BUILD, &o.settings);
    start_threads(a, comm, &o.job);
    struct job job = {.options = &o.job, .train = &o.train, .serve = &o.serve, .launcher = comm->size > 1 ? launch_variable() : NULL};
    if (o.job.local > 0)
        comm_local_run((int)o.job.local, rank_main, &job);
    else
        rank_main(comm, &job);
    streams_end();
    comm->free(comm);
    arena_free(a);
    return job.failed ? 1 : 0;
}
