/* Measures lock and unlock of a free mutex, next to the C library's, and sections without contention: medians in ns. */
#define _GNU_SOURCE
#include "lockwright.h"
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

enum { TURNS = 41, ROUNDS = 200000 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static lw_mutex_t ours;
static pthread_mutex_t theirs;

#define TURN(lock, unlock, into)                                                                                       \
    do {                                                                                                               \
        double begin = now_ns();                                                                                       \
        for (int i = 0; i < ROUNDS; i++) {                                                                             \
            if ((lock) || (unlock)) {                                                                                      \
                abort();                                                                                               \
            }                                                                                                          \
        }                                                                                                              \
        (into) = (now_ns() - begin) / ROUNDS;                                                                          \
    } while (0)

static void compare(const char *name, lw_mutex_options_t options, int protocol, int robust) {
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setprotocol(&attr, protocol);
    if (robust) {
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    }
    if (lw_mutex_init(&ours, &options) || pthread_mutex_init(&theirs, &attr)) {
        abort();
    }
    double us[TURNS], them[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        TURN(lw_mutex_lock(&ours), lw_mutex_unlock(&ours), us[turn]);
        TURN(pthread_mutex_lock(&theirs), pthread_mutex_unlock(&theirs), them[turn]);
    }
    qsort(us, TURNS, sizeof *us, ascending);
    qsort(them, TURNS, sizeof *them, ascending);
    printf("%-16s lw %5.1f (%.1f to %.1f)   pthread %5.1f (%.1f to %.1f)   ratio %.2f\n", name, us[TURNS / 2],
           us[TURNS / 4], us[TURNS * 3 / 4], them[TURNS / 2], them[TURNS / 4], them[TURNS * 3 / 4],
           us[TURNS / 2] / them[TURNS / 2]);
}

static int empty(lw_ics_section_t *section, void *argument) {
    (void)section;
    (void)argument;
    return 0;
}

static int add(lw_ics_section_t *section, void *argument) {
    uint64_t value;
    int answer = lw_ics_read(section, 0, &value);
    (void)argument;
    return answer ? answer : lw_ics_write(section, 0, value + 1);
}

static int write_ten(lw_ics_section_t *section, void *argument) {
    (void)argument;
    for (uint32_t word = 0; word < 10; word++) {
        int answer = lw_ics_write(section, word, word);
        if (answer) {
            return answer;
        }
    }
    return 0;
}

/* Is compiled once for each body, as a program's own section is. */
static inline __attribute__((always_inline)) void section(const char *name, lw_ics_body_t body, const char *how,
                                                          uint32_t commit) {
    lw_ics_t ics;
    lw_ics_slot_t slot;
    if (lw_ics_init(&ics, commit, (uint32_t)sched_getcpu()) || lw_ics_slot_open(&ics, &slot)) {
        abort();
    }
    double us[TURNS];
    for (int turn = 0; turn < TURNS; turn++) {
        TURN(lw_ics_update(&slot, body, NULL), 0, us[turn]);
    }
    qsort(us, TURNS, sizeof *us, ascending);
    printf("%-16s %-8s %5.1f (%.1f to %.1f)\n", name, how, us[TURNS / 2], us[TURNS / 4], us[TURNS * 3 / 4]);
    lw_ics_slot_close(&slot);
    lw_ics_destroy(&ics);
}

/* Each way to commit. Of these, only LW_ICS_PLAIN requires that the thread stays on its CPU: it is the only one. */
static inline __attribute__((always_inline)) void sections(const char *name, lw_ics_body_t body) {
    section(name, body, "locked", LW_ICS_LOCKED);
    section(name, body, "auto", LW_ICS_AUTO);
    section(name, body, "plain", LW_ICS_PLAIN);
}

static void *nothing(void *unused) {
    return unused;
}

int main(void) {
    /* The C library omits atomic operations while there is only one thread. */
    pthread_t thread;
    if (pthread_create(&thread, NULL, nothing, NULL) || pthread_join(thread, NULL)) {
        return 1;
    }
    lw_mutex_options_t none = {.protocol = LW_PROTOCOL_NONE}, inherit = {0};
    lw_mutex_options_t robust = {.protocol = LW_PROTOCOL_NONE, .robust = 1}, both = {.robust = 1};
    compare("none", none, PTHREAD_PRIO_NONE, 0);
    compare("inherit", inherit, PTHREAD_PRIO_INHERIT, 0);
    compare("robust", robust, PTHREAD_PRIO_NONE, 1);
    compare("inherit, robust", both, PTHREAD_PRIO_INHERIT, 1);
    sections("empty section", empty);
    sections("one word", add);
    sections("ten words", write_ten);
    return 0;
}
