// Strict reading and plain writing of JSON, for models, plans, manifests and headers of tensor
// files.
//
// Reading: a text is parsed once into a document; views of its values know their place in it, so
// that every complaint says where ("plan: tables[3].rows: ..."). Nothing is converted silently: an
// integer field takes integers only, duplicate keys, trailing text, comments, invalid UTF-8,
// numbers out of range and nesting deeper than kMostDepth are errors. Numbers do not depend on the
// locale.
//
// Thread rule: a document is immutable once parsed; views may be read from any thread while it
// lives.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace shardrec::core {

class JsonValue;

class JsonDocument {
 public:
  static constexpr int kMostDepth = 32;

  // what: names the text in errors, such as "plan". status: of every error of the document and its
  // views (INVALID_ARGUMENT for what callers pass, CORRUPT_DATA for files).
  // most_values: a text of more values is an error. It bounds the memory for texts of others, which
  // can take many times their size.
  JsonDocument(std::string_view text, std::string what, shardrec_status status,
               std::string path = {}, size_t most_values = SIZE_MAX);
  ~JsonDocument();
  JsonDocument(JsonDocument&&) noexcept;
  JsonDocument& operator=(JsonDocument&&) noexcept;

  JsonValue root() const;

 private:
  friend class JsonValue;
  struct Tree;
  std::unique_ptr<const Tree> tree_;
};

// A view of one value. Accessors throw the document's status when the value is of another type.
class JsonValue {
 public:
  bool is_null() const noexcept;
  bool boolean() const;
  int64_t integer(int64_t least, int64_t most) const;
  double number() const;  // integers too; always finite
  const std::string& text() const;

  // Objects. Refuses keys that are not listed, naming the first one.
  void expect_keys(std::initializer_list<std::string_view> keys) const;
  JsonValue at(std::string_view key) const;  // throws when missing
  std::optional<JsonValue> find(std::string_view key) const;

  // Arrays and objects: the number of members, then one after the other.
  int64_t array_size() const;
  int64_t object_size() const;
  std::optional<JsonValue> first() const;
  std::optional<JsonValue> next() const;  // the sibling behind this one
  const std::string& key() const;         // of a member of an object

  // Throws the document's status: "<what>: <place>: <complaint>".
  [[noreturn]] void fail(const std::string& complaint) const;
  std::string place() const;  // such as "tables[3].rows"; "" for the root

 private:
  friend class JsonDocument;
  JsonValue(const JsonDocument::Tree* tree, uint32_t node) : tree_(tree), node_(node) {}

  const JsonDocument::Tree* tree_;
  uint32_t node_;
};

// Appends JSON to a string: "key": value pairs with single spaces, as Python's json.dumps writes.
// Members of containers opened with kLines stand on lines of their own. Calls must nest properly.
class JsonWriter {
 public:
  enum class Style : uint8_t { kInline, kLines };

  JsonWriter& begin_object(Style style = Style::kInline) { return begin('{', style); }
  JsonWriter& end_object() { return end('}'); }
  JsonWriter& begin_array(Style style = Style::kInline) { return begin('[', style); }
  JsonWriter& end_array() { return end(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& text(std::string_view value);  // valid UTF-8
  JsonWriter& integer(int64_t value);
  JsonWriter& number(double value);  // finite; the shortest text that reads back as the same bits
  JsonWriter& boolean(bool value);
  JsonWriter& null();

  const std::string& str() const noexcept { return out_; }
  std::string take() noexcept { return std::move(out_); }

 private:
  JsonWriter& begin(char bracket, Style style);
  JsonWriter& end(char bracket);
  void before_value();
  void quote(std::string_view value);

  struct Level {
    Style style;
    bool empty;
  };
  std::string out_;
  std::vector<Level> levels_;
  bool after_key_ = false;
};

// Throws the document's status where the format is not "<name>-<version>", such as "shardrec-plan-1"; a later
// version is named as such.
void require_format(const JsonValue& format, std::string_view name, int64_t version);

// Well-formed UTF-8 as RFC 3629 has it: no overlong forms, surrogates or code points past U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

}  // namespace shardrec::core
