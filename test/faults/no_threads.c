/* no_threads.c - a process that may make no more threads
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loaded before a program's libraries (LD_PRELOAD). From the call of
 * pthread_create on whose number CKOPT_NO_THREAD is, counted from 1, none gets a
 * thread, as where ulimit -u or a container's pids.max is reached. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

typedef void *Start(void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                   Start *start, void *data) {
  static int seen;
  const char *first = getenv("CKOPT_NO_THREAD");
  int (*real)(pthread_t *, const pthread_attr_t *, Start *, void *) =
      (__typeof__(real))dlsym(RTLD_NEXT, "pthread_create");
  if (first && __atomic_add_fetch(&seen, 1, __ATOMIC_RELAXED) >= atoi(first))
    return EAGAIN;
  return real(thread, attributes, start, data);
}
