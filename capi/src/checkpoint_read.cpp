// What an open checkpoint holds, read by one rank alone.
#include <string>
#include <utility>

#include "checkpoint/layers.h"
#include "checkpoint/match.h"
#include "checkpoint_object.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/tensor.h"
#include "guard.h"
#include "model_object.h"
#include "plan/names.h"

namespace shardrec::capi {
namespace {

const checkpoint::ManifestCollection& collection_of(const checkpoint::Opened& opened,
                                                    const char* name) {
  const std::string text(require_text(name, "name"));
  const auto index = static_cast<size_t>(checkpoint::find_collection(opened, text));
  const checkpoint::ManifestCollection& collection = opened.manifest.collections[index];
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
auto from_checkpoint(const checkpoint::Opened& opened, Read read) {
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

const checkpoint::ManifestDense& host_tensor(const checkpoint::Opened& opened, const char* name,
                                             int32_t rank) {
  return checkpoint::find_item(opened, checkpoint::ItemKind::kHostTensor,
                               std::string(require_text(name, "name")), rank)
      .tensors.front();
}

void write_shape(core::JsonWriter& json, const checkpoint::ManifestDense& tensor) {
  json.key("dtype").text(plan::name_of(tensor.dtype));
  json.key("shape").begin_array();
  for (const int64_t size : tensor.shape) json.integer(size);
  json.end_array();
}

void write_file(core::JsonWriter& json, const checkpoint::Manifest& manifest,
                const checkpoint::Stored& stored, int64_t bytes) {
  json.key("file").text(manifest.file_of(stored).name);
  json.key("bytes").integer(bytes);
}

std::string contents_json(const checkpoint::Opened& opened) {
  using Style = core::JsonWriter::Style;
  const checkpoint::Manifest& manifest = opened.manifest;
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("directory").text(opened.directory);
  json.key("format").integer(manifest.format);
  json.key("step").integer(manifest.step);
  json.key("ranks").integer(manifest.ranks);
  json.key("collections").begin_array(Style::kLines);
  for (const checkpoint::ManifestCollection& collection : manifest.collections) {
    json.begin_object();
    json.key("name").text(collection.name);
    json.key("step").integer(collection.step);
    json.key("tables").begin_array(Style::kLines);
    for (const checkpoint::ManifestTable& table : collection.tables) {
      json.begin_object();
      json.key("name").text(table.name);
      json.key("rows").integer(table.rows);
      json.key("dim").integer(table.dim);
      json.key("dtype").text(plan::name_of(table.dtype));
      json.key("optimizer").text(plan::name_of(table.optimizer));
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("boxes").begin_array(Style::kLines);
  for (const checkpoint::ManifestTensor& tensor : manifest.tensors) {
    const checkpoint::ManifestTable& table = manifest.table_of(tensor);
    json.begin_object();
    json.key("collection").text(manifest.collections[static_cast<size_t>(tensor.collection)].name);
    json.key("table").text(table.name);
    json.key("part").text(checkpoint::name_of(table.optimizer, tensor.part));
    json.key("row").integer(tensor.row);
    json.key("rows").integer(tensor.rows);
    json.key("col").integer(tensor.col);
    json.key("cols").integer(tensor.cols);
    json.key("dtype").text(plan::name_of(tensor.layout.dtype));
    write_file(json, manifest, tensor.stored, bytes_of(tensor));
    json.key("checksums").begin_array();
    for (const uint64_t sum : tensor.checksums) json.text(core::to_hex(sum));
    json.end_array();
    json.end_object();
  }
  json.end_array();
  for (const auto& [kind, key] : {std::pair(checkpoint::ItemKind::kLayers, "layers"),
                                  std::pair(checkpoint::ItemKind::kParameters, "parameters"),
                                  std::pair(checkpoint::ItemKind::kHostTensor, "tensors")}) {
    json.key(key).begin_array(Style::kLines);
    for (const checkpoint::ManifestItem& item : manifest.items) {
      if (item.kind != kind) continue;
      const bool alone = kind == checkpoint::ItemKind::kHostTensor;
      json.begin_object();
      json.key("name").text(item.name);
      if (alone) json.key("rank").integer(item.rank);
      if (!alone) json.key("tensors").begin_array(Style::kLines);
      for (const checkpoint::ManifestDense& tensor : item.tensors) {
        if (!alone) json.begin_object().key("name").text(tensor.name);
        write_shape(json, tensor);
        write_file(json, manifest, tensor.stored, bytes_of(tensor));
        json.key("checksum").text(core::to_hex(tensor.checksum));
        if (!alone) json.end_object();
      }
      if (!alone) json.end_array();
      json.end_object();
    }
    json.end_array();
  }
  json.end_object();
  return json.take();
}

std::string list_json(const checkpoint::Listing& listing) {
  using Style = core::JsonWriter::Style;
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("latest");
  if (listing.has_latest) {
    for (const checkpoint::Entry& entry : listing.entries) {
      if (entry.name == listing.latest) json.integer(entry.step);
    }
  } else {
    json.null();
  }
  json.key("checkpoints").begin_array(Style::kLines);
  for (const checkpoint::Entry& entry : listing.entries) {
    json.begin_object();
    json.key("step").integer(entry.step);
    json.key("directory").text(entry.name);
    json.key("bytes").integer(entry.bytes);
    json.key("commit").integer(entry.commit);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace
}  // namespace shardrec::capi

using namespace shardrec;  // NOLINT(google-build-using-namespace): the C functions live outside
using namespace shardrec::capi;  // NOLINT(google-build-using-namespace)

shardrec_status shardrec_checkpoint_step(const shardrec_checkpoint* checkpoint, int64_t* out) {
  return guard([&] {
    require_out(out, "out");
    *out = enter(checkpoint, Access::kExclusive)->require_opened().manifest.step;
  });
}

shardrec_status shardrec_checkpoint_model(shardrec_checkpoint* checkpoint, const char* name,
                                          shardrec_model** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->require_opened();
    const std::string& text = collection_of(opened, name).model;
    create(out, std::make_shared<plan::Model>(
                    from_checkpoint(opened, [&] { return plan::model_from_json(text); })));
  });
}

shardrec_status shardrec_checkpoint_plan(shardrec_checkpoint* checkpoint, const char* name,
                                         shardrec_plan** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->require_opened();
    const checkpoint::ManifestCollection& saved = collection_of(opened, name);
    auto object = std::make_shared<PlanObject>();
    from_checkpoint(opened, [&] {
      object->model = plan::model_from_json(saved.model);
      object->plan = plan::plan_from_json(object->model, saved.plan);
      return 0;
    });
    create(out, std::move(object));
  });
}

shardrec_status shardrec_checkpoint_mlp(shardrec_checkpoint* checkpoint, const char* name,
                                        const shardrec_options* options, shardrec_mlp** out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->require_opened();
    const checkpoint::ManifestItem& item = checkpoint::find_item(
        opened, checkpoint::ItemKind::kLayers, std::string(require_text(name, "name")));
    const dense::MlpOptions settings = mlp_options(read_options(options, SHARDREC_OPTIONS_MLP));
    create(out, std::shared_ptr<dense::Mlp>(from_checkpoint(opened, [&] {
             return checkpoint::make_layers(item.description, settings, opened.directory);
           })));
  });
}

shardrec_status shardrec_checkpoint_tensor_info(shardrec_checkpoint* checkpoint, const char* name,
                                                int32_t rank, shardrec_tensor* out) {
  return guard([&] {
    require_out(out, "out");
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::ManifestDense& saved = host_tensor(use->require_opened(), name, rank);
    *out = core::compact_view(nullptr, saved.dtype, saved.shape);
  });
}

shardrec_status shardrec_checkpoint_get_tensor(shardrec_checkpoint* checkpoint, const char* name,
                                               int32_t rank, const shardrec_tensor* out) {
  return guard([&] {
    const auto use = enter(checkpoint, Access::kExclusive);
    const checkpoint::Opened& opened = use->require_opened();
    const checkpoint::ManifestDense& saved = host_tensor(opened, name, rank);
    const core::FlatView view = core::flat_view(out, "out");
    const std::vector<int64_t> shape(out->shape, out->shape + out->ndim);
    if (view.dtype != saved.dtype || shape != saved.shape) {
      core::fail(
          SHARDREC_INVALID_ARGUMENT,
          core::sentence("out has another dtype or shape than tensor \"", name,
                         "\" of the checkpoint; shardrec_checkpoint_tensor_info tells both"));
    }
    checkpoint::read_dense(
        opened, saved, {static_cast<std::byte*>(view.data), static_cast<size_t>(bytes_of(saved))});
  });
}

shardrec_status shardrec_checkpoint_contents_json(shardrec_checkpoint* checkpoint,
                                                  char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    const auto use = enter(checkpoint, Access::kExclusive);
    *out_text = copy_text(contents_json(use->require_opened()));
  });
}

shardrec_status shardrec_checkpoint_list_json(const char* directory, char** out_text) {
  return guard([&] {
    require_out(out_text, "out_text");
    refuse_after_fork();
    *out_text = copy_text(
        list_json(checkpoint::list_checkpoints(std::string(require_text(directory, "directory")))));
  });
}
