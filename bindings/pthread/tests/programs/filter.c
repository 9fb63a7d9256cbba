/* A filter of system calls that refuses futexes with inheritance, and ends the process at sched_getattr, as the sandbox
   of Chromium does: condition variables still work. Argument: the error for futexes. */
#include "check.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static pthread_mutex_t mutex;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static bool go;

static void *wait_for_go(void *unused)
{
    GIVES(0, pthread_mutex_lock(&mutex));
    while (!go)
        GIVES(0, pthread_cond_wait(&cond, &mutex));
    GIVES(0, pthread_mutex_unlock(&mutex));
    return unused;
}

#define REFUSE(operation) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, operation, 0, 1), BPF_STMT(BPF_RET | BPF_K, refusal)

int main(int count, char **arguments)
{
    CHECK(count == 2);
    alarm(20);
    make(&mutex, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_STALLED, 0);
    unsigned refusal = SECCOMP_RET_ERRNO | atoi(arguments[1]);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_getattr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK),
        REFUSE(FUTEX_WAIT_REQUEUE_PI),
        REFUSE(FUTEX_CMP_REQUEUE_PI),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
    int policy;
    struct sched_param param;
    GIVES(0, pthread_getschedparam(pthread_self(), &policy, &param));
    CHECK(policy == SCHED_OTHER && param.sched_priority == 0);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        threads[i] = start(wait_for_go, NULL);
    sleep_ms(50);
    GIVES(0, pthread_mutex_lock(&mutex));
    go = true;
    GIVES(0, pthread_cond_broadcast(&cond));
    GIVES(0, pthread_mutex_unlock(&mutex));
    for (int i = 0; i < 3; i++)
        join(threads[i]);
    return 0;
}
