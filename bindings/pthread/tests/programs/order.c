/* Real-time threads on one CPU: the most urgent waiter is served first, and an owner has the priority of its most
   urgent waiter.

   Arguments: `order`, or `inherits` or `inherits-not` for a mutex from its initialiser. */
#include "check.h"

enum { THREADS = 6 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
/* The last thread that is about to wait. */
static atomic_int waiting;
static atomic_int woken;
static int order[THREADS];
static bool on_cond;

static void *waiter(void *level)
{
    become_fifo((int)(long)level);
    if (on_cond) {
        GIVES(0, pthread_mutex_lock(&mutex));
        waiting = gettid();
        GIVES(0, pthread_cond_wait(&cond, &mutex));
    } else {
        waiting = gettid();
        GIVES(0, pthread_mutex_lock(&mutex));
    }
    order[woken++] = (int)(long)level;
    GIVES(0, pthread_mutex_unlock(&mutex));
    return NULL;
}

/* Waiters arrive in another order than that in which they are served. If `reversed`, the least urgent one becomes the
   most urgent one while all wait. */
static void serve(bool with_mutex, bool broadcast, bool reversed)
{
    static const long levels[THREADS] = { 12, 30, 11, 25, 14, 20 };
    pthread_t threads[THREADS];
    woken = 0;
    if (!on_cond)
        GIVES(0, pthread_mutex_lock(&mutex));
    for (int i = 0; i < THREADS; i++) {
        waiting = 0;
        threads[i] = start(waiter, (void *)levels[i]);
        while (!waiting)
            sleep_ms(1);
        until_asleep(waiting);
    }
    for (int i = 0; i < THREADS && reversed; i++)
        GIVES(0, pthread_setschedprio(threads[i], (int)(42 - levels[i])));
    if (!on_cond) {
        GIVES(0, pthread_mutex_unlock(&mutex));
    } else if (broadcast) {
        if (with_mutex)
            GIVES(0, pthread_mutex_lock(&mutex));
        GIVES(0, pthread_cond_broadcast(&cond));
        if (with_mutex)
            GIVES(0, pthread_mutex_unlock(&mutex));
    } else {
        for (int i = 0; i < THREADS; i++) {
            if (with_mutex)
                GIVES(0, pthread_mutex_lock(&mutex));
            GIVES(0, pthread_cond_signal(&cond));
            if (with_mutex)
                GIVES(0, pthread_mutex_unlock(&mutex));
            while (woken <= i)
                sleep_ms(1);
        }
    }
    for (int i = 0; i < THREADS; i++)
        join(threads[i]);
    for (int i = 1; i < THREADS; i++)
        CHECK(reversed ? order[i - 1] < order[i] : order[i - 1] > order[i]);
}

static void in_order(void)
{
    /* Less urgent than all waiters, so that their priorities alone decide. */
    become_fifo(5);
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        make(&mutex, PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_STALLED, 0);
        for (int round = 0; round < 3; round++) {
            on_cond = false;
            serve(false, false, false);
            on_cond = true;
            for (int how = 0; how < 8; how++)
                serve(how & 1, how & 2, how & 4);
        }
        GIVES(0, pthread_mutex_destroy(&mutex));
    }
}

static atomic_bool owner_has_it;
static atomic_int medium_came_at, owner_done_at, instant;

static void *owner(void *unused)
{
    become_fifo(10);
    GIVES(0, pthread_mutex_lock(&mutex));
    owner_has_it = true;
    /* The owner works for 60 ms. */
    for (double start = now_ms(CLOCK_THREAD_CPUTIME_ID); now_ms(CLOCK_THREAD_CPUTIME_ID) - start < 60;) {
    }
    owner_done_at = ++instant;
    GIVES(0, pthread_mutex_unlock(&mutex));
    return unused;
}

static void *medium(void *unused)
{
    become_fifo(20);
    sleep_ms(20);
    for (double start = now_ms(CLOCK_THREAD_CPUTIME_ID); now_ms(CLOCK_THREAD_CPUTIME_ID) - start < 100;) {
    }
    medium_came_at = ++instant;
    return unused;
}

static void *urgent(void *unused)
{
    become_fifo(30);
    sleep_ms(10);
    GIVES(0, pthread_mutex_lock(&mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    return unused;
}

static void inversion(bool inherits)
{
    become_fifo(40);
    pthread_t threads[3];
    threads[0] = start(owner, NULL);
    while (!owner_has_it)
        sleep_ms(1);
    threads[1] = start(medium, NULL);
    threads[2] = start(urgent, NULL);
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    CHECK((owner_done_at < medium_came_at) == inherits);
}

int main(int arguments, char **argument)
{
    CHECK(arguments > 1);
    alarm(60);
    on_one_cpu();
    if (strcmp(argument[1], "order") == 0)
        in_order();
    else
        inversion(strcmp(argument[1], "inherits") == 0);
    return 0;
}
