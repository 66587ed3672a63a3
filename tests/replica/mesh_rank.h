// One rank of a mesh with a table and a lookup, over the C API.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "shardrec/shardrec.h"
#include "support/ranks.h"
#include "support/structs.h"

namespace shardrec::test {

struct Arrangement {
  shardrec_placement placement = SHARDREC_PLACEMENT_INTRA_NODE_SYNC;
  shardrec_sharding sharding = SHARDREC_SHARDING_ROW_WISE;
  int group = 2;
  int64_t seed = 5;
  int64_t lookups = 2;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
  bool default_threads = false;  // else one
  int64_t rows = 13;
  int64_t dim = 6;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  double max_norm = 0;
  shardrec_replica_sync sync = SHARDREC_REPLICA_SYNC_TOUCHED;
  bool replicated_too = false;  // a second table of as many rows, which the plan replicates
  // Changes the collection's options further.
  std::function<void(shardrec_options*)> options = {};
};

class MeshRank {
 public:
  static constexpr int64_t kRows = 13;
  static constexpr int64_t kDim = 6;

  // Makes the mesh and what a collection is made of.
  MeshRank(shardrec_comm* comm, const Arrangement& setup)
      : comm_(comm),
        optimizer_(setup.optimizer),
        rows_(setup.rows),
        dim_(setup.dim),
        features_(setup.replicated_too ? 2 : 1) {
    shardrec_options* options = nullptr;
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_MESH, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_PLACEMENT, setup.placement));
    status_ = shardrec_mesh_create(comm, setup.group, options, &mesh_);
    shardrec_options_destroy(&options);
    if (status_ != SHARDREC_OK) return;
    shardrec_place place{.struct_size = sizeof place};
    SR_EXPECT_OK(shardrec_mesh_place(mesh_, &place));
    replica_ = place.replica_rank;
    SR_EXPECT_OK(shardrec_model_create(nullptr, &model_));
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_OPTIMIZER, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_OPTIMIZER, optimizer_));
    SR_EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_LEARNING_RATE, 0.1));
    if (setup.max_norm != 0) {
      SR_EXPECT_OK(shardrec_options_set_f64(options, SHARDREC_OPTION_MAX_NORM, setup.max_norm));
    }
    SR_EXPECT_OK(shardrec_model_set_optimizer(model_, SHARDREC_ALL_TABLES, options));
    shardrec_options_destroy(&options);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_TABLE, &options));
    SR_EXPECT_OK(shardrec_options_set_i64(options, SHARDREC_OPTION_DTYPE, setup.dtype));
    const auto allow = [&](shardrec_sharding kind) {
      SR_EXPECT_OK(
          shardrec_options_set_i64(options, SHARDREC_OPTION_ALLOWED_SHARDING, int64_t{1} << kind));
    };
    if (setup.replicated_too) allow(setup.sharding);
    SR_EXPECT_OK(shardrec_model_add_table(model_, "t", rows_, dim_, options, nullptr));
    SR_EXPECT_OK(shardrec_model_add_feature(model_, 0, "f", SHARDREC_POOLING_SUM));
    if (setup.replicated_too) {
      allow(SHARDREC_SHARDING_DATA_PARALLEL);
      SR_EXPECT_OK(shardrec_model_add_table(model_, "r", rows_, dim_, options, nullptr));
      SR_EXPECT_OK(shardrec_model_add_feature(model_, 1, "g", SHARDREC_POOLING_SUM));
    }
    shardrec_options_destroy(&options);
    shardrec_topology* topology = nullptr;
    SR_EXPECT_OK(shardrec_topology_create(setup.group, setup.group, nullptr, &topology));
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_PLAN, &options));
    SR_EXPECT_OK(
        shardrec_options_set_i64(options, SHARDREC_OPTION_SHARDING,
                                 setup.replicated_too ? SHARDREC_SHARDING_AUTO : setup.sharding));
    SR_EXPECT_OK(shardrec_plan_create(model_, topology, options, &plan_));
    shardrec_options_destroy(&options);
    shardrec_topology_destroy(&topology);
    SR_EXPECT_OK(shardrec_options_create(SHARDREC_OPTIONS_COLLECTION, &options_));
    SR_EXPECT_OK(shardrec_options_set_i64(options_, SHARDREC_OPTION_SEED, setup.seed));
    SR_EXPECT_OK(shardrec_options_set_i64(options_, SHARDREC_OPTION_LOOKUPS, setup.lookups));
    SR_EXPECT_OK(shardrec_options_set_i64(options_, SHARDREC_OPTION_REPLICA_SYNC, setup.sync));
    if (!setup.default_threads) {
      SR_EXPECT_OK(shardrec_options_set_i64(options_, SHARDREC_OPTION_THREADS, 1));
    }
    if (setup.options) setup.options(options_);
  }
  ~MeshRank() {
    destroy();
    shardrec_options_destroy(&options_);
    shardrec_plan_destroy(&plan_);
    shardrec_model_destroy(&model_);
    shardrec_mesh_destroy(&mesh_);
  }
  MeshRank(const MeshRank&) = delete;
  MeshRank& operator=(const MeshRank&) = delete;

  void create() {
    create_collection();
    if (status_ == SHARDREC_OK) create_lookup();
  }
  shardrec_status create_collection() { return create_collection(mesh_); }
  shardrec_status create_collection(shardrec_mesh* mesh) {
    status_ = shardrec_collection_create(comm_, mesh, model_, plan_, options_, &tables_);
    return status_;
  }
  void create_lookup() { SR_EXPECT_OK(shardrec_lookup_create(tables_, nullptr, &lookup_)); }

  // Of the lookup and the collection.
  void destroy() {
    shardrec_lookup_destroy(&lookup_);
    shardrec_collection_destroy(&tables_);
  }

  shardrec_status status() const { return status_; }
  int32_t replica() const { return replica_; }
  shardrec_mesh* mesh() { return mesh_; }
  const shardrec_plan* plan() const { return plan_; }
  shardrec_collection* tables() { return tables_; }

  shardrec_lookup* lookup() { return lookup_; }

  // The first status that is not OK, of the calls of one step up to the gradient.
  shardrec_status prepare_step(int64_t id, float slope) {
    std::vector<int64_t> values;
    for (int64_t f = 0; f < features_; ++f) {
      values.insert(values.end(), {id, (id + 5) % rows_});
    }
    std::vector<int64_t> lengths(static_cast<size_t>(features_), 2);
    const int64_t columns = features_ * dim_;
    const shardrec_tensor v = vector_of(values);
    const shardrec_tensor l = vector_of(lengths);
    output_.resize(static_cast<size_t>(columns));
    const shardrec_tensor o = matrix(output_.data(), 1, columns);
    std::vector<float> gradient(output_.size());
    for (size_t c = 0; c < gradient.size(); ++c) gradient[c] = slope * static_cast<float>(c + 1);
    const shardrec_tensor g = matrix(gradient.data(), 1, columns);
    shardrec_status status = begin_batch(lookup_, {.batch_size = 1, .values = &v, .lengths = &l});
    if (status == SHARDREC_OK) status = shardrec_lookup_forward(lookup_, 0, &o);
    if (status == SHARDREC_OK) status = shardrec_lookup_set_gradient(lookup_, 0, &g);
    return status;
  }
  // The same of the whole step.
  shardrec_status try_step(int64_t id, float slope) {
    const shardrec_status status = prepare_step(id, slope);
    return status == SHARDREC_OK ? shardrec_lookup_backward(lookup_, SHARDREC_UPDATE_APPLY)
                                 : status;
  }
  void step(int64_t id, float slope) { SR_EXPECT_OK(try_step(id, slope)); }

  // Of the last step's lookup.
  const std::vector<float>& output() const { return output_; }

  std::vector<float> read(shardrec_table_part part) {
    const bool per_row = optimizer_ == SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD;
    return read(part, part == SHARDREC_TABLE_WEIGHTS || !per_row ? dim_ : 1);
  }
  std::vector<float> read(shardrec_table_part part, int64_t columns, int32_t table = 0) {
    std::vector<float> values(static_cast<size_t>(rows_ * columns));
    const shardrec_tensor into = matrix(values.data(), rows_, columns);
    SR_EXPECT_OK(shardrec_collection_read_range(tables_, table, part, 0, rows_, &into));
    return values;
  }

  shardrec_status try_read() {
    return shardrec_collection_read_range(tables_, 0, SHARDREC_TABLE_WEIGHTS, 0, 0, nullptr);
  }

 private:
  shardrec_status status_ = SHARDREC_OK;
  int32_t replica_ = -1;
  shardrec_comm* comm_ = nullptr;
  shardrec_optimizer optimizer_;
  int64_t rows_;
  int64_t dim_;
  int64_t features_;
  std::vector<float> output_;
  shardrec_mesh* mesh_ = nullptr;
  shardrec_model* model_ = nullptr;
  shardrec_plan* plan_ = nullptr;
  shardrec_options* options_ = nullptr;
  shardrec_collection* tables_ = nullptr;
  shardrec_lookup* lookup_ = nullptr;
};

}  // namespace shardrec::test
