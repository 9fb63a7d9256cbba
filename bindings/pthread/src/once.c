/* A call of an initialiser, which may unwind.

   This file is compiled with -fexceptions, so that the cleanup is found by exceptions as well as by cancellation and
   by pthread_exit. */

#include <stddef.h>

struct trial {
    void (*undo)(void *);
    void *argument;
};

static void leave(struct trial *trial)
{
    if (trial->undo != NULL)
        trial->undo(trial->argument);
}

__attribute__((visibility("hidden")))
void lockwright_initialise(void (*routine)(void), void (*undo)(void *), void *argument)
{
    __attribute__((cleanup(leave))) struct trial trial = { undo, argument };

    routine();
    trial.undo = NULL;
}
