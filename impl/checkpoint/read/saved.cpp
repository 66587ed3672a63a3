#include "checkpoint/read/saved.h"

#include <utility>

#include "checkpoint/contents/layers.h"
#include "checkpoint/read/match.h"
#include "core/error.h"

namespace shardrec::checkpoint {
namespace {

const ManifestCollection& collection_of(const Opened& opened, const std::string& name) {
  const auto index = static_cast<size_t>(find_collection(opened, name));
  const ManifestCollection& collection = opened.manifest.collections[index];
  if (collection.model.empty()) {
    core::fail(SHARDREC_NOT_FOUND,
               core::sentence("the checkpoint ", opened.directory,
                              " was written by an earlier release, which saved no model and plan"),
               {.path = opened.directory});
  }
  return collection;
}

// Runs a reading of JSON that the checkpoint holds: what is wrong with it is wrong with the file.
template <class Read>
auto from_checkpoint(const Opened& opened, Read read) {
  try {
    return read();
  } catch (const core::Error& error) {
    if (error.status() != SHARDREC_INVALID_ARGUMENT) throw;
    core::ErrorParts parts = error.parts();
    parts.path = opened.directory;
    core::fail(SHARDREC_CORRUPT_DATA,
               core::sentence("the checkpoint ", opened.directory, ": ", error.sentence()),
               std::move(parts));
  }
}

}  // namespace

plan::Model saved_model(const Opened& opened, const std::string& name) {
  const std::string& text = collection_of(opened, name).model;
  return from_checkpoint(opened, [&] { return plan::model_from_json(text); });
}

plan::PlannedModel saved_plan(const Opened& opened, const std::string& name) {
  const ManifestCollection& saved = collection_of(opened, name);
  return from_checkpoint(opened, [&] {
    plan::PlannedModel read{.model = plan::model_from_json(saved.model), .plan = {}};
    read.plan = plan::plan_from_json(read.model, saved.plan);
    return read;
  });
}

std::shared_ptr<dense::Mlp> saved_layers(const Opened& opened, const std::string& name,
                                         const dense::MlpOptions& options) {
  const ManifestItem& item = find_item(opened, ItemKind::kLayers, name);
  return from_checkpoint(opened, [&]() -> std::shared_ptr<dense::Mlp> {
    return make_layers(item.description, options, opened.directory);
  });
}

}  // namespace shardrec::checkpoint
