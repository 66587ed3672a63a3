// Reading of manifest.json, formats 1, 2 and 3.
#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/format/manifest.h"
#include "checkpoint/format/manifest_words.h"
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
using core::sentence;

constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int64_t kMostDim = 65536;
constexpr int64_t kMostRanks = int64_t{1} << 20;
constexpr int64_t kMostElements = int64_t{1} << 58;  // bytes of them fit 63 bits
constexpr std::string_view kChecksumEnd = "\"\n}";
constexpr size_t kHexDigits = 16;
// Manifests have long keys; what has more values is none, and would take many times its size.
constexpr size_t kLeastBytesPerValue = 6;

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
    const auto known = std::find(kManifestFormats.begin(), kManifestFormats.end(), format.text());
    if (known == kManifestFormats.end()) {
      fail(SHARDREC_UNSUPPORTED,
           sentence("the manifest ", path_, " has the format \"", format.text(),
                    "\"; this release reads \"", kManifestFormats[0], "\", \"", kManifestFormats[1],
                    "\" and \"", kManifestFormats[2], "\""),
           {.path = path_});
    }
    manifest_.format = 1 + static_cast<int>(known - kManifestFormats.begin());
    if (manifest_.format == 1) {
      root.expect_keys({"format", "step", "tables", "files", "tensors", "checksum"});
      manifest_.collections.emplace_back();
      read_tables(root.at("tables"), manifest_.collections.front());
    } else {
      if (manifest_.format == 2) {
        root.expect_keys({"format", "run", "commit", "step", "ranks", "collections", "items",
                          "files", "tensors", "checksum"});
      } else {
        root.expect_keys({"format", "run", "commit", "step", "base", "states", "ranks",
                          "collections", "items", "files", "lists", "tensors", "checksum"});
        if (const auto states = root.find("states")) manifest_.states = states->boolean();
      }
      manifest_.run = root.at("run").text();
      manifest_.commit = root.at("commit").integer(0, INT64_MAX);
      manifest_.ranks = static_cast<int32_t>(root.at("ranks").integer(1, kMostRanks));
      read_collections(root.at("collections"));
    }
    manifest_.step = root.at("step").integer(0, INT64_MAX);
    if (manifest_.format == 1) manifest_.collections.front().step = manifest_.step;
    read_files(root.at("files"));
    if (manifest_.format == 3) {
      read_base(root.at("base"));
      read_lists(root.at("lists"));
    }
    if (manifest_.format != 1) read_items(root.at("items"));
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
    if (manifest_.format != 1) stored.offset = json.at("offset").integer(0, INT64_MAX);
    if (!seen_.insert(sentence(stored.file, "/", stored.name)).second) {
      json.at("tensor").fail("tensor \"" + stored.name + "\" of one file stands there twice");
    }
    return stored;
  }

  void read_base(const JsonValue& json) {
    json.expect_keys({"directory", "step", "commit", "checksum", "deltas"});
    const JsonValue directory = json.at("directory");
    if (!plain_name(directory.text())) {
      directory.fail("a directory below the same root is expected, not \"" + directory.text() +
                     "\"");
    }
    manifest_.base = {.directory = directory.text(),
                      .step = json.at("step").integer(0, INT64_MAX),
                      .commit = json.at("commit").integer(1, manifest_.commit - 1),
                      .checksum = read_hex(json.at("checksum")),
                      .deltas = static_cast<int32_t>(json.at("deltas").integer(1, kMostDeltas))};
  }

  void read_lists(const JsonValue& json) {
    manifest_.lists.reserve(static_cast<size_t>(json.array_size()));
    for (auto item = json.first(); item; item = item->next()) {
      item->expect_keys(
          {"collection", "table", "row", "rows", "count", "file", "tensor", "offset", "checksums"});
      ManifestList list;
      list.collection = read_collection(*item);
      const auto c = static_cast<size_t>(list.collection);
      list.table = look_up(table_of_[c], item->at("table"), "table");
      const int64_t rows = manifest_.collections[c].tables[static_cast<size_t>(list.table)].rows;
      list.row = item->at("row").integer(0, rows - 1);
      list.rows = item->at("rows").integer(1, rows - list.row);
      list.count = item->at("count").integer(0, list.rows);
      list.stored = read_stored(*item);
      read_checksums(item->at("checksums"), list.count, rows_per_chunk(kRowNumberBytes),
                     list.checksums);
      manifest_.lists.push_back(std::move(list));
    }
  }

  int32_t read_collection(const JsonValue& json) const {
    return static_cast<int32_t>(
        json.at("collection").integer(0, std::ssize(manifest_.collections) - 1));
  }

  static void read_checksums(const JsonValue& json, int64_t rows, int64_t chunk_rows,
                             std::vector<uint64_t>& out) {
    const int64_t chunks = (rows + chunk_rows - 1) / chunk_rows;
    if (json.array_size() != chunks) json.fail(sentence(chunks, " are expected"));
    out.reserve(static_cast<size_t>(chunks));
    for (auto sum = json.first(); sum; sum = sum->next()) out.push_back(read_hex(*sum));
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
      if (manifest_.format == 2) {
        json.expect_keys({"collection", "table", "part", "row", "rows", "col", "cols", "dtype",
                          "file", "tensor", "offset", "bytes", "chunk_rows", "checksums"});
      } else {
        json.expect_keys({"collection", "table", "part", "row", "rows", "col", "cols", "dtype",
                          "list", "file", "tensor", "offset", "bytes", "chunk_rows", "checksums"});
      }
      tensor.collection = read_collection(json);
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
    if (manifest_.format == 3) tensor.listed = read_listed(json.at("list"), tensor);
    tensor.stored = read_stored(json);
    (void)json.at("bytes").integer(bytes_of(tensor), bytes_of(tensor));
    if (manifest_.format == 1) {
      tensor.chunk_rows = tensor.cells.rows;
      tensor.checksums = {read_hex(json.at("checksum"))};
      return tensor;
    }
    tensor.chunk_rows = rows_per_chunk(tensor.layout.row_bytes(tensor.cells.cols));
    (void)json.at("chunk_rows").integer(tensor.chunk_rows, tensor.chunk_rows);
    read_checksums(json.at("checksums"), tensor.stored_rows(), tensor.chunk_rows, tensor.checksums);
    return tensor;
  }

  // Of the rows of the box, and of no others.
  ListedRows read_listed(const JsonValue& json, const ManifestTensor& tensor) const {
    const int64_t index = json.integer(0, std::ssize(manifest_.lists) - 1);
    const ManifestList& list = manifest_.lists[static_cast<size_t>(index)];
    if (list.collection != tensor.collection || list.table != tensor.table ||
        list.row != tensor.cells.row || list.rows != tensor.cells.rows) {
      json.fail(sentence("list ", index, " is of other rows than the box"));
    }
    return {.list = static_cast<int32_t>(index), .count = list.count};
  }

  TablePart read_part(const JsonValue& json, const ManifestTable& table) const {
    std::string accepted;
    for (int p = 0; p < manifest_.parts_of(table); ++p) {
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

}  // namespace

uint64_t manifest_checksum(std::string_view text) {
  return core::hash64(0, text.substr(0, text.rfind(kChecksumStart)));
}

Manifest manifest_from_text(std::string_view text, const std::string& path) {
  check_self(text, path);
  return Reader(text, path).read();
}

}  // namespace shardrec::checkpoint
