// Steps of parameters on a device are those of ElementOptimizer.
#include <span>

#include "core/threads.h"
#include "dense/element_optimizer.h"
#include "dense_device/both_places.h"
#include "plan/model/optimizer_step.h"

namespace shardrec::dense::device::test {
namespace {

class ElementUpdatesOnDevice : public OnDevice {
 protected:
  static std::span<float> numbers_of(const core::Matrix& row) {
    return {row.data, static_cast<size_t>(row.cols)};
  }

  // Several steps, with other gradients each, and with other rates from the third on.
  void compare(const plan::Optimizer& settings, const Shape& shape) {
    ElementOptimizer optimizer(settings);
    Both values = both(shape, 1), gradients = both(shape, 2);
    optimizer.add(numbers_of(values.host()), numbers_of(gradients.host()));
    Shape zeros = shape;
    zeros.special = false;
    std::vector<Both> states;
    for (int s = 0; s < optimizer.states(); ++s) {
      states.push_back(both(zeros, 3));
      fill(*stream_, states.back().there().data, 0, shape.cols);
    }
    const int64_t scratch_floats = update_scratch(plan::kind_of(settings.kind), shape.cols);
    Both scratch = both({.rows = 1, .cols = scratch_floats}, 4);
    plan::Optimizer now = settings;
    for (int step = 1; step <= 3; ++step) {
      if (step == 3) optimizer.set_learning_rate(now.learning_rate = 0.5);
      scale(*stream_, gradients.there().data, -0.7F, shape.cols);
      kernels().scale(gradients.host().data, -0.7F, shape.cols);
      optimizer.begin_step();
      optimizer.step(0, 1, threads_);
      compute::ElementUpdate update{.weights = values.there().data,
                                    .gradients = gradients.there().data,
                                    .max_gradient = static_cast<float>(settings.max_gradient),
                                    .step = plan::optimizer_step(now, step)};
      for (size_t s = 0; s < states.size(); ++s) update.matrices[s] = states[s].there().data;
      update_elements(*stream_, update, shape.cols, scratch.there().data);
      values.expect_same("values");
      for (size_t s = 0; s < states.size(); ++s) {
        const std::span<float> expected = optimizer.state(0, static_cast<int>(s));
        std::copy(expected.begin(), expected.end(), states[s].host().data);
        states[s].expect_same("state");
      }
      if (HasFailure()) {
        ADD_FAILURE() << "optimizer " << settings.kind << ", decay " << settings.weight_decay_mode
                      << ", step " << step;
        return;
      }
    }
  }

  core::Threads threads_{1};
};

TEST_F(ElementUpdatesOnDevice, AreThoseOfTheCpu) {
  for (const shardrec_optimizer kind :
       {SHARDREC_OPTIMIZER_SGD, SHARDREC_OPTIMIZER_MOMENTUM_SGD, SHARDREC_OPTIMIZER_ADAGRAD,
        SHARDREC_OPTIMIZER_ADAM, SHARDREC_OPTIMIZER_LAMB}) {
    for (const shardrec_weight_decay decay :
         {SHARDREC_WEIGHT_DECAY_NONE, SHARDREC_WEIGHT_DECAY_L2, SHARDREC_WEIGHT_DECAY_DECOUPLE}) {
      plan::Optimizer settings{
          .kind = kind, .learning_rate = 0.02, .eps = 1e-8, .beta1 = 0.9, .beta2 = 0.99};
      settings.weight_decay = 0.1;
      settings.weight_decay_mode = decay;
      settings.momentum = 0.9;
      // LAMB's blocks have 16384 elements.
      for (const int64_t count : {0, 1, 5, 1000, 16384, 36001}) {
        const int64_t offset = count % 2;
        settings.max_gradient = count == 1000 ? 0.5 : 0;
        compare(settings,
                {.rows = 1, .cols = count, .layout = {.offset = offset}, .special = count <= 1000});
      }
    }
  }
}

}  // namespace
}  // namespace shardrec::dense::device::test
