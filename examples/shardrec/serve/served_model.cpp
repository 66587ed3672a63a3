// Reads the model's JSON and asks for the columns of its outputs.
#include "serve/served_model.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace shardrec::cli {

ServedModel::ServedModel(const Scorer& scorer) {
  const Model model = scorer.model();
  const nlohmann::json json = nlohmann::json::parse(model.to_json());
  std::map<std::string, BenchTable> by_name;
  for (const auto& table : json.at("tables")) {
    const BenchTable size{table.at("rows"), table.at("dim")};
    by_name[table.at("name")] = size;
    ++tables;
    rows += size.rows;
    elements += size.rows * size.dim;
    weight_bytes += size.rows * size.dim * (table.at("dtype") == "float32" ? 4 : 2);
  }
  for (const auto& feature : json.at("features")) {
    features.push_back(by_name.at(feature.at("table")));
    const auto index = static_cast<int32_t>(features.size() - 1);
    if (feature.at("pooling") == "none") {
      sequences.push_back({features.size() - 1, features.back().dim});
    } else {
      width = model.feature(index).width;
    }
  }
  const shardrec_served info = scorer.info();
  dense_columns = info.dense_columns;
  scores = info.scores;
}

}  // namespace shardrec::cli
