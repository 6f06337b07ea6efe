/* External data and placeholders: where a tensor's bytes are, checked but not read. A new layout of external data belongs here.
 *
 * A location is relative, has no ".." component, and names a regular file next to the model (base/file/sandbox.c); or it names any regular
 * file in a folder that the user allowed. The real path is kept, so that the file that was checked is the file that is mapped. */
#include "onnx/message/message.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct external_file {
    const char *path;
    bool found;
    int64_t bytes;
};
struct external_entry {
    const char *placeholder, *location, *offset, *length;
};

static struct external_entry read_external_entry(const Onnx__TensorProto *t)
{
    struct external_entry e = {.placeholder = NULL};
    for (size_t i = 0; i < t->n_external_data; i++) {
        const char *key = proto_text_or(t->external_data[i]->key, ""), *value = proto_text_or(t->external_data[i]->value, "");
        if (strcmp(key, PLACEHOLDER_KEY) == 0)
            e.placeholder = value;
        if (strcmp(key, "location") == 0)
            e.location = value;
        if (strcmp(key, "offset") == 0)
            e.offset = value;
        if (strcmp(key, "length") == 0)
            e.length = value;
    }
    return e;
}

static int64_t parse_bytes(const struct external_files *files, const char *what, const char *key, const char *text)
{
    int64_t n;
    if (!i64_parse(text, 0, INT64_MAX, &n))
        fail("%s: %s has external data with %s '%s', expected a number of bytes", files->path, what, key, text);
    return n;
}

static bool leaves_folder(const char *location)
{
    for (const char *at = location; *at; at += strcspn(at, "/"), at += *at == '/') {
        size_t n = strcspn(at, "/");
        if (n == 2 && at[0] == '.' && at[1] == '.')
            return true;
    }
    return false;
}

#define ALLOW "--external-root DIR allows files of another folder"

static void check_location(const struct external_files *files, const char *what, const char *location)
{
    if (*location == '/' || *location == '#' || *location == '*')
        fail("%s: %s has external data at '%s', expected a path relative to the model; " ALLOW, files->path, what, location);
    if (leaves_folder(location))
        fail("%s: %s has external data at '%s', which leaves the model's folder; " ALLOW, files->path, what, location);
}

static void check_folder(struct external_files *files, const char *what, const char *location, const char *path)
{
    if (sandbox_is_beside(files->tmp, path, files->path))
        return;
    fail("%s: %s has external data at '%s', which is %s, outside the model's folder; " ALLOW, files->path, what, location, path);
}

