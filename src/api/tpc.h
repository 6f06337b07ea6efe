/* tpc.h: tensor parallelism for ONNX models, as a library.
 *
 *     tpc_shard("model.onnx", 2, "model.tp2", NULL);
 *     tpc_session *s = tpc_open("model.tp2", NULL);
 *     tpc_tensor in = {.name = "x", .type = TPC_F32, .rank = 2, .dim = {1, 64}, .data = x}, out = {.name = "y"};
 *     if (tpc_run(s, &in, 1, &out, 1) != TPC_OK)
 *         fprintf(stderr, "%s\n", tpc_error());
 *     tpc_close(s);
 *
 * Every function returns. A function that fails gives the reason in one sentence (tpc_error), prints nothing, and releases what it took.
 * Any thread may use a session, one at a time. Names and functions of this header stay; structures grow only into their reserved fields, so
 * set those to 0, as an initialiser does. */
#ifndef TPC_H
#define TPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TPC_API __attribute__((visibility("default")))

enum tpc_status {
    TPC_OK = 0,
    TPC_INVALID = 1, /* a wrong argument: nothing was done, nothing has changed */
    TPC_FAILED = 2   /* the work failed */
};

/* "0.2.0" */
TPC_API const char *tpc_version(void);
/* Why this thread's last failed call failed: one sentence, valid until its next failed call. */
TPC_API const char *tpc_error(void);

/* ---- a model becomes a folder of rank files ------------------------------------------------------------------------------------ */
/* As "tpc-shard MODEL --tp RANKS -o OUT -q OPTIONS...": model is a file or a folder, options are further words of that command line, as
 * {"--sp", "--memory", "2GiB", NULL}; NULL: none. An existing folder is an error without "--force". */
TPC_API int tpc_shard(const char *model, int ranks, const char *out, const char *const *options);

/* As --plugin: operators of a shared library (tpc_plugin.h), for all models compiled or opened later. Loading the same file again does
 * nothing. It stays loaded until the process ends. */
TPC_API int tpc_load_plugin(const char *path);

/* ---- sessions ------------------------------------------------------------------------------------------------------------------- */
typedef struct tpc_session tpc_session;

/* All 0: the defaults. */
typedef struct tpc_options {
    int threads; /* of each rank; 0: its share of the cores */
    /* 0: the ranks of a folder are threads of this process. 1: this process is one rank of a job that mpirun started; all ranks make the
     * same calls in the same order. Inputs are those of rank 0; all ranks get the outputs. The library starts MPI if the program has not. A
     * failure on any rank is a failure on all; after it the session can only be closed. */
    int mpi;
    /* tpc_run keeps state, such as KV caches: you may omit an input that is state. It then has the value from the last run; before the
     * first run it is empty. */
    int keep_state;
    int deterministic; /* the same bits as one rank, on any number of ranks */
    int cache;         /* TPC_F16 or TPC_I8: tpc_generate keeps KV caches of f32 in a half or a quarter of the bytes; 0: unchanged */
    int fast;          /* products round their operands: to bf16 on processors that multiply bf16, to 8 bits with quantised weights */
    int wire;    /* TPC_BF16 or TPC_I8: with mpi, addends of f32 sums go between machines in 2 bytes, or in 1; TPC_F32: unchanged; 0: the
                  * folder's setting (tpc-shard --wire) */
    int timeout; /* with mpi: seconds that a rank may be stopped while others wait; then the call fails. 0: forever */
    int reserved[8];
} tpc_options;

/* Loads a folder of tpc_shard, or a model for one rank. NULL: failure. options NULL: the defaults. */
TPC_API tpc_session *tpc_open(const char *path, const tpc_options *options);
/* NULL: does nothing. */
TPC_API void tpc_close(tpc_session *);
TPC_API int tpc_ranks(const tpc_session *);
TPC_API int tpc_rank(const tpc_session *); /* of this process, with mpi; else 0 */

