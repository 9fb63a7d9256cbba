/* A futex call in which the calling thread may be cancelled.

   Cancellation unwinds the stack from any instruction. In this C function, the only cleanup is `cancelled`. The C
   library finds it by its own list, not by the unwinder, because this file is compiled without -fexceptions. So it
   is found at every instruction. */

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
    /* A thread that has been cancelled before is cancelled here or in the call. */
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
    answer = syscall(SYS_futex, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5]);
    pthread_setcanceltype(type, NULL);
    pthread_cleanup_pop(0);

    if (answer < 0)
        answer = -(long)errno;
    errno = before;
    return answer;
}
