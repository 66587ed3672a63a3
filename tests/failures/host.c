/* failure_host ENGINE NUMBER COUNT FOLDER STEPS LIMIT [RANK PHASE STEP SIGNAL DELAY [lonely]]
 *
 * Three groups in one process: one that lives well, one in which a rank meets with trouble, and one
 * of the others. What happens is written to FOLDER/report.NUMBER, line by line. */
#include "host.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int count_threads(void) { return count_entries("/proc/self/task"); }
static shardrec_engine engine_of(const char *name) {
  if (strcmp(name, "mpi") == 0) return SHARDREC_ENGINE_MPI;
  return strcmp(name, "nccl") == 0 ? SHARDREC_ENGINE_NCCL : SHARDREC_ENGINE_GLOO;
}
static int count_files(void) { return count_entries("/proc/self/fd"); }

/* A process that has stopped keeps open what it has opened of the others' devices. */
static int are_files_open(const host *me) {
  return me->devices > 0 && me->trouble.signal == SIGSTOP && me->engine == SHARDREC_ENGINE_GLOO;
}

/* What a group has taken is given back, if not at once. */
static void report_leaks(const host *me, int threads, int files) {
  int64_t objects = -1;
  if (are_files_open(me)) files = INT_MAX;
  for (int i = 0; i < 300 && (count_threads() > threads || count_files() > files); ++i) rest(0.01);
  shardrec_live_objects(&objects);
  say(me, "left %d threads, %d files, %" PRId64 " objects", count_threads() - threads,
      count_files() - files, objects);
  if (me->devices > 0) say(me, "peers %" PRId64 " bytes", bytes_from_peers());
}

static int keeps_sigpipe(void) {
  struct sigaction action;
  return sigaction(SIGPIPE, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

int main(int count, char **words) {
  host me;
  char path[512];
  memset(&me, 0, sizeof me);
  me.trouble.rank = -1;
  if (count < 7) return 2;
  me.engine = engine_of(words[1]);
  const char *const devices = getenv("SHARDREC_TEST_DEVICES");
  if (devices != NULL) me.devices = atoi(devices);
  me.replicated = getenv("SHARDREC_TEST_REPLICATED") != NULL;
  me.sharded = getenv("SHARDREC_TEST_SHARDED") != NULL;
  me.number = atoi(words[2]);
  if (me.engine == SHARDREC_ENGINE_MPI) me.number = atoi(getenv("OMPI_COMM_WORLD_RANK"));
  me.count = atoi(words[3]);
  me.folder = words[4];
  me.steps = atoi(words[5]);
  me.limit = atof(words[6]);
  if (count >= 12) {
    me.trouble.rank = atoi(words[7]);
    snprintf(me.trouble.phase, sizeof me.trouble.phase, "%s", words[8]);
    me.trouble.step = atoi(words[9]);
    me.trouble.signal = atoi(words[10]);
    me.trouble.delay = atol(words[11]);
    me.lonely = count >= 13;
  }
  snprintf(path, sizeof path, "%s/report.%d", me.folder, me.number);
  me.report = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (me.report < 0) return 2;
  say(&me, "process %ld", (long)getpid());
  if (!keeps_sigpipe()) say(&me, "SIGPIPE was not at its default");

  if (live(&me, 0, me.number, me.count, 1, 0).failed) return 1;
  report_leaks(&me, count_threads(), count_files());
  const int threads = count_threads(), files = count_files();

  const int victim = me.trouble.rank;
  const ending how = live(&me, 1, me.number, me.count, me.steps, me.number == victim);
  report_leaks(&me, threads, files);
  if (victim >= 0 && me.number != victim && !me.lonely) {
    /* Whom the first failing call named is out; at the very end no call fails. */
    const int gone = how.failed ? (int)how.failed_rank : victim;
    const int rank = me.number > gone ? me.number - 1 : me.number;
    if (live(&me, 2, rank, me.count - 1, me.steps, 0).failed) return 1;
    report_leaks(&me, threads, files);
  }
  if (!keeps_sigpipe()) say(&me, "SIGPIPE is not at its default any more");
  say(&me, "end");
  return 0;
}
