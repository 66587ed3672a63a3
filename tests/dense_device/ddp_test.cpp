// Sets of DDP parameters on devices: the bits of the same set on the CPU, whichever way messages go, in the order of the
// caller's stream, and without the host.
#include "dense/ddp/ddp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "comm/world.h"
#include "conformance/engines.h"
#include "dense/ddp/layers.h"
#include "device/held_streams.h"
#include "device/of_plugin.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;
using Bytes = std::vector<std::byte>;

// How messages go from device to device.
enum class Way : uint8_t { kShared, kCopied, kNccl };
constexpr std::array<Way, 3> kWays = {Way::kShared, Way::kCopied, Way::kNccl};

const char* name_of(Way way) {
  constexpr const char* kNames[] = {"shared", "copied", "nccl"};
  return kNames[static_cast<size_t>(way)];
}

// Body on every rank; returns what they threw.
comm::Errors run(Way way, int ranks, const comm::Body& body) {
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

void expect_none(const comm::Errors& errors) {
  for (size_t r = 0; r < errors.size(); ++r) {
    EXPECT_FALSE(errors[r]) << "rank " << r << ": " << errors[r]->sentence();
  }
}

std::shared_ptr<Communicator> borrow(Communicator& communicator) {
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
const std::vector<int64_t> kSizes = {5, 3001, 7, 0, 40003, 1, 3, 100};

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

  void add_to(Ddp& ddp) {
    for (size_t p = 0; p < size(); ++p) {
      const auto view = [&](void* data) {
        return core::FlatView{.data = data, .size = sizes_[p], .dtype = dtype_};
      };
      ddp.add("p" + std::to_string(p), {sizes_[p]}, view(values_[p]), view(gradients_[p]),
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

DdpOptions small_buckets() {
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

// way: none: on the CPU.
Outcome run(const Job& job, std::optional<Way> way) {
  const auto ranks = static_cast<size_t>(job.ranks);
  Outcome outcome{std::vector<Bytes>(ranks), std::vector<Bytes>(ranks),
                  std::vector<int64_t>(ranks)};
  expect_none(run(way.value_or(Way::kShared), job.ranks, [&](Communicator& communicator) {
    const int rank = communicator.rank();
    Place place(way ? rank % 2 : -1);
    Model model(place, rank, job.dtype);
    DdpOptions options = job.options;
    options.caller_stream = place.stream_number();
    {
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
  }));
  return outcome;
}

// A step with these parameters ready, the last one first.
void take_step(
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

void expect_as_on_the_cpu(const Job& job,
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

void two_steps(Communicator&, Ddp& ddp, Model& model) {
  take_step(ddp, model, 0);
  take_step(ddp, model, 1);
}

TEST(DdpOnDevice, AnyWorldHasTheBitsOfTheCpu) {
  for (const int ranks : {1, 2, 3, 4, 5}) {
    Job job{.ranks = ranks, .body = two_steps};
    expect_as_on_the_cpu(job);
    job.options.reducer.average = false;
    job.options.reducer.factor = 0.3;
    expect_as_on_the_cpu(job, {Way::kShared});
  }
}

TEST(DdpOnDevice, AnyDtypeHasTheBitsOfTheCpu) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT64, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {1, 2, 4}) {
      Job job{.ranks = ranks, .dtype = dtype, .body = two_steps};
      job.options.reducer.factor = 0.7;
      expect_as_on_the_cpu(job, {Way::kShared, Way::kCopied});
    }
  }
}

// Numbers beyond float16's range stay finite on the way, and are counted.
TEST(DdpOnDevice, CompressedMessagesHaveTheBitsOfTheCpu) {
  for (const shardrec_dtype wire : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {1, 2, 3, 4}) {
      Job job{.ranks = ranks, .body = [](Communicator&, Ddp& ddp, Model& model) {
                take_step(ddp, model, 0, 80000);
                take_step(ddp, model, 1, 80000);
              }};
      job.options.reducer.wire = wire;
      job.options.reducer.average = false;
      job.options.reducer.factor = 3;
      expect_as_on_the_cpu(job);
      if (wire != SHARDREC_FLOAT16) continue;
      EXPECT_GT(run(job, Way::kShared).saturated[0], 0);
    }
  }
}

TEST(DdpOnDevice, UnusedParametersStayOrAreZeros) {
  for (const Unused unused : {Unused::kMark, Unused::kZero}) {
    for (const int ranks : {1, 3}) {
      Job job{.ranks = ranks, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
                for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 9, 1);
                take_step(ddp, model, 0, 1, false, [](size_t p) { return p == 6; });
                // Nobody uses 1; rank 0 alone uses 4; 6 was used before.
                take_step(ddp, model, 1, 1, true, [&](size_t p) {
                  return p != 1 && p != 6 && (p != 4 || communicator.rank() == 0);
                });
              }};
      job.options.reducer.unused = unused;
      expect_as_on_the_cpu(job, {Way::kShared, Way::kNccl});
    }
  }
}

TEST(DdpOnDevice, ARankThatHasJoinedSendsZeros) {
  Job job{.ranks = 3, .body = [](Communicator& communicator, Ddp& ddp, Model& model) {
            for (int step = 0; step <= communicator.rank(); ++step) take_step(ddp, model, step);
            ddp.join();
          }};
  job.options.reducer.divide_by_live = true;
  // Gradients of the last step differ by who took part in it.
  const Outcome expected = run(job, {});
  for (const Way way : kWays) EXPECT_TRUE(run(job, way) == expected) << name_of(way);
}

TEST(DdpOnDevice, TheOrderThatIsRecordedIsSentInTheNextStep) {
  Job job{.ranks = 2, .body = [](Communicator&, Ddp& ddp, Model& model) {
            for (int step = 0; step < 3; ++step) {
              ddp.begin(true);
              for (const size_t p : {3U, 0U, 7U, 1U, 4U, 2U, 6U, 5U}) {
                model.write_gradient(p, step, 1);
                ddp.mark_ready(static_cast<int64_t>(p), 1);
              }
              ddp.end();
              ddp.wait();
            }
          }};
  job.options.reducer.order = BucketOrder::kRecorded;
  expect_as_on_the_cpu(job, {Way::kShared, Way::kNccl});
}

TEST(DdpOnDevice, OptimizersStepWithTheBitsOfTheCpu) {
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    for (const bool in_backward : {false, true}) {
      SCOPED_TRACE(testing::Message() << "optimizer " << kind << ", in backward " << in_backward);
      Job job{.ranks = 2,
              .optimizer = plan::Optimizer{.kind = kind, .learning_rate = 0.05},
              .body = [&](Communicator&, Ddp& ddp, Model& model) {
                for (int step = 0; step < 3; ++step) {
                  take_step(ddp, model, step);
                  if (!in_backward) ddp.step();
                }
              }};
      job.options.step_in_backward = in_backward;
      expect_as_on_the_cpu(job, {Way::kShared});
    }
  }
}

// The norm is that of the CPU to the last bit, and so are the gradients behind it.
TEST(DdpOnDevice, ClippingHasTheBitsOfTheCpu) {
  for (const shardrec_dtype dtype :
       {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const shardrec_clip clip :
         {SHARDREC_CLIP_L2, SHARDREC_CLIP_INFINITY, SHARDREC_CLIP_VALUE}) {
      std::vector<double> norms;  // of the CPU, then of the device
      const Job job{.ranks = 1, .dtype = dtype, .body = [&](Communicator&, Ddp& ddp, Model& model) {
                      take_step(ddp, model, 0, dtype == SHARDREC_FLOAT64 ? 1e200 : 1);
                      norms.push_back(ddp.clip_gradients(clip, 0.25));
                      // Some more, for a root forgets the last bit of half of the sums.
                      for (int step = 1; step < 8; ++step) {
                        take_step(ddp, model, step);
                        norms.push_back(ddp.clip_gradients(clip, 1e300));
                      }
                    }};
      expect_as_on_the_cpu(job, {Way::kShared});
      ASSERT_EQ(norms.size(), 16U);
      EXPECT_GT(norms[0], 0.25);
      for (size_t n = 0; n < 8; ++n) EXPECT_EQ(norms[n], norms[n + 8]) << n;
    }
  }
}

// Float64 gradients whose squares are beyond float64, beside others.
TEST(DdpOnDevice, ANormOverSeveralDtypesIsThatOfTheCpu) {
  Place there(0);
  device::Gradients on_device(there.stream_pointer());
  GradientNorm on_host;
  core::Threads threads(1);
  std::vector<Bytes> kept;
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT64, SHARDREC_FLOAT32, SHARDREC_FLOAT16,
                                     SHARDREC_BFLOAT16, SHARDREC_FLOAT64}) {
    Model model(there, 3, dtype);
    const double of_double = kept.empty() ? 1e20 : 1e190;
    for (size_t p = 0; p < model.size(); ++p) {
      model.write_gradient(p, 1, dtype == SHARDREC_FLOAT64 ? of_double : 1);
      kept.push_back(there.read(model.gradient(p), model.bytes(p)));
      std::byte* const copy = there.allocate(model.bytes(p));
      there.write(copy, kept.back().data(), kept.back().size());
      const auto elements = static_cast<int64_t>(model.bytes(p) / core::dtype_size(dtype));
      on_host.add({.data = kept.back().data(), .size = elements, .dtype = dtype});
      on_device.add({.data = copy, .size = elements, .dtype = dtype});
    }
  }
  EXPECT_EQ(l2_norm(on_device), on_host.l2(threads));
  EXPECT_EQ(infinity_norm(on_device), on_host.infinity(threads));
  EXPECT_GT(on_host.l2(threads), 1e189);
}

