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
  struct Table : shardrec_table {
    std::string name;
  };
  struct Feature : shardrec_feature {
    std::string name;
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
  // Of all tables that have none of their own.
  void set_optimizer(const Options &options) { set_optimizer(SHARDREC_ALL_TABLES, options); }
  // Options(): the model's.
  void set_optimizer(int32_t table, const Options &options) {
    check(shardrec_model_set_optimizer(get(), table, options.get()));
  }
  shardrec_model_size info() const {
    shardrec_model_size size{};
    size.struct_size = sizeof size;
    check(shardrec_model_info(get(), &size));
    return size;
  }
  Table table(int32_t index) const {
    Table table{};
    table.struct_size = sizeof(shardrec_table);
    detail::Text name;
    check(shardrec_model_table(get(), index, &table, name.out()));
    table.name = name.str();
    return table;
  }
  Feature feature(int32_t index) const {
    Feature feature{};
    feature.struct_size = sizeof(shardrec_feature);
    detail::Text name;
    check(shardrec_model_feature(get(), index, &feature, name.out()));
    feature.name = name.str();
    return feature;
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
    check(shardrec_topology_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, nullptr,
                                   out()));
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
  Mesh(Comm &comm, int32_t sharding_group_size, const Options &options = {}) {
    check(shardrec_mesh_create(comm.get(), sharding_group_size, options.get(), out()));
  }
  using Handle::Handle;

  shardrec_place place() const {
    shardrec_place place{};
    place.struct_size = sizeof place;
    check(shardrec_mesh_place(get(), &place));
    return place;
  }
  // A communicator of the host's own over the ranks of a group. Collective over the mesh.
  Comm comm(shardrec_mesh_group group) {
    shardrec_comm *comm = nullptr;
    check(shardrec_mesh_comm(get(), group, &comm));
    return Comm(comm);
  }
};

class Plan : public detail::Handle<shardrec_plan, shardrec_plan_destroy> {
 public:
  struct Box {
    int32_t rank;  // -1 of a replicated table
    int64_t row, rows, col, cols;
    int64_t weight_bytes = 0, state_bytes = 0;  // not read by add_box()
  };

  Plan(const Model &model, const Topology &topology, const Options &options = {}) {
    check(shardrec_plan_create(model.get(), topology.get(), options.get(), out()));
  }
  using Handle::Handle;
  static Plan collective(Comm &comm, const Model &model, const Options &options = {}) {
    return make_collective(comm, nullptr, model, options);
  }
  // mesh: of comm. For the ranks of a sharding group, the same on all ranks of the mesh.
  static Plan collective(Comm &comm, Mesh &mesh, const Model &model, const Options &options = {}) {
    return make_collective(comm, mesh.get(), model, options);
  }
  // Without boxes.
  static Plan empty(const Model &model, const Topology &topology) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_create_empty(model.get(), topology.get(), nullptr, &handle));
    return Plan(handle);
  }
  static Plan from_json(const Model &model, std::string_view json) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_from_json(model.get(), detail::c_text(json).c_str(), &handle));
    return Plan(handle);
  }

  void add_box(int32_t table, const Box &box) {
    const shardrec_box given{
        sizeof(shardrec_box), box.rank, 0, box.row, box.rows, box.col, box.cols, 0, 0};
    check(shardrec_plan_add_box(get(), table, &given));
  }
  // Of a table that is replicated already, sets the way.
  void replicate(int32_t table, shardrec_replication replication = SHARDREC_REPLICATION_SAMPLES) {
    check(shardrec_plan_replicate(get(), table, replication));
  }
  // Throws unless every cell of every table has exactly one owner, or its table is replicated.
  void check_tiling() const { check(shardrec_plan_check(get())); }
  int32_t box_count(int32_t table) const {
    int32_t count = 0;
    check(shardrec_plan_box_count(get(), table, &count));
    return count;
  }
  // Of a replicated table box 0 stands for the copy of each rank.
  Box box(int32_t table, int32_t index) const {
    shardrec_box box{};
    box.struct_size = sizeof box;
    check(shardrec_plan_box(get(), table, index, &box));
    return {box.rank, box.row, box.rows, box.col, box.cols, box.weight_bytes, box.state_bytes};
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

 private:
  static Plan make_collective(Comm &comm, shardrec_mesh *mesh, const Model &model,
                              const Options &options) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_collective(comm.get(), mesh, model.get(), options.get(), &handle));
    return Plan(handle);
  }
};

class Collection : public detail::Handle<shardrec_collection, shardrec_collection_destroy> {
 public:
  Collection(Comm &comm, const Model &model, const Plan &plan, const Options &options = {}) {
    check(shardrec_collection_create(comm.get(), nullptr, model.get(), plan.get(), options.get(),
                                     out()));
  }
  // mesh: of comm. A replica for each of its sharding groups.
  Collection(Comm &comm, Mesh &mesh, const Model &model, const Plan &plan,
             const Options &options = {}) {
    check(shardrec_collection_create(comm.get(), mesh.get(), model.get(), plan.get(), options.get(),
                                     out()));
  }

  using Handle::Handle;

