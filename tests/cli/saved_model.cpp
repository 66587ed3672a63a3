#include "saved_model.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "support/one_nan.h"

namespace shardrec::cli::test {
namespace {

std::vector<float> read_part(Collection& tables, int32_t table, shardrec_table_part part,
                             int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  tables.read_range(table, part, 0, rows, {values.data(), rows, columns});
  return values;
}

void add_layers(Mlp& layers, const std::string& name, SavedModel& model) {
  for (int32_t i = 0; i < layers.info().parameters; ++i) {
    const Tensor value = layers.parameter(i).value;
    const auto* data = value.data<const float>();
    model[name + "/" + std::to_string(i)].assign(data, data + value.elements());
  }
}

}  // namespace

RestoredModel restore(Comm& comm, const std::string& directory) {
  Checkpoint checkpoint(comm, directory);
  checkpoint.open();
  Model model = checkpoint.model("tables");
  Collection tables(comm, model, Plan::collective(comm, model));
  const bool is_dcn = checkpoint.contents_json().find("\"over\"") != std::string::npos;
  const std::string top = is_dcn ? "over" : "top";
  RestoredModel restored{std::move(model), std::move(tables), checkpoint.mlp("bottom"),
                         checkpoint.mlp(top)};
  checkpoint.add("tables", restored.tables);
  checkpoint.add("bottom", restored.bottom);
  checkpoint.add(top, restored.top);
  checkpoint.load();
  return restored;
}

SavedModel saved_model(const std::string& directory) {
  SavedModel saved;
  run_ranks({.ranks = 1}, [&](int, Comm& comm) {
    RestoredModel restored = restore(comm, directory);
    const nlohmann::json model = nlohmann::json::parse(restored.model.to_json());
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
    if (!shardrec::test::same_numbers(found->second.data(), values.data(), values.size()))
      return false;
  }
  return true;
}

}  // namespace shardrec::cli::test
