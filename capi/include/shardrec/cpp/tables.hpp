// Part of shardrec.hpp: models, plans, collections, lookups.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_TABLES_HPP
#define SHARDREC_CPP_TABLES_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "shardrec/cpp/comm.hpp"
#include "shardrec/cpp/library.hpp"
#include "shardrec/cpp/options.hpp"
#include "shardrec/lookup.h"
#include "shardrec/mesh.h"

namespace shardrec {

class Model : public detail::Handle<shardrec_model, shardrec_model_destroy> {
 public:
  struct Columns {
    int64_t first;
    int64_t count;
    int64_t width;  // of output 0
  };

  Model() { check(shardrec_model_create(nullptr, out())); }
  using Handle::Handle;
  static Model from_json(std::string_view json) {
    shardrec_model *handle = nullptr;
    check(shardrec_model_from_json(detail::c_text(json).c_str(), &handle));
    return Model(handle);
  }

  int32_t add_table(std::string_view name, int64_t rows, int64_t dim, const Options &options = {}) {
    int32_t table = 0;
    check(shardrec_model_add_table(get(), detail::c_text(name).c_str(), rows, dim, options.get(),
                                   &table));
    return table;
  }
  void add_feature(int32_t table, std::string_view name,
                   shardrec_pooling pooling = SHARDREC_POOLING_SUM) {
    check(shardrec_model_add_feature(get(), table, detail::c_text(name).c_str(), pooling));
  }
  void set_optimizer(const Options &options) {
    check(shardrec_model_set_optimizer(get(), options.get()));
  }
  // Options(): the model's.
  void set_table_optimizer(int32_t table, const Options &options) {
    check(shardrec_model_set_table_optimizer(get(), table, options.get()));
  }
  int32_t table_count() const {
    int32_t count = 0;
    check(shardrec_model_table_count(get(), &count));
    return count;
  }
  int32_t feature_count() const {
    int32_t count = 0;
    check(shardrec_model_feature_count(get(), &count));
    return count;
  }
  Columns columns(int32_t feature) const {
    Columns columns{};
    check(shardrec_model_feature_columns(get(), feature, &columns.first, &columns.count,
                                         &columns.width));
    return columns;
  }
  std::string to_json() const {
    detail::Text text;
    check(shardrec_model_to_json(get(), text.out()));
    return text.str();
  }
};

class Topology : public detail::Handle<shardrec_topology, shardrec_topology_destroy> {
 public:
  // ranks_per_node 0: all ranks are one node.
  explicit Topology(int32_t ranks, int32_t ranks_per_node = 0) {
    check(shardrec_topology_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, out()));
  }
  using Handle::Handle;
  static Topology from_json(std::string_view json) {
    shardrec_topology *handle = nullptr;
    check(shardrec_topology_from_json(detail::c_text(json).c_str(), &handle));
    return Topology(handle);
  }
  std::string to_json() const {
    detail::Text text;
    check(shardrec_topology_to_json(get(), text.out()));
    return text.str();
  }
};

class Mesh : public detail::Handle<shardrec_mesh, shardrec_mesh_destroy> {
 public:
  struct Place {
    int32_t sharding_rank;
    int32_t sharding_size;
    int32_t replica_rank;
    int32_t replica_size;
  };

  Mesh(Comm &comm, int32_t sharding_group_size, const Options &options = {}) {
    check(shardrec_mesh_create(comm.get(), sharding_group_size, options.get(), out()));
  }
  using Handle::Handle;

  Place place() const {
    Place place{};
    check(shardrec_mesh_place(get(), &place.sharding_rank, &place.sharding_size,
                              &place.replica_rank, &place.replica_size));
    return place;
  }
  // Communicators of the host's own over the ranks of its groups. Collective over the mesh.
  Comm sharding_comm() {
    shardrec_comm *comm = nullptr;
    check(shardrec_mesh_sharding_comm(get(), &comm));
    return Comm(comm);
  }
  Comm replica_comm() {
    shardrec_comm *comm = nullptr;
    check(shardrec_mesh_replica_comm(get(), &comm));
    return Comm(comm);
  }
};

