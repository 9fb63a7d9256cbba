/* For ThreadSanitizer: threads that take turns. With an argument, they also race for a counter. */
#include "check.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn, counted;
static volatile int raced;
static bool races;

static void *play(void *argument)
{
    int me = argument != NULL;
    for (int i = 0; i < 500; i++) {
        GIVES(0, pthread_mutex_lock(&mutex));
        while (turn != me)
            GIVES(0, pthread_cond_wait(&cond, &mutex));
        turn = 1 - me;
        counted++;
        GIVES(0, pthread_cond_signal(&cond));
        GIVES(0, pthread_mutex_unlock(&mutex));
    }
    if (races)
        raced++;
    return NULL;
}

int main(int count, char **arguments)
{
    (void)arguments;
    alarm(60);
    races = count > 1;
    pthread_t threads[] = { start(play, NULL), start(play, &turn) };
    join(threads[0]);
    join(threads[1]);
    CHECK(counted == 1000);
    return 0;
}
