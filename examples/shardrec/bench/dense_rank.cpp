// A stack of layers on one rank, its gradients averaged over the ranks, and one timed step.
#include "bench/dense_rank.h"

#include <numeric>

#include "bench/bench_clock.h"
#include "data/counter_random.h"
#include "data/hash_number.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

Mlp make_layers(const DenseBenchOptions& options, int64_t device) {
  MlpOptions settings;
  settings.optimizer(options.optimizer)
      .learning_rate(options.learning_rate)
      .seed(static_cast<int64_t>(options.seed))
      .threads(options.threads)
      .precision(options.precision)
      .device(device);
  Mlp layers(options.widths.front(), settings);
  for (size_t i = 1; i < options.widths.size(); ++i) {
    const bool last = i + 1 == options.widths.size();
    layers.add_linear(options.widths[i],
                      last ? SHARDREC_ACTIVATION_NONE : SHARDREC_ACTIVATION_RELU);
  }
  return layers;
}

std::optional<Ddp> make_ddp(const DenseBenchOptions& options, Comm& comm) {
  if (options.dense != "ddp") return std::nullopt;
  DdpOptions settings;
  if (options.ddp_thread) settings.thread(*options.ddp_thread);
  return Ddp(comm, settings);
}

std::optional<Fsdp> make_fsdp(const DenseBenchOptions& options, Comm& comm) {
  if (options.dense != "fsdp") return std::nullopt;
  Fsdp set(comm, FsdpOptions()
                     .strategy(options.fsdp_strategy)
                     .prefetch(options.fsdp_prefetch)
                     .threads(options.threads));
  set.set_optimizer(
      OptimizerOptions().optimizer(options.optimizer).learning_rate(options.learning_rate));
  return set;
}

}  // namespace

double DenseStep::whole() const { return std::accumulate(parts.begin(), parts.end(), 0.0); }

DenseRank::DenseRank(const DenseBenchOptions& options, Comm& comm, int rank)
    : comm_(comm),
      inputs_(options.widths.front()),
      outputs_(options.widths.back()),
      size_(slice_of(options.batch, options.ranks, rank).size()),
      divisor_(static_cast<double>(options.batch * outputs_)),
      ranks_(options.ranks),
      overlap_(options.overlap),
      device_(options.layers_on.device_of(group_of(options), rank)),
      layers_(make_layers(options, device_)),
      ddp_(make_ddp(options, comm)),
      fsdp_(make_fsdp(options, comm)),
      out_(static_cast<size_t>(size_ * outputs_)),
      gradient_(out_.size()) {
  add_parameters();
  make_batches(options, slice_of(options.batch, options.ranks, rank).first);
}

void DenseRank::add_parameters() {
  const int32_t count = layers_.info().parameters;
  for (int32_t i = 0; i < count; ++i) parameters_ += layers_.parameter(i).value.elements();
  if (fsdp_) {
    fsdp_->add("stack", layers_);
    return fsdp_->commit();
  }
  ddp_->add("stack", layers_);
  ddp_->commit();
}

// Inputs are normal; the targets are columns of them, which layers can learn.
void DenseRank::make_batches(const DenseBenchOptions& options, int64_t first) {
  for (int b = 0; b < options.batches; ++b) {
    const uint64_t seed = hash_number(options.seed, static_cast<uint64_t>(b));
    Batch& batch = batches_.emplace_back(device_);
    std::vector<float> inputs;
    for (int64_t sample = first; sample < first + size_; ++sample) {
      CounterRandom bits(hash_number(seed, static_cast<uint64_t>(sample)));
      const size_t start = inputs.size();
      for (int64_t i = 0; i < inputs_; ++i) {
        inputs.push_back(static_cast<float>(normal_real(bits.next())));
      }
      for (int64_t i = 0; i < outputs_; ++i) {
        batch.targets.push_back(inputs[start + static_cast<size_t>(i % inputs_)]);
      }
    }
    copy(batch.inputs.matrix(size_, inputs_), Matrix(inputs.data(), size_, inputs_));
  }
}

void DenseRank::compute_loss(const std::vector<float>& targets) {
  // The exchange takes the mean over ranks: with their number the sum over all samples is what stays.
  const auto scale = static_cast<float>(2 * ranks_ / divisor_);
  double sum = 0;
  for (size_t i = 0; i < out_.size(); ++i) {
    const float error = out_[i] - targets[i];
    sum += static_cast<double>(error) * static_cast<double>(error);
    gradient_[i] = scale * error;
  }
  loss_ = sum / divisor_;
}

DenseStep DenseRank::step(int64_t number) {
  Batch& batch = batches_[static_cast<size_t>(number) % batches_.size()];
  const Matrix inputs = batch.inputs.matrix(size_, inputs_);
  const Matrix out(out_.data(), size_, outputs_);
  const Matrix gradient(gradient_.data(), size_, outputs_);
  DenseStep times;
  comm_.barrier();

  const double cpu = bench_cpu();
  double before = bench_now();
  size_t part = 0;
  const auto lap = [&] {
    const double now = bench_now();
    times.parts[part++] = now - before;
    before = now;
  };
  if (fsdp_) fsdp_->begin();
  layers_.forward(inputs, out);
  lap();
  compute_loss(batch.targets);
  lap();
  if (overlap_ && ddp_) ddp_->begin();
  layers_.backward(gradient);  // each layer's gradients travel while the next one is computed
  lap();
  if (fsdp_) {
    fsdp_->end();
    fsdp_->wait();
  } else if (overlap_) {
    ddp_->end();
    ddp_->wait();
  } else {
    ddp_->all_reduce();
  }
  lap();
  if (fsdp_) {
    fsdp_->step();
    fsdp_->zero_gradients();
  } else {
    layers_.step();
  }
  if (device_ >= 0) (void)layers_.parameter(0);  // waits for the device
  lap();
  times.cpu = bench_cpu() - cpu;
  return times;
}

}  // namespace shardrec::cli
