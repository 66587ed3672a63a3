// Checkpoints through the C++ header: round trips of models, plans and groups of ranks by chance.
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Collection;
using shardrec::Comm;
using shardrec::Options;

// A model, plan and group of ranks by chance, and what all its tables and states hold.
class RandomWorld {
 public:
  explicit RandomWorld(uint32_t seed) : random_(seed) {
    tables_ = 1 + random_() % 4;
    for (size_t t = 0; t < tables_; ++t) {
      shapes_.push_back(
          {1 + static_cast<int64_t>(random_() % 40), 1 + static_cast<int64_t>(random_() % 20)});
      dtypes_.push_back(
          std::vector{SHARDREC_FLOAT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}[random_() % 3]);
      optimizers_.push_back(static_cast<shardrec_optimizer>(1 + random_() % 8));
    }
  }

  shardrec::Model model() const {
    shardrec::Model model;
    for (size_t t = 0; t < tables_; ++t) {
      Options options(SHARDREC_OPTIONS_TABLE);
      options.set(SHARDREC_OPTION_DTYPE, dtypes_[t]);
      const std::string name = "table " + std::to_string(t);
      const int32_t table = model.add_table(name, shapes_[t].first, shapes_[t].second, options);
      model.add_feature(table, "feature " + std::to_string(t));
      Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
      optimizer.set(SHARDREC_OPTION_OPTIMIZER, optimizers_[t]);
      model.set_optimizer(table, optimizer);
    }
    return model;
  }

  // {sharding groups, their size}
  std::pair<int, int> ranks() {
    return {1 + static_cast<int>(random_() % 3), 1 + static_cast<int>(random_() % 3)};
  }
  shardrec_sharding sharding() { return static_cast<shardrec_sharding>(1 + random_() % 6); }

  // Writes numbers into all rows and states that a later read can be compared with.
  void fill(Collection& tables) const {
    each([&](int32_t table, shardrec_table_part part, int64_t rows, int64_t width) {
      std::vector<float> values(static_cast<size_t>(rows * width));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<float>(static_cast<int64_t>(i * 7 + static_cast<size_t>(table)) % 200);
      }
      tables.write_range(table, part, 0, rows, {values.data(), rows, width});
    });
  }
  std::vector<float> read(Collection& tables) const {
    std::vector<float> all;
    each([&](int32_t table, shardrec_table_part part, int64_t rows, int64_t width) {
      std::vector<float> values(static_cast<size_t>(rows * width));
      tables.read_range(table, part, 0, rows, {values.data(), rows, width});
      all.insert(all.end(), values.begin(), values.end());
    });
    return all;
  }

 private:
  template <class Visit>
  void each(const Visit& visit) const {
    for (size_t t = 0; t < tables_; ++t) {
      const auto table = static_cast<int32_t>(t);
      const auto [rows, dim] = shapes_[t];
      const shardrec_optimizer optimizer = optimizers_[t];
      visit(table, SHARDREC_TABLE_WEIGHTS, rows, dim);
      if (optimizer == SHARDREC_OPTIMIZER_SGD) continue;
      visit(table, SHARDREC_TABLE_STATE, rows,
            optimizer == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD ? 1 : dim);
      if (optimizer == SHARDREC_OPTIMIZER_ADAM || optimizer == SHARDREC_OPTIMIZER_LAMB) {
        visit(table, SHARDREC_TABLE_STATE_2, rows, dim);
      } else if (optimizer == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_ADAM ||
                 optimizer == SHARDREC_OPTIMIZER_PARTIAL_ROWWISE_LAMB) {
        visit(table, SHARDREC_TABLE_STATE_2, rows, 1);
      }
    }
  }

  std::mt19937 random_;
  size_t tables_ = 0;
  std::vector<std::pair<int64_t, int64_t>> shapes_;
  std::vector<shardrec_dtype> dtypes_;
  std::vector<shardrec_optimizer> optimizers_;
};

TEST(CheckpointApi, RoundTripsOfAnyModelPlanAndReplicasAreBitEqual) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Directory directory;
    RandomWorld world(seed);
    std::vector<float> expected;
    for (const bool saving : {true, false}) {
      const std::pair<int, int> ranks = world.ranks();
      const int groups = ranks.first;
      const int size = ranks.second;
      const shardrec_sharding sharding = world.sharding();
      run(groups * size, [&](Comm& comm, int rank) {
        std::optional<shardrec::Mesh> mesh;
        if (groups > 1) mesh.emplace(comm, size);
        const shardrec::Model model = world.model();
        const shardrec::Plan plan = make_plan(model, size, sharding);
        Collection tables =
            mesh ? Collection(comm, *mesh, model, plan) : Collection(comm, model, plan);
        Checkpoint checkpoint(comm, directory.path());
        checkpoint.add("tables", tables);
        if (saving) {
          world.fill(tables);
          tables.set_step(0);
          checkpoint.commit(seed);
        } else {
          checkpoint.open();
          checkpoint.verify();
          checkpoint.load();
        }
        auto all = world.read(tables);
        if (!saving) {
          EXPECT_EQ(all, expected) << "rank " << rank;
        }
        shardrec::check(shardrec_comm_barrier(comm.get()));
        if (saving && rank == 0) expected = std::move(all);
      });
    }
  }
}

}  // namespace
}  // namespace shardrec_test
