#include "embedding/batch/batch.h"

#include <algorithm>
#include <bit>

namespace shardrec::embedding {
namespace {

// A compact one-dimensional tensor of `limit` elements (negative: any number), on one of the devices.
Verdict check_vector(const shardrec_tensor* tensor, Argument argument, int64_t limit,
                     core::DeviceSet devices) {
  Verdict verdict{.argument = argument};
  const auto bad = [&](Defect defect, int64_t value, int64_t wanted = 0) {
    verdict.defect = defect;
    verdict.value = value;
    verdict.limit = wanted;
    return verdict;
  };
  if (tensor == nullptr) return bad(Defect::kNoTensor, 0);
  if (!devices.has(*tensor)) return bad(Defect::kDevice, tensor->device_type);
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
  if (size == 0) return verdict;
  if (tensor->data == nullptr) return bad(Defect::kNoData, 0);
  if (std::bit_cast<uintptr_t>(tensor->data) % core::dtype_size(tensor->dtype) != 0) {
    return bad(Defect::kAlignment, tensor->dtype);
  }
  return verdict;
}

bool by_offsets(const BatchArguments& arguments) { return arguments.offsets != nullptr; }
// Of features that have batch sizes of their own.
bool is_variable(const BatchArguments& arguments) {
  return arguments.batch_sizes != nullptr || arguments.inverse != nullptr;
}
const shardrec_tensor* lengths_of(const BatchArguments& arguments) {
  return by_offsets(arguments) ? arguments.offsets : arguments.lengths;
}
Argument lengths_argument(const BatchArguments& arguments) {
  return by_offsets(arguments) ? Argument::kOffsets : Argument::kLengths;
}

// Of arguments without values: nothing else may be given either.
Verdict check_no_batch(const BatchArguments& arguments) {
  const auto unwanted = [](Argument argument) {
    return Verdict{.defect = Defect::kNotWanted, .argument = argument};
  };
  if (arguments.batch_size != 0) return unwanted(Argument::kBatchSize);
  if (arguments.lengths != nullptr) return unwanted(Argument::kLengths);
  if (arguments.offsets != nullptr) return unwanted(Argument::kOffsets);
  if (arguments.weights != nullptr) return unwanted(Argument::kWeights);
  if (arguments.batch_sizes != nullptr) return unwanted(Argument::kBatchSizes);
  if (arguments.inverse != nullptr) return unwanted(Argument::kInverse);
  return {};
}

int64_t integer_at(const shardrec_tensor& tensor, int64_t position) {
  return tensor.dtype == SHARDREC_INT64 ? static_cast<const int64_t*>(tensor.data)[position]
                                        : static_cast<const int32_t*>(tensor.data)[position];
}

}  // namespace

Verdict CheckedBatch::fill(const BatchArguments& arguments, const plan::Model& model,
                           compute::Backend& backend) {
  const Verdict verdict = open(arguments, model, backend);
  if (!verdict.good() || no_more_data_) return verdict;
  backend.routing().read_lengths(unread_, checked_);
  return finish(arguments, model, backend);
}

bool CheckedBatch::count(std::span<compute::RoutedIds> features,
                         std::span<compute::CheckedIds> checked,
                         std::span<compute::BlockCount> counts, compute::Backend& backend) {
  if (bags() == 0) return false;  // no length is wrong, and their sums are 0
  return staging() != nullptr
             ? staging()->count_batch(unread_lengths(), features, checked, counts)
             : backend.routing().count_batch(unread_lengths(), features, checked, counts);
}

Verdict CheckedBatch::open(const BatchArguments& arguments, const plan::Model& model,
                           compute::Backend& backend) {
  const size_t features = model.features.size();
  batch_size_ = 0;
  no_more_data_ = false;
  variable_ = is_variable(arguments);
  values_ = nullptr;
  weights_ = nullptr;
  finite_weights_.clear();
  non_finite_ = {};
  ids_ = 0;
  lengths_ = {};
  first_bags_.assign(features + 1, 0);
  first_ids_.assign(features + 1, 0);
  expansion_.clear();
  if (arguments.batch_size < 0) {
    return {.defect = Defect::kNegativeBatchSize,
            .argument = Argument::kBatchSize,
            .value = arguments.batch_size};
  }
  if (arguments.values == nullptr) {
    no_more_data_ = true;
    return check_no_batch(arguments);
  }
  const Verdict verdict =
      check_tensors(arguments, static_cast<int64_t>(features), backend.caller_devices());
  if (!verdict.good()) return refuse(verdict);
  batch_size_ = arguments.batch_size;
  given_.read({arguments.values, lengths_of(arguments), arguments.weights, arguments.inverse},
              backend);
  values_ = given_.elements(Given::kValues);
  ids_are_64_ = arguments.values->dtype == SHARDREC_INT64;
  if (arguments.weights != nullptr && ids_ != 0) {
    if (how_non_finite_ != SHARDREC_NON_FINITE_ALLOW) look_through(*arguments.weights, backend);
    weights_ = static_cast<const float*>(given_.elements(Given::kWeights));
  }
  lengths_ = lengths_memory_.resize_as<uint32_t>(static_cast<size_t>(first_bags_.back()));
  return refuse(list_lengths(*lengths_of(arguments), by_offsets(arguments)));
}

Verdict CheckedBatch::finish(const BatchArguments& arguments, const plan::Model& model,
                             compute::Backend& backend) {
  Verdict verdict = check_lengths(by_offsets(arguments));
  if (verdict.good() && variable_) {
    const compute::Integers inverse{.data = given_.elements(Given::kInverse),
                                    .is_64 = arguments.inverse->dtype == SHARDREC_INT64};
    verdict = expansion_.build(inverse, first_bags_, batch_size_, model, backend.routing(),
                               given_.staging_of({Given::kInverse}));
  }
  if (verdict.good()) verdict = check_weights();
  return refuse(verdict);
}

Verdict CheckedBatch::finish_lengths() {
  Verdict verdict = check_lengths(unread_.front().are_offsets);
  if (verdict.good()) verdict = check_weights();
  return refuse(verdict);
}

void CheckedBatch::look_through(const shardrec_tensor& weights, compute::Backend& backend) {
  const OutputView row{
      .data = static_cast<std::byte*>(weights.data),
      .stride = ids_,
      .device = {static_cast<shardrec_device_type>(weights.device_type), weights.device_id}};
  finite_weights_.look_through(row, 1, ids_, backend);
}

Verdict CheckedBatch::check_weights() {
  const int64_t position = finite_weights_.first();
  if (position < 0) return {};
  const auto after = std::upper_bound(first_ids_.begin(), first_ids_.end(), position);
  non_finite_ = {.defect = Defect::kNonFinite,
                 .argument = Argument::kWeights,
                 .feature = static_cast<int32_t>(after - first_ids_.begin()) - 1,
                 .position = position};
  return how_non_finite_ == SHARDREC_NON_FINITE_ERROR ? non_finite_ : Verdict{};
}

Verdict CheckedBatch::check_tensors(const BatchArguments& arguments, int64_t features,
                                    core::DeviceSet devices) {
  Verdict verdict = check_vector(arguments.values, Argument::kValues, -1, devices);
  if (!verdict.good()) return verdict;
  ids_ = arguments.values->shape[0];
  if (ids_ > kMostIds) return {.defect = Defect::kTooMany, .value = ids_, .limit = kMostIds};
  verdict = read_sizes(arguments, features);
  if (!verdict.good()) return verdict;
  if (arguments.lengths != nullptr && by_offsets(arguments)) {
    return {.defect = Defect::kGivenTwice, .argument = Argument::kOffsets};
  }
  verdict = check_vector(lengths_of(arguments), lengths_argument(arguments),
                         first_bags_.back() + (by_offsets(arguments) ? 1 : 0),
                         by_offsets(arguments) ? core::kHostOnly : devices);
  if (!verdict.good()) return verdict;
  if (arguments.batch_size > kMostIds) {
    return {.defect = Defect::kTooMany,
            .argument = Argument::kBatchSize,
            .value = arguments.batch_size,
            .limit = kMostIds};
  }
  if (is_variable(arguments)) {
    verdict = check_vector(arguments.inverse, Argument::kInverse, features * arguments.batch_size,
                           devices);
    if (!verdict.good()) return verdict;
  }
  if (arguments.weights == nullptr) return {};
  return check_vector(arguments.weights, Argument::kWeights, ids_, devices);
}

// Nothing but a good batch has a size.
Verdict CheckedBatch::refuse(const Verdict& verdict) {
  if (!verdict.good()) {
    batch_size_ = ids_ = 0;
    std::fill(first_bags_.begin(), first_bags_.end(), 0);
    std::fill(first_ids_.begin(), first_ids_.end(), 0);
  }
  return verdict;
}

Verdict CheckedBatch::read_sizes(const BatchArguments& arguments, int64_t features) {
  if (features != 0 && arguments.batch_size > INT64_MAX / 8 / features) {
    const shardrec_tensor* lengths = lengths_of(arguments);
    return {.defect = Defect::kShape,
            .argument = lengths_argument(arguments),
            .value = lengths == nullptr ? 0 : lengths->shape[0],
            .limit = INT64_MAX};
  }
  if (!is_variable(arguments)) {
    for (int64_t f = 0; f < features; ++f) {
      first_bags_[static_cast<size_t>(f) + 1] = (f + 1) * arguments.batch_size;
    }
    return {};
  }
  const Verdict verdict =
      check_vector(arguments.batch_sizes, Argument::kBatchSizes, features, core::kHostOnly);
  if (!verdict.good()) return verdict;
  for (int64_t f = 0; f < features; ++f) {
    const int64_t size = integer_at(*arguments.batch_sizes, f);
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

// What there is to read.
Verdict CheckedBatch::list_lengths(const shardrec_tensor& given, bool are_offsets) {
  const auto argument = are_offsets ? Argument::kOffsets : Argument::kLengths;
  if (are_offsets) {
    if (const int64_t first = integer_at(given, 0); first != 0) {
      return {.defect = Defect::kFirstOffset, .argument = argument, .position = 0, .value = first};
    }
    // Before the differences are taken: they then fit 32 bits where offsets never fall.
    if (const int64_t last = integer_at(given, first_bags_.back()); last != ids_) {
      return {.defect = Defect::kLengthSum, .argument = argument, .value = last, .limit = ids_};
    }
  }
  const void* const integers = given_.elements(Given::kLengths);
  unread_.clear();
  for (size_t f = 0; f + 1 < first_bags_.size(); ++f) {
    unread_.push_back({.given = {integers, given.dtype == SHARDREC_INT64},
                       .are_offsets = are_offsets,
                       .first = first_bags_[f],
                       .bags = first_bags_[f + 1] - first_bags_[f],
                       .most = ids_,
                       .out = lengths_.data() + first_bags_[f]});
  }
  checked_.assign(unread_.size(), {});
  return {};
}

// What was read.
Verdict CheckedBatch::check_lengths(bool are_offsets) {
  const auto argument = are_offsets ? Argument::kOffsets : Argument::kLengths;
  for (size_t f = 0; f < checked_.size(); ++f) {
    const compute::WrongInteger& wrong = checked_[f].wrong;
    if (wrong.position < 0) {
      first_ids_[f + 1] = checked_[f].sum + (are_offsets ? 0 : first_ids_[f]);
      continue;
    }
    const Defect of_length = wrong.value < 0 ? Defect::kNegativeLength : Defect::kLongLength;
    return {.defect = are_offsets ? Defect::kFallingOffset : of_length,
            .argument = argument,
            .feature = static_cast<int32_t>(f),
            .position = wrong.position,
            .value = wrong.value,
            .limit = are_offsets ? wrong.before : ids_};
  }
  if (!are_offsets && first_ids_.back() != ids_) {
    return {.defect = Defect::kLengthSum,
            .argument = argument,
            .value = first_ids_.back(),
            .limit = ids_};
  }
  return {};
}

}  // namespace shardrec::embedding