/* Types of elements, with ONNX's numbers (TensorProto.DataType). */
enum tpc_type {
    TPC_F32 = 1,
    TPC_U8 = 2,
    TPC_I8 = 3,
    TPC_U16 = 4,
    TPC_I16 = 5,
    TPC_I32 = 6,
    TPC_I64 = 7,
    TPC_STRING = 8, /* the data are texts: const char *, UTF-8 with a final zero. All texts stay in memory until tpc_close */
    TPC_BOOL = 9,
    TPC_F16 = 10,
    TPC_F64 = 11,
    TPC_U32 = 12,
    TPC_U64 = 13,
    TPC_BF16 = 16
};
/* Bytes of an element, for a string of its pointer; 0: no such type. */
TPC_API size_t tpc_type_size(int type);

#define TPC_MAX_RANK 8 /* dimensions of a tensor */

/* An input or output of the unsharded model. */
typedef struct tpc_info {
    const char *name; /* valid until tpc_close, like all texts here */
    int type;
    int rank;
    int64_t dim[TPC_MAX_RANK];        /* -1: any size */
    const char *symbol[TPC_MAX_RANK]; /* of such a size, as "batch_size"; else NULL */
    int state;                        /* 1: an input that tpc_run may keep, or the output that becomes it */
    int reserved[7];
} tpc_info;
TPC_API int tpc_input_count(const tpc_session *);
TPC_API int tpc_output_count(const tpc_session *);
TPC_API int tpc_input(const tpc_session *, int index, tpc_info *);
TPC_API int tpc_output(const tpc_session *, int index, tpc_info *);

/* An unsharded tensor: row-major, without gaps. */
typedef struct tpc_tensor {
    const char *name;
    int type;
    int rank;
    int64_t dim[TPC_MAX_RANK];
    const void *data;
    int reserved[4];
} tpc_tensor;

/* Runs the model once on `in`, in any order. For each `out` the caller sets the name; tpc_run sets the rest, whose data stay valid until
 * the next call with this session. After TPC_FAILED the session is as tpc_open made it: its state is empty. */
TPC_API int tpc_run(tpc_session *, const tpc_tensor *in, int inputs, tpc_tensor *out, int outputs);

/* ---- decoding ------------------------------------------------------------------------------------------------------------------- */
typedef struct tpc_decoding {
    int64_t tokens;            /* at most this many tokens are made per row */
    double temperature;        /* 0: the best token is taken */
    double top_p, min_p;       /* 0: all tokens count */
    double repetition_penalty; /* 0: none */
    int64_t top_k;             /* 0: all */
    uint64_t seed;             /* the same tokens on any number of ranks */
    const int64_t *end;        /* tokens that end a row; NULL: those of generation_config.json next to the model */
    int ends;
    /* Called for each token as it is made, on another thread of this process (with mpi: on this one, of rank 0); not 0: decoding ends. It
     * may not call the session. NULL: none. */
    int (*made)(void *data, int row, int64_t token);
    void *data;
    int reserved[8];
} tpc_decoding;

typedef struct tpc_prompt {
    const int64_t *token;
    int64_t tokens;
} tpc_prompt;

/* Decodes after each prompt, a row each. made: [rows][how->tokens], -1 after the last token of a row. */
TPC_API int tpc_generate(tpc_session *, const tpc_prompt *prompt, int rows, const tpc_decoding *how, int64_t *made);

/* ---- text ----------------------------------------------------------------------------------------------------------------------- */
/* With the tokenizer.json next to the model. A result stays valid until the next call of the same function with this session. They may be
 * called while the session decodes, for example by tpc_decoding.made; with mpi, by any rank alone. */
/* The ids of a UTF-8 text of this many bytes. special 1: with the tokens that the tokenizer puts around a text, as at its start. */
TPC_API int tpc_encode(tpc_session *, const char *text, int64_t bytes, int special, const int64_t **ids, int64_t *count);
/* The text of ids, with a final zero. special 1: special tokens, such as the end-of-text token, are written, too. */
TPC_API int tpc_decode(tpc_session *, const int64_t *ids, int64_t count, int special, const char **text, int64_t *bytes);

#ifdef __cplusplus
}
#endif
#endif