static void check_regular(struct external_files *files, const char *what, struct external_file *file)
{
    struct stat status;
    if (stat(file->path, &status))
        fail("%s: %s has external data in %s: %s", files->path, what, file->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        fail("%s: %s has external data in %s, which is no regular file", files->path, what, file->path);
    file->bytes = status.st_size;
}

static const struct external_file *locate_file(struct external_files *files, const char *what, const char *location)
{
    const struct external_file *known = text_table_find(files->known, location);
    if (known)
        return known;
    struct external_file *file = NEW(files->tmp, struct external_file);
    const char *joined = path_join(files->arena, path_dir(files->tmp, files->path), location);
    file->path = path_real(files->arena, joined);
    file->found = file->path != NULL;
    int why = errno;
    bool allowed = file->found && sandbox_allows(files->tmp, file->path, files->options->external_roots);
    if (!allowed)
        check_location(files, what, location);
    if (file->found) {
        if (!allowed)
            check_folder(files, what, location, file->path);
        check_regular(files, what, file);
    } else {
        if (why != ENOENT)
            fail("%s: %s has external data in %s: %s", files->path, what, joined, strerror(why));
        file->path = joined;
    }
    text_table_add(files->tmp, &files->known, arena_strdup(files->tmp, location), file);
    return file;
}

static void check_range(const struct external_files *files, const char *what, const struct external_file *file, int64_t offset,
                        int64_t bytes)
{
    if (offset <= file->bytes && bytes <= file->bytes - offset)
        return;
    fail("%s: %s has external data of %lld bytes at %lld in %s, which has %lld bytes", files->path, what, (long long)bytes,
         (long long)offset, file->path, (long long)file->bytes);
}

static int64_t entry_offset(const struct external_files *files, const char *what, const struct external_entry *e)
{
    return e->offset ? parse_bytes(files, what, "offset", e->offset) : 0;
}

static void check_length(const struct external_files *files, const char *what, const char *kind, int64_t length, int64_t bytes)
{
    if (length != bytes)
        fail("%s: %s has %lld bytes of %s data, its type and dimensions need %lld", files->path, what, (long long)length, kind,
             (long long)bytes);
}

static struct source placeholder_payload(const struct external_files *files, const char *what, const struct external_entry *e)
{
    int64_t length = parse_bytes(files, what, "length", proto_text_or(e->length, ""));
    return (struct source){.path = files->path, .offset = entry_offset(files, what, e), .length = length};
}

struct source external_placeholder(const struct external_files *files, const Onnx__TensorProto *t, const char *what, int64_t *at)
{
    struct external_entry e = read_external_entry(t);
    *at = parse_bytes(files, what, PLACEHOLDER_KEY, proto_text_or(e.placeholder, ""));
    return placeholder_payload(files, what, &e);
}

static struct source folder_source(struct external_files *files, const char *what, const struct external_entry *e, int64_t bytes)
{
    struct source found = {.length = bytes};
    int64_t offset = entry_offset(files, what, e);
    if (!files->options->find(files->options->find_data, e->placeholder ? "" : proto_text_or(e->location, ""), offset, bytes, &found))
        fail("%s: %s has %lld bytes at %lld of %s, which no rank file holds", files->path, what, (long long)bytes, (long long)offset,
             e->placeholder ? "the source" : e->location);
    return found;
}

struct source external_source(struct external_files *files, const Onnx__TensorProto *t, const char *what, int64_t bytes)
{
    struct external_entry e = read_external_entry(t);
    if (files->options->find)
        return folder_source(files, what, &e, bytes);
    if (e.placeholder && !files->stripped) {
        struct source own = placeholder_payload(files, what, &e);
        check_length(files, what, "raw", own.length, bytes);
        return own;
    }
    if (e.placeholder && files->options->need_data)
        fail("%s: %s is in the rank files next to it: name the folder, not its model.onnx", files->path, what);
    if (!e.location || !*e.location)
        fail("%s: %s has external data without a location", files->path, what);
    const struct external_file *file = locate_file(files, what, e.location);
    int64_t offset = entry_offset(files, what, &e);
    check_length(files, what, "external",
                 e.length          ? parse_bytes(files, what, "length", e.length)
                     : file->found ? file->bytes - offset
                                   : bytes,
                 bytes);
    if (file->found)
        check_range(files, what, file, offset, bytes);
    else if (files->options->need_data)
        fail("%s: %s has external data in %s, which does not exist", files->path, what, file->path);
    return (struct source){.path = file->path, .offset = offset, .length = bytes};
}

bool external_span(struct external_files *files, const Onnx__TensorProto *t, const char *what, struct span *out)
{
    struct external_entry e = read_external_entry(t);
    if (e.placeholder) {
        *out = (struct span){.file = "", .source = placeholder_payload(files, what, &e)};
        return true;
    }
    if (!e.location)
        return false;
    const struct external_file *file = locate_file(files, what, e.location);
    int64_t offset = entry_offset(files, what, &e), length = e.length ? parse_bytes(files, what, "length", e.length) : file->bytes - offset;
    if (!file->found)
        return false;
    check_range(files, what, file, offset, length);
    *out = (struct span){.file = arena_strdup(files->arena, e.location),
                         .source = {.path = file->path, .offset = offset, .length = length}};
    return true;
}
