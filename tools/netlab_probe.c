/* Times one message over TCP, for tools/netlab: how fast a link really is.
 *
 *   netlab_probe listen ADDRESS PORT          on the one host
 *   netlab_probe send ADDRESS PORT BYTES      on the other; prints milliseconds
 *
 * The message leaves after an idle second, so that what a link lets pass at
 * once after a pause counts, too. Both run on one machine and have one clock:
 * the time is from the first byte given to the sender's socket to the last byte
 * read by the listener, who takes one connection and ends.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { PIECE = 1 << 16, PATIENCE_S = 30 };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int fault(const char *what)
{
    perror(what);
    return 1;
}

static int parse_address(struct sockaddr_in *at, char **words)
{
    *at = (struct sockaddr_in){ .sin_family = AF_INET };
    at->sin_port = htons((uint16_t)atoi(words[1]));
    return inet_pton(AF_INET, words[0], &at->sin_addr) == 1 ? 0 : 1;
}

/* Nothing may wait for ever when the other side has died. */
static void limit_waiting(int fd)
{
    struct timeval patience = { .tv_sec = PATIENCE_S };
    int on = 1;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Read the size, then the message, and answer with the time of its end. */
static int answer(int fd)
{
    static char piece[PIECE];
    int64_t left, end;

    if (recv(fd, &left, sizeof left, MSG_WAITALL) != sizeof left)
        return fault("netlab_probe: receiving the size");
    while (left > 0) {
        ssize_t n = recv(fd, piece, sizeof piece, 0);

        if (n <= 0)
            return fault("netlab_probe: receiving");
        left -= n;
    }
    end = now_ns();
    if (write(fd, &end, sizeof end) != sizeof end)
        return fault("netlab_probe: answering");
    return 0;
}

static int wait_for_one(const struct sockaddr_in *at)
{
    int on = 1, fd, status;
    int listener = socket(AF_INET, SOCK_STREAM, 0);

    if (listener < 0)
        return fault("netlab_probe: socket");
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    limit_waiting(listener);
    if (bind(listener, (const void *)at, sizeof *at) != 0 ||
        listen(listener, 1) != 0)
        return fault("netlab_probe: listening");
    fd = accept(listener, NULL, NULL);
    if (fd < 0)
        return fault("netlab_probe: accepting");
    limit_waiting(fd);
    status = answer(fd);
    close(fd);
    close(listener);
    return status;
}

/* The listener may need a moment to begin. */
static int connect_patiently(const struct sockaddr_in *at)
{
    const struct timespec moment = { .tv_nsec = 20000000 };

    for (int tries = 0; tries < 250; tries++) {
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd < 0)
            return fd;
        if (connect(fd, (const void *)at, sizeof *at) == 0)
            return fd;
        close(fd);
        nanosleep(&moment, NULL);
    }
    return -1;
}

static int send_message(const struct sockaddr_in *at, int64_t bytes)
{
    const struct timespec second = { .tv_sec = 1 };
    char *message = calloc(1, (size_t)bytes);
    int64_t begin, end;
    int fd = connect_patiently(at);

    if (!message || fd < 0)
        return fault("netlab_probe: connecting");
    limit_waiting(fd);
    if (write(fd, &bytes, sizeof bytes) != sizeof bytes)
        return fault("netlab_probe: sending the size");
    nanosleep(&second, NULL);
    begin = now_ns();
    for (int64_t sent = 0; sent < bytes;) {
        ssize_t n = write(fd, message + sent, (size_t)(bytes - sent));

        if (n <= 0)
            return fault("netlab_probe: sending");
        sent += n;
    }
    if (recv(fd, &end, sizeof end, MSG_WAITALL) != sizeof end)
        return fault("netlab_probe: waiting for the answer");
    printf("%.3f\n", (double)(end - begin) / 1e6);
    free(message);
    close(fd);
    return 0;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at;

    if (argc == 4 && strcmp(argv[1], "listen") == 0 &&
        parse_address(&at, argv + 2) == 0)
        return wait_for_one(&at);
    if (argc == 5 && strcmp(argv[1], "send") == 0 &&
        parse_address(&at, argv + 2) == 0 && atoll(argv[4]) > 0)
        return send_message(&at, atoll(argv[4]));
    fprintf(stderr, "usage: %s listen ADDRESS PORT | send ADDRESS PORT BYTES\n",
            argv[0]);
    return 2;
}
