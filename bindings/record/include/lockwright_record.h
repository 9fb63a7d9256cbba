/* Records this program from its own code.

   Link with -llockwright_recorder, before the libraries whose locks are to be recorded. `lockwright record --read FOLDER`
   reads the recording: a task set, priority inversions, orders that can deadlock. Nothing is recorded before
   lw_record_start. */

#ifndef LOCKWRIGHT_RECORD_H
#define LOCKWRIGHT_RECORD_H

#ifdef __cplusplus
extern "C" {
#endif

/* Begins to record this process. The recording goes into `folder`, which is made; an earlier recording in it is replaced.

   Call it before the program creates threads. Of threads that exist already the locks and waits are recorded, but not when
   they execute. A process records once.

   Returns:
   - 0: success.
   - EINVAL: `folder` is NULL.
   - EBUSY: the process is recorded, or has been recorded already.
   - EAGAIN: there is no thread for the recording.
   - Any other number: the folder cannot be written. */
int lw_record_start(const char *folder);

/* Ends the recording, and waits until it is written, for ten seconds at most. The end of the process does the same.

   Returns:
   - 0: success.
   - ENOENT: nothing is recorded. */
int lw_record_stop(void);

#ifdef __cplusplus
}
#endif

#endif
