/* base: memory by lifetime, user errors, checked arithmetic, texts, files, and the process itself. Nothing here knows about models. */
#ifndef TPC_BASE_H
#define TPC_BASE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

/* ---- arena.c: memory that dies together; blocks are zeroed, and aligned to 64 bytes if as large, else to 16 ------- */
struct arena;
struct arena *arena_new(void);
/* A child arena: can be freed separately, and is freed with its parent at the latest. */
struct arena *arena_new_within(struct arena *parent);
void arena_free(struct arena *);
/* Empties it. Its shared block stays, so that repeated work takes no memory from the system. */
void arena_reset(struct arena *);
/* Never returns NULL: out of memory ends the program with status 1. */
void *arena_alloc(struct arena *, size_t bytes);
/* Memory for count items of size bytes; an overflow of the product is a failure, not a short block. */
void *arena_array(struct arena *, size_t count, size_t size);
char *arena_strdup(struct arena *, const char *);
char *arena_strndup(struct arena *, const char *, size_t);
char *arena_printf(struct arena *, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define NEWN(arena, type, count) ((type *)arena_array((arena), (size_t)(count), sizeof(type)))

/* A growable array: struct { T *at; int n, cap; }. VEC_PUSH grows it in the arena (the old block is abandoned). */
#define VEC(type)   \
    struct {        \
        type *at;   \
        int n, cap; \
    }
#define VEC_PUSH(arena, v, item)                                                                                      \
    ((v)->n == (v)->cap ? (void)((v)->at = vec_grow((arena), (v)->at, &(v)->cap, (v)->n, sizeof *(v)->at)) : (void)0, \
     (void)((v)->at[(v)->n++] = (item)))
/* The items of a list, which must not grow meanwhile: EACH (const struct state, s, g->states) { ... } */
#define EACH(type, item, v) for (type *item = (v).at, *item##_end = item + (v).n; item < item##_end; item++)
void *vec_grow(struct arena *, void *old, int *cap, int n, size_t size);

/* ---- diag.c: messages. Two kinds of failure: fail() for errors the user can fix, bug() for errors in tpc. -- */
/* One sentence that names file, node and tensor, what was expected and what was found. Exit status 1. */
_Noreturn void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same, when only callers know the subject: "SUBJECT: ", then the sentence. */
_Noreturn void fail_here(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Sets what this thread works on, such as a node of a graph. Returns the previous subject, to be restored. */
struct diag_subject {
    const char *(*say)(const void *whole, const void *part); /* NULL: nothing */
    const void *whole, *part;
};
struct diag_subject diag_work_on(struct diag_subject);
/* As fail, if other ranks are involved: no diag_try continues after it. */
_Noreturn void fail_job(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Wrong usage. Exit status 2. */
_Noreturn void fail_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A broken invariant: prints file and line, aborts. */
_Noreturn void bug_at(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
#define bug(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define require(condition) ((condition) ? (void)0 : bug("broken invariant: %s", #condition))
/* A note to the user when nothing failed. Not printed when quiet. */
void diag_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));
void diag_announce(const char *format, ...) __attribute__((format(printf, 1, 2))); /* also if quiet */
_Noreturn void diag_leave(int status);                                             /* as a failure that was announced */
/* Printed under -v only. */
void explain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Set once in main: the program's name for messages, -1 quiet, 0 normal, 1 verbose. */
void diag_setup(const char *program, int verbosity);
bool diag_is_quiet(void);
bool diag_is_verbose(void);
/* uthash's action when memory runs out, in every file that includes it after this header. */
#define uthash_fatal(message) fail("out of memory: %s", message)
/* Where this process is, for messages ("rank 1 on node2"): one of several in a job. Kept, not copied; NULL: messages do not name it. */
void diag_place(const char *);
/* This thread's progress ("after 5 of 10 tokens"), likewise. */
void diag_progress(const char *);
/* The last line that was printed, without the program's name, cut. */
enum { DIAG_SAID = 256 };
void diag_said(char text[DIAG_SAID]);
/* Delays the printing of a failure. Processes before this one may fail for the same reason; they can then print it and end the job. */
void diag_give_way(int milliseconds);
/* Run before fail, fail_usage or bug ends the process (remove half-written files, MPI_Abort). Newest first. */
void diag_on_failure(void (*hook)(void *, int status), void *data);
void diag_before_message(void (*hook)(void *, int status), void *data); /* the same, for whatever ends a line of stdout */
void diag_forget(void (*hook)(void *, int status), void *data);
/* Does work(data). If it fails on this thread, the program continues: returns the sentence, in the arena; NULL: it did not fail. For work
 * that takes only arena memory. */
const char *diag_try(struct arena *, void (*work)(void *), void *data);
/* The same for a share of the work of another thread, which will fail in its place: 0, or the status. */
int diag_try_share(char *sentence, size_t room, void (*work)(void *), void *data);
/* A lock that a failure unlocks if the program continues; the last one is unlocked first. */
void diag_lock(pthread_mutex_t *);
void diag_unlock(pthread_mutex_t *);
/* Between these calls no other thread's failure begins (a request to end counts as one): hooks find this work either done or not begun. */
void diag_hold(void);
void diag_release(void);

/* ---- scope.c: work in a program that continues when it fails, as in a library ------------------------------------------------ */
/* Freeing a scope releases its threads' arenas, mapped files and scope_keep items. */
struct scope;
struct scope *scope_new(void); /* NULL: out of memory. Its messages are quiet until diag_setup. */
void scope_free(struct scope *);
/* Does work(data) with this thread in the scope. False: it failed, or another thread of the scope did, before or now. */
bool scope_do(struct scope *, void (*work)(void *), void *data);
bool scope_failed(const struct scope *);
/* The first failure's sentence, and its status: 1 (fail), 2 (fail_usage) or DIAG_BUG. */
const char *scope_sentence(const struct scope *);
int scope_status(const struct scope *);
/* Fails if another thread of this thread's scope did. Call it now and then while a thread waits for another. */
void scope_look(void);
/* What scope_look calls in this thread's scope: fails if a process that the work waits for fails. */
void scope_listen(void (*listener)(void *), void *data);
struct scope *scope_current(void); /* NULL: the program has no scope here */
/* Moves this thread to another scope, or to none, for data that live as long as the process. Returns the scope that it was in. */
struct scope *scope_swap(struct scope *);
/* drop(data) runs at the end of this thread's scope unless it is forgotten before. NULL: no scope, nothing to do. */
struct scope_item;
struct scope_item *scope_keep(void (*drop)(void *), void *data);
void scope_forget(struct scope_item *); /* NULL: does nothing */
void **scope_strings(void);             /* where string.c keeps its table */
/* Control characters of a message become '?'. */
void diag_make_printable(char *);
/* For diag.c, which decides whether a failure leaves a scope. */
enum { DIAG_HOOKS = 32, DIAG_BUG = 134 };
struct diag_voice {
    const char *program;
    int verbosity;
};
struct diag_hook {
    void (*run)(void *, int status);
    void *data;
    bool before; /* the message */
};
struct diag_hooks {
    struct diag_hook at[DIAG_HOOKS];
    int n;
};
struct diag_voice *scope_voice(struct scope *);
struct diag_hooks *scope_hooks(struct scope *);
void scope_note(struct scope *, const char *sentence, int status); /* the first failure: runs hooks */
int diag_leave_on_failure(struct scope *, void (*work)(void *), void *data);

/* ---- number/checked_int.c: sizes from hostile files. All return false on overflow and leave *out alone. ------------- */
bool i64_add(int64_t a, int64_t b, int64_t *out);
bool i64_sub(int64_t a, int64_t b, int64_t *out);
bool i64_mul(int64_t a, int64_t b, int64_t *out);
/* Mathematical floor division and modulus; b != 0. */
int64_t i64_floor_div(int64_t a, int64_t b);
int64_t i64_floor_mod(int64_t a, int64_t b);
/* The greatest common divisor of numbers of any sign; gcd(0, n) is |n|. */
int64_t i64_gcd(int64_t a, int64_t b);
/* The whole text is a decimal integer of lo to hi. */
bool i64_parse(const char *text, int64_t lo, int64_t hi, int64_t *out);

/* ---- number/number.c: an integer in [lo, hi] on a command line, or fail_usage naming what ------------------------- */
int64_t number_read(const char *what, const char *text, int64_t lo, int64_t hi);
/* A list, "1,1,0.5", into at most `most` numbers; returns their count. Other texts and more numbers are wrong usage. each: what a number
 * belongs to. */
int number_list(const char *what, const char *text, const char *each, int most, double *to);

/* ---- number/splitmix.c: SplitMix64 (Steele, Lea, Flood 2014): the random number of a state; each draw adds the step to the state */
#define SPLITMIX_STEP 0x9e3779b97f4a7c15u
uint64_t splitmix(uint64_t state);

/* ---- text/captured.c: a stream's output as one text ---------------------------------------------------------- */
struct captured {
    FILE *to;
    char *text;
    size_t bytes;
};
void captured_begin(struct captured *);
/* Closes the stream; the text lives in the arena. */
char *captured_end(struct captured *, struct arena *);

/* ---- text/string.c: strings in tensors, by number ----------------------------------------------------------- */
/* A text is UTF-8 without NUL. Number 0 is the empty one. Equal texts have one number. */
int64_t string_number(const char *text, size_t bytes);
const char *string_text(int64_t number);
const char *string_fault(const char *text, size_t bytes); /* "holds a NUL" or "is not UTF-8"; NULL: it may be a string */
bool string_is_char(uint32_t);
uint32_t string_next_char(const char **at); /* the character at *at, which moves past it; 0 at the end */
int string_put_char(uint32_t, char *to);    /* returns its length in bytes: 4 at most */

/* ---- text/name_index.c: positions by name, found by hash. {0} is empty; the name is kept, not copied -------------- */
struct name_index {
    int n, slots;
    const char **name;
    int *at;
};
int name_index_find(const struct name_index *, const char *name); /* -1: none */
void name_index_clear(struct name_index *);
void name_index_put(struct arena *, struct name_index *, const char *name, int at);

/* ---- text/named.c: the position of a name among n names at a fixed stride; -1: none -------------------- */
int named_find(const char *name, int n, const void *first, size_t stride);
/* For rows that begin with their name, or for names: in a table; in a list. */
#define NAMED_ROW(table, name) named_find(name, (int)(sizeof table / sizeof *table), table, sizeof *table)
#define NAMED_AT(at, n, name) named_find(name, (int)(n), at, sizeof *(at))

/* ---- text/shell_word.c: a text as one word of a POSIX shell, in quotes where it needs them ------------------------- */
const char *shell_word(struct arena *, const char *text);

/* ---- text/glob.c: * matches any characters, ? one ----------------------------------------------------------------- */
bool glob_match(const char *glob, const char *text);
bool glob_match_any_case(const char *glob, const char *text);
/* The same for a path, or for a prefix that ends at a dot or slash: a module's path matches everything in the module. */
bool glob_match_path(const char *glob, const char *path);
int glob_stars(const char *glob);
/* pattern with its * replaced, in order, by the text that the *s of the glob (at least as many) match; NULL: it does not match. */
char *glob_rewrite(struct arena *, const char *glob, const char *text, const char *pattern);

/* ---- text/did_you_mean.c: the name most similar to a text or glob, the first of equals; -1 when n is 0 --- */
int did_you_mean(const char *text, int n, const char *const *names);
/* The same for names at a fixed stride; *edits is the number of characters to change, add or remove. */
int did_you_mean_at(const char *text, int n, const void *first, size_t stride, int *edits);

/* ---- lists of a command line -------------------------------------------------------------------------------------- */
struct text_list {
    VEC(const char *) text;
};
struct text_maybe {
    bool given;
    const char *text; /* NULL: given without a value */
};

/* ---- memory/slab.c: offsets in one block of memory, from lifetimes ------------------------------------------------ */
struct slab_item {
    int64_t bytes;
    int first, last; /* live during steps first to last, inclusive */
    int64_t offset;
};
/* Sets the offsets (64-byte aligned; items that live at the same time are disjoint) and returns the size of the slab in bytes. */
int64_t slab_assign(struct arena *, struct slab_item *, int n);

/* ---- memory/block_pool.c: blocks for values that live until a step, with sizes known one at a time --------------------------- */
struct pooled_block {
    size_t bytes;
    int last; /* the last step that needs its content */
    bool used;
};
struct block_pool {
    VEC(struct pooled_block) blocks;
};
/* Returns the number of a block for these bytes: new, or free and grown if too small. */
int block_pool_take(struct arena *, struct block_pool *, size_t bytes, int last);
/* Frees blocks that no later step needs. */
void block_pool_release(struct block_pool *, int step);
/* Bytes of all blocks. */
int64_t block_pool_bytes(const struct block_pool *);

/* ---- memory/huge.c ------------------------------------------------------------------------------------------------ */
enum { HUGE_PAGE = 1 << 21 };
/* Requests huge pages in a block that was not touched yet. */
void huge_pages(void *at, size_t bytes);
/* arena_alloc on huge pages, if it is as large. */
void *huge_alloc(struct arena *, size_t bytes);

/* ---- memory/control_group.c: numbers in system files, and control groups ----------------------------- */
/* The number after a key at the beginning of a line and `before` other numbers; key "": in the first line. -1: none. */
int64_t control_read(const char *path, const char *key, int before);
struct control_root {
    const char *folder, *list; /* where controllers are mounted, and the groups of a process */
};
extern const struct control_root control_system; /* of this process */
/* version: 1 or 2. folder: of a group. */
typedef void control_look(void *data, int version, const char *folder);
/* Looks at the group of the process that has this controller, and at its ancestors. */
void control_groups(const struct control_root *, const char *controller, control_look *, void *data);
/* Like control_read, from a file in this folder. */
int64_t control_number(const char *folder, const char *file, const char *key, int before);

/* ---- memory/available.c: how much more memory a program may take, and what limits it ("the machine") ------------- */
struct available {
    int64_t bytes; /* INT64_MAX: unknown, or no limit */
    const char *limit;
};
/* The memory available before the machine swaps, or a control group ends the program. */
struct available available_memory(void);
struct available available_in(const struct control_root *); /* by control groups alone */
/* The memory available under the process limits: the limit on address space, mapped files included (ulimit -v), and the limit on private
 * memory (ulimit -d). */
struct available available_addresses(void);
struct available available_data(void);

/* ---- process/cores.c: how many cores a program can keep busy ------------------------------------------------------- */
int cores_online(void);                          /* of the machine */
int cores_of_machine(void);                      /* those, or fewer: within a control group's quota */
int cores_of_process(void);                      /* the same for the cores that this process is bound to */
double cores_quota(const struct control_root *); /* INFINITY: no quota */

/* ---- process/stack.c: stacks of the usual size where ulimit -s is less ---------------------------------------------- */
/* Fails if that is impossible. Call in main, before other threads. */
void stack_start(void);

/* ---- process/streams.c: failed writes to stdout are failures; so is a write to a closed pipe or beyond a size limit */
void streams_start(void); /* call first in main */
void streams_flush(void);
void streams_end(void); /* call before the program ends without a failure */

/* ---- process/signal.c: signals that end a program ------------------------------------------------------------------ */
/* Call once in main, before other threads. A mapped file that is truncated while it is read is a failure that names it; with ending, a
 * request to end (SIGINT, SIGTERM, SIGHUP) is a failure too, so that hooks run. A library that crashes where a limit leaves little memory
 * is a failure that says so. */
void signal_watch(bool ending);
/* The purpose of foreign code that is running, as part of a sentence, in case it crashes; NULL: none is running. The text must stay
 * valid. */
void signal_while(const char *what);
/* From now on the first SIGINT or SIGTERM only asks to end, and the second ends the program. */
void signal_soften(void);
bool signal_asked(void);
/* From now on SIGINT only interrupts: signal_interrupted returns true once. A second one before that ends the program. Where a launcher
 * reports the end of its processes, it ends the program as before. */
void signal_catch_interrupts(void);
bool signal_interrupted(void);
/* Called, perhaps in a signal handler, before a signal ends the program: also under a launcher, and after a crash. From here on faults are
 * reported even if other libraries set handlers. say NULL: nothing. */
void signal_farewell(void (*say)(void *), void *data);

/* ---- process/clock.c: a monotonic clock, in seconds --------------------------------------------------------------- */
double clock_seconds(void);
/* This much later than now, for pthread_cond_timedwait. */
struct timespec clock_after(int milliseconds);

/* ---- process/progress.c: a line on a terminal while work takes over a second -------------------------------------- */
struct progress {
    const char *what;
    int64_t total, done, start, next;
    bool shows, shown;
};
void progress_start(struct progress *, const char *what, int64_t total_bytes);
void progress_add(struct progress *, int64_t bytes); /* NULL: does nothing */
void progress_end(const struct progress *);

/* ---- process/beside.c: jobs that run in parallel ------------------------------------------------------------ */
/* Jobs are numbers. take returns one that may run now, or none: then the thread ends. done is called after it. No two of these calls run
 * concurrently. */
enum { BESIDE_NONE = -1 };
struct beside {
    int (*take)(void *data);
    void (*run)(void *data, int job);
    void (*done)(void *data, int job); /* may be NULL */
};
/* Runs jobs on up to `threads` threads, including this one, all in its scope, until none is left. If one fails, no other begins, and this
 * thread fails after all have ended. */
void beside(int threads, const struct beside *, void *data);

/* ---- file/path.c: names of files and folders ---------------------------------------------------------------------- */
bool path_exists(const char *path);
bool path_is_folder(const char *path);
bool path_is_special(const char *path); /* a device or a pipe: no file may take its place */
char *path_join(struct arena *, const char *dir, const char *name);
char *path_dir(struct arena *, const char *path);
const char *path_trimmed(struct arena *, const char *path); /* without trailing slashes, except a first one */
const char *path_base(const char *path);                    /* the part after the last slash */
const char *path_last_two(const char *path);                /* "llama/model.onnx" */
bool path_ends(const char *path, const char *end);
/* The file of this name in a folder, or, for an export's folder "onnx", in its parent; NULL: none. */
const char *path_beside(struct arena *, const char *folder, const char *name);
bool path_same(const char *path, const char *other); /* both exist and are one file, perhaps by links */
/* Where a file of this name is written: the target of a link, which need not exist. */
const char *path_followed(struct arena *, const char *path);
/* Without links; NULL and errno when there is no such file. */
char *path_real(struct arena *, const char *path);

/* ---- file/sandbox.c: which files a model may name ----------------------------------------------------------------- */
struct folders {
    const char *const *at;
    int n;
};
/* The real path is in a folder that the user allowed. */
bool sandbox_allows(struct arena *tmp, const char *real, struct folders allowed);
/* The real path is in the folder of the model as named, or of the model's real path. */
bool sandbox_is_beside(struct arena *tmp, const char *real, const char *model);

/* ---- file/map.c: files as read-only memory ------------------------------------------------------------------------ */
struct map {
    const uint8_t *at;
    size_t bytes;
};
/* Whole file, read-only; missing or unreadable is a failure naming it. An empty file gives bytes == 0. */
struct map map_file(const char *path);
/* False and no message when the file can't be opened. */
bool map_try_file(const char *path, struct map *out);
void map_close(struct map);
/* Fails if any file that was ever mapped is another file now, or was written to since. Call where no other thread maps files. */
void map_check_unchanged(void);
bool map_reads(const char *path); /* whether this file was mapped, under any name */
/* These bytes of a file are a hole: zeros without disk blocks. False if unknown. */
bool file_is_hole(const char *path, int64_t offset, int64_t bytes);
/* Releases the pages of these bytes; the system reads them from the file again if needed. */
void map_release(struct map, size_t offset, size_t bytes);

/* ---- file/datafile.c ---------------------------------------------------------------------------------------------- */
/* An installed file: in $TPC_DATADIR, in share/tpc next to this program's folder, or in the configured data folder, whichever exists first;
 * NULL: none. */
char *datafile_path(struct arena *, const char *name);

/* ---- file/out.c: a file written front to back --------------------------------------------------------------------- */
struct out {
    const char *path;
    char *beside;
    FILE *file; /* may be printed to; the digest does not see that */
    struct scope_item *open;
    int64_t bytes;
    struct arena *arena; /* of digest and piece */
    struct digest *digest;
    struct write_behind *behind; /* NULL: the caller's thread writes */
    bool ends_in_hole;
    uint8_t *piece;
    size_t held, shown;                             /* bytes of piece that are not written yet; that `also` has seen, or shall not see */
    void (*also)(void *with, const void *, size_t); /* out_also */
    void *with;
};
/* A new file next to path, under an unused name; NULL and errno: failure. No existing file is opened. */
FILE *out_create_beside(struct arena *, const char *path, char **name);
/* A new file; an existing one is not opened. Like every function below: a failure that names the file. */
void out_open(struct out *, const char *path);
void out_open_created(struct out *, const char *path, FILE *); /* path: for messages */
/* The file appears under its name, or replaces an existing one, when it is complete: in out_close. A link's target is written; a device or
 * pipe is written in place. */
void out_open_whole(struct arena *, struct out *, const char *path);
/* The first argument is a struct out, so it fits callbacks that give bytes in pieces. */
void out_put(void *out, const void *from, size_t bytes);
void out_pad(struct out *, int64_t to);     /* zeros, up to `to` bytes in total */
void out_hole(struct out *, int64_t bytes); /* zeros without disk blocks */
void out_seek(struct out *, int64_t to);    /* the next bytes go there; the digest covers bytes in the order they are put */
/* This many bytes will be put from an offset on, roughly. Fails if the disk lacks space. */
void out_reserve(struct out *, int64_t offset, int64_t bytes);
bool out_reserve_in(FILE *, int64_t offset, int64_t bytes); /* false and errno: no space */
/* From here on bytes go to take, too, while they are in the cache; NULL: no more. */
void out_also(struct out *, void (*take)(void *data, const void *from, size_t bytes), void *data);
/* From here on another thread writes, if one is available. */
void out_behind(struct out *);
struct written {
    int64_t bytes;
    uint64_t digest;
}; /* XXH3, 64 bits */
struct written out_close(struct out *);
/* The digest of all bytes put. They are in the file then, though perhaps not on the disk. */
uint64_t out_digest(struct out *);
void out_sync(struct out *);                 /* flushes to disk */
_Noreturn void out_fail(const struct out *); /* a write failed: errno */
struct written out_write_text(const char *path, const char *text);
/* Fails if no file or folder of this name can be written. Call it before the content is computed. An existing file is replaced only if it
 * is empty, or readable with the text `kind` near its beginning, which marks the option's outputs; NULL: any file is. */
void out_check(const char *option, const char *path, const char *kind);
void out_check_folder(const char *option, const char *path);
/* out_claim.c, for these: wrong usage if another option named the same file or folder. Devices and pipes take several outputs. */
void out_claim(struct arena *, const char *option, const char *path);

/* ---- file/one_writer.c: at most one process at a time writes a file over a long time -------------------------------------------- */
struct one_writer {
    const char *path;           /* links followed */
    const char *what, *option;  /* for the message: what is written, and the option that names the file */
    bool (*is_begun)(int file); /* does this file begin like such a file? */
};
/* Locks a file of this process, next to the path, so that others find it. Without file-system locks it does nothing. A reader of the file
 * holds the lock for a moment. */
void one_writer_hold(FILE *);
/* Fails if another process holds one. The file: this process's own. */
void one_writer_check(const struct one_writer *, FILE *);

/* ---- file/write_behind.c: a thread that writes pieces of up to `most` bytes to a file ------------------------------ */
struct write_behind *write_behind_begin(struct arena *, FILE *, size_t most); /* NULL: no thread available */
/* The next piece, which must not change. Like settle and end, returns the errno of a failed write; 0: none. */
int write_behind_put(struct write_behind *, const uint8_t *from, size_t bytes);
uint8_t *write_behind_room(const struct write_behind *); /* a buffer for the next piece */
int write_behind_settle(struct write_behind *);          /* waits until all pieces are written */
int write_behind_end(struct write_behind *);

/* ---- file/digest.c: XXH3, 64 bits --------------------------------------------------------------------------------- */
uint64_t digest_bytes(const void *, size_t bytes);
/* The same for bytes in pieces. */
struct digest;
struct digest *digest_begin(struct arena *);
void digest_add(struct digest *, const void *from, size_t bytes);
void digest_zeros(struct digest *, int64_t bytes);
uint64_t digest_value(const struct digest *);
/* Of a file, which need not fit in memory. */
struct file_digest;
struct file_digest *digest_file(struct arena *, const char *path);
/* Reads them on threads during other work; the list lives in the arena, too. */
void digest_files_begin(struct arena *, int n, struct file_digest *const *);
/* Waits, or does the work itself if it has not begun. False: the file can't be read. */
bool digest_file_get(struct file_digest *, struct written *);

#endif
