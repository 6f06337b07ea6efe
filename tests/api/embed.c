/* embed: a program that uses tpc.h as any other would: it makes a folder of ranks, runs and decodes, and continues after every failure.
 * embed MODEL FOLDER GRAPH; with "mpi FOLDER", as one rank of an MPI job; with "stop FOLDER", too, where rank 1 pauses for a while. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tpc.h>

static int count;

static void ok(int good, const char *name)
{
    printf("%sok %d - %s\n", good ? "" : "not ", ++count, name);
    if (!good)
        printf("# %s\n", tpc_error());
}

static int says(const char *part)
{
    return strstr(tpc_error(), part) != NULL;
}

enum { BATCH = 2, LENGTH = 3, ROOM = 1 << 16 };

/* Inputs of a decoder, whose past is empty: tokens count up, masks are ones. */
struct inputs {
    tpc_tensor at[64];
    int n;
    int64_t number[64][BATCH * LENGTH];
};

static void fill(const tpc_session *s, struct inputs *in, int64_t token)
{
    in->n = tpc_input_count(s);
    for (int i = 0; i < in->n; i++) {
        tpc_info info;
        tpc_tensor *t = &in->at[i];
        if (tpc_input(s, i, &info) != TPC_OK)
            exit(99);
        *t = (tpc_tensor){.name = info.name, .type = info.type, .rank = info.rank, .data = in->number[i]};
        for (int k = 0; k < info.rank; k++)
            t->dim[k] = info.dim[k] >= 0 ? info.dim[k] : k == 0 ? BATCH : info.state ? 0 : LENGTH;
        for (int k = 0; k < BATCH * LENGTH; k++)
            in->number[i][k] = strstr(info.name, "mask") ? 1 : strstr(info.name, "position") ? k % LENGTH : token + k;
    }
}

static float logits[ROOM];

static int run(tpc_session *s, int64_t token, tpc_tensor *out)
{
    static struct inputs in;
    fill(s, &in, token);
    *out = (tpc_tensor){.name = "logits"};
    return tpc_run(s, in.at, in.n, out, 1);
}

static size_t floats(const tpc_tensor *t)
{
    size_t n = 1;
    for (int k = 0; k < t->rank; k++)
        n *= (size_t)t->dim[k];
    return n;
}

static int near(const tpc_tensor *t, float by)
{
    const float *x = t->data;
    for (size_t i = 0; i < floats(t); i++)
        if (x[i] - logits[i] > by || logits[i] - x[i] > by)
            return 0;
    return floats(t) > 0;
}

static int64_t heard[4][8];
static int hear(void *data, int row, int64_t token)
{
    int *n = data;
    heard[row][n[row]++] = token;
    return 0;
}

static void whole_model(const char *model)
{
    tpc_tensor out;
    tpc_session *s = tpc_open(model, NULL);
    ok(s != NULL, "a model opens");
    if (!s)
        exit(1);
    ok(run(s, 1, &out) == TPC_OK && out.type == TPC_F32 && out.rank == 3 && out.dim[0] == BATCH && out.dim[1] == LENGTH, "it runs");
    if (floats(&out) <= ROOM)
        memcpy(logits, out.data, floats(&out) * sizeof(float));
    tpc_close(s);
}

static void wrong_calls(tpc_session *s)
{
    static struct inputs in;
    tpc_tensor out = {.name = "logit"};
    fill(s, &in, 1);
    ok(tpc_run(s, in.at, in.n, &out, 1) == TPC_INVALID && says("did you mean 'logits'"), "an output that is none");
    out.name = "logits";
    ok(tpc_run(s, in.at, in.n - 1, &out, 1) == TPC_INVALID && says("is not given"), "an input that is missing");
    in.at[0].type = TPC_F64;
    ok(tpc_run(s, in.at, in.n, &out, 1) == TPC_INVALID && says("has type 11"), "a type that does not fit");
    in.at[0].type = TPC_I64;
    in.at[0].dim[0] = BATCH - 1;
    ok(tpc_run(s, in.at, in.n, &out, 1) == TPC_INVALID && says("batch_size = 1"), "sizes that do not fit");
    ok(run(s, 1, &out) == TPC_OK && near(&out, 1e-4f), "after wrong calls it runs as before");
}

