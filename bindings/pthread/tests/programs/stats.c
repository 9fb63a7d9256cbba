/* A thread waits for a mutex that another thread holds for 20 ms, and a recursive mutex is locked twice. With the argument
   `signal`, the program asks for the statistics itself while the first mutex is held. */
#include "check.h"
#include <signal.h>

pthread_mutex_t bus = PTHREAD_MUTEX_INITIALIZER, twice = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static atomic_int is_held, control;
static int asks, is_done;

static void *logs(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "logging");
    GIVES(0, pthread_mutex_lock(&bus));
    is_held = 1;
    while (!control)
        sched_yield();
    until_asleep(control);
    sleep_ms(20);
    if (asks)
        raise(SIGUSR2);
    GIVES(0, pthread_mutex_unlock(&bus));
    return NULL;
}

static void *controls(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "control");
    control = gettid();
    GIVES(0, pthread_mutex_lock(&bus));
    is_done = 1;
    GIVES(0, pthread_cond_signal(&done));
    GIVES(0, pthread_mutex_unlock(&bus));
    return NULL;
}

int main(int arguments, char **argument)
{
    asks = arguments > 1 && strcmp(argument[1], "signal") == 0;
    GIVES(0, pthread_mutex_lock(&twice));
    GIVES(0, pthread_mutex_lock(&twice));
    GIVES(EBUSY, pthread_mutex_trylock(&twice) == 0 ? EBUSY : 0);
    for (int i = 0; i < 3; i++)
        GIVES(0, pthread_mutex_unlock(&twice));
    pthread_t first = start(logs, NULL);
    while (!is_held)
        sched_yield();
    pthread_t second = start(controls, NULL);
    join(first);
    GIVES(0, pthread_mutex_lock(&bus));
    while (!is_done)
        GIVES(0, pthread_cond_wait(&done, &bus));
    GIVES(0, pthread_mutex_unlock(&bus));
    join(second);
    return 0;
}
