/* Owners that end: threads, processes that exit, processes that are killed at any point, processes that end after each
 * instruction of a lock and an unlock, and a process whose unlock the kernel refuses. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>

#ifdef MUTANT
enum { ROBUST = 0, PATIENCE_MS = 200 };
#else
enum { ROBUST = 1, PATIENCE_MS = WAIT_S_MAX * 1000 };
#endif

struct shared {
    lw_mutex_t mutex, other;
    /* Equal, unless a thread ended between its changes to the two. */
    volatile long first, second;
};

static struct shared *shared;

static int lock(void) {
    struct timespec time = ms(PATIENCE_MS);
    return lw_mutex_lock_for(&shared->mutex, &time);
}

static void *takes_and_ends(void *unused) {
    EXPECT(0, lock());
    return unused;
}

static void *is_refused(void *unused) {
    EXPECT(ENOTRECOVERABLE, lock());
    EXPECT(ENOTRECOVERABLE, lw_mutex_trylock(&shared->mutex));
    return unused;
}

static void heal_and_give_up(void) {
    EXPECT(EINVAL, lw_mutex_make_consistent(&shared->mutex));
    join(start(takes_and_ends, NULL));
    EXPECT(EOWNERDEAD, lock());
    EXPECT(0, lw_mutex_make_consistent(&shared->mutex));
    EXPECT(EINVAL, lw_mutex_make_consistent(&shared->mutex));
    EXPECT(0, lw_mutex_unlock(&shared->mutex));
    EXPECT(0, lock());
    EXPECT(0, lw_mutex_unlock(&shared->mutex));
    join(start(takes_and_ends, NULL));
    EXPECT(EOWNERDEAD, lw_mutex_trylock(&shared->mutex));
    EXPECT(0, lw_mutex_unlock(&shared->mutex));
    join(start(is_refused, NULL));
    EXPECT(ENOTRECOVERABLE, lock());
    EXPECT(0, lw_mutex_destroy(&shared->mutex));
}

static void works(void) {
    for (;;) {
        int taken = lock();
        CHECK(taken == 0 || taken == EOWNERDEAD);
        if (taken == EOWNERDEAD) {
            shared->second = shared->first;
            EXPECT(0, lw_mutex_make_consistent(&shared->mutex));
        }
        shared->first++;
        shared->second++;
        EXPECT(0, lw_mutex_unlock(&shared->mutex));
    }
}

/* Of two processes that work, one is killed at a time. The others continue, whatever it was doing. */
static void killed_at_any_point(void) {
    uint64_t state = 7;
    int died = 0, kills = full_or(200, 25);
    for (int round = 0; round < kills; round++) {
        pid_t children[2];
        for (int i = 0; i < 2; i++) {
            children[i] = fork();
            CHECK(children[i] >= 0);
            if (children[i] == 0) {
                begin_test();
                works();
            }
        }
        state = state * 6364136223846793005u + 1442695040888963407u;
        struct timespec nap = {0, (long)(state >> 44)}; /* Up to a millisecond. */
        nanosleep(&nap, NULL);
        for (int i = 0; i < 2; i++) {
            int status;
            CHECK(kill(children[i], SIGKILL) == 0 && waitpid(children[i], &status, 0) == children[i]);
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            int taken = lock();
            CHECK(taken == 0 || taken == EOWNERDEAD);
            died += taken == EOWNERDEAD;
            if (taken == 0) {
                CHECK(shared->first == shared->second);
            } else {
                shared->second = shared->first;
                EXPECT(0, lw_mutex_make_consistent(&shared->mutex));
            }
            EXPECT(0, lw_mutex_unlock(&shared->mutex));
        }
    }
    printf("%d kills, %d of an owner, %ld rounds of work\n", 2 * kills, died, shared->first);
}

/* Locks what the process has left. Returns whether it had ended as the owner. */
static int heal(lw_mutex_t *mutex) {
    struct timespec time = ms(PATIENCE_MS);
    int taken = lw_mutex_lock_for(mutex, &time);
    CHECK(taken == 0 || taken == EOWNERDEAD);
    if (taken == EOWNERDEAD) {
        EXPECT(0, lw_mutex_make_consistent(mutex));
    }
    return taken == EOWNERDEAD;
}

/* A fork takes long under AddressSanitizer. */
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)

static volatile int steps, steps_max, is_done;

/* Ends the process after `steps_max` instructions. */
static void on_trap(int signal, siginfo_t *info, void *context) {
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    (void)signal;
    (void)info;
    if (is_done) {
        *flags &= ~(greg_t)0x100;
        return;
    }
    if (steps++ == steps_max) {
        _exit(0);
    }
    *flags |= 0x100;
}

