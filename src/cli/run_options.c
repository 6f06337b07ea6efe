/* run_options: the command line of tpc-run. */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "cli/run.h"
#include "decode/draft/draft.h"
#include "job/timing/timing.h"
#ifdef HAVE_SERVE
#include "serve/admission/admission.h"
#endif

#include <string.h>

enum { USUAL_DRAFTS = 8 };

static const struct arg_prose usage[] = {{"mpirun -n N tpc-run DIR [options]", "run each rank as a process"},
                                         {"tpc-run DIR [options]", "run each rank as a thread of one process"},
                                         {"tpc-run MODEL.onnx [options]", "run a model unsharded on one rank"},
                                         {"tpc-run DIR --prompt TEXT", "write text; --chat: in a conversation; --serve: for clients"},
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

/* Hosts may have a folder at different paths; its plan is compared when it is loaded. */
static const char *paths_given(struct arena *a, const struct text_list *paths)
{
    const char *all = "models:";
    for (int i = 0; i < paths->text.n; i++)
        all = arena_printf(a, "%s %s", all, path_is_folder(paths->text.at[i]) ? "folder" : "file");
    return all;
}

/* The table of options is assembled from parts. */
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
        {"speed", 0, ARG_TEXT, &o->speed, "X,Y,..", "with --groups: speeds of the replicas; rows are shared in proportion"},
        {"threads", 0, ARG_INT, &o->job.threads, "N", "threads per rank (default: cores that nobody uses / ranks on this machine)"},
        {"deterministic", 0, ARG_FLAG, &o->job.deterministic, NULL, "make f32 results of N ranks equal to those of one, bit for bit"},
        {"fast", 0, ARG_FLAG, &o->job.fast, NULL,
         "round what products read: to bf16 on processors that multiply it, to 8 bits where it meets quantised weights"},
        {"wire", 0, ARG_TEXT, &o->wire, "f32|bf16|q8",
         "between machines, send addends of f32 sums in 4 bytes, in 2, or in 1 (default: as tpc-shard --wire said)"},
        {"cache", 0, ARG_TEXT, &o->cache, "f16|int8",
         "with --generate, --prompt, --serve and --bench: keep KV caches of f32 in a half or a quarter of the bytes"},
        {"verify", 0, ARG_FLAG, &o->job.verify, NULL, "compare all bytes of the weights with what tpc-shard wrote"},
        {"timeout", 0, ARG_TEXT, &o->timeout, "S",
         "end the job if a process of mpirun that others wait for is stopped for S seconds (default: 300; 0: never)"},
        {"restart", 0, ARG_MAYBE, &o->restart, "[=MODEL]",
         "with --serve and --train: start the job again when a rank or a host of it is lost; MODEL: what fewer ranks are made of"},
        {"launch", 0, ARG_TEXT, &o->launch, "COMMAND", "with --restart: what starts the ranks, such as 'mpirun -n 4 --hostfile hosts'"},
        {"hosts", 0, ARG_TEXT, &o->hosts, "HOST,..",
         "with --launch: what stands for {hosts} there, and {ranks} for their number: a host for each rank, and spares behind them"},
        {"restart-limit", 0, ARG_TEXT, &o->restart_limit, "N[:MINUTES]",
         "with --restart: end where more than N restarts would be needed in so many minutes (default: 10:10)"},
        {"supervised", 0, ARG_TEXT, &o->supervised, "BUILD", NULL},
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
        {"lora", 0, ARG_LIST, &o->job.lora, "[NAME=]FILE",
         "run with the adapters in this folder or adapter_model.safetensors of PEFT; with --train: begin from them; "
         "with --serve and NAME: for requests whose model is NAME (repeatable)"},
        {"dim", 0, ARG_LIST, &o->dim, "NAME=INT,..", "sizes of symbolic dimensions of random inputs (repeatable)"},
        {"bind", 0, ARG_LIST, &o->bind, "NAME=VALUE,..", "fix an input of a model to a constant (repeatable)"},
        {"external-root", 0, ARG_LIST, &o->external_root, "DIR", "allow weights in this folder too (repeatable)"},
        {"plugin", 0, ARG_LIST, &o->plugin, "FILE.so", "operators of a shared library (repeatable)"},
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
        {"grammar", 0, ARG_TEXT, &o->job.grammar, "FILE", "with --generate, --prompt and --chat: texts keep to this grammar in GBNF"},
        {"json-schema", 0, ARG_TEXT, &o->job.json_schema, "FILE", "the same: texts are JSON that is valid by this schema"},
        {"generate", 0, ARG_INT, &o->job.generate, "N", "decode N tokens; KV caches stay sharded"},
        {"lookup", 0, ARG_MAYBE_INT, &o->lookup, "[=K]",
         "with --generate, --prompt, --chat, --serve: guess up to K tokens (default: 8) that the text had before; check them in one run"},
        {"draft", 0, ARG_TEXT, &o->job.draft, "DIR",
         "the same, but a small model with the same vocabulary guesses: a model, or a folder for as many ranks or fewer"},
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
        {"temperature", 0, ARG_REAL, &o->job.temperature, "X",
         "sample: scores are divided by X; 0: take the best token (default, but for --serve and --chat)"},
        {"top-k", 0, ARG_TEXT, &o->top_k, "K", "sample from the K best tokens; 0: from all"},
        {"top-p", 0, ARG_REAL, &o->job.top_p, "X", "sample from the fewest best tokens that together have probability X"},
        {"min-p", 0, ARG_REAL, &o->job.min_p, "X", "sample from tokens with at least X times the best one's probability"},
        {"repetition-penalty", 0, ARG_REAL, &o->job.penalty, "X", "divide positive scores of a row's tokens by X, multiply negative ones"},
        {"presence-penalty", 0, ARG_SIGNED, &o->job.presence, "X", "subtract X from scores of tokens that a row has made (-2 to 2)"},
        {"frequency-penalty", 0, ARG_SIGNED, &o->job.frequency, "X", "subtract X for each time that a row has made the token (-2 to 2)"},
        {"seed", 0, ARG_TEXT, &o->seed, "N", "draw what N draws, on any number of ranks: tokens; with --train: rows (default: 0)"},
    };
    add_args(a, t, row, sizeof row / sizeof *row);
}

