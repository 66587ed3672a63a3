// Reading and writing of manifest.json, formats 1 (reading only) and 2.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/format/manifest.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "core/tensor.h"
#include "plan/model/names.h"

namespace shardrec::checkpoint {

namespace {

using core::fail;
using core::JsonDocument;
using core::JsonValue;
using core::JsonWriter;
using core::sentence;

constexpr std::array<std::string_view, 2> kFormats = {"shardrec-checkpoint-1",
                                                      "shardrec-checkpoint-2"};
constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int64_t kMostDim = 65536;
constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr int64_t kMostElements = int64_t{1} << 58;  // bytes of them fit 63 bits
// The last member: a checksum of everything in front of it.
constexpr std::string_view kChecksumStart = ",\n\"checksum\": \"";
constexpr std::string_view kChecksumEnd = "\"\n}";
constexpr size_t kHexDigits = 16;
// Manifests have long keys; what has more values is none, and would take many times its size.
constexpr size_t kLeastBytesPerValue = 6;
constexpr std::array<const char*, 3> kItemKinds = {"layers", "parameters", "host_tensor"};

uint64_t read_hex(const JsonValue& json) {
  const std::string& text = json.text();
  uint64_t value = 0;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (text.size() != kHexDigits || (!digit && (c < 'a' || c > 'f'))) {
      json.fail("16 hexadecimal digits in lower case are expected");
    }
    value = value << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  if (text.empty()) json.fail("16 hexadecimal digits in lower case are expected");
  return value;
}

void check_self(std::string_view text, const std::string& path) {
  const size_t at = text.rfind(kChecksumStart);
  const size_t tail = kChecksumStart.size() + kHexDigits + kChecksumEnd.size();
  const bool whole =
      at != std::string_view::npos && text.size() - at == tail && text.ends_with(kChecksumEnd);
  if (!whole) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the manifest ", path, " is cut off: it does not end with its checksum"),
         {.path = path});
  }
  const std::string_view digits = text.substr(at + kChecksumStart.size(), kHexDigits);
  if (digits != core::to_hex(core::hash64(0, text.substr(0, at)))) {
    fail(SHARDREC_CORRUPT_DATA,
         sentence("the manifest ", path, " is damaged: its checksum does not match"),
         {.path = path});
  }
}

// No separators and no leading dot: a manifest never names anything outside its directory.
bool plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

using Index = std::unordered_map<std::string_view, int32_t>;

int32_t look_up(const Index& index, const JsonValue& json, const char* what) {
  const auto found = index.find(json.text());
  if (found == index.end()) json.fail(sentence("there is no ", what, " \"", json.text(), "\""));
  return found->second;
}

// Reads one manifest into the structure.
class Reader {
 public:
  Reader(std::string_view text, const std::string& path)
      : path_(path),
        document_(text, "the manifest " + path, SHARDREC_CORRUPT_DATA, path,
                  text.size() / kLeastBytesPerValue + 64) {}

  Manifest read() {
    const JsonValue root = document_.root();
    const JsonValue format = root.at("format");
    const auto known = std::find(kFormats.begin(), kFormats.end(), format.text());
    if (known == kFormats.end()) {
      fail(SHARDREC_UNSUPPORTED,
           sentence("the manifest ", path_, " has the format \"", format.text(),
                    "\"; this release reads \"", kFormats[0], "\" and \"", kFormats[1], "\""),
           {.path = path_});
    }
    manifest_.format = 1 + static_cast<int>(known - kFormats.begin());
    if (manifest_.format == 1) {
      root.expect_keys({"format", "step", "tables", "files", "tensors", "checksum"});
      manifest_.collections.emplace_back();
      read_tables(root.at("tables"), manifest_.collections.front());
    } else {
      root.expect_keys({"format", "run", "commit", "step", "ranks", "collections", "items", "files",
                        "tensors", "checksum"});
      manifest_.run = root.at("run").text();
      manifest_.commit = root.at("commit").integer(0, INT64_MAX);
      manifest_.ranks = static_cast<int32_t>(root.at("ranks").integer(1, kMostRanks));
      read_collections(root.at("collections"));
    }
    manifest_.step = root.at("step").integer(0, INT64_MAX);
    if (manifest_.format == 1) manifest_.collections.front().step = manifest_.step;
    read_files(root.at("files"));
    if (manifest_.format == 2) read_items(root.at("items"));
    read_tensors(root.at("tensors"));
    return std::move(manifest_);
  }

