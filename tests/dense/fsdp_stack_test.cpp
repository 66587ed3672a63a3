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

namespace shardrec::dense {
namespace {

using comm::Communicator;
using test::same_bits;

constexpr int64_t kWhole = INT64_MAX;  // one unit a stack

struct Job {
  shardrec_fsdp_strategy strategy = SHARDREC_FSDP_FULL_SHARD;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  int64_t unit_elements = 1;
  int micro_steps = 1;
  bool has_empty_batches = false;  // of rank 0, in every other step
};

constexpr int kSteps = 4;
constexpr int64_t kBatch = 45;

std::vector<float> numbers(int64_t count, int seed) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i * 13 + 1) + 0.37 * seed));
  }
  return values;
}

// Two stacks, one behind the other; the second one's inputs are the first one's outputs.
struct Towers {
  std::shared_ptr<Mlp> bottom;
  std::shared_ptr<Mlp> top;

  // Each rank begins with its own values, and drops the same elements as the others.
  Towers(const test::StackOf& of, const Job& job, int rank) {
    MlpOptions options{.optimizer = optimizer_of(job.optimizer), .seed = 7, .threads = 2};
    bottom = test::make(of, options);
    const test::StackOf above{"top", bottom->outputs(), {test::linear(9), test::linear(1, false)}};
    top = test::make(above, options);
    for (Mlp* stack : {bottom.get(), top.get()}) {
      stack->parameters().values()[0] += static_cast<float>(rank);
    }
  }

  // Outputs, and the gradient of the input.
  std::pair<std::vector<float>, std::vector<float>> pass(int64_t batch, int seed) {
    std::vector<float> input = numbers(batch * bottom->inputs(), seed);
    std::vector<float> between(static_cast<size_t>(batch * bottom->outputs()));
    std::vector<float> slope(between.size());
    std::vector<float> output(static_cast<size_t>(batch));
    std::vector<float> dx(input.size());
    kept = std::move(input);
    const core::Matrix x{kept.data(), batch, bottom->inputs(), bottom->inputs()};
    const core::Matrix z{between.data(), batch, bottom->outputs(), bottom->outputs()};
    bottom->forward(x, z);
    top->forward(z, {output.data(), batch, 1, 1});
    std::vector<float> dy = numbers(batch, seed + 100);
    top->backward({dy.data(), batch, 1, 1}, {slope.data(), batch, z.cols, z.cols});
    bottom->backward({slope.data(), batch, z.cols, z.cols}, {dx.data(), batch, x.cols, x.cols});
    return {output, dx};
  }

  std::vector<float> kept;
};

int64_t batch_of(const Job& job, int rank, int step) {
  return job.has_empty_batches && rank == 0 && step % 2 == 1 ? 0 : kBatch + rank;
}

// What the passes of all steps gave, then all values, then the states.
using History = std::vector<std::vector<float>>;

void keep_pass(History& history, std::pair<std::vector<float>, std::vector<float>> given) {
  history.push_back(std::move(given.first));
  history.push_back(std::move(given.second));
}

