/* Training steps written in C, to be timed beside the same steps in a language of bindings/. */
#ifndef OVERHEAD_STEPS_H
#define OVERHEAD_STEPS_H

#include <stdint.h>

typedef struct overhead_training overhead_training;

typedef enum {
  OVERHEAD_TABLES = 0, /* begin, forward, set_gradient, backward */
  OVERHEAD_WHOLE =
      1, /* also layers, their interaction, loss, DDP, metrics; batches of 8 sizes in turn */
  OVERHEAD_HASH = 2 /* hash64_ids of a batch of ids */
} overhead_kind;

/* One rank, one thread; tables of 1000 rows and 16 columns, one id a bag. NULL after an error, which is printed. */
overhead_training *overhead_open(int kind, int tables, int64_t batch);
void overhead_close(overhead_training *training);

/* Makes that many steps; not 0 after an error, which is printed. */
int overhead_steps(overhead_training *training, int64_t count);

#endif