TEST(DdpOnDevice, GradientsThatAreNotFiniteAreRefusedOrSkipped) {
  for (const shardrec_non_finite policy : {SHARDREC_NON_FINITE_ERROR, SHARDREC_NON_FINITE_SKIP}) {
    Job job{.ranks = 2,
            .optimizer = plan::Optimizer{.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 0.1},
            .body = [&](Communicator& communicator, Ddp& ddp, Model& model) {
              ddp.begin(true);
              for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 0, 1);
              if (communicator.rank() == 1) {
                model.set_element(4, 30001, std::numeric_limits<float>::infinity());
                model.set_element(4, 31000, std::numeric_limits<float>::quiet_NaN());
                model.set_element(6, 1, std::numeric_limits<float>::infinity());
              }
              ddp.mark_ready(0, static_cast<int64_t>(model.size()));
              ddp.end();
              const auto error = comm::error_of([&] { ddp.wait(); });
              ASSERT_EQ(error.has_value(), policy == SHARDREC_NON_FINITE_ERROR);
              if (error) {
                EXPECT_EQ(error->status(), SHARDREC_INVALID_BATCH);
                EXPECT_EQ(error->parts().position, 4);
                EXPECT_EQ(error->parts().value, 30001);
              } else {
                ddp.step();
              }
              for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 1, 1);
            }};
    job.options.non_finite = policy;
    expect_as_on_the_cpu(job, {Way::kShared});
  }
}

