// One model as a DDP set and as an FSDP set: parameters in units, whose gradients follow from the values
// that the host sees, the rank and the step, so that a wrong gather shows in the next values.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "dense/ddp/ddp.h"
#include "dense/fsdp/fsdp.h"
#include "dense/host_parameters.h"

namespace shardrec::dense {

inline std::shared_ptr<comm::Communicator> borrowed(comm::Communicator& communicator) {
  return {&communicator, [](comm::Communicator*) {}};
}

// Elements of the parameters of each unit: some shards are empty, some cut a parameter.
using UnitSizes = std::vector<std::vector<int64_t>>;
inline const UnitSizes kUnits = {{700, 3, 0}, {1}, {5000, 64, 100}, {33, 31}};

inline float first_value(size_t parameter, size_t element) {
  return static_cast<float>(std::sin(static_cast<double>(parameter * 1009 + element + 1)));
}

inline float slope_of(float value, size_t element, int rank, int step) {
  const auto c = static_cast<float>(1 + element % 5) * 0.25F;
  const auto target =
      static_cast<float>((rank * 31 + step * 17 + static_cast<int>(element)) % 23) / 23;
  return (value * c - target) * c;
}

inline plan::Optimizer optimizer_of(shardrec_optimizer kind) {
  plan::Optimizer optimizer{.kind = kind};
  optimizer.learning_rate = 0.05;
  return optimizer;
}

// Values of all parameters, then each state of all, one behind the other.
struct Trained {
  std::vector<float> values;
  std::vector<std::vector<float>> states;
  double norm = 0;
};

struct TrainingPlan {
  shardrec_optimizer optimizer = SHARDREC_OPTIMIZER_ADAM;
  int steps = 20;
  int micro_steps = 1;     // their gradients add up
  bool sync_each = false;  // reduce in each of them; else in the last one
  double clip = 0;         // > 0: the bound of the L2 norm
};

inline Trained train_ddp(comm::Communicator& communicator, const UnitSizes& units,
                         const TrainingPlan& plan) {
  std::vector<std::vector<float>> values, gradients;
  for (const auto& unit : units) {
    for (const int64_t size : unit) {
      values.emplace_back(static_cast<size_t>(size));
      gradients.emplace_back(static_cast<size_t>(size));
      for (size_t i = 0; i < values.back().size(); ++i) {
        values.back()[i] = first_value(values.size() - 1, i);
      }
    }
  }
  Ddp ddp(borrowed(communicator), {});
  for (size_t p = 0; p < values.size(); ++p) {
    ddp.add("p" + std::to_string(p), {static_cast<int64_t>(values[p].size())}, flat(values[p]),
            flat(gradients[p]));
  }
  ddp.set_optimizer(optimizer_of(plan.optimizer));
  ddp.commit();
  Trained trained;
  for (int step = 0; step < plan.steps; ++step) {
    ddp.zero_gradients();
    for (int micro = 0; micro < plan.micro_steps; ++micro) {
      for (size_t p = 0; p < values.size(); ++p) {
        for (size_t i = 0; i < values[p].size(); ++i) {
          gradients[p][i] +=
              slope_of(values[p][i], i, communicator.rank(), step * plan.micro_steps + micro);
        }
      }
    }
    ddp.all_reduce();
    if (plan.clip > 0) trained.norm = ddp.clip_gradients(SHARDREC_CLIP_L2, plan.clip);
    ddp.step();
  }
  for (const auto& value : values) {
    trained.values.insert(trained.values.end(), value.begin(), value.end());
  }
  for (int s = 0; s < ddp.optimizer()->states(); ++s) {
    const std::span<float> state = ddp.optimizer()->state(s);
    trained.states.emplace_back(state.begin(), state.end());
  }
  return trained;
}

class ShardedModel {
 public:
  ShardedModel(FsdpGroups groups, bool mesh, const FsdpOptions& options, const UnitSizes& units,
               std::optional<plan::Optimizer> optimizer)
      : units_(units), rank_(groups.world->rank()), fsdp_(std::move(groups), mesh, options) {
    int64_t parameter = 0;
    for (size_t u = 0; u < units_.size(); ++u) {
      const int64_t unit = fsdp_.add_unit("u" + std::to_string(u));
      first_.push_back(parameter);
      for (const int64_t size : units_[u]) {
        parameter = 1 + fsdp_.add_parameter(unit, "p" + std::to_string(parameter), {size});
      }
    }
    if (optimizer) fsdp_.set_optimizer(*optimizer);
  }

