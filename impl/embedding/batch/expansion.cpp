#include "embedding/batch/expansion.h"

#include <algorithm>

namespace shardrec::embedding {

Verdict Expansion::build(const shardrec_tensor& inverse, std::span<const int64_t> first_bags,
                         int64_t batch_size, const Layout& layout, core::Threads& threads) {
  const size_t features = first_bags.size() - 1;
  features_.resize(features);
  size_t words = 0;
  for (size_t f = 0; f < features; ++f) {
    if (layout.is_sequence(static_cast<int32_t>(f))) continue;
    words += static_cast<size_t>(first_bags[f + 1] - first_bags[f] + 1 + batch_size);
  }
  uint32_t* memory = memory_.resize_as<uint32_t>(words).data();
  for (size_t f = 0; f < features; ++f) {
    features_[f] = {};
    if (layout.is_sequence(static_cast<int32_t>(f))) continue;
    features_[f].starts = memory;
    memory += first_bags[f + 1] - first_bags[f] + 1;
    features_[f].samples = memory;
    memory += batch_size;
  }
  threads.parallel_for(static_cast<int64_t>(features), 1, [&](int64_t first, int64_t last) {
    for (int64_t f = first; f < last; ++f) {
      const auto feature = static_cast<int32_t>(f);
      if (layout.is_sequence(feature)) continue;
      const int64_t bags =
          first_bags[static_cast<size_t>(f) + 1] - first_bags[static_cast<size_t>(f)];
      inverse.dtype == SHARDREC_INT64
          ? build_feature(static_cast<const int64_t*>(inverse.data), feature, bags, batch_size)
          : build_feature(static_cast<const int32_t*>(inverse.data), feature, bags, batch_size);
    }
  });
  present_ = true;
  for (const Feature& feature : features_) {
    if (!feature.verdict.good()) return feature.verdict;
  }
  return {};
}

// A stable counting sort of the samples by their bag.
template <class Bag>
void Expansion::build_feature(const Bag* inverse, int32_t feature, int64_t bags,
                              int64_t batch_size) {
  Feature& own = features_[static_cast<size_t>(feature)];
  std::fill(own.starts, own.starts + bags + 1, 0U);
  const int64_t first = feature * batch_size;
  for (int64_t s = 0; s < batch_size; ++s) {
    const int64_t bag = inverse[first + s];
    if (bag < 0 || bag >= bags) {
      own.verdict = {.defect = Defect::kInverseRange,
                     .argument = Argument::kInverse,
                     .feature = feature,
                     .position = first + s,
                     .value = bag,
                     .limit = bags};
      return;
    }
    ++own.starts[bag + 1];
  }
  for (int64_t b = 0; b < bags; ++b) own.starts[b + 1] += own.starts[b];
  // Each start moves to the end of its bag, which is the start of the next one, and back.
  for (int64_t s = 0; s < batch_size; ++s) {
    own.samples[own.starts[inverse[first + s]]++] = static_cast<uint32_t>(s);
  }
  for (int64_t b = bags; b > 0; --b) own.starts[b] = own.starts[b - 1];
  own.starts[0] = 0;
}

}  // namespace shardrec::embedding
