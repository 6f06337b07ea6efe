/* head: errors in the head of a request. A proxy in front of the server must see the same requests in the same bytes (RFC 9112, sections
 * 3.2, 5.1 and 6), so an ambiguous head is rejected and the connection closed. */
#include "serve/admission/admission.h"

#include <string.h>
#include <strings.h>

const char head_body_too_long[] = "the body is too long: a request has at most 1 MiB";

struct headers {
    int hosts, lengths, encodings;
    const char *length, *encoding, *bad_name;
};

static bool is_token(const char *name)
{
    static const char others[] = "!#$%&'*+-.^_`|~0123456789";
    const char *at = name;
    while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at && strchr(others, *at)))
        at++;
    return at > name && !*at;
}

/* libmicrohttpd before 1.0 appends a folded line to the name of its header, which is then unknown. */
static bool is_longer(const char *name, const char *than)
{
    return strncasecmp(name, than, strlen(than)) == 0 && name[strlen(than)];
}

static enum MHD_Result note(void *data, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct headers *h = data;
    (void)kind;
    if (!is_token(name) || is_longer(name, MHD_HTTP_HEADER_CONTENT_LENGTH) || is_longer(name, MHD_HTTP_HEADER_TRANSFER_ENCODING))
        h->bad_name = name;
    h->hosts += strcasecmp(name, MHD_HTTP_HEADER_HOST) == 0;
    if (strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0 && h->lengths++ == 0)
        h->length = value ? value : "";
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0 && h->encodings++ == 0)
        h->encoding = value ? value : "";
    return MHD_YES;
}

static struct headers headers_of(struct MHD_Connection *connection)
{
    struct headers h = {0};
    (void)MHD_get_connection_values(connection, MHD_HEADER_KIND, note, &h);
    return h;
}

static struct refusal fault_of_length(const char *length)
{
    int64_t n;
    if (!*length || length[strspn(length, "0123456789")])
        return (struct refusal){MHD_HTTP_BAD_REQUEST, "Content-Length is not a number of bytes"};
    if (!i64_parse(length, 0, SERVE_READ, &n))
        return (struct refusal){MHD_HTTP_CONTENT_TOO_LARGE, head_body_too_long};
    return (struct refusal){0};
}

struct refusal head_fault(struct MHD_Connection *connection, const char *version)
{
    const struct headers h = headers_of(connection);
    if (h.bad_name)
        return (struct refusal){MHD_HTTP_BAD_REQUEST, "a header has a name that is not valid, or is folded"};
    if (h.hosts > 1 || (h.hosts == 0 && strcmp(version, MHD_HTTP_VERSION_1_0) != 0))
        return (struct refusal){MHD_HTTP_BAD_REQUEST, "a request of HTTP/1.1 has one header Host"};
    if (h.lengths + h.encodings > 1)
        return (struct refusal){MHD_HTTP_BAD_REQUEST, "a request has one header Content-Length or Transfer-Encoding"};
    if (h.encodings && strcmp(version, MHD_HTTP_VERSION_1_0) == 0)
        return (struct refusal){MHD_HTTP_BAD_REQUEST, "a request of HTTP/1.0 has no header Transfer-Encoding"};
    if (h.encodings && strcasecmp(h.encoding, "chunked") != 0)
        return (struct refusal){MHD_HTTP_NOT_IMPLEMENTED, "Transfer-Encoding is not chunked"};
    return h.lengths ? fault_of_length(h.length) : (struct refusal){0};
}
