#include "compute/cpu/routing/batch_checks.h"

#include <algorithm>

#include "compute/cpu/tasks/shares.h"

namespace shardrec::compute::cpu {
namespace {

template <class Length>
CheckedLengths read_lengths(const BagLengths& feature, const Length* lengths) {
  CheckedLengths checked;
  for (int64_t i = 0; i < feature.bags; ++i) {
    const int64_t length = lengths[feature.first + i];
    // Longer than all ids: wrong already, and adding it up could overflow.
    if (length < 0 || length > feature.most) {
      checked.wrong = {.position = feature.first + i, .value = length};
      return checked;
    }
    feature.out[i] = static_cast<uint32_t>(length);
    checked.sum += length;
  }
  return checked;
}

template <class Offset>
CheckedLengths read_offsets(const BagLengths& feature, const Offset* offsets) {
  CheckedLengths checked;
  for (int64_t i = 0; i < feature.bags; ++i) {
    const int64_t at = feature.first + i;
    if (offsets[at + 1] < offsets[at]) {
      checked.wrong = {.position = at + 1, .value = offsets[at + 1], .before = offsets[at]};
      return checked;
    }
    feature.out[i] = static_cast<uint32_t>(offsets[at + 1] - offsets[at]);
  }
  checked.sum = offsets[feature.first + feature.bags];
  return checked;
}

// A stable counting sort of the samples by their bag.
template <class Bag>
WrongInteger sort(const SamplesByBag& feature, const Bag* bag_of) {
  uint32_t* const starts = feature.starts;
  std::fill(starts, starts + feature.bags + 1, 0U);
  for (int64_t s = 0; s < feature.count; ++s) {
    const int64_t bag = bag_of[feature.first + s];
    if (bag < 0 || bag >= feature.bags) return {.position = feature.first + s, .value = bag};
    ++starts[bag + 1];
  }
  for (int64_t b = 0; b < feature.bags; ++b) starts[b + 1] += starts[b];
  // Each start moves to the end of its bag, which is the start of the next one, and back.
  for (int64_t s = 0; s < feature.count; ++s) {
    feature.samples[starts[bag_of[feature.first + s]]++] = static_cast<uint32_t>(s);
  }
  for (int64_t b = feature.bags; b > 0; --b) starts[b] = starts[b - 1];
  starts[0] = 0;
  return {};
}

template <class Body>
auto with_type(const Integers& integers, Body body) {
  return integers.is_64 ? body(static_cast<const int64_t*>(integers.data))
                        : body(static_cast<const int32_t*>(integers.data));
}

}  // namespace

void read_lengths(std::span<const BagLengths> features, std::span<CheckedLengths> checked,
                  const Context& context) {
  for_each_task(features.size(), context, [&](size_t f) {
    checked[f] = with_type(features[f].given, [&](const auto* integers) {
      return features[f].are_offsets ? read_offsets(features[f], integers)
                                     : read_lengths(features[f], integers);
    });
  });
}

void sort_samples(std::span<const SamplesByBag> features, std::span<WrongInteger> wrong,
                  const Context& context) {
  for_each_task(features.size(), context, [&](size_t f) {
    wrong[f] = with_type(features[f].bag_of,
                         [&](const auto* bag_of) { return sort(features[f], bag_of); });
  });
}

}  // namespace shardrec::compute::cpu
