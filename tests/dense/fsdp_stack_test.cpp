// Stacks of layers whose parameters are sharded, against the same stacks in a DDP set: the same bits where sums are
// the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/world.h"
#include "core/error.h"
#include "dense/ddp/layers.h"
#include "dense/direct_entry.h"
#include "dense/fsdp/stack_units.h"
#include "dense/layer_stacks.h"
#include "dense/reference.h"
#include "dense/sharded_ranks.h"
#include "dense/sharded_towers.h"

namespace shardrec::dense {
namespace {

using comm::Communicator;
using towers::expect_the_bits_of_ddp;
using towers::Job;
using towers::kWhole;
using towers::Sharded;
using towers::Towers;

TEST(FsdpStack, StacksOfAllKindsOfLayersHaveTheBitsOfDdp) {
  for (const test::StackOf& of : test::stacks()) {
    if (of.name == "dropout") continue;  // no parameter: it is in no set
    for (const int64_t unit_elements : {int64_t{1}, int64_t{700}, kWhole}) {
      expect_the_bits_of_ddp(2, of, {.unit_elements = unit_elements});
    }
  }
}

TEST(FsdpStack, EachStrategyAndOptimizerHasTheBitsOfDdp) {
  const test::StackOf all = test::stacks().back();
  for (const int ranks : {1, 3, 4}) {
    for (const auto strategy : {SHARDREC_FSDP_FULL_SHARD, SHARDREC_FSDP_SHARD_GRAD_OP,
                                SHARDREC_FSDP_NO_SHARD, SHARDREC_FSDP_HYBRID_SHARD}) {
      if (strategy == SHARDREC_FSDP_HYBRID_SHARD && ranks != 4) continue;
      for (const auto optimizer : {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_ADAGRAD}) {
        expect_the_bits_of_ddp(ranks, all, {.strategy = strategy, .optimizer = optimizer});
      }
    }
  }
}

TEST(FsdpStack, MicroStepsAddUpAndARankWithoutSamplesTakesPart) {
  const test::StackOf all = test::stacks().back();
  for (const int64_t unit_elements : {int64_t{1}, kWhole}) {
    expect_the_bits_of_ddp(3, all, {.unit_elements = unit_elements, .micro_steps = 3});
    expect_the_bits_of_ddp(3, all, {.unit_elements = unit_elements, .has_empty_batches = true});
  }
}

TEST(FsdpStack, StacksIn16BitsHaveTheBitsOfDdp) {
  for (const Precision precision : {Precision::kBfloat16, Precision::kFloat16}) {
    for (const test::StackOf& of : test::stacks()) {
      if (of.name == "dropout") continue;
      for (const int64_t unit_elements : {int64_t{1}, kWhole}) {
        expect_the_bits_of_ddp(2, of, {.unit_elements = unit_elements, .precision = precision});
      }
    }
    const test::StackOf all = test::stacks().back();
    expect_the_bits_of_ddp(3, all, {.micro_steps = 3, .precision = precision});
    expect_the_bits_of_ddp(3, all, {.has_empty_batches = true, .precision = precision});
  }
}

// A step whose gradients are no numbers is taken by no rank, and the scale of the rank that had them is halved.
TEST(FsdpStack, AStepOfAScaleThatIsTooLargeIsSkippedByAllRanks) {
  run_well(2, [](Communicator& communicator) {
    const test::StackOf of{"net", 3, {test::linear(4, false)}};
    Sharded sharded(communicator, of, {.precision = Precision::kFloat16});
    Mlp& stack = *sharded.towers.bottom;
    Mlp& top = *sharded.towers.top;
    Fsdp& set = *sharded.set;
    const auto whole = [&] {
      std::vector<float> values(12);
      set.gather(0, SHARDREC_FSDP_VALUES, values);
      return values;
    };
    const std::vector<float> before = whole();
    std::vector<float> x(3, 1), y(4), z(1), dz(1, 1), dy(4);
    for (const float slope : {1e4F, 1e-3F}) {
      set.zero_gradients();
      set.begin(true);
      stack.forward({x.data(), 1, 3, 3}, {y.data(), 1, 4, 4});
      top.forward({y.data(), 1, 4, 4}, {z.data(), 1, 1, 1});
      top.backward({dz.data(), 1, 1, 1}, {});
      std::ranges::fill(dy, communicator.rank() == 0 ? slope : 1e-3F);
      stack.backward({dy.data(), 1, 4, 4}, {});
      set.end();
      set.wait();
      set.step();
      if (slope > 1) {
        EXPECT_TRUE(test::same_bits(whole(), before));
        EXPECT_EQ(stack.loss_scale().scale, communicator.rank() == 0 ? 32768 : 65536);
      } else {
        EXPECT_FALSE(test::same_bits(whole(), before));
      }
    }
    set.check_equal();
  });
}

template <class Call>
void expect_status(shardrec_status status, const std::string& words, const Call& call) {
  try {
    call();
    ADD_FAILURE() << "no error; wanted: " << words;
  } catch (const core::Error& error) {
    EXPECT_EQ(error.status(), status);
    EXPECT_NE(error.sentence().find(words), std::string::npos) << error.sentence();
  }
}

TEST(FsdpStack, UnitsAreOfConsecutiveLayersAndTheSetHasTheParametersAndTheirMemory) {
  run_well(2, [&](Communicator& communicator) {
    const test::StackOf of{
        "net", 8, {test::linear(100), test::dropout(), test::linear(4), test::linear(2, false)}};
    Sharded sharded(communicator, of, {.unit_elements = 101});
    std::vector<std::string> names;
    std::vector<size_t> units;
    for (const Fsdp::Parameter& parameter : sharded.set->parameters()) {
      names.push_back(parameter.name);
      units.push_back(parameter.unit);
    }
    EXPECT_EQ(names, (std::vector<std::string>{"bottom.layer.0.weight", "bottom.layer.0.bias",
                                               "bottom.layer.2.weight", "bottom.layer.2.bias",
                                               "bottom.layer.3.weight", "bottom.layer.3.bias",
                                               "top.layer.0.weight", "top.layer.0.bias",
                                               "top.layer.1.weight", "top.layer.1.bias"}));
    EXPECT_EQ(units, (std::vector<size_t>{0, 0, 1, 1, 2, 2, 3, 3, 3, 3}))
        << "the top has 37 elements";
    const Parameters& given_back = sharded.towers.bottom->parameters();
    const std::span values(given_back.values(), static_cast<size_t>(given_back.size()));
    EXPECT_TRUE(std::ranges::all_of(values, [](float value) { return value == 0; }));
    EXPECT_EQ(stack_units(*sharded.towers.bottom)->first_parameter(), 0);
    EXPECT_EQ(stack_units(*sharded.towers.top)->first_parameter(), 6);
  });
}

TEST(FsdpStack, WhatTheSetHasIsRefusedOfTheStackAndOutsideAStepNothingIsComputed) {
  run_well(1, [&](Communicator& communicator) {
    const test::StackOf of{"net", 3, {test::linear(4)}};
    std::optional<Sharded> sharded;
    sharded.emplace(communicator, of, Job{});
    Towers& towers = sharded->towers;
    const std::shared_ptr<Mlp> bottom = towers.bottom;
    expect_status(SHARDREC_INVALID_STATE, "forward was called before begin",
                  [&] { towers.pass(5, 0); });
    expect_status(SHARDREC_INVALID_STATE, "sharded", [&] { bottom->step(); });
    expect_status(SHARDREC_INVALID_STATE, "sharded", [&] { bottom->zero_gradients(); });
    expect_status(SHARDREC_INVALID_STATE, "add all layers", [&] { bottom->add(test::linear(2)); });
    sharded->set->begin(true);
    towers.pass(5, 0);
    std::vector<float> dy(20), y(20), x(15);
    bottom->forward({x.data(), 5, 3, 3}, {y.data(), 5, 4, 4});
    expect_status(SHARDREC_INVALID_STATE, "marked ready twice",
                  [&] { bottom->backward({dy.data(), 5, 4, 4}, {}); });
    sharded->set->end();
    expect_status(SHARDREC_INVALID_STATE, "forward was called after end",
                  [&] { towers.pass(5, 0); });
    sharded->set->wait();

    const auto other =
        std::make_shared<Fsdp>(FsdpGroups{.world = borrowed(communicator)}, false, FsdpOptions{});
    const auto add_to_other = [&](const std::shared_ptr<Mlp>& stack) {
      return add_layers(*other, "net.", stack, 1, std::make_unique<DirectEntry>(other));
    };
    expect_status(SHARDREC_INVALID_STATE, "already", [&] { add_to_other(bottom); });
    const auto ddp = std::make_shared<Ddp>(borrowed(communicator), DdpOptions{});
    expect_status(SHARDREC_INVALID_STATE, "sharded", [&] { add_layers(ddp, "net.", bottom); });
    expect_status(SHARDREC_INVALID_STATE, "no parameter",
                  [&] { add_to_other(test::make({"none", 3, {test::dropout()}})); });
    expect_status(SHARDREC_UNSUPPORTED, "NON_FINITE",
                  [&] { add_to_other(test::make(of, {.precision = Precision::kFloat16})); });
    expect_status(SHARDREC_UNSUPPORTED, "ACCUMULATE_GRADIENTS",
                  [&] { add_to_other(test::make(of, {.accumulate = true})); });
    EXPECT_TRUE(other->parameters().empty()) << "what was refused has left nothing behind";
    const std::shared_ptr<Mlp> fresh = test::make(of);
    EXPECT_EQ(add_to_other(fresh), 0);
    std::vector<float> own(20);
    fresh->forward({x.data(), 5, 3, 3}, {own.data(), 5, 4, 4});  // until commit it has its own
    const auto halves = std::make_shared<Fsdp>(FsdpGroups{.world = borrowed(communicator)}, false,
                                               FsdpOptions{.parameter_dtype = SHARDREC_BFLOAT16});
    expect_status(SHARDREC_UNSUPPORTED, "FSDP_PARAMETER_DTYPE", [&] {
      add_layers(*halves, "net.", test::make(of), 1, std::make_unique<DirectEntry>(halves));
    });
  });
}

}  // namespace
}  // namespace shardrec::dense