TEST(DdpOnDevice, ZeroGradientsAreZerosOfAnyDtype) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT32, SHARDREC_FLOAT64, SHARDREC_BFLOAT16}) {
    const Job job{.ranks = 1, .dtype = dtype, .body = [](Communicator&, Ddp& ddp, Model& model) {
                    take_step(ddp, model, 0);
                    ddp.zero_gradients();
                    const Bytes all = model.all_gradients();
                    EXPECT_EQ(std::count(all.begin(), all.end(), std::byte{0}), std::ssize(all));
                  }};
    expect_as_on_the_cpu(job, {Way::kShared});
  }
}

// Memory of the library's and a flat tensor there.
TEST(DdpOnDevice, GradientsOfTheLibraryAndInOneTensorAreThere) {
  for (const bool flat : {false, true}) {
    expect_none(run(Way::kShared, 2, [&](Communicator& communicator) {
      Place place(communicator.rank());
      DdpOptions options;
      options.caller_stream = place.stream_number();
      std::byte* const values = place.allocate(64);
      std::byte* const gradients = place.allocate(64);
      Ddp ddp(borrow(communicator), options);
      const std::array<float, 5> numbers = {1, 2, 3, 4, 5};
      place.write(values, numbers.data(), sizeof numbers);
      ddp.add("a", {3}, {.data = values, .size = 3, .dtype = SHARDREC_FLOAT32}, {}, place.device());
      ddp.add("b", {2}, {.data = values + 12, .size = 2, .dtype = SHARDREC_FLOAT32}, {},
              place.device());
      if (flat) {
        ddp.set_flat_gradient({.data = gradients, .size = 5, .dtype = SHARDREC_FLOAT32},
                              place.device());
      }
      ddp.commit();
      if (flat) {
        EXPECT_EQ(ddp.parameter(1).gradient, gradients + 12);
      } else {
        EXPECT_EQ(place.read(ddp.parameter(0).gradient, 12), Bytes(12));
      }
      const std::array<float, 3> mine = {1, 2, static_cast<float>(10 * communicator.rank())};
      place.write(ddp.parameter(0).gradient, mine.data(), sizeof mine);
      place.write(ddp.parameter(1).gradient, mine.data(), 8);
      ddp.all_reduce();
      const Bytes sums = place.read(ddp.parameter(0).gradient, 12);
      std::array<float, 3> mean{};
      std::memcpy(mean.data(), sums.data(), sizeof mean);
      EXPECT_EQ(mean, (std::array<float, 3>{1, 2, 5}));
    }));
  }
}

