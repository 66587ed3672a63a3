#include "saved_model.h"

#include <cstring>
#include <nlohmann/json.hpp>

namespace shardrec::cli::test {
namespace {

std::vector<float> read_part(const Collection& tables, int32_t table, shardrec_table_part part,
                             int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  const shardrec_tensor view = matrix_view(values.data(), rows, columns);
  check(shardrec_collection_read(tables.get(), table, part, 0, rows, &view));
  return values;
}

void add_layers(const Mlp& layers, const std::string& name, SavedModel& model) {
  int32_t count = 0;
  check(shardrec_mlp_parameter_count(layers.get(), &count));
  for (int32_t i = 0; i < count; ++i) {
    shardrec_tensor tensor;
    check(shardrec_mlp_parameter(layers.get(), i, &tensor, nullptr));
    int64_t elements = 1;
    for (int32_t d = 0; d < tensor.ndim; ++d) elements *= tensor.shape[d];
    const auto* data = static_cast<const float*>(tensor.data);
    model[name + "/" + std::to_string(i)].assign(data, data + elements);
  }
}

}  // namespace

RestoredModel restore(shardrec_comm* comm, const std::string& directory) {
  RestoredModel restored;
  Checkpoint checkpoint;
  check(shardrec_checkpoint_create(comm, directory.c_str(), nullptr, checkpoint.out()));
  check(shardrec_checkpoint_open(checkpoint.get(), -1));
  check(shardrec_checkpoint_model(checkpoint.get(), "tables", restored.model.out()));
  Plan plan;
  check(shardrec_plan_collective(comm, restored.model.get(), nullptr, plan.out()));
  check(shardrec_collection_create(comm, restored.model.get(), plan.get(), nullptr,
                                   restored.tables.out()));
  check(shardrec_checkpoint_add_collection(checkpoint.get(), "tables", restored.tables.get()));
  for (const auto& [name, layers] :
       {std::pair("bottom", &restored.bottom), std::pair("top", &restored.top)}) {
    check(shardrec_checkpoint_mlp(checkpoint.get(), name, nullptr, layers->out()));
    check(shardrec_checkpoint_add_mlp(checkpoint.get(), name, layers->get()));
  }
  check(shardrec_checkpoint_load(checkpoint.get(), nullptr));
  return restored;
}

SavedModel saved_model(const std::string& directory) {
  SavedModel saved;
  run_ranks({.ranks = 1}, [&](int, shardrec_comm* comm) {
    const RestoredModel restored = restore(comm, directory);
    char* text = nullptr;
    check(shardrec_model_to_json(restored.model.get(), &text));
    const nlohmann::json model = nlohmann::json::parse(take_text(text));
    int32_t index = 0;
    for (const auto& table : model.at("tables")) {
      const std::string name = table.at("name");
      const int64_t rows = table.at("rows");
      saved[name + "/0"] =
          read_part(restored.tables, index, SHARDREC_TABLE_WEIGHTS, rows, table.at("dim"));
      // Row-wise AdaGrad's sum, what `train` has where nothing else is asked for.
      saved[name + "/1"] = read_part(restored.tables, index, SHARDREC_TABLE_STATE, rows, 1);
      ++index;
    }
    add_layers(restored.bottom, "bottom", saved);
    add_layers(restored.top, "top", saved);
  });
  return saved;
}

bool same_bytes(const SavedModel& a, const SavedModel& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, values] : a) {
    const auto found = b.find(name);
    if (found == b.end() || found->second.size() != values.size()) return false;
    if (std::memcmp(found->second.data(), values.data(), values.size() * sizeof(float)) != 0)
      return false;
  }
  return true;
}

}  // namespace shardrec::cli::test
