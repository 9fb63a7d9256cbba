/* Two threads lock two mutexes in opposite orders. Arguments: the kind of the mutexes (`inherit`, `recursive` or `plain`), and
   the outcome for one of the threads (`refused`), or `waits` if both wait. */
#include "check.h"

static pthread_mutex_t first, second = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static atomic_int refused;

static void *cross(void *is_other)
{
    pthread_setname_np(pthread_self(), is_other ? "crosses 1" : "crosses 0");
    pthread_mutex_t *mine = is_other ? &second : &first, *next = is_other ? &first : &second;
    GIVES(0, pthread_mutex_lock(mine));
    pthread_barrier_wait(&both);
    int answer = pthread_mutex_lock(next);
    if (answer == EDEADLK)
        refused++;
    else
        GIVES(0, pthread_mutex_unlock(next));
    GIVES(0, pthread_mutex_unlock(mine));
    return NULL;
}

int main(int arguments, char **argument)
{
    CHECK(arguments > 2);
    int protocol = strcmp(argument[1], "inherit") == 0 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE;
    int type = strcmp(argument[1], "recursive") == 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL;
    make(&first, type, protocol, PTHREAD_MUTEX_STALLED, 0);
    if (strcmp(argument[1], "plain") != 0)
        make(&second, type, protocol, PTHREAD_MUTEX_STALLED, 0);
    pthread_barrier_init(&both, NULL, 2);
    pthread_t threads[2] = { start(cross, NULL), start(cross, (void *)1) };
    if (strcmp(argument[2], "refused") == 0) {
        join(threads[0]);
        join(threads[1]);
        CHECK(refused == 1);
        return 0;
    }
    struct timespec later = in_ms(CLOCK_REALTIME, 300);
    GIVES(ETIMEDOUT, pthread_timedjoin_np(threads[0], NULL, &later));
    GIVES(ETIMEDOUT, pthread_timedjoin_np(threads[1], NULL, &later));
    CHECK(refused == 0);
    return 0;
}