  Model model() const {
    shardrec_model *handle = nullptr;
    check(shardrec_collection_model(get(), &handle));
    return Model(handle);
  }
  Plan plan() const {
    shardrec_plan *handle = nullptr;
    check(shardrec_collection_plan(get(), &handle));
    return Plan(handle);
  }
  int64_t step() const {
    int64_t step = 0;
    check(shardrec_collection_step(get(), &step));
    return step;
  }
  void sync_replicas() { check(shardrec_collection_sync_replicas(get())); }
  void sync_begin() { check(shardrec_collection_sync_begin(get())); }
  void sync_wait() { check(shardrec_collection_sync_wait(get())); }
  void check_replicas() { check(shardrec_collection_check_replicas(get())); }
  // from: null, where this rank brings none.
  void continue_from(Collection *from) {
    check(shardrec_collection_continue_from(get(), from == nullptr ? nullptr : from->get()));
  }
  void replica_fill(int32_t replica) { check(shardrec_collection_replica_fill(get(), replica)); }
  void wait_device() { check(shardrec_collection_wait_device(get())); }
  // Of all tables.
  void set_learning_rate(double learning_rate) {
    set_learning_rate(SHARDREC_ALL_TABLES, learning_rate);
  }
  void set_learning_rate(int32_t table, double learning_rate) {
    check(shardrec_collection_set_learning_rate(get(), table, learning_rate));
  }
  double learning_rate(int32_t table) const {
    double rate = 0;
    check(shardrec_collection_learning_rate(get(), table, &rate));
    return rate;
  }
  void set_frozen(int32_t table, bool frozen) {
    check(shardrec_collection_set_frozen(get(), table, frozen ? 1 : 0));
  }
  bool frozen(int32_t table) const {
    int32_t value = 0;
    check(shardrec_collection_frozen(get(), table, &value));
    return value != 0;
  }
  void set_step(int64_t step) { check(shardrec_collection_set_step(get(), step)); }
  void read_range(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
                  const Matrix &into) {
    check(shardrec_collection_read_range(get(), table, part, row, rows, into.get()));
  }
  void write_range(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
                   const Matrix &values) {
    check(shardrec_collection_write_range(get(), table, part, row, rows, values.get()));
  }
  // The rows that ids (int32 or int64) name; nullptr for both: none.
  void read_rows(int32_t table, shardrec_table_part part, const Vector &ids, const Matrix &into) {
    check(shardrec_collection_read_rows(get(), table, part, ids.get(), into.get()));
  }
  void write_rows(int32_t table, shardrec_table_part part, const Vector &ids,
                  const Matrix &values) {
    check(shardrec_collection_write_rows(get(), table, part, ids.get(), values.get()));
  }
  // Rows that change from now on are noted for the mark, until it is released.
  int64_t mark() {
    int64_t mark = 0;
    check(shardrec_collection_mark(get(), &mark));
    return mark;
  }
  // The rows of a table that this rank's boxes have and that have changed since, all of them.
  std::vector<int64_t> changed_rows(int64_t mark, int32_t table) {
    std::vector<int64_t> rows(static_cast<size_t>(count_changed_rows(mark, table)));
    if (!rows.empty()) changed_rows(mark, table, 0, rows);
    return rows;
  }
  // From row `row` on, as many as there is room for; how many these are.
  int64_t changed_rows(int64_t mark, int32_t table, int64_t row, const Vector &rows) {
    int64_t count = 0;
    check(shardrec_collection_changed_rows(get(), mark, table, row, rows.get(), &count));
    return count;
  }
  int64_t count_changed_rows(int64_t mark, int32_t table, int64_t row = 0) {
    return changed_rows(mark, table, row, nullptr);
  }
  void release_mark(int64_t mark) { check(shardrec_collection_release_mark(get(), mark)); }
  // table: of SHARDREC_STAT_TABLE_... one, or the sum of all.
  double stat(shardrec_stat stat, int32_t table = SHARDREC_ALL_TABLES) const {
    double value = 0;
    check(shardrec_collection_stat(get(), stat, table, &value));
    return value;
  }
};

// A batch of ids (batch.h): lengths or offsets; batch_sizes and inverse both or none. What is not set is NULL.
struct Batch {
  int64_t batch_size = 0;
  Vector values = nullptr;
  Vector lengths = nullptr;
  Vector offsets = nullptr;
  Vector weights = nullptr;
  Vector batch_sizes = nullptr;
  Vector inverse = nullptr;

  // Valid while the batch is there and unchanged.
  shardrec_batch c_batch() const {
    return {sizeof(shardrec_batch), batch_size,    values.get(),      lengths.get(),
            offsets.get(),          weights.get(), batch_sizes.get(), inverse.get()};
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
  void begin(const Batch &batch) {
    const shardrec_batch given = batch.c_batch();
    check(shardrec_lookup_begin(get(), &given));
  }
  void begin(int64_t batch_size, const Vector &values, const Vector &lengths,
             const Vector &weights = nullptr) {
    const shardrec_batch given{
        sizeof(shardrec_batch), batch_size, values.get(), lengths.get(), nullptr,
        weights.get(),          nullptr,    nullptr};
    check(shardrec_lookup_begin(get(), &given));
  }
  // This rank has no more data.
  void begin_without_data() { begin(Batch{}); }
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
  // update: as backward() will be given; not SKIP.
  void send_gradients(shardrec_update update = SHARDREC_UPDATE_APPLY) {
    check(shardrec_lookup_send_gradients(get(), update));
  }
  void backward(shardrec_update update = SHARDREC_UPDATE_APPLY) {
    check(shardrec_lookup_backward(get(), update));
  }
  // backward on a thread of the library.
  void backward_begin(shardrec_update update = SHARDREC_UPDATE_APPLY) {
    check(shardrec_lookup_backward_begin(get(), update));
  }
  void backward_wait() { check(shardrec_lookup_backward_wait(get())); }
  void weight_gradient(const Vector &into) const {
    check(shardrec_lookup_weight_gradient(get(), into.get()));
  }
};

}  // namespace shardrec

#endif
