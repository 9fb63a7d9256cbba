/* Sections that are disturbed after each instruction: another slot commits there, or the thread ends there. The trap
 * flag of the processor stops the program after every instruction, and a child of the process does the rest.
 *
 * Then two threads perform commits of a third one, and each stops before one of its exchanges. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <ucontext.h>

#ifdef __x86_64__

/* Words 0 and 1 are a pair, and are always equal. */
enum { PAIR = 1, THIRD = 2, BOTH = PAIR | THIRD };
/* A fork takes long, above all under AddressSanitizer, so only every so many instructions are followed by some. */
#ifdef __SANITIZE_ADDRESS__
enum { EVERY = 5, EVERY_QUICKLY = 25 };
#else
enum { EVERY = 1, EVERY_QUICKLY = 5 };
#endif
/* A restartable sequence of LW_ICS_AUTO begins again after each trap, so what is behind it is not reached. */
enum { STEPS_MAX = 5000, STEPS_OF_AUTO = 300 };

static lw_ics_t ics;
static lw_ics_slot_t mine, other;

static int add_to(lw_ics_section_t *section, uint32_t word) {
    uint64_t value;
    int answer = lw_ics_read(section, word, &value);
    return answer ? answer : lw_ics_write(section, word, value + 1);
}

static int add(lw_ics_section_t *section, void *words) {
    int which = *(const int *)words, answer = 0;
    if (which & PAIR) {
        uint64_t left, right;
        answer = lw_ics_read(section, 0, &left);
        if (!answer) {
            answer = lw_ics_read(section, 1, &right);
        }
        if (answer) {
            return answer;
        }
        CHECK(left == right);
        answer = add_to(section, 0);
#ifndef MUTANT
        answer = answer ? answer : add_to(section, 1);
#endif
    }
    return !answer && (which & THIRD) ? add_to(section, 2) : answer;
}

static int read_all(lw_ics_section_t *section, void *argument) {
    uint64_t *words = argument;
    int answer = 0;
    for (uint32_t word = 0; word < 3 && !answer; word++) {
        answer = lw_ics_read(section, word, &words[word]);
    }
    return answer;
}

/* The sums of the pair and of the third word. */
struct sums {
    uint64_t pair, third;
};

static struct sums sums(void) {
    uint64_t words[3] = {0, 1, 2};
    EXPECT(0, lw_ics_query(&ics, read_all, words));
    CHECK(words[0] == words[1]);
    return (struct sums){words[0], words[2]};
}

static void expect(uint64_t pair, uint64_t third) {
    struct sums found = sums();
    CHECK(found.pair == pair && found.third == third);
}

static void adds(lw_ics_slot_t *slot, int which) {
    EXPECT(0, lw_ics_update(slot, add, &which));
}

static __attribute__((noinline)) void section_of(int which) {
    EXPECT(0, lw_ics_update(&mine, add, &which));
}

/* What happens after an instruction. */
enum { NOTHING_YET, COMMITS, COMMITS_WORDS, GIVES_UP, ENDS, COMMITS_AND_ENDS, ACTIONS };

/* In the parent, NOTHING_YET. */
static volatile int action;
static struct sums others;
static volatile int steps, steps_max, is_stepping;
static sigjmp_buf end;

static int gives_up(lw_ics_section_t *section, void *unused) {
    (void)unused;
    for (uint32_t word = 0; word < 3; word++) {
        EXPECT(0, lw_ics_write(section, word, 1000));
    }
    return ECANCELED;
}

static int ends(void) {
    return action == ENDS || action == COMMITS_AND_ENDS;
}

static struct sums disturb(void) {
    struct sums added = {0, 0};
    if (action == GIVES_UP) {
        EXPECT(ECANCELED, lw_ics_update(&other, gives_up, NULL));
    } else if (action != ENDS) {
        /* Twice, so that the first commit is performed. The second does not write all that the first did. */
        adds(&other, action == COMMITS_WORDS ? THIRD : BOTH);
        adds(&other, action == COMMITS_WORDS ? THIRD : PAIR);
        added = action == COMMITS_WORDS ? (struct sums){0, 2} : (struct sums){2, 1};
    }
    return added;
}

