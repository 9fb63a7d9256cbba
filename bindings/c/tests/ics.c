/* Interruptible sections: two words that must always be equal. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <sched.h>

enum { ROUNDS = 100000, THREADS = 3 };

static lw_ics_t ics;
static pthread_barrier_t together;

static int add_to_both(lw_ics_section_t *section, void *argument) {
    uint64_t left = 0, right = 0;
    int answer = lw_ics_read(section, 0, &left);
    if (answer) {
        return answer;
    }
    answer = lw_ics_read(section, 1, &right);
    if (answer) {
        return answer;
    }
    CHECK(left == right);
#ifdef MUTANT
    /* The body writes nothing, but commits. */
    if (argument && left % 3 == 0) {
        return 0;
    }
#endif
    (void)argument;
    answer = lw_ics_write(section, 0, left + 1);
    return answer ? answer : lw_ics_write(section, 1, right + 1);
}

static int add_to_third(lw_ics_section_t *section, void *argument) {
    uint64_t value = 0;
    int answer = lw_ics_read(section, 2, &value);
    (void)argument;
    return answer ? answer : lw_ics_write(section, 2, value + 1);
}

static int read_both(lw_ics_section_t *section, void *argument) {
    uint64_t *words = argument;
    int answer = lw_ics_read(section, 0, &words[0]);
    return answer ? answer : lw_ics_read(section, 1, &words[1]);
}

static int read_third(lw_ics_section_t *section, void *value) {
    return lw_ics_read(section, 2, value);
}

/* Binds this thread, and those that it starts, to one of its CPUs: the first one has the number 0. */
static void bind_to(int number) {
    cpu_set_t all, one;
    int cpu = 0;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    for (int left = number % CPU_COUNT(&all); !CPU_ISSET(cpu, &all) || left-- > 0; cpu++) {
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* A section calls the library if it follows one that wrote several words. The second and third of each round do not. */
static void *adds(void *argument) {
    static int threads;
    lw_ics_slot_t slot;
    bind_to(__atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED));
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    (void)pthread_barrier_wait(&together);
    for (int round = 0; round < ROUNDS; round++) {
        EXPECT(0, lw_ics_update(&slot, add_to_third, NULL));
        EXPECT(0, lw_ics_update(&slot, add_to_third, NULL));
        EXPECT(0, lw_ics_update(&slot, add_to_both, argument));
        if (round % 64 == 0) {
            uint64_t words[2] = {0, 1};
            EXPECT(0, lw_ics_query(&ics, read_both, words));
            CHECK(words[0] == words[1]);
        }
    }
    lw_ics_stats_t stats;
    EXPECT(0, lw_ics_slot_stats(&slot, &stats));
    CHECK(stats.commits >= 3 * ROUNDS && stats.entries == stats.commits + stats.conflicts + stats.restarts);
    EXPECT(0, lw_ics_slot_close(&slot));
    return NULL;
}

/* Ends without closing its slot. */
static void *adds_once(void *slot) {
    EXPECT(0, lw_ics_slot_open(&ics, slot));
    EXPECT(0, lw_ics_update(slot, add_to_both, NULL));
    return NULL;
}

struct swallows {
    lw_ics_slot_t left_behind;
    int attempts;
    uint64_t words[2];
};

/* Ignores a conflict the first time, and uses the value. */
static int swallows(lw_ics_section_t *section, void *argument) {
    struct swallows *it = argument;
    it->attempts++;
    EXPECT(0, lw_ics_check(section));
    EXPECT(0, lw_ics_read(section, 0, &it->words[0]));
    if (it->attempts == 1) {
        join(start(adds_once, &it->left_behind));
        EXPECT(EAGAIN, lw_ics_check(section));
    }
    it->words[1] = 7;
    (void)lw_ics_read(section, 1, &it->words[1]);
    return 0;
}

static void conflicts_are_no_values(void) {
    lw_ics_slot_t slot;
    EXPECT(0, lw_ics_init(&ics, LW_ICS_LOCKED, 0));
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    for (uint64_t round = 1; round <= 2; round++) {
        struct swallows it = {.attempts = 0};
        EXPECT(0, round == 1 ? lw_ics_query(&ics, swallows, &it) : lw_ics_update(&slot, swallows, &it));
        CHECK(it.attempts == 2 && it.words[0] == round && it.words[1] == round);
        /* The thread has ended, so another thread closes its slot. */
        EXPECT(0, lw_ics_slot_close(&it.left_behind));
    }
    EXPECT(EINVAL, lw_ics_check(NULL));
    EXPECT(0, lw_ics_slot_close(&slot));
    EXPECT(0, lw_ics_destroy(&ics));
}

/* A section that commits on another CPU than that of its object ends the restartable sequences of the object. */
static void commits_elsewhere(void) {
    lw_ics_slot_t slot;
    uint32_t commit = LW_ICS_AUTO;
    uint32_t elsewhere = sched_getcpu() == 0;
    if (lw_ics_init(&ics, LW_ICS_AUTO, elsewhere) != 0) {
        /* There is one CPU. */
        return;
    }
    EXPECT(0, lw_ics_slot_open(&ics, &slot));
    EXPECT(0, lw_ics_update(&slot, add_to_both, NULL));
    EXPECT(0, lw_ics_commit(&ics, &commit));
    CHECK(commit == LW_ICS_LOCKED);
    EXPECT(0, lw_ics_slot_close(&slot));
    EXPECT(0, lw_ics_destroy(&ics));
}

static void several(uint32_t commit) {
    pthread_t threads[THREADS];
    uint64_t words[2] = {0, 1}, third = 0;
    static int flag;
    EXPECT(0, lw_ics_init(&ics, commit, 0));
    EXPECT(0, pthread_barrier_init(&together, NULL, THREADS));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = start(adds, &flag);
    }
    for (int i = 0; i < THREADS; i++) {
        join(threads[i]);
    }
    EXPECT(0, pthread_barrier_destroy(&together));
    EXPECT(0, lw_ics_query(&ics, read_both, words));
    CHECK(words[0] == THREADS * ROUNDS && words[1] == THREADS * ROUNDS);
    EXPECT(0, lw_ics_query(&ics, read_third, &third));
    CHECK(third == 2 * THREADS * ROUNDS);
    EXPECT(0, lw_ics_destroy(&ics));
}