TEST(DdpOnDevice, WhatASetCannotHoldOnADeviceIsRefused) {
  expect_none(comm::run_ranks(1, [](Communicator& communicator) {
    Place there(0), other(1), here(-1);
    const auto view = [](Place& place) {
      return core::FlatView{.data = place.allocate(64), .size = 4, .dtype = SHARDREC_FLOAT32};
    };
    Ddp ddp(borrow(communicator), {});
    ddp.add("a", {4}, view(there), {}, 0);
    for (Place* place : {&other, &here}) {
      const auto error =
          comm::error_of([&] { ddp.add("b", {4}, view(*place), {}, place->device()); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
      EXPECT_NE(error->sentence().find("all parameters of a set are on one"), std::string::npos);
    }
    ddp.set_hook([](int32_t, shardrec_dtype, std::span<std::byte>) {});
    const auto error = comm::error_of([&] { ddp.commit(); });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_UNSUPPORTED);
  }));
}

TEST(DdpOnDevice, RanksAgreeOnTheKindOfPlace) {
  const comm::Errors errors = comm::run_ranks(2, [](Communicator& communicator) {
    Place place(communicator.rank() == 0 ? -1 : 0);
    Model model(place, 0, SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), {});
    model.add_to(ddp);
    ddp.commit();
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status(), SHARDREC_DISAGREEMENT);
    EXPECT_NE(error->sentence().find("a CUDA device"), std::string::npos) << error->sentence();
  }
}

// A peer that goes in the middle of a step: the others are told, whatever their devices wait for.
TEST(DdpOnDevice, APeerThatGoesEndsTheStepOfTheOthers) {
  for (const Way way : kWays) {
    SCOPED_TRACE(name_of(way));
    const comm::Errors errors = run(way, 3, [&](Communicator& communicator) {
      Place place(communicator.rank() % 2);
      Model model(place, communicator.rank(), SHARDREC_FLOAT32);
      DdpOptions options = small_buckets();
      options.caller_stream = place.stream_number();
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      take_step(ddp, model, 0);
      if (communicator.rank() == 1) {
        ddp.begin(true);
        ddp.mark_ready(7, 1);
        core::fail(SHARDREC_INVALID_ARGUMENT, "it leaves");
      }
      take_step(ddp, model, 1);
    });
    for (const size_t rank : {0U, 2U}) {
      ASSERT_TRUE(errors[rank]);
      EXPECT_EQ(errors[rank]->status(), SHARDREC_PEER_FAILED) << errors[rank]->sentence();
    }
  }
}

