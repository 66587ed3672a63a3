// libshardrec for C++17 and later, header-only: move-only handles, exceptions, views of contiguous
// memory. Everything is inline over the C API; the C headers say what each call does, which calls are
// collective, and their thread rules.
//
//   shardrec::Model model;
//   const int32_t user = model.add_table("user", 943, 64);
//   model.add_feature(user, "user_id", SHARDREC_POOLING_SUM);
//   const auto plan = shardrec::Plan::collective(comm, model);
//   shardrec::Collection tables(comm, model, plan);
//   shardrec::Lookup lookup(tables);
//   lookup.begin(batch_size, values, lengths);         // std::vector, std::span, ...
//   lookup.forward(0, {output.data(), batch_size, width});
//
// A call that fails throws shardrec::Error. Destructors never throw and never block.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_SHARDREC_HPP
#define SHARDREC_SHARDREC_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "shardrec/shardrec.h"

namespace shardrec {

// A call that failed: what() is the sentence; parts that are not known are empty.
class Error : public std::runtime_error {
 public:
  // Of the calling thread's last error.
  explicit Error(shardrec_status status)
      : std::runtime_error(shardrec_last_error()),
        status_(status),
        rank_(number(SHARDREC_ERROR_RANK)),
        position_(number(SHARDREC_ERROR_POSITION)),
        value_(number(SHARDREC_ERROR_VALUE)),
        limit_(number(SHARDREC_ERROR_LIMIT)),
        sequence_(number(SHARDREC_ERROR_SEQUENCE)),
        table_(text(SHARDREC_ERROR_TABLE)),
        feature_(text(SHARDREC_ERROR_FEATURE)),
        operation_(text(SHARDREC_ERROR_OPERATION)),
        path_(text(SHARDREC_ERROR_PATH)) {}

  shardrec_status status() const noexcept { return status_; }
  const char *status_name() const noexcept { return shardrec_status_name(status_); }
  std::optional<int64_t> rank() const noexcept { return rank_; }
  std::optional<int64_t> position() const noexcept { return position_; }
  std::optional<int64_t> value() const noexcept { return value_; }
  std::optional<int64_t> limit() const noexcept { return limit_; }
  std::optional<int64_t> sequence() const noexcept { return sequence_; }
  const std::string &table() const noexcept { return table_; }
  const std::string &feature() const noexcept { return feature_; }
  const std::string &operation() const noexcept { return operation_; }
  const std::string &path() const noexcept { return path_; }

 private:
  static std::optional<int64_t> number(shardrec_error_part part) {
    int64_t value = 0;
    if (shardrec_last_error_i64(part, &value) != SHARDREC_OK) return std::nullopt;
    return value;
  }
  static std::string text(shardrec_error_part part);

  shardrec_status status_;
  std::optional<int64_t> rank_, position_, value_, limit_, sequence_;
  std::string table_, feature_, operation_, path_;
};

// Throws Error unless the status is OK.
inline void check(shardrec_status status) {
  if (status != SHARDREC_OK) throw Error(status);
}

namespace detail {

// Frees a text of the library at the end of the scope.
class Text {
 public:
  Text() = default;
  ~Text() { shardrec_text_free(text_); }
  Text(const Text &) = delete;
  Text &operator=(const Text &) = delete;
  char **out() noexcept { return &text_; }
  std::string str() const { return text_ == nullptr ? std::string() : std::string(text_); }
  bool empty() const noexcept { return text_ == nullptr; }