static void decode(tpc_session *s)
{
    int n[2] = {0, 0};
    static const int64_t first[] = {5, 6, 7}, second[] = {9};
    const tpc_prompt prompt[2] = {{first, 3}, {second, 1}};
    int64_t made[2][4], again[2][4], sampled[2][4], end;
    tpc_decoding how = {.tokens = 4, .end = first, .made = hear, .data = n};
    ok(tpc_generate(s, prompt, 2, &how, made[0]) == TPC_OK && n[0] == 4 && n[1] == 4 && memcmp(heard[0], made[0], sizeof made[0]) == 0 &&
           memcmp(heard[1], made[1], sizeof made[1]) == 0,
       "two prompts of different length are decoded");
    how = (tpc_decoding){.tokens = 4, .end = &end, .ends = 1};
    end = made[0][1];
    ok(tpc_generate(s, prompt, 2, &how, again[0]) == TPC_OK && again[0][1] == end && again[0][2] == -1 && again[0][3] == -1,
       "an end token");
    how = (tpc_decoding){.tokens = 4, .end = first, .temperature = 2, .seed = 3};
    ok(tpc_generate(s, prompt, 2, &how, sampled[0]) == TPC_OK && tpc_generate(s, prompt, 2, &how, again[0]) == TPC_OK &&
           memcmp(sampled, again, sizeof again) == 0 && memcmp(sampled, made, sizeof made) != 0,
       "sampling with a seed");
    how.top_p = 7;
    ok(tpc_generate(s, prompt, 2, &how, again[0]) == TPC_INVALID && says("top"), "a setting that is none");
    how = (tpc_decoding){.tokens = 4};
    const int64_t high = 1 << 20;
    ok(tpc_generate(s, (tpc_prompt[]){{&high, 1}}, 1, &how, again[0]) == TPC_INVALID && says("token 1048576"), "a token that is none");
}

/* So many tokens, drawn from all, that rounded caches change some. */
enum { TEXTS = 32, TOKENS = 40 };
static int decode_many(const char *dir, tpc_options options, int64_t made[TEXTS][TOKENS])
{
    static const int64_t token[] = {5, 6, 7}, none = -1;
    const tpc_decoding how = {.tokens = TOKENS, .end = &none, .temperature = 3, .seed = 5};
    tpc_prompt prompt[TEXTS];
    tpc_tensor out;
    for (int i = 0; i < TEXTS; i++)
        prompt[i] = (tpc_prompt){token, 3};
    tpc_session *s = tpc_open(dir, &options);
    int good = s && tpc_generate(s, prompt, TEXTS, &how, made[0]) == TPC_OK;
    good = good && run(s, 1, &out) == TPC_OK && near(&out, options.fast ? 0x1p-4f : 1e-4f); /* its caches have the model's types */
    tpc_close(s);
    return good;
}

static void caches(const char *dir)
{
    static int64_t made[3][TEXTS][TOKENS];
    ok(decode_many(dir, (tpc_options){0}, made[0]) && decode_many(dir, (tpc_options){.cache = TPC_F16, .fast = 1}, made[1]) &&
           decode_many(dir, (tpc_options){.cache = TPC_I8}, made[2]),
       "caches in fewer bytes");
    ok(memcmp(made[0], made[2], sizeof made[0]) != 0, "those of 8 bits are rounded");
    ok(!tpc_open(dir, &(tpc_options){.cache = TPC_F32}) && says("cache is 1, expected TPC_F16 or TPC_I8"), "a cache of no such type");
    ok(!tpc_open(dir, &(tpc_options){.wire = TPC_F16}) && says("wire is 10"), "messages of no such type");
    ok(!tpc_open(dir, &(tpc_options){.fast = 1, .deterministic = 1}) && says("fast rounds more"), "options that exclude each other");
}

