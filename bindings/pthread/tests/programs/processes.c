/* Two processes share a mutex and a condition variable in a file; one of them may use the C library's functions.
   Arguments: FILE first|second plain|recursive|robust|inherit */
#include "check.h"
#include <fcntl.h>

enum { ROUNDS = 20000, TURNS = 500 };

struct shared {
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    atomic_int ready, inside;
    long count;
    int turn;
};

int main(int count, char **arguments)
{
    CHECK(count == 4);
    alarm(30);
    int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
    CHECK(file >= 0 && ftruncate(file, sizeof(struct shared)) == 0);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(shared != MAP_FAILED);
    int me = strcmp(arguments[2], "first") != 0;
    const char *kind = arguments[3];
    if (me == 0) {
        pthread_condattr_t attributes;
        make(&shared->mutex, strcmp(kind, "recursive") == 0 ? PTHREAD_MUTEX_RECURSIVE : PTHREAD_MUTEX_NORMAL,
            strcmp(kind, "inherit") == 0 ? PTHREAD_PRIO_INHERIT : PTHREAD_PRIO_NONE,
            strcmp(kind, "robust") == 0 ? PTHREAD_MUTEX_ROBUST : PTHREAD_MUTEX_STALLED, 1);
        GIVES(0, pthread_condattr_init(&attributes));
        GIVES(0, pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED));
        GIVES(0, pthread_cond_init(&shared->cond, &attributes));
        shared->ready = 1;
    }
    while (shared->ready == 0)
        sleep_ms(1);
    for (shared->ready++; shared->ready < 3;)
        sleep_ms(1);
    for (int i = 0; i < ROUNDS; i++) {
        GIVES(0, pthread_mutex_lock(&shared->mutex));
        CHECK(atomic_fetch_add(&shared->inside, 1) == 0);
        shared->count++;
        shared->inside--;
        GIVES(0, pthread_mutex_unlock(&shared->mutex));
    }
    for (int i = 0; i < TURNS; i++) {
        GIVES(0, pthread_mutex_lock(&shared->mutex));
        while (shared->turn != me) {
            struct timespec limit = in_ms(CLOCK_REALTIME, 5000);
            GIVES(0, pthread_cond_timedwait(&shared->cond, &shared->mutex, &limit));
        }
        shared->turn = 1 - me;
        GIVES(0, pthread_cond_signal(&shared->cond));
        GIVES(0, pthread_mutex_unlock(&shared->mutex));
    }
    GIVES(0, pthread_mutex_lock(&shared->mutex));
    while (shared->count < 2 * ROUNDS) {
        GIVES(0, pthread_mutex_unlock(&shared->mutex));
        sleep_ms(1);
        GIVES(0, pthread_mutex_lock(&shared->mutex));
    }
    CHECK(shared->count == 2 * ROUNDS);
    GIVES(0, pthread_mutex_unlock(&shared->mutex));
    return 0;
}
