// Sets of DDP parameters on devices, or the same on the CPU: their memory, ranks and ways of messages, and steps of them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "comm/world.h"
#include "conformance/engines.h"
#include "dense/ddp/ddp.h"
#include "device/of_plugin.h"

namespace shardrec::dense::sets {

using comm::Communicator;
using Bytes = std::vector<std::byte>;

// How messages go from device to device.
enum class Way : uint8_t { kShared, kCopied, kNccl };
inline constexpr std::array<Way, 3> kWays = {Way::kShared, Way::kCopied, Way::kNccl};

inline const char* name_of(Way way) {
  constexpr const char* kNames[] = {"shared", "copied", "nccl"};
  return kNames[static_cast<size_t>(way)];
}

// Body on every rank; returns what they threw.
inline comm::Errors run(Way way, int ranks, const comm::Body& body) {
  const auto with_bodies = [&](Communicator& communicator) {
    if (way == Way::kNccl) communicator.set_device_bodies(comm::DeviceBodies::kNccl);
    body(communicator);
  };
  if (way != Way::kCopied) return comm::run_ranks(ranks, with_bodies);
  comm::Errors errors(static_cast<size_t>(ranks));
  for (auto& [rank, error] : comm::run(*comm::eager_engine(), ranks, with_bodies)) {
    errors[static_cast<size_t>(rank)] = error;
  }
  return errors;
}

inline void expect_none(const comm::Errors& errors) {
  for (size_t r = 0; r < errors.size(); ++r) {
    EXPECT_FALSE(errors[r]) << "rank " << r << ": " << errors[r]->sentence();
  }
}

inline std::shared_ptr<Communicator> borrow(Communicator& communicator) {
  return {&communicator, [](Communicator*) {}};
}

// Memory of the CPU or of a device, which the host writes and reads in the order of a stream.
class Place {
 public:
  // device -1: the CPU.
  explicit Place(int32_t device) : device_(device) {
    if (device < 0) return;
    stream_ = std::make_shared<compute::cuda::host::Stream>(device);
    memory_ = compute::cuda::host::make_memory(stream_);
  }
  int32_t device() const { return device_; }
  const std::shared_ptr<compute::cuda::host::Stream>& stream_pointer() { return stream_; }
  int64_t stream_number() const { return device_ < 0 ? 0 : stream_->number(); }

  std::byte* allocate(size_t bytes) {
    blocks_.emplace_back(memory_ == nullptr ? compute::cpu_memory() : memory_);
    return blocks_.back().resize(std::max<size_t>(bytes, 64));
  }
  void write(void* to, const void* from, size_t bytes) {
    copy(to, from, bytes, [&](std::byte* pinned) {
      std::memcpy(pinned, from, bytes);
      stream_->copy(to, pinned, bytes);
      stream_->wait();
    });
  }
  Bytes read(const void* from, size_t bytes) {
    Bytes out(bytes);
    copy(out.data(), from, bytes, [&](std::byte* pinned) {
      stream_->copy(pinned, from, bytes);
      stream_->wait();
      std::memcpy(out.data(), pinned, bytes);
    });
    return out;
  }

 private:
  template <class OnDevice>
  void copy(void* to, const void* from, size_t bytes, const OnDevice& on_device) {
    if (bytes == 0) return;
    if (device_ < 0) {
      std::memcpy(to, from, bytes);
    } else {
      on_device(pinned_.resize(bytes));
    }
  }

  int32_t device_;
  std::shared_ptr<compute::cuda::host::Stream> stream_;
  std::shared_ptr<compute::Memory> memory_;
  std::vector<compute::Buffer> blocks_;
  compute::cuda::host::PinnedRoom pinned_;
};

// A small tensor, one that is cut into parts of ranks, an empty one, tiny ones at the end.
inline const std::vector<int64_t> kSizes = {5, 3001, 7, 0, 40003, 1, 3, 100};

// The parameters of a rank.
class Model {
 public:
  Model(Place& place, int rank, shardrec_dtype dtype, const std::vector<int64_t>& sizes = kSizes)
      : place_(place), rank_(rank), dtype_(dtype), sizes_(sizes) {
    for (size_t p = 0; p < sizes_.size(); ++p) {
      values_.push_back(place_.allocate(bytes(p)));
      gradients_.push_back(place_.allocate(bytes(p)));
      write(values_[p], p, 1000, 1);
    }
  }
  size_t size() const { return sizes_.size(); }
  size_t bytes(size_t p) const { return static_cast<size_t>(sizes_[p]) * core::dtype_size(dtype_); }
  void* gradient(size_t p) { return gradients_[p]; }

  void add_to(Ddp& ddp, const std::string& prefix = "p") {
    for (size_t p = 0; p < size(); ++p) {
      const auto view = [&](void* data) {
        return core::FlatView{.data = data, .size = sizes_[p], .dtype = dtype_};
      };
      ddp.add(prefix + std::to_string(p), {sizes_[p]}, view(values_[p]), view(gradients_[p]),
              place_.device());
    }
  }
  // Numbers of the rank, the step and the parameter, up to about so large.
  void write_gradient(size_t p, int step, double largest) {
    write(gradients_[p], p, step * 16 + rank_, largest);
  }
  void set_element(size_t p, int64_t element, float value) {
    place_.write(gradients_[p] + static_cast<size_t>(element) * sizeof value, &value, sizeof value);
  }
  Bytes all_gradients() { return read(gradients_); }
  Bytes all_values() { return read(values_); }

