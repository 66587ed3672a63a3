// Part of shardrec.hpp: options of create calls.
//
//   shardrec::Plan plan(model, topology,
//                       shardrec::PlanOptions().sharding(SHARDREC_SHARDING_ROW_WISE).batch_size(512));
//
// A class per kind, with a setter per key that the kind takes; options.h says what each key means and
// what it accepts. Enumerators may be given by their lower-case names too, as command lines and
// configuration files have them ("row_wise"). A value that is not accepted throws INVALID_ARGUMENT.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef SHARDREC_CPP_OPTIONS_HPP
#define SHARDREC_CPP_OPTIONS_HPP

#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "shardrec/comm.h"
#include "shardrec/cpp/base.hpp"
#include "shardrec/options.h"
#include "shardrec/tensor.h"

namespace shardrec {

// Options of any kind, by key; without a kind: the defaults of the call that takes them.
class Options : public detail::Handle<shardrec_options, shardrec_options_destroy> {
 public:
  Options() noexcept = default;
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

// An enumerator, or its name. Does not outlive the text that it was made of.
template <class Enum>
class Choice {
 public:
  Choice(Enum value) noexcept : value_(value) {}  // NOLINT(google-explicit-constructor)
  template <class Text,
            class = std::enable_if_t<std::is_convertible<const Text &, std::string_view>::value>>
  Choice(const Text &name) noexcept  // NOLINT(google-explicit-constructor): stands for its value
      : name_(name), named_(true) {}

  void set(Options &options, shardrec_option key) const {
    if (named_) {
      options.set(key, name_);
    } else {
      options.set(key, value_);
    }
  }

