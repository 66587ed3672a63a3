/* Dense weights of the host as a set of sharded parameters, in two units. */
#ifndef SHARDREC_TESTS_FAILURES_SHARDED_H
#define SHARDREC_TESTS_FAILURES_SHARDED_H

#include "host.h"

enum { UNITS = 2 };

/* Tells that a phase begins. */
typedef struct phases {
  void (*enter)(void *of, const char *phase, int step);
  void *of;
} phases;

typedef struct sharded {
  shardrec_fsdp *set; /* NULL: there is none */
  phases phases;
  int64_t sizes[UNITS];     /* of the parameter of each unit */
  float before[MOST_WIDTH]; /* this rank's shards before the last step */
  float after[MOST_WIDTH];  /* and after it, where it has ended */
  int has_before, has_after;
} sharded;

/* Makes the set, with the weights of rank 0. */
shardrec_status make_sharded(sharded *me, shardrec_comm *comm, phases told, float *weights,
                             int64_t count);
/* Forward: begins a step, and gets the weights. */
shardrec_status gather_weights(sharded *me, int step, float *weights);
/* Backward, reduction and optimizer. */
shardrec_status reduce_and_step(sharded *me, int step, const float *gradient);
/* After the training. */
shardrec_status read_whole(sharded *me, float *weights);
/* After a failure: what the set has is as before the step that failed, or as after it, and other calls say
 * what `ending` does. */
void check_failed_set(const host *process, sharded *me, const ending *how);

#endif
