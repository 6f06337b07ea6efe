/* access: the access log (-v): a line per request with the client, the request and the reply. Text from clients is escaped. */
#include "serve/http/http.h"

#include <netdb.h>
#include <string.h>

enum { LONGEST = 200 }; /* bytes of a path */

/* Quoted, so that no character controls a terminal or looks like a line end. */
static const char *quoted(struct arena *a, const char *text)
{
    struct text_builder b = {.arena = a};
    size_t i = 0;
    for (; text[i] && i < LONGEST; i++) {
        unsigned char c = (unsigned char)text[i];
        bool plain = c >= ' ' && c <= '~' && c != '"' && c != '\\';
        text_put(&b, plain ? &text[i] : arena_printf(a, "\\x%02x", c), plain ? 1 : 4);
    }
    text_put(&b, text[i] ? "..." : "", text[i] ? 4 : 1);
    return text_built(&b).at;
}

static const char *address_of(struct arena *a, struct MHD_Connection *connection)
{
    char host[NI_MAXHOST];
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *address = info ? info->client_addr : NULL;
    socklen_t n = address && address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    if (!address || getnameinfo(address, n, host, sizeof host, NULL, 0, NI_NUMERICHOST))
        return "-";
    return arena_strdup(a, host);
}

void access_begin(struct call *c, const char *method, const char *path)
{
    c->method = quoted(c->arena, method);
    c->path = quoted(c->arena, path);
    c->began = clock_seconds();
}

void access_tell(const struct call *c)
{
    struct arena *tmp = arena_new();
    int64_t made = 0, prompts = 0;
    for (int64_t i = 0; i < c->choices; i++) {
        made += c->choice[i].made.n;
        prompts += c->choice[i].prompts;
    }
    for (int64_t i = 0; c->embeddings && i < c->embeddings->n; i++)
        prompts += c->embeddings->text[i].list.n;
    const char *status = c->answered ? arena_printf(tmp, "%u", c->answered) : "-";
    explain("%s \"%s %s\" %s %lld bytes, %lld+%lld tokens, %.3f s", address_of(tmp, c->connection), c->method, c->path, status,
            (long long)c->bytes, (long long)prompts, (long long)made, clock_seconds() - c->began);
    arena_free(tmp);
}