 private:
  char *text_ = nullptr;
};

// Names that contain NUL would be cut short by the C API.
inline std::string c_text(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) {
    throw std::invalid_argument("a text for libshardrec contains NUL");
  }
  return std::string(text);
}

template <class T>
struct DtypeOf;
template <>
struct DtypeOf<int32_t> {
  static constexpr shardrec_dtype value = SHARDREC_INT32;
};
template <>
struct DtypeOf<int64_t> {
  static constexpr shardrec_dtype value = SHARDREC_INT64;
};
template <>
struct DtypeOf<float> {
  static constexpr shardrec_dtype value = SHARDREC_FLOAT32;
};
template <>
struct DtypeOf<double> {
  static constexpr shardrec_dtype value = SHARDREC_FLOAT64;
};

// Owns a handle; move-only; destroyed once.
template <class Type, void (*Destroy)(Type **)>
class Handle {
 public:
  Handle(Handle &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Handle &operator=(Handle &&other) noexcept {
    if (this != &other) {
      Destroy(&handle_);
      handle_ = std::exchange(other.handle_, nullptr);
    }
    return *this;
  }
  Handle(const Handle &) = delete;
  Handle &operator=(const Handle &) = delete;
  ~Handle() { Destroy(&handle_); }

  // For calls of the C API; stays owned. nullptr after a move or destroy().
  Type *get() const noexcept { return handle_; }
  // Hands the handle over to the caller.
  Type *release() noexcept { return std::exchange(handle_, nullptr); }
  void destroy() noexcept { Destroy(&handle_); }

 protected:
  Handle() = default;
  explicit Handle(Type *handle) noexcept : handle_(handle) {}
  Type **out() noexcept { return &handle_; }

 private:
  Type *handle_ = nullptr;
};

}  // namespace detail

inline std::string Error::text(shardrec_error_part part) {
  detail::Text text;
  if (shardrec_last_error_text(part, text.out()) != SHARDREC_OK) return {};
  return text.str();
}

// A compact one-dimensional tensor over memory of the caller: of a std::vector, std::array, std::span,
// C array, or pointer and size. An empty container is a tensor of no elements; `none` is no tensor.
class Vector {
 public:
  Vector(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): none
  template <
      class Container,
      class Element = std::remove_pointer_t<decltype(std::declval<Container &>().data())>,
      class = typename std::enable_if<!std::is_same<std::decay_t<Container>, Vector>::value>::type>
  Vector(Container &&container)  // NOLINT(google-explicit-constructor): stands for the container
      : Vector(container.data(), container.size()) {}
  template <class Element>
  Vector(Element *data, size_t size) : given_(true) {
    using Plain = std::remove_const_t<Element>;
    check(shardrec_tensor_vector(const_cast<Plain *>(data), detail::DtypeOf<Plain>::value,
                                 static_cast<int64_t>(size), &tensor_));
  }
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

// A row-major matrix of float32 over memory of the caller; row_stride in elements, 0: compact.
class Matrix {
 public:
  Matrix(std::nullptr_t) noexcept {}  // NOLINT(google-explicit-constructor): none
  Matrix(const float *data, int64_t rows, int64_t cols, int64_t row_stride = 0) : given_(true) {
    check(
        shardrec_tensor_matrix(const_cast<float *>(data), SHARDREC_FLOAT32, rows, cols, &tensor_));
    if (row_stride != 0) tensor_.stride[0] = row_stride;
  }
  const shardrec_tensor *get() const noexcept { return given_ ? &tensor_ : nullptr; }

 private:
  shardrec_tensor tensor_{};
  bool given_ = false;
};

class Options : public detail::Handle<shardrec_options, shardrec_options_destroy> {
 public:
  explicit Options(shardrec_options_kind kind) { check(shardrec_options_create(kind, out())); }

  // Integers (and enumerators), real numbers, or text.
  template <class Value>
  Options &set(shardrec_option key, const Value &value) {
    if constexpr (std::is_floating_point<Value>::value) {
      check(shardrec_options_set_f64(get(), key, static_cast<double>(value)));
    } else if constexpr (std::is_integral<Value>::value || std::is_enum<Value>::value) {
      check(shardrec_options_set_i64(get(), key, static_cast<int64_t>(value)));
    } else {
      check(shardrec_options_set_text(get(), key, detail::c_text(value).c_str()));
    }
    return *this;
  }

