/* For ThreadSanitizer: plain data behind mutexes and condition variables with all options, and no other order between
 * the threads after their start. `handover` must be silent. `handover K` executes the options with number K only and writes once a round
 * without the mutex, which must be reported. It exits with 2 if there is no such number.
 */
#define _GNU_SOURCE
#include "lockwright.h"

#include "../check.h"
#include <sched.h>

enum { THREADS = 3, ROUNDS = 40, CEILING = 60, NO_SUCH = 2 };

struct worker {
    int number;
    pthread_t thread;
};

static lw_mutex_t mutex;
static lw_cond_t turned[THREADS], everyone;
static pthread_barrier_t all_started, all_done;
static int has_race;
/* Protected by `mutex`. */
static long count;
static int turn, is_shared_turn;

/* Locks and unlocks while others wait, sometimes for a short time and sometimes suspended. */
static void counts(int me) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec hold = {.tv_nsec = 200000}, patience = {.tv_nsec = 100000};
        if (has_race && me == 0) {
            nanosleep(&hold, NULL); /* Others write meanwhile. */
            count++;
        }
        int got = i % 4 == 1 ? lw_mutex_trylock(&mutex) : i % 4 == 2 ? lw_mutex_lock_for(&mutex, &patience) : 1;
        if (got != 0) {
            CHECK(got == 1 || got == EBUSY || got == ETIMEDOUT);
            EXPECT(0, lw_mutex_lock(&mutex));
        }
        count++;
        if (i % THREADS == me) {
            nanosleep(&hold, NULL);
        }
        EXPECT(0, lw_mutex_unlock(&mutex));
    }
}

/* Threads take turns. Each waits for a signal of its own or for a broadcast, sometimes with a time-out. */
static void takes_turns(int me) {
    for (int i = 0; i < ROUNDS; i++) {
        struct timespec patience = {.tv_nsec = 300000};
        EXPECT(0, lw_mutex_lock(&mutex));
        while (turn != me) {
            lw_cond_t *cond = is_shared_turn ? &everyone : &turned[me];
            int ended = i % 4 == 3 ? lw_cond_wait_for(cond, &mutex, &patience) : lw_cond_wait(cond, &mutex);
            CHECK(ended == 0 || ended == ETIMEDOUT);
        }
        count++;
        turn = (me + 1) % THREADS;
        lw_cond_t *next = &turned[turn];
        if (i % 8 == 0) {
            is_shared_turn = !is_shared_turn;
        }
        if (i % 2 == 0) {
            EXPECT(0, lw_mutex_unlock(&mutex));
        }
        EXPECT(0, lw_cond_signal(next));
        EXPECT(0, lw_cond_broadcast(&everyone));
        if (i % 2 == 1) {
            EXPECT(0, lw_mutex_unlock(&mutex));
        }
    }
}

/* ThreadSanitizer's runtime has a spinlock that each thread takes when it starts and when it ends. Under SCHED_FIFO, two
 * threads that spin there can keep its owner of lower priority from both CPUs for ever. So all threads start and end
 * under SCHED_OTHER.
 */
static void *works(void *argument) {
    struct worker *me = argument;
    struct sched_param fifo = {.sched_priority = 10 * (me->number + 1)}, other = {.sched_priority = 0};
    pthread_barrier_wait(&all_started);
    if (sched_setscheduler(0, SCHED_FIFO, &fifo) != 0) {
        _exit(SKIPPED);
    }
    counts(me->number);
    takes_turns(me->number);
    EXPECT(0, sched_setscheduler(0, SCHED_OTHER, &other));
    pthread_barrier_wait(&all_done);
    return NULL;
}

static void execute(const lw_mutex_options_t *options, int shared) {
    struct worker workers[THREADS];
    count = turn = is_shared_turn = 0;
    EXPECT(0, pthread_barrier_init(&all_started, NULL, THREADS));
    EXPECT(0, pthread_barrier_init(&all_done, NULL, THREADS));
    EXPECT(0, lw_mutex_init(&mutex, options));
    EXPECT(0, lw_cond_init(&everyone, shared));
    for (int i = 0; i < THREADS; i++) {
        EXPECT(0, lw_cond_init(&turned[i], shared));
    }
    for (int i = 0; i < THREADS; i++) {
        workers[i].number = i;
        workers[i].thread = start(works, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        join(workers[i].thread);
    }
    for (int i = 0; i < THREADS; i++) {
        EXPECT(0, lw_cond_destroy(&turned[i]));
    }
    EXPECT(0, lw_cond_destroy(&everyone));
    EXPECT(0, lw_mutex_destroy(&mutex));
    EXPECT(0, pthread_barrier_destroy(&all_started));
    EXPECT(0, pthread_barrier_destroy(&all_done));
    CHECK(has_race || count == 2L * THREADS * ROUNDS);
}

int main(int arguments, char **argument) {
    int wanted = arguments > 1 ? atoi(argument[1]) : -1, number = 0;
    begin_test();
    has_race = wanted >= 0;
    for (uint32_t protocol = LW_PROTOCOL_INHERIT; protocol <= LW_PROTOCOL_PROTECT; protocol++) {
        for (uint32_t unlock = LW_UNLOCK_AUTO; unlock <= LW_UNLOCK_PARALLEL; unlock++) {
            for (unsigned bits = 0; bits < 8; bits++) {
                lw_mutex_options_t options = {.protocol = protocol, .unlock = unlock};
                options.ceiling = protocol == LW_PROTOCOL_PROTECT ? CEILING : 0;
                options.robust = bits & 1;
                options.shared = bits >> 1 & 1;
                options.kernel_owned = bits >> 2 & 1;
                if (lw_mutex_init(&mutex, &options) != 0) {
                    continue; /* These options exclude each other. */
                }
                if (wanted < 0 || wanted == number) {
                    execute(&options, options.shared);
                }
                number++;
            }
        }
    }
    return wanted >= number ? NO_SUCH : 0;
}
