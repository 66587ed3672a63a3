// Sharded parameters in checkpoints: saved by any strategy over any number of ranks, loaded by any other, and by
// DDP; what is loaded goes on with the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Comm;
using shardrec::Ddp;
using shardrec::Fsdp;
using shardrec::FsdpOptions;
using shardrec::Matrix;
using shardrec::Mesh;
using shardrec::Mlp;
using shardrec::MlpOptions;
using shardrec::OptimizerOptions;
using shardrec::Vector;

// Two units; with many ranks some shards hold nothing. Gradients are the same on all ranks, so that they do not
// depend on how many there are.
constexpr int64_t kSizes[] = {70, 3, 200};

float slope(size_t parameter, int64_t element, int step) {
  return static_cast<float>((element * 7 + step * 5 + static_cast<int64_t>(parameter) * 3) % 11) -
         5;
}

OptimizerOptions optimizer(shardrec_optimizer kind) {
  OptimizerOptions options;
  options.optimizer(kind).learning_rate(0.1);
  return options;
}

class Sharded {
 public:
  // sharding_group > 0: HYBRID_SHARD.
  Sharded(Comm& comm, shardrec_fsdp_strategy strategy, int32_t sharding_group,
          shardrec_optimizer kind) {
    FsdpOptions options;
    options.strategy(strategy);
    if (sharding_group > 0) {
      mesh_.emplace(comm, sharding_group);
      fsdp_.emplace(comm, *mesh_, options);
    } else {
      fsdp_.emplace(comm, options);
    }
    set().add_unit("a");
    set().add_unit("b");
    set().add_parameter(0, "p0", kSizes[0]);
    set().add_parameter(0, "p1", kSizes[1]);
    set().add_parameter(1, "p2", 20, 10);
    set().set_optimizer(optimizer(kind));
    set().commit();
  }

  Fsdp& set() { return *fsdp_; }

  void step(int number) {
    set().zero_gradients();
    set().begin();
    for (const int32_t unit : {0, 1}) {
      set().unshard(unit);
      set().reshard(unit);
    }
    for (const int32_t unit : {1, 0}) {
      set().unshard(unit);
      for (const int32_t p : unit == 0 ? std::vector{0, 1} : std::vector{2}) {
        const shardrec::Tensor gradient = set().gradient(p);
        for (int64_t i = 0; i < gradient.elements(); ++i) {
          gradient.data<float>()[i] += slope(static_cast<size_t>(p), i, number);
        }
      }
      set().mark_ready(unit);
    }
    set().end();
    set().wait();
    set().step();
  }

