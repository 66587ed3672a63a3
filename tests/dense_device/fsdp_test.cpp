// Sharded parameters whose full values and gradients are on a device, and whose shards are in the host's memory: the bits
// of the same set on the CPU, in the order of the caller's stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "dense/sharded_ranks.h"
#include "dense/sharded_towers.h"
#include "dense_device/ddp_sets.h"
#include "device/held_streams.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;
using sets::Place;
using sets::Way;

FsdpOptions on_device(const FsdpOptions& options, const Place& place) {
  FsdpOptions its = options;
  its.place = {.device = place.device(), .caller_stream = place.stream_number()};
  its.offload = place.device() >= 0;
  return its;
}

// The host's framework computes in a stream of its own, and waits for nothing but that.
class PlacedModel final : public ShardedModel {
 public:
  PlacedModel(Place& place, FsdpGroups groups, const FsdpOptions& options, shardrec_optimizer kind)
      : ShardedModel(std::move(groups), options.strategy == SHARDREC_FSDP_HYBRID_SHARD,
                     on_device(options, place), kUnits, optimizer_of(kind)),
        place_(place),
        dtype_(options.parameter_dtype) {}

  void read(std::span<float> to, const std::byte* parameter) override {
    const auto count = static_cast<int64_t>(to.size());
    const sets::Bytes bytes = place_.read(parameter, to.size() * core::dtype_size(dtype_));
    convert(bytes.data(), dtype_, to.data(), SHARDREC_FLOAT32, count);
  }
  void add(std::span<const float> slopes, std::byte* gradient) override {
    std::vector<float> sums(slopes.size());
    read(sums, gradient);
    for (size_t i = 0; i < sums.size(); ++i) sums[i] += slopes[i];
    sets::Bytes bytes(sums.size() * core::dtype_size(dtype_));
    convert(sums.data(), SHARDREC_FLOAT32, bytes.data(), dtype_, static_cast<int64_t>(sums.size()));
    place_.write(gradient, bytes.data(), bytes.size());
  }

 private:
  Place& place_;
  const shardrec_dtype dtype_;
};

Trained train(Communicator& communicator, int32_t device, const FsdpOptions& options,
              const TrainingPlan& plan) {
  Place place(device);
  PlacedModel model(place, groups_for(communicator, options.strategy, 2), options, plan.optimizer);
  model.fsdp().commit();
  model.fill();
  return model.train(plan);
}

void expect_as_on_the_cpu(int ranks, const FsdpOptions& options, const TrainingPlan& plan,
                          Way way = Way::kShared) {
  SCOPED_TRACE(testing::Message() << ranks << " ranks, strategy " << options.strategy << ", "
                                  << name_of(way));
  sets::expect_none(sets::run(way, ranks, [&](Communicator& communicator) {
    const Trained here = train(communicator, -1, options, plan);
    const Trained there = train(communicator, communicator.rank() % 2, options, plan);
    EXPECT_TRUE(test::same_bits(there.values, here.values));
    ASSERT_EQ(there.states.size(), here.states.size());
    for (size_t s = 0; s < here.states.size(); ++s) {
      EXPECT_TRUE(test::same_bits(there.states[s], here.states[s])) << "state " << s;
    }
    EXPECT_EQ(there.norm, here.norm);
  }));
}

TEST(FsdpOnDevice, EveryStrategyHasTheBitsOfTheCpu) {
  for (const int ranks : {1, 2, 3, 4}) {
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                                SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      if (strategy == SHARDREC_FSDP_HYBRID_SHARD && ranks != 4) continue;
      for (const int prefetch : {0, 1, 3}) {
        expect_as_on_the_cpu(ranks, {.strategy = strategy, .prefetch = prefetch}, {.steps = 4});
      }
    }
  }
  for (const Way way : {Way::kCopied, Way::kNccl}) expect_as_on_the_cpu(2, {}, {.steps = 4}, way);
}

TEST(FsdpOnDevice, MicroStepsClippingAndTrustRatiosHaveTheBitsOfTheCpu) {
  for (const int ranks : {1, 3}) {
    const TrainingPlan plan{
        .optimizer = SHARDREC_OPTIMIZER_LAMB, .steps = 3, .micro_steps = 3, .clip = 0.25};
    expect_as_on_the_cpu(ranks, {}, plan);
    TrainingPlan each = plan;
    each.sync_each = true;
    expect_as_on_the_cpu(ranks, {}, each);
  }
}

