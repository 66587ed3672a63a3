// How NAME.json is read, and how the recorded batches are cut for other numbers of ranks.
#include "replay/recorded_case.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

std::vector<double> one_or_many(const nlohmann::json& value) {
  if (value.is_array()) return value.get<std::vector<double>>();
  return {value.get<double>()};
}

CaseOptimizer read_optimizer(const nlohmann::json& object, int64_t steps) {
  CaseOptimizer optimizer;
  for (const auto& [key, value] : object.items()) {
    if (key == "type") {
      optimizer.type = value.get<std::string>();
    } else if (key == "learning_rate") {
      optimizer.learning_rates = one_or_many(value);
    } else if (key == "eps") {
      optimizer.eps = value.get<double>();
    } else if (key == "weight_decay") {
      optimizer.weight_decay = value.get<double>();
    } else if (key == "weight_decay_mode") {
      optimizer.weight_decay_mode = value.get<std::string>();
    } else if (key == "beta1") {
      optimizer.beta1 = value.get<double>();
    } else if (key == "beta2") {
      optimizer.beta2 = value.get<double>();
    } else if (key == "momentum") {
      optimizer.momentum = value.get<double>();
    } else if (key == "eta") {
      optimizer.eta = value.get<double>();
    } else if (key == "max_norm") {
      optimizer.max_norm = value.get<double>();
    } else if (key == "max_gradient") {
      if (object.value("gradient_clipping", true)) optimizer.max_gradient = value.get<double>();
    } else if (key == "rowwise_state") {
      optimizer.shard_statistics = value.get<std::string>() == "shard";
    } else if (key != "gradient_clipping") {
      optimizer.other_settings.push_back(key);
    }
  }
  const auto rates = static_cast<int64_t>(optimizer.learning_rates.size());
  if (optimizer.type.empty() || (rates != 1 && rates != steps)) {
    throw UserError("the optimizer needs a type and one learning_rate, or one per step");
  }
  return optimizer;
}

CaseTable read_table(const nlohmann::json& object) {
  CaseTable table;
  table.name = object.at("name").get<std::string>();
  table.rows = object.at("rows").get<int64_t>();
  table.dim = object.at("dim").get<int64_t>();
  table.dtype = object.at("dtype").get<std::string>();
  table.pooling = object.at("pooling").get<std::string>();
  table.features = object.at("features").get<std::vector<std::string>>();
  table.sharding = object.at("sharding").get<std::string>();
  for (const auto& box : object.value("boxes", nlohmann::json::array())) {
    table.boxes.push_back({box.at("rank").get<int32_t>(), box.at("row").get<int64_t>(),
                           box.at("rows").get<int64_t>(), box.at("col").get<int64_t>(),
                           box.at("cols").get<int64_t>()});
  }
  return table;
}

TorchOptimizer read_torch_optimizer(const nlohmann::json& object) {
  TorchOptimizer optimizer;
  for (const auto& [key, value] : object.items()) {
    if (key == "type") {
      optimizer.type = value.get<std::string>();
    } else if (value.is_number()) {
      optimizer.numbers[key] = value.get<double>();
    } else if (value.is_boolean()) {
      optimizer.numbers[key] = value.get<bool>() ? 1 : 0;
    } else if (key == "betas") {
      const auto betas = value.get<std::array<double, 2>>();
      optimizer.numbers["betas[0]"] = betas[0];
      optimizer.numbers["betas[1]"] = betas[1];
    } else if (!value.is_null()) {
      optimizer.other_arguments.push_back(key);
    }
  }
  if (optimizer.type.empty()) throw UserError("the optimizer needs a type");
  return optimizer;
}

DdpCase read_ddp_case(const nlohmann::json& object) {
  DdpCase ddp;
  ddp.layers = object.at("layers").get<std::vector<int64_t>>();
  ddp.gradient_as_bucket_view = object.value("gradient_as_bucket_view", false);
  ddp.micro_steps = object.value("micro_steps", int64_t{1});
  ddp.ranks_start_apart_by = object.value("ranks_start_apart_by", 0.0F);
  ddp.optimizer = read_torch_optimizer(object.at("optimizer"));
  const double megabytes = object.value("bucket_cap_mb", 25.0);
  const auto fits = [](int64_t width) { return width >= 1 && width <= 65536; };
  if (ddp.layers.size() < 2 || !std::ranges::all_of(ddp.layers, fits) || ddp.micro_steps < 1 ||
      !(megabytes > 0 && megabytes < 1e9)) {
    throw UserError(
        "layers are two or more numbers from 1 to 65536, micro_steps is 1 or more, bucket_cap_mb "
        "more than 0");
  }
  ddp.bucket_bytes = std::max<int64_t>(1, static_cast<int64_t>(megabytes * (1 << 20)));
  return ddp;
}

// What cases of tables and of dense parameters have in common.
RecordedCase read_steps(const nlohmann::json& object) {
  RecordedCase recorded;
  recorded.world_size = object.at("world_size").get<int>();
  recorded.local_world_size = object.at("local_world_size").get<int>();
  recorded.batch_size = object.at("batch_size").get<int64_t>();
  recorded.steps = object.at("steps").get<int64_t>();
  recorded.rtol = object.at("rtol").get<double>();
  recorded.atol = object.at("atol").get<double>();
  return recorded;
}

RecordedCase read_dense_case(const nlohmann::json& object) {
  RecordedCase recorded = read_steps(object);
  recorded.sharding_group_size = recorded.world_size;
  recorded.ddp = read_ddp_case(object);
  if (recorded.world_size < 1 || recorded.local_world_size < 1 || recorded.batch_size < 1 ||
      recorded.batch_size > std::numeric_limits<int32_t>::max() || recorded.steps < 1 ||
      recorded.local_world_size > recorded.world_size) {
    throw UserError("a size is below 1 or local_world_size exceeds world_size");
  }
  return recorded;
}