 private:
  Enum value_{};
  std::string_view name_;
  bool named_ = false;
};

namespace detail {

// Setters return the options themselves, so that they can be written one behind another.
template <class Self, shardrec_options_kind Kind>
class OptionsOf : public Options {
 protected:
  OptionsOf() : Options(Kind) {}
  template <class Value>
  Self &with(shardrec_option key, const Value &value) {
    set(key, value);
    return static_cast<Self &>(*this);
  }
  template <class Enum>
  Self &with(shardrec_option key, const Choice<Enum> &value) {
    value.set(*this, key);
    return static_cast<Self &>(*this);
  }
};

// What tables and layers can set of their optimizers.
template <class Self, shardrec_options_kind Kind>
class OptimizerOf : public OptionsOf<Self, Kind> {
 public:
  Self &optimizer(const Choice<shardrec_optimizer> &optimizer) {
    return this->with(SHARDREC_OPTION_OPTIMIZER, optimizer);
  }
  Self &learning_rate(double rate) { return this->with(SHARDREC_OPTION_LEARNING_RATE, rate); }
  Self &eps(double eps) { return this->with(SHARDREC_OPTION_EPS, eps); }
  Self &weight_decay(double decay) { return this->with(SHARDREC_OPTION_WEIGHT_DECAY, decay); }
  Self &weight_decay_mode(const Choice<shardrec_weight_decay> &mode) {
    return this->with(SHARDREC_OPTION_WEIGHT_DECAY_MODE, mode);
  }
  Self &max_gradient(double bound) { return this->with(SHARDREC_OPTION_MAX_GRADIENT, bound); }
  Self &beta1(double beta) { return this->with(SHARDREC_OPTION_BETA1, beta); }
  Self &beta2(double beta) { return this->with(SHARDREC_OPTION_BETA2, beta); }
  Self &momentum(double momentum) { return this->with(SHARDREC_OPTION_MOMENTUM, momentum); }
};

}  // namespace detail

class OptimizerOptions : public detail::OptimizerOf<OptimizerOptions, SHARDREC_OPTIONS_OPTIMIZER> {
 public:
  OptimizerOptions &row_statistics(const Choice<shardrec_row_statistics> &over) {
    return with(SHARDREC_OPTION_ROW_STATISTICS, over);
  }
  OptimizerOptions &eta(double eta) { return with(SHARDREC_OPTION_ETA, eta); }
  OptimizerOptions &max_norm(double norm) { return with(SHARDREC_OPTION_MAX_NORM, norm); }
  OptimizerOptions &momentum_scale(double scale) {
    return with(SHARDREC_OPTION_MOMENTUM_SCALE, scale);
  }
};

class TableOptions : public detail::OptionsOf<TableOptions, SHARDREC_OPTIONS_TABLE> {
 public:
  TableOptions &dtype(const Choice<shardrec_dtype> &dtype) {
    return with(SHARDREC_OPTION_DTYPE, dtype);
  }
  TableOptions &init(const Choice<shardrec_init> &init) { return with(SHARDREC_OPTION_INIT, init); }
  TableOptions &init_range(double min, double max) {
    with(SHARDREC_OPTION_INIT_MIN, min);
    return with(SHARDREC_OPTION_INIT_MAX, max);
  }
  TableOptions &rounding(const Choice<shardrec_rounding> &rounding) {
    return with(SHARDREC_OPTION_ROUNDING, rounding);
  }
  TableOptions &out_of_range(const Choice<shardrec_out_of_range> &what) {
    return with(SHARDREC_OPTION_OUT_OF_RANGE, what);
  }
  // Such as "row_wise, column_wise".
  TableOptions &allowed_sharding(std::string_view kinds) {
    return with(SHARDREC_OPTION_ALLOWED_SHARDING, kinds);
  }
  // Such as "0-3, 7".
  TableOptions &allowed_ranks(std::string_view ranks) {
    return with(SHARDREC_OPTION_ALLOWED_RANKS, ranks);
  }
  TableOptions &min_columns(int64_t columns) { return with(SHARDREC_OPTION_MIN_COLUMNS, columns); }
};

class PlanOptions : public detail::OptionsOf<PlanOptions, SHARDREC_OPTIONS_PLAN> {
 public:
  PlanOptions &sharding(const Choice<shardrec_sharding> &kind) {
    return with(SHARDREC_OPTION_SHARDING, kind);
  }
  PlanOptions &replication(const Choice<shardrec_replication> &replication) {
    return with(SHARDREC_OPTION_REPLICATION, replication);
  }
  PlanOptions &batch_size(int64_t samples) { return with(SHARDREC_OPTION_BATCH_SIZE, samples); }
  PlanOptions &bag_length(double ids) { return with(SHARDREC_OPTION_BAG_LENGTH, ids); }
  PlanOptions &balance(const Choice<shardrec_balance> &balance) {
    return with(SHARDREC_OPTION_BALANCE, balance);
  }
};

class CollectionOptions : public detail::OptionsOf<CollectionOptions, SHARDREC_OPTIONS_COLLECTION> {
 public:
  CollectionOptions &seed(int64_t seed) { return with(SHARDREC_OPTION_SEED, seed); }
  CollectionOptions &threads(int32_t threads) { return with(SHARDREC_OPTION_THREADS, threads); }
  CollectionOptions &gradient_divisor(const Choice<shardrec_divisor> &divisor) {
    return with(SHARDREC_OPTION_GRADIENT_DIVISOR, divisor);
  }
  // A divisor of the caller's own.
  CollectionOptions &gradient_divisor_value(double value) {
    with(SHARDREC_OPTION_GRADIENT_DIVISOR, SHARDREC_DIVISOR_CUSTOM);
    return with(SHARDREC_OPTION_GRADIENT_DIVISOR_VALUE, value);
  }
  CollectionOptions &lookups(int64_t lookups) { return with(SHARDREC_OPTION_LOOKUPS, lookups); }
  CollectionOptions &output_dtype(const Choice<shardrec_dtype> &dtype) {
    return with(SHARDREC_OPTION_OUTPUT_DTYPE, dtype);
  }
  CollectionOptions &deduplicate(bool on) { return with(SHARDREC_OPTION_DEDUPLICATE, on); }
  CollectionOptions &forward_compression(const Choice<shardrec_compression> &compression) {
    return with(SHARDREC_OPTION_FORWARD_COMPRESSION, compression);
  }
  CollectionOptions &backward_compression(const Choice<shardrec_compression> &compression) {
    return with(SHARDREC_OPTION_BACKWARD_COMPRESSION, compression);
  }
  CollectionOptions &hierarchical(bool on) { return with(SHARDREC_OPTION_HIERARCHICAL, on); }
  CollectionOptions &device(int64_t number) { return with(SHARDREC_OPTION_DEVICE, number); }
  CollectionOptions &device_wait(const Choice<shardrec_device_wait> &wait) {
    return with(SHARDREC_OPTION_DEVICE_WAIT, wait);
  }
  CollectionOptions &replica_sync(const Choice<shardrec_replica_sync> &rows) {
    return with(SHARDREC_OPTION_REPLICA_SYNC, rows);
  }
  CollectionOptions &sync_every(int64_t updates) {
    return with(SHARDREC_OPTION_SYNC_EVERY, updates);
  }
  CollectionOptions &non_finite(const Choice<shardrec_non_finite> &choice) {
    return with(SHARDREC_OPTION_NON_FINITE, choice);
  }
};

class LookupOptions : public detail::OptionsOf<LookupOptions, SHARDREC_OPTIONS_LOOKUP> {
 public:
  LookupOptions &borrow(bool on) { return with(SHARDREC_OPTION_BORROW, on); }
  LookupOptions &weight_gradient(bool on) { return with(SHARDREC_OPTION_WEIGHT_GRADIENT, on); }
};

class DdpOptions : public detail::OptionsOf<DdpOptions, SHARDREC_OPTIONS_DDP> {
 public:
  DdpOptions &non_finite(const Choice<shardrec_non_finite> &choice) {
    return with(SHARDREC_OPTION_NON_FINITE, choice);
  }
  DdpOptions &average(bool on) { return with(SHARDREC_OPTION_DDP_AVERAGE, on); }
  DdpOptions &broadcast(bool on) { return with(SHARDREC_OPTION_DDP_BROADCAST, on); }
  DdpOptions &factor(double factor) { return with(SHARDREC_OPTION_DDP_FACTOR, factor); }
  DdpOptions &bucket_bytes(int64_t first, int64_t others) {
    with(SHARDREC_OPTION_DDP_FIRST_BUCKET_BYTES, first);
    return with(SHARDREC_OPTION_DDP_BUCKET_BYTES, others);
  }
  DdpOptions &order(const Choice<shardrec_ddp_order> &order) {
    return with(SHARDREC_OPTION_DDP_ORDER, order);
  }
  DdpOptions &unused(const Choice<shardrec_unused> &unused) {
    return with(SHARDREC_OPTION_DDP_UNUSED, unused);
  }
  DdpOptions &compression(const Choice<shardrec_compression> &compression) {
    return with(SHARDREC_OPTION_DDP_COMPRESSION, compression);
  }
  DdpOptions &join_divisor(const Choice<shardrec_join_divisor> &divisor) {
    return with(SHARDREC_OPTION_DDP_JOIN_DIVISOR, divisor);
  }
  DdpOptions &thread(bool on) { return with(SHARDREC_OPTION_DDP_THREAD, on); }
  DdpOptions &reduction(const Choice<shardrec_ddp_reduction> &reduction) {
    return with(SHARDREC_OPTION_DDP_REDUCTION, reduction);
  }
  DdpOptions &step_in_backward(bool on) { return with(SHARDREC_OPTION_DDP_STEP_IN_BACKWARD, on); }
  DdpOptions &threads(int32_t threads) { return with(SHARDREC_OPTION_THREADS, threads); }
  DdpOptions &device_wait(const Choice<shardrec_device_wait> &wait) {
    return with(SHARDREC_OPTION_DEVICE_WAIT, wait);
  }
  DdpOptions &stream(int64_t stream) { return with(SHARDREC_OPTION_STREAM, stream); }
};

class FsdpOptions : public detail::OptionsOf<FsdpOptions, SHARDREC_OPTIONS_FSDP> {
 public:
  FsdpOptions &strategy(const Choice<shardrec_fsdp_strategy> &strategy) {
    return with(SHARDREC_OPTION_FSDP_STRATEGY, strategy);
  }
  FsdpOptions &prefetch(int32_t units) { return with(SHARDREC_OPTION_FSDP_PREFETCH, units); }
  FsdpOptions &held_units(int32_t units) { return with(SHARDREC_OPTION_FSDP_HELD_UNITS, units); }
  FsdpOptions &parameter_dtype(const Choice<shardrec_dtype> &dtype) {
    return with(SHARDREC_OPTION_FSDP_PARAMETER_DTYPE, dtype);
  }
  FsdpOptions &reduce_dtype(const Choice<shardrec_dtype> &dtype) {
    return with(SHARDREC_OPTION_FSDP_REDUCE_DTYPE, dtype);
  }
  FsdpOptions &non_finite(const Choice<shardrec_non_finite> &choice) {
    return with(SHARDREC_OPTION_NON_FINITE, choice);
  }
  FsdpOptions &average(bool on) { return with(SHARDREC_OPTION_DDP_AVERAGE, on); }
  FsdpOptions &factor(double factor) { return with(SHARDREC_OPTION_DDP_FACTOR, factor); }
  FsdpOptions &threads(int32_t threads) { return with(SHARDREC_OPTION_THREADS, threads); }
  // With offload(true).
  FsdpOptions &device(int64_t number) { return with(SHARDREC_OPTION_DEVICE, number); }
  FsdpOptions &offload(bool on) { return with(SHARDREC_OPTION_FSDP_OFFLOAD, on); }
  FsdpOptions &device_wait(const Choice<shardrec_device_wait> &wait) {
    return with(SHARDREC_OPTION_DEVICE_WAIT, wait);
  }
  FsdpOptions &stream(int64_t stream) { return with(SHARDREC_OPTION_STREAM, stream); }
};

// Of stacks of layers; an interaction takes the threads.
class MlpOptions : public detail::OptimizerOf<MlpOptions, SHARDREC_OPTIONS_MLP> {
 public:
  MlpOptions &seed(int64_t seed) { return with(SHARDREC_OPTION_SEED, seed); }
  MlpOptions &threads(int32_t threads) { return with(SHARDREC_OPTION_THREADS, threads); }
  MlpOptions &accumulate_gradients(bool on) {
    return with(SHARDREC_OPTION_ACCUMULATE_GRADIENTS, on);
  }
  MlpOptions &device(int64_t number) { return with(SHARDREC_OPTION_DEVICE, number); }
  MlpOptions &device_wait(const Choice<shardrec_device_wait> &wait) {
    return with(SHARDREC_OPTION_DEVICE_WAIT, wait);
  }
  MlpOptions &stream(int64_t stream) { return with(SHARDREC_OPTION_STREAM, stream); }
  MlpOptions &precision(const Choice<shardrec_precision> &precision) {
    return with(SHARDREC_OPTION_PRECISION, precision);
  }
  MlpOptions &loss_scale(double scale) { return with(SHARDREC_OPTION_LOSS_SCALE, scale); }
  MlpOptions &loss_scale_steps(int64_t steps) {
    return with(SHARDREC_OPTION_LOSS_SCALE_STEPS, steps);
  }
};

class MetricsOptions : public detail::OptionsOf<MetricsOptions, SHARDREC_OPTIONS_METRICS> {
 public:
  MetricsOptions &device(int64_t number) { return with(SHARDREC_OPTION_DEVICE, number); }
  MetricsOptions &device_wait(const Choice<shardrec_device_wait> &wait) {
    return with(SHARDREC_OPTION_DEVICE_WAIT, wait);
  }
  MetricsOptions &stream(int64_t stream) { return with(SHARDREC_OPTION_STREAM, stream); }
};

class MeshOptions : public detail::OptionsOf<MeshOptions, SHARDREC_OPTIONS_MESH> {
 public:
  MeshOptions &placement(const Choice<shardrec_placement> &placement) {
    return with(SHARDREC_OPTION_PLACEMENT, placement);
  }
};

class CommOptions : public detail::OptionsOf<CommOptions, SHARDREC_OPTIONS_COMM> {
 public:
  CommOptions &engine(const Choice<shardrec_engine> &engine) {
    return with(SHARDREC_OPTION_ENGINE, engine);
  }
  CommOptions &setup_seconds(double seconds) {
    return with(SHARDREC_OPTION_COMM_SETUP_SECONDS, seconds);
  }
  CommOptions &interface(std::string_view name) { return with(SHARDREC_OPTION_INTERFACE, name); }
  CommOptions &rank_zero_seconds(double seconds) {
    return with(SHARDREC_OPTION_RANK_ZERO_SECONDS, seconds);
  }
  CommOptions &allow_plain_tcp(bool on) { return with(SHARDREC_OPTION_ALLOW_PLAIN_TCP, on); }
};

class RendezvousOptions : public detail::OptionsOf<RendezvousOptions, SHARDREC_OPTIONS_RENDEZVOUS> {
 public:
  RendezvousOptions &address(std::string_view address) {
    return with(SHARDREC_OPTION_ADDRESS, address);
  }
  RendezvousOptions &port(int32_t port) { return with(SHARDREC_OPTION_PORT, port); }
  RendezvousOptions &advertised_address(std::string_view address) {
    return with(SHARDREC_OPTION_ADVERTISED_ADDRESS, address);
  }
  RendezvousOptions &job(std::string_view name) { return with(SHARDREC_OPTION_JOB, name); }
  RendezvousOptions &secret(std::string_view secret) {
    return with(SHARDREC_OPTION_SECRET, secret);
  }
  RendezvousOptions &allow_plain_tcp(bool on) { return with(SHARDREC_OPTION_ALLOW_PLAIN_TCP, on); }
  RendezvousOptions &silence_seconds(double seconds) {
    return with(SHARDREC_OPTION_SILENCE_SECONDS, seconds);
  }
};

class CheckpointOptions : public detail::OptionsOf<CheckpointOptions, SHARDREC_OPTIONS_CHECKPOINT> {
 public:
  CheckpointOptions &keep_last(int64_t count) { return with(SHARDREC_OPTION_KEEP_LAST, count); }
  CheckpointOptions &most_deltas(int64_t count) { return with(SHARDREC_OPTION_MOST_DELTAS, count); }
  CheckpointOptions &delta_states(bool on) { return with(SHARDREC_OPTION_DELTA_STATES, on); }
};

class ScorerOptions : public detail::OptionsOf<ScorerOptions, SHARDREC_OPTIONS_SCORER> {
 public:
  ScorerOptions &tables(const Choice<shardrec_served_tables> &tables) {
    return with(SHARDREC_OPTION_SERVED_TABLES, tables);
  }
  ScorerOptions &collection(std::string_view name) {
    return with(SHARDREC_OPTION_SERVED_COLLECTION, name);
  }
  ScorerOptions &layers(std::string_view bottom, std::string_view top) {
    with(SHARDREC_OPTION_BOTTOM_LAYERS, bottom);
    return with(SHARDREC_OPTION_TOP_LAYERS, top);
  }
  ScorerOptions &logits(bool on) { return with(SHARDREC_OPTION_LOGITS, on); }
  ScorerOptions &non_finite(const Choice<shardrec_non_finite> &choice) {
    return with(SHARDREC_OPTION_NON_FINITE, choice);
  }
};

}  // namespace shardrec

#endif
