/* Reports, times and signals. */
#include <dirent.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

void say(const host *process, const char *format, ...) {
  char line[1024];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length < 0) return;
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length] = '\n';
  if (write(process->report, line, (size_t)length + 1) != length + 1) _exit(3);
}

int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void rest(double seconds) {
  struct timespec pause;
  pause.tv_sec = (time_t)seconds;
  pause.tv_nsec = (long)((seconds - (double)pause.tv_sec) * 1e9);
  /* For trouble at random times, and for what this process asks for again and again. */
  nanosleep(&pause, NULL);
}

int count_entries(const char *folder) {
  int count = 0;
  DIR *open = opendir(folder);
  if (open == NULL) return -1;
  while (readdir(open) != NULL) ++count;
  closedir(open);
  return count;
}

static void strike(const host *process) {
  say(process, "struck %" PRId64, nanoseconds());
  kill(getpid(), process->trouble.signal);
}

static void *strike_later(void *argument) {
  const host *me = argument;
  rest((double)me->trouble.delay * 1e-6);
  strike(me);
  return NULL;
}

void enter_phase(const host *process, int troubled, const char *phase, int step) {
  const trouble *what = &process->trouble;
  pthread_t thread;
  if (!troubled || step != what->step || strcmp(phase, what->phase) != 0) return;
  if (what->delay == 0) {
    strike(process);
  } else if (pthread_create(&thread, NULL, strike_later, (void *)process) == 0) {
    pthread_detach(thread);
  }
}

ending report_failure(const host *process, const char *caller, const char *phase) {
  const int64_t now = nanoseconds();
  ending how = {1, shardrec_last_error_status(), -1};
  char *operation = NULL;
  char sentence[800];
  snprintf(sentence, sizeof sentence, "%s", shardrec_last_error());
  shardrec_last_error_i64(SHARDREC_ERROR_RANK, &how.failed_rank);
  shardrec_last_error_text(SHARDREC_ERROR_OPERATION, &operation);
  say(process, "failed %s %s %s %" PRId64 " %" PRId64 " %s | %s", caller, phase,
      shardrec_status_name(how.status), how.failed_rank, now, operation == NULL ? "-" : operation,
      sentence);
  shardrec_text_free(operation);
  return how;
}
