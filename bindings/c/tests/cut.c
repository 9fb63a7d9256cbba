/* A signal cuts invalidated sections short: a long section of a less urgent thread meets commits of more urgent
   threads, signals, and nested handlers. Needs permission for SCHED_FIFO. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { LOW = 10, MIDDLE = 20, URGENT = 30, CONDUCTOR = 40 };

#define CUTS (SIGRTMIN + 3)
#define NOISE (SIGRTMIN + 4)
#define NOISE_INSIDE (SIGRTMIN + 5)

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* The CPU of all threads except the urgent one, and the urgent thread's CPU in some runs. */
static int processor, other_processor;

static void bind_to(int cpu) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* Returns the first usable CPU from `cpu` on, or `none`. */
static int cpu_from(int cpu, int none) {
    cpu_set_t all;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    while (cpu < CPU_SETSIZE && !CPU_ISSET(cpu, &all)) {
        cpu++;
    }
    return cpu < CPU_SETSIZE ? cpu : none;
}

static void become(int level, int cpu) {
    struct sched_param param = {.sched_priority = level};
    CHECK(sched_setscheduler(0, SCHED_FIFO, &param) == 0);
    bind_to(cpu);
}

/* Called by a thread before it ends: the address sanitizer spins for its own locks when threads end, and a thread that
   spins must not keep the CPU from one that holds the lock. */
static void become_ordinary(void) {
    struct sched_param param = {.sched_priority = 0};
    CHECK(sched_setscheduler(0, SCHED_OTHER, &param) == 0);
}

static void works(long rounds) {
    for (volatile long round = 0; round < rounds; round++) {
    }
}

enum { NEAREST, DOWN, UP };

/* Returns the rounding mode of the thread, which both of its floating-point units must share. Changes it to `way`,
   unless `way` is -1. */
static int rounds(int way) {
#ifdef __x86_64__
    uint32_t vectors = __builtin_ia32_stmxcsr();
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    CHECK((vectors >> 13 & 3) == (x87 >> 10 & 3u));
    if (way >= 0) {
        __builtin_ia32_ldmxcsr((vectors & ~0x6000u) | (uint32_t)way << 13);
        x87 = (uint16_t)((x87 & ~0xc00u) | (uint32_t)way << 10);
        __asm__ volatile("fldcw %0" : : "m"(x87));
    }
    return (int)(vectors >> 13 & 3);
#else
    static int now_by;
    int before = now_by;
    now_by = way < 0 ? before : way;
    return before;
#endif
}

/* --- Many threads under load --- */

static lw_ics_t ics;
static volatile int over;
static volatile sig_atomic_t handled, handled_inside, began_inside;
/* Data that only the signal protects. */
static volatile uint64_t unprotected;

struct sections {
    long work;
    uint64_t attempts, ends, commits;
};

static int adds_after_work(lw_ics_section_t *section, void *argument) {
    struct sections *it = argument;
    uint64_t left = 0, right = 0, other = unprotected;
    int answer;
    it->attempts++;
    if ((answer = lw_ics_read(section, 0, &left)) || (answer = lw_ics_read(section, 1, &right))) {
        return answer;
    }
    CHECK(left == right);
    if ((answer = lw_ics_write(section, 0, left + 1))) {
        return answer;
    }
    works(it->work);
    if ((answer = lw_ics_write(section, 1, right + 1))) {
        return answer;
    }
    it->ends++;
    unprotected = other + 1;
    return 0;
}

static int adds_at_once(lw_ics_section_t *section, void *argument) {
    uint64_t left = 0, right = 0;
    int answer;
    (void)argument;
    if ((answer = lw_ics_read(section, 0, &left)) || (answer = lw_ics_read(section, 1, &right))) {
        return answer;
    }
    CHECK(left == right);
    answer = lw_ics_write(section, 0, left + 1);
    return answer ? answer : lw_ics_write(section, 1, right + 1);
}

static int reads(lw_ics_section_t *section, void *argument) {
    uint64_t *words = argument;
    int answer = lw_ics_read(section, 0, &words[0]);
    return answer ? answer : lw_ics_read(section, 1, &words[1]);
}

/* Long handlers, one inside the other, that do not block the signal. A handler that begins must end: a cut must not
   leave it. */
static void noise(int signal) {
    if (signal == NOISE) {
        sig_atomic_t before = began_inside;
        works(2000);
        if (handled % 2) {
            raise(NOISE_INSIDE);
        }
        works(2000);
        CHECK(handled_inside - before <= began_inside);
        handled++;
    } else {
        began_inside++;
        works(2000);
        handled_inside++;
    }
}

