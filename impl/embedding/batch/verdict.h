// What a rank says of its own batch, carried in the header of its input messages: every rank
// composes the same sentence from it.
#pragma once

#include <cstdint>
#include <string>

#include "core/error.h"
#include "plan/model/model.h"

namespace shardrec::embedding {

// Which argument of begin (or of set_gradient and backward) a defect is about.
enum class Argument : uint8_t {
  kBatchSize,
  kValues,
  kLengths,
  kOffsets,
  kWeights,
  kGradient,
  kBatchSizes,
  kInverse
};

enum class Defect : uint8_t {
  kNone,
  kNegativeBatchSize,  // value
  kNoTensor,           // a tensor that is needed is NULL
  kNotWanted,          // a tensor that must be NULL at the end of the data is not
  kGivenTwice,         // offsets beside lengths
  kDevice,             // value: device_type
  kDtype,              // value
  kDimensions,         // value: ndim
  kShape,              // value: elements; limit: elements wanted
  kNegativeShape,      // value
  kStride,             // value: stride
  kNoData,             // data is NULL
  kAlignment,          // data is not at a multiple of its dtype's size; value: dtype
  kTooMany,            // value: ids; limit
  kNegativeLength,     // feature, position, value
  kLongLength,         // feature, position, value; limit: ids
  kFirstOffset,        // value
  kFallingOffset,      // feature, position, value; limit: the offset before it
  kLengthSum,          // value: sum of the lengths, or the last offset; limit: ids
  kIdRange,            // feature, position, value; limit: rows
  kNegativeSize,       // feature, position, value: of batch_sizes
  kInverseRange,       // feature, position, value; limit: bags of the feature
  kNoGradient,         // set_gradient was not called; value: output
  kAccumulation,       // accumulate on one rank, backward on another
  kNonFinite,          // of weights: feature, position; of the gradient: feature, position: row,
                       // value: column, limit: output
  kSettings,           // learning rates, frozen tables or steps differ
};

// A POD that travels as it is: all of its bytes have values.
struct Verdict {
  Defect defect = Defect::kNone;
  Argument argument = Argument::kValues;
  uint8_t reserved[2] = {};
  int32_t feature = -1;
  int64_t position = -1;
  int64_t value = 0;
  int64_t limit = 0;

  bool good() const { return defect == Defect::kNone; }
};

// INVALID_BATCH with all parts that the verdict knows. rank: whose batch it is; -1: of no rank.
core::Error verdict_error(const Verdict& verdict, int rank, const char* operation,
                          const plan::Model& model);

}  // namespace shardrec::embedding