class Plan : public detail::Handle<shardrec_plan, shardrec_plan_destroy> {
 public:
  struct Box {
    int32_t rank;
    int64_t row, rows, col, cols;
  };

  struct Bytes {
    int64_t weights, states;
  };

  Plan(const Model &model, const Topology &topology, const Options &options = {}) {
    check(shardrec_plan_create(model.get(), topology.get(), options.get(), out()));
  }
  using Handle::Handle;
  static Plan collective(Comm &comm, const Model &model, const Options &options = {}) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_collective(comm.get(), model.get(), options.get(), &handle));
    return Plan(handle);
  }
  // For the ranks of a sharding group, the same on all ranks of the mesh.
  static Plan collective(Mesh &mesh, const Model &model, const Options &options = {}) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_collective_on_mesh(mesh.get(), model.get(), options.get(), &handle));
    return Plan(handle);
  }
  // Without boxes.
  static Plan empty(const Model &model, const Topology &topology) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_create_empty(model.get(), topology.get(), &handle));
    return Plan(handle);
  }
  static Plan from_json(const Model &model, std::string_view json) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_from_json(model.get(), detail::c_text(json).c_str(), &handle));
    return Plan(handle);
  }

  void add_box(int32_t table, const Box &box) {
    check(shardrec_plan_add_box(get(), table, box.rank, box.row, box.rows, box.col, box.cols));
  }
  void set_replication(int32_t table, shardrec_replication replication) {
    check(shardrec_plan_set_replication(get(), table, replication));
  }
  void add_replicated(int32_t table) { check(shardrec_plan_add_replicated(get(), table)); }
  // Throws unless every cell of every table has exactly one owner.
  void check_tiling() const { check(shardrec_plan_check(get())); }
  int32_t box_count(int32_t table) const {
    int32_t count = 0;
    check(shardrec_plan_box_count(get(), table, &count));
    return count;
  }
  Box box(int32_t table, int32_t index) const {
    Box box{};
    check(shardrec_plan_box(get(), table, index, &box.rank, &box.row, &box.rows, &box.col,
                            &box.cols));
    return box;
  }
  // Of a replicated table: box 0.
  Bytes box_bytes(int32_t table, int32_t index) const {
    Bytes bytes{};
    check(shardrec_plan_box_bytes(get(), table, index, &bytes.weights, &bytes.states));
    return bytes;
  }
  std::string to_json() const {
    detail::Text text;
    check(shardrec_plan_to_json(get(), text.out()));
    return text.str();
  }
  std::string to_text() const {
    detail::Text text;
    check(shardrec_plan_to_text(get(), text.out()));
    return text.str();
  }
};

class Collection : public detail::Handle<shardrec_collection, shardrec_collection_destroy> {
 public:
  Collection(Mesh &mesh, const Model &model, const Plan &plan, const Options &options = {}) {
    check(shardrec_collection_create_on_mesh(mesh.get(), model.get(), plan.get(), options.get(),
                                             out()));
  }
  Collection(Comm &comm, const Model &model, const Plan &plan, const Options &options = {}) {
    check(shardrec_collection_create(comm.get(), model.get(), plan.get(), options.get(), out()));
  }

  using Handle::Handle;

