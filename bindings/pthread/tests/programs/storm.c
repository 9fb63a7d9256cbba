/* Storms. Arguments: the storm, and the number of rounds.

   `cancel`: each token reaches a thread that takes it, beside a waiter that is cancelled, and signals.
   `timed`: the same beside a waiter whose waits time out.
   `levels`: each token reaches a real-time thread, while the levels of all of them change.
   `fork`: children of a process whose threads lock and wait all the time use the library, and end. */
#include "check.h"

enum { WAITERS = 4, LOST_MS = 5000, CHILD_S = 20 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int tokens, taken, inside;
static bool over;
static atomic_bool storm_over;

static void leave(void *unused)
{
    (void)unused;
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static struct timespec soon(unsigned *chance)
{
    struct timespec until = in_ms(CLOCK_REALTIME, 0);
    until.tv_nsec += rand_r(chance) % 100000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return until;
}

static bool cancels, interrupts;

/* Takes tokens if `takes`. Otherwise the thread passes each signal on, so that a token is taken only if its signal
   reaches a thread that takes. If nothing is cancelled, such a thread waits for short times. */
static void wait_for_tokens(bool takes)
{
    unsigned chance = (unsigned)gettid();
    GIVES(0, pthread_mutex_lock(&mutex));
    pthread_cleanup_push(leave, NULL);
    while (!over) {
        CHECK(inside++ == 0);
        inside--;
        if (takes && tokens > 0) {
            tokens--;
            taken++;
        } else if (takes) {
            GIVES(0, pthread_cond_wait(&filled, &mutex));
        } else {
            struct timespec until = soon(&chance);
            int ended = cancels ? pthread_cond_wait(&filled, &mutex) : pthread_cond_timedwait(&filled, &mutex, &until);
            CHECK(ended == 0 || (ended == ETIMEDOUT && !cancels));
            if (ended == 0)
                GIVES(0, pthread_cond_signal(&filled));
        }
    }
    pthread_cleanup_pop(1);
}

static void *takes(void *unused)
{
    wait_for_tokens(true);
    return unused;
}

static void *passes_on(void *unused)
{
    wait_for_tokens(false);
    return unused;
}

static pthread_t waiters[WAITERS];
/* The last waiter. */
enum { VICTIM = WAITERS - 1 };

/* Makes tokens, one at a time, each with one signal. Whatever else happens to a waiter happens about that instant, and
   not later, when it would wake a thread that missed a signal. */
static void make_tokens(int rounds)
{
    unsigned chance = 1;
    for (int round = 0; round < rounds; round++) {
        bool holds = rand_r(&chance) % 2;
        if (interrupts && rand_r(&chance) % 2)
            GIVES(0, pthread_kill(waiters[rand_r(&chance) % WAITERS], SIGUSR1));
        GIVES(0, pthread_mutex_lock(&mutex));
        tokens++;
        if (holds)
            GIVES(0, pthread_cond_signal(&filled));
        GIVES(0, pthread_mutex_unlock(&mutex));
        if (!holds)
            GIVES(0, pthread_cond_signal(&filled));
        if (cancels && rand_r(&chance) % 2) {
            GIVES(0, pthread_cancel(waiters[VICTIM]));
            join(waiters[VICTIM]);
            waiters[VICTIM] = start(passes_on, NULL);
        }
        bool is_there = true;
        for (double since = now_ms(CLOCK_MONOTONIC); is_there; sched_yield()) {
            GIVES(0, pthread_mutex_lock(&mutex));
            is_there = tokens > 0;
            GIVES(0, pthread_mutex_unlock(&mutex));
            /* The signal of this token was lost. */
            CHECK(now_ms(CLOCK_MONOTONIC) - since < LOST_MS);
        }
    }
    CHECK(taken == rounds);
}

static void handled(int signal)
{
    (void)signal;
}

/* `disturbs` may be null. */
static void storm(void *(*takes)(void *), void *(*passes_on)(void *), void *(*disturbs)(void *), int rounds)
{
    pthread_t other;
    for (int i = 0; i < WAITERS; i++)
        waiters[i] = start(i == VICTIM ? passes_on : takes, NULL);
    if (disturbs)
        other = start(disturbs, NULL);
    make_tokens(rounds);
    storm_over = true;
    if (disturbs)
        join(other);
    GIVES(0, pthread_mutex_lock(&mutex));
    over = true;
    GIVES(0, pthread_cond_broadcast(&filled));
    GIVES(0, pthread_mutex_unlock(&mutex));
    for (int i = 0; i < WAITERS; i++)
        join(waiters[i]);
}

static void *takes_in_real_time(void *unused)
{
    become_fifo(10);
    return takes(unused);
}

static void *changes_levels(void *unused)
{
    unsigned chance = 3;
    become_fifo(50);
    while (!storm_over) {
        GIVES(0, pthread_setschedprio(waiters[rand_r(&chance) % WAITERS], 10 + rand_r(&chance) % 30));
        usleep(rand_r(&chance) % 100);
    }
    return unused;
}

static pthread_mutex_t own[WAITERS];
static pthread_cond_t turn[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static int whose;

/* Two pairs of threads that take turns by condition variables, and lock mutexes of their own. */
static void *plays(void *argument)
{
    int me = (int)(long)argument % 2;
    while (!storm_over) {
        GIVES(0, pthread_mutex_lock(&own[(long)argument]));
        GIVES(0, pthread_mutex_unlock(&own[(long)argument]));
        GIVES(0, pthread_mutex_lock(&mutex));
        struct timespec until = in_ms(CLOCK_REALTIME, 1);
        if (whose != me)
            pthread_cond_timedwait(&turn[me], &mutex, &until);
        whose = 1 - me;
        GIVES(0, pthread_cond_signal(&turn[1 - me]));
        GIVES(0, pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void before_fork(void)
{
    GIVES(0, pthread_mutex_lock(&mutex));
}

static void after_fork(void)
{
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static void *in_child(void *unused)
{
    GIVES(0, pthread_mutex_lock(&mutex));
    taken++;
    GIVES(0, pthread_cond_signal(&filled));
    GIVES(0, pthread_mutex_unlock(&mutex));
    return unused;
}

static void child(void)
{
    alarm(CHILD_S);
    pthread_mutex_t new;
    make(&new, PTHREAD_MUTEX_ERRORCHECK, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST, 0);
    GIVES(0, pthread_mutex_lock(&new));
    GIVES(EDEADLK, pthread_mutex_lock(&new));
    GIVES(0, pthread_mutex_unlock(&new));
    pthread_t thread = start(in_child, NULL);
    GIVES(0, pthread_mutex_lock(&mutex));
    while (taken == 0)
        GIVES(0, pthread_cond_wait(&filled, &mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    join(thread);
    _exit(0);
}

static void fork_storm(int rounds)
{
    GIVES(0, pthread_atfork(before_fork, after_fork, after_fork));
    for (long i = 0; i < WAITERS; i++) {
        make(&own[i], PTHREAD_MUTEX_RECURSIVE, i % 2, PTHREAD_MUTEX_STALLED, 0);
        waiters[i] = start(plays, (void *)i);
    }
    int ended_well = 0;
    for (int round = 0; round < rounds; round++) {
        pid_t id = fork();
        CHECK(id >= 0);
        if (id == 0)
            child();
        int status;
        CHECK(waitpid(id, &status, 0) == id);
        ended_well += status == 0;
    }
    storm_over = true;
    for (int i = 0; i < WAITERS; i++)
        join(waiters[i]);
    CHECK(ended_well == rounds);
}

int main(int arguments, char **argument)
{
    CHECK(arguments == 3);
    int rounds = atoi(argument[2]);
    CHECK(rounds > 0);
    struct sigaction action = { .sa_handler = handled };
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    cancels = strcmp(argument[1], "cancel") == 0;
    interrupts = cancels || strcmp(argument[1], "timed") == 0;
    if (interrupts) {
        storm(takes, passes_on, NULL, rounds);
    } else if (strcmp(argument[1], "levels") == 0) {
        become_fifo(5);
        storm(takes_in_real_time, takes_in_real_time, changes_levels, rounds);
    } else {
        fork_storm(rounds);
    }
    return 0;
}
