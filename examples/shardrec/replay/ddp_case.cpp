// How a case of kind "ddp" is trained on ranks and held against what was recorded.
#include "replay/ddp_case.h"

#include <algorithm>
#include <cstring>

#include "launch/ranks.h"
#include "replay/case_model.h"

namespace shardrec::cli {
namespace {

// The last layer has no activation, the others ReLU. Micro steps add to the gradients.
Mlp make_stack(const DdpCase& ddp) {
  Mlp stack(ddp.inputs(), MlpOptions().accumulate_gradients(true).threads(1));
  for (size_t l = 1; l < ddp.layers.size(); ++l) {
    stack.add_linear(ddp.layers[l], l + 1 == ddp.layers.size() ? SHARDREC_ACTIVATION_NONE
                                                               : SHARDREC_ACTIVATION_RELU);
  }
  return stack;
}

std::string recorded_name(size_t parameter) {
  return std::to_string(parameter / 2) + (parameter % 2 == 0 ? ".weight" : ".bias");
}

class DdpRank {
 public:
  DdpRank(const RecordedCase& recorded, const Safetensors& arrays, Comm& comm)
      : recorded_(recorded),
        case_(*recorded.ddp),
        arrays_(arrays),
        comm_(comm),
        slice_(slice_of(recorded.global_batch(), comm.size(), comm.rank())),
        stack_(make_stack(case_)),
        ddp_(comm,
             DdpOptions()
                 .bucket_bytes(std::min(case_.bucket_bytes, kFirstBucketBytes), case_.bucket_bytes)
                 .threads(1)) {
    for (int32_t p = 0; p < stack_.info().parameters; ++p) {
      parameters_.push_back(stack_.parameter(p));
    }
  }

  CaseResult run() {
    write_initial_values();
    add_to_set();
    for (int64_t step = 1; step <= recorded_.steps; ++step) {
      zero_gradients();
      for (int64_t micro = 1; micro <= case_.micro_steps; ++micro) train(step, micro);
      if (step == recorded_.steps) compare_gradients();
      ddp_.step();
    }
    for (size_t p = 0; p < parameters_.size(); ++p) {
      compare(parameters_[p].value, "/final/" + recorded_name(p), result_.weights);
    }
    compare_losses();
    return result_;
  }

 private:
  static constexpr int64_t kFirstBucketBytes = int64_t{1} << 20;  // PyTorch's

  void write_initial_values() {
    const float apart = comm_.rank() == 0 ? 0 : case_.ranks_start_apart_by;
    for (size_t p = 0; p < parameters_.size(); ++p) {
      const Tensor& value = parameters_[p].value;
      auto* to = value.data<float>();
      for (const float x :
           arrays_.floats(recorded_.name + "/init/" + recorded_name(p), value.elements())) {
        *to++ = x + apart;
      }
    }
  }

  // Where the recorded gradients were views of buckets they are the library's here, as of a host
  // whose layers hand theirs over; else the stack's, which marks them itself.
  void add_to_set() {
    if (case_.gradient_as_bucket_view) {
      for (size_t p = 0; p < parameters_.size(); ++p) {
        ddp_.add(recorded_name(p), parameters_[p].value);
      }
    } else {
      ddp_.add("stack", stack_);
    }
    ddp_.set_optimizer(case_.optimizer.options());
    ddp_.commit();
  }

  void zero_gradients() {
    stack_.zero_gradients();
    ddp_.zero_gradients();
  }

  // Rows of all recorded ranks, one behind the other.
  [[nodiscard]] std::vector<float> batch(int64_t step, int64_t micro, const char* array,
                                         int64_t columns) const {
    std::vector<float> all;
    for (int rank = 0; rank < recorded_.world_size; ++rank) {
      const auto rows =
          arrays_.floats(recorded_.name + "/rank" + std::to_string(rank) + "/step" +
                             std::to_string(step) + "/micro" + std::to_string(micro) + "/" + array,
                         recorded_.batch_size * columns);
      all.insert(all.end(), rows.begin(), rows.end());
    }
    return all;
  }

