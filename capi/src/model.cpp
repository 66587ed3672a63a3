#include "shardrec/model.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "guard.h"
#include "objects/model_object.h"
#include "options.h"
#include "plan/find.h"
#include "structs.h"

using namespace shardrec::capi;
namespace plan = shardrec::plan;

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

shardrec_status shardrec_model_set_optimizer(shardrec_model* model, int32_t table,
                                             const shardrec_options* options) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    if (table == SHARDREC_ALL_TABLES) {
      plan::set_optimizer(*use, optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER)));
      return;
    }
    std::optional<plan::Optimizer> optimizer;
    if (options != nullptr) {
      optimizer = optimizer_from(read_options(options, SHARDREC_OPTIONS_OPTIMIZER));
    }
    plan::set_table_optimizer(*use, table, optimizer);
  });
}

shardrec_status shardrec_model_info(const shardrec_model* model, shardrec_model_size* out) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const plan::OutputLayout layout = plan::output_layout(*use);
    write_struct(out, "out",
                 shardrec_model_size{.struct_size = sizeof(shardrec_model_size),
                                     .tables = static_cast<int32_t>(use->tables.size()),
                                     .features = static_cast<int32_t>(use->features.size()),
                                     .sequences = static_cast<int32_t>(layout.sequences.size()),
                                     .reserved = 0,
                                     .width = layout.width});
  });
}

shardrec_status shardrec_model_table(const shardrec_model* model, int32_t table,
                                     shardrec_table* out, char** out_name) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const plan::Table& found = plan::find_model_table(*use, table);
    const plan::Optimizer& optimizer = use->optimizer_of(table);
    const auto features = std::ranges::count(use->features, table, &plan::Feature::table);
    OutText name(out_name, found.name);
    write_struct(
        out, "out",
        shardrec_table{.struct_size = sizeof(shardrec_table),
                       .rows = found.rows,
                       .dim = found.dim,
                       .dtype = found.dtype,
                       .optimizer = optimizer.kind,
                       .learning_rate = optimizer.learning_rate,
                       .states = static_cast<int32_t>(plan::states_of(optimizer.kind).size()),
                       .features = static_cast<int32_t>(features)});
    name.give();
  });
}

shardrec_status shardrec_model_feature(const shardrec_model* model, int32_t feature,
                                       shardrec_feature* out, char** out_name) {
  return guard([&] {
    const auto use = enter(model, Access::kExclusive);
    const plan::FeatureColumns columns = plan::find_feature_columns(*use, feature);
    const plan::Feature& found = use->features[static_cast<size_t>(feature)];
    OutText name(out_name, found.name);
    write_struct(out, "out",
                 shardrec_feature{.struct_size = sizeof(shardrec_feature),
                                  .table = found.table,
                                  .pooling = found.pooling,
                                  .output = columns.output,
                                  .reserved = 0,
                                  .column = columns.first,
                                  .columns = columns.count,
                                  .width = columns.output_width});
    name.give();
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
