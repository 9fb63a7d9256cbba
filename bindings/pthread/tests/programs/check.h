/* Shared by the programs. Exit status: 0 if all checks hold, 1 if one does not, 77 without permission for real-time
   priorities. */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(holds) \
    do { \
        if (!(holds)) { \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds); \
            _exit(1); \
        } \
    } while (0)

/* Checks that the call returns the expected number, and shows the number if it does not. */
#define GIVES(expected, call) \
    do { \
        int expected_ = (expected), got_ = (call); \
        if (got_ != expected_) { \
            fprintf(stderr, "%s:%d: %s gives %d (%s), not %d\n", __FILE__, __LINE__, #call, got_, strerror(got_), expected_); \
            _exit(1); \
        } \
    } while (0)

static inline struct timespec in_ms(clockid_t clock, long ms)
{
    struct timespec time;
    clock_gettime(clock, &time);
    long ns = time.tv_nsec + ms % 1000 * 1000000;
    time.tv_sec += ms / 1000 + ns / 1000000000;
    time.tv_nsec = ns % 1000000000;
    return time;
}

static inline void sleep_ms(long ms)
{
    struct timespec time = { ms / 1000, ms % 1000 * 1000000 };
    while (nanosleep(&time, &time) != 0) {
    }
}

static inline double now_ms(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

/* Makes a mutex with these attributes. */
static inline void make(pthread_mutex_t *mutex, int type, int protocol, int robust, int shared)
{
    pthread_mutexattr_t attributes;
    GIVES(0, pthread_mutexattr_init(&attributes));
    GIVES(0, pthread_mutexattr_settype(&attributes, type));
    GIVES(0, pthread_mutexattr_setprotocol(&attributes, protocol));
    GIVES(0, pthread_mutexattr_setrobust(&attributes, robust));
    GIVES(0, pthread_mutexattr_setpshared(&attributes, shared));
    if (protocol == PTHREAD_PRIO_PROTECT)
        GIVES(0, pthread_mutexattr_setprioceiling(&attributes, 20));
    GIVES(0, pthread_mutex_init(mutex, &attributes));
    GIVES(0, pthread_mutexattr_destroy(&attributes));
}

static inline pthread_t start(void *(*body)(void *), void *argument)
{
    pthread_t thread;
    GIVES(0, pthread_create(&thread, NULL, body, argument));
    return thread;
}

static inline void *join(pthread_t thread)
{
    void *result;
    GIVES(0, pthread_join(thread, &result));
    return result;
}

/* Puts the calling thread under SCHED_FIFO. */
static inline void become_fifo(int level)
{
    struct sched_param param = { .sched_priority = level };
    int error = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);
    if (error == EPERM)
        _exit(77);
    GIVES(0, error);
}

/* Returns the calling thread's level in the kernel. */
static inline int level_now(void)
{
    struct sched_param param;
    CHECK(syscall(SYS_sched_getparam, 0, &param) == 0);
    return param.sched_priority;
}

/* Binds all threads of the program to one CPU, so that priorities alone decide. */
static inline void on_one_cpu(void)
{
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    CPU_ZERO(&one);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* Waits until a thread of this process sleeps. */
static inline void until_asleep(int thread)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    for (;;) {
        FILE *file = fopen(path, "r");
        CHECK(file && fgets(text, sizeof text, file));
        fclose(file);
        /* The state follows the name, which is in parentheses. */
        char *name_end = strrchr(text, ')');
        CHECK(name_end);
        if (name_end[2] == 'S')
            return;
        sleep_ms(1);
    }
}

static inline void *shared_memory(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    return memory;
}

#endif