  int64_t i64(shardrec_option key) const {
    int64_t value = 0;
    check(shardrec_options_get_i64(get(), key, &value));
    return value;
  }
  double f64(shardrec_option key) const {
    double value = 0;
    check(shardrec_options_get_f64(get(), key, &value));
    return value;
  }
  std::string text(shardrec_option key) const {
    detail::Text text;
    check(shardrec_options_get_text(get(), key, text.out()));
    return text.str();
  }
};

namespace detail {
inline const shardrec_options *options(const Options *options) noexcept {
  return options == nullptr ? nullptr : options->get();
}
}  // namespace detail

class Control : public detail::Handle<shardrec_control, shardrec_control_destroy> {
 public:
  struct Progress {
    int64_t done;
    int64_t total;
  };

  Control() { check(shardrec_control_create(out())); }
  void cancel() { check(shardrec_control_cancel(get())); }
  Progress progress() const {
    Progress progress{};
    check(shardrec_control_progress(get(), &progress.done, &progress.total));
    return progress;
  }
};

class Local : public detail::Handle<shardrec_local, shardrec_local_destroy> {
 public:
  // ranks_per_node 0: all ranks are one node.
  explicit Local(int32_t ranks, int32_t ranks_per_node = 0) {
    check(shardrec_local_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, out()));
  }
};

class Comm : public detail::Handle<shardrec_comm, shardrec_comm_destroy> {
 public:
  Comm(const Local &group, int32_t rank) {
    check(shardrec_comm_create_local(group.get(), rank, out()));
  }

  int32_t rank() const {
    int32_t rank = 0;
    check(shardrec_comm_rank(get(), &rank));
    return rank;
  }
  int32_t size() const {
    int32_t size = 0;
    check(shardrec_comm_size(get(), &size));
    return size;
  }
  void set(shardrec_comm_property key, double value) {
    check(shardrec_comm_set_f64(get(), key, value));
  }
  double property(shardrec_comm_property key) const {
    double value = 0;
    check(shardrec_comm_get_f64(get(), key, &value));
    return value;
  }
  // Throws what killed the communicator.
  void check_alive() const { check(shardrec_comm_status(get())); }
  void barrier() { check(shardrec_comm_barrier(get())); }
  void all_reduce(const Vector &data, shardrec_reduction reduction = SHARDREC_REDUCTION_SUM) {
    check(shardrec_comm_all_reduce(get(), data.get(), reduction));
  }
  void close() { check(shardrec_comm_close(get())); }
  void abort(std::string_view reason = {}) {
    check(shardrec_comm_abort(get(), detail::c_text(reason).c_str()));
  }
};

class Model : public detail::Handle<shardrec_model, shardrec_model_destroy> {
 public:
  struct Columns {
    int64_t first;
    int64_t count;
    int64_t width;  // of output 0
  };

  Model() { check(shardrec_model_create(nullptr, out())); }
  static Model from_json(std::string_view json) {
    shardrec_model *handle = nullptr;
    check(shardrec_model_from_json(detail::c_text(json).c_str(), &handle));
    return Model(handle);
  }

  int32_t add_table(std::string_view name, int64_t rows, int64_t dim,
                    const Options *options = nullptr) {
    int32_t table = 0;
    check(shardrec_model_add_table(get(), detail::c_text(name).c_str(), rows, dim,
                                   detail::options(options), &table));
    return table;
  }
  void add_feature(int32_t table, std::string_view name,
                   shardrec_pooling pooling = SHARDREC_POOLING_SUM) {
    check(shardrec_model_add_feature(get(), table, detail::c_text(name).c_str(), pooling));
  }
  void set_optimizer(const Options &options) {
    check(shardrec_model_set_optimizer(get(), options.get()));
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

 private:
  explicit Model(shardrec_model *handle) : Handle(handle) {}
};

class Topology : public detail::Handle<shardrec_topology, shardrec_topology_destroy> {
 public:
  // ranks_per_node 0: all ranks are one node.
  explicit Topology(int32_t ranks, int32_t ranks_per_node = 0) {
    check(shardrec_topology_create(ranks, ranks_per_node == 0 ? ranks : ranks_per_node, out()));
  }
};

class Plan : public detail::Handle<shardrec_plan, shardrec_plan_destroy> {
 public:
  struct Box {
    int32_t rank;
    int64_t row, rows, col, cols;
  };

