#include "checkpoint/describe.h"

#include <utility>

#include "core/hash.h"
#include "core/json.h"
#include "plan/names.h"

namespace shardrec::checkpoint {
namespace {

void write_shape(core::JsonWriter& json, const ManifestDense& tensor) {
  json.key("dtype").text(plan::name_of(tensor.dtype));
  json.key("shape").begin_array();
  for (const int64_t size : tensor.shape) json.integer(size);
  json.end_array();
}

void write_file(core::JsonWriter& json, const Manifest& manifest, const Stored& stored,
                int64_t bytes) {
  json.key("file").text(manifest.file_of(stored).name);
  json.key("bytes").integer(bytes);
}

}  // namespace

std::string contents_json(const Opened& opened) {
  using Style = core::JsonWriter::Style;
  const Manifest& manifest = opened.manifest;
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("directory").text(opened.directory);
  json.key("format").integer(manifest.format);
  json.key("step").integer(manifest.step);
  json.key("ranks").integer(manifest.ranks);
  json.key("collections").begin_array(Style::kLines);
  for (const ManifestCollection& collection : manifest.collections) {
    json.begin_object();
    json.key("name").text(collection.name);
    json.key("step").integer(collection.step);
    json.key("tables").begin_array(Style::kLines);
    for (const ManifestTable& table : collection.tables) {
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
  for (const ManifestTensor& tensor : manifest.tensors) {
    const ManifestTable& table = manifest.table_of(tensor);
    json.begin_object();
    json.key("collection").text(manifest.collections[static_cast<size_t>(tensor.collection)].name);
    json.key("table").text(table.name);
    json.key("part").text(name_of(table.optimizer, tensor.part));
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
  for (const auto& [kind, key] :
       {std::pair(ItemKind::kLayers, "layers"), std::pair(ItemKind::kParameters, "parameters"),
        std::pair(ItemKind::kHostTensor, "tensors")}) {
    json.key(key).begin_array(Style::kLines);
    for (const ManifestItem& item : manifest.items) {
      if (item.kind != kind) continue;
      const bool alone = kind == ItemKind::kHostTensor;
      json.begin_object();
      json.key("name").text(item.name);
      if (alone) json.key("rank").integer(item.rank);
      if (!alone) json.key("tensors").begin_array(Style::kLines);
      for (const ManifestDense& tensor : item.tensors) {
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

std::string list_json(const Listing& listing) {
  using Style = core::JsonWriter::Style;
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("latest");
  if (listing.has_latest) {
    for (const Entry& entry : listing.entries) {
      if (entry.name == listing.latest) json.integer(entry.step);
    }
  } else {
    json.null();
  }
  json.key("checkpoints").begin_array(Style::kLines);
  for (const Entry& entry : listing.entries) {
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

}  // namespace shardrec::checkpoint