  // Values, then each state.
  std::vector<float> all(int states) {
    std::vector<float> all;
    for (int32_t at = -1; at < states; ++at) {
      const int32_t array = at < 0 ? SHARDREC_FSDP_VALUES : SHARDREC_FSDP_STATE + at;
      for (int32_t p = 0; p < 3; ++p) {
        std::vector<float> one(static_cast<size_t>(kSizes[p]));
        set().full(p, array, Vector(one.data(), kSizes[p]));
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    return all;
  }

 private:
  std::optional<Mesh> mesh_;
  std::optional<Fsdp> fsdp_;
};

class Whole {
 public:
  Whole(Comm& comm, shardrec_optimizer kind) : ddp_(comm) {
    for (const int64_t size : kSizes) values_.emplace_back(static_cast<size_t>(size), 0.0F);
    ddp_.add("p0", Vector(values_[0].data(), kSizes[0]));
    ddp_.add("p1", Vector(values_[1].data(), kSizes[1]));
    ddp_.add("p2", Matrix(values_[2].data(), 20, 10));
    ddp_.set_optimizer(optimizer(kind));
    ddp_.commit();
  }
  Ddp& set() { return ddp_; }
  void step(int number) {
    for (int32_t p = 0; p < 3; ++p) {
      const shardrec::Tensor gradient = ddp_.gradient(p);
      for (int64_t i = 0; i < gradient.elements(); ++i) {
        gradient.data<float>()[i] = slope(static_cast<size_t>(p), i, number);
      }
    }
    ddp_.all_reduce();
    ddp_.step();
  }
  std::vector<float> all(int states) const {
    std::vector<float> all;
    for (const auto& value : values_) all.insert(all.end(), value.begin(), value.end());
    for (int32_t s = 0; s < states; ++s) {
      for (int32_t p = 0; p < 3; ++p) {
        const shardrec::Tensor state = ddp_.state(p, s);
        all.insert(all.end(), state.data<float>(), state.data<float>() + state.elements());
      }
    }
    return all;
  }

 private:
  std::vector<std::vector<float>> values_;
  Ddp ddp_;
};

template <class Set>
void save(Comm& comm, const std::string& path, Set& set, bool background) {
  Checkpoint checkpoint(comm, path);
  checkpoint.add("dense", set.set());
  if (!background) return checkpoint.commit(2);
  checkpoint.commit_begin(2);
  checkpoint.commit_wait();
}

template <class Set>
void load(Comm& comm, const std::string& path, Set& set) {
  Checkpoint checkpoint(comm, path);
  checkpoint.add("dense", set.set());
  checkpoint.open();
  checkpoint.load();
}

struct World {
  int ranks;
  shardrec_fsdp_strategy strategy;
  int32_t sharding_group = 0;
};

TEST(CheckpointFsdp, AnyStrategyAndWorldGoesOnWithTheSameBits) {
  const World worlds[] = {{2, SHARDREC_FSDP_NO_SHARD},        {3, SHARDREC_FSDP_HYBRID_SHARD, 3},
                          {6, SHARDREC_FSDP_HYBRID_SHARD, 3}, {7, SHARDREC_FSDP_FULL_SHARD},
                          {1, SHARDREC_FSDP_FULL_SHARD},      {4, SHARDREC_FSDP_SHARD_GRAD_OP}};
  for (const shardrec_optimizer kind : {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_ADAM}) {
    const int states = kind == SHARDREC_OPTIMIZER_ADAM ? 2 : 0;
    Directory directory;
    std::vector<float> saved, trained;
    run(4, [&](Comm& comm, int rank) {
      Sharded set(comm, SHARDREC_FSDP_FULL_SHARD, 0, kind);
      set.step(0);
      set.set().set_learning_rate(0.02);
      set.step(1);
      save(comm, directory.path(), set, kind == SHARDREC_OPTIMIZER_ADAM);
      const std::vector<float> before = set.all(states);
      set.step(2);
      const std::vector<float> after = set.all(states);
      if (rank != 0) return;
      saved = before;
      trained = after;
    });
    for (const World& world : worlds) {
      SCOPED_TRACE(testing::Message() << world.ranks << " ranks, strategy " << world.strategy
                                      << ", optimizer " << kind);
      run(world.ranks, [&](Comm& comm, int) {
        Sharded set(comm, world.strategy, world.sharding_group, kind);
        load(comm, directory.path(), set);
        EXPECT_EQ(set.all(states), saved);
        set.step(2);
        const std::vector<float> after = set.all(states);
        for (size_t i = 0; i < after.size(); ++i) {  // a mean of three is not exact
          ASSERT_NEAR(after[i], trained[i], 1e-5) << "element " << i;
        }
        set.set().check_equal();
      });
    }
    run(3, [&](Comm& comm, int) {
      Whole whole(comm, kind);
      load(comm, directory.path(), whole);
      EXPECT_EQ(whole.all(states), saved) << "DDP loads what was sharded";
    });
  }
}

TEST(CheckpointFsdp, LoadsWhatDdpHasSaved) {
  Directory directory;
  std::vector<float> saved;
  run(2, [&](Comm& comm, int rank) {
    Whole whole(comm, SHARDREC_OPTIMIZER_ADAGRAD);
    whole.step(0);
    save(comm, directory.path(), whole, false);
    if (rank == 0) saved = whole.all(1);
  });
  run(5, [&](Comm& comm, int) {
    Sharded set(comm, SHARDREC_FSDP_FULL_SHARD, 0, SHARDREC_OPTIMIZER_ADAGRAD);
    load(comm, directory.path(), set);
    EXPECT_EQ(set.all(1), saved);
  });
}

// A stack of layers, its parameters whole or sharded.
class Layers {
 public:
  // sharded: how, else they are the stack's own in a DDP set.
  Layers(Comm& comm, std::optional<shardrec_fsdp_strategy> sharded, int64_t unit_elements = 1)
      : stack_(6, MlpOptions().optimizer(SHARDREC_OPTIMIZER_ADAM).learning_rate(0.1).seed(3)),
        ddp_(comm) {
    stack_.add_linear(20, SHARDREC_ACTIVATION_RELU);
    stack_.add_dropout(0.25);
    stack_.add_linear(2, SHARDREC_ACTIVATION_NONE);
    if (sharded) {
      fsdp_.emplace(comm, FsdpOptions().strategy(*sharded));
      fsdp_->add("net", stack_, unit_elements);
      fsdp_->set_optimizer(optimizer(SHARDREC_OPTIMIZER_ADAM));
      fsdp_->commit();
    } else {
      ddp_.add("net", stack_);
      ddp_.commit();
    }
  }

  Mlp& stack() { return stack_; }
  Fsdp& set() { return *fsdp_; }

  void step(int number) {
    std::vector<float> x(18), y(6), dy(6);
    for (size_t i = 0; i < x.size(); ++i) x[i] = slope(i, number, 1);
    for (size_t i = 0; i < dy.size(); ++i) dy[i] = slope(i, number, 2);
    if (fsdp_) {
      fsdp_->zero_gradients();
      fsdp_->begin();
    } else {
      ddp_.begin();
    }
    stack_.forward(Matrix(x.data(), 3, 6), Matrix(y.data(), 3, 2));
    stack_.backward(Matrix(dy.data(), 3, 2));
    if (fsdp_) {
      fsdp_->end();
      fsdp_->wait();
      return fsdp_->step();
    }
    ddp_.end();
    ddp_.wait();
    stack_.step();
  }

  void set_learning_rate(double rate) {
    fsdp_ ? fsdp_->set_learning_rate(rate) : stack_.set_learning_rate(rate);
  }

  std::vector<float> all() {
    std::vector<float> all;
    for (int32_t p = 0; p < 4; ++p) {
      const int64_t size = std::array{120, 20, 40, 2}[static_cast<size_t>(p)];
      for (int32_t s = -1; s < 2; ++s) {
        std::vector<float> one(static_cast<size_t>(size));
        if (fsdp_) {
          const int32_t array = s < 0 ? SHARDREC_FSDP_VALUES : SHARDREC_FSDP_STATE + s;
          fsdp_->full(p, array, Vector(one.data(), size));
        } else {
          const shardrec::Tensor view = s < 0 ? stack_.parameter(p).value : stack_.state(p, s);
          std::copy_n(view.data<float>(), size, one.data());
        }
        all.insert(all.end(), one.begin(), one.end());
      }
    }
    return all;
  }

 private:
  Mlp stack_;
  Ddp ddp_;
  std::optional<Fsdp> fsdp_;
};

TEST(CheckpointFsdp, AStackIsWholeInACheckpointWhetherItsParametersAreShardedOrNot) {
  using Sharding = std::optional<shardrec_fsdp_strategy>;
  struct Saved {
    Sharding sharding;
    Directory directory{};
    std::vector<float> values{}, trained{};
  };
  std::array<Saved, 2> saved = {Saved{std::nullopt}, Saved{SHARDREC_FSDP_FULL_SHARD}};
  for (Saved& one : saved) {
    run(2, [&](Comm& comm, int rank) {
      Layers layers(comm, one.sharding);
      layers.step(0);
      layers.set_learning_rate(0.02);
      layers.step(1);
      Checkpoint checkpoint(comm, one.directory.path());
      checkpoint.add("net", layers.stack());
      checkpoint.commit_begin(2);
      checkpoint.commit_wait();
      const std::vector<float> values = layers.all();
      layers.step(2);
      const std::vector<float> trained = layers.all();
      if (rank != 0) return;
      one.values = values;
      one.trained = trained;
    });
    EXPECT_EQ(one.values, saved[0].values);
    for (const Sharding sharding :
         {Sharding(), Sharding(SHARDREC_FSDP_FULL_SHARD), Sharding(SHARDREC_FSDP_NO_SHARD)}) {
      run(4, [&](Comm& comm, int) {
        Layers layers(comm, sharding, 50);
        Checkpoint checkpoint(comm, one.directory.path());
        checkpoint.add("net", layers.stack());
        checkpoint.open();
        checkpoint.load();
        EXPECT_EQ(layers.all(), one.values);
        layers.step(2);
        EXPECT_EQ(layers.all(), one.trained) << "steps, rate and dropped elements go on";
      });
    }
  }
}

TEST(CheckpointFsdp, AStackAndItsSetMayBeInOneCheckpointAndAStackWithoutAnOptimizerMayNot) {
  Directory directory;
  run(2, [&](Comm& comm, int) {
    Layers layers(comm, SHARDREC_FSDP_FULL_SHARD);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add("net", layers.stack());
    checkpoint.add("set", layers.set());
    checkpoint.commit(1);
    layers.set().begin();
    try {
      checkpoint.commit(2);
      ADD_FAILURE() << "commit took a stack inside a step";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE) << error.what();
    }
    layers.set().end();
    layers.set().wait();

    Mlp stack(2);
    stack.add_linear(1, SHARDREC_ACTIVATION_NONE);
    Fsdp set(comm);
    set.add("net", stack);
    set.commit();
    Checkpoint without(comm, directory.path());
    without.add("net", stack);
    try {
      without.commit(3);
      ADD_FAILURE() << "commit took a stack without an optimizer";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE) << error.what();
      EXPECT_NE(std::string(error.what()).find("add_fsdp"), std::string::npos) << error.what();
    }
  });
}

TEST(CheckpointFsdp, SetsThatDifferBetweenRanksAreToldAndTheCommunicatorLivesOn) {
  Directory directory;
  run(2, [&](Comm& comm, int rank) {
    Sharded set(comm, SHARDREC_FSDP_FULL_SHARD, 0, SHARDREC_OPTIMIZER_SGD);
    Checkpoint checkpoint(comm, directory.path());
    checkpoint.add(rank == 0 ? "dense" : "other", set.set());
    try {
      checkpoint.commit(1);
      ADD_FAILURE() << "commit took it";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_DISAGREEMENT) << error.what();
    }
    set.set().begin();
    Checkpoint again(comm, directory.path());
    again.add("dense", set.set());
    try {
      again.commit(1);
      ADD_FAILURE() << "commit took a set inside a step";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_STATE) << error.what();
    }
    set.set().end();
    set.set().wait();
    again.commit(1);
  });
}

}  // namespace
}  // namespace shardrec_test
