// Tables of all optimizers and dtypes in training, through the C++ header, and what is behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "objects/collection_object.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {

inline constexpr int kOptimizers = 8;
inline constexpr int64_t kSamples = 6;

// A table for each optimizer, in dtypes that differ, two of them with MAX_NORM; as many rows as words of a
// bitmap and some more.
struct World {
  static int64_t rows(int table) { return 60 + 11 * table; }
  static int64_t dim(int table) { return 4 + table % 5; }
  static int64_t dims() {
    int64_t all = 0;
    for (int t = 0; t < kOptimizers; ++t) all += dim(t);
    return all;
  }

  static shardrec::Model model() {
    shardrec::Model model;
    for (int t = 0; t < kOptimizers; ++t) {
      shardrec::Options options(SHARDREC_OPTIONS_TABLE);
      options.set(SHARDREC_OPTION_DTYPE,
                  std::vector{SHARDREC_FLOAT32, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}[t % 3]);
      const int32_t table = model.add_table("t" + std::to_string(t), rows(t), dim(t), options);
      model.add_feature(table, "f" + std::to_string(t));
      shardrec::Options optimizer(SHARDREC_OPTIONS_OPTIMIZER);
      optimizer.set(SHARDREC_OPTION_OPTIMIZER, static_cast<shardrec_optimizer>(1 + t));
      optimizer.set(SHARDREC_OPTION_LEARNING_RATE, 0.1);
      if (t % 4 == 1) optimizer.set(SHARDREC_OPTION_MAX_NORM, 0.5);
      model.set_optimizer(table, optimizer);
    }
    return model;
  }
};

class Trained {
 public:
  Trained(shardrec::Comm& comm, shardrec::Mesh* mesh, shardrec_sharding sharding, int group,
          shardrec_replication replication)
      : model_(World::model()), plan_(make_plan(model_, group, sharding)), rank_(comm.rank()) {
    for (int32_t t = 0; t < kOptimizers && sharding == SHARDREC_SHARDING_DATA_PARALLEL; ++t) {
      plan_.replicate(t, replication);
    }
    if (mesh != nullptr) {
      tables.emplace(comm, *mesh, model_, plan_);
    } else {
      tables.emplace(comm, model_, plan_);
    }
    lookup_.emplace(*tables);
  }

  shardrec::training::Tables& behind() {
    return *shardrec::capi::enter(tables->get(), shardrec::capi::Access::kShared)->tables;
  }
  shardrec::embedding::Collection& collection() { return behind().collection(); }

  // The ids that a rank looks up in a table in a step.
  static std::vector<int64_t> ids_of(int64_t number, int rank, int table) {
    std::vector<int64_t> ids;
    for (int64_t b = 0; b < kSamples; ++b) {
      for (int64_t i = 0; i < (number + b) % 3; ++i) {
        ids.push_back((number * 17 + b * 5 + i * 31 + rank * 23 + table) % World::rows(table));
      }
    }
    return ids;
  }

  void step(int64_t number, shardrec_update update = SHARDREC_UPDATE_APPLY) {
    std::vector<int64_t> values;
    std::vector<int32_t> lengths;
    for (int t = 0; t < kOptimizers; ++t) {
      for (int64_t b = 0; b < kSamples; ++b) {
        lengths.push_back(static_cast<int32_t>((number + b) % 3));
      }
      const std::vector<int64_t> ids = ids_of(number, rank_, t);
      values.insert(values.end(), ids.begin(), ids.end());
    }
    std::vector<float> out(static_cast<size_t>(kSamples * World::dims()));
    lookup_->begin(kSamples, values, lengths);
    lookup_->forward(0, {out.data(), kSamples, World::dims()});
    for (float& value : out) value = 0.3F - value;
    lookup_->set_gradient(0, {out.data(), kSamples, World::dims()});
    lookup_->backward(update);
  }

  // What write_some() writes to: a table, and rows of it in no order, some of them twice, or a range.
  static int32_t table_written(int64_t number) {
    return static_cast<int32_t>(number % kOptimizers);
  }
  static bool writes_range(int64_t number) { return number % 2 == 0; }
  static std::vector<int64_t> rows_written(int64_t number, int rank) {
    const int64_t rows = 1 + number % 9;
    const int64_t first = (number * 13 + rank * 3) % (World::rows(table_written(number)) - rows);
    std::vector<int64_t> ids;
    for (int64_t i = 0; i < rows; ++i) {
      ids.push_back(first + (writes_range(number) ? i : (i * 5) % std::max<int64_t>(1, rows - 1)));
    }
    return ids;
  }

  // What changes tables in place of a step. Collective.
  void write_some(int64_t number) {
    const int32_t t = table_written(number);
    const std::vector<int64_t> ids = rows_written(number, rank_);
    const int64_t rows = std::ssize(ids);
    const int64_t width = World::dim(t);
    std::vector<float> values(static_cast<size_t>(rows * width), static_cast<float>(number % 7));
    if (writes_range(number)) {
      tables->write_range(t, SHARDREC_TABLE_WEIGHTS, ids[0], rows, {values.data(), rows, width});
      return;
    }
    tables->write_rows(t, SHARDREC_TABLE_WEIGHTS, ids, {values.data(), rows, width});
  }

  std::optional<shardrec::Collection> tables;

 private:
  shardrec::Model model_;
  shardrec::Plan plan_;
  std::optional<shardrec::Lookup> lookup_;
  int rank_;
};

// Ranks on which such tables are trained.
struct TrainedWorld {
  int ranks;
  int group;  // others than ranks: on a mesh
  shardrec_sharding sharding;
  shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES;

  std::string name() const {
    return std::to_string(ranks) + "in" + std::to_string(group) + "Kind" +
           std::to_string(static_cast<int>(sharding)) + "Way" +
           std::to_string(static_cast<int>(replication));
  }
};

inline std::vector<TrainedWorld> trained_worlds() {
  std::vector<TrainedWorld> all;
  for (const int ranks : {1, 3}) {
    for (int kind = SHARDREC_SHARDING_TABLE_WISE; kind <= SHARDREC_SHARDING_MIXED; ++kind) {
      all.push_back({ranks, ranks, static_cast<shardrec_sharding>(kind)});
    }
  }
  for (const shardrec_replication way : {SHARDREC_REPLICATION_ROWS, SHARDREC_REPLICATION_DENSE}) {
    all.push_back({2, 2, SHARDREC_SHARDING_DATA_PARALLEL, way});
  }
  all.push_back({4, 2, SHARDREC_SHARDING_COLUMN_WISE});
  all.push_back({2, 1, SHARDREC_SHARDING_ROW_WISE});
  return all;
}

// Runs body(trained, comm) on the ranks of a world.
template <class Body>
inline void on_ranks(const TrainedWorld& world, const Body& body) {
  run(world.ranks, [&](shardrec::Comm& comm, int) {
    std::optional<shardrec::Mesh> mesh;
    if (world.group != world.ranks) mesh.emplace(comm, world.group);
    Trained trained(comm, mesh ? &*mesh : nullptr, world.sharding, world.group, world.replication);
    body(trained, comm);
  });
}

}  // namespace shardrec_test
