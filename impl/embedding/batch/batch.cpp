#include "embedding/batch/batch.h"

#include <algorithm>

namespace shardrec::embedding {
namespace {

// A compact one-dimensional tensor of `limit` elements (negative: any number).
Verdict check_vector(const shardrec_tensor* tensor, Argument argument, int64_t limit) {
  Verdict verdict{.argument = argument};
  const auto bad = [&](Defect defect, int64_t value, int64_t wanted = 0) {
    verdict.defect = defect;
    verdict.value = value;
    verdict.limit = wanted;
    return verdict;
  };
  if (tensor == nullptr) return bad(Defect::kNoTensor, 0);
  if (tensor->device_type != SHARDREC_DEVICE_CPU) return bad(Defect::kDevice, tensor->device_type);
  const bool integers = argument != Argument::kWeights;
  const bool dtype_fits = integers
                              ? tensor->dtype == SHARDREC_INT32 || tensor->dtype == SHARDREC_INT64
                              : tensor->dtype == SHARDREC_FLOAT32;
  if (!dtype_fits) return bad(Defect::kDtype, tensor->dtype);
  if (tensor->ndim != 1) return bad(Defect::kDimensions, tensor->ndim);
  const int64_t size = tensor->shape[0];
  if (size < 0) return bad(Defect::kNegativeShape, size);
  if (tensor->stride[0] != 0 && tensor->stride[0] != 1 && size > 1) {
    return bad(Defect::kStride, tensor->stride[0]);
  }
  if (limit >= 0 && size != limit) return bad(Defect::kShape, size, limit);
  if (size > 0 && tensor->data == nullptr) return bad(Defect::kNoData, 0);
  return verdict;
}

Verdict first_bad(std::span<const Verdict> verdicts) {
  for (const Verdict& verdict : verdicts) {
    if (!verdict.good()) return verdict;
  }
  return {};
}

}  // namespace

Verdict CheckedBatch::fill(const BatchArguments& arguments, const Layout& layout,
                           core::Threads& threads) {
  const auto features = static_cast<int64_t>(layout.model().features.size());
  batch_size_ = 0;
  no_more_data_ = false;
  values_ = nullptr;
  weights_ = nullptr;
  ids_ = 0;
  lengths_ = {};
  first_bags_.assign(static_cast<size_t>(features) + 1, 0);
  first_ids_.assign(static_cast<size_t>(features) + 1, 0);
  verdicts_.assign(static_cast<size_t>(features), {});
  expansion_.clear();

  const bool by_offsets = arguments.by_offsets;
  const Argument lengths_argument = by_offsets ? Argument::kOffsets : Argument::kLengths;
  const shardrec_tensor* lengths = by_offsets ? arguments.offsets : arguments.lengths;

  if (arguments.batch_size < 0) {
    return {.defect = Defect::kNegativeBatchSize,
            .argument = Argument::kBatchSize,
            .value = arguments.batch_size};
  }
  if (arguments.values == nullptr) {
    no_more_data_ = true;
    if (arguments.batch_size != 0) {
      return {.defect = Defect::kNotWanted, .argument = Argument::kBatchSize};
    }
    if (lengths != nullptr) return {.defect = Defect::kNotWanted, .argument = lengths_argument};
    if (arguments.weights != nullptr) {
      return {.defect = Defect::kNotWanted, .argument = Argument::kWeights};
    }
    if (arguments.batch_sizes != nullptr) {
      return {.defect = Defect::kNotWanted, .argument = Argument::kBatchSizes};
    }
    if (arguments.inverse != nullptr) {
      return {.defect = Defect::kNotWanted, .argument = Argument::kInverse};
    }
    return {};
  }
  Verdict verdict = check_vector(arguments.values, Argument::kValues, -1);
  if (!verdict.good()) return verdict;
  ids_ = arguments.values->shape[0];
  if (ids_ > kMostIds) {
    return {.defect = Defect::kTooMany, .value = ids_, .limit = kMostIds};
  }
  verdict = read_sizes(arguments, features);
  if (!verdict.good()) return refuse(verdict);
  const int64_t bags = first_bags_.back();
  verdict = check_vector(lengths, lengths_argument, bags + (by_offsets ? 1 : 0));
  if (!verdict.good()) return refuse(verdict);
  if (arguments.batch_size > kMostIds) {
    return refuse({.defect = Defect::kTooMany,
                   .argument = Argument::kBatchSize,
                   .value = arguments.batch_size,
                   .limit = kMostIds});
  }
  if (arguments.variable) {
    verdict = check_vector(arguments.inverse, Argument::kInverse, features * arguments.batch_size);
    if (!verdict.good()) return refuse(verdict);
  }
  if (arguments.weights != nullptr) {
    verdict = check_vector(arguments.weights, Argument::kWeights, ids_);
    if (!verdict.good()) return refuse(verdict);
    weights_ = static_cast<const float*>(arguments.weights->data);
    if (ids_ == 0) weights_ = nullptr;
  }
  values_ = arguments.values->data;
  ids_are_64_ = arguments.values->dtype == SHARDREC_INT64;
  lengths_ = lengths_memory_.resize_as<uint32_t>(static_cast<size_t>(bags));
  batch_size_ = arguments.batch_size;

  if (by_offsets) {
    verdict = lengths->dtype == SHARDREC_INT64
                  ? read_offsets(static_cast<const int64_t*>(lengths->data), layout, threads)
                  : read_offsets(static_cast<const int32_t*>(lengths->data), layout, threads);
  } else {
    verdict = lengths->dtype == SHARDREC_INT64
                  ? read_lengths(static_cast<const int64_t*>(lengths->data), layout, threads)
                  : read_lengths(static_cast<const int32_t*>(lengths->data), layout, threads);
  }
  if (verdict.good() && arguments.variable) {
    verdict = expansion_.build(*arguments.inverse, first_bags_, batch_size_, layout, threads);
  }
  return refuse(verdict);
}

// Nothing but a good batch has a size.
Verdict CheckedBatch::refuse(const Verdict& verdict) {
  if (!verdict.good()) {
    batch_size_ = 0;
    std::fill(first_bags_.begin(), first_bags_.end(), 0);
    std::fill(first_ids_.begin(), first_ids_.end(), 0);
  }
  return verdict;
}

Verdict CheckedBatch::read_sizes(const BatchArguments& arguments, int64_t features) {
  if (features != 0 && arguments.batch_size > INT64_MAX / 8 / features) {
    const shardrec_tensor* lengths = arguments.by_offsets ? arguments.offsets : arguments.lengths;
    return {.defect = Defect::kShape,
            .argument = arguments.by_offsets ? Argument::kOffsets : Argument::kLengths,
            .value = lengths == nullptr ? 0 : lengths->shape[0],
            .limit = INT64_MAX};
  }
  if (!arguments.variable) {
    for (int64_t f = 0; f < features; ++f) {
      first_bags_[static_cast<size_t>(f) + 1] = (f + 1) * arguments.batch_size;
    }
    return {};
  }
  const Verdict verdict = check_vector(arguments.batch_sizes, Argument::kBatchSizes, features);
  if (!verdict.good()) return verdict;
  for (int64_t f = 0; f < features; ++f) {
    const void* data = arguments.batch_sizes->data;
    const int64_t size = arguments.batch_sizes->dtype == SHARDREC_INT64
                             ? static_cast<const int64_t*>(data)[f]
                             : static_cast<const int32_t*>(data)[f];
    if (size < 0 || size > kMostIds) {
      return {.defect = size < 0 ? Defect::kNegativeSize : Defect::kTooMany,
              .argument = Argument::kBatchSizes,
              .feature = static_cast<int32_t>(f),
              .position = f,
              .value = size,
              .limit = kMostIds};
    }
    first_bags_[static_cast<size_t>(f) + 1] = first_bags_[static_cast<size_t>(f)] + size;
  }
  return {};
}

template <class Length>
Verdict CheckedBatch::read_lengths(const Length* lengths, const Layout& layout,
                                   core::Threads& threads) {
  const auto features = static_cast<int64_t>(layout.model().features.size());
  threads.parallel_for(features, 1, [&](int64_t first, int64_t last) {
    for (int64_t f = first; f < last; ++f) {
      int64_t sum = 0;
      for (int64_t i = first_bags_[static_cast<size_t>(f)];
           i < first_bags_[static_cast<size_t>(f) + 1]; ++i) {
        const int64_t length = lengths[i];
        // Longer than all ids: wrong already, and adding it up could overflow.
        if (length < 0 || length > ids_) {
          verdicts_[static_cast<size_t>(f)] = {
              .defect = length < 0 ? Defect::kNegativeLength : Defect::kLongLength,
              .argument = Argument::kLengths,
              .feature = static_cast<int32_t>(f),
              .position = i,
              .value = length,
              .limit = ids_};
          break;
        }
        lengths_[static_cast<size_t>(i)] = static_cast<uint32_t>(length);
        sum += length;
      }
      first_ids_[static_cast<size_t>(f) + 1] = sum;
    }
  });
  const Verdict verdict = first_bad(verdicts_);
  if (!verdict.good()) return verdict;
  for (size_t f = 1; f < first_ids_.size(); ++f) first_ids_[f] += first_ids_[f - 1];
  if (first_ids_.back() != ids_) {
    return {.defect = Defect::kLengthSum,
            .argument = Argument::kLengths,
            .value = first_ids_.back(),
            .limit = ids_};
  }
  return {};
}

template <class Offset>
Verdict CheckedBatch::read_offsets(const Offset* offsets, const Layout& layout,
                                   core::Threads& threads) {
  const auto features = static_cast<int64_t>(layout.model().features.size());
  if (offsets[0] != 0) {
    return {.defect = Defect::kFirstOffset,
            .argument = Argument::kOffsets,
            .position = 0,
            .value = offsets[0]};
  }
  const int64_t bags = first_bags_.back();
  if (offsets[bags] != ids_) {
    // Before the differences are taken: they then fit 32 bits where offsets never fall.
    return {.defect = Defect::kLengthSum,
            .argument = Argument::kOffsets,
            .value = offsets[bags],
            .limit = ids_};
  }
  threads.parallel_for(features, 1, [&](int64_t first, int64_t last) {
    for (int64_t f = first; f < last; ++f) {
      const int64_t end = first_bags_[static_cast<size_t>(f) + 1];
      for (int64_t i = first_bags_[static_cast<size_t>(f)]; i < end; ++i) {
        if (offsets[i + 1] < offsets[i]) {
          verdicts_[static_cast<size_t>(f)] = {.defect = Defect::kFallingOffset,
                                               .argument = Argument::kOffsets,
                                               .feature = static_cast<int32_t>(f),
                                               .position = i + 1,
                                               .value = offsets[i + 1],
                                               .limit = offsets[i]};
          break;
        }
        lengths_[static_cast<size_t>(i)] = static_cast<uint32_t>(offsets[i + 1] - offsets[i]);
      }
      first_ids_[static_cast<size_t>(f) + 1] = offsets[end];
    }
  });
  return first_bad(verdicts_);
}

}  // namespace shardrec::embedding
