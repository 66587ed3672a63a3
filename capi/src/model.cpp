#include "shardrec/model.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guard.h"
#include "objects/model_object.h"
#include "options.h"
#include "plan/find.h"

using namespace shardrec::capi;
namespace core = shardrec::core;
namespace plan = shardrec::plan;

namespace {

void count(const shardrec_model* model, int32_t* out, size_t (*of)(const plan::Model&)) {
  const auto use = enter(model, Access::kExclusive);
  require_out(out, "out");
  *out = static_cast<int32_t>(of(*use));
}

}  // namespace

shardrec_status shardrec_model_create(const shardrec_options* options, shardrec_model** out) {
  return guard([&] {
    require_out(out, "out");
    refuse_options(options, "models");
    create(out, std::make_shared<plan::Model>());
  });
}

void shardrec_model_destroy(shardrec_model** model) { destroy(model); }

shardrec_status shardrec_model_add_table(shardrec_model* model, const char* name, int64_t rows,
                                         int64_t dim, const shardrec_options* options,
                                         int32_t* out_table) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const std::string_view text = require_text(name, "name");
    const Options values = read_options(options, SHARDREC_OPTIONS_TABLE);
    const int32_t table = plan::add_table(*use, table_from(values, text, rows, dim));
    if (out_table != nullptr) *out_table = table;
  });
}

shardrec_status shardrec_model_add_feature(shardrec_model* model, int32_t table, const char* name,
                                           shardrec_pooling pooling) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const std::string_view text = require_text(name, "name");
    plan::add_feature(*use, {.name = std::string(text), .table = table, .pooling = pooling});
  });
}

shardrec_status shardrec_model_set_optimizer(shardrec_model* model,
                                             const shardrec_options* options) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    plan::set_optimizer(*use, optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER)));
  });
}

shardrec_status shardrec_model_set_table_optimizer(shardrec_model* model, int32_t table,
                                                   const shardrec_options* options) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    std::optional<plan::Optimizer> optimizer;
    if (options != nullptr) {
      optimizer = optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER));
    }
    plan::set_table_optimizer(*use, table, optimizer);
  });
}

shardrec_status shardrec_model_table_count(const shardrec_model* model, int32_t* out) {
  return guard([&] { count(model, out, [](const plan::Model& m) { return m.tables.size(); }); });
}

shardrec_status shardrec_model_feature_count(const shardrec_model* model, int32_t* out) {
  return guard([&] { count(model, out, [](const plan::Model& m) { return m.features.size(); }); });
}

shardrec_status shardrec_model_feature_columns(const shardrec_model* model, int32_t feature,
                                               int64_t* out_column, int64_t* out_columns,
                                               int64_t* out_width) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const plan::FeatureColumns columns = plan::find_feature_columns(*use, feature);
    if (out_column != nullptr) *out_column = columns.first;
    if (out_columns != nullptr) *out_columns = columns.count;
    if (out_width != nullptr) *out_width = columns.output_width;
  });
}

shardrec_status shardrec_model_to_json(const shardrec_model* model, char** out_text) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    require_out(out_text, "out_text");
    *out_text = copy_text(plan::model_to_json(*use));
  });
}

shardrec_status shardrec_model_from_json(const char* json, shardrec_model** out) {
  return guard([&] {
    require_out(out, "out");
    const std::string text(require_text(json, "json"));
    create(out, std::make_shared<plan::Model>(plan::model_from_json(text)));
  });
}
