/* Condition variables: no signal is lost; time-outs; misuse; waiters of several processes. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sys/mman.h>
#include <sys/wait.h>

enum { CONSUMERS = 4, ITEMS = 2000 };

#ifdef MUTANT
/* No signal arrives except the broadcast at the end. */
#define lw_cond_signal(cond) 0
enum { PATIENCE_MS = 200 };
#else
enum { PATIENCE_MS = WAIT_S_MAX * 1000 };
#endif

struct queue {
    lw_mutex_t mutex;
    lw_cond_t filled;
    int items, taken;
    int is_over;
};

static struct queue *queue;

static void *consumes(void *unused) {
    EXPECT(0, lw_mutex_lock(&queue->mutex));
    for (;;) {
        while (queue->items == 0 && !queue->is_over) {
            struct timespec time = ms(PATIENCE_MS);
            EXPECT(0, lw_cond_wait_for(&queue->filled, &queue->mutex, &time));
        }
        if (queue->items == 0) {
            break;
        }
        queue->items--;
        queue->taken++;
    }
    EXPECT(0, lw_mutex_unlock(&queue->mutex));
    return unused;
}

static void *ends_it(void *unused) {
    EXPECT(0, lw_mutex_lock(&queue->mutex));
    queue->is_over = 1;
    EXPECT(0, lw_cond_broadcast(&queue->filled));
    EXPECT(0, lw_mutex_unlock(&queue->mutex));
    return unused;
}

static void produce(int holding) {
    for (int i = 0; i < ITEMS; i++) {
        EXPECT(0, lw_mutex_lock(&queue->mutex));
        queue->items++;
        if (holding) {
            EXPECT(0, lw_cond_signal(&queue->filled));
        }
        EXPECT(0, lw_mutex_unlock(&queue->mutex));
        if (!holding) {
            EXPECT(0, lw_cond_signal(&queue->filled));
        }
    }
}

static void nothing_is_lost(int holding) {
    pthread_t consumers[CONSUMERS];
    queue->items = queue->taken = queue->is_over = 0;
    for (int i = 0; i < CONSUMERS; i++) {
        consumers[i] = start(consumes, NULL);
    }
#ifdef MUTANT
    struct timespec nap = ms(50);
    nanosleep(&nap, NULL);
#endif
    produce(holding);
#ifdef MUTANT
    nap = ms(2 * PATIENCE_MS);
    nanosleep(&nap, NULL);
#endif
    join(start(ends_it, NULL));
    for (int i = 0; i < CONSUMERS; i++) {
        join(consumers[i]);
    }
    CHECK(queue->items == 0 && queue->taken == ITEMS);
}

static void *waits(void *unused) {
    EXPECT(0, lw_mutex_lock(&queue->mutex));
    queue->taken++;
    EXPECT(0, lw_cond_wait(&queue->filled, &queue->mutex));
    EXPECT(0, lw_mutex_unlock(&queue->mutex));
    return unused;
}

static void times_and_misuse(int is_recursive) {
    EXPECT(EPERM, lw_cond_wait(&queue->filled, &queue->mutex));
    EXPECT(0, lw_mutex_lock(&queue->mutex));
    const clockid_t clocks[] = {CLOCK_MONOTONIC, CLOCK_REALTIME};
    for (int i = 0; i < 2; i++) {
        struct timespec until = from_now(clocks[i], 20);
        EXPECT(ETIMEDOUT, lw_cond_wait_until(&queue->filled, &queue->mutex, clocks[i], &until));
        CHECK(seconds(now(clocks[i])) >= seconds(until));
        CHECK(lw_mutex_is_mine(&queue->mutex));
    }
    struct timespec time = ms(1);
    EXPECT(ETIMEDOUT, lw_cond_wait_for(&queue->filled, &queue->mutex, &time));
    if (is_recursive) {
        EXPECT(0, lw_mutex_lock(&queue->mutex));
        EXPECT(EINVAL, lw_cond_wait(&queue->filled, &queue->mutex));
        EXPECT(0, lw_mutex_unlock(&queue->mutex));
    }
    queue->taken = 0;
    pthread_t waiter = start(waits, NULL);
    int is_waiting = 0;
    /* BOUND: the alarm. */
    while (!is_waiting) {
        EXPECT(0, lw_mutex_unlock(&queue->mutex));
        sched_yield();
        EXPECT(0, lw_mutex_lock(&queue->mutex));
        is_waiting = queue->taken;
    }
    EXPECT(EBUSY, lw_cond_destroy(&queue->filled));
    EXPECT(0, lw_cond_broadcast(&queue->filled));
    EXPECT(0, lw_mutex_unlock(&queue->mutex));
    join(waiter);
    EXPECT(0, lw_cond_destroy(&queue->filled));
}

static void between_processes(void) {
    queue->items = queue->taken = queue->is_over = 0;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin_test();
        consumes(NULL);
        _exit(0);
    }
    produce(1);
    ends_it(NULL);
    int status;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(queue->items == 0 && queue->taken == ITEMS);
}

int main(void) {
    begin_test();
    queue = mmap(NULL, sizeof *queue, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(queue != MAP_FAILED);
    for (unsigned bits = 0; bits < 16; bits++) {
        lw_mutex_options_t options = {.robust = bits >> 1 & 1, .shared = bits >> 2 & 1, .recursive = bits >> 3 & 1};
        options.protocol = bits & 1 ? LW_PROTOCOL_NONE : LW_PROTOCOL_INHERIT;
        EXPECT(0, lw_mutex_init(&queue->mutex, &options));
        EXPECT(0, lw_cond_init(&queue->filled, bits >> 2 & 1));
        nothing_is_lost(0);
        nothing_is_lost(1);
        if (options.shared) {
            between_processes();
        }
        times_and_misuse(bits >> 3 & 1);
    }
    return 0;
}