static void on_noise(int signal, int flags) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = noise;
    action.sa_flags = flags;
    CHECK(sigaction(signal, &action, NULL) == 0);
}

struct stress {
    int urgent_cpu;
    pid_t low;
    struct sections low_did, middle_did, urgent_did;
    lw_ics_stats_t low_stats, middle_stats;
    uint64_t noises;
};

/* The statistics count what the thread did, invalidated attempts included. */
static void balance(const struct sections *did, const lw_ics_stats_t *stats) {
    CHECK(stats->commits == did->commits);
    CHECK(stats->entries == stats->commits + stats->conflicts + stats->restarts);
    CHECK(stats->cuts <= stats->restarts);
    /* An attempt that committed or was refused came to its end. An attempt that was cut did not, except for a few
       that were cut in their last instructions. */
    uint64_t last = did->ends - stats->commits - stats->conflicts;
    CHECK(did->ends >= stats->commits + stats->conflicts && last <= stats->cuts / 10);
    CHECK(did->attempts <= stats->entries);
}

static char stack_of_handlers[64 * 1024];

static void *is_low(void *argument) {
    struct stress *stress = argument;
    lw_ics_slot_t slot;
    become(LOW, processor);
    stack_t others = {.ss_sp = stack_of_handlers, .ss_size = sizeof stack_of_handlers}, before;
    CHECK(sigaltstack(&others, &before) == 0);
    stress->low = (pid_t)syscall(SYS_gettid);
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    while (!over) {
        /* Usually too long for the time that the other threads leave, but short now and then. */
        stress->low_did.work = stress->low_did.commits % 8 ? 5000 : 200;
        EXPECT(0, lw_ics_update_cut(&slot, adds_after_work, &stress->low_did));
        stress->low_did.commits++;
    }
    /* No handler executes on that stack now: a cut does not leave it in use. */
    CHECK(sigaltstack(&before, NULL) == 0);
    EXPECT(0, lw_ics_slot_stats(&slot, &stress->low_stats));
    EXPECT(0, lw_ics_slot_close(&slot));
    balance(&stress->low_did, &stress->low_stats);
    become_ordinary();
    return NULL;
}

static void add(struct timespec *time, long ns) {
    time->tv_nsec += ns;
    if (time->tv_nsec >= 1000000000) {
        time->tv_nsec -= 1000000000;
        time->tv_sec++;
    }
}

static void sleep_until(struct timespec *time, long ns) {
    add(time, ns);
    /* If waking up takes longer than the interval, the other threads still get their turn. */
    struct timespec current = now(CLOCK_MONOTONIC);
    if (time->tv_sec < current.tv_sec || (time->tv_sec == current.tv_sec && time->tv_nsec < current.tv_nsec)) {
        *time = current;
        add(time, ns);
    }
    /* The last section may be over when its signal arrives, which then ends a sleep. */
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, time, NULL) == EINTR) {
    }
}

static void *is_middle(void *argument) {
    struct stress *stress = argument;
    lw_ics_slot_t slot;
    become(MIDDLE, processor);
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    stress->middle_did.work = 2000;
    for (struct timespec time = now(CLOCK_MONOTONIC); !over; sleep_until(&time, 173000)) {
        EXPECT(0, lw_ics_update_cut(&slot, adds_after_work, &stress->middle_did));
        stress->middle_did.commits++;
    }
    EXPECT(0, lw_ics_slot_stats(&slot, &stress->middle_stats));
    EXPECT(0, lw_ics_slot_close(&slot));
    balance(&stress->middle_did, &stress->middle_stats);
    become_ordinary();
    return NULL;
}

static void *is_urgent(void *argument) {
    struct stress *stress = argument;
    lw_ics_slot_t slot;
    become(URGENT, stress->urgent_cpu);
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    for (struct timespec time = now(CLOCK_MONOTONIC); !over; sleep_until(&time, 61000)) {
        EXPECT(0, lw_ics_update(&slot, adds_at_once, NULL));
        stress->urgent_did.commits++;
        unprotected++;
        /* Only one signal at a time: handlers that block no signals would fill the stack. */
        if (stress->urgent_did.commits % 7 == 0 && stress->low && (uint64_t)handled == stress->noises) {
            CHECK(syscall(SYS_tgkill, getpid(), stress->low, NOISE) == 0);
            stress->noises++;
        }
    }
    EXPECT(0, lw_ics_slot_close(&slot));
    become_ordinary();
    return NULL;
}

