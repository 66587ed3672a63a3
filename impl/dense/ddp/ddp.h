// Data-parallel dense parameters (capi's ddp.h): the same values on every rank, gradients reduced
// over the ranks while the host still computes others (reducer.h), and if wanted an optimizer.
//
// Thread rule: mark_ready and mark_unused from any thread during a step; the others one at a time.
// The channels are opened by the first commit that all ranks agree on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/collective/collectives.h"
#include "comm/communicator.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"
#include "core/threads.h"
#include "dense/ddp/device_buckets.h"
#include "dense/ddp/device_values.h"
#include "dense/ddp/reducer.h"
#include "dense/element_optimizer.h"
#include "dense/gradient_norm.h"
#include "dense/layers/mlp.h"
#include "plan/model/model.h"
#include "shardrec/ddp.h"

namespace shardrec::dense {

struct DdpOptions {
  int64_t caller_stream =
      0;  // where the caller computes gradients on a device: the value of a cudaStream_t
  compute::HostWait wait = compute::HostWait::kSleep;  // on a device
  ReducerOptions reducer{};
  bool broadcast = true;  // commit copies rank 0's parameters to all
  bool step_in_backward = false;
  shardrec_non_finite non_finite = SHARDREC_NON_FINITE_ALLOW;  // of reduced gradients
  int threads = 1;                                             // of the optimizer
};

class Ddp {
 public:
  Ddp(std::shared_ptr<comm::Communicator> communicator, const DdpOptions& options);
  // Inside a step with sync it fails the communicator: peers will wait for this rank.
  ~Ddp();
  Ddp(const Ddp&) = delete;
  Ddp& operator=(const Ddp&) = delete;

  struct Parameter {
    std::string name;
    std::vector<int64_t> shape;
    shardrec_dtype dtype = SHARDREC_FLOAT32;
    int64_t elements = 0;
    // On the device of the set.
    void* values = nullptr;
    void* gradient = nullptr;     // null until commit where it is the library's or in the flat one
    void* host_values = nullptr;  // values, or of a set on a device the host's copy, since commit

    // Of the host's copy.
    std::span<std::byte> value_bytes() const noexcept;
    size_t bytes() const noexcept {
      return static_cast<size_t>(elements) * core::dtype_size(dtype);
    }
  };

  // The CUDA device that values, gradients and states are on; kNoDevice: the CPU.
  static constexpr int32_t kNoDevice = core::DeviceSet::kNoDevice;
  int32_t device() const noexcept { return device_.value_or(kNoDevice); }

  // values: float32, float64, float16 or bfloat16, and the memory of a gradient, which stay the
  // host's and in place; gradient.data null: one of the library. Returns the index. Throws
  // INVALID_STATE after commit, INVALID_ARGUMENT for an empty or known name, UNSUPPORTED, also for a device that other
  // parameters are not on.
  int64_t add(std::string name, std::vector<int64_t> shape, const core::FlatView& values,
              const core::FlatView& gradient, int32_t device = kNoDevice);
  // All parameters of a stack, prefix + "layer.0.weight" and so on; it stays as long as the set.
  // listener(first index, count): what the stack tells of its gradients (layers.h). Returns the first
  // index. All or none are added.
  int64_t add_stack(
      const std::string& prefix, const std::shared_ptr<Mlp>& stack,
      const std::function<std::shared_ptr<GradientListener>(int64_t, int64_t)>& listener);
  // Memory of the gradients of parameters that are added without one, in the order of adding.
  void set_flat_gradient(const core::FlatView& gradients, int32_t device = kNoDevice);
  void set_optimizer(const plan::Optimizer& optimizer);
  void set_bucket_done(Reducer::BucketDone done);
  void set_hook(Reducer::Hook hook);

  // Collective. Throws DISAGREEMENT, the same on all ranks, when they differ in their parameters or
  // options, and UNSUPPORTED likewise where NCCL is to reduce and cannot; then the communicator lives and
  // nothing has changed.
  void commit();

  void begin(bool sync);
  // given: as BucketMemory::mark_ready().
  void mark_ready(int64_t first, int64_t count, compute::cuda::host::Stream* given = nullptr) {
    committed("mark_ready").mark_ready(first, count, given);
  }
  void mark_unused(int64_t first, int64_t count) {
    committed("mark_unused").mark_unused(first, count);
  }
  // A step has begun and not ended.
  bool takes_marks() const noexcept { return reducer_ != nullptr && reducer_->takes_marks(); }
  // Throws INVALID_STATE where one of them has been marked in this step.
  void require_unmarked(int64_t first, int64_t count) const {
    if (reducer_ != nullptr) reducer_->require_unmarked(first, count);
  }
  void end() { committed("end").end(); }
  // Throws INVALID_BATCH, the same on all ranks, where a reduced gradient is not finite and the options
  // say so.
  void wait();
  void all_reduce();
  void join();