/* Executes a section beside the other mutex, one instruction at a time. Its unlock finds the mutex first in the list of
 * the thread, or behind the other one. */
static void section_in_steps(int is_first) {
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
    if (is_first) {
        EXPECT(0, lw_mutex_lock(&shared->other));
    }
    __asm__ volatile("int3" : : : "memory");
    EXPECT(0, lw_mutex_lock(&shared->mutex));
    if (!is_first) {
        EXPECT(0, lw_mutex_lock(&shared->other));
    }
    shared->first++;
    shared->second++;
    EXPECT(0, lw_mutex_unlock(&shared->mutex));
    is_done = 1;
    _exit(3);
}

static void ended_after_each_instruction(int is_first) {
    int died = 0, died_between = 0, status = 0;
    /* The loader finds these two functions at their first call, which takes it many instructions. */
    EXPECT(0, lw_mutex_lock(&shared->mutex));
    EXPECT(0, lw_mutex_unlock(&shared->mutex));
    for (steps_max = 0; status == 0; steps_max++) {
        pid_t child = fork();
        CHECK(child >= 0 && steps_max < 20000);
        if (child == 0) {
            begin_test();
            section_in_steps(is_first);
        }
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
        int is_owner = heal(&shared->mutex), is_consistent = shared->first == shared->second;
        CHECK(is_owner || is_consistent);
        died += is_owner;
        died_between += !is_consistent;
        shared->second = shared->first;
        int has_other = heal(&shared->other);
        CHECK(has_other || !is_first);
        EXPECT(0, lw_mutex_unlock(&shared->other));
        EXPECT(0, lw_mutex_unlock(&shared->mutex));
    }
    CHECK(WEXITSTATUS(status) == 3 && died_between > 0);
    printf("%d instructions, %d of an owner\n", steps_max, died);
}

#else

static void ended_after_each_instruction(int is_first) {
    (void)is_first;
}

#endif

/* From now on, the kernel refuses to unlock a mutex that inherits, as a sandbox can. */
static void refuse_unlocks(void) {
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
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

/* A mutex that is not recoverable stays locked if its unlock is refused. Its owner keeps its other mutexes. */
static void ended_after_a_refused_unlock(void) {
    lw_mutex_options_t options = {.robust = ROBUST, .shared = 1, .kernel_owned = 1};
    EXPECT(0, lw_mutex_init(&shared->mutex, &options));
    options.kernel_owned = 0;
    EXPECT(0, lw_mutex_init(&shared->other, &options));
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        begin_test();
        join(start(takes_and_ends, NULL));
        EXPECT(EOWNERDEAD, lock());
        EXPECT(0, lw_mutex_unlock(&shared->mutex));
        EXPECT(0, lw_mutex_lock(&shared->other));
        refuse_unlocks();
        EXPECT(EPERM, lock());
        EXPECT(EPERM, lw_mutex_unlock(&shared->mutex));
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(heal(&shared->other));
    EXPECT(0, lw_mutex_unlock(&shared->other));
    EXPECT(ENOTRECOVERABLE, lock());
}

int main(void) {
    begin_test();
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    for (unsigned bits = 0; bits < 8; bits++) {
        lw_mutex_options_t options = {.robust = ROBUST, .shared = 1};
        options.protocol = bits & 1 ? LW_PROTOCOL_NONE : LW_PROTOCOL_INHERIT;
        options.unlock = bits & 2 ? LW_UNLOCK_SERIAL : LW_UNLOCK_PARALLEL;
        options.recursive = bits >> 2 & 1;
        EXPECT(0, lw_mutex_init(&shared->mutex, &options));
        heal_and_give_up();
        if (bits < 4) {
            EXPECT(0, lw_mutex_init(&shared->mutex, &options));
            shared->first = shared->second = 0;
            killed_at_any_point();
            EXPECT(0, lw_mutex_destroy(&shared->mutex));
        }
        if (bits < 2) {
            EXPECT(0, lw_mutex_init(&shared->mutex, &options));
            EXPECT(0, lw_mutex_init(&shared->other, &options));
            ended_after_each_instruction(0);
            ended_after_each_instruction(1);
            EXPECT(0, lw_mutex_destroy(&shared->other));
            EXPECT(0, lw_mutex_destroy(&shared->mutex));
        }
    }
    ended_after_a_refused_unlock();
    return 0;
}