static void stress(uint32_t commit, int urgent_cpu, int is_cut, int flags) {
    struct stress stress;
    struct timespec nap = ms(full_or(700, 350));
    uint64_t words[2] = {0, 1};
    memset(&stress, 0, sizeof stress);
    stress.urgent_cpu = urgent_cpu;
    over = 0;
    handled = handled_inside = began_inside = 0;
    unprotected = 0;
    on_noise(NOISE, flags);
    on_noise(NOISE_INSIDE, flags);
    EXPECT(0, lw_ics_init(&ics, commit, (uint32_t)processor));
    if (is_cut) {
        EXPECT(0, lw_ics_set_signal(&ics, CUTS));
    }
    pthread_t urgent = start(is_urgent, &stress), middle = start(is_middle, &stress), low = start(is_low, &stress);
    nanosleep(&nap, NULL);
    over = 1;
    join(low);
    join(middle);
    join(urgent);
    uint64_t all = stress.low_did.commits + stress.middle_did.commits + stress.urgent_did.commits;
    EXPECT(0, lw_ics_query(&ics, reads, words));
    /* No update is lost or doubled, and no handler was left in its middle. */
    CHECK(words[0] == all && words[1] == all);
    CHECK((uint64_t)handled == stress.noises && began_inside == handled_inside);
    lw_ics_stats_t *low_stats = &stress.low_stats;
    printf("commits by %u, urgent on %d, %s, handlers %#x: %llu commits; low: %llu sections in %llu attempts, invalidated: %llu at their end, %llu cut; unprotected %+lld\n",
           commit, urgent_cpu, is_cut ? "cut" : "not cut", (unsigned)flags, (unsigned long long)all,
           (unsigned long long)low_stats->commits, (unsigned long long)low_stats->entries,
           (unsigned long long)low_stats->conflicts, (unsigned long long)low_stats->cuts, (long long)(unprotected - all));
#ifdef MUTANT
    /* The signal alone does not protect the data: it comes too late while other handlers execute, and in the last
       instructions of a body. */
    CHECK(!is_cut || unprotected == all);
#endif
    if (is_cut) {
        CHECK(low_stats->cuts > 100);
        /* The sanitizer's frames are large and contain old words of other frames, so a section is sometimes not cut. */
        if (urgent_cpu == processor && !SANITIZED) {
            CHECK(low_stats->conflicts < low_stats->cuts / 10);
        }
    } else {
        CHECK(low_stats->cuts == 0 && low_stats->conflicts > 100);
    }
    EXPECT(0, lw_ics_destroy(&ics));
}

/* --- One section at a time --- */

static lw_ics_t other;
static lw_ics_slot_t slot, other_slot;

/* A more urgent thread, which commits to `where` as soon as it is told to. */
static struct {
    sem_t ready, go;
    lw_ics_t *where;
    int is_over;
} interrupter;

static void *interrupts(void *unused) {
    become(URGENT, processor);
    sem_post(&interrupter.ready);
    for (;;) {
        lw_ics_slot_t mine;
        while (sem_wait(&interrupter.go)) {
        }
        if (interrupter.is_over) {
            become_ordinary();
            return unused;
        }
        EXPECT(0, lw_ics_slot_open(interrupter.where, &mine));
        EXPECT(0, lw_ics_update(&mine, adds_at_once, NULL));
        EXPECT(0, lw_ics_slot_close(&mine));
    }
}

static void interrupt(lw_ics_t *where) {
    interrupter.where = where;
    sem_post(&interrupter.go);
}

static lw_ics_stats_t stats_of(lw_ics_slot_t *of) {
    lw_ics_stats_t stats;
    EXPECT(0, lw_ics_slot_stats(of, &stats));
    return stats;
}

static uint64_t value_of(lw_ics_t *of) {
    uint64_t words[2] = {0, 1};
    EXPECT(0, lw_ics_query(of, reads, words));
    CHECK(words[0] == words[1]);
    return words[0];
}

struct told {
    int attempts, went_on;
    int (*does)(lw_ics_section_t *section, struct told *it);
};

/* The first attempt may be cut in `does`. */
static int is_told(lw_ics_section_t *section, void *argument) {
    struct told *it = argument;
    int answer = 0;
    if (it->attempts++ == 0) {
        answer = it->does(section, it);
        it->went_on++;
    }
    return answer ? answer : adds_at_once(section, NULL);
}

