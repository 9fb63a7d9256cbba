/* Real-time threads contend for a mutex. The program writes how often one of them suspended itself in a lock. */
#include "check.h"
#include <sys/resource.h>

enum { THREADS = 2, ROUNDS = 20000 };
static pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t begin;
static atomic_long suspended;

static long switches(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

static void spin(unsigned us)
{
    double until = now_ms(CLOCK_MONOTONIC) + us / 1e3;
    while (now_ms(CLOCK_MONOTONIC) < until) {
    }
}

static void *contends(void *argument)
{
    unsigned chance = (unsigned)(long)argument;
    become_fifo(10);
    pthread_barrier_wait(&begin);
    for (int round = 0; round < ROUNDS; round++) {
        long before = switches();
        GIVES(0, pthread_mutex_lock(&bus));
        suspended += switches() > before;
        spin(rand_r(&chance) % 3);
        GIVES(0, pthread_mutex_unlock(&bus));
        spin(rand_r(&chance) % 3);
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    GIVES(0, pthread_barrier_init(&begin, NULL, THREADS));
    for (long thread = 0; thread < THREADS; thread++)
        threads[thread] = start(contends, (void *)(thread + 1));
    for (int thread = 0; thread < THREADS; thread++)
        join(threads[thread]);
    fprintf(stderr, "suspended %ld\n", (long)suspended);
    return 0;
}
