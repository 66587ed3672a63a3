// The family of operations that read rows of tables, on their owner in forward.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "compute/bags.h"
#include "compute/kernels.h"
#include "compute/table_rows.h"

namespace shardrec::compute {

// The sums of a block's bags, as they travel: out = [rows, width] floats. A row per bag that is not
// empty; without bags, a row of the table per id. weights null: all 1.
struct BagSums {
  TableRows table;
  Ids ids;
  const float* weights = nullptr;
  const Bags* bags = nullptr;  // null: each id is a bag of its own
  int64_t rows = 0;
  float* out = nullptr;
  // Where it is wanted, a bit per sample: is its bag in out? Words behind those are zeroed too.
  std::span<uint64_t> present;
};

// The outputs of some columns of a feature, straight from its rows: nobody else adds to them.
// out: a row per item, an empty bag's is 0. mean: sums are divided by the number of the bag's ids.
struct BagOutputs {
  TableRows table;
  Ids ids;
  const float* weights = nullptr;
  int64_t items = 0;                    // samples; of a sequence, ids
  const uint32_t* lengths = nullptr;    // [items], null: a sequence
  const uint32_t* chunk_ids = nullptr;  // [chunks + 1]: ids before each chunk of items
  void* out = nullptr;
  Element out_element = Element::kFloat32;
  size_t out_stride = 0;  // elements
  bool mean = false;
  // Where the batch may not be good (LocalBatch::good): 0 there, nothing is looked up. Null: it is.
  const uint32_t* good = nullptr;
};

// When an operation is over, and the thread rule: backend.h.
class LookupOperations {
 public:
  virtual ~LookupOperations() = default;
  LookupOperations(const LookupOperations&) = delete;
  LookupOperations& operator=(const LookupOperations&) = delete;

  virtual void sum_bags(std::span<const BagSums> blocks) = 0;
  // output_bytes: of the whole output that the blocks are in.
  virtual void look_up_outputs(std::span<const BagOutputs> blocks, size_t output_bytes) = 0;

 protected:
  LookupOperations() = default;
};

}  // namespace shardrec::compute
