// A DLRM from the first step to serving: tables sharded over ranks, dense layers trained data-parallel,
// checkpoints, and a scorer.
//
//   dlrm_cpp train DIR      50 steps on 2 ranks, threads of this process; saved in DIR
//   dlrm_cpp resume DIR     50 more on 3 ranks
//   dlrm_cpp serve DIR      scores the test samples, from two threads
//
// Ranks may be processes: shardrec launch --nproc 2 -- dlrm_cpp train DIR. The same program stands in
// examples/java, examples/go and examples/rust; their checkpoints are equal, byte for byte.
#include <cstdlib>
#include <exception>
#include <iomanip>
#include <iostream>
#include <shardrec/shardrec.hpp>
#include <string>
#include <thread>
#include <vector>

#include "clicks.hpp"

namespace {

using clicks::kDense, clicks::kFeatures, clicks::kRows;
constexpr int64_t kDim = 16;                  // columns of a table
constexpr int64_t kBatch = 256, kSteps = 50;  // samples of all ranks together; steps of a run
constexpr int64_t kTestFrom = 1'000'000, kTest = 2048;

shardrec::Mlp make_layers(int64_t seed, int64_t inputs, int64_t outputs) {
  shardrec::Mlp layers(inputs,
                       shardrec::MlpOptions().seed(seed).optimizer("adagrad").learning_rate(0.02));
  layers.add_linear(16, SHARDREC_ACTIVATION_RELU);
  layers.add_linear(outputs, SHARDREC_ACTIVATION_NONE);
  return layers;
}

class Trainer {
 public:
  explicit Trainer(shardrec::Comm &comm)
      : comm_(comm),
        model_(make_model()),
        plan_(shardrec::Plan::collective(comm, model_)),
        tables_(comm, model_, plan_, shardrec::CollectionOptions().seed(7)),
        lookup_(tables_),
        bottom_(make_layers(1, kDense, kDim)),
        top_(make_layers(2, interaction_.outputs(), 1)),
        ddp_(comm),
        metrics_(comm) {
    ddp_.add("bottom", bottom_);
    ddp_.add("top", top_);
    ddp_.commit();
  }

  void train(int64_t step) {
    const int64_t rank = comm_.rank(), ranks = comm_.size();
    const int64_t first = kBatch * rank / ranks, last = kBatch * (rank + 1) / ranks;
    const clicks::Batch batch = clicks::make_batch(step * kBatch + first, last - first);
    forward(batch);
    std::vector<float> gradient(batch.size), crossed(crossed_.size()), dense(dense_.size()),
        pooled(pooled_.size());
    shardrec::bce_with_logits(logits_, batch.labels, nullptr, gradient);
    ddp_.begin();
    const shardrec::Matrix dense_gradient(dense.data(), batch.size, kDim);
    const shardrec::Matrix pooled_gradient(pooled.data(), batch.size, kFeatures * kDim);
    const shardrec::Matrix crossed_gradient(crossed.data(), batch.size, interaction_.outputs());
    top_.backward({gradient.data(), batch.size, 1}, crossed_gradient);
    interaction_.backward(crossed_gradient, dense_gradient, pooled_gradient);
    lookup_.set_gradient(0, pooled_gradient);
    lookup_.send_gradients();  // travel while the bottom layers compute
    bottom_.backward(dense_gradient);
    ddp_.end();
    lookup_.backward();
    ddp_.wait();  // the mean over the ranks is there
    bottom_.step();
    top_.step();
  }

  // The area under the ROC curve of all ranks' test samples together.
  double test() {
    const int64_t rank = comm_.rank(), ranks = comm_.size();
    const int64_t first = kTest * rank / ranks, last = kTest * (rank + 1) / ranks;
    const clicks::Batch batch = clicks::make_batch(kTestFrom + first, last - first);
    forward(batch);
    std::vector<float> probabilities(batch.size);
    shardrec::bce_with_logits(logits_, batch.labels, probabilities);
    metrics_.reset();
    metrics_.update(probabilities, batch.labels);
    metrics_.compute();
    return metrics_.metric(SHARDREC_METRIC_AUC);
  }