  Plan(const Model &model, const Topology &topology, const Options *options = nullptr) {
    check(shardrec_plan_create(model.get(), topology.get(), detail::options(options), out()));
  }
  static Plan collective(Comm &comm, const Model &model, const Options *options = nullptr) {
    shardrec_plan *handle = nullptr;
    check(shardrec_plan_collective(comm.get(), model.get(), detail::options(options), &handle));
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
  explicit Plan(shardrec_plan *handle) : Handle(handle) {}
};

class Collection : public detail::Handle<shardrec_collection, shardrec_collection_destroy> {
 public:
  Collection(Comm &comm, const Model &model, const Plan &plan, const Options *options = nullptr) {
    check(shardrec_collection_create(comm.get(), model.get(), plan.get(), detail::options(options),
                                     out()));
  }

  int64_t step() const {
    int64_t step = 0;
    check(shardrec_collection_step(get(), &step));
    return step;
  }
  void set_learning_rate(double learning_rate) {
    check(shardrec_collection_set_learning_rate(get(), learning_rate));
  }
  void read(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
            const Matrix &into) {
    check(shardrec_collection_read(get(), table, part, row, rows, into.get()));
  }
  void write(int32_t table, shardrec_table_part part, int64_t row, int64_t rows,
             const Matrix &values) {
    check(shardrec_collection_write(get(), table, part, row, rows, values.get()));
  }
  void save(std::string_view directory, Control *control = nullptr) {
    check(shardrec_collection_save(get(), detail::c_text(directory).c_str(),
                                   control == nullptr ? nullptr : control->get()));
  }
  void load(std::string_view directory, Control *control = nullptr) {
    check(shardrec_collection_load(get(), detail::c_text(directory).c_str(),
                                   control == nullptr ? nullptr : control->get()));
  }
  int64_t stat_i64(shardrec_collection_stat stat) const {
    int64_t value = 0;
    check(shardrec_collection_stat_i64(get(), stat, &value));
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
  explicit Lookup(Collection &collection, const Options *options = nullptr) {
    check(shardrec_lookup_create(collection.get(), detail::options(options), out()));
  }

  void begin(int64_t batch_size, const Vector &values, const Vector &lengths,
             const Vector &weights = nullptr) {
    check(shardrec_lookup_begin(get(), batch_size, values.get(), lengths.get(), weights.get()));
  }
  void begin_offsets(int64_t batch_size, const Vector &values, const Vector &offsets,
                     const Vector &weights = nullptr) {
    check(shardrec_lookup_begin_offsets(get(), batch_size, values.get(), offsets.get(),
                                        weights.get()));
  }
  // This rank has no more data.
  void begin_without_data() { begin(0, nullptr, nullptr); }
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
  void backward() { check(shardrec_lookup_backward(get())); }
  void skip() { check(shardrec_lookup_skip(get())); }
};

class Ddp : public detail::Handle<shardrec_ddp, shardrec_ddp_destroy> {
 public:
  explicit Ddp(Comm &comm, const Options *options = nullptr) {
    check(shardrec_ddp_create(comm.get(), detail::options(options), out()));
  }

  void add(std::string_view name, const shardrec_tensor &parameter,
           const shardrec_tensor &gradient) {
    check(shardrec_ddp_add(get(), detail::c_text(name).c_str(), &parameter, &gradient));
  }
  void commit() { check(shardrec_ddp_commit(get())); }
  void all_reduce() { check(shardrec_ddp_all_reduce(get())); }
};

class Mlp : public detail::Handle<shardrec_mlp, shardrec_mlp_destroy> {
 public:
  struct Parameter {
    shardrec_tensor value;
    shardrec_tensor gradient;
  };

  explicit Mlp(int64_t inputs, const Options *options = nullptr) {
    check(shardrec_mlp_create(inputs, detail::options(options), out()));
  }

