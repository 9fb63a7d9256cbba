/* Waits for timers and data. Arguments: "checked", in a program that the compiler fortified; "timer", whose descriptor
   other threads and processes use for something else; or "child", which closes the timer. */
#include "check.h"
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { JOBS = 60 };

/* The compiler does not know the lengths, so it calls functions that check them. */
static void checked(void)
{
    int ends[2];
    char bytes[16];
    volatile size_t length = 1;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    CHECK(write(ends[1], "abcdefg", 7) == 7);
    struct sockaddr from;
    socklen_t size = sizeof from;
    CHECK(read(ends[0], bytes, length) == 1);
    CHECK(recv(ends[0], bytes, length, 0) == 1);
    CHECK(recvfrom(ends[0], bytes, length, 0, &from, &size) == 1 && bytes[0] == 'c' && size == 0);
    struct pollfd one[] = { { ends[0], POLLIN, 0 }, { ends[0], POLLIN, 0 } };
    struct timespec second = { 1, 0 };
    CHECK(poll(one, length, 1000) == 1);
    CHECK(ppoll(one, length, &second, NULL) == 1);
    struct iovec part = { bytes, 1 };
    struct mmsghdr message = { .msg_hdr = { .msg_iov = &part, .msg_iovlen = 1 } };
    CHECK(recvmmsg(ends[0], &message, 1, 0, NULL) == 1 && bytes[0] == 'd');
    CHECK(recvmmsg(ends[0], &message, 1, MSG_DONTWAIT, NULL) == 1 && bytes[0] == 'e');
    struct epoll_event event = { EPOLLIN, { .u64 = 5 } };
    int epoll = epoll_create1(0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_pwait2(epoll, &event, 1, &second, NULL) == 1 && event.data.u64 == 5);
}

/* A daemon has no standard input: the timer is descriptor 0, a number that the recorder uses for files of its own. */
static void expire(bool has_child)
{
    uint64_t count;
    struct itimerspec every = { .it_interval = { 0, 10000000 }, .it_value = { 0, 10000000 } };
    GIVES(0, close(0));
    GIVES(0, timerfd_create(CLOCK_MONOTONIC, 0));
    GIVES(0, timerfd_settime(0, 0, &every, NULL));
    if (has_child) {
        pid_t child = vfork();
        if (child == 0) {
            close(0);
            _exit(0);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    for (int job = 0; job < (has_child ? 1 : JOBS); job++)
        CHECK(read(0, &count, sizeof count) == sizeof count);
}

int main(int count, char **arguments)
{
    CHECK(count == 2);
    GIVES(0, pthread_setname_np(pthread_self(), "reads"));
    if (strcmp(arguments[1], "checked") == 0)
        checked();
    else
        expire(strcmp(arguments[1], "child") == 0);
    return 0;
}