static void on_trap(int signal, siginfo_t *info, void *context) {
    greg_t *flags = &((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL];
    (void)signal;
    (void)info;
    *flags &= ~(greg_t)0x100;
    if (!is_stepping || steps == steps_max) {
        return;
    }
    CHECK(++steps < STEPS_MAX);
    for (int next = COMMITS; next < ACTIONS && steps % full_or(EVERY, EVERY_QUICKLY) == 0; next++) {
        int status;
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            is_stepping = 0;
            action = next;
            others = disturb();
            if (ends()) {
                siglongjmp(end, 1);
            }
            return;
        }
        CHECK(waitpid(child, &status, 0) == child);
        if (status != 0) {
            fprintf(stderr, "action %d after step %d\n", next, steps);
            _exit(1);
        }
    }
    *flags |= 0x100;
}

/* What was posted last, before the section. */
enum { NOTHING, OWN_WORD, OWN_WORDS, OTHERS_WORD, PASTS };

static struct sums prepare(int past) {
    struct sums is = {0, 0};
    for (int round = 0; round < 3; round++) {
        if (past == NOTHING) {
            continue;
        }
        adds(past == OTHERS_WORD ? &other : &mine, past == OWN_WORDS ? BOTH : THIRD);
        is.pair += past == OWN_WORDS;
        is.third++;
    }
    return is;
}

static void check_counts(lw_ics_slot_t *slot, uint64_t ended) {
    lw_ics_stats_t stats;
    EXPECT(0, lw_ics_slot_stats(slot, &stats));
    uint64_t known = stats.commits + stats.conflicts + stats.restarts;
    CHECK(known <= stats.entries && stats.entries <= known + ended);
}

/* Executes a section, which a child disturbs after each instruction. */
static void disturbed(uint32_t commit, int past, int which) {
    EXPECT(0, lw_ics_init(&ics, commit, (uint32_t)sched_getcpu()));
    EXPECT(0, lw_ics_slot_open(&ics, &mine));
    EXPECT(0, lw_ics_slot_open(&ics, &other));
    struct sums is = prepare(past);
    const uint64_t pair = which & PAIR ? 1 : 0;
    steps = 0;
    steps_max = commit == LW_ICS_AUTO ? STEPS_OF_AUTO : STEPS_MAX;
    is_stepping = 1;
    if (sigsetjmp(end, 1)) {
        /* The thread has ended: another closes its slot. Its section has committed as a whole, or not at all. */
        EXPECT(0, lw_ics_slot_close(&mine));
        EXPECT(0, lw_ics_slot_open(&ics, &mine));
        uint64_t committed = sums().third - is.third - others.third;
        CHECK(committed <= 1);
        is.pair += committed * pair;
        is.third += committed;
    } else {
        __asm__ volatile("int3" : : : "memory");
        section_of(which);
        is_stepping = 0;
        is.pair += pair;
        is.third++;
    }
    is.pair += others.pair;
    is.third += others.third;
    expect(is.pair, is.third);
    EXPECT(ECANCELED, lw_ics_update(&mine, gives_up, NULL));
    expect(is.pair, is.third);
    adds(&mine, which);
    adds(&other, BOTH);
    adds(&mine, THIRD);
    expect(is.pair + pair + 1, is.third + 3);
    check_counts(&mine, 1 + (uint64_t)ends());
    check_counts(&other, action == GIVES_UP);
    if (action != NOTHING_YET) {
        _exit(0);
    }
    EXPECT(0, lw_ics_slot_close(&mine));
    EXPECT(0, lw_ics_slot_close(&other));
    EXPECT(0, lw_ics_destroy(&ics));
}

enum { RUNS, STOPPED, ENDED };

/* A thread that stops before an exchange and continues later. */
struct helper {
    void (*work)(void);
    /* The number of exchanges before that one. */
    int before;
    int stage;
    pthread_t thread;
};

static __thread struct helper *helper;

static void become(struct helper *of, int stage) {
    __atomic_store_n(&of->stage, stage, __ATOMIC_RELEASE);
}

static int is_at(struct helper *of, int stage) {
    return __atomic_load_n(&of->stage, __ATOMIC_ACQUIRE) == stage;
}

static void on_step_of_helper(int signal, siginfo_t *info, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    const unsigned char *next = (const unsigned char *)registers[REG_RIP];
    (void)signal;
    (void)info;
    registers[REG_EFL] &= ~(greg_t)0x100;
    /* An exchange begins with the prefix `lock`. */
    if (*next == 0xf0 && helper->before-- == 0) {
        become(helper, STOPPED);
        while (is_at(helper, STOPPED)) {
            sched_yield();
        }
    } else if (is_at(helper, RUNS)) {
        registers[REG_EFL] |= 0x100;
    }
}

