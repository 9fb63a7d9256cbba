/* Shared by the tests in C. A test that fails prints the place and exits with 1; one that the machine does not allow
 * exits with 77.
 *
 * Each test is also compiled with MUTANT defined, which breaks something that it tests, so that it must fail.
 */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { SKIPPED = 77 };

/* The longest time that a test may take, and the longest wait for something that must happen, in seconds. */
enum { TEST_S_MAX = 120, WAIT_S_MAX = 30 };

#define CHECK(holds)                                                                                                   \
    do {                                                                                                               \
        if (!(holds)) {                                                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #holds);                                 \
            fflush(NULL);                                                                                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* Fails unless the call returns this number. */
#define EXPECT(number, call)                                                                                           \
    do {                                                                                                               \
        int answer_ = (call);                                                                                          \
        if (answer_ != (number)) {                                                                                     \
            fprintf(stderr, "%s:%d: %s is %d (%s), not %s\n", __FILE__, __LINE__, #call, answer_, strerror(answer_),   \
                    #number);                                                                                          \
            fflush(NULL);                                                                                              \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

/* `full` if LOCKWRIGHT_DEEP is set, as in CI, and a part of it otherwise. */
static inline int full_or(int full, int part) {
    return getenv("LOCKWRIGHT_DEEP") ? full : part;
}

static inline void begin_test(void) {
    alarm(TEST_S_MAX);
}

static inline struct timespec ms(long ms) {
    struct timespec time;
    time.tv_sec = ms / 1000;
    time.tv_nsec = ms % 1000 * 1000000;
    return time;
}

static inline struct timespec now(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time;
}

static inline double seconds(struct timespec time) {
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static inline struct timespec from_now(clockid_t clock, long ms) {
    struct timespec time = now(clock);
    time.tv_sec += ms / 1000;
    time.tv_nsec += ms % 1000 * 1000000;
    if (time.tv_nsec >= 1000000000) {
        time.tv_sec += 1;
        time.tv_nsec -= 1000000000;
    }
    return time;
}

static inline pthread_t start(void *(*body)(void *), void *argument) {
    pthread_t thread;
    EXPECT(0, pthread_create(&thread, NULL, body, argument));
    return thread;
}

static inline void join(pthread_t thread) {
    EXPECT(0, pthread_join(thread, NULL));
}

#endif
