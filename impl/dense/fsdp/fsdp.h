// Fully sharded dense parameters (capi's fsdp.h; Zhao et al., VLDB 2023): each rank of a sharding group
// keeps a shard of every unit, with its gradients and optimizer states; the full parameters of a unit
// are there while the host uses them (unsharded_units.h), its full gradients until they are reduced
// (gradient_reducer.h).
//
// Thread rule: one thread at a time. The library has no thread of its own here: calls post messages,
// which the engine carries while the host computes, and take what has come.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/function_ref.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/element_optimizer.h"
#include "dense/fsdp/gradient_reducer.h"
#include "dense/fsdp/unit.h"
#include "dense/fsdp/unit_device.h"
#include "dense/fsdp/unsharded_units.h"
#include "dense/gradient_norm.h"
#include "dense/layers/mlp.h"
#include "plan/model/model.h"
#include "shardrec/fsdp.h"

namespace shardrec::dense {

struct FsdpOptions {
  shardrec_fsdp_strategy strategy = SHARDREC_FSDP_FULL_SHARD;
  int prefetch = 1;
  int held = 1;
  shardrec_dtype parameter_dtype = SHARDREC_FLOAT32;
  shardrec_dtype reduce_dtype = SHARDREC_FLOAT32;
  shardrec_non_finite non_finite = SHARDREC_NON_FINITE_ALLOW;  // of reduced gradients
  bool average = true;
  double factor = 1;
  int threads = 1;  // of the optimizer
  // Full parameters and full gradients are there; shards, their gradients and states are in the host's memory.
  device::ContextOptions place{};
  bool offload = false;
};

// The ranks of a set. sharding: those that have the shards of a unit; null: each rank has all of it. replicas:
// those that have the same shard; null: this one alone.
struct FsdpGroups {
  std::shared_ptr<comm::Communicator> world;
  std::shared_ptr<comm::Communicator> sharding;
  std::shared_ptr<comm::Communicator> replicas;
};

class Fsdp {
 public:
  // mesh: the groups of HYBRID_SHARD; the other strategies have groups of their own. Throws INVALID_ARGUMENT,
  // UNSUPPORTED.
  Fsdp(FsdpGroups groups, bool mesh, const FsdpOptions& options);
  // Inside a step it fails the communicator: peers will wait for this rank.
  ~Fsdp();
  Fsdp(const Fsdp&) = delete;
  Fsdp& operator=(const Fsdp&) = delete;

  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    int64_t elements = 0;
    size_t unit = 0;
    size_t in_unit = 0;  // index among those of the unit
  };

  // Throw INVALID_STATE after commit, INVALID_ARGUMENT, NOT_FOUND; return the index.
  int64_t add_unit(std::string name);
  int64_t add_parameter(int64_t unit, std::string name, std::vector<int64_t> shape);
  void set_optimizer(const plan::Optimizer& optimizer);
  // add: adds the units and parameters of a stack of layers, whose numbers begin with those that it is given, and
  // makes the stack compute in them; where it throws, nothing is added. Commit takes the values of rank 0. The stack
  // stays as long as the set does. Returns the index of the first parameter. Throws INVALID_STATE after commit,
  // UNSUPPORTED, and what add does.
  int64_t add_stack(std::shared_ptr<Mlp> stack,
                    core::FunctionRef<void(int64_t first_unit, int64_t first_parameter)> add);

  // Collective. Throws DISAGREEMENT, the same on all ranks, where they differ; the communicator then lives on.
  void commit();

  // Calls of a step, as fsdp.h of the C API says.
  void begin(bool sync);
  void unshard(int64_t unit);
  // user: the stream of who computes on the device of the set; null: the caller's, or the CPU.
  using Stream = compute::cuda::host::Stream;
  void wait_unshard(int64_t unit, Stream* user = nullptr);
  void reshard(int64_t unit);
  std::byte* parameter_values(int64_t parameter) const;
  std::byte* parameter_gradients(int64_t parameter, Stream* user = nullptr);
  void mark_ready(int64_t unit, Stream* user = nullptr);
  // Throws INVALID_STATE where mark_ready() would, for what was marked.
  void require_markable(int64_t unit) const;
  // Whether a unit's gradients of this step are to be added to.
  bool has_gradients(int64_t unit) const noexcept;
  void end();
  void wait();

  void zero_gradients();
  double clip_gradients(shardrec_clip kind, double bound);
  void step();
  void set_learning_rate(double rate);