  void zero_gradients();
  // What ddp.h of the C API says: returns the norm before.
  double clip_gradients(shardrec_clip kind, double bound);
  void step();
  void set_learning_rate(double rate);

  // Collective. Throws DISAGREEMENT, the same on all ranks, where values or optimizer states differ.
  void check_equal();
  // Collective: values and optimizer states of rank root become those of all.
  void broadcast(int root);

  // A set on a device: the host gets the values and states that the device has, or the other way. fetch() throws
  // INVALID_STATE before commit; where publish() fails, the next call that needs them tells.
  void fetch();
  void publish() noexcept;

  // In the order in which they were added.
  std::span<const Parameter> parameters() const noexcept { return parameters_; }
  const Parameter& parameter(int64_t index) const;
  bool is_committed() const noexcept { return reducer_ != nullptr; }
  const Reducer& reducer() const { return committed("this call"); }
  // The bucket of a parameter; after commit.
  int32_t bucket_of(int64_t index) const {
    const Reducer& committed_buckets = reducer();
    static_cast<void>(parameter(index));
    return committed_buckets.bucket_of(index);
  }
  // Null without an optimizer or before commit.
  ElementOptimizer* optimizer() const noexcept { return optimizer_.get(); }
  // An optimizer state of a parameter, on the device of the set.
  float* state(int64_t parameter, int state) const;
  std::string statistics_json() const;

 private:
  // Where body throws, the communicator ends for all, unless it says that the ranks differ.
  template <class Body>
  void collectively(const char* name, const Body& body) const {
    try {
      body();
    } catch (const core::Error& error) {
      if (error.status() != SHARDREC_DISAGREEMENT) communicator_->fail(name);
      throw;
    } catch (...) {
      communicator_->fail(name);
      throw;
    }
  }
  Reducer& committed(const char* call) const;
  void require_uncommitted(const char* call) const;
  ElementOptimizer& require_optimizer(const char* call) const;
  bool carries_by_nccl() const noexcept;
  // Why NCCL cannot add up as the options say; empty: it can, or they do not. The same on ranks that agree.
  std::string refused_reduction() const;
  std::string describe() const;
  void check_arguments() const;
  void require_device(const std::string& name, int32_t device) const;
  void make_place();
  void place_gradients();
  void place_host_values();
  void make_optimizer();
  void forget_place() noexcept;
  void bucket_is_done(int32_t bucket);
  void check_finite();
  void step_on_device(ElementOptimizer& optimizer);
  // body(bytes) for all memory that is the same on all ranks, a piece at a time.
  void for_each_state(const std::function<void(std::span<std::byte>)>& body) const;

  std::shared_ptr<comm::Communicator> communicator_;
  DdpOptions options_;
  std::vector<Parameter> parameters_;
  std::vector<std::shared_ptr<Mlp>>
      stacks_;                     // by parameter: that which it is of; null: the caller's own
  uint32_t stack_count_ = 0;       // in the order of adding
  std::optional<int32_t> device_;  // none: there is no parameter yet
  std::optional<core::FlatView> flat_;
  int32_t flat_device_ = kNoDevice;
  std::optional<plan::Optimizer> optimizer_options_;
  Reducer::BucketDone bucket_done_;
  Reducer::Hook hook_;

  std::shared_ptr<DeviceBuckets> device_buckets_;  // null: the set is on the CPU
  core::Pages gradients_;                          // those of the library
  std::optional<compute::Buffer> device_gradients_;
  core::Pages host_values_;  // of a set on a device
  std::unique_ptr<ElementOptimizer> optimizer_;
  std::unique_ptr<DeviceValues> on_device_;  // null: the set is on the CPU
  GradientNorm norm_;
  std::unique_ptr<core::Threads> threads_;
  std::unique_ptr<core::Threads> one_thread_;  // for steps that are taken as gradients come
  std::optional<comm::Collectives> control_;
  std::shared_ptr<Reducer> reducer_;
  bool skips_step_ = false;  // of the last wait(): a gradient is not finite
  int64_t non_finite_steps_ = 0;
};

}  // namespace shardrec::dense