TEST(FsdpOnDevice, SixteenBitsHaveTheBitsOfTheCpu) {
  for (const shardrec_dtype dtype : {SHARDREC_FLOAT16, SHARDREC_BFLOAT16}) {
    for (const int ranks : {1, 2}) {
      expect_as_on_the_cpu(ranks, {.parameter_dtype = dtype, .reduce_dtype = dtype}, {.steps = 3});
      expect_as_on_the_cpu(ranks, {.parameter_dtype = dtype}, {.steps = 3, .micro_steps = 2});
    }
    expect_as_on_the_cpu(3, {.reduce_dtype = dtype}, {.steps = 3});
  }
}

void expect_refused(shardrec_status status, const std::string& words,
                    const std::function<void()>& call) {
  const auto error = comm::error_of(call);
  ASSERT_TRUE(error) << words;
  EXPECT_EQ(error->status(), status) << error->sentence();
  EXPECT_NE(error->sentence().find(words), std::string::npos) << error->sentence();
}

TEST(FsdpOnDevice, WhatASetCannotHaveOnADeviceIsRefused) {
  run_well(2, [](Communicator& communicator) {
    const auto make = [&](const FsdpOptions& options) {
      return std::make_shared<Fsdp>(FsdpGroups{.world = borrowed(communicator)}, false, options);
    };
    expect_refused(SHARDREC_UNSUPPORTED, "FSDP_OFFLOAD", [&] { make({.place = {.device = 0}}); });
    expect_refused(SHARDREC_INVALID_ARGUMENT, "no DEVICE", [&] { make({.offload = true}); });
    expect_refused(SHARDREC_INVALID_ARGUMENT, "device",
                   [&] { make({.place = {.device = 77}, .offload = true}); });
    const auto set = make({.place = {.device = 0}, .offload = true});
    for (const int32_t device : {-1, 1}) {
      MlpOptions options;
      options.place.device = device;
      const auto stack = std::make_shared<Mlp>(3, options);
      stack->add_linear(4, SHARDREC_ACTIVATION_NONE);
      expect_refused(SHARDREC_UNSUPPORTED, "the set has full parameters on device 0", [&] {
        add_layers(*set, "net.", stack, 1, std::make_unique<DirectEntry>(set));
      });
    }
    // Some ranks on a device, and others not.
    Place place(communicator.rank() == 0 ? 0 : -1);
    ShardedModel model({.world = borrowed(communicator)}, false, on_device({}, place), kUnits, {});
    expect_refused(SHARDREC_DISAGREEMENT, "FSDP_OFFLOAD", [&] { model.fsdp().commit(); });
  });
}

TEST(FsdpOnDevice, APeerThatGoesEndsTheStepOfTheOthers) {
  for (const Way way : {Way::kShared, Way::kCopied}) {
    for (int place_of_death = 0; place_of_death < 3; ++place_of_death) {
      const auto errors = sets::run(way, 2, [&](Communicator& communicator) {
        Place place(communicator.rank());
        PlacedModel model(place, {.world = borrowed(communicator)}, {}, SHARDREC_OPTIMIZER_SGD);
        model.fsdp().commit();
        model.fill();
        model.pass(true, 0);
        const auto dies = [&](int at) {
          if (communicator.rank() == 1 && at == place_of_death) {
            core::fail(SHARDREC_INTERNAL, "the host's own");
          }
        };
        model.forward(true);
        dies(0);
        model.backward(3, 1);
        dies(1);
        model.backward(2, 1);
        dies(2);
        model.backward(1, 1);
        model.backward(0, 1);
        model.fsdp().end();
        model.fsdp().wait();
      });
      ASSERT_TRUE(errors[0] && errors[1]);
      EXPECT_EQ(errors[0]->status(), SHARDREC_PEER_FAILED) << errors[0]->sentence();
      EXPECT_EQ(errors[0]->parts().rank, 1);
    }
  }
}

class FsdpStreams : public shardrec::test::HeldStreamsTest {
 protected:
  using Numbers = std::array<float, 5>;

  // A set of units of one parameter of 5 elements on a rank that is alone, in the order of the held stream.
  struct Small {
    Small(Communicator& communicator, int64_t stream, int units)
        : set({.world = borrowed(communicator)}, false,
              {.prefetch = 0, .place = {.device = 0, .caller_stream = stream}, .offload = true}) {
      for (int u = 0; u < units; ++u) {
        set.add_parameter(set.add_unit("u" + std::to_string(u)), "p" + std::to_string(u), {5});
      }
      set.commit();
      for (int u = 0; u < units; ++u) {
        const float value = 10.0F * static_cast<float>(u + 1);
        std::ranges::fill(set.shard(u, SHARDREC_FSDP_VALUES).elements, value);
      }
    }
    Fsdp set;
  };
};

