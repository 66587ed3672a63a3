#include "serving/version.h"

#include <algorithm>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "checkpoint/read/match.h"
#include "checkpoint/read/saved.h"
#include "core/error.h"
#include "serving/load_tables.h"
#include "serving/staged_rows.h"

namespace shardrec::serving {
namespace {

int32_t choose_collection(const checkpoint::Opened& opened, const std::string& name) {
  const auto& collections = opened.manifest.collections;
  if (name.empty() && collections.size() == 1) return 0;
  if (name.empty() && std::none_of(collections.begin(), collections.end(),
                                   [](const auto& saved) { return saved.name.empty(); })) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("the checkpoint ", opened.directory, " holds ", collections.size(),
                              " collections; SHARDREC_OPTION_SERVED_COLLECTION says which of them"),
               {.path = opened.directory});
  }
  return checkpoint::find_collection(opened, name);
}

bool has_layers(const checkpoint::Opened& opened, const std::string& name) {
  return std::any_of(opened.manifest.items.begin(), opened.manifest.items.end(),
                     [&](const checkpoint::ManifestItem& item) {
                       return item.kind == checkpoint::ItemKind::kLayers && item.name == name;
                     });
}

// Columns of the pooled features, in the order of the output.
std::vector<int64_t> pooled_columns(const plan::Model& model, const plan::OutputLayout& outputs) {
  std::vector<std::pair<int64_t, int64_t>> columns;  // first, count
  for (size_t f = 0; f < model.features.size(); ++f) {
    if (model.features[f].pooling == SHARDREC_POOLING_NONE) continue;
    columns.emplace_back(outputs.column[f],
                         model.tables[static_cast<size_t>(model.features[f].table)].dim);
  }
  std::sort(columns.begin(), columns.end());
  std::vector<int64_t> counts;
  for (const auto& [first, count] : columns) counts.push_back(count);
  return counts;
}

// Layers that nobody named and that are missing, or are of something else, are no error: then there
// are no scores.
void choose_dense(const checkpoint::Opened& opened, const Settings& settings, Version& version) {
  const std::string bottom = settings.bottom.empty() ? "bottom" : settings.bottom;
  const std::string top = settings.top.empty() ? "top" : settings.top;
  const bool named = !settings.bottom.empty() || !settings.top.empty();
  for (const std::string& name : {bottom, top}) {
    if (named || has_layers(opened, name)) continue;
    version.why_no_scores = core::sentence("the checkpoint ", opened.directory,
                                           " holds no layers of the name \"", name, "\"");
    return;
  }
  try {
    version.dense = std::make_shared<DenseHalf>(Stack(opened, bottom), Stack(opened, top),
                                                pooled_columns(version.model, version.outputs));
  } catch (const core::Error& error) {
    if (named || error.status() != SHARDREC_INVALID_ARGUMENT) throw;
    version.why_no_scores = error.sentence();
    return;
  }
  if (version.gemm != nullptr) return;
  try {
    const auto processors = static_cast<int>(std::thread::hardware_concurrency());
    version.gemm = std::make_shared<dense::GemmRoom>(std::max(1, processors));
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_UNSUPPORTED) throw;
    version.why_no_scores = error.sentence();
  }
}

// All but the tables, and the bytes of the dense half that are still to be read.
// gemm: of a version before, or null.
std::unique_ptr<Version> describe_version(const std::shared_ptr<const checkpoint::Opened>& opened,
                                          int32_t collection, const Settings& settings,
                                          std::shared_ptr<dense::GemmRoom> gemm) {
  auto version = std::make_unique<Version>();
  version->gemm = std::move(gemm);
  version->opened = opened;
  version->step = opened->manifest.step;
  version->model = checkpoint::saved_model(
      *opened, opened->manifest.collections[static_cast<size_t>(collection)].name);
  version->outputs = plan::output_layout(version->model);
  choose_dense(*opened, settings, *version);
  return version;
}

