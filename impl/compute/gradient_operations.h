// The family of operations on the way of gradients from outputs to the owners of rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "compute/bags.h"
#include "compute/kept_gradients.h"
#include "compute/kernels.h"
#include "compute/table_rows.h"

namespace shardrec::compute {

// The gradient of some columns of an output: a row per sample, or per id of a sequence.
struct OutputGradient {
  const void* rows = nullptr;  // the first column of the feature
  Element element = Element::kFloat32;
  size_t stride = 0;  // elements
};

// The gradients of a block as they travel: out = [rows, width] floats, of each bag that is not empty
// clamp(gradient / divisor, +-max_gradient) / length (ScaleGradient). The gradient of a bag is the
// sum of those of its samples, in ascending order.
struct BagGradients {
  const SentBags* bags = nullptr;
  const uint32_t* lengths = nullptr;  // [samples], null: not divided
  BagSamples samples = {};
  OutputGradient gradient;
  std::span<const ColumnMap> columns;  // of out; column: of the feature
  int64_t width = 0;
  float divisor = 1;
  float max_gradient = 0;
  float* out = nullptr;
  float* unscaled = nullptr;  // where wanted, as out, but neither divided by divisor nor clamped
};

// Those of the ids of a sequence that went to the block's intervals: out = [ids there, width].
struct SequenceGradients {
  int64_t ids = 0;                     // of the sequence
  const int32_t* intervals = nullptr;  // [ids]: interval of each, or kDroppedId; null: all 0
  int32_t first_interval = 0;          // of the block: [first_interval, end_interval)
  int32_t end_interval = 1;
  const uint32_t* chunk_rows = nullptr;  // as SentBags
  OutputGradient gradient;
  std::span<const ColumnMap> columns;
  int64_t width = 0;
  float divisor = 1;
  float max_gradient = 0;
  float* out = nullptr;
};

// Products of the rows of a block's ids with the gradients of their bags, for gradients of weights:
// out = [ids, ranges] floats, each a 16-lane sum over a range of columns.
struct WeightProducts {
  TableRows table;
  Ids ids;
  const Bags* bags = nullptr;
  std::span<const ColumnRange> ranges;
  const float* gradients = nullptr;  // [bags that are not empty, width]
  float* out = nullptr;
};

// The products of one part, a row per id that it got, and which of its ranges is meant.
struct ProductRows {
  const float* rows = nullptr;
  int64_t ranges = 0;
};
struct ProductTerm {
  int32_t part = 0;  // into the parts of the table
  int32_t range = 0;
};

// The gradients of the weights of a feature: out[i] = the sum of the terms of the interval of id i,
// in their order, from 0.
struct WeightGradients {
  int64_t ids = 0;
  const int32_t* intervals = nullptr;   // [ids]: interval of each, or kDroppedId; null: all 0
  std::span<const ProductRows> parts;   // of the table
  std::span<const ProductTerm> terms;   // none: out is 0
  std::span<const int32_t> first_term;  // [intervals + 1]
  float* out = nullptr;
};

// Rows that have one occurrence each, as a RowUpdate says it: run = 0, 1, 2, ..., rows; bags = 0, 1, 2,
// ...; blocks = 0, 0, 0, ...
struct SingleOccurrences {
  int64_t rows = 0;
  int64_t* run = nullptr;
  uint32_t* bags = nullptr;
  uint32_t* blocks = nullptr;
};

// When an operation is over, and the thread rule: backend.h.
class GradientOperations {
 public:
  virtual ~GradientOperations() = default;
  GradientOperations(const GradientOperations&) = delete;
  GradientOperations& operator=(const GradientOperations&) = delete;

  // On the source; then the gradients of weights, on owners and on the source.
  virtual void pack_bag_gradients(std::span<const BagGradients> blocks) = 0;
  virtual void pack_sequence_gradients(std::span<const SequenceGradients> blocks) = 0;
  virtual void take_weight_products(std::span<const WeightProducts> blocks) = 0;
  virtual void sum_weight_products(std::span<const WeightGradients> features) = 0;

  // On the owner.
  virtual void number_occurrences(const SingleOccurrences& rows) = 0;
  // width: columns of the rows.
  virtual std::unique_ptr<KeptGradients> make_kept_gradients(int64_t width) = 0;

 protected:
  GradientOperations() = default;
};

}  // namespace shardrec::compute
