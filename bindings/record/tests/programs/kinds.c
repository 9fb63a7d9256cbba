/* Does one thing of each kind, in a known order. Threads are told apart by their names. */
#include "check.h"
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <threads.h>

pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t recursive, inherits, ceiling, robust;
pthread_rwlock_t table = PTHREAD_RWLOCK_INITIALIZER;
pthread_spinlock_t spin;
pthread_cond_t ready = PTHREAD_COND_INITIALIZER;
sem_t posted;
pthread_barrier_t meeting;
mtx_t eleven;
static bool go;
/* The ids of threads that are about to wait. */
static atomic_int waits_for_go, contends;

static void name(const char *text)
{
    GIVES(0, pthread_setname_np(pthread_self(), text));
}

/* Waits for a condition, a semaphore and a barrier, which main serves. */
static void *waiter(void *unused)
{
    name("waiter");
    GIVES(0, pthread_mutex_lock(&plain));
    atomic_store(&waits_for_go, gettid());
    while (!go)
        GIVES(0, pthread_cond_wait(&ready, &plain));
    GIVES(0, pthread_mutex_unlock(&plain));
    GIVES(0, sem_wait(&posted));
    pthread_barrier_wait(&meeting);
    return unused;
}

/* Waits for each lock that main holds. */
static void *contender(void *unused)
{
    name("contender");
    atomic_store(&contends, gettid());
    GIVES(0, pthread_mutex_lock(&plain));
    GIVES(0, pthread_mutex_unlock(&plain));
    GIVES(0, pthread_rwlock_rdlock(&table));
    GIVES(0, pthread_rwlock_unlock(&table));
    struct timespec no_time = {.tv_sec = 1, .tv_nsec = 1000000000};
    GIVES(EINVAL, pthread_rwlock_timedrdlock(&table, &no_time));
    GIVES(EINVAL, pthread_rwlock_timedwrlock(&table, &no_time));
    GIVES(0, pthread_mutex_trylock(&plain));
    GIVES(0, pthread_rwlock_trywrlock(&table));
    GIVES(0, pthread_rwlock_unlock(&table));
    GIVES(0, pthread_mutex_unlock(&plain));
    return unused;
}

/* Gets nothing while main holds the mutex. */
static void *refused(void *unused)
{
    name("refused");
    struct timespec soon = in_ms(CLOCK_REALTIME, 5);
    GIVES(ETIMEDOUT, pthread_mutex_timedlock(&plain, &soon));
    GIVES(EBUSY, pthread_mutex_trylock(&plain));
    return unused;
}

static void *dies(void *unused)
{
    name("dies");
    GIVES(0, pthread_mutex_lock(&robust));
    return unused;
}

static int of_c11(void *unused)
{
    name("eleven");
    (void)unused;
    CHECK(mtx_lock(&eleven) == thrd_success && mtx_unlock(&eleven) == thrd_success);
    return 7;
}