  // what: a shardrec_fsdp_array, or SHARDREC_FSDP_STATE + the number of a state.
  struct Shard {
    int64_t offset = 0;  // of the first element in the parameter
    std::span<float> elements{};
  };
  // This rank's part of a parameter. Changes of values count from the next begin() on. When the communicator has
  // ended, also inside a step: values are those before the step or after it, and are read only.
  Shard shard(int64_t parameter, int32_t what);
  // Collective over the sharding group: out gets the whole parameter.
  void gather(int64_t parameter, int32_t what, std::span<float> out);
  // root < 0: each rank takes its part of `in`. Else collective: that of rank root of the communicator, which
  // alone gives one.
  void scatter(int64_t parameter, int32_t what, std::span<const float> in, int root);

  // Collective. Throws DISAGREEMENT, the same on all ranks, where replicas of a shard differ.
  void check_equal();
  std::string statistics_json() const;

  std::span<const Parameter> parameters() const noexcept { return parameters_; }
  const Parameter& parameter(int64_t index) const;
  bool is_of_stack(int64_t parameter) const noexcept;
  int rank() const noexcept { return groups_.world->rank(); }
  const comm::Communicator& world() const noexcept { return *groups_.world; }
  // That full parameters and full gradients are on; -1: the CPU.
  int32_t device() const noexcept { return device_ == nullptr ? -1 : device_->device(); }
  shardrec_dtype parameter_dtype() const noexcept { return options_.parameter_dtype; }
  // Null without one and before commit.
  ElementOptimizer* optimizer() const noexcept { return optimizer_.get(); }
  bool is_committed() const noexcept { return unsharded_ != nullptr; }
  // Throws INVALID_STATE before commit and inside a step, and what ended the communicator inside one.
  void require_idle(const char* call) const;
  // Throws INVALID_STATE outside a step, and what ended the communicator where it did.
  void require_open(const char* call) const;

 private:
  enum class State : uint8_t { kIdle, kOpen, kEnded };

  // Where body throws, the communicator ends for all, unless it says that the ranks differ.
  template <class Body>
  void exchanging(const char* name, const Body& body) const;
  void require_committed(const char* call) const;
  void check_before(const char* call) const;
  ElementOptimizer& require_optimizer(const char* call) const;
  size_t unit_at(int64_t index) const;
  std::string describe() const;
  void check_arguments() const;
  // What was made costs nothing until it is touched. Throws OUT_OF_MEMORY where this rank, and those of its
  // process, will have no room for it.
  void require_room(const UnshardedUnits& unsharded) const;
  void make_shards();
  // The values of rank 0 of all parameters of stacks, which give back their own memory. Collective.
  void take_stacks();
  void forget_shards() noexcept;
  bool has_ended() const;
  void shards_change();
  int sharding_rank() const noexcept { return groups_.sharding ? groups_.sharding->rank() : 0; }
  int sharding_ranks() const noexcept { return groups_.sharding ? groups_.sharding->size() : 1; }
  double norm_of_all(shardrec_clip kind);
  // The first element in the order of parameters whose reduced gradient is no number, on all ranks alike.
  struct NonFinite {
    int64_t parameter = INT64_MAX;  // of none
    int64_t element = 0;
    int64_t rank = 0;  // that has it in its shard
  };
  NonFinite non_finite_here();
  NonFinite non_finite_of_all();
  void refuse_non_finite(const NonFinite& found);

  FsdpGroups groups_;
  const FsdpOptions options_;
  std::vector<Unit> units_;
  std::vector<Parameter> parameters_;
  int64_t elements_ = 0;  // of all parameters, each padded
  struct Stack {
    std::shared_ptr<Mlp> layers;
    int64_t first = 0;  // index of its first parameter
  };
  std::vector<Stack> stacks_;
  std::optional<plan::Optimizer> optimizer_options_;

  std::unique_ptr<UnitDevice> device_;                 // null: the CPU
  std::optional<comm::Collectives> control_;           // of the communicator
  std::optional<comm::Collectives> sharding_control_;  // of the sharding group
  std::unique_ptr<UnshardedUnits> unsharded_;
  std::unique_ptr<GradientReducer> reducer_;
  std::unique_ptr<ElementOptimizer> optimizer_;
  GradientNorm norm_;
  std::unique_ptr<core::Threads> threads_;

  State state_ = State::kIdle;
  bool sync_ = false;
  uint64_t begun_ = 0;
  int64_t steps_ = 0;
  int64_t local_steps_ = 0;
  int64_t non_finite_steps_ = 0;
  bool skips_step_ = false;
};

}  // namespace shardrec::dense