class DdpStreams : public test::HeldStreamsTest {};

// The test holds the stream in which gradients are written: they are sent behind that.
TEST_F(DdpStreams, GradientsAreReadBehindWhatTheCallersStreamHolds) {
  for (const bool own_thread : {false, true}) {
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      Place place(0);
      DdpOptions options = small_buckets();
      options.caller_stream = caller_.number();
      options.reducer.own_thread = own_thread;
      options.reducer.factor = 2;
      Model model(place, 0, SHARDREC_FLOAT32);
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      const std::array<float, 5> numbers = {1, 2, 3, 4, 5};
      std::byte* const source = place.allocate(sizeof numbers);
      place.write(source, numbers.data(), sizeof numbers);
      for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 1, 1);
      hold();
      caller_.copy(model.gradient(0), source, sizeof numbers);
      ddp.begin(true);
      ddp.mark_ready(0, static_cast<int64_t>(model.size()));
      ddp.end();
      EXPECT_TRUE(go_on_during([&] { ddp.wait(); }));
      const Bytes bytes = place.read(model.gradient(0), sizeof numbers);
      std::array<float, 5> twice{};
      std::memcpy(twice.data(), bytes.data(), sizeof twice);
      EXPECT_EQ(twice, (std::array<float, 5>{2, 4, 6, 8, 10}));
    }));
  }
}

// What is enqueued behind the stream's work is enqueued at once, and the stream goes on behind it.
TEST_F(DdpStreams, StepsAreBetweenWhatTheStreamHoldsAndWhatFollows) {
  expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    Place place(0);
    DdpOptions options;
    options.caller_stream = caller_.number();
    Model model(place, 0, SHARDREC_FLOAT32, {4});
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.set_optimizer({.kind = SHARDREC_OPTIMIZER_SGD, .learning_rate = 1});
    ddp.commit();
    const std::array<float, 4> ones = {1, 1, 1, 1}, zeros{};
    std::byte* const source = place.allocate(sizeof ones);
    std::byte* const after = place.allocate(sizeof ones);
    place.write(source, ones.data(), sizeof ones);
    place.write(model.gradient(0), zeros.data(), sizeof zeros);
    place.write(ddp.parameter(0).values, zeros.data(), sizeof zeros);
    hold();
    caller_.copy(model.gradient(0), source, sizeof ones);
    EXPECT_TRUE(returns_while_held([&] {
      ddp.step();
      ddp.zero_gradients();
    }));
    caller_.copy(after, ddp.parameter(0).values, sizeof ones);
    go_on_();
    caller_.wait();
    const auto floats = [&](const void* there) {
      std::array<float, 4> out{};
      const Bytes bytes = place.read(there, sizeof out);
      std::memcpy(out.data(), bytes.data(), sizeof out);
      return out;
    };
    EXPECT_EQ(floats(after), (std::array<float, 4>{-1, -1, -1, -1}));
    EXPECT_EQ(floats(model.gradient(0)), zeros);
  }));
}

// Between ranks of a process nothing of a step is copied but lists that change, and nothing is allocated.
TEST_F(DdpStreams, ASteadyStepCopiesNoGradientsAndAllocatesNothing) {
  auto* const copies = test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = test::of_plugin<int64_t()>("simt_live_allocations");
  ASSERT_NE(copies, nullptr);
  std::array<int64_t, 2> counted{}, allocated{};
  expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
    Place place(0);
    DdpOptions options = small_buckets();
    options.caller_stream = place.stream_number();
    Model model(place, communicator.rank(), SHARDREC_FLOAT32);
    Ddp ddp(borrow(communicator), options);
    model.add_to(ddp);
    ddp.commit();
    comm::Collectives both(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           2);
    constexpr comm::Operation kMeet{.name = "test", .kind = 99};
    for (int step = 0; step < 8; ++step) ddp.all_reduce();
    both.barrier(kMeet);
    if (communicator.rank() == 0) {
      counted[0] = copies();
      allocated[0] = allocations();
    }
    both.barrier(kMeet);
    for (int step = 0; step < 4; ++step) ddp.all_reduce();
    both.barrier(kMeet);
    if (communicator.rank() == 0) {
      counted[1] = copies();
      allocated[1] = allocations();
    }
    both.barrier(kMeet);
  }));
  EXPECT_EQ(counted[1], counted[0]);
  EXPECT_EQ(allocated[1], allocated[0]);
}