static void add_serve_args(struct arena *a, struct arg_table *t, struct run_options *o)
{
#ifdef HAVE_SERVE
    const struct arg row[] = {
        ARG_HEADING("Serving"),
        {"serve", 0, ARG_FLAG, &o->job.serve, NULL, "keep the model loaded and answer OpenAI's API over HTTP"},
        {"chat", 0, ARG_FLAG, &o->job.chat, NULL, "talk with the model on the terminal, by its chat template"},
        {"system", 0, ARG_TEXT, &o->job.system, "TEXT", "with --chat: what the model is told before the conversation"},
        {"chat-template", 0, ARG_TEXT, &o->job.chat_template, "FILE",
         "with --serve, --chat and --train: a chat template in Jinja (default: the one beside the model)"},
        {"host", 0, ARG_TEXT, &o->serve.host, "ADDRESS", "with --serve: where to listen (default: 127.0.0.1)"},
        {"port", 0, ARG_TEXT, &o->port, "P", "with --serve: the port (default: 8080; 0: any that is free)"},
        {"slots", 0, ARG_TEXT, &o->slots, "N", "with --serve: texts that are made at the same time (default: 8)"},
        {"cors", 0, ARG_LIST, &o->serve.cors, "ORIGIN",
         "with --serve: pages of this origin, such as https://example.com, may use the server; repeatable; *: of any"},
        {"api-key-file", 0, ARG_TEXT, &o->serve.api_key_file, "FILE", "with --serve: clients send one of its keys, one on each line"},
        {"per-address", 0, ARG_INT, &o->serve.per_address, "N",
         "with --serve: connections from one address at most, but for this machine's own (default: any number)"},
        {"request-timeout", 0, ARG_INT, &o->serve.request_seconds, "S", "with --serve: seconds for a request to come whole (default: 20)"},
        {"prefix-cache", 0, ARG_TEXT, &o->prefix_cache, "SIZE",
         "with --serve: memory per rank for the beginnings of texts, such as 2GiB; 0: none (default: a quarter of what is left, or less)"},
        {"pooling", 0, ARG_TEXT, &o->job.pooling, "mean|last|cls",
         "with --serve: how the vectors of a text's tokens become its embedding (default: as the model's files or its graph say)"},
        {"context", 0, ARG_INT, &o->serve.context, "N",
         "with --serve and --chat: tokens of a text with its prompt (default: 4096, or what the model has)"},
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
        {"data", 0, ARG_LIST, &o->train.data, "FILE",
         "with --train: text (.txt, .md), samples (.jsonl), or tokens: .npy, raw of 16 bits (.u32: of 32 bits); repeatable"},
        {"mix", 0, ARG_TEXT, &o->train.mix, "W,W,..",
         "with several --data: how often rows of each are drawn (default: evenly from all rows)"},
        {"batch", 0, ARG_INT, &o->train.batch, "N", "with --train: rows of a step, of all replicas (default: 8)"},
        {"sequence", 0, ARG_INT, &o->train.sequence, "N", "with --train: tokens of a row"},
        {"accumulate", 0, ARG_INT, &o->train.accumulate, "N", "with --train: run the rows of a step in N parts, to save memory"},
        {"steps", 0, ARG_INT, &o->train.steps, "N", "with --train: steps in all"},
        {"lr", 0, ARG_REAL, &o->train.lr, "X", "with --train: highest learning rate (default: 3e-4)"},
        {"optimizer", 0, ARG_TEXT, &o->train.optimizer, "NAME[,KEY=X..]",
         "adamw or sgd; beta1, beta2, eps, decay, momentum, clip; schedule=cosine|linear|constant|wsd, warmup, cooldown, floor"},
        {"validate", 0, ARG_LIST, &o->train.validate, "FILE", "with --train: the loss of this file, too (NAME=FILE: samples; repeatable)"},
        {"validate-every", 0, ARG_INT, &o->train.validate_every, "N", "with --train: steps between validations (default: 100)"},
        {"log", 0, ARG_TEXT, &o->train.log, "FILE", "with --train: write a CSV line per step"},
        {"plot", 0, ARG_TEXT, &o->train.plot, "FILE.svg", "with --train: draw losses and rates, again at each checkpoint"},
        ARG_HEADING("Checkpoints"),
        {"save", 0, ARG_TEXT, &o->train.save, "FILE", "with --train: write checkpoints (safetensors)"},
        {"save-every", 0, ARG_INT, &o->train.save_every, "N", "with --train: steps between checkpoints (default: 100)"},
        {"keep", 0, ARG_INT, &o->train.keep, "N", "with --save: keep the last N checkpoints, as FILE.step-STEP (default: the last alone)"},
        {"resume", 0, ARG_TEXT, &o->train.resume, "FILE", "with --train: go on from a checkpoint, on any number of ranks"},
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
        {"dump-after", 0, ARG_TEXT, &o->dump_after, "fuse_kernels",
         "print the graph of every rank as it would run with these options, as text, and run nothing"},
        {"doctor", 0, ARG_FLAG, &o->job.doctor, NULL, "look at ranks, cores, memory and network, and say what to change"},
        {"calibrate", 0, ARG_TEXT, &o->job.calibrate, "FILE", "measure this machine and write a profile for tpc-shard --machine"},
        {"seconds", 0, ARG_INT, &o->job.seconds, "S", "with --calibrate: after S seconds, measure what is left only once (default: 60)"},
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

static const char *graph_that_drafts(struct arena *a, const char *path)
{
    struct text_list graphs = find_graphs(a, path);
    if (graphs.text.n != 1)
        fail_usage("--draft %s: holds %d graphs, expected one that reads and makes tokens", path, graphs.text.n);
    return graphs.text.at[0];
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
    struct args args = {"tpc-run",   "execute an ONNX model, or the ranks of a sharded one",
                        usage,       t.rows.at,
                        t.rows.n,    description,
                        environment, examples,
                        NULL,        comm_mpi_library};
    static const char *const own[] = {"threads", "quiet", "verbose", NULL}; /* may differ per rank */
    o->job.paths = all_graphs(a, args_parse(a, &args, argc, argv));
    o->job.supervised = o->supervised;
    static const char *const of_supervisor[] = {"hosts", "restart",     "launch",          "restart-limit", "host", "port",
                                                "cors",  "per-address", "request-timeout", "api-key-file",  NULL};
    o->settings = args_given(a, &args, own);
    o->words = args_given(a, &args, of_supervisor);
    VEC_PUSH(a, &o->settings.text, paths_given(a, &o->job.paths));
    if (o->wire && !sum_wire_parse(o->wire, &o->job.wire))
        fail_usage("--wire is '%s', expected f32, bf16 or q8", o->wire);
    run_options_check(&args, o);
    o->job.check = graphs_to_check(a, o);
    if (o->job.draft)
        o->job.draft = graph_that_drafts(a, o->job.draft);
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
    o->serve.prefix_cache = !o->prefix_cache ? -1 : strcmp(o->prefix_cache, "0") == 0 ? 0 : args_bytes("--prefix-cache", o->prefix_cache);
    o->serve.slots = o->slots ? number_read("--slots", o->slots, 1, SERVE_SLOTS) : 0;
#ifdef HAVE_SERVE
    if (o->job.pooling)
        (void)embed_pooling_named(o->job.pooling);
    for (int i = 0; i < o->serve.cors.text.n; i++)
        if (!origin_is_valid(o->serve.cors.text.at[i]))
            fail_usage("--cors is '%s', expected * or an origin such as https://example.com", o->serve.cors.text.at[i]);
#endif
}

void run_options_read(struct arena *a, struct run_options *o, int argc, char **argv)
{
    struct job_options *job = &o->job;
    *o = (struct run_options){.job = job_defaults(), .train = {.lr = -1}};
    parse_run_options(a, o, argc, argv);
    replica_read(a, o->groups, o->speed, job);
    diag_setup("tpc-run", job->quiet ? -1 : o->verbose);
    for (int i = 0; i < o->dim.text.n; i++)
        args_bindings(a, o->dim.text.at[i], &job->dims);
    for (int i = 0; i < o->bind.text.n; i++)
        VEC_PUSH(a, &job->fixed.list, o->bind.text.at[i]);
    job->external_roots = args_folders(&o->external_root);
    args_plugins(&o->plugin);
    job->random = o->random.given;
    job->seed = o->random.text ? (uint64_t)number_read("--random", o->random.text, 0, INT64_MAX) : 0;
    job->stats = o->stats.given;
    job->lookup = !o->lookup.given ? 0 : o->lookup.text ? number_read("--lookup", o->lookup.text, 1, DRAFT_MOST) : USUAL_DRAFTS;
    job->dump = o->dump_after != NULL;
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