// mark_ready does not wait for the caller's stream, end does.
TEST_F(FsdpStreams, GradientsAreReadBehindWhatTheCallersStreamHolds) {
  sets::expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    Small small(communicator, caller_.number(), 1);
    Place place(0);
    const Numbers numbers = {1, 2, 3, 4, 5};
    std::byte* const source = place.allocate(sizeof numbers);
    place.write(source, numbers.data(), sizeof numbers);
    small.set.begin(true);
    small.set.unshard(0);
    small.set.wait_unshard(0);
    std::byte* const gradient = small.set.parameter_gradients(0);
    hold();
    caller_.copy(gradient, source, sizeof numbers);
    EXPECT_TRUE(returns_while_held([&] { small.set.mark_ready(0); }));
    EXPECT_TRUE(go_on_during([&] { small.set.end(); }));
    small.set.wait();
    const auto sums = small.set.shard(0, SHARDREC_FSDP_GRADIENT).elements;
    EXPECT_TRUE(std::ranges::equal(sums, numbers));
  }));
}

// The buffer of a unit becomes another one's behind what reads it.
TEST_F(FsdpStreams, ParametersStayForWhatTheCallersStreamHolds) {
  sets::expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    Small small(communicator, caller_.number(), 2);
    Place place(0);
    std::byte* const first = place.allocate(sizeof(Numbers));
    std::byte* const second = place.allocate(sizeof(Numbers));
    const Numbers zeros{};
    place.write(first, zeros.data(), sizeof zeros);
    place.write(second, zeros.data(), sizeof zeros);
    small.set.begin(false);
    small.set.unshard(0);
    small.set.wait_unshard(0);
    hold();
    caller_.copy(first, small.set.parameter_values(0), sizeof(Numbers));
    EXPECT_TRUE(returns_while_held([&] {
      small.set.reshard(0);
      small.set.unshard(1);
    }));
    EXPECT_TRUE(returns_while_held([&] { small.set.wait_unshard(1); }));
    caller_.copy(second, small.set.parameter_values(1), sizeof(Numbers));
    EXPECT_TRUE(go_on_during([&] { caller_.wait(); }));
    const auto values = [&](const std::byte* data) {
      Numbers out{};
      std::memcpy(out.data(), place.read(data, sizeof out).data(), sizeof out);
      return out;
    };
    EXPECT_EQ(values(first), (Numbers{10, 10, 10, 10, 10}));
    EXPECT_EQ(values(second), (Numbers{20, 20, 20, 20, 20}));
    small.set.reshard(1);
    small.set.end();
    small.set.wait();
  }));
}

TEST_F(FsdpStreams, ASteadyStepAllocatesNothing) {
  auto* const allocations = shardrec::test::of_plugin<int64_t()>("simt_live_allocations");
  ASSERT_NE(allocations, nullptr);
  sets::expect_none(comm::run_ranks(1, [&](Communicator& communicator) {
    Place place(0);
    PlacedModel model(place, {.world = borrowed(communicator)}, {}, SHARDREC_OPTIMIZER_ADAM);
    model.fsdp().commit();
    model.fill();
    model.train({.steps = 3, .micro_steps = 2});
    const int64_t before = allocations();
    model.train({.steps = 3, .micro_steps = 2});
    EXPECT_EQ(allocations(), before);
  }));
}

TEST(FsdpStackOnDevice, StacksOfAllKindsOfLayersHaveTheBitsOfDdpThere) {
  for (const test::StackOf& of : test::stacks()) {
    if (of.name == "dropout") continue;  // no parameter: it is in no set
    for (const int64_t unit_elements : {int64_t{1}, towers::kWhole}) {
      towers::expect_the_bits_of_ddp(2, of, {.unit_elements = unit_elements, .device = 0});
    }
  }
}

TEST(FsdpStackOnDevice, EachStrategyHasTheBitsOfDdpThere) {
  const test::StackOf all = test::stacks().back();
  for (const int ranks : {1, 3, 4}) {
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                                SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      if (strategy == SHARDREC_FSDP_HYBRID_SHARD && ranks != 4) continue;
      towers::expect_the_bits_of_ddp(
          ranks, all, {.strategy = strategy, .device = 0, .prefetch = ranks == 3 ? 0 : 1});
    }
  }
}

TEST(FsdpStackOnDevice, MicroStepsAddUpAndARankWithoutSamplesTakesPart) {
  const test::StackOf all = test::stacks().back();
  for (const int64_t unit_elements : {int64_t{1}, towers::kWhole}) {
    towers::expect_the_bits_of_ddp(2, all,
                                   {.unit_elements = unit_elements, .micro_steps = 3, .device = 0});
    towers::expect_the_bits_of_ddp(
        2, all, {.unit_elements = unit_elements, .has_empty_batches = true, .device = 0});
  }
}

}  // namespace
}  // namespace shardrec::dense
