/* switch: the network of hosts that tests/hosts.sh emulates:  switch MBIT MICROSECONDS NAMESPACE...
 *
 * Makes eth0 in each network namespace and carries frames between them. A frame occupies its sender's and its receiver's cable for its
 * bytes at the given Mbit/s (0: no time), and arrives after the given delay. Bytes are counted as on Ethernet: each piece of a frame that
 * the kernel would cut has headers. There is no loss. Prints its process when the devices exist and runs until it is killed. It takes
 * precedence over what else runs, so that frames are not late, and takes cores from it, as network cards do not. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum {
    MOST_PORTS = 64,
    FRAME_BYTES = 66000,
    ADDRESS = 6,
    LAST_BYTE = ADDRESS - 1,
    AROUND = 24, /* bytes of a frame on the cable: preamble, checksum, gap */
    PRIORITY = 60,
    LATE = 20000, /* ns that a timer may be late: what is due by then goes at once */
    SECOND = 1000000000
};

struct frame {
    struct frame *next;
    int64_t due; /* ns */
    size_t bytes;
    char at[FRAME_BYTES];
};
struct port {
    struct pollfd device;
    int64_t sends, receives; /* ns: when its cable is free */
    struct frame *first, **end;
};
static struct port port[MOST_PORTS];
static int ports;
static double ns_per_byte;
static int64_t delay;
static struct frame *unused;

static void check(int result, const char *what)
{
    if (result >= 0)
        return;
    perror(what);
    exit(1);
}

static int64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* The device that is made lies in the namespace of the process. */
static int open_device(const char *namespace)
{
    char path[256];
    struct ifreq name = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
    (void)snprintf(path, sizeof path, "/run/netns/%s", namespace);
    int in = open(path, O_RDONLY | O_CLOEXEC);
    check(in, path);
    check(setns(in, CLONE_NEWNET), "setns");
    (void)close(in);
    int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    check(device, "/dev/net/tun");
    (void)snprintf(name.ifr_name, IFNAMSIZ, "eth0");
    check(ioctl(device, TUNSETIFF, &name), "TUNSETIFF");
    check(ioctl(device, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_TSO4 | TUN_F_TSO6), "TUNSETOFFLOAD");
    return device;
}

/* ---- frames ------------------------------------------------------------------------------------------------------------------------- */

static struct frame *take_frame(void)
{
    struct frame *f = unused;
    if (f)
        unused = f->next;
    else if (!(f = malloc(sizeof *f)))
        exit(1);
    return f;
}

static void give_back(struct frame *f)
{
    f->next = unused;
    unused = f;
}

static int64_t cable_ns(const struct frame *f)
{
    struct virtio_net_hdr h;
    memcpy(&h, f->at, sizeof h);
    double bytes = (double)(f->bytes - sizeof h), pieces = 1;
    if (h.gso_size && bytes > h.hdr_len)
        pieces = (double)(((int64_t)bytes - h.hdr_len + h.gso_size - 1) / h.gso_size);
    return (int64_t)(ns_per_byte * (bytes + (pieces - 1) * h.hdr_len + pieces * AROUND));
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static void put(struct frame *f, int64_t left, struct port *to)
{
    to->receives = later(left, to->receives + cable_ns(f));
    f->due = to->receives + delay;
    f->next = NULL;
    *to->end = f;
    to->end = &f->next;
}

static void put_copies(const struct frame *f, int64_t left, int from)
{
    for (int k = 0; k < ports; k++) {
        if (k == from)
            continue;
        struct frame *copy = take_frame();
        copy->bytes = f->bytes;
        memcpy(copy->at, f->at, f->bytes);
        put(copy, left, &port[k]);
    }
}

/* tests/hosts.sh gives port k an address that ends in k + 1; others are for all. */
static void carry(struct frame *f, int from)
{
    const unsigned char *to = (const unsigned char *)f->at + sizeof(struct virtio_net_hdr);
    int64_t left = port[from].sends = later(now_ns(), port[from].sends) + cable_ns(f);
    int one = to[LAST_BYTE] - 1;
    if (!(to[0] & 1) && one < ports && one != from) {
        put(f, left, &port[one]);
        return;
    }
    put_copies(f, left, from);
    give_back(f);
}

static void read_frames(int from)
{
    enum { AT_ONCE = 16 };
    for (int i = 0; i < AT_ONCE; i++) {
        struct frame *f = take_frame();
        ssize_t n = read(port[from].device.fd, f->at, FRAME_BYTES);
        if (n <= (ssize_t)sizeof(struct virtio_net_hdr) + 2 * ADDRESS) {
            give_back(f);
            return;
        }
        f->bytes = (size_t)n;
        carry(f, from);
    }
}

/* Returns when the next is due; -1: none waits. */
static int64_t deliver(struct port *to)
{
    while (to->first && to->first->due <= now_ns() + LATE) {
        struct frame *f = to->first;
        (void)!write(to->device.fd, f->at, f->bytes); /* a device that is down takes none */
        if (!(to->first = f->next))
            to->end = &to->first;
        give_back(f);
    }
    return to->first ? to->first->due : -1;
}

static void wait_for_frames(void)
{
    struct pollfd device[MOST_PORTS];
    int64_t next = -1;
    for (int k = 0; k < ports; k++) {
        int64_t due = deliver(&port[k]);
        next = due >= 0 && (next < 0 || due < next) ? due : next;
        device[k] = port[k].device;
    }
    int64_t left = next < 0 ? 0 : later(0, next - LATE - now_ns());
    struct timespec until = {left / SECOND, left % SECOND};
    if (ppoll(device, (nfds_t)ports, next < 0 ? NULL : &until, NULL) <= 0)
        return;
    for (int k = 0; k < ports; k++)
        if (device[k].revents)
            read_frames(k);
}

int main(int argc, char **argv)
{
    enum { BITS = 8, FIRST = 3 };
    if (argc <= FIRST || argc - FIRST > MOST_PORTS)
        return 2;
    double mbit = strtod(argv[1], NULL);
    ns_per_byte = mbit > 0 ? BITS * 1e3 / mbit : 0;
    delay = (int64_t)(1e3 * strtod(argv[2], NULL));
    ports = argc - FIRST;
    for (int k = 0; k < ports; k++)
        port[k] = (struct port){.device = {.fd = open_device(argv[FIRST + k]), .events = POLLIN}, .end = &port[k].first};
    pid_t child = fork();
    check(child, "fork");
    if (child) {
        printf("%d\n", (int)child);
        return 0;
    }
    (void)freopen("/dev/null", "w", stdout);
    (void)sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = PRIORITY});
    for (;;)
        wait_for_frames();
}
