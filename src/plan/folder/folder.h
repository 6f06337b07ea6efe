/* folder: an output folder, how it appears and what it holds of its source. */
#ifndef TPC_FOLDER_H
#define TPC_FOLDER_H

#include "plan/input/input.h"
#include "plan/plan.h"

/* manifest.c: what a folder holds of its source. Ranks come in descending order; rank 0 ends its data with what no rank keeps. */
enum { MANIFEST_VERSION = 1 };
#define MANIFEST_HEAD "{\"xxh3\":\"" /* then the digest of the text after it and the comma, without the last line end */
struct manifest;
struct manifest *manifest_new(struct arena *, struct spans);
/* The rank, in the stage that begins with rank `first`, stores its part of the constant, by this placement, at this offset of its data. */
void manifest_stored(struct manifest *, const struct value *, struct placement, int first, int rank, int64_t offset);
/* place: where bytes may begin after an end. */
void manifest_append_rest(struct manifest *, struct out *data, int64_t (*place)(int64_t end, int64_t bytes));
void manifest_wrote(struct manifest *, const char *file, struct written);
char *manifest_json(struct manifest *, const char *plan_digest);
int manifest_order(const struct span *, const struct span *); /* by file, offset, length */

/* manifest_read.c: an emitted folder as a source. A folder that is not as it was written is a failure. need_data: the weights are checked
 * too, while other work is done: folder_check_data waits, and fails if they are others. */
struct folder_file {
    const char *path, *expected;
    struct file_digest *digest;
};
struct folder {
    const char *dir;
    int ranks;
    const char *file, *digest; /* the source: base name of the model file, XXH3 of it in hex */
    int64_t bytes;
    struct spans spans; /* of the source's files, in order; scattered over data */
    struct source_files data;
    struct {
        struct folder_file *at;
        int n, cap;
    } checked;
};
struct folder *folder_read(struct arena *, const char *dir, bool need_data);
void folder_check_data(const struct folder *);
/* For load_options.find; the first argument is the folder. */
bool folder_find(void *folder, const char *file, int64_t offset, int64_t bytes, struct source *out);

/* folder.c: an output folder that appears complete or not at all. check: fails where out may not be written. begin: makes the folder to
 * write to. commit: it takes the name out. */
struct folder_part {
    const char *out, *path;
    int folder; /* open descriptor of path; -1: there is nothing to remove */
};
void folder_check(const char *out, bool force);
struct folder_part *folder_begin(struct arena *, const char *out);
void folder_commit(struct arena *, struct folder_part *);

/* texts.c: copies model_texts from the model's folder into dir, unless they are there; returns their paths. */
struct text_list folder_copy_texts(struct arena *, const char *model, const char *dir);

/* written.c, abandoned.c: what may be removed, and what killed writers left. Folders are descriptors. */
#define FOLDER_BESIDE ".part-"       /* then the number of the process that writes the folder */
#define FOLDER_MARK "tpc-shard.mark" /* while it is written: who writes it */
char *folder_mark_text(struct arena *, int64_t process);
struct folder_files {
    int n;               /* -1: the folder can't be read, and foreign is why */
    const char *foreign; /* one that tpc-shard does not write; NULL: none */
};
struct folder_files folder_list(struct arena *, int folder);
void folder_remove_written(int folder);
void folder_drop_abandoned(const char *out);
/* Fails if the path is a file of an output folder: only the whole folder is replaced. */
void folder_keep(const char *path);

#endif
