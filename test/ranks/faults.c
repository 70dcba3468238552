/* faults.c - what goes wrong with a rank, at a point that a test names
 *
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Loaded before a program's libraries (LD_PRELOAD). CKOPT_FAULT is "RANK CALL
 * NUMBER ACTION [PART]": at its call of this number, counted from 1, of `rename`
 * (to a path with this part), `fsync` or `MPI_Isend`, the rank kills itself
 * (KILL), stops (STOP), gets but 24 MiB of memory from then on
 * (LIMIT), or sleeps for so many seconds. It first writes a file,
 * CKOPT_FAULT_FILE. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void limit(void) {
  long pages[6] = {0};
  struct rlimit data;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%ld %ld %ld %ld %ld %ld", &pages[0], &pages[1],
                      &pages[2], &pages[3], &pages[4], &pages[5]) != 6)
    abort();
  fclose(file);
  getrlimit(RLIMIT_DATA, &data);
  data.rlim_cur = (rlim_t)pages[5] * (rlim_t)getpagesize() + (24u << 20);
  if (setrlimit(RLIMIT_DATA, &data))
    abort();
}

static void reach(const char *call, const char *path) {
  static int seen;
  const char *fault = getenv("CKOPT_FAULT");
  const char *rank = getenv("OMPI_COMM_WORLD_RANK");
  const char *file = getenv("CKOPT_FAULT_FILE");
  char name[32], action[32], part[128] = "";
  int number = 0, of = 0;
  if (!fault || !rank ||
      sscanf(fault, "%d %31s %d %31s %127s", &of, name, &number, action, part) <
          4 ||
      atoi(rank) != of || strcmp(name, call) != 0 || !strstr(path, part) ||
      ++seen != number)
    return;
  if (file)
    fclose(fopen(file, "w"));
  if (strcmp(action, "KILL") == 0)
    kill(getpid(), SIGKILL);
  else if (strcmp(action, "STOP") == 0)
    kill(getpid(), SIGSTOP);
  else if (strcmp(action, "LIMIT") == 0)
    limit();
  else
    sleep((unsigned)atoi(action));
}

int rename(const char *from, const char *to) {
  static int (*real)(const char *, const char *);
  if (!real)
    real = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
  reach("rename", to);
  return real(from, to);
}

int fsync(int file) {
  static int (*real)(int);
  if (!real)
    real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  reach("fsync", "");
  return real(file);
}

/* MPI's types are numbers and pointers; its own name for the call is PMPI's. */
int MPI_Isend(const void *data, int count, void *type, int to, int tag,
              void *comm, void *request) {
  static int (*real)(const void *, int, void *, int, int, void *, void *);
  if (!real)
    real = (int (*)(const void *, int, void *, int, int, void *, void *))dlsym(
        RTLD_DEFAULT, "PMPI_Isend");
  reach("MPI_Isend", "");
  return real(data, count, type, to, tag, comm, request);
}
