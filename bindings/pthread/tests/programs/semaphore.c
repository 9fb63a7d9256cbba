/* Normal mutexes as semaphores: a thread that locks one twice is released by another thread. */
#include "check.h"

static pthread_mutex_t first = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;

static void *release_first(void *unused)
{
    sleep_ms(20);
    GIVES(0, pthread_mutex_unlock(&first));
    return unused;
}

/* Each thread unlocks the mutex that the other one waits for, as the owner of neither. */
static void *answer(void *unused)
{
    for (int i = 0; i < 200; i++) {
        GIVES(0, pthread_mutex_lock(&first));
        GIVES(0, pthread_mutex_unlock(&second));
    }
    return unused;
}

int main(void)
{
    alarm(20);
    GIVES(0, pthread_mutex_lock(&first));
    pthread_t thread = start(release_first, NULL);
    GIVES(0, pthread_mutex_lock(&first));
    join(thread);
    GIVES(0, pthread_mutex_lock(&second));
    thread = start(answer, NULL);
    for (int i = 0; i < 200; i++) {
        GIVES(0, pthread_mutex_unlock(&first));
        GIVES(0, pthread_mutex_lock(&second));
    }
    join(thread);
    return 0;
}
