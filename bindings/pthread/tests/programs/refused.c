/* A filter of system calls that refuses to unlock futexes with inheritance: a mutex that is not recoverable stays
   locked then, and the other robust mutexes of its owner are still given up when the owner ends. */
#include "check.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static struct {
    pthread_mutex_t lost, kept;
} *mutexes;

static void *end_with_it(void *unused)
{
    GIVES(0, pthread_mutex_lock(&mutexes->lost));
    return unused;
}

static void refuse_unlocks(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[1])),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, FUTEX_CMD_MASK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, FUTEX_UNLOCK_PI, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void owner(void)
{
    join(start(end_with_it, NULL));
    GIVES(EOWNERDEAD, pthread_mutex_lock(&mutexes->lost));
    /* Not made consistent: it cannot be recovered. */
    GIVES(0, pthread_mutex_unlock(&mutexes->lost));
    GIVES(0, pthread_mutex_lock(&mutexes->kept));
    refuse_unlocks();
    CHECK(pthread_mutex_lock(&mutexes->lost) != 0);
    CHECK(pthread_mutex_unlock(&mutexes->lost) != 0);
    _exit(0);
}

int main(void)
{
    alarm(20);
    mutexes = shared_memory(sizeof *mutexes);
    make(&mutexes->lost, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_INHERIT, PTHREAD_MUTEX_ROBUST, 1);
    make(&mutexes->kept, PTHREAD_MUTEX_NORMAL, PTHREAD_PRIO_NONE, PTHREAD_MUTEX_ROBUST, 1);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        owner();
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    struct timespec limit = in_ms(CLOCK_REALTIME, 2000);
    GIVES(EOWNERDEAD, pthread_mutex_timedlock(&mutexes->kept, &limit));
    return 0;
}