  Mlp &add_linear(int64_t outputs, shardrec_activation activation = SHARDREC_ACTIVATION_RELU) {
    check(shardrec_mlp_add_linear(get(), outputs, activation));
    return *this;
  }
  int32_t parameter_count() const {
    int32_t count = 0;
    check(shardrec_mlp_parameter_count(get(), &count));
    return count;
  }
  Parameter parameter(int32_t index) {
    Parameter parameter{};
    check(shardrec_mlp_parameter(get(), index, &parameter.value, &parameter.gradient));
    return parameter;
  }
  void forward(const Matrix &input, const Matrix &output) {
    check(shardrec_mlp_forward(get(), input.get(), output.get()));
  }
  void backward(const Matrix &output_gradient, const Matrix &input_gradient = nullptr) {
    check(shardrec_mlp_backward(get(), output_gradient.get(), input_gradient.get()));
  }
  void step() { check(shardrec_mlp_step(get())); }
  void set_learning_rate(double learning_rate) {
    check(shardrec_mlp_set_learning_rate(get(), learning_rate));
  }
  void save(std::string_view path) const {
    check(shardrec_mlp_save(get(), detail::c_text(path).c_str()));
  }
  void load(std::string_view path) {
    check(shardrec_mlp_load(get(), detail::c_text(path).c_str()));
  }
};

class Interaction : public detail::Handle<shardrec_interaction, shardrec_interaction_destroy> {
 public:
  Interaction(int64_t features, int64_t dim, const Options *options = nullptr) {
    check(shardrec_interaction_create(features, dim, detail::options(options), out()));
  }

  int64_t outputs() const {
    int64_t outputs = 0;
    check(shardrec_interaction_outputs(get(), &outputs));
    return outputs;
  }
  void forward(const Matrix &dense, const Matrix &embeddings, const Matrix &output) {
    check(shardrec_interaction_forward(get(), dense.get(), embeddings.get(), output.get()));
  }
  void backward(const Matrix &output_gradient, const Matrix &dense_gradient,
                const Matrix &embedding_gradient) {
    check(shardrec_interaction_backward(get(), output_gradient.get(), dense_gradient.get(),
                                        embedding_gradient.get()));
  }
};

// The mean loss in nats.
inline double bce_with_logits(const Vector &logits, const Vector &labels,
                              const Vector &probabilities = nullptr,
                              const Vector &gradient = nullptr) {
  double loss = 0;
  check(shardrec_bce_with_logits(logits.get(), labels.get(), probabilities.get(), gradient.get(),
                                 &loss));
  return loss;
}

class Metrics : public detail::Handle<shardrec_metrics, shardrec_metrics_destroy> {
 public:
  // comm null: this rank alone.
  explicit Metrics(Comm *comm = nullptr) {
    check(shardrec_metrics_create(comm == nullptr ? nullptr : comm->get(), out()));
  }

  void update(const Vector &probabilities, const Vector &labels) {
    check(shardrec_metrics_update(get(), probabilities.get(), labels.get()));
  }
  void compute() { check(shardrec_metrics_compute(get())); }
  double metric(shardrec_metric which) const {
    double value = 0;
    check(shardrec_metrics_get(get(), which, &value));
    return value;
  }
  void reset() { check(shardrec_metrics_reset(get())); }
};

struct LogMessage {
  shardrec_log_level level;
  int32_t rank;  // -1: none
  std::string text;
};

// Empty when no message came in time.
inline std::optional<LogMessage> next_log(int32_t timeout_ms) {
  LogMessage message{};
  detail::Text text;
  check(shardrec_log_next(timeout_ms, &message.level, &message.rank, text.out()));
  if (text.empty()) return std::nullopt;
  message.text = text.str();
  return message;
}

inline std::string capabilities() {
  detail::Text text;
  check(shardrec_capabilities(text.out()));
  return text.str();
}

inline int64_t live_objects() {
  int64_t count = 0;
  check(shardrec_live_objects(&count));
  return count;
}

inline uint64_t hash64(std::string_view bytes, uint64_t seed = 0) {
  return shardrec_hash64(seed, bytes.data(), static_cast<int64_t>(bytes.size()));
}

}  // namespace shardrec

#endif