 private:
  template <class Enum>
  Enum read_enum(const JsonValue& json) const {
    const auto value = plan::value_of<Enum>(json.text());
    if (!value) {
      fail(SHARDREC_UNSUPPORTED,
           sentence("the manifest ", path_, " says ", json.place(), " \"", json.text(),
                    "\"; this release knows ", plan::names_of<Enum>()),
           {.path = path_});
    }
    return *value;
  }

  shardrec_dtype read_table_dtype(const JsonValue& json) const {
    const auto dtype = read_enum<shardrec_dtype>(json);
    if (dtype != SHARDREC_FLOAT32 && dtype != SHARDREC_FLOAT16 && dtype != SHARDREC_BFLOAT16) {
      fail(SHARDREC_UNSUPPORTED,
           sentence("the manifest ", path_, " says ", json.place(), " \"", json.text(),
                    "\"; this release reads float32, float16 and bfloat16"),
           {.path = path_});
    }
    return dtype;
  }

  void read_tables(const JsonValue& json, ManifestCollection& collection) {
    Index& index = table_of_.emplace_back();
    collection.tables.reserve(static_cast<size_t>(json.array_size()));
    for (auto item = json.first(); item; item = item->next()) {
      item->expect_keys({"name", "rows", "dim", "dtype", "optimizer", "row_statistics",
                         "learning_rate", "frozen"});
      const std::string& name = item->at("name").text();
      if (name.empty()) item->at("name").fail("the name is empty");
      if (!index.emplace(name, std::ssize(collection.tables)).second) {
        item->at("name").fail("table \"" + name + "\" stands there twice");
      }
      ManifestTable& table = collection.tables.emplace_back(ManifestTable{
          .name = name,
          .rows = item->at("rows").integer(1, kMostRows),
          .dim = item->at("dim").integer(1, kMostDim),
          .dtype = read_table_dtype(item->at("dtype")),
          .optimizer = read_enum<shardrec_optimizer>(item->at("optimizer")),
          .row_statistics = read_enum<shardrec_row_statistics>(item->at("row_statistics"))});
      if (const auto rate = item->find("learning_rate")) table.learning_rate = rate->number();
      if (const auto frozen = item->find("frozen")) table.frozen = frozen->boolean();
    }
  }

  void read_collections(const JsonValue& json) {
    std::unordered_set<std::string_view> names;
    (void)json.array_size();
    for (auto item = json.first(); item; item = item->next()) {
      item->expect_keys({"name", "step", "model", "plan", "tables"});
      if (!names.insert(item->at("name").text()).second) {
        item->at("name").fail("collection \"" + item->at("name").text() + "\" stands there twice");
      }
      ManifestCollection& collection = manifest_.collections.emplace_back(
          ManifestCollection{.name = item->at("name").text(),
                             .step = item->at("step").integer(0, INT64_MAX),
                             .model = item->at("model").text(),
                             .plan = item->at("plan").text()});
      read_tables(item->at("tables"), collection);
    }
  }

  void read_files(const JsonValue& json) {
    manifest_.files.reserve(static_cast<size_t>(json.array_size()));
    for (auto item = json.first(); item; item = item->next()) {
      const std::string& name = item->at("name").text();
      if (!plain_name(name)) {
        item->at("name").fail("a file is named with letters, digits, '_', '-' and '.', not \"" +
                              name + "\"");
      }
      if (!file_of_.emplace(name, std::ssize(manifest_.files)).second) {
        item->at("name").fail("file \"" + name + "\" stands there twice");
      }
      ManifestFile file{.name = name, .bytes = item->at("bytes").integer(0, INT64_MAX)};
      if (manifest_.format == 1) {
        item->expect_keys({"name", "bytes"});
      } else {
        item->expect_keys({"name", "bytes", "header_bytes", "header_checksum"});
        file.header_bytes = item->at("header_bytes").integer(0, file.bytes);
        file.header_checksum = read_hex(item->at("header_checksum"));
      }
      manifest_.files.push_back(std::move(file));
    }
  }

