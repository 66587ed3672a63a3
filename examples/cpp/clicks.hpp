// Clicks that anybody can make again: every number is a hash of what it is for. What dlrm.cpp trains on.
#ifndef CLICKS_HPP
#define CLICKS_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <shardrec/shardrec.hpp>
#include <vector>

namespace clicks {

constexpr int64_t kFeatures = 6, kDense = 4, kRows = 1000;
constexpr int64_t kValues = 300;  // that a feature takes

struct Batch {
  int64_t size = 0;
  std::vector<float> dense;      // [size, kDense]
  std::vector<float> labels;     // [size]
  std::vector<int64_t> ids;      // feature after feature, bag after bag
  std::vector<int64_t> lengths;  // [kFeatures, size]
};

// In [-1, 1), by 2^24 steps.
inline float real(int64_t hash) { return static_cast<float>(hash - (1 << 23)) / (1 << 23); }

// Samples [first, first + size).
inline Batch make_batch(int64_t first, int64_t size) {
  const auto hashed = [](uint64_t seed, std::vector<int64_t> keys, int64_t rows) {
    shardrec::hash64_ids(seed, keys, rows, keys);
    return keys;
  };
  Batch batch;
  batch.size = size;
  std::vector<int64_t> keys;
  for (int64_t n = first * 8; n < (first + size) * 8; ++n) keys.push_back(n);
  const auto numbers = hashed(1, keys, 1 << 24);  // eight for each sample
  keys.clear();
  for (int64_t f = 0; f < kFeatures; ++f) {
    for (int64_t n = first; n < first + size; ++n) {
      batch.lengths.push_back(1 + n % 3);
      for (int64_t k = 0; k < 1 + n % 3; ++k) keys.push_back((n * kFeatures + f) * 3 + k);
    }
  }
  const auto raw = hashed(2, keys, kValues);  // what a log would have: a city, a device, ...
  batch.ids = hashed(3, raw, kRows);          // the row of each
  std::vector<double> score(size);
  for (int64_t n = 0; n < size; ++n) {
    for (int64_t c = 0; c < kDense; ++c) batch.dense.push_back(real(numbers[n * 8 + c]));
    score[n] = batch.dense[n * kDense] - batch.dense[n * kDense + 1];
  }
  size_t i = 0;
  for (int64_t f = 0; f < kFeatures; ++f) {
    const auto planted = hashed(4 + f, raw, 1 << 24);
    for (int64_t n = 0; n < size; ++n) {
      for (int64_t k = 0; k < batch.lengths[f * size + n]; ++k) score[n] += real(planted[i++]);
    }
  }
  for (int64_t n = 0; n < size; ++n) {
    const double z = 3 * score[n] / (1 + std::fabs(3 * score[n]));  // in (-1, 1)
    batch.labels.push_back(real(numbers[n * 8 + kDense]) < z ? 1.0F : 0.0F);
  }
  return batch;
}

}  // namespace clicks

#endif
