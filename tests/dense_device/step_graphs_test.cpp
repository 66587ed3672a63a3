// What a step of layers on a device costs the host: each call of a stack is one list of operations, matrix products among
// them, and a graph once it came before. The bits are those of operations that are enqueued one by one, whatever memory
// is given and whatever fails.
#include <dlfcn.h>

#include <array>
#include <bit>
#include <cstdlib>
#include <functional>
#include <optional>
#include <ostream>
#include <vector>

#include "compute/cuda/host/plugin.h"
#include "device/held_streams.h"
#include "shardrec/shardrec.hpp"

namespace shardrec_test {
namespace {

using shardrec::copy;
using shardrec::Interaction;
using shardrec::Matrix;
using shardrec::Memory;
using shardrec::Mlp;
using shardrec::MlpOptions;
using shardrec::Tensor;
using shardrec::Vector;

constexpr int64_t kBatch = 24;
constexpr int64_t kInputs = 7;
constexpr int64_t kFeatures = 2;
constexpr int64_t kDim = 4;
constexpr int64_t kPairs = kDim + (kFeatures + 1) * kFeatures / 2;

// Per step.
struct Costs {
  int64_t graphs = 0;
  int64_t launches = 0;  // of kernels of the library
  int64_t calls = 0;     // of the driver, by the library
  bool operator==(const Costs&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Costs& costs) {
    return out << costs.graphs << " graphs, " << costs.launches << " launches, " << costs.calls
               << " calls";
  }
};

class StepGraphs : public shardrec::test::HeldStreamsTest {
 protected:
  // The dense half of a small recommendation model, and what a batch has of it: so many batches take turns.
  class Model {
   public:
    explicit Model(int device = 0, shardrec_precision precision = SHARDREC_PRECISION_FLOAT32,
                   const char* optimizer = "adam")
        : bottom_(kInputs, options(device, precision, optimizer)),
          pairs_(kFeatures, kDim, MlpOptions().device(device)),
          top_(kPairs, options(device, precision, optimizer)),
          batches_{Batch(device, 1), Batch(device, 2)} {
      bottom_.add_linear(6).add_layer_norm().add_dropout(0.25).add_linear(kDim);
      top_.add_cross().add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
    }

    // before: called before each call.
    using Before = std::function<void()>;
    void forward(size_t which, const Before& before = [] {}) {
      Batch& b = batches_[which];
      before();
      bottom_.forward(b.x, b.z);
      before();
      pairs_.forward(b.z, b.embeddings, b.pairs);
      before();
      top_.forward(b.pairs, b.logits);
    }
    void train(size_t which, const Before& before = [] {}) {
      Batch& b = batches_[which];
      set_training(true);
      forward(which, before);
      before();
      enqueue_bce_with_logits(top_, b.all_logits, b.labels, b.probabilities, b.loss_gradient);
      before();
      top_.backward(b.logits_gradient, b.pairs_gradient);
      before();
      pairs_.backward(b.pairs_gradient, b.z_gradient, b.embeddings_gradient);
      before();
      bottom_.backward(b.z_gradient);
      before();
      top_.step();
      before();
      bottom_.step();
    }
    void evaluate(size_t which) {
      set_training(false);
      forward(which);
    }

    // Parameters, and what the last call has written for each batch.
    std::vector<float> numbers() {
      std::vector<float> all;
      for (Mlp* mlp : {&bottom_, &top_}) {
        for (int32_t p = 0; p < mlp->info().parameters; ++p) add(mlp->parameter(p).value, all);
      }
      for (Batch& b : batches_) {
        add(b.logits, all);
        add(b.embeddings_gradient, all);
      }
      return all;
    }

   private:
    void set_training(bool on) {
      bottom_.set_training(on);
      top_.set_training(on);
    }