  void train(int64_t step, int64_t micro) {
    const std::vector<float> inputs = batch(step, micro, "x", case_.inputs());
    const std::vector<float> targets = batch(step, micro, "y", case_.outputs());
    const auto first = static_cast<size_t>(slice_.first * case_.outputs());
    std::vector<float> out(static_cast<size_t>(slice_.size() * case_.outputs()));
    std::vector<float> slope(out.size());
    const Matrix output(out.data(), slice_.size(), case_.outputs());
    const Matrix slopes(slope.data(), slice_.size(), case_.outputs());
    ddp_.begin(micro == case_.micro_steps);
    stack_.forward({inputs.data() + slice_.first * case_.inputs(), slice_.size(), case_.inputs()},
                   output);
    const auto elements = static_cast<double>(out.size());
    double loss = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      const double error = static_cast<double>(out[i]) - static_cast<double>(targets[first + i]);
      loss += error * error / elements;
      slope[i] = static_cast<float>(2 * error / elements);
    }
    losses_.push_back(loss);
    stack_.backward(slopes);
    if (case_.gradient_as_bucket_view) hand_over();
    ddp_.end();
    ddp_.wait();
  }

  void hand_over() {
    for (size_t p = parameters_.size(); p-- > 0;) {
      const auto index = static_cast<int64_t>(p);
      const Tensor& own = parameters_[p].gradient;
      std::copy_n(own.data<float>(), own.elements(), ddp_.gradient(index).data<float>());
      ddp_.mark_ready(index);
    }
  }

  void compare_gradients() {
    for (size_t p = 0; p < parameters_.size(); ++p) {
      compare(ddp_.gradient(static_cast<int64_t>(p)), "/grad/" + recorded_name(p), result_.out);
    }
  }

  // Each rank's as recorded; on another number of ranks the means over all, on the first rank.
  void compare_losses() {
    const auto all = gather(comm_, losses_);
    std::vector<std::vector<float>> expected;
    for (int rank = 0; rank < recorded_.world_size; ++rank) {
      expected.push_back(arrays_.floats(recorded_.name + "/rank" + std::to_string(rank) + "/loss",
                                        static_cast<int64_t>(losses_.size())));
    }
    const auto mean = [](const auto& ranks, size_t i) {
      double sum = 0;
      for (const auto& losses : ranks) sum += static_cast<double>(losses[i]);
      return sum / static_cast<double>(ranks.size());
    };
    const bool as_recorded = comm_.size() == recorded_.world_size;
    const auto rank = static_cast<size_t>(comm_.rank());
    for (size_t i = 0; i < losses_.size(); ++i) {
      if (as_recorded) {
        result_.out.add(losses_[i], static_cast<double>(expected[rank][i]), recorded_.rtol,
                        recorded_.atol);
      } else if (rank == 0) {
        result_.out.add(mean(all, i), mean(expected, i), recorded_.rtol, recorded_.atol);
      }
    }
  }

  void compare(const Tensor& values, const std::string& name, LargestError& largest) {
    const auto* at = values.data<float>();
    for (const float expected : arrays_.floats(recorded_.name + name, values.elements())) {
      largest.add(static_cast<double>(*at++), static_cast<double>(expected), recorded_.rtol,
                  recorded_.atol);
    }
  }

  const RecordedCase& recorded_;
  const DdpCase& case_;
  const Safetensors& arrays_;
  Comm& comm_;
  Slice slice_;
  Mlp stack_;
  Ddp ddp_;
  std::vector<Mlp::Parameter> parameters_;
  std::vector<double> losses_;  // one per micro step
  CaseResult result_;
};

}  // namespace

void require_offered(const RecordedCase& recorded, const Safetensors& arrays) {
  const DdpCase& ddp = *recorded.ddp;
  (void)ddp.optimizer.options();
  for (size_t l = 1; l < ddp.layers.size(); ++l) {  // sizes, before memory is taken for them
    (void)arrays.floats(recorded.name + "/init/" + recorded_name(2 * (l - 1)),
                        ddp.layers[l] * ddp.layers[l - 1]);
  }
  offered([&] { (void)make_stack(ddp); });
}

CaseResult run_ddp_case(const RecordedCase& recorded, const Safetensors& arrays, Comm& comm) {
  return DdpRank(recorded, arrays, comm).run();
}

}  // namespace shardrec::cli