// Nothing changes the gradients of a rank that is alone: nothing is done to them.
TEST_F(DdpStreams, ARankThatIsAloneLaunchesNothing) {
  auto* const launches = test::of_plugin<int64_t()>("simt_launches");
  ASSERT_NE(launches, nullptr);
  for (const Unused unused : {Unused::kError, Unused::kMark, Unused::kZero}) {
    expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
      Place place(0);
      DdpOptions options = small_buckets();
      options.reducer.unused = unused;
      options.caller_stream = place.stream_number();
      Model model(place, 0, SHARDREC_FLOAT32);
      Ddp ddp(borrow(communicator), options);
      model.add_to(ddp);
      ddp.commit();
      for (size_t p = 0; p < model.size(); ++p) model.write_gradient(p, 0, 1);
      const Bytes before = model.all_gradients();
      const int64_t launched = launches();
      ddp.all_reduce();
      EXPECT_EQ(launches(), launched);
      EXPECT_TRUE(model.all_gradients() == before);
    }));
  }
}

// A step of a stack in a set, with matrices there: nothing goes through the host, and nothing is allocated.
TEST_F(DdpStreams, AStepOfAStackStaysOnTheDevice) {
  auto* const copies = test::of_plugin<int64_t()>("simt_copies");
  auto* const allocations = test::of_plugin<int64_t()>("simt_live_allocations");
  constexpr int64_t kRows = 20, kInputs = 6;
  std::array<int64_t, 2> counted{}, allocated{};
  expect_none(comm::run_ranks(2, [&](Communicator& communicator) {
    Place place(0);
    MlpOptions stack_options{.optimizer = {.kind = SHARDREC_OPTIMIZER_ADAM, .learning_rate = 0.1}};
    stack_options.place = {.device = 0, .caller_stream = place.stream_number()};
    const auto stack = std::make_shared<Mlp>(kInputs, stack_options);
    stack->add_linear(8, SHARDREC_ACTIVATION_RELU);
    stack->add_linear(1, SHARDREC_ACTIVATION_NONE);
    const auto matrix = [&](int64_t cols) {
      auto* const data = static_cast<float*>(
          static_cast<void*>(place.allocate(static_cast<size_t>(kRows * cols) * sizeof(float))));
      const std::vector<float> numbers(static_cast<size_t>(kRows * cols),
                                       0.5F + static_cast<float>(communicator.rank()));
      place.write(data, numbers.data(), numbers.size() * sizeof(float));
      return device::CallerMatrix({data, kRows, cols, cols}, true);
    };
    const device::CallerMatrix x = matrix(kInputs), y = matrix(1), dy = matrix(1);
    const auto ddp = std::make_shared<Ddp>(borrow(communicator), DdpOptions{});
    add_layers(ddp, "stack.", stack);
    ddp->commit();
    const auto train = [&] {
      stack->forward(x, y);
      ddp->begin(true);
      stack->backward(dy, {{}, false});
      ddp->end();
      ddp->wait();
      stack->step();
    };
    comm::Collectives both(communicator.open_channel(comm::Purpose::kControl), communicator.rank(),
                           2);
    constexpr comm::Operation kMeet{.name = "test", .kind = 99};
    for (int step = 0; step < 8; ++step) train();
    for (size_t at = 0; at < 2; ++at) {
      both.barrier(kMeet);
      if (communicator.rank() == 0) {
        counted[at] = copies();
        allocated[at] = allocations();
      }
      both.barrier(kMeet);
      for (int step = 0; step < 4; ++step) train();
    }
    ddp->check_equal();
  }));
  EXPECT_EQ(counted[1], counted[0]);
  EXPECT_EQ(allocated[1], allocated[0]);
}

}  // namespace
}  // namespace shardrec::dense