    struct Batch {
      Batch(int device, int seed) : memory(SHARDREC_DEVICE_CUDA, device, 64 * kBytes) {
        std::vector<float> numbers(kBatch * 16);
        for (size_t i = 0; i < numbers.size(); ++i) {
          numbers[i] = static_cast<float>((i * 37 + static_cast<size_t>(seed) * 11) % 29) / 16 - 1;
        }
        copy(x, Matrix(numbers.data(), kBatch, kInputs));
        copy(embeddings, Matrix(numbers.data() + 5, kBatch, kFeatures * kDim));
        for (float& number : numbers) number = number > 0 ? 1 : 0;
        copy(labels, Vector(numbers.data(), kBatch));
      }
      static constexpr int64_t kBytes = 4 * kBatch;
      Matrix matrix(int64_t first, int64_t columns) const {
        return memory.matrix(SHARDREC_FLOAT32, kBatch, columns, first * kBytes);
      }
      Vector vector(int64_t first) const {
        return memory.vector(SHARDREC_FLOAT32, kBatch, first * kBytes);
      }

      Memory memory;
      Matrix x = matrix(0, kInputs), z = matrix(7, kDim), z_gradient = matrix(11, kDim);
      Matrix embeddings = matrix(15, kFeatures* kDim);
      Matrix embeddings_gradient = matrix(23, kFeatures* kDim);
      Matrix pairs = matrix(31, kPairs), pairs_gradient = matrix(31 + kPairs, kPairs);
      Matrix logits = matrix(32 + 2 * kPairs, 1), logits_gradient = matrix(33 + 2 * kPairs, 1);
      Vector all_logits = vector(32 + 2 * kPairs), loss_gradient = vector(33 + 2 * kPairs);
      Vector labels = vector(34 + 2 * kPairs), probabilities = vector(35 + 2 * kPairs);
    };

    static MlpOptions options(int device, shardrec_precision precision, const char* optimizer) {
      MlpOptions options;
      options.seed(5).device(device).precision(precision).optimizer(optimizer).learning_rate(0.01);
      return options;
    }
    static void add(const Tensor& tensor, std::vector<float>& all) {
      std::vector<float> values(static_cast<size_t>(tensor.elements()));
      shardrec_tensor here = *tensor.get();
      here.device_type = SHARDREC_DEVICE_CPU;
      here.device_id = 0;
      here.data = values.data();
      copy(Tensor(here), tensor);
      all.insert(all.end(), values.begin(), values.end());
    }

    Mlp bottom_;
    Interaction pairs_;
    Mlp top_;
    std::array<Batch, 2> batches_;
  };

  void SetUp() override {
    HeldStreamsTest::SetUp();
    if (IsSkipped()) return;
    graph_launches_ = shardrec::test::of_plugin<int64_t()>("simt_graph_launches");
    void* const cublas = dlopen(std::getenv("SHARDREC_CUBLASLT_LIBRARY"), RTLD_NOW);
    ASSERT_NE(cublas, nullptr);
    products_ = std::bit_cast<int64_t (*)()>(dlsym(cublas, "fake_cublaslt_products"));
    graphs_made_ = shardrec::test::of_plugin<int64_t()>("simt_graphs_made");
    fail_capture_ = shardrec::test::of_plugin<void(int64_t)>("simt_fail_capture");
  }

  Costs now() const {
    shardrec_cuda_calls calls{};
    shardrec::compute::cuda::host::table().count_calls(&calls);
    return {.graphs = graph_launches_(), .launches = calls.launches, .calls = calls.calls};
  }
  template <class Step>
  Costs of(const Step& step) const {
    const Costs before = now();
    step();
    const Costs after = now();
    return {.graphs = after.graphs - before.graphs,
            .launches = after.launches - before.launches,
            .calls = after.calls - before.calls};
  }

