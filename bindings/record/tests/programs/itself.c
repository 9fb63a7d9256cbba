/* A program that is linked with the recorder, and records a part of what it does. The argument is the folder. */
#include "check.h"
#include "../../include/lockwright_record.h"
#include <errno.h>

pthread_mutex_t before = PTHREAD_MUTEX_INITIALIZER, during = PTHREAD_MUTEX_INITIALIZER, after = PTHREAD_MUTEX_INITIALIZER;

static void *works(void *unused)
{
    pthread_setname_np(pthread_self(), "worker");
    pthread_mutex_lock(&during);
    for (volatile int i = 0; i < 1000000; i++) {}
    pthread_mutex_unlock(&during);
    return unused;
}

static void take(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
}

int main(int arguments, char **argument)
{
    CHECK(arguments > 1);
    take(&before);
    CHECK(lw_record_stop() == ENOENT);
    CHECK(lw_record_start(NULL) == EINVAL);
    CHECK(lw_record_start("/proc/no/such/folder") != 0);
    CHECK(lw_record_start(argument[1]) == 0);
    CHECK(lw_record_start(argument[1]) == EBUSY);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, works, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(lw_record_stop() == 0);
    CHECK(lw_record_stop() == ENOENT && lw_record_start(argument[1]) == EBUSY);
    take(&after);
    return 0;
}