static int is_interrupted(lw_ics_section_t *section, struct told *it) {
    (void)section, (void)it;
    /* A function that computes may do this. */
    rounds(UP);
    interrupt(&ics);
    return 0;
}

static int has_much_on_the_stack(lw_ics_section_t *section, struct told *it) {
    volatile char much[20000];
    (void)section, (void)it;
    /* Otherwise old frames of signals there would prevent the cut. */
    for (size_t i = 0; i < sizeof much; i++) {
        much[i] = 0;
    }
    interrupt(&ics);
    return much[7];
}

/* Receives the signal without a commit. */
static int is_in_order(lw_ics_section_t *section, struct told *it) {
    (void)section, (void)it;
    CHECK(raise(CUTS) == 0);
    return 0;
}

static void interrupts_in_a_handler(int signal) {
    (void)signal;
    interrupt(&ics);
    handled++;
}

#ifdef __x86_64__
/* The return from a handler: the system call sigreturn. */
void way_back(void);
__asm__(".pushsection .text\n.globl way_back\n.type way_back, @function\nway_back:\nmov $15, %eax\nsyscall\n.popsection\n");
#endif

/* Installs a usual handler (0), one that does not block its own signal (1), or one with its own return code (2). */
static void install(int way) {
    struct sigaction action = {.sa_handler = interrupts_in_a_handler, .sa_flags = way == 1 ? SA_NODEFER : 0};
    CHECK(sigaction(NOISE, &action, NULL) == 0);
#ifdef __x86_64__
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } raw = {interrupts_in_a_handler, 0x04000000, way_back, 0};
    CHECK(way != 2 || syscall(SYS_rt_sigaction, NOISE, &raw, NULL, sizeof raw.mask) == 0);
#endif
}

static int is_interrupted_in_a_handler(lw_ics_section_t *section, struct told *it) {
    (void)section, (void)it;
    CHECK(raise(NOISE) == 0);
    return 0;
}

static int counts_inside(lw_ics_section_t *section, void *argument) {
    struct told *inner = argument;
    if (inner->attempts++ == 0) {
        interrupt(inner->went_on ? &other : &ics);
        inner->went_on += 10;
    }
    return adds_at_once(section, NULL);
}

/* A section of the other object inside this one, which is invalidated meanwhile. */
static int has_another_inside(lw_ics_section_t *section, struct told *it) {
    struct told inner = {.attempts = 0, .went_on = 0};
    (void)it;
    EXPECT(0, lw_ics_update(&other_slot, counts_inside, &inner));
    CHECK(inner.attempts == 1 && inner.went_on == 10);
    EXPECT(EAGAIN, lw_ics_write(section, 5, 5));
    return EAGAIN;
}

static int has_another_to_be_cut_inside(lw_ics_section_t *section, struct told *it) {
    struct told inner = {.attempts = 0, .went_on = 0};
    (void)it;
    EXPECT(0, lw_ics_update_cut(&other_slot, counts_inside, &inner));
    CHECK(inner.attempts == 1 && inner.went_on == 10);
    EXPECT(EAGAIN, lw_ics_check(section));
    return EAGAIN;
}

/* The inner section is invalidated. */
static int has_another_cut_inside(lw_ics_section_t *section, struct told *it) {
    struct told inner = {.attempts = 0, .went_on = 1};
    (void)it;
    EXPECT(0, lw_ics_update_cut(&other_slot, counts_inside, &inner));
    CHECK(inner.attempts == 2 && inner.went_on == 1);
    return lw_ics_check(section);
}

/* The return address of handlers, which the kernel puts on the stack. */
static uintptr_t way_home;

static void looks_where(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    way_home = ((uintptr_t *)context)[-1];
}

/* Leaves words on the stack that look like frames of signals. */
static __attribute__((noinline)) void leaves_ways_home(void) {
    volatile uintptr_t stack[500];
    for (size_t i = 0; i < sizeof stack / sizeof *stack; i++) {
        stack[i] = way_home;
    }
}

/* Leaves a pending exception of the x87 that has not been raised yet. */
static int divides_by_zero(lw_ics_section_t *section, struct told *it) {
    (void)section, (void)it;
#ifdef __x86_64__
    uint16_t x87;
    __asm__ volatile("fnstcw %0" : "=m"(x87));
    x87 &= (uint16_t)~4u;
    __asm__ volatile("fldcw %0; fldz; fld1; fdiv %%st(1), %%st" : : "m"(x87));
#endif
    interrupt(&ics);
#ifdef __x86_64__
    __asm__ volatile("fnclex; fninit");
#endif
    return 0;
}

