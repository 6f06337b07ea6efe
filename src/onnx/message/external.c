/* External data, and payloads that marks stand for (strip_weights.c): where a tensor's bytes lie, checked but not read.
 *
 * The location is relative, has no ".." component, and the file it names is a regular one that lies beside the model (base/sandbox.c);
 * or it is any regular file in a folder that the user allowed. The real path is kept, so that what was checked is what is mapped. */
#include "onnx/private.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct external_file {
    const char *path;
    bool found;
    int64_t bytes;
};
struct entry {
    const char *mark, *location, *offset, *length;
};

static struct entry read_entry(const Onnx__TensorProto *t)
{
    struct entry e = {.mark = NULL};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = text_or(t->external_data[i]->key, ""), *value = text_or(t->external_data[i]->value, "");
        if (!strcmp(key, MARK_KEY))
            e.mark = value;
        if (!strcmp(key, "location"))
            e.location = value;
        if (!strcmp(key, "offset"))
            e.offset = value;
        if (!strcmp(key, "length"))
            e.length = value;
    }
    return e;
}

static int64_t read_number(const struct import *im, const char *what, const char *key, const char *text)
{
    int64_t n;
    if (!parse_i64(text, 0, INT64_MAX, &n))
        fail("%s: %s has external data with %s '%s', expected a number of bytes", im->path, what, key, text);
    return n;
}

static bool climbs(const char *location)
{
    for (const char *at = location; *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return true;
    }
    return false;
}

#define ALLOW "--external-root DIR allows files of another folder"

static void check_location(const struct import *im, const char *what, const char *location)
{
    if (*location == '/' || *location == '#' || *location == '*')
        fail("%s: %s has external data at '%s', expected a path relative to the model; " ALLOW, im->path, what, location);
    if (climbs(location))
        fail("%s: %s has external data at '%s', which leaves the model's folder; " ALLOW, im->path, what, location);
}

static void check_place(struct import *im, const char *what, const char *location, const char *path)
{
    if (path_is_beside(im->tmp, path, im->path))
        return;
    fail("%s: %s has external data at '%s', which is %s, outside the model's folder; " ALLOW, im->path, what, location, path);
}

static void check_regular(struct import *im, const char *what, struct external_file *file)
{
    struct stat status;
    if (stat(file->path, &status))
        fail("%s: %s has external data in %s: %s", im->path, what, file->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail("%s: %s has external data in %s, which is no regular file", im->path, what, file->path);
    file->bytes = status.st_size;
}

static const struct external_file *locate(struct import *im, const char *what, const char *location)
{
    const struct external_file *known = keyed_find(im->files, location);
    if (known)
        return known;
    struct external_file *file = NEW(im->tmp, struct external_file);
    const char *joined = path_join(im->arena, path_dir(im->tmp, im->path), location);
    file->path = path_real(im->arena, joined);
    file->found = file->path != NULL;
    int why = errno;
    bool allowed = file->found && path_is_allowed(im->tmp, file->path, im->options->external_roots);
    if (!allowed)
        check_location(im, what, location);
    if (file->found) {
        if (!allowed)
            check_place(im, what, location, file->path);
        check_regular(im, what, file);
    } else {
        if (why != ENOENT)
            fail("%s: %s has external data in %s: %s", im->path, what, joined, strerror(why));
        file->path = joined;
    }
    keyed_add(im->tmp, &im->files, arena_strdup(im->tmp, location), file);
    return file;
}

static void check_range(const struct import *im, const char *what, const struct external_file *file, int64_t offset, int64_t bytes)
{
    if (offset <= file->bytes && bytes <= file->bytes - offset)
        return;
    fail("%s: %s has external data of %lld bytes at %lld in %s, which has %lld bytes", im->path, what, (long long)bytes, (long long)offset,
         file->path, (long long)file->bytes);
}

static int64_t offset_of(const struct import *im, const char *what, const struct entry *e)
{
    return e->offset ? read_number(im, what, "offset", e->offset) : 0;
}

static void check_length(const struct import *im, const char *what, const char *kind, int64_t length, int64_t bytes)
{
    if (length != bytes)
        fail("%s: %s has %lld bytes of %s data, its type and dimensions need %lld", im->path, what, (long long)length, kind,
             (long long)bytes);
}

static struct source payload(const struct import *im, const char *what, const struct entry *e)
{
    int64_t length = read_number(im, what, "length", text_or(e->length, ""));
    return (struct source){.path = im->path, .offset = offset_of(im, what, e), .length = length};
}

struct source external_payload(const struct import *im, const Onnx__TensorProto *t, const char *what, int64_t *at)
{
    struct entry e = read_entry(t);
    *at = read_number(im, what, MARK_KEY, text_or(e.mark, ""));
    return payload(im, what, &e);
}

static struct source from_folder(struct import *im, const char *what, const struct entry *e, int64_t bytes)
{
    struct source found = {.length = bytes};
    int64_t offset = offset_of(im, what, e);
    if (!im->options->find(im->options->find_data, e->mark ? "" : text_or(e->location, ""), offset, bytes, &found))
        fail("%s: %s has %lld bytes at %lld of %s, which no rank file holds", im->path, what, (long long)bytes, (long long)offset,
             e->mark ? "the source" : e->location);
    return found;
}

struct source external_source(struct import *im, const Onnx__TensorProto *t, const char *what, int64_t bytes)
{
    struct entry e = read_entry(t);
    if (im->options->find)
        return from_folder(im, what, &e, bytes);
    if (e.mark && !im->light) {
        struct source own = payload(im, what, &e);
        check_length(im, what, "raw", own.length, bytes);
        return own;
    }
    if (e.mark && im->options->need_data)
        fail("%s: %s is in the rank files beside it: name the folder, not its model.onnx", im->path, what);
    if (!e.location || !*e.location)
        fail("%s: %s has external data without a location", im->path, what);
    const struct external_file *file = locate(im, what, e.location);
    int64_t offset = offset_of(im, what, &e);
    check_length(im, what, "external",
                 e.length          ? read_number(im, what, "length", e.length)
                     : file->found ? file->bytes - offset
                                   : bytes,
                 bytes);
    if (file->found)
        check_range(im, what, file, offset, bytes);
    else if (im->options->need_data)
        fail("%s: %s has external data in %s, which does not exist", im->path, what, file->path);
    return (struct source){.path = file->path, .offset = offset, .length = bytes};
}

bool external_span(struct import *im, const Onnx__TensorProto *t, const char *what, struct span *out)
{
    struct entry e = read_entry(t);
    if (e.mark) {
        *out = (struct span){.file = "", .source = payload(im, what, &e)};
        return true;
    }
    if (!e.location)
        return false;
    const struct external_file *file = locate(im, what, e.location);
    int64_t offset = offset_of(im, what, &e), length = e.length ? read_number(im, what, "length", e.length) : file->bytes - offset;
    if (!file->found)
        return false;
    check_range(im, what, file, offset, length);
    *out = (struct span){.file = arena_strdup(im->arena, e.location), .source = {.path = file->path, .offset = offset, .length = length}};
    return true;
}
