/* Buffers, queues and priority queues: no value is lost or mixed, within a process and between processes; misuse. */
#define _GNU_SOURCE
#include "lockwright.h"

#include "check.h"
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { PRODUCERS = 3, VALUES = 20000, WORDS = LW_BUFFER_BYTES / 8 };

#ifdef MUTANT
/* A queue in which a value may come out twice. */
#define lw_queue_push(queue, slot, value) (lw_queue_push(queue, slot, value) ? ENOSPC : lw_queue_push(queue, slot, value))
#endif

struct objects {
    lw_buffer_t buffer;
    lw_queue_t queue;
    lw_pqueue_t pqueue;
};

struct value {
    uint64_t words[WORDS];
};

static struct value value_of(uint64_t word) {
    struct value value;
    for (int i = 0; i < WORDS; i++) {
        value.words[i] = word;
    }
    return value;
}

static void initialise(struct objects *objects, uint32_t kind) {
    memset(objects, 0xff, sizeof *objects);
    EXPECT(0, lw_buffer_init(&objects->buffer, kind));
    EXPECT(0, lw_queue_init(&objects->queue, kind));
    EXPECT(0, lw_pqueue_init(&objects->pqueue, kind));
}

static void destroy(struct objects *objects) {
    EXPECT(0, lw_buffer_destroy(&objects->buffer));
    EXPECT(0, lw_queue_destroy(&objects->queue));
    EXPECT(0, lw_pqueue_destroy(&objects->pqueue));
    EXPECT(EINVAL, lw_buffer_destroy(&objects->buffer));
    EXPECT(EINVAL, lw_queue_destroy(&objects->queue));
    EXPECT(EINVAL, lw_pqueue_destroy(&objects->pqueue));
}

/* Repeats a call until it returns another number than this one. */
#define UNTIL_NOT(number, call)                                                                                        \
    do {                                                                                                               \
        int repeated_;                                                                                                 \
        while ((repeated_ = (call)) == (number)) {                                                                     \
            sched_yield();                                                                                             \
        }                                                                                                              \
        CHECK(repeated_ == 0);                                                                                         \
    } while (0)

/* Sends the values of a producer through both queues, and writes them to the buffer. */
static void produce(struct objects *objects, uint32_t slot) {
    for (uint64_t i = 0; i < VALUES; i++) {
        const uint64_t word = (uint64_t)slot << 32 | i;
        const struct value value = value_of(word);
        EXPECT(0, lw_buffer_write(&objects->buffer, slot, &value, sizeof value));
        UNTIL_NOT(ENOSPC, lw_queue_push(&objects->queue, slot, word));
        UNTIL_NOT(ENOSPC, lw_pqueue_insert(&objects->pqueue, slot, word));
    }
}

/* Receives each value of all producers once from both queues, in order from the first, and whole ones from the buffer. */
static void consume(struct objects *objects, uint32_t slot) {
    static unsigned char seen[PRODUCERS + 1][VALUES];
    uint64_t next[PRODUCERS + 1] = {0};
    memset(seen, 0, sizeof seen);
    for (int i = 0; i < PRODUCERS * VALUES; i++) {
        uint64_t word;
        UNTIL_NOT(ENODATA, lw_queue_pop(&objects->queue, slot, &word));
        CHECK(word >> 32 >= 1 && word >> 32 <= PRODUCERS);
        CHECK((word & 0xffffffff) == next[word >> 32]++);
        UNTIL_NOT(ENODATA, lw_pqueue_extract_max(&objects->pqueue, slot, &word));
        CHECK(word >> 32 >= 1 && word >> 32 <= PRODUCERS && (word & 0xffffffff) < VALUES);
        CHECK(seen[word >> 32][word & 0xffffffff]++ == 0);
        struct value value;
        EXPECT(0, lw_buffer_read(&objects->buffer, slot, &value, sizeof value));
        const struct value whole = value_of(value.words[0]);
        CHECK(memcmp(&value, &whole, sizeof value) == 0);
    }
    uint64_t word;
    EXPECT(ENODATA, lw_queue_pop(&objects->queue, slot, &word));
    EXPECT(ENODATA, lw_pqueue_extract_max(&objects->pqueue, slot, &word));
}

static struct objects here;

static void *produces(void *argument) {
    produce(&here, *(uint32_t *)argument);
    return NULL;
}

static void between_threads(uint32_t kind) {
    initialise(&here, kind);
    pthread_t threads[PRODUCERS];
    uint32_t slots[PRODUCERS];
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        slots[i] = i + 1;
        threads[i] = start(produces, &slots[i]);
    }
    consume(&here, 0);
    for (int i = 0; i < PRODUCERS; i++) {
        join(threads[i]);
    }
    destroy(&here);
}

