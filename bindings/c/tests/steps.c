/* Sections that are disturbed after each instruction: another slot commits there, or the thread ends there. The trap flag
 * of the processor stops the program after every instruction, and a child of the process does the rest. */
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

int main(void) {
    const uint32_t commits[] = {LW_ICS_LOCKED, LW_ICS_PLAIN, LW_ICS_AUTO};
    struct sigaction trap = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_NODEFER};
    cpu_set_t one;
    long all = 0;
    begin_test();
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(sigaction(SIGTRAP, &trap, NULL) == 0);
    for (int commit = 0; commit < 3; commit++) {
        for (int past = NOTHING; past < PASTS; past++) {
            for (int which = THIRD; which <= BOTH; which++) {
                disturbed(commits[commit], past, which);
                all += steps;
            }
        }
    }
    printf("%ld instructions\n", all);
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
