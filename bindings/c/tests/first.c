/* The first call of a process: a fork at that moment, in another thread, leaves a child that can lock. Each round is a
 * process of its own, which this program starts with its own name. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/wait.h>

/* A process with a sanitizer starts slowly. */
#ifdef __SANITIZE_ADDRESS__
enum { ROUNDS_FULL = 20, ROUNDS_PART = 10 };
#else
enum { ROUNDS_FULL = 400, ROUNDS_PART = 80 };
#endif

static lw_mutex_t shared = LW_MUTEX_INITIALIZER;
static volatile int go;

static void *calls_first(void *argument) {
    while (!go) {
    }
    EXPECT(0, lw_mutex_lock(&shared));
    EXPECT(0, lw_mutex_unlock(&shared));
    return argument;
}

/* One round. Forks at a moment that depends on the round. */
static int one(int round) {
    pthread_t thread = start(calls_first, NULL);
    usleep(100);
    go = 1;
    for (volatile int i = 0; i < round * 37 % 3000; i++) {
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(WAIT_S_MAX / 10);
        lw_mutex_t own = LW_MUTEX_INITIALIZER;
        EXPECT(0, lw_mutex_lock(&own));
        EXPECT(0, lw_mutex_unlock(&own));
#ifdef MUTANT
        EXPECT(EPERM, lw_mutex_lock(&own));
#endif
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    join(thread);
    return 0;
}

int main(int count, char **arguments) {
    if (count > 1) {
        return one(atoi(arguments[1]));
    }
    begin_test();
    /* Every part of the rounds covers the same moments. */
    int rounds = full_or(ROUNDS_FULL, ROUNDS_PART);
    for (int round = 0; round < ROUNDS_FULL; round += ROUNDS_FULL / rounds) {
        pid_t child = fork();
        if (child == 0) {
            char number[16];
            snprintf(number, sizeof number, "%d", round);
            execl("/proc/self/exe", arguments[0], number, (char *)NULL);
            _exit(9);
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
    }
    return 0;
}
