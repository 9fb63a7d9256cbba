/* Jobs of 12 ms that are released every 10 ms. The argument says how they are released. */
#include "check.h"
#include <poll.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/timerfd.h>

enum { JOBS = 40, PERIOD_NS = 10000000, LENGTH_NS = 12000000 };

static sem_t posted;
static int ends[2];
static bool by_pipe;

static void compute(void)
{
    struct timespec now, end;
    GIVES(0, clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end));
    end.tv_nsec += LENGTH_NS;
    do
        GIVES(0, clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now));
    while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 0);
}

static void *worker(void *unused)
{
    GIVES(0, pthread_setname_np(pthread_self(), "worker"));
    for (int job = 0; job < JOBS; job++) {
        char byte;
        if (by_pipe)
            CHECK(read(ends[0], &byte, 1) == 1);
        else
            GIVES(0, sem_wait(&posted));
        compute();
    }
    return unused;
}

/* Releases the jobs of the worker. */
static void release(void)
{
    GIVES(0, sem_init(&posted, 0, 0));
    CHECK(pipe(ends) == 0);
    pthread_t thread = start(worker, NULL);
    /* With the rights to it, the instants are kept on a busy machine too. */
    struct sched_param param = { 2 };
    (void)pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
    struct timespec at;
    GIVES(0, clock_gettime(CLOCK_MONOTONIC, &at));
    for (int job = 0; job < JOBS; job++) {
        at.tv_nsec += PERIOD_NS;
        if (at.tv_nsec >= 1000000000) {
            at.tv_nsec -= 1000000000;
            at.tv_sec++;
        }
        GIVES(0, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));
        if (by_pipe)
            CHECK(write(ends[1], "", 1) == 1);
        else
            GIVES(0, sem_post(&posted));
    }
    join(thread);
}

/* Reads a timer, and polls it before if that is requested. */
static void expire(bool polls)
{
    int timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec every = { .it_interval = { 0, PERIOD_NS }, .it_value = { 0, PERIOD_NS } };
    GIVES(0, pthread_setname_np(pthread_self(), "worker"));
    GIVES(0, timerfd_settime(timer, 0, &every, NULL));
    for (int job = 0; job < JOBS; job++) {
        uint64_t count;
        struct pollfd one = { timer, POLLIN, 0 };
        if (polls)
            CHECK(poll(&one, 1, -1) == 1);
        CHECK(read(timer, &count, sizeof count) == sizeof count);
        compute();
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    by_pipe = strcmp(how, "pipe") == 0;
    if (by_pipe || strcmp(how, "semaphore") == 0)
        release();
    else
        expire(strcmp(how, "poll") == 0);
    return 0;
}
