// Raw ids mapped to rows of a table, as hosts do it once per batch.
#include <shardrec/library.h>

#include "measured.h"

namespace shardrec::bench {
namespace {

constexpr size_t kIds = 1 << 16;

struct Shape {
  int64_t rows;  // 0: the hashes themselves
  bool wide;     // ids and rows in 64 bits, else in 32
};

void hash_ids(benchmark::State& state, const Shape& shape) {
  const std::vector<int32_t> narrow = random_rows(int64_t{1} << 31, kIds);
  const std::vector<int64_t> wide(narrow.begin(), narrow.end());
  std::vector<int64_t> out(kIds);  // room for either width
  shardrec_tensor from{};
  shardrec_tensor to{};
  const auto view = [&](const void* memory, shardrec_tensor* tensor) {
    return shardrec_tensor_vector(const_cast<void*>(memory),
                                  shape.wide ? SHARDREC_INT64 : SHARDREC_INT32, kIds, tensor);
  };
  const void* const ids =
      shape.wide ? static_cast<const void*>(wide.data()) : static_cast<const void*>(narrow.data());
  if (view(ids, &from) != SHARDREC_OK || view(out.data(), &to) != SHARDREC_OK) {
    state.SkipWithError("no views");
    return;
  }
  for (auto _ : state) {
    if (shardrec_hash64_ids(7, &from, shape.rows, &to) != SHARDREC_OK) {
      state.SkipWithError("refused");
      return;
    }
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kIds));
  state.counters["id"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * kIds,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void add(const Shape& shape) {
  const std::string name = std::string("hash64_ids/") + (shape.wide ? "int64" : "int32") +
                           (shape.rows > 0 ? "/rows:" + std::to_string(shape.rows) : "/hashes");
  benchmark::RegisterBenchmark(name.c_str(),
                               [shape](benchmark::State& state) { hash_ids(state, shape); });
}

}  // namespace

void register_hash() {
  add({.rows = 0, .wide = true});
  for (const int64_t rows : {int64_t{1000}, int64_t{1} << 20, int64_t{40'000'000}}) {
    add({.rows = rows, .wide = true});
  }
  add({.rows = 40'000'000, .wide = false});
}

}  // namespace shardrec::bench
