// The options of a run to and from the JSON that its checkpoints hold.
#include "train/train_settings.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>

#include "command/numbers.h"
#include "command/user_error.h"

namespace shardrec::cli {
namespace {

// What a file was when the run was saved: one of another name may be the same file, moved.
nlohmann::ordered_json data_json(const TrainOptions& options) {
  auto files = nlohmann::ordered_json::array();
  for (const std::string& path : options.data) {
    std::error_code error;
    const auto bytes = std::filesystem::file_size(path, error);
    files.push_back({{"file", std::filesystem::path(path).filename().string()},
                     {"bytes", error ? uint64_t{0} : uint64_t{bytes}}});
  }
  return files;
}

void require_same_data(const nlohmann::json& saved, const std::string& directory,
                       const TrainOptions& options) {
  const nlohmann::json now = data_json(options);
  const auto text = [](const nlohmann::json& file) {
    return file.at("file").get<std::string>() + " (" +
           with_separators(file.at("bytes").get<int64_t>()) + " bytes)";
  };
  if (saved.size() != now.size()) {
    throw UserError(directory + " was trained with " + std::to_string(saved.size()) +
                    " files of data, and --data names " + std::to_string(now.size()) +
                    ". --load begins a run of its own with the model.");
  }
  for (size_t i = 0; i < saved.size(); ++i) {
    if (saved[i].at("bytes") == now[i].at("bytes")) continue;
    throw UserError(directory + " was trained with " + text(saved[i]) + ", and --data names " +
                    text(now[i]) +
                    ": it would not go on where it stopped. --load begins a run of its own with "
                    "the model.");
  }
}

enum class Role {
  kModel,  // shape of tables and layers: one with the weights
  kOrder,  // of the samples: one with the position
  kFree    // may change when a run goes on
};

// Every option that is remembered, with its name on the command line.
template <typename Options, typename Visit>
void each(Options& o, const Visit& visit) {
  visit("--format", o.format, Role::kOrder);
  visit("--labels", o.labels, Role::kOrder);
  visit("--max-unreadable", o.max_unreadable, Role::kFree);
  visit("--seed", o.seed, Role::kOrder);
  visit("--batch", o.batch, Role::kOrder);
  visit("--dim", o.dim, Role::kModel);
  visit("--arch", o.arch, Role::kModel);
  visit("--cross-layers", o.cross_layers, Role::kModel);
  visit("--cross-rank", o.cross_rank, Role::kModel);
  visit("--bottom", o.bottom, Role::kModel);
  visit("--top", o.top, Role::kModel);
  visit("--layer-norm", o.layer_norm, Role::kModel);
  visit("--dropout", o.dropout, Role::kModel);
  visit("--optimizer", o.optimizer, Role::kModel);
  visit("--dtype", o.dtype, Role::kModel);
  visit("--dense-optimizer", o.dense_optimizer, Role::kModel);
  visit("--epochs", o.epochs, Role::kFree);
  visit("--learning-rate", o.learning_rate, Role::kFree);
  visit("--eps", o.eps, Role::kFree);
  visit("--momentum-scale", o.momentum_scale, Role::kFree);
  visit("--dense-learning-rate", o.dense_learning_rate, Role::kFree);
  visit("--ranks", o.ranks, Role::kFree);
  visit("--ranks-per-node", o.ranks_per_node, Role::kFree);
  visit("--sharding", o.sharding, Role::kFree);
  visit("--sharding-group-size", o.sharding_group_size, Role::kFree);
  visit("--sync-every", o.sync_every, Role::kFree);
  visit("--sync", o.sync, Role::kFree);
  visit("--sync-overlap", o.sync_overlap, Role::kFree);
  visit("--placement", o.placement, Role::kFree);
  visit("--precision", o.precision, Role::kFree);
  visit("--dense", o.dense, Role::kFree);
  visit("--fsdp-strategy", o.fsdp_strategy, Role::kFree);
  visit("--forward-compression", o.forward_compression, Role::kFree);
  visit("--backward-compression", o.backward_compression, Role::kFree);
}

// Those that checkpoints of earlier releases do not have: runs were as by default.
constexpr std::array<std::string_view, 13> kNewOptions{
    "--labels",         "--max-unreadable", "--arch",         "--cross-layers", "--cross-rank",
    "--layer-norm",     "--dropout",        "--precision",    "--sync",         "--sync-overlap",
    "--momentum-scale", "--dense",          "--fsdp-strategy"};

// The value that a run had, also where its checkpoint is older than the option.
nlohmann::json saved_value(const nlohmann::json& json, const char* name) {
  if (json.contains(name) || std::ranges::find(kNewOptions, name) == kNewOptions.end()) {
    return json.at(name);
  }
  nlohmann::json value;
  TrainOptions defaults;
  each(defaults, [&](const char* other, const auto& of_option, Role) {
    if (std::string_view(other) == name) value = of_option;
  });
  return value;
}

std::string shown(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const auto& part : value) text += (text.empty() ? "" : ",") + part.dump();
  return text;
}

}  // namespace

std::string settings_json(const TrainOptions& asked, const Schema& schema) {
  TrainOptions options = asked;
  if (options.ranks_per_node == options.ranks) options.ranks_per_node = 0;  // all, however many
  nlohmann::ordered_json json;
  each(options, [&](const char* name, const auto& value, Role) { json[name] = value; });
  json["data"] = data_json(asked);
  auto& tables = json["tables"] = nlohmann::ordered_json::array();
  for (const Feature& feature : schema.features) {
    tables.push_back({{"name", feature.name}, {"rows", feature.rows}});
  }
  // Names of files need not be UTF-8, and are compared with nothing.
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void take_settings(const std::string& text, const std::string& directory, TakeSettings what,
                   TrainOptions& options) {
  try {
    const nlohmann::json json = nlohmann::json::parse(text);
    each(options, [&](const char* name, auto& value, Role role) {
      if (role != Role::kModel && what != TakeSettings::kRun) return;
      const nlohmann::json saved = saved_value(json, name);
      if (!options.given.contains(name)) {
        saved.get_to(value);
      } else if (role != Role::kFree && what != TakeSettings::kOthers &&
                 nlohmann::json(value) != saved) {
        throw UserError(directory + " was trained with " + name + " " + shown(saved) + "; " + name +
                        " " + shown(value) + " does not go with it.");
      }
    });
    if (what == TakeSettings::kRun && json.contains("data")) {
      require_same_data(json.at("data"), directory, options);
    }
    options.table_rows.clear();
    if (what == TakeSettings::kOthers) return;
    for (const auto& table : json.at("tables")) {
      options.table_rows.push_back(table.at("rows").get<int64_t>());
    }
    const bool sized = options.given.contains("--rows-per-table");
    for (const int64_t rows : options.table_rows) {
      if (rows < 1) throw UserError("a table of no rows");
      if (sized && rows != options.rows_per_table) {
        throw UserError(directory + " has tables of other sizes than --rows-per-table " +
                        std::to_string(options.rows_per_table) + ".");
      }
    }
  } catch (const nlohmann::json::exception& error) {
    throw UserError("The settings in " + directory +
                    " are not those of `shardrec train`: " + error.what());
  }
}

}  // namespace shardrec::cli
