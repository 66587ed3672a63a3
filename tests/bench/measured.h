// What the kernel benchmarks share: big memory, rows to visit, and registering one benchmark for
// each combination of its parameters.
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compute/element.h"
#include "core/memory.h"

namespace shardrec::bench {

// Many times the last-level cache of most machines.
inline constexpr size_t kTableBytes = size_t{256} << 20;

inline constexpr compute::Element kElements[] = {
    compute::Element::kFloat32, compute::Element::kFloat16, compute::Element::kBfloat16};

inline std::string name_of(compute::Element element) {
  constexpr const char* kNames[] = {"float32", "float16", "bfloat16"};
  return kNames[static_cast<size_t>(element)];
}

// Pages that are there, holding small positive numbers as any of the element types.
class Numbers {
 public:
  explicit Numbers(size_t bytes) : pages_(bytes) {
    const std::vector<float> pattern(1024, 0x1.01p-6F);
    const size_t step = pattern.size() * sizeof(float);
    for (size_t at = 0; at < bytes; at += step) {
      std::memcpy(pages_.data() + at, pattern.data(), std::min(step, bytes - at));
    }
  }
  [[nodiscard]] void* data() { return pages_.data(); }
  [[nodiscard]] float* floats() { return static_cast<float*>(data()); }

 private:
  core::Pages pages_;
};

// One table for all benchmarks, made when the first one runs.
inline Numbers& table() {
  static Numbers numbers(kTableBytes);
  return numbers;
}

inline int64_t rows_of_table(int64_t width, compute::Element element) {
  return static_cast<int64_t>(kTableBytes / compute::element_bytes(element)) / width;
}

// `count` rows in [0, rows), uniform, in random order.
inline std::vector<int32_t> random_rows(int64_t rows, size_t count) {
  std::mt19937_64 random(7);
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % static_cast<uint64_t>(rows));
  return ids;
}

void register_pooled_lookup();
void register_row_update();
void register_scale_gradient();
void register_exchange();
void register_ddp();
void register_fsdp();
void register_hash();

}  // namespace shardrec::bench