  Stored read_stored(const JsonValue& json) {
    Stored stored{.file = look_up(file_of_, json.at("file"), "file"),
                  .name = json.at("tensor").text()};
    if (manifest_.format == 2) stored.offset = json.at("offset").integer(0, INT64_MAX);
    if (!seen_.insert(sentence(stored.file, "/", stored.name)).second) {
      json.at("tensor").fail("tensor \"" + stored.name + "\" of one file stands there twice");
    }
    return stored;
  }

  void read_items(const JsonValue& json) {
    std::unordered_set<std::string> names;
    (void)json.array_size();
    for (auto member = json.first(); member; member = member->next()) {
      member->expect_keys({"kind", "name", "rank", "description", "tensors"});
      const JsonValue kind = member->at("kind");
      const auto known = std::find(kItemKinds.begin(), kItemKinds.end(), kind.text());
      if (known == kItemKinds.end()) {
        fail(SHARDREC_UNSUPPORTED,
             sentence("the manifest ", path_, " says ", kind.place(), " \"", kind.text(),
                      "\"; this release knows layers, parameters, host_tensor"),
             {.path = path_});
      }
      ManifestItem item{
          .kind = static_cast<ItemKind>(known - kItemKinds.begin()),
          .name = member->at("name").text(),
          .rank = static_cast<int32_t>(member->at("rank").integer(0, manifest_.ranks - 1)),
          .description = member->at("description").text()};
      if (!names.insert(sentence(item.rank, "/", item.name)).second) {
        member->at("name").fail("\"" + item.name + "\" of one rank stands there twice");
      }
      const JsonValue tensors = member->at("tensors");
      item.tensors.reserve(static_cast<size_t>(tensors.array_size()));
      for (auto tensor = tensors.first(); tensor; tensor = tensor->next()) {
        item.tensors.push_back(read_dense(*tensor));
      }
      if (item.kind == ItemKind::kHostTensor && item.tensors.size() != 1) {
        tensors.fail("a host tensor is one tensor");
      }
      manifest_.items.push_back(std::move(item));
    }
  }

  ManifestDense read_dense(const JsonValue& json) {
    json.expect_keys({"name", "dtype", "shape", "file", "tensor", "offset", "checksum"});
    ManifestDense tensor{.name = json.at("name").text(),
                         .dtype = read_enum<shardrec_dtype>(json.at("dtype"))};
    const JsonValue shape = json.at("shape");
    if (shape.array_size() > SHARDREC_MAX_DIMENSIONS) shape.fail("it has too many dimensions");
    int64_t elements = 1;
    for (auto size = shape.first(); size; size = size->next()) {
      tensor.shape.push_back(size->integer(0, kMostElements));
      if (__builtin_mul_overflow(elements, tensor.shape.back(), &elements) ||
          elements > kMostElements) {
        shape.fail("it has too many elements");
      }
    }
    tensor.stored = read_stored(json);
    tensor.checksum = read_hex(json.at("checksum"));
    return tensor;
  }

  void read_tensors(const JsonValue& json) {
    manifest_.tensors.reserve(static_cast<size_t>(json.array_size()));
    for (auto item = json.first(); item; item = item->next()) {
      manifest_.tensors.push_back(read_tensor(*item));
    }
  }