RecordedCase read_table_case(const nlohmann::json& object) {
  RecordedCase recorded = read_steps(object);
  recorded.sharding_group_size = object.value("sharding_group_size", recorded.world_size);
  if (recorded.replicas()) {
    recorded.placement = object.at("placement").get<std::string>();
    const nlohmann::json& sync = object.at("sync");
    recorded.sync_after = sync.at("after_steps").get<std::vector<int64_t>>();
    if (!sync.at("optimizer_state").get<bool>()) {
      throw UserError("sync leaves optimizer states alone; they are averaged with the weights");
    }
  }
  const auto reduction = object.at("gradient_reduction").get<std::string>();
  if (reduction != "mean" && reduction != "sum") {
    throw UserError("gradient_reduction is '" + reduction + "', not mean or sum");
  }
  recorded.mean_gradients = reduction == "mean";
  recorded.optimizer = read_optimizer(object.at("optimizer"), recorded.steps);
  for (const auto& table : object.at("tables")) recorded.tables.push_back(read_table(table));
  if (recorded.world_size < 1 || recorded.local_world_size < 1 || recorded.batch_size < 0 ||
      recorded.steps < 0 || recorded.local_world_size > recorded.world_size ||
      recorded.sharding_group_size < 1 || recorded.world_size % recorded.sharding_group_size != 0) {
    throw UserError(
        "a size is negative, local_world_size exceeds world_size or sharding_group_size does not "
        "divide it");
  }
  return recorded;
}

RecordedCase read_case(const nlohmann::json& object) {
  if (!object.contains("kind")) return read_table_case(object);
  const auto kind = object.at("kind").get<std::string>();
  if (kind != "ddp") throw UserError("kind is '" + kind + "', not ddp; tables have none");
  return read_dense_case(object);
}

}  // namespace

int64_t RecordedCase::features() const {
  int64_t count = 0;
  for (const CaseTable& table : tables) count += static_cast<int64_t>(table.features.size());
  return count;
}

int64_t RecordedCase::width() const {
  int64_t columns = 0;
  for (const CaseTable& table : tables)
    columns += table.dim * static_cast<int64_t>(table.features.size());
  return columns;
}

std::string case_arrays_path(const std::string& path) {
  return std::filesystem::path(path).replace_extension(".safetensors").string();
}

std::vector<RecordedCase> read_cases(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError("Cannot read " + path + ".");
  std::string name = "the file";
  try {
    const nlohmann::json document = nlohmann::json::parse(file);
    if (document.at("format") != "shardrec-cases-1") {
      throw UserError("format is not shardrec-cases-1");
    }
    std::vector<RecordedCase> cases;
    for (const auto& object : document.at("cases")) {
      name = object.at("name").get<std::string>();
      cases.push_back(read_case(object));
      cases.back().name = name;
    }
    return cases;
  } catch (const nlohmann::json::exception& problem) {
    throw UserError(path + ", " + name + ": " + problem.what());
  } catch (const UserError& problem) {
    throw UserError(path + ", " + name + ": " + problem.what() + ".");
  }
}

CaseStep::CaseStep(const RecordedCase& recorded, const Safetensors& arrays, int64_t step)
    : features_(recorded.features()), width_(recorded.width()), batch_(recorded.batch_size) {
  for (int rank = 0; rank < recorded.world_size; ++rank) {
    const std::string prefix =
        recorded.name + "/rank" + std::to_string(rank) + "/step" + std::to_string(step) + "/";
    RankData data;
    data.lengths = arrays.integers(prefix + "lengths", features_ * batch_);
    data.bag_start.push_back(0);
    for (const int64_t length : data.lengths) {
      if (length < 0) throw UserError(prefix + "lengths has a negative length.");
      data.bag_start.push_back(data.bag_start.back() + static_cast<size_t>(length));
    }
    const auto ids = static_cast<int64_t>(data.bag_start.back());
    data.values = arrays.integers(prefix + "values", ids);
    if (arrays.has(prefix + "weights")) data.weights = arrays.floats(prefix + "weights", ids);
    data.gradient = arrays.floats(prefix + "grad", batch_ * width_);
    data.out = arrays.floats(prefix + "out", batch_ * width_);
    ranks_.push_back(std::move(data));
  }
}

CaseStep::Part CaseStep::part(int64_t first, int64_t last) const {
  Part part;
  const auto append = [](auto& to, const auto& from, size_t begin, size_t count) {
    if (from.empty()) return;
    const auto start = from.begin() + static_cast<std::ptrdiff_t>(begin);
    to.insert(to.end(), start, start + static_cast<std::ptrdiff_t>(count));
  };
  for (int64_t feature = 0; feature < features_; ++feature) {
    for (int64_t sample = first; sample < last; ++sample) {
      const RankData& rank = ranks_[static_cast<size_t>(sample / batch_)];
      const auto bag = static_cast<size_t>(feature * batch_ + sample % batch_);
      const auto length = static_cast<size_t>(rank.lengths[bag]);
      part.lengths.push_back(rank.lengths[bag]);
      append(part.values, rank.values, rank.bag_start[bag], length);
      append(part.weights, rank.weights, rank.bag_start[bag], length);
    }
  }
  const auto width = static_cast<size_t>(width_);
  for (int64_t sample = first; sample < last; ++sample) {
    const RankData& rank = ranks_[static_cast<size_t>(sample / batch_)];
    const size_t row = static_cast<size_t>(sample % batch_) * width;
    append(part.gradient, rank.gradient, row, width);
    append(part.out, rank.out, row, width);
  }
  return part;
}

}  // namespace shardrec::cli
