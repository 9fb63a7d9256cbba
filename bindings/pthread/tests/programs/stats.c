/* A thread waits for a mutex that another thread holds for 20 ms, and a recursive mutex is locked twice; another thread
   tries to unlock it, and 20 ms later its owner does. With the argument
   `signal`, the program asks for the statistics itself while the first mutex is held, on a small stack. With `in` and a
   folder, it starts itself again there, with a path of the statistics that is relative and no text. With `away`, it
   leaves its folder. */
#include "check.h"
#include <signal.h>
#include <sys/auxv.h>

/* What the report may need besides the frame of the signal. */
enum { REPORT_BYTES = 2048, STACK_BYTES = 1 << 16 };
static unsigned char stack[STACK_BYTES];

static void signals(void)
{
    memset(stack, 0xa5, sizeof stack);
    stack_t use = { .ss_sp = stack, .ss_size = sizeof stack }, before;
    CHECK(sigaltstack(&use, &before) == 0);
    CHECK(raise(SIGUSR2) == 0);
    CHECK(sigaltstack(&before, NULL) == 0);
    size_t untouched = 0;
    while (untouched < sizeof stack && stack[untouched] == 0xa5)
        untouched++;
    size_t used = sizeof stack - untouched, frame = getauxval(AT_MINSIGSTKSZ);
    CHECK(used > 0);
    CHECK(frame == 0 || used <= frame + REPORT_BYTES);
}

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
        signals();
    GIVES(0, pthread_mutex_unlock(&bus));
    return NULL;
}

static void *is_refused(void *unused)
{
    (void)unused;
    GIVES(EPERM, pthread_mutex_unlock(&twice));
    GIVES(EPERM, pthread_cond_wait(&done, &twice));
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
    if (arguments > 2 && strcmp(argument[1], "in") == 0) {
        CHECK(chdir(argument[2]) == 0 && setenv("LOCKWRIGHT_STATS", "\xff-%p", 1) == 0);
        execl("/proc/self/exe", argument[0], "away", NULL);
        CHECK(!"it starts");
    }
    if (arguments > 1 && strcmp(argument[1], "away") == 0)
        CHECK(chdir("/") == 0);
    GIVES(0, pthread_mutex_lock(&twice));
    GIVES(0, pthread_mutex_lock(&twice));
    GIVES(EBUSY, pthread_mutex_trylock(&twice) == 0 ? EBUSY : 0);
    GIVES(0, pthread_mutex_unlock(&twice));
    GIVES(0, pthread_mutex_unlock(&twice));
    join(start(is_refused, NULL));
    sleep_ms(20);
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