static void between_processes(uint32_t kind) {
    struct objects *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    initialise(shared, kind);
    pid_t children[PRODUCERS];
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        children[i] = fork();
        CHECK(children[i] >= 0);
        if (children[i] == 0) {
            begin_test();
            produce(shared, i + 1);
            _exit(0);
        }
    }
    consume(shared, 0);
    for (int i = 0; i < PRODUCERS; i++) {
        int status;
        CHECK(waitpid(children[i], &status, 0) == children[i] && status == 0);
    }
    destroy(shared);
    CHECK(munmap(shared, sizeof *shared) == 0);
}

/* A killed process harms nobody; if it was killed in an operation, its slot stays in use. */
static void after_a_kill(uint32_t kind) {
    struct objects *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    initialise(shared, kind);
    for (int round = 0; round < full_or(200, 20); round++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            const struct value value = value_of(7);
            /* A slot that an earlier round has left in use is not used again. */
            for (uint32_t slot = 1; slot < LW_OBJECT_SLOTS; slot++) {
                uint64_t word = 7;
                while (lw_queue_push(&shared->queue, slot, word) != EBUSY &&
                       lw_pqueue_insert(&shared->pqueue, slot, word) != EBUSY &&
                       lw_buffer_write(&shared->buffer, slot, &value, sizeof value) != EBUSY &&
                       lw_queue_pop(&shared->queue, slot, &word) != EBUSY &&
                       lw_pqueue_extract_max(&shared->pqueue, slot, &word) != EBUSY) {
                }
            }
            for (;;) {
                pause();
            }
        }
        usleep(2000);
        CHECK(kill(child, SIGKILL) == 0);
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
        uint64_t word;
        int answer;
        while ((answer = lw_queue_pop(&shared->queue, 0, &word)) == 0) {
            CHECK(word == 7);
        }
        CHECK(answer == ENODATA);
        EXPECT(0, lw_queue_push(&shared->queue, 0, 7));
        while ((answer = lw_pqueue_extract_max(&shared->pqueue, 0, &word)) == 0) {
            CHECK(word == 7);
        }
        CHECK(answer == ENODATA);
        EXPECT(0, lw_pqueue_insert(&shared->pqueue, 0, 7));
        struct value value;
        EXPECT(0, lw_buffer_read(&shared->buffer, 0, &value, sizeof value));
        const struct value whole = value_of(value.words[0]);
        CHECK(memcmp(&value, &whole, sizeof value) == 0);
    }
    CHECK(munmap(shared, sizeof *shared) == 0);
}

static void full_and_empty(uint32_t kind) {
    initialise(&here, kind);
    for (uint64_t i = 0; i < LW_QUEUE_CAPACITY; i++) {
        EXPECT(0, lw_queue_push(&here.queue, 3, i));
    }
    for (uint64_t i = 0; i < LW_PQUEUE_CAPACITY; i++) {
        EXPECT(0, lw_pqueue_insert(&here.pqueue, 3, i * 7 % LW_PQUEUE_CAPACITY));
    }
    EXPECT(ENOSPC, lw_queue_push(&here.queue, 4, 0));
    EXPECT(ENOSPC, lw_pqueue_insert(&here.pqueue, 4, 0));
    uint64_t word;
    for (uint64_t i = 0; i < LW_QUEUE_CAPACITY; i++) {
        EXPECT(0, lw_queue_pop(&here.queue, 5, &word));
        CHECK(word == i);
    }
    for (uint64_t i = LW_PQUEUE_CAPACITY; i-- > 0;) {
        EXPECT(0, lw_pqueue_extract_max(&here.pqueue, 5, &word));
        CHECK(word == i);
    }
    word = 99;
    EXPECT(ENODATA, lw_queue_pop(&here.queue, 5, &word));
    EXPECT(ENODATA, lw_pqueue_extract_max(&here.pqueue, 5, &word));
    CHECK(word == 99);

    /* Values of any size up to the greatest. */
    unsigned char bytes[LW_BUFFER_BYTES + 1], found[LW_BUFFER_BYTES + 1];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i + 1);
    }
    memset(found, 0xee, sizeof found);
    EXPECT(0, lw_buffer_read(&here.buffer, 1, found, 3));
    CHECK(found[0] == 0 && found[2] == 0 && found[3] == 0xee);
    EXPECT(0, lw_buffer_write(&here.buffer, 1, bytes, 13));
    EXPECT(0, lw_buffer_read(&here.buffer, 2, found, 14));
    CHECK(memcmp(found, bytes, 13) == 0 && found[13] == 0 && found[14] == 0xee);
    EXPECT(0, lw_buffer_write(&here.buffer, 1, bytes, LW_BUFFER_BYTES));
    EXPECT(0, lw_buffer_read(&here.buffer, 2, found, LW_BUFFER_BYTES));
    CHECK(memcmp(found, bytes, LW_BUFFER_BYTES) == 0 && found[LW_BUFFER_BYTES] == 0xee);
    EXPECT(EMSGSIZE, lw_buffer_write(&here.buffer, 1, bytes, LW_BUFFER_BYTES + 1));
    EXPECT(EMSGSIZE, lw_buffer_read(&here.buffer, 1, found, LW_BUFFER_BYTES + 1));
    EXPECT(0, lw_buffer_write(&here.buffer, 1, NULL, 0));
    EXPECT(0, lw_buffer_read(&here.buffer, 1, NULL, 0));
    destroy(&here);
}

