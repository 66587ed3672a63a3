/* A host as a user writes one, in C and with the public API only: a process that is one rank of a
 * group, trains a small model, and meets with trouble. failures_test.cpp starts it and reads its
 * reports. It leaves SIGPIPE as it finds it. */
#ifndef SHARDREC_TESTS_FAILURES_HOST_H
#define SHARDREC_TESTS_FAILURES_HOST_H

#include <shardrec/shardrec.h>
#include <stdint.h>

enum { CREATE_SECONDS = 6 };

/* What happens to one rank of the second group that the process is in. */
typedef struct trouble {
  int rank; /* -1: nothing happens to any */
  char phase[16];
  int step;   /* of the training, for phases that repeat */
  int signal; /* which the process sends itself */
  long delay; /* microseconds after the beginning of the phase; 0: before it */
} trouble;

typedef struct host {
  shardrec_engine engine;
  int devices; /* of the machine, among which the ranks' tables and dense weights are; 0: on the CPU */
  int number;     /* of this process, from 0 */
  int count;      /* of processes */
  int steps;      /* of each training */
  int lonely;     /* those without the rank in trouble do not form another group */
  double limit;   /* of waits in steps, in seconds; 0: the default */
  int replicated; /* the tables on the mesh, which all its ranks train then */
  int sharded;    /* the dense weights are a set of sharded parameters */
  const char *folder;
  int report; /* file descriptor of this process' report */
  trouble trouble;
} host;

/* How the life of a group ended. */
typedef struct ending {
  int failed;
  shardrec_status status;
  int64_t failed_rank; /* rank that the first failing call named, or -1 */
} ending;

/* One line of the report. Any thread. */
void say(const host *process, const char *format, ...);
int64_t nanoseconds(void);
void rest(double seconds);
/* Entries of a folder of /proc/self. */
int count_entries(const char *folder);
/* Called before each phase of the second group's life. */
void enter_phase(const host *process, int troubled, const char *phase, int step);
/* Reports this thread's error: "failed CALLER PHASE STATUS RANK NANOSECONDS OPERATION | SENTENCE".
 */
ending report_failure(const host *process, const char *caller, const char *phase);

/* Forms a group of the given generation, trains, closes and destroys it. */
ending live(const host *process, int generation, int rank, int size, int steps, int troubled);

/* Dense weights and their gradients, of a set of DDP parameters on a device: [count] each. */
typedef struct dense_memory {
  shardrec_memory *memory;
  shardrec_tensor weights, gradients;
} dense_memory;
shardrec_status make_dense_memory(int device, int64_t count, dense_memory *out);
/* That this process has copied from devices of others so far. */
int64_t bytes_from_peers(void);

/* What the ranks learn: a batch per rank and step, the same whatever the group. */
enum {
  TABLES = 7,
  BATCH = 48,
  MOST_BAG = 3,
  MOST_IDS = TABLES * BATCH * MOST_BAG,
  MOST_WIDTH = 128
};
typedef struct batch {
  int64_t ids[MOST_IDS];
  int64_t lengths[TABLES * BATCH];
  float targets[BATCH];
  shardrec_tensor id_view, length_view;
} batch;
shardrec_status make_model(shardrec_model **out);
shardrec_status make_batch(batch *out, int rank, int step);
/* Folds the bits of all rows of all tables into *digest. */
shardrec_status digest_tables(shardrec_collection *tables, uint64_t *digest);

#endif