static void *helps(void *argument) {
    helper = argument;
    __asm__ volatile("int3" : : : "memory");
    helper->work();
    become(helper, ENDED);
    return NULL;
}

/* Returns whether the helper has stopped; otherwise it has ended. */
static int starts(struct helper *started) {
    started->stage = RUNS;
    started->thread = start(helps, started);
    while (is_at(started, RUNS)) {
        sched_yield();
    }
    return is_at(started, STOPPED);
}

static void goes_on(struct helper *stopped) {
    if (is_at(stopped, STOPPED)) {
        become(stopped, RUNS);
    }
    join(stopped->thread);
}

static int cancel(lw_ics_section_t *section, void *unused) {
    (void)section;
    (void)unused;
    return ECANCELED;
}

static void only_helps(void) {
    EXPECT(ECANCELED, lw_ics_query(&ics, cancel, NULL));
}

static int set(lw_ics_section_t *section, void *argument) {
    const uint64_t *word_and_value = argument;
    return lw_ics_write(section, (uint32_t)word_and_value[0], word_and_value[1]);
}

static void commits(lw_ics_slot_t *slot, uint64_t word, uint64_t value) {
    uint64_t word_and_value[] = {word, value};
    EXPECT(0, lw_ics_update(slot, set, word_and_value));
}

static void helps_and_commits(void) {
    commits(&other, 1, 5);
}

static void *reads(void *unused) {
    uint64_t words[3];
    EXPECT(0, lw_ics_query(&ics, read_all, words));
    CHECK(words[0] == 2 && words[1] == 5);
    return unused;
}

/* Another thread reads what is committed, and not what this section has written. */
static int writes_and_gives_up(lw_ics_section_t *section, void *unused) {
    (void)unused;
    EXPECT(0, lw_ics_write(section, 0, 99));
    join(start(reads, NULL));
    return ECANCELED;
}

/* A slot commits twice, and each commit has a helper. The first helper continues after the second commit, and before
 * the second helper does: its mark of the first commit must not take the place of the mark of the second. Returns how
 * many helpers have stopped. */
static int late_helpers(int first_before, int second_before) {
    struct helper first = {.work = only_helps, .before = first_before};
    struct helper second = {.work = helps_and_commits, .before = second_before};
    EXPECT(0, lw_ics_init(&ics, LW_ICS_LOCKED, 0));
    EXPECT(0, lw_ics_slot_open(&ics, &mine));
    EXPECT(0, lw_ics_slot_open(&ics, &other));
    commits(&mine, 0, 1);
    int stopped = starts(&first);
    commits(&mine, 0, 2);
    stopped += starts(&second);
    goes_on(&first);
    goes_on(&second);
    EXPECT(ECANCELED, lw_ics_update(&mine, writes_and_gives_up, NULL));
    reads(NULL);
    EXPECT(0, lw_ics_slot_close(&mine));
    EXPECT(0, lw_ics_slot_close(&other));
    EXPECT(0, lw_ics_destroy(&ics));
    return stopped;
}

/* Returns in how many runs both helpers have stopped. */
static int all_late_helpers(void) {
    struct sigaction step = {.sa_sigaction = on_step_of_helper, .sa_flags = SA_SIGINFO};
    int both = 0;
    CHECK(sigaction(SIGTRAP, &step, NULL) == 0);
    for (int first_before = 0; first_before < 4; first_before++) {
        for (int second_before = 0; second_before < 4; second_before++) {
            both += late_helpers(first_before, second_before) == 2;
        }
    }
    return both;
}

int main(void) {
    const uint32_t ways[] = {LW_ICS_LOCKED, LW_ICS_PLAIN, LW_ICS_AUTO};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    cpu_set_t one;
    long all = 0;
    begin_test();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
    for (int way = 0; way < 3; way++) {
        for (int past = NOTHING; past < PASTS; past++) {
            for (int which = THIRD; which <= BOTH; which++) {
                disturbed(ways[way], past, which);
                all += steps;
            }
        }
    }
    int both = all_late_helpers();
    /* Each helper exchanges a locator and a mark. */
    CHECK(both >= 4);
    printf("%ld instructions, %d pairs of helpers\n", all, both);
    return 0;
}

#else

int main(void) {
#ifdef MUTANT
    CHECK(!"no trap flag");
#endif
    return 0;
}

#endif
