#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "checkpoint/manifest.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/json.h"
#include "plan/names.h"

namespace shardrec::checkpoint {

namespace {

using core::fail;
using core::JsonDocument;
using core::JsonValue;
using core::JsonWriter;
using core::sentence;

constexpr std::string_view kFormat = "shardrec-checkpoint-1";
constexpr int64_t kMostRows = int64_t{1} << 40;
constexpr int64_t kMostDim = 65536;
// The last member: a checksum of everything in front of it.
constexpr std::string_view kChecksumStart = ",\n\"checksum\": \"";
constexpr std::string_view kChecksumEnd = "\"\n}";
constexpr size_t kHexDigits = 16;

std::string to_hex(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string out(kHexDigits, '0');
  for (size_t i = kHexDigits; i-- > 0; value >>= 4) out[i] = kDigits[value & 15];
  return out;
}

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
  if (digits != to_hex(core::hash64(0, text.substr(0, at)))) {
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

template <class Enum>
Enum read_enum(const JsonValue& json, const std::string& path) {
  const auto value = plan::value_of<Enum>(json.text());
  if (!value) {
    fail(SHARDREC_UNSUPPORTED,
         sentence("the manifest ", path, " says ", json.place(), " \"", json.text(),
                  "\"; this release knows ", plan::names_of<Enum>()),
         {.path = path});
  }
  return *value;
}

shardrec_dtype read_dtype(const JsonValue& json, const std::string& path) {
  const auto dtype = read_enum<shardrec_dtype>(json, path);
  if (dtype != SHARDREC_FLOAT32 && dtype != SHARDREC_FLOAT16 && dtype != SHARDREC_BFLOAT16) {
    fail(SHARDREC_UNSUPPORTED,
         sentence("the manifest ", path, " says ", json.place(), " \"", json.text(),
                  "\"; this release reads float32, float16 and bfloat16"),
         {.path = path});
  }
  return dtype;
}

using Index = std::unordered_map<std::string_view, int32_t>;

Index read_tables(const JsonValue& json, const std::string& path, Manifest& manifest) {
  Index index;
  manifest.tables.reserve(static_cast<size_t>(json.array_size()));
  for (auto item = json.first(); item; item = item->next()) {
    item->expect_keys({"name", "rows", "dim", "dtype", "optimizer", "row_statistics"});
    const std::string& name = item->at("name").text();
    if (name.empty()) item->at("name").fail("the name is empty");
    if (!index.emplace(name, std::ssize(manifest.tables)).second) {
      item->at("name").fail("table \"" + name + "\" stands there twice");
    }
    manifest.tables.push_back(
        {.name = name,
         .rows = item->at("rows").integer(1, kMostRows),
         .dim = item->at("dim").integer(1, kMostDim),
         .dtype = read_dtype(item->at("dtype"), path),
         .optimizer = read_enum<shardrec_optimizer>(item->at("optimizer"), path),
         .row_statistics = read_enum<shardrec_row_statistics>(item->at("row_statistics"), path)});
  }
  return index;
}

Index read_files(const JsonValue& json, Manifest& manifest) {
  Index index;
  manifest.files.reserve(static_cast<size_t>(json.array_size()));
  for (auto item = json.first(); item; item = item->next()) {
    item->expect_keys({"name", "bytes"});
    const std::string& name = item->at("name").text();
    if (!plain_name(name)) {
      item->at("name").fail("a file is named with letters, digits, '_', '-' and '.', not \"" +
                            name + "\"");
    }
    if (!index.emplace(name, std::ssize(manifest.files)).second) {
      item->at("name").fail("file \"" + name + "\" stands there twice");
    }
    manifest.files.push_back({name, item->at("bytes").integer(0, INT64_MAX)});
  }
  return index;
}

int32_t look_up(const Index& index, const JsonValue& json, const char* what) {
  const auto found = index.find(json.text());
  if (found == index.end()) json.fail(sentence("there is no ", what, " \"", json.text(), "\""));
  return found->second;
}

Part read_part(const JsonValue& json, const ManifestTable& table) {
  std::string accepted;
  for (int p = 0; p < part_count(table.optimizer); ++p) {
    const std::string name = name_of(table.optimizer, static_cast<Part>(p));
    if (json.text() == name) return static_cast<Part>(p);
    accepted += (p == 0 ? "" : ", ") + name;
  }
  json.fail("\"" + json.text() + "\" is unknown; accepted: " + accepted);
}

ManifestTensor read_tensor(const JsonValue& json, const Index& tables, const Index& files,
                           const Manifest& manifest, const std::string& path) {
  json.expect_keys({"table", "part", "row", "rows", "col", "cols", "dtype", "file", "tensor",
                    "bytes", "checksum"});
  ManifestTensor tensor;
  tensor.table = look_up(tables, json.at("table"), "table");
  const ManifestTable& table = manifest.tables[static_cast<size_t>(tensor.table)];
  tensor.part = read_part(json.at("part"), table);
  tensor.layout = layout_of(table.dtype, table.optimizer, tensor.part);
  tensor.row = json.at("row").integer(0, table.rows - 1);
  tensor.rows = json.at("rows").integer(1, table.rows - tensor.row);
  tensor.col = json.at("col").integer(0, table.dim - 1);
  tensor.cols = json.at("cols").integer(1, table.dim - tensor.col);
  if (read_dtype(json.at("dtype"), path) != tensor.layout.dtype) {
    json.at("dtype").fail(sentence("the part is ", plan::name_of(tensor.layout.dtype)));
  }
  tensor.file = look_up(files, json.at("file"), "file");
  tensor.name = json.at("tensor").text();
  (void)json.at("bytes").integer(bytes_of(tensor), bytes_of(tensor));
  tensor.checksum = read_hex(json.at("checksum"));
  return tensor;
}

void write_tensor(JsonWriter& json, const Manifest& manifest, const ManifestTensor& tensor) {
  json.begin_object();
  const ManifestTable& table = manifest.tables[static_cast<size_t>(tensor.table)];
  json.key("table").text(table.name);
  json.key("part").text(name_of(table.optimizer, tensor.part));
  json.key("row").integer(tensor.row);
  json.key("rows").integer(tensor.rows);
  json.key("col").integer(tensor.col);
  json.key("cols").integer(tensor.cols);
  json.key("dtype").text(plan::name_of(tensor.layout.dtype));
  json.key("file").text(manifest.files[static_cast<size_t>(tensor.file)].name);
  json.key("tensor").text(tensor.name);
  json.key("bytes").integer(bytes_of(tensor));
  json.key("checksum").text(to_hex(tensor.checksum));
  json.end_object();
}

}  // namespace

std::string manifest_to_text(const Manifest& manifest) {
  using Style = JsonWriter::Style;
  JsonWriter json;
  json.begin_object(Style::kLines);
  json.key("format").text(kFormat);
  json.key("step").integer(manifest.step);
  json.key("tables").begin_array(Style::kLines);
  for (const ManifestTable& table : manifest.tables) {
    json.begin_object();
    json.key("name").text(table.name);
    json.key("rows").integer(table.rows);
    json.key("dim").integer(table.dim);
    json.key("dtype").text(plan::name_of(table.dtype));
    json.key("optimizer").text(plan::name_of(table.optimizer));
    json.key("row_statistics").text(plan::name_of(table.row_statistics));
    json.end_object();
  }
  json.end_array();
  json.key("files").begin_array(Style::kLines);
  for (const ManifestFile& file : manifest.files) {
    json.begin_object();
    json.key("name").text(file.name);
    json.key("bytes").integer(file.bytes);
    json.end_object();
  }
  json.end_array();
  json.key("tensors").begin_array(Style::kLines);
  for (const ManifestTensor& tensor : manifest.tensors) write_tensor(json, manifest, tensor);
  json.end_array();
  const uint64_t checksum = core::hash64(0, json.str());
  json.key("checksum").text(to_hex(checksum));
  json.end_object();
  return json.take();
}

Manifest manifest_from_text(std::string_view text, const std::string& path) {
  check_self(text, path);
  const JsonDocument document(text, "the manifest " + path, SHARDREC_CORRUPT_DATA, path);
  const JsonValue root = document.root();
  const JsonValue format = root.at("format");
  if (format.text() != kFormat) {
    fail(SHARDREC_UNSUPPORTED,
         sentence("the manifest ", path, " has the format \"", format.text(),
                  "\"; this release reads \"", std::string(kFormat), "\""),
         {.path = path});
  }
  root.expect_keys({"format", "step", "tables", "files", "tensors", "checksum"});
  Manifest manifest;
  manifest.step = root.at("step").integer(0, INT64_MAX);
  const Index tables = read_tables(root.at("tables"), path, manifest);
  const Index files = read_files(root.at("files"), manifest);
  const JsonValue tensors = root.at("tensors");
  manifest.tensors.reserve(static_cast<size_t>(tensors.array_size()));
  std::unordered_set<std::string> seen;
  for (auto item = tensors.first(); item; item = item->next()) {
    manifest.tensors.push_back(read_tensor(*item, tables, files, manifest, path));
    const ManifestTensor& tensor = manifest.tensors.back();
    if (!seen.insert(sentence(tensor.file, "/", tensor.name)).second) {
      item->at("tensor").fail("tensor \"" + tensor.name + "\" of one file stands there twice");
    }
  }
  return manifest;
}

}  // namespace shardrec::checkpoint
