#include "embedding/batch/expansion.h"

namespace shardrec::embedding {

Verdict Expansion::build(const compute::Integers& inverse, std::span<const int64_t> first_bags,
                         int64_t batch_size, const plan::Model& model,
                         compute::RoutingOperations& routing, compute::HostStaging* staging) {
  const size_t features = first_bags.size() - 1;
  samples_.assign(features, {});
  pooled_.clear();
  sorted_.clear();
  const auto bags_of = [&](size_t f) { return first_bags[f + 1] - first_bags[f]; };
  size_t words = 0;
  for (size_t f = 0; f < features; ++f) {
    if (model.features[f].pooling == SHARDREC_POOLING_NONE) continue;
    words += static_cast<size_t>(bags_of(f) + 1 + batch_size);
  }
  uint32_t* memory = memory_.resize_as<uint32_t>(words).data();
  for (size_t f = 0; f < features; ++f) {
    if (model.features[f].pooling == SHARDREC_POOLING_NONE) continue;
    uint32_t* const starts = memory;
    uint32_t* const samples = starts + bags_of(f) + 1;
    memory = samples + batch_size;
    samples_[f] = {starts, samples};
    pooled_.push_back(static_cast<int32_t>(f));
    sorted_.push_back({.bag_of = inverse,
                       .first = static_cast<int64_t>(f) * batch_size,
                       .count = batch_size,
                       .bags = bags_of(f),
                       .starts = starts,
                       .samples = samples});
  }
  wrong_.resize(sorted_.size());
  if (staging != nullptr) {
    staging->sort_samples(sorted_, wrong_);
  } else {
    routing.sort_samples(sorted_, wrong_);
  }
  present_ = true;
  for (size_t i = 0; i < wrong_.size(); ++i) {
    if (wrong_[i].position < 0) continue;
    return {.defect = Defect::kInverseRange,
            .argument = Argument::kInverse,
            .feature = pooled_[i],
            .position = wrong_[i].position,
            .value = wrong_[i].value,
            .limit = sorted_[i].bags};
  }
  return {};
}

}  // namespace shardrec::embedding