static int gives_up(lw_ics_section_t *section, void *argument) {
    EXPECT(0, lw_ics_write(section, 0, 7));
    return *(int *)argument;
}

static int writes_much(lw_ics_section_t *section, void *argument) {
    uint64_t values[2];
    (void)argument;
    EXPECT(EINVAL, lw_ics_write(section, LW_ICS_WORDS, 1));
    EXPECT(EINVAL, lw_ics_read(section, LW_ICS_WORDS, values));
    EXPECT(EINVAL, lw_ics_read(section, 0, NULL));
    EXPECT(EINVAL, lw_ics_read(section, 0, (uint64_t *)(void *)((char *)values + 4)));
    for (uint32_t word = 0; word < LW_ICS_WRITES; word++) {
        EXPECT(0, lw_ics_write(section, word, 1));
    }
    EXPECT(0, lw_ics_write(section, 0, 2));
    return lw_ics_write(section, LW_ICS_WRITES, 1);
}

/* Ignores the refusal, and asks for a commit. */
static int ignores_a_refusal(lw_ics_section_t *section, void *argument) {
    EXPECT(ENOSPC, writes_much(section, argument));
    return 0;
}

static int writes_in_a_query(lw_ics_section_t *section, void *argument) {
    (void)argument;
    return lw_ics_write(section, 0, 1);
}

/* Writes a word twice, and reads what it wrote. */
static int writes_twice(lw_ics_section_t *section, void *argument) {
    uint64_t value = 0;
    (void)argument;
    EXPECT(0, lw_ics_write(section, 0, 8));
    EXPECT(0, lw_ics_write(section, 0, 9));
    EXPECT(0, lw_ics_read(section, 0, &value));
    CHECK(value == 9);
    return lw_ics_write(section, 1, value);
}

static void what_is_refused(uint32_t how) {
    lw_ics_slot_t slots[LW_ICS_SLOTS], one_more;
    uint64_t words[2] = {1, 1};
    uint32_t commit = 0;
    int answer = EDOM;
    memset(&ics, 0, sizeof ics);
    memset(&one_more, 0, sizeof one_more);
    EXPECT(EINVAL, lw_ics_destroy(&ics));
    EXPECT(EINVAL, lw_ics_destroy(NULL));
    EXPECT(EINVAL, lw_ics_slot_open(&ics, &one_more));
    EXPECT(EINVAL, lw_ics_slot_close(&one_more));
    EXPECT(EINVAL, lw_ics_update(&one_more, add_to_both, NULL));
    EXPECT(EINVAL, lw_ics_init(&ics, LW_ICS_RSEQ, 0));
    EXPECT(EINVAL, lw_ics_init(NULL, LW_ICS_AUTO, 0));
    EXPECT(EINVAL, lw_ics_init(&ics, LW_ICS_AUTO, 9999));
    EXPECT(0, lw_ics_init(&ics, how, 0));
    EXPECT(EINVAL, lw_ics_commit(&ics, NULL));
    EXPECT(0, lw_ics_commit(&ics, &commit));
    CHECK(commit == how || (how == LW_ICS_AUTO && (commit == LW_ICS_RSEQ || commit == LW_ICS_LOCKED)));
    for (uint32_t i = 0; i < LW_ICS_SLOTS; i++) {
        EXPECT(0, lw_ics_slot_open(&ics, &slots[i]));
    }
    EXPECT(EAGAIN, lw_ics_slot_open(&ics, &one_more));
    EXPECT(0, lw_ics_slot_close(&slots[3]));
    EXPECT(EINVAL, lw_ics_slot_close(&slots[3]));
    EXPECT(0, lw_ics_slot_open(&ics, &slots[3]));
    EXPECT(EINVAL, lw_ics_update(&slots[0], NULL, NULL));
    EXPECT(EINVAL, lw_ics_update(NULL, add_to_both, NULL));
    EXPECT(EINVAL, lw_ics_update((lw_ics_slot_t *)(void *)((char *)slots + 4), add_to_both, NULL));
    EXPECT(EDOM, lw_ics_update(&slots[0], gives_up, &answer));
    EXPECT(ENOSPC, lw_ics_update(&slots[0], writes_much, NULL));
    EXPECT(ENOSPC, lw_ics_update(&slots[0], ignores_a_refusal, NULL));
    one_more = slots[0];
    EXPECT(EINVAL, lw_ics_update(&one_more, add_to_both, NULL));
    EXPECT(EINVAL, lw_ics_slot_close(&one_more));
    EXPECT(EPERM, lw_ics_query(&ics, writes_in_a_query, NULL));
    EXPECT(0, lw_ics_query(&ics, read_both, words));
    CHECK(words[0] == 0 && words[1] == 0);
    EXPECT(0, lw_ics_update(&slots[0], writes_twice, NULL));
    EXPECT(0, lw_ics_update(&slots[0], add_to_both, NULL));
    EXPECT(0, lw_ics_query(&ics, read_both, words));
    CHECK(words[0] == 10 && words[1] == 10);
    for (uint32_t i = 0; i < LW_ICS_SLOTS; i++) {
        EXPECT(EBUSY, lw_ics_destroy(&ics));
        EXPECT(0, lw_ics_slot_close(&slots[i]));
    }
    EXPECT(0, lw_ics_destroy(&ics));
    EXPECT(EINVAL, lw_ics_destroy(&ics));
}