static void give_tokenizer(const char *dir)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tokenizer.json", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        exit(99);
    fputs("{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", \"continuing_subword_prefix\": \"##\", "
          "\"max_input_chars_per_word\": 100, \"vocab\": {\"?\": 0, \"two\": 1, \"rank\": 2, \"##s\": 3}}, "
          "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"decoder\": {\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false}}",
          f);
    fclose(f);
}

struct telling {
    tpc_session *session;
    char text[64];
};

static int tell(void *telling, int row, int64_t token)
{
    struct telling *t = telling;
    const char *text;
    int64_t bytes;
    if (row == 0 && tpc_decode(t->session, &token, 1, 0, &text, &bytes) == TPC_OK)
        snprintf(t->text, sizeof t->text, "%lld bytes", (long long)bytes);
    return 1;
}

/* A build without tokenizers says so. */
static void text(tpc_session *s, const char *dir)
{
    const int64_t *ids, prompt[] = {1, 2, 3};
    const char *words;
    int64_t n, bytes, made[1];
    int status = tpc_encode(s, "two ranks", 9, 1, &ids, &n);
    ok(status == TPC_FAILED && (says("there is no tokenizer.json next to it") || says("built without text")), "no tokenizer");
    if (says("built without text"))
        return;
    give_tokenizer(dir);
    ok(tpc_encode(s, "two ranks\n", 9, 1, &ids, &n) == TPC_OK && n == 3 && memcmp(ids, prompt, sizeof prompt) == 0, "a text becomes ids");
    ok(tpc_decode(s, prompt, 3, 0, &words, &bytes) == TPC_OK && bytes == 9 && strcmp(words, "two ranks") == 0, "ids become a text");
    ok(tpc_encode(s, "\xff", 1, 1, &ids, &n) == TPC_INVALID && says("no UTF-8"), "bytes that are no text");
    ok(tpc_encode(s, "", 0, 1, &ids, &n) == TPC_OK && n == 0 && tpc_decode(s, NULL, 0, 0, &words, &bytes) == TPC_OK && bytes == 0,
       "no text, no ids");
    struct telling t = {.session = s};
    const tpc_decoding how = {.tokens = 1, .made = tell, .data = &t};
    ok(tpc_generate(s, &(tpc_prompt){prompt, 3}, 1, &how, made) == TPC_OK && strstr(t.text, " bytes"), "text while tokens are made");
}

static void folder(const char *dir)
{
    tpc_tensor out;
    tpc_session *s = tpc_open(dir, NULL), *beside = tpc_open(dir, &(tpc_options){.threads = 1, .deterministic = 1});
    ok(s && beside && tpc_ranks(s) == 2, "a folder of two ranks opens, twice");
    if (!s || !beside)
        exit(1);
    ok(run(s, 1, &out) == TPC_OK && near(&out, 1e-4f), "its ranks give the model's outputs");
    ok(run(beside, 1, &out) == TPC_OK && near(&out, 1e-4f), "so do those of another session");
    wrong_calls(s);
    ok(run(s, 1000000, &out) == TPC_FAILED && says("Gather"), "a run that fails in a kernel");
    ok(run(s, 1, &out) == TPC_OK && near(&out, 1e-4f), "the session goes on");
    decode(s);
    text(s, dir);
    ok(run(s, 1, &out) == TPC_OK && near(&out, 1e-4f), "after decoding, it runs");
    tpc_close(beside);
    tpc_close(s);
}