int64_t dense_bytes(const Version& version) {
  return version.dense == nullptr ? 0 : version.dense->bytes();
}

// The deltas behind a version in the chain of a checkpoint; none where it is not there.
std::vector<const checkpoint::Opened*> deltas_since(const checkpoint::Opened& opened,
                                                    const Version& now) {
  std::vector<const checkpoint::Opened*> since;
  for (const checkpoint::Opened* each = &opened; each != nullptr; each = each->base.get()) {
    if (now.opened->checksum == each->checksum && now.opened->manifest.run == each->manifest.run &&
        now.opened->manifest.commit == each->manifest.commit) {
      std::ranges::reverse(since);
      return since;
    }
    since.push_back(each);
  }
  return {};
}

}  // namespace

std::unique_ptr<Version> load_version(const std::shared_ptr<const checkpoint::Opened>& opened,
                                      const Settings& settings, core::Control* control,
                                      core::Environment& environment) {
  const int32_t collection = choose_collection(*opened, settings.collection);
  auto version = describe_version(opened, collection, settings, nullptr);
  if (control != nullptr) {
    control->start(bytes_of_tables(*opened, collection) + dense_bytes(*version));
  }
  version->tables =
      load_tables(*opened, collection, version->model, settings.tables, control, environment);
  if (version->dense != nullptr) version->dense->read(*opened, control, environment);
  return version;
}

std::unique_ptr<Version> stage_version(const std::shared_ptr<const checkpoint::Opened>& opened,
                                       const Settings& settings, const Version& now,
                                       core::Control* control, core::Environment& environment) {
  const auto deltas = deltas_since(*opened, now);
  if (deltas.empty()) return nullptr;
  const int32_t collection = choose_collection(*opened, settings.collection);
  auto version = describe_version(opened, collection, settings, now.gemm);
  require_same_shape(now, *version);
  if (control != nullptr) {
    control->start(bytes_of_changes(deltas, collection) + dense_bytes(*version));
  }
  auto tables =
      stage_tables(*opened, deltas, collection, version->model, now.tables, control, environment);
  if (!tables) return nullptr;
  version->tables = std::move(*tables);
  if (version->dense != nullptr) version->dense->read(*opened, control, environment);
  return version;
}

std::unique_ptr<const Version> without_staged(const Version& staged) {
  auto version = std::make_unique<Version>(staged);
  for (ServedTable& table : version->tables) table.staged.reset();
  return version;
}

void write_staged(const std::vector<ServedTable>& tables) noexcept {
  for (const ServedTable& table : tables) {
    if (table.staged != nullptr) table.staged->write_to(table);
  }
}

void require_same_shape(const Version& now, const Version& next) {
  const auto refuse = [&](const std::string& what) {
    core::fail(SHARDREC_INVALID_ARGUMENT,
               core::sentence("the checkpoint ", next.opened->directory,
                              " is of another model than the one that is served: ", what),
               {.path = next.opened->directory});
  };
  if (now.model.features != next.model.features) refuse("its features differ");
  if (now.model.tables.size() != next.model.tables.size()) refuse("it has other tables");
  for (size_t t = 0; t < now.model.tables.size(); ++t) {
    const plan::Table& before = now.model.tables[t];
    const plan::Table& after = next.model.tables[t];
    if (before.name == after.name && before.dim == after.dim) continue;
    refuse(core::sentence("table ", t, " is \"", after.name, "\" with ", after.dim,
                          " columns, it was \"", before.name, "\" with ", before.dim));
  }
  const auto shape = [](const Version& version) {
    return version.dense == nullptr
               ? std::pair<int64_t, int64_t>()
               : std::pair(version.dense->dense_columns(), version.dense->scores());
  };
  if (shape(now) != shape(next)) {
    refuse(core::sentence("its layers take ", shape(next).first, " dense columns and give ",
                          shape(next).second, " scores, those that are served ", shape(now).first,
                          " and ", shape(now).second));
  }
}

}  // namespace shardrec::serving
