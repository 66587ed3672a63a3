// Outputs that no cache holds: they may be written past the caches, where they begin cache lines.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {
namespace {

// 24 MiB of floats that begin a cache line, with room for one more.
struct FreeFloats {
  void operator()(float* floats) const { std::free(floats); }
};
using Floats = std::unique_ptr<float, FreeFloats>;

TEST(LargeOutput, HasTheSameBitsWhereverItLies) {
  constexpr int64_t kBatch = 6144;
  constexpr int64_t kDims[] = {512, 24, 488};  // rows of the second do not end cache lines
  constexpr int64_t kWidth = 1024;
  constexpr int64_t kRows = 300;
  run_ranks(2, 2, [&](int rank, shardrec_comm* comm) {
    shardrec_model* model = nullptr;
    SR_OK(shardrec_model_create(nullptr, &model));
    int32_t table = 0;
    for (const int64_t dim : kDims) {
      const std::string name = "t" + std::to_string(dim);
      SR_OK(shardrec_model_add_table(model, name.c_str(), kRows, dim, nullptr, &table));
      SR_OK(shardrec_model_add_feature(model, table, name.c_str(),
                                       dim == 24 ? SHARDREC_POOLING_MEAN : SHARDREC_POOLING_SUM));
    }
    shardrec_topology* topology = nullptr;
    SR_OK(shardrec_topology_create(2, 2, nullptr, &topology));
    shardrec_plan* plan = nullptr;
    SR_OK(shardrec_plan_create_empty(model, topology, nullptr, &plan));
    // Rank 0 has the first two tables, rank 1 the third.
    for (int32_t t = 0; t < 3; ++t) {
      SR_OK(add_box(plan, t, t / 2, 0, kRows, 0, kDims[t]));
    }
    shardrec_collection* tables = nullptr;
    SR_OK(shardrec_collection_create(comm, nullptr, model, plan, nullptr, &tables));
    shardrec_lookup* lookup = nullptr;
    SR_OK(shardrec_lookup_create(tables, nullptr, &lookup));

    std::vector<int64_t> lengths;
    std::vector<int64_t> values;
    for (int64_t bag = 0; bag < 3 * kBatch; ++bag) {
      lengths.push_back((bag + rank) % 4);
      for (int64_t i = 0; i < lengths.back(); ++i) values.push_back((bag * 7 + i * 31) % kRows);
    }
    const shardrec_tensor values_tensor = vector_of(values);
    const shardrec_tensor lengths_tensor = vector_of(lengths);
    SR_OK(begin_batch(
        lookup, {.batch_size = kBatch, .values = &values_tensor, .lengths = &lengths_tensor}));

    constexpr size_t kFloats = static_cast<size_t>(kBatch * kWidth);
    const Floats aligned(
        static_cast<float*>(std::aligned_alloc(64, (kFloats + 16) * sizeof(float))));
    const Floats shifted(
        static_cast<float*>(std::aligned_alloc(64, (kFloats + 16) * sizeof(float))));
    std::fill_n(aligned.get(), kFloats, -7.0F);
    std::fill_n(shifted.get(), kFloats + 1, -7.0F);
    const shardrec_tensor first = matrix(aligned.get(), kBatch, kWidth);
    const shardrec_tensor second = matrix(shifted.get() + 1, kBatch, kWidth);
    SR_OK(shardrec_lookup_forward(lookup, 0, &first));
    SR_OK(shardrec_lookup_forward(lookup, 0, &second));
    EXPECT_EQ(std::memcmp(aligned.get(), shifted.get() + 1, kFloats * sizeof(float)), 0);

    // A few samples, against the rows themselves.
    std::vector<float> rows(static_cast<size_t>(kRows * kDims[0]));
    const shardrec_tensor rows_tensor = matrix(rows.data(), kRows, kDims[0]);
    SR_OK(
        shardrec_collection_read_range(tables, 0, SHARDREC_TABLE_WEIGHTS, 0, kRows, &rows_tensor));
    auto id = values.begin();
    for (int64_t sample = 0; sample < kBatch; ++sample) {
      const int64_t length = lengths[static_cast<size_t>(sample)];
      if (sample % 97 == 0) {
        for (int64_t c = 0; c < kDims[0]; ++c) {
          float sum = 0;
          for (int64_t i = 0; i < length; ++i) {
            sum += rows[static_cast<size_t>(id[i] * kDims[0] + c)];
          }
          ASSERT_EQ(aligned.get()[sample * kWidth + c], sum) << "sample " << sample;
        }
      }
      id += length;
    }
    SR_OK(shardrec_lookup_backward(lookup, SHARDREC_UPDATE_SKIP));

    shardrec_lookup_destroy(&lookup);
    shardrec_collection_destroy(&tables);
    shardrec_plan_destroy(&plan);
    shardrec_topology_destroy(&topology);
    shardrec_model_destroy(&model);
  });
}

}  // namespace
}  // namespace shardrec::test