History train_in_ddp(Communicator& communicator, const test::StackOf& of, const Job& job) {
  const int rank = communicator.rank();
  Towers towers(of, job, rank);
  const auto set = std::make_shared<Ddp>(borrowed(communicator), DdpOptions{});
  add_layers(set, "bottom.", towers.bottom);
  add_layers(set, "top.", towers.top);
  set->set_optimizer(optimizer_of(job.optimizer));
  set->commit();
  History history;
  // Gradients of steps without sync are in the stacks' option alone: their sum is taken by hand.
  for (int step = 0; step < kSteps; ++step) {
    std::vector<std::vector<float>> sums(2);
    for (int micro = 0; micro < job.micro_steps; ++micro) {
      const bool last = micro + 1 == job.micro_steps;
      if (last) set->begin(job.micro_steps == 1);
      keep_pass(history, towers.pass(batch_of(job, rank, step), step * 10 + micro));
      for (size_t s = 0; const auto& stack : {towers.bottom, towers.top}) {
        const float* const own = stack->parameters().gradients();
        sums[s].resize(static_cast<size_t>(stack->parameters().size()));
        for (size_t i = 0; i < sums[s].size(); ++i) sums[s][i] += own[i];
        ++s;
      }
    }
    set->end();
    set->wait();
    if (job.micro_steps > 1) {
      for (size_t s = 0; const auto& stack : {towers.bottom, towers.top}) {
        std::ranges::copy(sums[s++], stack->parameters().gradients());
      }
      set->all_reduce();
    }
    set->step();
  }
  for (const Ddp::Parameter& parameter : set->parameters()) {
    const auto bytes = parameter.value_bytes();
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    history.push_back(std::move(values));
  }
  for (size_t p = 0; p < set->parameters().size(); ++p) {
    for (int s = 0; s < set->optimizer()->states(); ++s) {
      const auto state = set->optimizer()->state(p, s);
      history.emplace_back(state.begin(), state.end());
    }
  }
  return history;
}

struct Sharded {
  Towers towers;
  std::shared_ptr<Fsdp> set;

  Sharded(Communicator& communicator, const test::StackOf& of, const Job& job)
      : towers(of, job, communicator.rank()),
        set(std::make_shared<Fsdp>(groups_for(communicator, job.strategy, 2),
                                   job.strategy == SHARDREC_FSDP_HYBRID_SHARD,
                                   FsdpOptions{.strategy = job.strategy})) {
    add_layers(*set, "bottom.", towers.bottom, job.unit_elements,
               std::make_unique<DirectEntry>(set));
    add_layers(*set, "top.", towers.top, job.unit_elements, std::make_unique<DirectEntry>(set));
    set->set_optimizer(optimizer_of(job.optimizer));
    set->commit();
  }
};

History train_sharded(Communicator& communicator, const test::StackOf& of, const Job& job) {
  const int rank = communicator.rank();
  Sharded sharded(communicator, of, job);
  Fsdp& set = *sharded.set;
  History history;
  for (int step = 0; step < kSteps; ++step) {
    set.zero_gradients();
    for (int micro = 0; micro < job.micro_steps; ++micro) {
      set.begin(micro + 1 == job.micro_steps);
      keep_pass(history, sharded.towers.pass(batch_of(job, rank, step), step * 10 + micro));
      set.end();
      set.wait();
    }
    set.step();
  }
  for (size_t p = 0; p < set.parameters().size(); ++p) {
    std::vector<float> values(static_cast<size_t>(set.parameters()[p].elements));
    set.gather(static_cast<int64_t>(p), SHARDREC_FSDP_VALUES, values);
    history.push_back(std::move(values));
  }
  for (size_t p = 0; p < set.parameters().size(); ++p) {
    for (int s = 0; s < set.optimizer()->states(); ++s) {
      std::vector<float> state(static_cast<size_t>(set.parameters()[p].elements));
      set.gather(static_cast<int64_t>(p), SHARDREC_FSDP_STATE + s, state);
      history.push_back(std::move(state));
    }
  }
  return history;
}

void expect_the_bits_of_ddp(int ranks, const test::StackOf& of, const Job& job) {
  SCOPED_TRACE(testing::Message() << of.name << ", " << ranks << " ranks, strategy " << job.strategy
                                  << ", units of " << job.unit_elements);
  run_well(ranks, [&](Communicator& communicator) {
    const History whole = train_in_ddp(communicator, of, job);
    const History sharded = train_sharded(communicator, of, job);
    ASSERT_EQ(sharded.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) {
      ASSERT_TRUE(same_bits(sharded[i], whole[i])) << "rank " << communicator.rank() << ", " << i;
    }
  });
}

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
    expect_status(SHARDREC_UNSUPPORTED, "16 bits",
                  [&] { add_to_other(test::make(of, {.precision = Precision::kBfloat16})); });
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
