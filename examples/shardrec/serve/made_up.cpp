// Makes the tables and layers on one rank and commits them.
#include "serve/made_up.h"

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <shardrec/shardrec.hpp>

#include "command/user_error.h"
#include "launch/ranks.h"

namespace shardrec::cli {
namespace {

constexpr int64_t kDense = 13;  // columns of the dense input

Mlp make_stack(int64_t seed, int64_t inputs, const std::vector<int64_t>& hidden, int64_t outputs) {
  Mlp stack(inputs, MlpOptions().optimizer("sgd").seed(seed));
  for (const int64_t layer : hidden) stack.add_linear(layer);
  stack.add_linear(outputs, SHARDREC_ACTIVATION_NONE);
  return stack;
}

void commit(Comm& comm, const std::string& directory, const std::vector<BenchTable>& sizes) {
  Model model;
  for (size_t t = 0; t < sizes.size(); ++t) {
    const std::string number = std::to_string(t);
    model.add_feature(model.add_table("table" + number, sizes[t].rows, sizes[t].dim),
                      "feature" + number);
  }
  model.set_optimizer(OptimizerOptions().optimizer("sgd"));
  Collection tables(comm, model, Plan::collective(comm, model));
  Checkpoint checkpoint(comm, directory);
  checkpoint.add("tables", tables);
  const int64_t dim = sizes.front().dim;
  if (!std::all_of(sizes.begin(), sizes.end(),
                   [dim](const BenchTable& size) { return size.dim == dim; })) {
    checkpoint.commit(0);
    return;
  }
  const Interaction interaction(std::ssize(sizes), dim);
  Mlp bottom = make_stack(1, kDense, {64}, dim);
  Mlp top = make_stack(2, interaction.outputs(), {64, 32}, 1);
  checkpoint.add("bottom", bottom);
  checkpoint.add("top", top);
  checkpoint.commit(0);
}

}  // namespace

MadeUpCheckpoint::MadeUpCheckpoint(const std::vector<BenchTable>& tables)
    : directory_((std::filesystem::temp_directory_path() / "shardrec_serve_XXXXXX").string()) {
  if (mkdtemp(directory_.data()) == nullptr) {
    throw UserError("cannot make a temporary folder such as " + directory_ + ".");
  }
  try {
    run_ranks({.ranks = 1}, [&](int, Comm& comm) { commit(comm, directory_, tables); });
  } catch (...) {
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
    throw;
  }
}

MadeUpCheckpoint::~MadeUpCheckpoint() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

}  // namespace shardrec::cli
