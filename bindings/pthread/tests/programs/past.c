/* Ways past the preloaded library: a library that is opened with RTLD_DEEPBIND, and a function found by its version.
   This file is the library too (-DLIBRARY). Arguments: the library's path, and the names of the preloaded functions. */
#include "check.h"
#include <dlfcn.h>

struct functions {
    int (*lock)(pthread_mutex_t *), (*unlock)(pthread_mutex_t *);
    int (*signal)(pthread_cond_t *);
};

#ifdef LIBRARY
void functions(struct functions *functions)
{
    *functions = (struct functions){ pthread_mutex_lock, pthread_mutex_unlock, pthread_cond_signal };
}
#else
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
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

int main(int count, char **arguments)
{
    CHECK(count > 2);
    alarm(20);
    void *library = dlopen(arguments[1], RTLD_NOW | RTLD_DEEPBIND);
    CHECK(library != NULL);
    void (*get)(struct functions *) = (void (*)(struct functions *))dlsym(library, "functions");
    struct functions its;
    get(&its);
    CHECK(its.lock == pthread_mutex_lock && its.signal == pthread_cond_signal);
    CHECK(dlvsym(RTLD_DEFAULT, "pthread_cond_signal", "GLIBC_2.3.2") == (void *)pthread_cond_signal);
    CHECK(dlvsym(RTLD_DEFAULT, "pthread_cond_signal", "GLIBC_2.2.5") != (void *)pthread_cond_signal);
    for (int i = 2; i < count; i++) {
        if (dlvsym(RTLD_DEFAULT, arguments[i], "GLIBC_2.34") != dlsym(RTLD_DEFAULT, arguments[i])) {
            fprintf(stderr, "dlvsym does not find %s\n", arguments[i]);
            return 1;
        }
    }
    CHECK(dlvsym(RTLD_DEFAULT, "malloc", "GLIBC_2.2.5") != NULL);
    CHECK(dlvsym(RTLD_DEFAULT, "malloc", "LOCKWRIGHT") == NULL);
    pthread_t thread = start(wait_for_go, NULL);
    sleep_ms(20);
    GIVES(0, its.lock(&mutex));
    go = true;
    GIVES(0, its.signal(&cond));
    GIVES(0, its.unlock(&mutex));
    join(thread);
    return 0;
}
#endif
