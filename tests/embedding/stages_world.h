// A model, a plan and the batches of all ranks, by chance, for tests of the stages of a step one at a
// time; and the batches plainly, for what is expected.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "embedding/batch/batch.h"
#include "embedding/exchange/route.h"
#include "embedding/step_tools.h"
#include "embedding/tables/layout.h"
#include "plan/plan.h"
#include "support/plan_boxes.h"
#include "support/ranks.h"

namespace shardrec::embedding {

using Random = std::mt19937_64;

inline int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// A number that depends on its arguments only, in [-1, 1), with all bits of a float in use.
inline float number(uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  uint64_t x = 0x9E3779B97F4A7C15U;
  for (const uint64_t part : {a, b, c, d}) x = (x ^ part) * 0xD6E8FEB86659FD93U, x ^= x >> 32;
  return static_cast<float>(static_cast<int32_t>(x >> 32)) * 0x1p-31F;
}

// An id as it is looked up: the policy of its table has been applied.
struct Id {
  int64_t row = -1;  // -1: dropped
  float weight = 1;
};
using Bag = std::vector<Id>;

// The batch of one rank, plainly and as the caller gives it.
struct RankBatch {
  std::vector<std::vector<Bag>> bags;  // by feature and sample
  std::vector<int64_t> values;
  std::vector<int32_t> lengths;
  std::vector<float> weights;
  int64_t samples = 0;
};

// A model, a plan and the batches of all ranks, by chance.
class World {
 public:
  explicit World(uint64_t seed) : random_(seed) {
    ranks_ = static_cast<int>(between(random_, 1, 5));
    weighted_ = random_() % 2 == 0;
    deduplicates_ = random_() % 2 == 0;
    plan_.topology = {ranks_, static_cast<int32_t>(between(random_, 1, ranks_))};
    make_model();
    for (int rank = 0; rank < ranks_; ++rank) {
      layouts_.push_back(std::make_unique<Layout>(model_, plan_, rank));
      batches_.push_back(make_batch());
    }
    for (int rank = 0; rank < ranks_; ++rank) route(rank);
  }

  int ranks() const { return ranks_; }
  const plan::Model& model() const { return model_; }
  const Layout& layout(int rank) const { return *layouts_[static_cast<size_t>(rank)]; }
  const RankBatch& batch(int rank) const { return batches_[static_cast<size_t>(rank)]; }
  const RoutedBatch& routed(int rank) const { return *routed_[static_cast<size_t>(rank)]; }
  const CheckedBatch& checked(int rank) const { return *checked_[static_cast<size_t>(rank)]; }
  bool weighted() const { return weighted_; }
  bool sequence(int32_t feature) const {
    return model_.features[static_cast<size_t>(feature)].pooling == SHARDREC_POOLING_NONE;
  }

  std::vector<comm::ConstBytes> messages_to(int owner) const {
    std::vector<comm::ConstBytes> messages;
    for (const auto& routed : routed_) {
      messages.push_back(routed->messages()[static_cast<size_t>(owner)]);
    }
    return messages;
  }

  // Samples of all ranks before those of `rank`.
  int64_t first_sample(int rank) const {
    int64_t first = 0;
    for (int r = 0; r < rank; ++r) first += batch(r).samples;
    return first;
  }

  // The bags of a feature of `source` as a part of `owner` sees them: rows of the part, empty where
  // none of a bag's are there.
  std::vector<Bag> bags_of(int source, const Part& part, int32_t feature) const {
    std::vector<Bag> out;
    const TableLayout& table = layout(source).table(part.table);
    for (const Bag& bag : batch(source).bags[static_cast<size_t>(feature)]) {
      Bag& own = out.emplace_back();
      if (table.own_ids_only() && part.owner != source) continue;
      for (const Id& id : bag) {
        if (id.row < part.row || id.row >= part.row + part.rows) continue;
        own.push_back({id.row - part.row, id.weight});
      }
    }
    return out;
  }

 private:
  void make_model() {
    const int64_t tables = between(random_, 1, 4);
    for (int64_t t = 0; t < tables; ++t) {
      plan::Table table{.name = "t" + std::to_string(t)};
      table.rows = between(random_, 1, t == 0 ? 2000 : 40);
      table.dim = between(random_, 1, 9);
      table.out_of_range =
          random_() % 2 == 0 ? SHARDREC_OUT_OF_RANGE_DROP : SHARDREC_OUT_OF_RANGE_CLAMP;
      plan::add_table(model_, table);
    }
    const int64_t features = between(random_, tables, tables + 3);
    for (int64_t f = 0; f < features; ++f) {
      constexpr shardrec_pooling kPoolings[] = {SHARDREC_POOLING_SUM, SHARDREC_POOLING_MEAN,
                                                SHARDREC_POOLING_NONE};
      plan::add_feature(model_, {.name = "f" + std::to_string(f),
                                 .table = static_cast<int32_t>(f % tables),
                                 .pooling = kPoolings[random_() % 3]});
    }
    plan_.tables.resize(model_.tables.size());
    for (int32_t t = 0; t < static_cast<int32_t>(tables); ++t) cut(t);
    plan::check_tiling(plan_, model_);
  }