/* Does not write all of its stack. */
static int has_unwritten_stack(lw_ics_section_t *section, struct told *it) {
    volatile uintptr_t stack[200];
    stack[0] = stack[199] = 0;
    (void)section, (void)it;
    interrupt(&ics);
    return (int)stack[0];
}

static void ends_with(int (*does)(lw_ics_section_t *, struct told *), int attempts, uint64_t cuts, int went_on) {
    struct told it = {.does = does};
    uint64_t before = value_of(&ics), cut_before = stats_of(&slot).cuts;
    sigset_t mask_before, mask;
    rounds(DOWN);
    sigprocmask(SIG_BLOCK, NULL, &mask_before);
    leaves_ways_home();
    EXPECT(0, lw_ics_update_cut(&slot, is_told, &it));
    sigprocmask(SIG_BLOCK, NULL, &mask);
    CHECK(!cuts || rounds(-1) == DOWN);
    for (int number = 1; number <= SIGRTMAX; number++) {
        CHECK(sigismember(&mask, number) == sigismember(&mask_before, number));
    }
    CHECK(it.attempts == attempts && it.went_on == went_on);
    CHECK(stats_of(&slot).cuts - cut_before == cuts);
    CHECK(value_of(&ics) - before == (uint64_t)attempts);
    rounds(NEAREST);
}

static int ends_the_thread(lw_ics_section_t *section, void *argument) {
    (void)section;
    *(int *)argument = 1;
    /* The sanitizer must be told about the end of a thread. */
    if (SANITIZED) {
        return ECANCELED;
    }
    syscall(SYS_exit, 0);
    return 0;
}

static lw_ics_slot_t left_behind;

static void *is_killed(void *argument) {
    EXPECT(0, lw_ics_slot_open(&ics, &left_behind));
    EXPECT(ECANCELED, lw_ics_update_cut(&left_behind, ends_the_thread, argument));
    return NULL;
}

static int forks(lw_ics_section_t *section, void *argument) {
    (void)section;
    pid_t *child = argument;
    if (!*child) {
        *child = fork();
        if (*child == 0) {
            /* The slot names a thread of the parent process. */
            EXPECT(0, lw_ics_slot_open(&ics, &left_behind));
            EXPECT(0, lw_ics_update(&left_behind, adds_at_once, NULL));
            EXPECT(0, lw_ics_update_cut(&left_behind, adds_at_once, NULL));
            EXPECT(0, lw_ics_slot_close(&left_behind));
            _exit(0);
        }
    }
    return adds_at_once(section, NULL);
}

static void ends(void) {
    uint64_t before = value_of(&ics);
    int was_inside = 0, status = 1;
    pid_t child = 0;
    join(start(is_killed, &was_inside));
    CHECK(was_inside);
    EXPECT(0, lw_ics_update(&slot, adds_at_once, NULL));
    EXPECT(0, lw_ics_update(&slot, adds_at_once, NULL));
    EXPECT(0, lw_ics_slot_close(&left_behind));
    EXPECT(0, lw_ics_slot_open(&ics, &left_behind));
    EXPECT(0, lw_ics_update_cut(&left_behind, adds_at_once, NULL));
    EXPECT(0, lw_ics_slot_close(&left_behind));
    EXPECT(0, lw_ics_update_cut(&slot, forks, &child));
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(value_of(&ics) - before == 4 && stats_of(&slot).conflicts == 0);
    EXPECT(0, lw_ics_slot_close(&slot));
    EXPECT(0, lw_ics_destroy(&ics));
}