  void run(const std::string &directory, bool resume) {
    shardrec::Checkpoint checkpoint(comm_, directory);
    checkpoint.add("tables", tables_);
    checkpoint.add("bottom", bottom_);
    checkpoint.add("top", top_);
    std::vector<int64_t> position = {0};  // what else a run needs to go on: where it is in the data
    if (resume) {
      checkpoint.open();
      checkpoint.load();
      checkpoint.get_tensor("position", 0, position);
    }
    for (const int64_t end = position[0] + kSteps; position[0] < end; ++position[0]) {
      train(position[0]);
    }
    checkpoint.set_tensor("position", position);
    checkpoint.commit(position[0]);
    const double auc = test();
    if (comm_.rank() == 0) {
      std::cout << "step " << position[0] << ", " << comm_.size() << " ranks: test AUC "
                << std::fixed << std::setprecision(4) << auc << "\n";
    }
  }

 private:
  static shardrec::Model make_model() {
    shardrec::Model model;
    for (int64_t f = 0; f < kFeatures; ++f) {
      model.add_feature(model.add_table("table" + std::to_string(f), kRows, kDim),
                        "feature" + std::to_string(f));
    }
    model.set_optimizer(
        shardrec::OptimizerOptions().optimizer("rowwise_adagrad").learning_rate(0.1));
    return model;
  }

  void forward(const clicks::Batch &batch) {
    pooled_.resize(batch.size * kFeatures * kDim);
    dense_.resize(batch.size * kDim);
    crossed_.resize(batch.size * interaction_.outputs());
    logits_.resize(batch.size);
    lookup_.begin(batch.size, batch.ids, batch.lengths);
    const shardrec::Matrix pooled(pooled_.data(), batch.size, kFeatures * kDim);
    const shardrec::Matrix dense(dense_.data(), batch.size, kDim);
    const shardrec::Matrix crossed(crossed_.data(), batch.size, interaction_.outputs());
    bottom_.forward({batch.dense.data(), batch.size, kDense}, dense);
    lookup_.forward(0, pooled);
    interaction_.forward(dense, pooled, crossed);
    top_.forward(crossed, {logits_.data(), batch.size, 1});
  }

  shardrec::Comm &comm_;
  shardrec::Model model_;
  shardrec::Plan plan_;
  shardrec::Collection tables_;
  shardrec::Lookup lookup_;
  shardrec::Interaction interaction_{kFeatures, kDim};
  shardrec::Mlp bottom_, top_;
  shardrec::Ddp ddp_;
  shardrec::Metrics metrics_;
  std::vector<float> pooled_, dense_, crossed_, logits_;
};

void train(const std::string &directory, bool resume) {
  if (std::getenv("WORLD_SIZE") != nullptr) {  // this process is a rank
    auto comm = shardrec::Comm::from_env();
    Trainer(comm).run(directory, resume);
    comm.close();
  } else {
    shardrec::run(resume ? 3 : 2,
                  [&](shardrec::Comm &comm) { Trainer(comm).run(directory, resume); });
  }
}

// Every thread may call the scorer at any time; this is all that a service needs of the checkpoint.
void serve(const std::string &directory) {
  const shardrec::Scorer scorer(directory);
  const clicks::Batch all = clicks::make_batch(kTestFrom, kTest);
  std::vector<float> scores(kTest);
  const auto score = [&](int64_t first, int64_t size) {
    const clicks::Batch batch = clicks::make_batch(kTestFrom + first, size);
    scorer.predict({.batch_size = size, .values = batch.ids, .lengths = batch.lengths},
                   {batch.dense.data(), size, kDense},
                   shardrec::Vector(scores.data() + first, size));
  };
  std::thread other(score, kTest / 2, kTest / 2);
  score(0, kTest / 2);
  other.join();
  shardrec::Metrics metrics;
  metrics.update(scores, all.labels);
  metrics.compute();
  std::cout << "serving step " << scorer.info().step << ": test AUC " << std::fixed
            << std::setprecision(4) << metrics.metric(SHARDREC_METRIC_AUC) << "\n";
}

}  // namespace

int main(int argc, char **argv) {
  const std::string what = argc == 3 ? argv[1] : "";
  if (what != "train" && what != "resume" && what != "serve") {
    std::cerr << "usage: dlrm_cpp train|resume|serve DIR\n";
    return 2;
  }
  try {
    what == "serve" ? serve(argv[2]) : train(argv[2], what == "resume");
    return 0;
  } catch (const std::exception &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