  int64_t (*graph_launches_)() = nullptr;
  int64_t (*graphs_made_)() = nullptr;
  int64_t (*products_)() = nullptr;  // calls of cuBLASLt
  void (*fail_capture_)(int64_t) = nullptr;
};

// Events join each call to the caller's stream: four calls of the driver. Five calls are of one kernel each; one of
// dropout has one more, ahead of its graph.
TEST_F(StepGraphs, EachCallOfAStackIsOneGraph) {
  Model model;
  for (int i = 0; i < 4; ++i) model.train(0);
  constexpr int64_t kCalls = 9;
  const Costs step{.graphs = 4, .launches = 33, .calls = 4 * kCalls + kCalls + 1};
  const int64_t products = products_();
  EXPECT_EQ(of([&] { model.train(0); }), step);
  EXPECT_EQ(of([&] { model.train(0); }), step);
  EXPECT_EQ(products_(), products) << "cuBLASLt was called for graphs that there are";
  EXPECT_EQ(of([&] { model.evaluate(0); }).graphs, 1)
      << "a stack without dropout evaluates as it trains";
}

// Graphs of one kind of step do not push out those of another.
TEST_F(StepGraphs, StepsThatAlternateKeepTheirGraphs) {
  Model model;
  const auto round = [&] {
    for (const size_t which : {0, 1}) {
      model.train(which);
      model.evaluate(1 - which);
    }
  };
  for (int i = 0; i < 4; ++i) round();
  const int64_t made = graphs_made_();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(of(round).graphs, 2 * (4 + 2));
  EXPECT_EQ(graphs_made_(), made);
}

TEST_F(StepGraphs, BitsAreThoseOfOperationsOneByOne) {
  for (const shardrec_precision precision :
       {SHARDREC_PRECISION_FLOAT32, SHARDREC_PRECISION_TFLOAT32, SHARDREC_PRECISION_BFLOAT16,
        SHARDREC_PRECISION_FLOAT16}) {
    Model by_graphs(0, precision), one_by_one(0, precision);
    std::optional<Model> on_another;
    if (precision == SHARDREC_PRECISION_FLOAT32) on_another.emplace(1);
    // With a scale of gradients an update has the same arguments in each step.
    const size_t first_graphs = precision == SHARDREC_PRECISION_FLOAT16 ? 1 : 3;
    int64_t launched_one_by_one = 0;
    for (size_t step = 0; step < 6; ++step) {
      const size_t which = step % 3 == 2 ? 1 : 0;
      const int64_t before = graph_launches_();
      by_graphs.train(which);
      if (on_another) on_another->train(which);
      EXPECT_EQ(graph_launches_() > before, step >= first_graphs) << step;
      const int64_t between = graph_launches_();
      one_by_one.train(which, [&] { fail_capture_(1); });
      fail_capture_(0);
      launched_one_by_one += graph_launches_() - between;
      if (step == 1) by_graphs.evaluate(0);
    }
    EXPECT_EQ(launched_one_by_one, 0);
    const std::vector<float> numbers = by_graphs.numbers();
    EXPECT_TRUE(numbers == one_by_one.numbers()) << "precision " << precision;
    if (on_another) {
      EXPECT_TRUE(numbers == on_another->numbers());
    }
  }
}

// Of a set of one rank: its gradients are marked behind the backward's graph.
TEST_F(StepGraphs, ASetOfOneRank) {
  shardrec::run(1, [&](shardrec::Comm& comm) {
    const Memory memory(SHARDREC_DEVICE_CUDA, 0, 4 * kBatch * (kInputs + 1));
    const Matrix x = memory.matrix(SHARDREC_FLOAT32, kBatch, kInputs);
    const Matrix y = memory.matrix(SHARDREC_FLOAT32, kBatch, 1, 4 * kBatch * kInputs);
    std::vector<float> ones(kBatch * kInputs, 1);
    copy(x, Matrix(ones.data(), kBatch, kInputs));
    Mlp mlp(kInputs, MlpOptions().device(0));
    mlp.add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
    shardrec::Ddp ddp(comm);
    ddp.add("stack", mlp);
    ddp.commit();
    const auto train = [&] {
      ddp.begin();
      mlp.forward(x, y);
      mlp.backward(y);
      ddp.end();
      ddp.wait();
      mlp.step();
    };
    for (int i = 0; i < 4; ++i) train();
    EXPECT_EQ(of(train), (Costs{.graphs = 2, .launches = 7, .calls = 22}));
  });
}

}  // namespace
}  // namespace shardrec_test