 private:
  Bytes read(const std::vector<std::byte*>& memory) {
    Bytes all;
    for (size_t p = 0; p < size(); ++p) {
      const Bytes some = place_.read(memory[p], bytes(p));
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  void write(std::byte* to, size_t p, int seed, double largest) {
    std::mt19937 random(static_cast<unsigned>(seed) * 131 + static_cast<unsigned>(p));
    std::uniform_real_distribution<double> uniform(-largest, largest);
    Bytes bytes_of(bytes(p));
    for (int64_t i = 0; i < sizes_[p]; ++i) {
      // Of any magnitude, so that sums depend on their order.
      const double number = std::ldexp(uniform(random), -static_cast<int>(i % 41));
      const auto narrow = static_cast<float>(number);
      std::byte* const at = bytes_of.data() + static_cast<size_t>(i) * core::dtype_size(dtype_);
      if (dtype_ == SHARDREC_FLOAT64) {
        std::memcpy(at, &number, sizeof number);
      } else {
        convert(&narrow, SHARDREC_FLOAT32, at, dtype_, 1);
      }
    }
    place_.write(to, bytes_of.data(), bytes_of.size());
  }

  Place& place_;
  int rank_;
  shardrec_dtype dtype_;
  std::vector<int64_t> sizes_;
  std::vector<std::byte*> values_;
  std::vector<std::byte*> gradients_;
};

inline DdpOptions small_buckets() {
  DdpOptions options;
  options.reducer.limits = {.first = 1 << 10, .others = 1 << 14};
  return options;
}

struct Job {
  int ranks = 2;
  shardrec_dtype dtype = SHARDREC_FLOAT32;
  DdpOptions options = small_buckets();
  double largest = 1;
  std::optional<plan::Optimizer> optimizer{};
  // What is done on a rank with a set that is committed.
  std::function<void(Communicator&, Ddp&, Model&)> body{};
};

// What the ranks have at the end: gradients and values, and the saturated numbers of all buckets.
struct Outcome {
  std::vector<Bytes> gradients;
  std::vector<Bytes> values;
  std::vector<int64_t> saturated;
  bool operator==(const Outcome&) const = default;
};

inline Outcome nothing_yet(const Job& job) {
  const auto ranks = static_cast<size_t>(job.ranks);
  return {std::vector<Bytes>(ranks), std::vector<Bytes>(ranks), std::vector<int64_t>(ranks)};
}

// As a rank of the job; sets what becomes of it.
inline void take_part(const Job& job, Communicator& communicator, bool on_device,
                      Outcome& outcome) {
  const int rank = communicator.rank();
  Place place(on_device ? rank % 2 : -1);
  Model model(place, rank, job.dtype);
  DdpOptions options = job.options;
  options.caller_stream = place.stream_number();
  Ddp ddp(borrow(communicator), options);
  model.add_to(ddp);
  if (job.optimizer) ddp.set_optimizer(*job.optimizer);
  ddp.commit();
  job.body(communicator, ddp, model);
  ddp.check_equal();
  const auto r = static_cast<size_t>(rank);
  for (const BucketStatistics& bucket : ddp.reducer().statistics().buckets) {
    outcome.saturated[r] += bucket.saturated;
  }
  outcome.gradients[r] = model.all_gradients();
  outcome.values[r] = model.all_values();
}

// way: none: on the CPU.
inline Outcome run(const Job& job, std::optional<Way> way) {
  Outcome outcome = nothing_yet(job);
  expect_none(run(way.value_or(Way::kShared), job.ranks, [&](Communicator& communicator) {
    take_part(job, communicator, way.has_value(), outcome);
  }));
  return outcome;
}

// A step with these parameters ready, the last one first.
inline void take_step(
    Ddp& ddp, Model& model, int step, double largest = 1, bool sync = true,
    const std::function<bool(size_t)>& uses = [](size_t) { return true; }) {
  ddp.begin(sync);
  for (size_t p = model.size(); p-- > 0;) {
    if (!uses(p)) continue;
    model.write_gradient(p, step, largest);
    ddp.mark_ready(static_cast<int64_t>(p), 1);
  }
  ddp.end();
  ddp.wait();
}

inline void expect_as_on_the_cpu(const Job& job,
                                 const std::vector<Way>& ways = {kWays.begin(), kWays.end()}) {
  const Outcome expected = run(job, {});
  EXPECT_FALSE(expected.gradients[0].empty());
  for (const Way way : ways) {
    SCOPED_TRACE(testing::Message()
                 << name_of(way) << ", " << job.ranks << " ranks, " << core::dtype_name(job.dtype));
    const Outcome there = run(job, way);
    EXPECT_TRUE(there.gradients == expected.gradients);
    EXPECT_TRUE(there.values == expected.values);
    EXPECT_EQ(there.saturated, expected.saturated);
  }
}

inline void two_steps(Communicator&, Ddp& ddp, Model& model) {
  take_step(ddp, model, 0);
  take_step(ddp, model, 1);
}

}  // namespace shardrec::dense::sets