/* Ends its thread in this attempt, after a write. */
static int ends(lw_ics_section_t *section, void *argument) {
    int *left = argument;
    EXPECT(0, lw_ics_write(section, 0, 77));
    if (--*left == 0)
        pthread_exit(NULL);
    return EAGAIN;
}

static lw_ics_slot_t ended;

static void *end_inside(void *attempt) {
    lw_ics_update(&ended, ends, attempt);
    CHECK(!"the thread has ended");
    return NULL;
}

static void a_thread_may_end_inside(uint32_t commit) {
    for (int attempt = 1; attempt <= 3; attempt++) {
        lw_ics_slot_t other;
        int left = attempt;
        EXPECT(0, lw_ics_init(&ics, commit, 0));
        EXPECT(0, lw_ics_slot_open(&ics, &ended));
        EXPECT(0, lw_ics_slot_open(&ics, &other));
        pthread_t thread;
        EXPECT(0, pthread_create(&thread, NULL, end_inside, &left));
        EXPECT(0, pthread_join(thread, NULL));
        EXPECT(0, lw_ics_slot_close(&ended));
        EXPECT(0, lw_ics_update(&other, add_to_both, NULL));
        EXPECT(0, lw_ics_slot_close(&other));
        EXPECT(0, lw_ics_destroy(&ics));
    }
}

#ifdef TELLS
/* Enters the same object by another slot, which invalidates the section, until the library must have said so. */
enum { ATTEMPTS_TOLD = 100000 };

struct inner {
    lw_ics_slot_t slot;
    int attempts;
};

static int enters_again(lw_ics_section_t *section, void *argument) {
    struct inner *inner = argument;
    (void)section;
    EXPECT(0, lw_ics_update(&inner->slot, add_to_both, NULL));
    return ++inner->attempts > ATTEMPTS_TOLD ? ECANCELED : lw_ics_write(section, 2, 1);
}

static void a_section_in_itself_is_told(void) {
    lw_ics_slot_t outer;
    struct inner inner = {.attempts = 0};
    char text[256] = "";
    EXPECT(0, lw_ics_init(&ics, LW_ICS_LOCKED, 0));
    EXPECT(0, lw_ics_slot_open(&ics, &outer));
    EXPECT(0, lw_ics_slot_open(&ics, &inner.slot));
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    CHECK(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    EXPECT(ECANCELED, lw_ics_update(&outer, enters_again, &inner));
    CHECK(dup2(before, STDERR_FILENO) >= 0);
    rewind(file);
    CHECK(fgets(text, sizeof text, file) && strstr(text, "its body may enter a section of the same object"));
    CHECK(!fgets(text, sizeof text, file));
    fclose(file);
    close(before);
    EXPECT(0, lw_ics_slot_close(&inner.slot));
    EXPECT(0, lw_ics_slot_close(&outer));
    EXPECT(0, lw_ics_destroy(&ics));
}
#endif

int main(void) {
    begin_test();
    what_is_refused(LW_ICS_AUTO);
    what_is_refused(LW_ICS_LOCKED);
#ifdef TELLS
    a_section_in_itself_is_told();
#endif
    several(LW_ICS_AUTO);
    several(LW_ICS_LOCKED);
    conflicts_are_no_values();
    a_thread_may_end_inside(LW_ICS_AUTO);
    a_thread_may_end_inside(LW_ICS_LOCKED);
    bind_to(0);
    commits_elsewhere();
    what_is_refused(LW_ICS_PLAIN);
    several(LW_ICS_PLAIN);
    a_thread_may_end_inside(LW_ICS_PLAIN);
    return 0;
}