static void locks(void)
{
    make(&recursive, PTHREAD_MUTEX_RECURSIVE, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
    make(&inherits, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
    make(&ceiling, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_PROTECT, PTHREAD_MUTEX_STALLED, PTHREAD_PROCESS_PRIVATE);
    int before;
    GIVES(0, pthread_mutex_setprioceiling(&ceiling, 30, &before));
    make(&robust, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, PTHREAD_PROCESS_PRIVATE);
    GIVES(0, pthread_spin_init(&spin, 0));
    GIVES(0, pthread_mutex_lock(&recursive));
    GIVES(0, pthread_mutex_lock(&recursive));
    GIVES(0, pthread_mutex_lock(&inherits));
    GIVES(0, pthread_mutex_unlock(&inherits));
    GIVES(0, pthread_mutex_unlock(&recursive));
    GIVES(0, pthread_mutex_unlock(&recursive));
    GIVES(0, pthread_spin_lock(&spin));
    GIVES(0, pthread_spin_unlock(&spin));
    GIVES(0, pthread_rwlock_wrlock(&table));
    GIVES(0, pthread_rwlock_unlock(&table));
    join(start(dies, NULL));
    GIVES(EOWNERDEAD, pthread_mutex_lock(&robust));
    GIVES(0, pthread_mutex_consistent(&robust));
    GIVES(0, pthread_mutex_unlock(&robust));
}

static void contention(void)
{
    GIVES(0, pthread_mutex_lock(&plain));
    GIVES(0, pthread_rwlock_wrlock(&table));
    pthread_t other = start(contender, NULL);
    sleep_ms(20);
    until_waits(&contends);
    GIVES(0, pthread_mutex_unlock(&plain));
    sleep_ms(20);
    until_waits(&contends);
    GIVES(0, pthread_rwlock_unlock(&table));
    join(other);
    GIVES(0, pthread_mutex_lock(&plain));
    join(start(refused, NULL));
    GIVES(0, pthread_mutex_unlock(&plain));
}

static void waits(void)
{
    GIVES(0, sem_init(&posted, 0, 0));
    GIVES(0, pthread_barrier_init(&meeting, NULL, 2));
    pthread_t other = start(waiter, NULL);
    sleep_ms(20);
    until_waits(&waits_for_go);
    GIVES(0, pthread_mutex_lock(&plain));
    go = true;
    GIVES(0, pthread_cond_signal(&ready));
    GIVES(0, pthread_mutex_unlock(&plain));
    sleep_ms(20);
    GIVES(0, sem_post(&posted));
    sleep_ms(20);
    pthread_barrier_wait(&meeting);
    join(other);
}

static void sleeps(void)
{
    struct timespec at = in_ms(CLOCK_MONOTONIC, 3);
    GIVES(0, clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL));
    at = in_ms(CLOCK_REALTIME, 3);
    GIVES(0, clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL));
    struct timespec length = { 0, 1234567 };
    GIVES(0, clock_nanosleep(CLOCK_MONOTONIC, 0, &length, NULL));
    usleep(1500);
    sched_yield();
}

static void input(void)
{
    int ends[2], timer = timerfd_create(CLOCK_MONOTONIC, 0);
    struct itimerspec in_2_ms = { .it_value = { 0, 2000000 } };
    uint64_t count;
    char byte;
    CHECK(timerfd_settime(timer, 0, &in_2_ms, NULL) == 0);
    CHECK(read(timer, &count, sizeof count) == sizeof count && count == 1);
    CHECK(close(timer) == 0);
    /* The number of the timer now means something else. */
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0 && ends[0] == timer);
    CHECK(write(ends[1], "abcd", 4) == 4);
    CHECK(read(ends[0], &byte, 1) == 1);
    CHECK(recv(ends[0], &byte, 1, 0) == 1);
    CHECK(recvfrom(ends[0], &byte, 1, 0, NULL, NULL) == 1 && byte == 'c');
    struct pollfd one = { ends[0], POLLIN, 0 };
    CHECK(poll(&one, 1, 1000) == 1 && poll(&one, 1, 0) == 1);
    struct epoll_event event = { EPOLLIN, { .u64 = 5 } };
    int epoll = epoll_create1(0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, ends[0], &event) == 0);
    CHECK(epoll_wait(epoll, &event, 1, 1000) == 1 && event.data.u64 == 5);
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timespec second = { 1, 0 };
    CHECK(pselect(ends[0] + 1, &set, NULL, NULL, &second, NULL) == 1);
}

static void scheduling(void)
{
    struct sched_param param = { 0 };
    on_one_cpu();
    GIVES(0, pthread_setschedparam(pthread_self(), SCHED_BATCH, &param));
}

int main(void)
{
    name("first");
    locks();
    contention();
    waits();
    sleeps();
    input();
    scheduling();
    CHECK(mtx_init(&eleven, mtx_plain) == thrd_success);
    thrd_t thread;
    int result;
    CHECK(thrd_create(&thread, of_c11, NULL) == thrd_success && thrd_join(thread, &result) == thrd_success);
    CHECK(result == 7);
    return 0;
}
