/* A futex call out of which the calling thread may be cancelled.

   Cancellation unwinds the stack from wherever it strikes. Here that is C without anything to clean up but `cancelled`, which the C library
   finds by its own list, not by the unwinder: compiled without -fexceptions, this holds at every instruction. */

#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("hidden")))
long lockwright_suspend(const long arguments[6], void (*cancelled)(void *), void *wait)
{
    int type;
    int before = errno;
    volatile long answer;

    pthread_cleanup_push(cancelled, wait);
    /* A thread that is to be cancelled is so here, or in the call. */
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    answer = syscall(SYS_futex, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_pop(0);

    if (answer < 0)
        answer = -(long)errno;
    errno = before;
    return answer;
}