  int64_t step() const {
    int64_t step = 0;
    check(shardrec_collection_step(get(), &step));
    return step;
  }
  void sync() { check(shardrec_collection_sync(get())); }
  void synchronize() { check(shardrec_collection_synchronize(get())); }
  void set_learning_rate(double learning_rate) {
    check(shardrec_collection_set_learning_rate(get(), learning_rate));
  }
  void set_table_learning_rate(int32_t table, double learning_rate) {
    check(shardrec_collection_set_table_learning_rate(get(), table, learning_rate));
  }
  void set_frozen(int32_t table, bool frozen) {
    check(shardrec_collection_set_frozen(get(), table, frozen ? 1 : 0));
  }
  void set_step(int64_t step) { check(shardrec_collection_set_step(get(), step)); }
  void read(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
            const Matrix &into) {
    check(shardrec_collection_read(get(), table, part, row, rows, into.get()));
  }
  void write(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
             const Matrix &values) {
    check(shardrec_collection_write(get(), table, part, row, rows, values.get()));
  }
  // The rows that ids (int32 or int64) name; nullptr for both: nothing.
  void read_rows(int32_t table, shardrec_table_part part, const Vector &ids, const Matrix &into) {
    check(shardrec_collection_read_rows(get(), table, part, ids.get(), into.get()));
  }
  void write_rows(int32_t table, shardrec_table_part part, const Vector &ids,
                  const Matrix &values) {
    check(shardrec_collection_write_rows(get(), table, part, ids.get(), values.get()));
  }
  void save(std::string_view directory, const Control *control = nullptr) {
    check(shardrec_collection_save(get(), detail::c_text(directory).c_str(),
                                   detail::control(control)));
  }
  void load(std::string_view directory, const Control *control = nullptr) {
    check(shardrec_collection_load(get(), detail::c_text(directory).c_str(),
                                   detail::control(control)));
  }
  int64_t stat_i64(shardrec_collection_stat stat) const {
    int64_t value = 0;
    check(shardrec_collection_stat_i64(get(), stat, &value));
    return value;
  }
  int64_t table_stat_i64(int32_t table, shardrec_table_stat stat) const {
    int64_t value = 0;
    check(shardrec_collection_table_stat_i64(get(), table, stat, &value));
    return value;
  }
  double stat_f64(shardrec_collection_stat stat) const {
    double value = 0;
    check(shardrec_collection_stat_f64(get(), stat, &value));
    return value;
  }
};

class Lookup : public detail::Handle<shardrec_lookup, shardrec_lookup_destroy> {
 public:
  explicit Lookup(Collection &collection, const Options &options = {}) {
    check(shardrec_lookup_create(collection.get(), options.get(), out()));
  }
  using Handle::Handle;

  // The value of a cudaStream_t.
  void set_stream(int64_t stream) { check(shardrec_lookup_set_stream(get(), stream)); }
  void begin(int64_t batch_size, const Vector &values, const Vector &lengths,
             const Vector &weights = nullptr) {
    check(shardrec_lookup_begin(get(), batch_size, values.get(), lengths.get(), weights.get()));
  }
  void begin_offsets(int64_t batch_size, const Vector &values, const Vector &offsets,
                     const Vector &weights = nullptr) {
    check(shardrec_lookup_begin_offsets(get(), batch_size, values.get(), offsets.get(),
                                        weights.get()));
  }
  void begin_variable(int64_t batch_size, const Vector &batch_sizes, const Vector &inverse,
                      const Vector &values, const Vector &lengths,
                      const Vector &weights = nullptr) {
    check(shardrec_lookup_begin_variable(get(), batch_size, batch_sizes.get(), inverse.get(),
                                         values.get(), lengths.get(), weights.get()));
  }
  // This rank has no more data.
  void begin_without_data() { begin(0, nullptr, nullptr); }
  struct Shape {
    int64_t rows, columns;
  };
  Shape output_shape(int32_t output) const {
    Shape shape{};
    check(shardrec_lookup_output_shape(get(), output, &shape.rows, &shape.columns));
    return shape;
  }
  void forward(int32_t output, const Matrix &into) {
    check(shardrec_lookup_forward(get(), output, into.get()));
  }
  bool all_done() const {
    int32_t done = 0;
    check(shardrec_lookup_all_done(get(), &done));
    return done != 0;
  }
  void set_gradient(int32_t output, const Matrix &gradient) {
    check(shardrec_lookup_set_gradient(get(), output, gradient.get()));
  }
  // accumulate: whether accumulate() follows, else backward() does.
  void send_gradients(bool accumulate = false) {
    check(shardrec_lookup_send_gradients(get(), accumulate ? 1 : 0));
  }
  void backward() { check(shardrec_lookup_backward(get())); }
  void accumulate() { check(shardrec_lookup_accumulate(get())); }
  void weight_gradient(const Vector &into) const {
    check(shardrec_lookup_weight_gradient(get(), into.get()));
  }
  void skip() { check(shardrec_lookup_skip(get())); }
};

}  // namespace shardrec

#endif