/* The graph puts a row of "a", "" and "last" before x and transposes. */
static void strings(const char *graph)
{
    const char *x[] = {"one", "", "drei ß", "1", "22", "333"}, *want[] = {"a", "one", "1", "", "", "22", "last", "drei ß", "333"};
    tpc_tensor in = {.name = "x", .type = TPC_STRING, .rank = 2, .dim = {2, 3}, .data = x}, out = {.name = "y"};
    tpc_session *s = tpc_open(graph, NULL);
    int same = s && tpc_run(s, &in, 1, &out, 1) == TPC_OK && out.type == TPC_STRING && out.dim[0] == 3 && out.dim[1] == 3;
    for (int i = 0; same && i < 9; i++)
        same = strcmp(((const char *const *)out.data)[i], want[i]) == 0;
    ok(same, "strings");
    x[4] = "\xff";
    ok(s && tpc_run(s, &in, 1, &out, 1) == TPC_INVALID && says("string 4 is not UTF-8"), "a string that is none");
    x[4] = NULL;
    ok(s && tpc_run(s, &in, 1, &out, 1) == TPC_INVALID && says("string 4 is NULL"), "a string that is missing");
    tpc_close(s);
}

static void refusals(const char *model, const char *dir)
{
    ok(tpc_shard(model, 2, dir, NULL) == TPC_FAILED && says("exists already"), "a folder that exists");
    ok(tpc_shard(model, 2, dir, (const char *[]){"--force", "--sp", NULL}) == TPC_OK, "is replaced when told to");
    ok(tpc_shard("nowhere.onnx", 2, "nowhere.tp2", NULL) == TPC_FAILED && says("nowhere.onnx"), "no such model");
    ok(tpc_shard(model, 0, "nowhere.tp2", NULL) == TPC_INVALID, "no ranks");
    ok(tpc_shard(model, 2, "nowhere.tp2", (const char *[]){"--help", NULL}) == TPC_INVALID, "an option of the program");
    ok(tpc_open("nowhere", NULL) == NULL && says("nowhere"), "no such folder");
}

static int as_rank(const char *dir)
{
    tpc_tensor out;
    tpc_session *s = tpc_open(dir, &(tpc_options){.mpi = 1, .wire = TPC_BF16});
    if (!s || run(s, 1, &out) != TPC_OK) {
        printf("not ok - %s\n", tpc_error());
        return 1;
    }
    int wrong = tpc_run(s, NULL, 0, &out, 1) != TPC_INVALID || run(s, 1, &out) != TPC_OK; /* rank 0's inputs count */
    int failed = run(s, 1000000, &out);
    printf("%sok - rank %d of %d: %s\n", wrong || failed != TPC_FAILED ? "not " : "", tpc_rank(s), tpc_ranks(s), tpc_error());
    wrong = wrong || run(s, 1, &out) != TPC_FAILED || !says("close the session");
    tpc_close(s);
    return wrong || failed != TPC_FAILED;
}

/* A helper lets a stopped process go on, again and again. A first stop may be a short one. */
static int with_stopped(const char *dir)
{
    tpc_tensor out;
    FILE *helper = popen("exec >/dev/null 2>&1; while sleep 6 && kill -CONT $PPID; do :; done", "w");
    tpc_session *s = helper ? tpc_open(dir, &(tpc_options){.mpi = 1, .timeout = 2}) : NULL;
    if (!s || run(s, 1, &out) != TPC_OK) {
        printf("not ok - %s\n", tpc_error());
        return 1;
    }
    for (int i = 0; i < 2 && tpc_rank(s) == 1; i++)
        raise(SIGSTOP);
    int failed = run(s, 1, &out) == TPC_FAILED && says("rank 1") && says("does not run") && says("the timeout is 2 s");
    printf("%sok - rank %d of %d: %s\n", failed ? "" : "not ", tpc_rank(s), tpc_ranks(s), tpc_error());
    tpc_close(s);
    return !failed;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "stop") == 0)
        return with_stopped(argv[2]);
    if (argc == 3 && strcmp(argv[1], "mpi") == 0)
        return as_rank(argv[2]);
    if (argc != 4)
        return 99;
    whole_model(argv[1]);
    ok(tpc_shard(argv[1], 2, argv[2], (const char *[]){"--solver", "exact", NULL}) == TPC_OK, "a model becomes a folder");
    folder(argv[2]);
    caches(argv[2]);
    strings(argv[3]);
    refusals(argv[1], argv[2]);
    printf("1..%d\n", count);
    return 0;
}
