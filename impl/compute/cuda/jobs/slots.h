// Touched rows of tables that all ranks hold, in slots (cuda_plugin.h).
#pragma once

#include <stdint.h>

#include "compute/cuda/jobs/tiles.h"

#ifdef __cplusplus
extern "C" {
#endif

// compute::SlotShape, with what is read: as compute::SlotRows.
typedef struct shardrec_cuda_slot {
  const void *index;       // uint64_t words of bits, or a list of uint32_t
  const float *gradients;  // [count, width]
  int64_t begin;
  int64_t rows;
  int64_t count;
  int64_t width;
  int32_t bits;
} shardrec_cuda_slot;

// compute::SlotPacking: a slot's index, of so many words of 8 bytes, and its gradients.
typedef struct shardrec_cuda_slot_packing {
  const int64_t *rows;      // [slot.count]
  shardrec_cuda_slot slot;  // its gradients are those of the rows
  uint64_t *index;
  float *gradients;
} shardrec_cuda_slot_packing;

typedef struct shardrec_cuda_slot_packings {
  const shardrec_cuda_slot_packing *slots;
  shardrec_cuda_tiles words;   // of their indexes
  shardrec_cuda_tiles floats;  // of their gradients
} shardrec_cuda_slot_packings;

// What a slot's index holds: bits that are set; and 1 where something in it is wrong. Zeros before.
typedef struct shardrec_cuda_slot_finding {
  unsigned long long set;
  unsigned long long wrong;
} shardrec_cuda_slot_finding;

typedef struct shardrec_cuda_slot_check {
  const shardrec_cuda_slot *slots;
  shardrec_cuda_tiles words;
  shardrec_cuda_slot_finding *findings;  // by slot
} shardrec_cuda_slot_check;

// A slot of a compute::SlotUnpacking.
typedef struct shardrec_cuda_slot_unpacking {
  shardrec_cuda_slot slot;
  int64_t *rows;
  const float **gradients;
  int64_t first_word;  // of bits: among the words of all slots of bits
} shardrec_cuda_slot_unpacking;

typedef struct shardrec_cuda_slot_unpackings {
  const shardrec_cuda_slot_unpacking *slots;
  shardrec_cuda_tiles items;  // words of bits, numbers of lists
  int64_t words;              // of all slots of bits
  uint32_t *set_before;       // [words]: bits set in all words before
  void *room;                 // room_bytes; null: room_bytes is set, and nothing else is done
  uint64_t room_bytes;
} shardrec_cuda_slot_unpackings;

#ifdef __cplusplus
}
#endif
