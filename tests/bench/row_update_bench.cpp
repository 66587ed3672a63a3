// One step of every optimizer on ascending random rows of a table that no cache holds, each touched
// by a few bags.
#include <array>

#include "compute/cpu/kernels/dispatch.h"
#include "compute/kernels.h"
#include "measured.h"

namespace shardrec::bench {
namespace {

using compute::Element;
using compute::OptimizerKind;

// Of touched rows: they push each other out of the cache from one iteration to the next.
constexpr size_t kTouchedBytes = size_t{48} << 20;
constexpr int64_t kOccurrences = 2;  // of each
constexpr int64_t kBags = 4096;
constexpr int64_t kBagsPerBlock = 256;

struct Shape {
  OptimizerKind kind;
  Element element;
  int64_t width;
  bool stochastic = false;
};

std::string name_of(OptimizerKind kind) {
  constexpr std::array<const char*, compute::kRowOptimizerKinds> kNames{"sgd",
                                                                        "adagrad",
                                                                        "rowwise_adagrad",
                                                                        "adam",
                                                                        "partial_rowwise_adam",
                                                                        "lamb",
                                                                        "partial_rowwise_lamb",
                                                                        "lars_sgd"};
  return kNames[static_cast<size_t>(kind)];
}

void row_update(benchmark::State& state, const Shape& shape) {
  const compute::StateNeeds needs = compute::state_needs(shape.kind);
  // The states of Adam are twice the table: fewer rows, so that all fit into little memory.
  const int64_t table_rows = std::min<int64_t>(rows_of_table(shape.width, shape.element),
                                               rows_of_table(shape.width, Element::kFloat32));
  const auto row_bytes = static_cast<int64_t>(compute::element_bytes(shape.element)) * shape.width;
  std::vector<int32_t> picked =
      random_rows(table_rows, kTouchedBytes / static_cast<size_t>(row_bytes));
  std::sort(picked.begin(), picked.end());
  picked.erase(std::unique(picked.begin(), picked.end()), picked.end());
  const std::vector<int64_t> rows(picked.begin(), picked.end());
  const auto unique = static_cast<int64_t>(rows.size());

  std::vector<int64_t> run{0};
  std::vector<uint32_t> bags;
  std::mt19937_64 random(11);
  for (int64_t u = 0; u < unique; ++u) {
    std::array<uint32_t, kOccurrences> of_row{};
    for (uint32_t& bag : of_row) bag = static_cast<uint32_t>(random() % kBags);
    std::sort(of_row.begin(), of_row.end());
    bags.insert(bags.end(), of_row.begin(), of_row.end());
    run.push_back(run.back() + kOccurrences);
  }
  Numbers gradients(static_cast<size_t>(kBags * shape.width) * sizeof(float));
  std::vector<const float*> gradient_rows;
  std::vector<uint32_t> blocks;
  for (int64_t b = 0; b < kBags; ++b) {
    gradient_rows.push_back(gradients.floats() + b * shape.width);
    blocks.push_back(static_cast<uint32_t>(b / kBagsPerBlock));
  }

  std::vector<Numbers> states;
  std::vector<float*> matrices;
  std::vector<float*> row_values;
  states.reserve(static_cast<size_t>(needs.matrices + needs.row_values));
  for (int m = 0; m < needs.matrices; ++m) {
    states.emplace_back(static_cast<size_t>(table_rows * shape.width) * sizeof(float));
    matrices.push_back(states.back().floats());
  }
  for (int v = 0; v < needs.row_values; ++v) {
    states.emplace_back(static_cast<size_t>(table_rows) * sizeof(float));
    row_values.push_back(states.back().floats());
  }
  const compute::ColumnRange columns{0, shape.width};
  const compute::RowUpdate job{
      .table = table().data(),
      .element = shape.element,
      .stride = static_cast<size_t>(shape.width),
      .width = shape.width,
      .rows = rows.data(),
      .run = run.data(),
      .bags = bags.data(),
      .gradients = gradient_rows.data(),
      .blocks = blocks.data(),
      .step = {.kind = shape.kind,
               .learning_rate = 1e-6F,  // the numbers stay ordinary however long it runs
               .eps = 1e-8F,
               .beta1 = 0.9F,
               .beta2 = 0.999F,
               .one_minus_beta1 = 0.1F,
               .one_minus_beta2 = 0.001F,
               .momentum = 0.9F,
               .eta = 0.001F},
      .rounding = {.stochastic = shape.stochastic, .seed = 1, .step = 1, .table_key = 1},
      .matrices = matrices.data(),
      .state = row_values.data(),
      .columns = &columns,
      .statistics = 1};
  core::Scratch scratch;
  scratch.resize(compute::row_update_scratch_bytes(shape.width));
  for (auto _ : state) {
    compute::cpu_kernels().row_update(job, 0, unique, scratch.data());
    benchmark::ClobberMemory();
  }
  // Rows and states read and written, gradients (from the cache) read once each.
  const int64_t state_bytes = 4 * (needs.matrices * shape.width + needs.row_values);
  state.SetBytesProcessed(state.iterations() * unique * 2 * (row_bytes + state_bytes));
  state.SetItemsProcessed(state.iterations() * unique);
}

void add(const Shape& shape) {
  const std::string name = "row_update/" + name_of(shape.kind) + "/" +
                           bench::name_of(shape.element) + (shape.stochastic ? "/stochastic" : "") +
                           "/columns:" + std::to_string(shape.width);
  benchmark::RegisterBenchmark(name.c_str(),
                               [shape](benchmark::State& state) { row_update(state, shape); });
}

}  // namespace

void register_row_update() {
  for (size_t k = 0; k < compute::kRowOptimizerKinds; ++k) {
    const auto kind = static_cast<OptimizerKind>(k);
    for (const Element element : kElements) add({kind, element, 64});
    if (kind == OptimizerKind::kSgd || kind == OptimizerKind::kRowwiseAdagrad) {
      for (const int64_t width : {16, 32, 128, 256}) add({kind, Element::kFloat32, width});
      for (const int64_t width : {16, 64}) add({kind, Element::kBfloat16, width, true});
    }
  }
}

}  // namespace shardrec::bench
