// Bags of random rows of a table that no cache holds, or of one that every cache holds.
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "measured.h"

namespace shardrec::bench {
namespace {

using compute::Element;

// So many that their rows push each other out of the cache from one iteration to the next.
constexpr size_t kIds = 1 << 20;

struct Shape {
  Element element;
  int64_t width;
  int64_t length;  // of a bag
  bool weighted = false;
  int64_t rows = 0;  // 0: all of the table
};

void pooled_lookup(benchmark::State& state, const Shape& shape) {
  const int64_t rows = shape.rows > 0 ? shape.rows : rows_of_table(shape.width, shape.element);
  const std::vector<int32_t> ids = random_rows(rows, kIds);
  const auto bags = static_cast<int64_t>(kIds) / shape.length;
  std::vector<int64_t> offsets;
  for (int64_t b = 0; b <= bags; ++b) offsets.push_back(b * shape.length);
  const std::vector<float> weights(kIds, 0.5F);
  Numbers out(static_cast<size_t>(bags * shape.width) * sizeof(float));
  const compute::PooledLookup job{.table = table().data(),
                                  .element = shape.element,
                                  .stride = static_cast<size_t>(shape.width),
                                  .width = shape.width,
                                  .ids = {.data = ids.data(), .is_64 = false},
                                  .weights = shape.weighted ? weights.data() : nullptr,
                                  .offsets = offsets.data(),
                                  .out = out.floats(),
                                  .out_stride = static_cast<size_t>(shape.width)};
  for (auto _ : state) {
    compute::cpu_kernels().pooled_lookup(job, 0, bags);
    benchmark::ClobberMemory();
  }
  const auto row_bytes = static_cast<int64_t>(compute::element_bytes(shape.element)) * shape.width;
  const int64_t read = bags * shape.length * (row_bytes + (shape.weighted ? 8 : 4));
  state.SetBytesProcessed(state.iterations() * (read + bags * shape.width * 4));
  state.SetItemsProcessed(state.iterations() * bags * shape.length);
}

void add(const Shape& shape) {
  const std::string name = "pooled_lookup/" + name_of(shape.element) +
                           "/columns:" + std::to_string(shape.width) +
                           "/bag:" + std::to_string(shape.length) +
                           (shape.weighted ? "/weighted" : "") + (shape.rows > 0 ? "/cached" : "");
  benchmark::RegisterBenchmark(name.c_str(),
                               [shape](benchmark::State& state) { pooled_lookup(state, shape); });
}

}  // namespace

void register_pooled_lookup() {
  for (const Element element : kElements) {
    for (const int64_t width : {16, 32, 64, 128, 256}) {
      for (const int64_t length : {1, 20}) add({element, width, length});
    }
    add({element, 64, 20, true});
    add({.element = element, .width = 64, .length = 20, .rows = 1024});
  }
}

}  // namespace shardrec::bench
