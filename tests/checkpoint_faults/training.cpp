#include "training.h"

#include <map>
#include <stdexcept>
#include <thread>
#include <utility>

namespace shardrec::checkpoint_faults {
namespace {

constexpr int64_t kBatch = 4;
constexpr int kTables = 3;
constexpr int64_t kRows[kTables] = {37, 11, 23};
constexpr int64_t kDim[kTables] = {8, 6, 4};
constexpr int64_t kDims = 8 + 6 + 4;
constexpr size_t kReferenceSteps = 7;

Options table_options(shardrec_dtype dtype) {
  Options options(SHARDREC_OPTIONS_TABLE);
  options.set(SHARDREC_OPTION_DTYPE, dtype);
  return options;
}

Options optimizer_options(shardrec_optimizer optimizer) {
  Options options(SHARDREC_OPTIONS_OPTIMIZER);
  options.set(SHARDREC_OPTION_OPTIMIZER, optimizer);
  options.set(SHARDREC_OPTION_LEARNING_RATE, 0.05);
  return options;
}

Model make_model() {
  Model model;
  const Options bfloat = table_options(SHARDREC_BFLOAT16);
  const Options half = table_options(SHARDREC_FLOAT16);
  model.add_feature(model.add_table("user", kRows[0], kDim[0]), "user_id");
  model.add_feature(model.add_table("item", kRows[1], kDim[1], bfloat), "item_id");
  model.add_feature(model.add_table("tag", kRows[2], kDim[2], half), "tag_id");
  model.set_optimizer(optimizer_options(SHARDREC_OPTIMIZER_ADAM));
  const Options rowwise = optimizer_options(SHARDREC_OPTIMIZER_ROWWISE_ADAGRAD);
  const Options plain = optimizer_options(SHARDREC_OPTIMIZER_SGD);
  model.set_optimizer(1, rowwise);
  model.set_optimizer(2, plain);
  return model;
}

Plan make_plan(const Model& model, int ranks) {
  Options options(SHARDREC_OPTIONS_PLAN);
  options.set(SHARDREC_OPTION_SHARDING, SHARDREC_SHARDING_ROW_WISE);
  return Plan(model, Topology(ranks), options);
}

Mlp make_layers() {
  Options options(SHARDREC_OPTIONS_MLP);
  options.set(SHARDREC_OPTION_OPTIMIZER, SHARDREC_OPTIMIZER_ADAM);
  options.set(SHARDREC_OPTION_THREADS, 1);
  options.set(SHARDREC_OPTION_SEED, 5);
  Mlp layers(kDims, options);
  layers.add_linear(5).add_linear(1, SHARDREC_ACTIVATION_NONE);
  return layers;
}

shardrec_tensor tensor_of(std::vector<float>& values) {
  shardrec_tensor tensor{};
  check(shardrec_tensor_vector(values.data(), SHARDREC_FLOAT32, static_cast<int64_t>(values.size()),
                               &tensor));
  return tensor;
}

}  // namespace

Training::Training(Comm& comm, const Shape& shape, const std::string& root, int64_t keep_last)
    : comm_(comm) {
  const Model model = make_model();
  const Plan plan = make_plan(model, shape.sharding);
  if (shape.ranks != shape.sharding) {
    mesh_.emplace(comm, shape.sharding);
    tables_.emplace(comm, *mesh_, model, plan);
  } else {
    tables_.emplace(comm, model, plan);
  }
  lookup_.emplace(*tables_);
  layers_.emplace(make_layers());
  layers_ddp_.emplace(comm);
  for (int32_t p = 0; p < layers_->info().parameters; ++p) {
    const auto parameter = layers_->parameter(p);
    layers_ddp_->add("layer" + std::to_string(p), parameter.value, parameter.gradient);
  }
  layers_ddp_->commit();
  bias_ddp_.emplace(comm);
  bias_ddp_->add("bias", tensor_of(bias_), tensor_of(bias_gradient_));
  bias_ddp_->commit();
  Options options(SHARDREC_OPTIONS_CHECKPOINT);
  options.set(SHARDREC_OPTION_KEEP_LAST, keep_last);
  checkpoint_.emplace(comm, root, options);
  checkpoint_->add("tables", *tables_);
  checkpoint_->add("layers", *layers_);
  checkpoint_->add("host", *bias_ddp_);
}

bool Training::load(int64_t step) {
  if (!checkpoint_->try_open(step)) return false;
  checkpoint_->load();
  steps_ = checkpoint_->info().step;
  return true;
}

bool Training::resume(int64_t step) {
  if (!load(step)) return false;
  std::vector<int64_t> position(2);
  checkpoint_->get_tensor("position", comm_.rank(), position);
  if (position[0] != steps_ || position[1] != 100 + comm_.rank() || tables_->step() != steps_) {
    throw std::runtime_error("checkpoint " + std::to_string(steps_) + " holds position " +
                             std::to_string(position[0]) + ", " + std::to_string(position[1]) +
                             " and tables of step " + std::to_string(tables_->step()));
  }
  return true;
}

void Training::train() {
  const int64_t number = steps_++;
  std::vector<int64_t> values;
  std::vector<int32_t> lengths;
  for (int f = 0; f < kTables; ++f) {
    for (int64_t b = 0; b < kBatch; ++b) {
      lengths.push_back(static_cast<int32_t>((number + b) % 3));
      for (int32_t i = 0; i < lengths.back(); ++i) {
        values.push_back((number * 7 + b * 5 + i * 3 + comm_.rank() * 11 + f) % kRows[f]);
      }
    }
  }
  std::vector<float> pooled(kBatch * kDims);
  lookup_->begin(kBatch, values, lengths);
  lookup_->forward(0, {pooled.data(), kBatch, kDims});
  std::vector<float> out(kBatch);
  layers_->forward({pooled.data(), kBatch, kDims}, {out.data(), kBatch, 1});
  std::vector<float> gradient(kBatch);
  for (int64_t b = 0; b < kBatch; ++b) {
    gradient[static_cast<size_t>(b)] =
        out[static_cast<size_t>(b)] - 0.1F * static_cast<float>(b + number % 4) + bias_[0];
  }
  bias_gradient_[0] = gradient[0] * 0.5F;
  std::vector<float> back(kBatch * kDims);
  layers_->backward({gradient.data(), kBatch, 1}, {back.data(), kBatch, kDims});
  layers_ddp_->all_reduce();
  bias_ddp_->all_reduce();
  layers_->step();
  bias_[0] -= 0.1F * bias_gradient_[0];
  lookup_->set_gradient(0, {back.data(), kBatch, kDims});
  lookup_->backward();
  tables_->sync_replicas();
}

void Training::commit() {
  checkpoint_->set_tensor("position", std::vector<int64_t>{steps_, 100 + comm_.rank()});
  checkpoint_->commit(steps_);
}

void Training::commit_delta() {
  checkpoint_->set_tensor("position", std::vector<int64_t>{steps_, 100 + comm_.rank()});
  checkpoint_->commit_delta(steps_);
}

void Training::commit_while_training() {
  checkpoint_->set_tensor("position", std::vector<int64_t>{steps_, 100 + comm_.rank()});
  checkpoint_->commit_begin(steps_);
  train();
  checkpoint_->commit_wait();
}

void Training::commit_delta_while_training() {
  checkpoint_->set_tensor("position", std::vector<int64_t>{steps_, 100 + comm_.rank()});
  checkpoint_->commit_delta_begin(steps_);
  train();
  checkpoint_->commit_wait();
}

uint64_t Training::digest() {
  std::vector<float> all;
  const auto read = [&](int32_t table, shardrec_table_part part, int64_t width) {
    std::vector<float> rows(static_cast<size_t>(kRows[table] * width));
    tables_->read_range(table, part, 0, kRows[table], {rows.data(), kRows[table], width});
    all.insert(all.end(), rows.begin(), rows.end());
  };
  for (int32_t table = 0; table < kTables; ++table) {
    read(table, SHARDREC_TABLE_WEIGHTS, kDim[table]);
  }
  read(0, SHARDREC_TABLE_STATE, kDim[0]);
  read(0, SHARDREC_TABLE_STATE_2, kDim[0]);
  read(1, SHARDREC_TABLE_STATE, 1);
  for (int32_t p = 0; p < layers_->info().parameters; ++p) {
    const shardrec_tensor value = *layers_->parameter(p).value.get();
    int64_t count = 1;
    for (int d = 0; d < value.ndim; ++d) count *= value.shape[d];
    const auto* data = static_cast<const float*>(value.data);
    all.insert(all.end(), data, data + count);
  }
  all.push_back(bias_[0]);
  return hash64({reinterpret_cast<const char*>(all.data()), all.size() * sizeof(float)},
                static_cast<uint64_t>(tables_->step()));
}

bool Training::filled_in_part() {
  std::string sentence;
  const shardrec_status status = status_of([&] { digest(); }, &sentence);
  return status == SHARDREC_INVALID_STATE && sentence.find("filled in part") != std::string::npos;
}

const std::vector<uint64_t>& reference_digests(const Shape& shape) {
  static std::map<std::pair<int, int>, std::vector<uint64_t>> known;
  std::vector<uint64_t>& digests = known[{shape.ranks, shape.sharding}];
  if (!digests.empty()) return digests;
  digests.resize(kReferenceSteps);
  const std::string thrown = run_ranks(shape.ranks, [&](Comm& comm, int rank) {
    Training training(comm, shape, "never written", 0);
    for (size_t step = 0; step < kReferenceSteps; ++step) {
      const uint64_t digest = training.digest();
      if (rank == 0) digests[step] = digest;
      training.train();
    }
  });
  if (!thrown.empty()) throw std::runtime_error(thrown);
  return digests;
}

std::string run_ranks(int ranks, const std::function<void(Comm&, int)>& body) {
  Local group(ranks);
  std::vector<std::string> thrown(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      Comm comm(group, rank);
      try {
        body(comm, rank);
      } catch (const std::exception& error) {
        thrown[static_cast<size_t>(rank)] =
            "rank " + std::to_string(rank) + ": " + error.what() + "\n";
        comm.abort("a rank has thrown");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string all;
  for (const std::string& text : thrown) all += text;
  return all;
}

shardrec_status status_of(const std::function<void()>& call, std::string* sentence) {
  try {
    call();
  } catch (const Error& error) {
    if (sentence != nullptr) *sentence = error.what();
    return error.status();
  }
  return SHARDREC_OK;
}

}  // namespace shardrec::checkpoint_faults
