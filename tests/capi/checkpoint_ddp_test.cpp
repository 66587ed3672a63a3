// Sets of DDP parameters with an optimizer in checkpoints: what is loaded goes on with the same bits.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "capi/checkpoint_job.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::Checkpoint;
using shardrec::Comm;
using shardrec::Ddp;
using shardrec::OptimizerOptions;
using shardrec::Vector;

// Two parameters whose gradients depend on rank and step.
struct Trained {
  Trained(Comm& comm, const OptimizerOptions& optimizer) : ddp(comm), rank(comm.rank()) {
    for (std::vector<float>* values : {&first, &second}) {
      ddp.add("p" + std::to_string(values->size()),
              Vector(values->data(), static_cast<int64_t>(values->size())));
    }
    ddp.set_optimizer(optimizer);
    ddp.commit();
  }
  void step(int number) {
    for (const int64_t p : {0, 1}) {
      const shardrec::Tensor gradient = ddp.gradient(p);
      for (int64_t i = 0; i < gradient.elements(); ++i) {
        gradient.data<float>()[i] = static_cast<float>((i * 7 + number * 5 + rank * 3) % 11) - 5;
      }
    }
    ddp.all_reduce();
    ddp.step();
  }
  std::vector<float> values() const {
    std::vector<float> all = first;
    all.insert(all.end(), second.begin(), second.end());
    return all;
  }

  std::vector<float> first = std::vector<float>(33, 0.5F);
  std::vector<float> second = std::vector<float>(7, -0.25F);
  Ddp ddp;
  int rank;
};

TEST(CheckpointDdp, ASetWithAnOptimizerGoesOnWithTheSameBits) {
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    SCOPED_TRACE(static_cast<int>(kind));
    Directory directory;
    run(2, [&](Comm& comm, int) {
      OptimizerOptions options;
      options.optimizer(kind).learning_rate(0.1);
      Trained whole(comm, options);
      Checkpoint checkpoint(comm, directory.path());
      checkpoint.add("dense", whole.ddp);
      whole.step(0);
      whole.ddp.set_learning_rate(0.02);
      whole.step(1);
      checkpoint.commit(2);
      for (const int number : {2, 3}) whole.step(number);

      Trained resumed(comm, options);
      Checkpoint again(comm, directory.path());
      again.add("dense", resumed.ddp);
      again.open();
      again.load();
      for (const int number : {2, 3}) resumed.step(number);
      EXPECT_EQ(resumed.values(), whole.values());
      resumed.ddp.check_equal();
    });
  }
}

TEST(CheckpointDdp, NamesOfTheOptimizersStatesAreNotForParameters) {
  run(1, [&](Comm& comm, int) {
    std::vector<float> values(3);
    Ddp ddp(comm);
    ddp.add("optimizer.steps", Vector(values.data(), 3));
    ddp.set_optimizer();
    try {
      ddp.commit();
      ADD_FAILURE() << "commit took it";
    } catch (const shardrec::Error& error) {
      EXPECT_EQ(error.status(), SHARDREC_INVALID_ARGUMENT) << error.what();
    }
  });
}

}  // namespace
}  // namespace shardrec_test
