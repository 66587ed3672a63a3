// A training step written in C, to be timed beside the same in Go.
#ifndef OVERHEAD_H
#define OVERHEAD_H

#include <stdint.h>

typedef struct overhead_training overhead_training;

// One rank, one thread; tables of 1000 rows and 16 columns, one id a bag. whole: with layers, DDP and metrics.
// NULL after an error, which is printed.
overhead_training *overhead_open(int tables, int64_t batch, int whole);
void overhead_close(overhead_training *training);

// Makes that many steps; not 0 after an error, which is printed. Of a whole training each batch has another size.
int overhead_steps(overhead_training *training, int64_t count);

#endif
