// The description of generated data, FILE.meta.json, written and read.
#include "data/planted_meta.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "command/user_error.h"
#include "data/line_sink.h"

namespace shardrec::cli {
namespace {

constexpr const char* kFormat = "shardrec-planted-1";

}  // namespace

std::string planted_meta_path(const std::string& data_path) { return data_path + ".meta.json"; }

void write_planted_meta(const std::string& path, uint64_t seed, const PlantedClicks& clicks,
                        const PlantedResult& result) {
  const PlantedParameters& parameters = clicks.parameters();
  nlohmann::ordered_json json;
  json["format"] = kFormat;
  json["rows"] = result.rows;
  json["seed"] = seed;
  json["click_rate"] = result.click_rate;
  json["best_auc"] = result.best_auc;
  json["best_auc_test"] = result.best_auc_test;
  json["zipf"] = parameters.zipf;
  json["missing"] = parameters.missing;
  json["value_deviation"] = parameters.value_deviation;
  json["dense_deviation"] = parameters.dense_deviation;
  json["intercept"] = clicks.intercept();
  json["tokens"] =
      "value v of column k: low 32 bits of shardrec_hash64(k, v as 8 bytes, lowest first)";
  for (const auto& pair : parameters.pairs) {
    json["pairs"].push_back(
        {{"first", pair.first}, {"second", pair.second}, {"coefficient", pair.coefficient}});
  }
  for (const auto& dense : clicks.dense()) {
    json["dense"].push_back({{"mu", dense.mu},
                             {"mean", dense.mean},
                             {"deviation", dense.deviation},
                             {"weight", dense.weight}});
  }
  for (const auto& column : clicks.columns()) {
    json["columns"].push_back({{"values", column.weights.size()}, {"weights", column.weights}});
  }
  std::ofstream file(path, std::ios::binary);
  file << json.dump() << "\n";
  file.close();
  if (!file) throw UserError("Cannot write " + path + ".");
}

std::optional<PlantedMeta> read_planted_meta(const std::string& data_path) {
  std::string path = planted_meta_path(data_path);
  std::error_code error;
  if (!std::filesystem::exists(path, error) && is_gzip_name(data_path)) {
    path = planted_meta_path(without_gzip_name(data_path));  // compressed after it was generated
  }
  if (!std::filesystem::exists(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  const auto json = nlohmann::json::parse(file, nullptr, false);
  try {
    if (json.at("format") != kFormat || json.at("columns").size() != kCriteoIds)
      throw UserError("");
    PlantedMeta meta;
    meta.seed = json.at("seed").get<uint64_t>();
    meta.rows = json.at("rows").get<int64_t>();
    for (const auto& column : json.at("columns")) {
      meta.values.push_back(column.at("values").get<int64_t>());
      if (meta.values.back() < 1 || meta.values.back() > (int64_t{1} << 32)) throw UserError("");
    }
    if (meta.rows < 0) throw UserError("");
    return meta;
  } catch (const std::exception&) {
    throw UserError(
        path + " is not what `shardrec generate` writes; move it away or generate the data again.");
  }
}

}  // namespace shardrec::cli