  virtual ~ShardedModel() = default;
  ShardedModel(const ShardedModel&) = delete;
  ShardedModel& operator=(const ShardedModel&) = delete;

  Fsdp& fsdp() { return fsdp_; }

  // Full parameters of float32, and what is added to full gradients.
  virtual void read(std::span<float> to, const std::byte* parameter) {
    if (!to.empty()) std::memcpy(to.data(), parameter, to.size_bytes());
  }
  virtual void add(std::span<const float> slopes, std::byte* gradient) {
    auto* const gradients = static_cast<float*>(static_cast<void*>(gradient));
    for (size_t i = 0; i < slopes.size(); ++i) gradients[i] += slopes[i];
  }

  // Each rank fills its part.
  void fill() {
    for (size_t p = 0; p < fsdp_.parameters().size(); ++p) {
      const Fsdp::Shard shard = fsdp_.shard(static_cast<int64_t>(p), SHARDREC_FSDP_VALUES);
      for (size_t i = 0; i < shard.elements.size(); ++i) {
        shard.elements[i] = first_value(p, static_cast<size_t>(shard.offset) + i);
      }
    }
  }

  // Begins a step; forward over all units.
  void forward(bool sync) {
    fsdp_.begin(sync);
    for (size_t u = 0; u < units_.size(); ++u) {
      fsdp_.unshard(static_cast<int64_t>(u));
      fsdp_.wait_unshard(static_cast<int64_t>(u));
      fsdp_.reshard(static_cast<int64_t>(u));
    }
  }

  // Forward and backward over all units.
  void pass(bool sync, int step) {
    forward(sync);
    backward_of_all(step);
    fsdp_.end();
    fsdp_.wait();
  }

  // unmarked: the host uses this unit, and does not mark it ready.
  void backward_of_all(int step, std::optional<size_t> unmarked = std::nullopt) {
    for (size_t u = units_.size(); u-- > 0;) {
      if (u != unmarked) {
        backward(u, step);
        continue;
      }
      fsdp_.unshard(static_cast<int64_t>(u));
      fsdp_.reshard(static_cast<int64_t>(u));
    }
  }

  void backward(size_t u, int step) {
    const auto unit = static_cast<int64_t>(u);
    fsdp_.unshard(unit);
    fsdp_.wait_unshard(unit);
    for (size_t p = 0; p < units_[u].size(); ++p) {
      const int64_t at = first_[u] + static_cast<int64_t>(p);
      slopes_.resize(static_cast<size_t>(units_[u][p]));
      const std::span<float> slopes(slopes_);
      read(slopes, fsdp_.parameter_values(at));
      for (size_t i = 0; i < slopes.size(); ++i) {
        slopes[i] = slope_of(slopes[i], i, rank_, step);
      }
      add(slopes, fsdp_.parameter_gradients(at));
    }
    fsdp_.mark_ready(unit);
  }

  Trained train(const TrainingPlan& plan) {
    Trained trained;
    for (int step = 0; step < plan.steps; ++step) {
      fsdp_.zero_gradients();
      for (int micro = 0; micro < plan.micro_steps; ++micro) {
        pass(plan.sync_each || micro + 1 == plan.micro_steps, step * plan.micro_steps + micro);
      }
      if (plan.clip > 0) trained.norm = fsdp_.clip_gradients(SHARDREC_CLIP_L2, plan.clip);
      fsdp_.step();
    }
    trained.values = whole(SHARDREC_FSDP_VALUES);
    const int states = static_cast<int>(state_names(plan.optimizer).size());
    for (int s = 0; s < states; ++s) trained.states.push_back(whole(SHARDREC_FSDP_STATE + s));
    return trained;
  }

  // Of all parameters, one behind the other.
  std::vector<float> whole(int32_t what) {
    std::vector<float> all;
    for (size_t p = 0; p < fsdp_.parameters().size(); ++p) {
      std::vector<float> one(static_cast<size_t>(fsdp_.parameters()[p].elements));
      fsdp_.gather(static_cast<int64_t>(p), what, one);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

 private:
  const UnitSizes units_;
  const int rank_;
  std::vector<float> slopes_;   // of one parameter
  std::vector<int64_t> first_;  // by unit: index of its first parameter
  Fsdp fsdp_;
};

// A mesh whose sharding groups are neighbours.
inline FsdpGroups mesh_of(comm::Communicator& world, int sharding_ranks) {
  const int rank = world.rank();
  return {.world = borrowed(world),
          .sharding = world.split(rank / sharding_ranks, rank),
          .replicas = world.split(rank % sharding_ranks, rank)};
}

}  // namespace shardrec::dense