  void cut(int32_t t) {
    const plan::Table& table = model_.tables[static_cast<size_t>(t)];
    if (between(random_, 0, 4) == 0) {
      plan::replicate(plan_, model_, t, static_cast<shardrec_replication>(between(random_, 1, 3)));
      return;
    }
    for (int64_t row = 0; row < table.rows;) {
      const int64_t rows =
          between(random_, std::min(table.rows - row, table.rows / 4 + 1), table.rows - row);
      for (int64_t col = 0; col < table.dim;) {
        const int64_t cols =
            between(random_, std::min<int64_t>(2, table.dim - col), table.dim - col);
        const auto rank = static_cast<int32_t>(between(random_, 0, ranks_ - 1));
        plan::add_box(plan_, model_, t, {rank, {row, rows, col, cols}});
        col += cols;
      }
      row += rows;
    }
  }

  RankBatch make_batch() {
    RankBatch batch;
    // More than a chunk of the route and a block of the sums, one sample, or none.
    constexpr int64_t kSamples[] = {0, 1, 40, 1100};
    batch.samples = kSamples[random_() % 4];
    for (const plan::Feature& feature : model_.features) {
      const plan::Table& table = model_.tables[static_cast<size_t>(feature.table)];
      const int64_t rarely = between(random_, 0, 3);  // sparse lengths, where bags are few
      std::vector<Bag>& bags = batch.bags.emplace_back(static_cast<size_t>(batch.samples));
      for (Bag& bag : bags) {
        const int64_t length = between(random_, 0, rarely) == 0 ? between(random_, 0, 5) : 0;
        batch.lengths.push_back(static_cast<int32_t>(length));
        for (int64_t i = 0; i < length; ++i) add_id(table, batch, bag);
      }
    }
    return batch;
  }

  void add_id(const plan::Table& table, RankBatch& batch, Bag& bag) {
    const bool hot = random_() % 2 == 0;
    const int64_t stray = between(random_, 0, 19);
    const int64_t value =
        stray == 0 ? -1
        : stray == 1
            ? table.rows + between(random_, 0, 3)
            : between(random_, 0, hot ? std::min<int64_t>(2, table.rows - 1) : table.rows - 1);
    const bool outside = value < 0 || value >= table.rows;
    const bool dropped = outside && table.out_of_range == SHARDREC_OUT_OF_RANGE_DROP;
    batch.values.push_back(value);
    batch.weights.push_back(static_cast<float>(between(random_, -8, 8)) / 4);
    bag.push_back({.row = dropped   ? -1
                          : outside ? 0
                                    : value,
                   .weight = weighted_ ? batch.weights.back() : 1.0F});
  }

  void route(int rank) {
    RankBatch& batch = batches_[static_cast<size_t>(rank)];
    const shardrec_tensor values = test::vector_of(batch.values);
    const shardrec_tensor lengths = test::vector_of(batch.lengths);
    const shardrec_tensor weights = test::vector_of(batch.weights);
    BatchArguments arguments{.batch_size = batch.samples, .values = &values, .lengths = &lengths};
    if (weighted_) arguments.weights = &weights;
    checked_.push_back(std::make_unique<CheckedBatch>(compute::cpu_memory()));
    routed_.push_back(std::make_unique<RoutedBatch>(layout(rank), false, tools_.scratch(),
                                                    compute::cpu_memory()));
    buffers_.push_back(tools_.bodies().make_buffer());
    routed_.back()->set_deduplicates(deduplicates_);
    EXPECT_TRUE(routed_.back()
                    ->route(*checked_.back(), arguments, tools_.backend(), *buffers_.back())
                    .good());
  }

  Random random_;
  int ranks_ = 1;
  bool weighted_ = false;
  bool deduplicates_ = false;
  plan::Model model_;
  plan::Plan plan_;
  StepTools tools_{2};
  std::vector<std::unique_ptr<Layout>> layouts_;  // by rank, as all below
  std::vector<RankBatch> batches_;
  std::vector<std::unique_ptr<CheckedBatch>> checked_;
  std::vector<std::unique_ptr<RoutedBatch>> routed_;
  std::vector<std::unique_ptr<comm::MessageBuffer>> buffers_;
};

class Stages : public ::testing::TestWithParam<int> {
 protected:
  const World world_{static_cast<uint64_t>(GetParam()) + 90000};
  StepTools tools_{2};
};

}  // namespace shardrec::embedding
