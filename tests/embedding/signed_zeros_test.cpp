// Gradients whose sums are negative zeros: their signs survive under every plan, number of threads
// and instruction set, in rows of few occurrences, hot ones and accumulated ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "comm/local/local_group.h"
#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "compute/row_operations.h"
#include "embedding/collection.h"
#include "embedding/lookup.h"
#include "embedding/rows/rows.h"
#include "planner/planner.h"
#include "support/ranks.h"

namespace shardrec::embedding {
namespace {

constexpr int64_t kRowsOfZeros = 40;
constexpr int64_t kDimOfZeros = 8;
constexpr int64_t kHot = 23;
constexpr int64_t kSamples = 15000;  // three of five name the hot row

int64_t id_of(int64_t sample) { return sample % 5 < 3 ? kHot : sample % kRowsOfZeros; }

struct Way {
  int ranks = 1;
  shardrec_sharding sharding = SHARDREC_SHARDING_TABLE_WISE;
  shardrec_replication replication = SHARDREC_REPLICATION_AUTO;
  int threads = 1;
  bool accumulate = false;
};

void train(Collection& collection, const Way& way, int rank) {
  Lookup lookup(std::shared_ptr<Collection>(&collection, [](Collection*) {}), {});
  // w = -0 - lr * g: +0 where g is -0, and -0 where g has lost its sign.
  std::vector<float> zeros(kRowsOfZeros * kDimOfZeros, -0.0F);
  write_rows(collection, {.rows = rank == 0 ? kRowsOfZeros : 0},
             {zeros.data(), kRowsOfZeros, kDimOfZeros, kDimOfZeros});
  const int64_t first = kSamples * rank / way.ranks;
  const int64_t count = kSamples * (rank + 1) / way.ranks - first;
  std::vector<int64_t> ids;
  for (int64_t s = 0; s < count; ++s) ids.push_back(id_of(first + s));
  std::vector<int64_t> lengths(ids.size(), 1);
  std::vector<float> weights(ids.size(), 0.25F);
  std::vector<float> out(ids.size() * kDimOfZeros);
  // A quarter of it is rounded to -0; every other column gets it with the sign turned.
  std::vector<float> gradient(out.size());
  for (size_t i = 0; i < gradient.size(); ++i) gradient[i] = i % 2 == 0 ? -0x1p-149F : 0x1p-149F;
  const shardrec_tensor values_view = test::vector_of(ids);
  const shardrec_tensor lengths_view = test::vector_of(lengths);
  const shardrec_tensor weights_view = test::vector_of(weights);
  const shardrec_tensor out_view = test::matrix(out.data(), count, kDimOfZeros);
  const shardrec_tensor gradient_view = test::matrix(gradient.data(), count, kDimOfZeros);
  for (const bool last : {false, true}) {
    if (!last && !way.accumulate) continue;
    lookup.begin({.batch_size = count,
                  .values = &values_view,
                  .lengths = &lengths_view,
                  .weights = &weights_view});
    lookup.forward(0, &out_view);
    lookup.set_gradient(0, &gradient_view);
    if (last) {
      lookup.backward();
    } else {
      lookup.backward(Finish::kAccumulate);
    }
  }
}

std::vector<float> trained(const Way& way) {
  plan::Model model;
  plan::set_optimizer(model, {.kind = SHARDREC_OPTIMIZER_SGD});
  plan::add_table(model, {.name = "t", .rows = kRowsOfZeros, .dim = kDimOfZeros});
  plan::add_feature(model, {.name = "f", .table = 0, .pooling = SHARDREC_POOLING_SUM});
  const plan::Plan plan =
      planner::make_plan(model, {.ranks = way.ranks, .ranks_per_node = way.ranks},
                         {.sharding = way.sharding, .replication = way.replication});
  std::vector<float> table(kRowsOfZeros * kDimOfZeros);
  const auto group = comm::local::make_group(way.ranks, way.ranks);
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < way.ranks; ++rank) {
    ranks.emplace_back([&, rank] {
      Collection collection(comm::local::join(group, rank), model, plan,
                            {.threads = way.threads, .divisor = SHARDREC_DIVISOR_NONE});
      train(collection, way, rank);
      const bool reads = rank == 0;
      read_rows(collection, {.rows = reads ? kRowsOfZeros : 0},
                {table.data(), reads ? kRowsOfZeros : 0, kDimOfZeros, kDimOfZeros});
      collection.collectives().barrier({.name = "end", .kind = 1});
      collection.communicator().leave();
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return table;
}

TEST(SignedZeros, OfGradientsAreTheSameUnderEveryPlanThreadsAndInstructionSet) {
  static_assert(kSamples * 3 / 5 > compute::kHotOccurrences);
  std::vector<float> expected(kRowsOfZeros * kDimOfZeros, -0.0F);
  for (int64_t sample = 0; sample < kSamples; ++sample) {
    // Of the columns with a gradient of -0; a gradient of +0 leaves -0.
    for (int64_t c = 0; c < kDimOfZeros; c += 2) {
      expected[static_cast<size_t>(id_of(sample) * kDimOfZeros + c)] = 0.0F;
    }
  }
  for (int set = 0; set < compute::cpu_kernel_count(); ++set) {
    compute::force_cpu_kernels(&compute::cpu_kernels_at(set));
    for (Way way : {Way{}, Way{.ranks = 2, .sharding = SHARDREC_SHARDING_ROW_WISE},
                    Way{.ranks = 2, .sharding = SHARDREC_SHARDING_COLUMN_WISE},
                    Way{.ranks = 2,
                        .sharding = SHARDREC_SHARDING_DATA_PARALLEL,
                        .replication = SHARDREC_REPLICATION_SAMPLES},
                    Way{.ranks = 2,
                        .sharding = SHARDREC_SHARDING_DATA_PARALLEL,
                        .replication = SHARDREC_REPLICATION_ROWS},
                    Way{.ranks = 2,
                        .sharding = SHARDREC_SHARDING_DATA_PARALLEL,
                        .replication = SHARDREC_REPLICATION_DENSE}}) {
      for (const int threads : {1, 3}) {
        for (const bool accumulate : {false, true}) {
          way.threads = threads;
          way.accumulate = accumulate;
          const std::vector<float> table = trained(way);
          for (size_t i = 0; i < table.size(); ++i) {
            ASSERT_EQ(table[i], 0);
            ASSERT_EQ(std::signbit(table[i]), std::signbit(expected[i]))
                << compute::cpu_kernels().name << ", sharding " << static_cast<int>(way.sharding)
                << ", replication " << static_cast<int>(way.replication) << ", threads " << threads
                << ", accumulate " << accumulate << ", row " << i / kDimOfZeros << ", column "
                << i % kDimOfZeros;
          }
        }
      }
    }
  }
  compute::force_cpu_kernels(nullptr);
}

}  // namespace
}  // namespace shardrec::embedding
