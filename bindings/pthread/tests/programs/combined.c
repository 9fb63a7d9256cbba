/* A shared condition variable with a private mutex, and the reverse, in one process. */
#include "check.h"

static pthread_mutex_t mutex;
static pthread_cond_t cond;
static int turn, cleaned;

static void *play(void *argument)
{
    int me = argument != NULL;
    for (int i = 0; i < 2000; i++) {
        GIVES(0, pthread_mutex_lock(&mutex));
        while (turn != me)
            GIVES(0, pthread_cond_wait(&cond, &mutex));
        turn = 1 - me;
        GIVES(0, i % 2 ? pthread_cond_signal(&cond) : pthread_cond_broadcast(&cond));
        GIVES(0, pthread_mutex_unlock(&mutex));
    }
    return NULL;
}

static void clean_up(void *unused)
{
    (void)unused;
    cleaned++;
    GIVES(0, pthread_mutex_unlock(&mutex));
}

static void *be_cancelled(void *unused)
{
    GIVES(0, pthread_mutex_lock(&mutex));
    pthread_cleanup_push(clean_up, NULL);
    for (;;)
        GIVES(0, pthread_cond_wait(&cond, &mutex));
    pthread_cleanup_pop(0);
    return unused;
}

int main(void)
{
    alarm(60);
    for (int protocol = PTHREAD_PRIO_NONE; protocol <= PTHREAD_PRIO_INHERIT; protocol++) {
        for (int shared_cond = 0; shared_cond < 2; shared_cond++) {
            pthread_condattr_t attributes;
            make(&mutex, PTHREAD_MUTEX_NORMAL, protocol, PTHREAD_MUTEX_STALLED, !shared_cond);
            GIVES(0, pthread_condattr_init(&attributes));
            GIVES(0, pthread_condattr_setpshared(&attributes, shared_cond));
            GIVES(0, pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC));
            GIVES(0, pthread_cond_init(&cond, &attributes));
            pthread_t threads[] = { start(play, NULL), start(play, &turn) };
            join(threads[0]);
            join(threads[1]);
            GIVES(0, pthread_mutex_lock(&mutex));
            struct timespec limit = in_ms(CLOCK_MONOTONIC, 5);
            GIVES(ETIMEDOUT, pthread_cond_timedwait(&cond, &mutex, &limit));
            limit = in_ms(CLOCK_REALTIME, 5);
            GIVES(ETIMEDOUT, pthread_cond_clockwait(&cond, &mutex, CLOCK_REALTIME, &limit));
            GIVES(0, pthread_mutex_unlock(&mutex));
            cleaned = 0;
            pthread_t thread = start(be_cancelled, NULL);
            sleep_ms(10);
            GIVES(0, pthread_cancel(thread));
            CHECK(join(thread) == PTHREAD_CANCELED && cleaned == 1);
            GIVES(0, pthread_cond_destroy(&cond));
            GIVES(0, pthread_mutex_destroy(&mutex));
        }
    }
    return 0;
}