/* Calls every function with these objects and this slot. */
static void refuse(lw_buffer_t *buffer, lw_queue_t *queue, lw_pqueue_t *pqueue, uint32_t slot) {
    uint64_t word = 1;
    EXPECT(EINVAL, lw_buffer_read(buffer, slot, &word, sizeof word));
    EXPECT(EINVAL, lw_buffer_write(buffer, slot, &word, sizeof word));
    EXPECT(EINVAL, lw_queue_push(queue, slot, word));
    EXPECT(EINVAL, lw_queue_pop(queue, slot, &word));
    EXPECT(EINVAL, lw_pqueue_insert(pqueue, slot, word));
    EXPECT(EINVAL, lw_pqueue_extract_max(pqueue, slot, &word));
}

static void misuse(void) {
    memset(&here, 0xff, sizeof here);
    lw_buffer_t *buffer = &here.buffer;
    lw_queue_t *queue = &here.queue;
    lw_pqueue_t *pqueue = &here.pqueue;
    refuse(buffer, queue, pqueue, 0);
    refuse(NULL, NULL, NULL, 0);
    EXPECT(EINVAL, lw_buffer_destroy(NULL));
    EXPECT(EINVAL, lw_queue_init(NULL, LW_OBJECT_LOCK_FREE));
    EXPECT(EINVAL, lw_buffer_init(buffer, 2));
    EXPECT(EINVAL, lw_queue_init(queue, 2));
    EXPECT(EINVAL, lw_pqueue_init(pqueue, 2));
    initialise(&here, LW_OBJECT_WAIT_FREE);
    /* Misaligned, and an object of another type. */
    const uintptr_t off = (uintptr_t)&here + 64;
    refuse((lw_buffer_t *)off, (lw_queue_t *)off, (lw_pqueue_t *)off, 0);
    refuse((lw_buffer_t *)(uintptr_t)queue, (lw_queue_t *)(uintptr_t)pqueue, (lw_pqueue_t *)(uintptr_t)buffer, 0);
    refuse(buffer, queue, pqueue, LW_OBJECT_SLOTS);
    refuse(buffer, queue, pqueue, UINT32_MAX);
    EXPECT(EINVAL, lw_queue_pop(queue, 0, NULL));
    EXPECT(EINVAL, lw_pqueue_extract_max(pqueue, 0, NULL));
    EXPECT(EINVAL, lw_buffer_read(buffer, 0, NULL, 1));
    EXPECT(EINVAL, lw_buffer_write(buffer, 0, NULL, 1));
    destroy(&here);
    refuse(buffer, queue, pqueue, 0);
}

static volatile int stop;

static void *uses_slot_one(void *counted) {
    long *refused = counted;
    while (!stop) {
        const int answer = lw_pqueue_insert(&here.pqueue, 1, 1);
        CHECK(answer == 0 || answer == ENOSPC || answer == EBUSY);
        *refused += answer == EBUSY;
    }
    return NULL;
}

/* Two threads that use one slot at the same time notice it, and harm nobody. */
static void one_slot_for_two_threads(void) {
    initialise(&here, LW_OBJECT_LOCK_FREE);
    long refused[2] = {0, 0};
    pthread_t one = start(uses_slot_one, &refused[0]), other = start(uses_slot_one, &refused[1]);
    const struct timespec begin = now(CLOCK_MONOTONIC);
    uint64_t word;
    while (seconds(now(CLOCK_MONOTONIC)) < seconds(begin) + 0.3) {
        const int answer = lw_pqueue_extract_max(&here.pqueue, 2, &word);
        CHECK(answer == ENODATA || (answer == 0 && word == 1));
    }
    stop = 1;
    join(one);
    join(other);
    CHECK(sysconf(_SC_NPROCESSORS_ONLN) == 1 || refused[0] + refused[1] > 0);
    destroy(&here);
}

int main(void) {
    begin_test();
    const uint32_t kinds[] = {LW_OBJECT_LOCK_FREE, LW_OBJECT_WAIT_FREE};
    for (int i = 0; i < 2; i++) {
        full_and_empty(kinds[i]);
        between_threads(kinds[i]);
        between_processes(kinds[i]);
        after_a_kill(kinds[i]);
    }
    misuse();
    one_slot_for_two_threads();
    return 0;
}
