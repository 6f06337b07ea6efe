/* origin: browser pages that may use the server. A page of any site may send requests to this machine, and its site's name may resolve to
 * it (DNS rebinding). So a server that listens only on this machine checks the names in Host and Origin. */
#include "serve/admission/admission.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>

/* The name in "name", "name:port" or "[address]:port"; n 0: none of these. */
static struct text name_of(const char *authority)
{
    bool bracket = *authority == '[';
    const char *from = authority + bracket, *end = from + strcspn(from, bracket ? "]" : ":/");
    if (bracket && *end != ']')
        return (struct text){from, 0};
    const char *port = end + bracket;
    size_t digits = *port == ':' ? 1 + strspn(port + 1, "0123456789") : 0;
    return (struct text){from, port[digits] ? 0 : (size_t)(end - from)};
}

/* The part after "https://"; "": none. */
static const char *authority_of(const char *origin)
{
    const char *at = strstr(origin, "://");
    return at ? at + 3 : "";
}

static bool is_address_of_this_machine(const char *name)
{
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    return (inet_pton(AF_INET, name, &four.sin_addr) == 1 && listen_is_local((const struct sockaddr *)&four)) ||
        (inet_pton(AF_INET6, name, &six.sin6_addr) == 1 && listen_is_local((const struct sockaddr *)&six));
}

/* Whether it is this machine, or the name of --host. */
static bool is_own(const struct service *s, struct text t)
{
    enum { LONGEST = 253 }; /* of names */
    static const char local[] = "localhost";
    const size_t n = sizeof local - 1;
    char name[LONGEST + 1];
    if (t.n == 0 || t.n > LONGEST)
        return false;
    memcpy(name, t.at, t.n);
    name[t.n] = '\0';
    bool named = t.n >= n && strcasecmp(name + t.n - n, local) == 0 && (t.n == n || name[t.n - n - 1] == '.');
    return named || strcasecmp(name, s->host) == 0 || is_address_of_this_machine(name);
}

static bool names_host(const struct service *s, struct text t)
{
    for (int i = 0; i < s->cors.text.n; i++) {
        struct text own = name_of(authority_of(s->cors.text.at[i]));
        if (strcmp(s->cors.text.at[i], "*") == 0 || (own.n == t.n && strncasecmp(own.at, t.at, t.n) == 0))
            return true;
    }
    return false;
}

const char *origin_allowed(const struct service *s, const char *origin)
{
    for (int i = 0; origin && i < s->cors.text.n; i++) {
        if (strcmp(s->cors.text.at[i], "*") == 0)
            return "*";
        if (strcmp(s->cors.text.at[i], origin) == 0)
            return s->cors.text.at[i];
    }
    return NULL;
}

bool origin_is_valid(const char *origin)
{
    return strcmp(origin, "*") == 0 ||
        (strstr(origin, "://") > origin && name_of(authority_of(origin)).n && !strchr(authority_of(origin), '/'));
}

const char *origin_fault(struct arena *a, const struct service *s, const char *host, const char *origin)
{
    struct text name = name_of(host ? host : "");
    if (!s->local)
        return NULL;
    if (host && !is_own(s, name) && !(name.n && names_host(s, name)))
        return arena_printf(
            a, "the request is for the host '%.100s', and this server is for this machine: --cors http://NAME admits a name", host);
    if (origin && !is_own(s, name_of(authority_of(origin))) && !origin_allowed(s, origin))
        return arena_printf(a, "pages of '%.100s' may not use this server: --cors ORIGIN admits them", origin);
    return NULL;
}