static void one_at_a_time(uint32_t commit) {
    sigset_t cuts;
    become(LOW, processor);
    memset(&interrupter, 0, sizeof interrupter);
    CHECK(sem_init(&interrupter.go, 0, 0) == 0 && sem_init(&interrupter.ready, 0, 0) == 0);
    pthread_t urgent = start(interrupts, NULL);
    CHECK(sem_wait(&interrupter.ready) == 0);
    EXPECT(0, lw_ics_init(&ics, commit, (uint32_t)processor));
    EXPECT(0, lw_ics_init(&other, commit, (uint32_t)processor));
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    EXPECT(0, lw_ics_slot_open(&other, &other_slot));
    /* The signal is not set for the object yet. */
    ends_with(is_interrupted, 2, 0, 1);
    EXPECT(0, lw_ics_set_signal(&ics, CUTS));
    EXPECT(0, lw_ics_set_signal(&other, CUTS));
    struct sigaction looks = {.sa_sigaction = looks_where, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(NOISE, &looks, NULL) == 0 && raise(NOISE) == 0 && way_home);
    ends_with(is_interrupted, 2, 1, 0);
    ends_with(has_unwritten_stack, 2, 1, 0);
    ends_with(divides_by_zero, 2, 1, 0);
    ends_with(has_much_on_the_stack, 2, 0, 1);
    ends_with(is_in_order, 1, 0, 1);
    for (int way = 0; way < 3; way++) {
        install(way);
        handled = 0;
        ends_with(is_interrupted_in_a_handler, 2, 0, 1);
        CHECK(handled == 1);
    }
    ends_with(has_another_inside, 2, 0, 1);
    ends_with(has_another_to_be_cut_inside, 2, 0, 1);
    ends_with(has_another_cut_inside, 1, 0, 1);
    CHECK(value_of(&other) == 4 && stats_of(&other_slot).cuts == 1);
    /* After the end of a section, and in a thread that has blocked the signal. */
    CHECK(raise(CUTS) == 0);
    sigemptyset(&cuts);
    sigaddset(&cuts, CUTS);
    CHECK(sigprocmask(SIG_BLOCK, &cuts, NULL) == 0);
    ends_with(is_interrupted, 2, 0, 1);
    CHECK(sigprocmask(SIG_UNBLOCK, &cuts, NULL) == 0);
    ends_with(is_interrupted, 2, 1, 0);
    interrupter.is_over = 1;
    sem_post(&interrupter.go);
    join(urgent);
    become(CONDUCTOR, processor);
    EXPECT(0, lw_ics_slot_close(&other_slot));
    EXPECT(0, lw_ics_destroy(&other));
    ends();
}

static void what_is_refused(void) {
    memset(&ics, 0, sizeof ics);
    EXPECT(EINVAL, lw_ics_set_signal(&ics, CUTS));
    EXPECT(EINVAL, lw_ics_set_signal(NULL, CUTS));
    EXPECT(0, lw_ics_init(&ics, LW_ICS_AUTO, (uint32_t)processor));
    int no_signals[] = {0, -1, 32, SIGKILL, SIGSEGV, SIGCHLD, SIGRTMAX + 1};
    for (size_t i = 0; i < sizeof no_signals / sizeof *no_signals; i++) {
        EXPECT(EINVAL, lw_ics_set_signal(&ics, no_signals[i]));
    }
    CHECK(signal(CUTS, noise) == SIG_DFL);
    EXPECT(EBUSY, lw_ics_set_signal(&ics, CUTS));
    CHECK(signal(CUTS, SIG_IGN) == noise);
    EXPECT(EBUSY, lw_ics_set_signal(&ics, CUTS));
    CHECK(signal(CUTS, SIG_DFL) == SIG_IGN);
    EXPECT(0, lw_ics_set_signal(&ics, CUTS));
    EXPECT(0, lw_ics_set_signal(&ics, CUTS));
    EXPECT(EBUSY, lw_ics_set_signal(&ics, CUTS + 1));
    EXPECT(EINVAL, lw_ics_update_cut(NULL, adds_at_once, NULL));
    CHECK(raise(CUTS) == 0);
    EXPECT(0, lw_ics_destroy(&ics));
}

int main(void) {
    begin_test();
    processor = cpu_from(0, 0);
    other_processor = cpu_from(processor + 1, processor);
    become(CONDUCTOR, processor);
#ifdef __x86_64__
    what_is_refused();
    one_at_a_time(LW_ICS_LOCKED);
    one_at_a_time(LW_ICS_AUTO);
    stress(LW_ICS_AUTO, processor, 0, 0);
    stress(LW_ICS_AUTO, processor, 1, 0);
    stress(LW_ICS_AUTO, processor, 1, SA_NODEFER);
    stress(LW_ICS_LOCKED, processor, 1, SA_NODEFER | SA_ONSTACK);
    stress(LW_ICS_PLAIN, processor, 1, SA_ONSTACK);
    stress(LW_ICS_LOCKED, other_processor, 1, SA_NODEFER);
#else
    EXPECT(0, lw_ics_init(&ics, LW_ICS_LOCKED, 0));
    EXPECT(ENOTSUP, lw_ics_set_signal(&ics, CUTS));
#endif
    return 0;
}
