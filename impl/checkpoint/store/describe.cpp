#include "checkpoint/store/describe.h"

#include "core/hash.h"
#include "core/json.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {
namespace {

using Style = core::JsonWriter::Style;

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

void write_base(core::JsonWriter& json, const Manifest& manifest) {
  if (!manifest.base) return;
  json.key("base").begin_object();
  json.key("directory").text(manifest.base->directory);
  json.key("step").integer(manifest.base->step);
  json.key("commit").integer(manifest.base->commit);
  json.key("deltas").integer(manifest.base->deltas);
  json.key("states").boolean(manifest.states);
  json.end_object();
}

void write_collections(core::JsonWriter& json, const Manifest& manifest) {
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
}

void write_boxes(core::JsonWriter& json, const Manifest& manifest) {
  json.key("boxes").begin_array(Style::kLines);
  for (const ManifestTensor& tensor : manifest.tensors) {
    const ManifestTable& table = manifest.table_of(tensor);
    json.begin_object();
    json.key("collection").text(manifest.collections[static_cast<size_t>(tensor.collection)].name);
    json.key("table").text(table.name);
    json.key("part").text(name_of(table.optimizer, tensor.part));
    json.key("row").integer(tensor.cells.row);
    json.key("rows").integer(tensor.cells.rows);
    json.key("col").integer(tensor.cells.col);
    json.key("cols").integer(tensor.cells.cols);
    json.key("dtype").text(plan::name_of(tensor.layout.dtype));
    if (tensor.listed) {
      json.key("changed_rows").integer(tensor.listed->count);
      json.key("row_bytes").integer(tensor.layout.row_bytes(tensor.cells.cols));
    }
    write_file(json, manifest, tensor.stored, bytes_of(tensor));
    json.key("checksums").begin_array();
    for (const uint64_t sum : tensor.checksums) json.text(core::to_hex(sum));
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

void write_dense(core::JsonWriter& json, const Manifest& manifest, const ManifestDense& tensor) {
  write_shape(json, tensor);
  write_file(json, manifest, tensor.stored, bytes_of(tensor));
  json.key("checksum").text(core::to_hex(tensor.checksum));
}

// The items of one kind, each with its tensors.
void write_items(core::JsonWriter& json, const Manifest& manifest, const char* key, ItemKind kind) {
  json.key(key).begin_array(Style::kLines);
  for (const ManifestItem& item : manifest.items) {
    if (item.kind != kind) continue;
    json.begin_object();
    json.key("name").text(item.name);
    json.key("tensors").begin_array(Style::kLines);
    for (const ManifestDense& tensor : item.tensors) {
      json.begin_object().key("name").text(tensor.name);
      write_dense(json, manifest, tensor);
      json.end_object();
    }
    json.end_array();
    json.end_object();
  }
  json.end_array();
}

// A host tensor is an item by itself, which one rank set.
void write_host_tensors(core::JsonWriter& json, const Manifest& manifest) {
  json.key("tensors").begin_array(Style::kLines);
  for (const ManifestItem& item : manifest.items) {
    if (item.kind != ItemKind::kHostTensor) continue;
    json.begin_object();
    json.key("name").text(item.name);
    json.key("rank").integer(item.rank);
    for (const ManifestDense& tensor : item.tensors) write_dense(json, manifest, tensor);
    json.end_object();
  }
  json.end_array();
}

}  // namespace

std::string contents_json(const Opened& opened) {
  const Manifest& manifest = opened.manifest;
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("version").integer(1);
  json.key("directory").text(opened.directory);
  json.key("format").integer(manifest.format);
  json.key("step").integer(manifest.step);
  json.key("ranks").integer(manifest.ranks);
  write_base(json, manifest);
  write_collections(json, manifest);
  write_boxes(json, manifest);
  write_items(json, manifest, "layers", ItemKind::kLayers);
  write_items(json, manifest, "parameters", ItemKind::kParameters);
  write_host_tensors(json, manifest);
  json.end_object();
  return json.take();
}

std::string list_json(const Listing& listing) {
  core::JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("version").integer(1);
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
    if (entry.base != 0) json.key("base").integer(entry.base);
    json.key("states").boolean(entry.states);
    json.end_object();
  }
  json.end_array();
  json.end_object();
  return json.take();
}

}  // namespace shardrec::checkpoint
