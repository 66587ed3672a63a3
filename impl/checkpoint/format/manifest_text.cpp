// Writing of manifest.json, formats 2 and 3.
#include <string>
#include <vector>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/manifest_words.h"
#include "core/hash.h"
#include "core/json.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {

namespace {

using core::JsonWriter;

void write_table(JsonWriter& json, const ManifestTable& table) {
  json.begin_object();
  json.key("name").text(table.name);
  json.key("rows").integer(table.rows);
  json.key("dim").integer(table.dim);
  json.key("dtype").text(plan::name_of(table.dtype));
  json.key("optimizer").text(plan::name_of(table.optimizer));
  json.key("row_statistics").text(plan::name_of(table.row_statistics));
  if (table.learning_rate) json.key("learning_rate").number(*table.learning_rate);
  if (table.frozen) json.key("frozen").boolean(true);
  json.end_object();
}

void write_stored(JsonWriter& json, const Manifest& manifest, const Stored& stored) {
  json.key("file").text(manifest.file_of(stored).name);
  json.key("tensor").text(stored.name);
  json.key("offset").integer(stored.offset);
}

void write_item(JsonWriter& json, const Manifest& manifest, const ManifestItem& item) {
  json.begin_object();
  json.key("kind").text(kItemKinds[static_cast<size_t>(item.kind)]);
  json.key("name").text(item.name);
  json.key("rank").integer(item.rank);
  json.key("description").text(item.description);
  json.key("tensors").begin_array(JsonWriter::Style::kLines);
  for (const ManifestDense& tensor : item.tensors) {
    json.begin_object();
    json.key("name").text(tensor.name);
    json.key("dtype").text(plan::name_of(tensor.dtype));
    json.key("shape").begin_array();
    for (const int64_t size : tensor.shape) json.integer(size);
    json.end_array();
    write_stored(json, manifest, tensor.stored);
    json.key("checksum").text(core::to_hex(tensor.checksum));
    json.end_object();
  }
  json.end_array();
  json.end_object();
}

void write_checksums(JsonWriter& json, const std::vector<uint64_t>& checksums) {
  json.key("checksums").begin_array();
  for (const uint64_t sum : checksums) json.text(core::to_hex(sum));
  json.end_array();
}

void write_base(JsonWriter& json, const ManifestBase& base) {
  json.key("base").begin_object();
  json.key("directory").text(base.directory);
  json.key("step").integer(base.step);
  json.key("commit").integer(base.commit);
  json.key("checksum").text(core::to_hex(base.checksum));
  json.key("deltas").integer(base.deltas);
  json.end_object();
}

void write_list(JsonWriter& json, const Manifest& manifest, const ManifestList& list) {
  json.begin_object();
  json.key("collection").integer(list.collection);
  json.key("table").text(manifest.collections[static_cast<size_t>(list.collection)]
                             .tables[static_cast<size_t>(list.table)]
                             .name);
  json.key("row").integer(list.row);
  json.key("rows").integer(list.rows);
  json.key("count").integer(list.count);
  write_stored(json, manifest, list.stored);
  write_checksums(json, list.checksums);
  json.end_object();
}

void write_tensor(JsonWriter& json, const Manifest& manifest, const ManifestTensor& tensor) {
  const ManifestTable& table = manifest.table_of(tensor);
  json.begin_object();
  json.key("collection").integer(tensor.collection);
  json.key("table").text(table.name);
  json.key("part").text(name_of(table.optimizer, tensor.part));
  json.key("row").integer(tensor.cells.row);
  json.key("rows").integer(tensor.cells.rows);
  json.key("col").integer(tensor.cells.col);
  json.key("cols").integer(tensor.cells.cols);
  json.key("dtype").text(plan::name_of(tensor.layout.dtype));
  if (tensor.listed) json.key("list").integer(tensor.listed->list);
  write_stored(json, manifest, tensor.stored);
  json.key("bytes").integer(bytes_of(tensor));
  json.key("chunk_rows").integer(tensor.chunk_rows);
  write_checksums(json, tensor.checksums);
  json.end_object();
}

}  // namespace

std::string manifest_to_text(const Manifest& manifest) {
  using Style = JsonWriter::Style;
  JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("format").text(kManifestFormats[manifest.base ? 2 : 1]);
  json.key("run").text(manifest.run);
  json.key("commit").integer(manifest.commit);
  json.key("step").integer(manifest.step);
  if (manifest.base) write_base(json, *manifest.base);
  if (!manifest.states) json.key("states").boolean(false);
  json.key("ranks").integer(manifest.ranks);
  json.key("collections").begin_array(Style::kLines);
  for (const ManifestCollection& collection : manifest.collections) {
    json.begin_object();
    json.key("name").text(collection.name);
    json.key("step").integer(collection.step);
    json.key("model").text(collection.model);
    json.key("plan").text(collection.plan);
    json.key("tables").begin_array(Style::kLines);
    for (const ManifestTable& table : collection.tables) write_table(json, table);
    json.end_array();
    json.end_object();
  }
  json.end_array();
  json.key("items").begin_array(Style::kLines);
  for (const ManifestItem& item : manifest.items) write_item(json, manifest, item);
  json.end_array();
  json.key("files").begin_array(Style::kLines);
  for (const ManifestFile& file : manifest.files) {
    json.begin_object();
    json.key("name").text(file.name);
    json.key("bytes").integer(file.bytes);
    json.key("header_bytes").integer(file.header_bytes);
    json.key("header_checksum").text(core::to_hex(file.header_checksum));
    json.end_object();
  }
  json.end_array();
  if (manifest.base) {
    json.key("lists").begin_array(Style::kLines);
    for (const ManifestList& list : manifest.lists) write_list(json, manifest, list);
    json.end_array();
  }
  json.key("tensors").begin_array(Style::kLines);
  for (const ManifestTensor& tensor : manifest.tensors) write_tensor(json, manifest, tensor);
  json.end_array();
  const uint64_t checksum = core::hash64(0, json.str());
  json.key("checksum").text(core::to_hex(checksum));
  json.end_object();
  return json.take();
}

}  // namespace shardrec::checkpoint
