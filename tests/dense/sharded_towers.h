// Two stacks of layers that are trained with sharded parameters and in a DDP set, on the CPU or on a device: the same
// bits where sums are the same.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/world.h"
#include "dense/ddp/layers.h"
#include "dense/direct_entry.h"
#include "dense/fsdp/stack_units.h"
#include "dense/layer_stacks.h"
#include "dense/reference.h"
#include "dense/sharded_ranks.h"

namespace shardrec::dense::towers {

using comm::Communicator;
using test::same_bits;

inline constexpr int64_t kWhole = INT64_MAX;  // one unit a stack

struct Job {
  shardrec_fsdp_strategy strategy = SHARDREC_FSDP_FULL_SHARD;
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  int64_t unit_elements = 1;
  int micro_steps = 1;
  bool has_empty_batches = false;  // of rank 0, in every other step
  int32_t device = -1;             // of all layers; -1: the CPU
  int prefetch = 1;
  Precision precision = Precision::kFloat32;
};

inline constexpr int kSteps = 4;
inline constexpr int64_t kBatch = 45;

inline std::vector<float> numbers(int64_t count, int seed) {
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
  Towers(const test::StackOf& of, const Job& job, int rank, bool accumulates = false) {
    MlpOptions options{.optimizer = optimizer_of(job.optimizer), .seed = 7, .threads = 2};
    options.accumulate = accumulates;
    options.place.device = job.device;
    options.precision = job.precision;
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

inline int64_t batch_of(const Job& job, int rank, int step) {
  return job.has_empty_batches && rank == 0 && step % 2 == 1 ? 0 : kBatch + rank;
}

// What the passes of all steps gave, then all values, then the states.
using History = std::vector<std::vector<float>>;

inline void keep_pass(History& history, std::pair<std::vector<float>, std::vector<float>> given) {
  history.push_back(std::move(given.first));
  history.push_back(std::move(given.second));
}

inline shardrec_non_finite non_finite_of(const Job& job) {
  return job.precision == Precision::kFloat16 ? SHARDREC_NON_FINITE_SKIP
                                              : SHARDREC_NON_FINITE_ALLOW;
}

inline History train_in_ddp(Communicator& communicator, const test::StackOf& of, const Job& job) {
  const int rank = communicator.rank();
  Towers towers(of, job, rank, job.micro_steps > 1);
  const auto set =
      std::make_shared<Ddp>(borrowed(communicator), DdpOptions{.non_finite = non_finite_of(job)});
  add_layers(set, "bottom.", towers.bottom);
  add_layers(set, "top.", towers.top);
  set->set_optimizer(optimizer_of(job.optimizer));
  set->commit();
  History history;
  for (int step = 0; step < kSteps; ++step) {
    set->zero_gradients();
    for (int micro = 0; micro < job.micro_steps; ++micro) {
      set->begin(micro + 1 == job.micro_steps);
      keep_pass(history, towers.pass(batch_of(job, rank, step), step * 10 + micro));
      set->end();
      set->wait();
    }
    set->step();
  }
  if (job.device >= 0) set->fetch();
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
                                   FsdpOptions{.strategy = job.strategy,
                                               .prefetch = job.prefetch,
                                               .non_finite = non_finite_of(job),
                                               .place = {.device = job.device},
                                               .offload = job.device >= 0})) {
    add_layers(*set, "bottom.", towers.bottom, job.unit_elements,
               std::make_unique<DirectEntry>(set));
    add_layers(*set, "top.", towers.top, job.unit_elements, std::make_unique<DirectEntry>(set));
    set->set_optimizer(optimizer_of(job.optimizer));
    set->commit();
  }
};

inline History train_sharded(Communicator& communicator, const test::StackOf& of, const Job& job) {
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

inline void expect_the_bits_of_ddp(int ranks, const test::StackOf& of, const Job& job) {
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

}  // namespace shardrec::dense::towers