  ManifestTensor read_tensor(const JsonValue& json) {
    ManifestTensor tensor;
    if (manifest_.format == 1) {
      json.expect_keys({"table", "part", "row", "rows", "col", "cols", "dtype", "file", "tensor",
                        "bytes", "checksum"});
    } else {
      json.expect_keys({"collection", "table", "part", "row", "rows", "col", "cols", "dtype",
                        "file", "tensor", "offset", "bytes", "chunk_rows", "checksums"});
      tensor.collection = static_cast<int32_t>(
          json.at("collection").integer(0, std::ssize(manifest_.collections) - 1));
    }
    const auto c = static_cast<size_t>(tensor.collection);
    tensor.table = look_up(table_of_[c], json.at("table"), "table");
    const ManifestTable& table = manifest_.table_of(tensor);
    tensor.part = read_part(json.at("part"), table);
    tensor.layout = layout_of(table.dtype, table.optimizer, tensor.part);
    tensor.cells.row = json.at("row").integer(0, table.rows - 1);
    tensor.cells.rows = json.at("rows").integer(1, table.rows - tensor.cells.row);
    tensor.cells.col = json.at("col").integer(0, table.dim - 1);
    tensor.cells.cols = json.at("cols").integer(1, table.dim - tensor.cells.col);
    if (read_table_dtype(json.at("dtype")) != tensor.layout.dtype) {
      json.at("dtype").fail(sentence("the part is ", plan::name_of(tensor.layout.dtype)));
    }
    tensor.stored = read_stored(json);
    (void)json.at("bytes").integer(bytes_of(tensor), bytes_of(tensor));
    if (manifest_.format == 1) {
      tensor.chunk_rows = tensor.cells.rows;
      tensor.checksums = {read_hex(json.at("checksum"))};
      return tensor;
    }
    tensor.chunk_rows = rows_per_chunk(tensor.layout.row_bytes(tensor.cells.cols));
    (void)json.at("chunk_rows").integer(tensor.chunk_rows, tensor.chunk_rows);
    const JsonValue checksums = json.at("checksums");
    const int64_t chunks = (tensor.cells.rows + tensor.chunk_rows - 1) / tensor.chunk_rows;
    if (checksums.array_size() != chunks) checksums.fail(sentence(chunks, " are expected"));
    tensor.checksums.reserve(static_cast<size_t>(chunks));
    for (auto sum = checksums.first(); sum; sum = sum->next()) {
      tensor.checksums.push_back(read_hex(*sum));
    }
    return tensor;
  }

  static TablePart read_part(const JsonValue& json, const ManifestTable& table) {
    std::string accepted;
    for (int p = 0; p < part_count(table.optimizer); ++p) {
      const std::string name = name_of(table.optimizer, static_cast<TablePart>(p));
      if (json.text() == name) return static_cast<TablePart>(p);
      accepted += (p == 0 ? "" : ", ") + name;
    }
    json.fail("\"" + json.text() + "\" is unknown; accepted: " + accepted);
  }

  const std::string& path_;
  JsonDocument document_;
  Manifest manifest_;
  std::vector<Index> table_of_;  // by collection
  Index file_of_;
  std::unordered_set<std::string> seen_;
};

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
  write_stored(json, manifest, tensor.stored);
  json.key("bytes").integer(bytes_of(tensor));
  json.key("chunk_rows").integer(tensor.chunk_rows);
  json.key("checksums").begin_array();
  for (const uint64_t sum : tensor.checksums) json.text(core::to_hex(sum));
  json.end_array();
  json.end_object();
}

}  // namespace

std::string manifest_to_text(const Manifest& manifest) {
  using Style = JsonWriter::Style;
  JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("format").text(kFormats[1]);
  json.key("run").text(manifest.run);
  json.key("commit").integer(manifest.commit);
  json.key("step").integer(manifest.step);
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
  json.key("tensors").begin_array(Style::kLines);
  for (const ManifestTensor& tensor : manifest.tensors) write_tensor(json, manifest, tensor);
  json.end_array();
  const uint64_t checksum = core::hash64(0, json.str());
  json.key("checksum").text(core::to_hex(checksum));
  json.end_object();
  return json.take();
}

Manifest manifest_from_text(std::string_view text, const std::string& path) {
  check_self(text, path);
  return Reader(text, path).read();
}

}  // namespace shardrec::checkpoint
