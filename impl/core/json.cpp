#include "core/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

// The lexer's own conversion of real numbers depends on the locale and asserts that it worked; its
// result is not used here.
#define JSON_ASSERT(condition) static_cast<void>(0)
#include <nlohmann/json.hpp>

namespace shardrec::core {

namespace {

constexpr uint32_t kNone = UINT32_MAX;

enum class Kind : uint8_t {
  kNull,
  kBoolean,
  kInteger,
  kReal,
  kHugeInteger,
  kText,
  kArray,
  kObject
};

const char* name_of(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "null";
    case Kind::kBoolean:
      return "a boolean";
    case Kind::kInteger:
      return "an integer";
    case Kind::kReal:
      return "a real number";
    case Kind::kHugeInteger:
      return "an integer above 2^63 - 1";
    case Kind::kText:
      return "a string";
    case Kind::kArray:
      return "an array";
    case Kind::kObject:
      return "an object";
  }
  return "a value";
}

// Nodes are stored in the order of the text, so a container's first member stands right behind it.
// Small, because a hostile text of one byte per value should not take many times its own size.
struct Node {
  Kind kind = Kind::kNull;
  uint32_t parent = kNone;
  uint32_t next = kNone;
  uint32_t key = kNone;  // index of a string; kNone outside objects
  union {
    int64_t integer = 0;  // value; boolean: 0 or 1; string: its index; containers: members
    double real;
  };
};

}  // namespace

struct JsonDocument::Tree {
  std::string what;
  shardrec_status status = SHARDREC_INVALID_ARGUMENT;
  std::string path;
  std::vector<Node> nodes;
  std::vector<std::string> strings;

  [[noreturn]] void complain(uint32_t node, const std::string& complaint) const {
    std::string out = what;
    const std::string at = place(node);
    out += ": ";
    if (!at.empty()) out += at + ": ";
    out += complaint;
    core::fail(status, std::move(out), {.path = path});
  }

  std::string place(uint32_t node) const {
    std::vector<uint32_t> way;
    for (uint32_t at = node; at != kNone && nodes[at].parent != kNone; at = nodes[at].parent) {
      way.push_back(at);
    }
    std::string out;
    for (size_t i = way.size(); i-- > 0;) {
      const Node& step = nodes[way[i]];
      if (nodes[step.parent].kind == Kind::kObject) {
        if (!out.empty()) out += '.';
        out += strings[step.key];
      } else {
        int64_t index = 0;
        for (uint32_t at = step.parent + 1; at != way[i]; at = nodes[at].next) ++index;
        out += sentence("[", index, "]");
      }
    }
    return out;
  }
};

namespace {

// Receives the parser's events and builds the nodes. Returning false or throwing ends the parse.
class Builder {
 public:
  Builder(std::vector<Node>& nodes, std::vector<std::string>& strings, size_t most_values)
      : nodes_(nodes), strings_(strings), most_values_(std::min<size_t>(most_values, kNone / 2)) {}

  bool null() { return add(Kind::kNull); }
  bool boolean(bool value) {
    if (!add(Kind::kBoolean)) return false;
    nodes_.back().integer = value ? 1 : 0;
    return true;
  }
  bool number_integer(int64_t value) {
    if (!add(Kind::kInteger)) return false;
    nodes_.back().integer = value;
    return true;
  }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX))
      return number_integer(static_cast<int64_t>(value));
    if (!add(Kind::kHugeInteger)) return false;
    nodes_.back().real = static_cast<double>(value);
    return true;
  }
  bool number_float(double, const std::string& text) {
    std::string digits = text;
    bool integral = true;
    for (char& c : digits) {
      const bool digit = c >= '0' && c <= '9';
      if (!digit && c != '-') integral = false;
      // The lexer writes the locale's decimal point.
      if (!digit && c != '-' && c != '+' && c != 'e' && c != 'E') c = '.';
    }
    double value = 0;
    const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (result.ec != std::errc() || result.ptr != digits.data() + digits.size() ||
        !std::isfinite(value)) {
      problem_ = "a number is out of range";
      return false;
    }
    if (!add(integral ? Kind::kHugeInteger : Kind::kReal)) return false;
    nodes_.back().real = value;
    return true;
  }
  bool string(std::string& value) {
    if (!add(Kind::kText)) return false;
    nodes_.back().integer = std::ssize(strings_);
    strings_.push_back(std::move(value));
    return true;
  }
  bool binary(nlohmann::json::binary_t&) { return false; }
  bool key(std::string& value) {
    key_ = std::move(value);
    return true;
  }
  bool start_object(size_t) { return open(Kind::kObject); }
  bool start_array(size_t) { return open(Kind::kArray); }
  bool end_object() {
    const uint32_t object = open_.back().node;
    keys_.clear();
    for (uint32_t at = first_of(object); at != kNone; at = nodes_[at].next) {
      keys_.push_back(strings_[nodes_[at].key]);
    }
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice != keys_.end()) {
      problem_ = sentence("the key \"", std::string(*twice), "\" stands twice in one object");
      problem_node_ = object;
      return false;
    }
    open_.pop_back();
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::json::exception& error) {
    // 406: a number outside the range of double.
    problem_ = error.id == 406 ? std::string("a number is out of range")
                               : sentence("no valid JSON at byte ", position);
    return false;
  }

  const std::string& problem() const { return problem_; }
  uint32_t problem_node() const { return problem_node_; }

 private:
  struct Open {
    uint32_t node;
    uint32_t last_member;
  };

  uint32_t first_of(uint32_t container) const {
    return nodes_[container].integer == 0 ? kNone : container + 1;
  }

  bool add(Kind kind) {
    if (nodes_.size() >= most_values_) {
      problem_ = "the text has too many values";
      return false;
    }
    const auto self = static_cast<uint32_t>(nodes_.size());
    Node node;
    node.kind = kind;
    if (!open_.empty()) {
      Open& parent = open_.back();
      node.parent = parent.node;
      if (nodes_[parent.node].kind == Kind::kObject) {
        node.key = static_cast<uint32_t>(strings_.size());
        strings_.push_back(std::move(key_));
      }
      if (parent.last_member != kNone) nodes_[parent.last_member].next = self;
      parent.last_member = self;
      ++nodes_[parent.node].integer;
    }
    nodes_.push_back(node);
    return true;
  }

  bool open(Kind kind) {
    if (open_.size() >= JsonDocument::kMostDepth) {
      problem_ = sentence("values are nested deeper than ", JsonDocument::kMostDepth);
      return false;
    }
    if (!add(kind)) return false;
    open_.push_back({static_cast<uint32_t>(nodes_.size() - 1), kNone});
    return true;
  }

  std::vector<Node>& nodes_;
  std::vector<std::string>& strings_;
  size_t most_values_;
  std::vector<Open> open_;
  std::vector<std::string_view> keys_;
  std::string key_;
  std::string problem_ = "no valid JSON";
  uint32_t problem_node_ = kNone;
};

// What nlohmann's parser asks of a handler: these names, whatever the style of this code base.
struct Handler : Builder {
  using Builder::Builder;
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;
};

}  // namespace

JsonDocument::JsonDocument(std::string_view text, std::string what, shardrec_status status,
                           std::string path, size_t most_values) {
  auto tree = std::make_unique<Tree>();
  tree->what = std::move(what);
  tree->status = status;
  tree->path = std::move(path);
  Handler handler(tree->nodes, tree->strings, most_values);
  const bool good = nlohmann::json::sax_parse(text.begin(), text.end(), &handler);
  if (!good) tree->complain(handler.problem_node(), handler.problem());
  tree_ = std::move(tree);
}

JsonDocument::~JsonDocument() = default;
JsonDocument::JsonDocument(JsonDocument&&) noexcept = default;
JsonDocument& JsonDocument::operator=(JsonDocument&&) noexcept = default;

JsonValue JsonDocument::root() const { return {tree_.get(), 0}; }

namespace {

const Node& expect(const JsonValue& value, const Node& node, Kind kind) {
  if (node.kind != kind) {
    value.fail(sentence(name_of(kind), " is expected, not ", name_of(node.kind)));
  }
  return node;
}

}  // namespace

bool JsonValue::is_null() const noexcept { return tree_->nodes[node_].kind == Kind::kNull; }

bool JsonValue::boolean() const {
  return expect(*this, tree_->nodes[node_], Kind::kBoolean).integer != 0;
}

int64_t JsonValue::integer(int64_t least, int64_t most) const {
  const int64_t value = expect(*this, tree_->nodes[node_], Kind::kInteger).integer;
  if (value < least || value > most) {
    fail(sentence(value, " is not in [", least, ", ", most, "]"));
  }
  return value;
}

double JsonValue::number() const {
  const Node& node = tree_->nodes[node_];
  if (node.kind == Kind::kInteger) return static_cast<double>(node.integer);
  if (node.kind == Kind::kHugeInteger) return node.real;
  return expect(*this, node, Kind::kReal).real;
}

const std::string& JsonValue::text() const {
  const Node& node = expect(*this, tree_->nodes[node_], Kind::kText);
  return tree_->strings[static_cast<size_t>(node.integer)];
}

void JsonValue::expect_keys(std::initializer_list<std::string_view> keys) const {
  expect(*this, tree_->nodes[node_], Kind::kObject);
  for (auto member = first(); member; member = member->next()) {
    if (std::find(keys.begin(), keys.end(), member->key()) != keys.end()) continue;
    std::string known;
    for (const std::string_view key : keys) {
      if (!known.empty()) known += ", ";
      known += key;
    }
    member->fail("the key is not known here; accepted: " + known);
  }
}

std::optional<JsonValue> JsonValue::find(std::string_view key) const {
  expect(*this, tree_->nodes[node_], Kind::kObject);
  for (auto member = first(); member; member = member->next()) {
    if (member->key() == key) return member;
  }
  return std::nullopt;
}

JsonValue JsonValue::at(std::string_view key) const {
  const auto member = find(key);
  if (!member) fail(sentence("the key \"", std::string(key), "\" is missing"));
  return *member;
}

int64_t JsonValue::array_size() const {
  return expect(*this, tree_->nodes[node_], Kind::kArray).integer;
}

int64_t JsonValue::object_size() const {
  return expect(*this, tree_->nodes[node_], Kind::kObject).integer;
}

std::optional<JsonValue> JsonValue::first() const {
  const Node& node = tree_->nodes[node_];
  if ((node.kind != Kind::kArray && node.kind != Kind::kObject) || node.integer == 0) {
    return std::nullopt;
  }
  return JsonValue(tree_, node_ + 1);
}

std::optional<JsonValue> JsonValue::next() const {
  const uint32_t sibling = tree_->nodes[node_].next;
  if (sibling == kNone) return std::nullopt;
  return JsonValue(tree_, sibling);
}

const std::string& JsonValue::key() const { return tree_->strings[tree_->nodes[node_].key]; }

void JsonValue::fail(const std::string& complaint) const { tree_->complain(node_, complaint); }

std::string JsonValue::place() const { return tree_->place(node_); }

void require_format(const JsonValue& format, std::string_view name, int64_t version) {
  const std::string& text = format.text();
  const std::string accepted = sentence(name, "-", version);
  if (text == accepted) return;
  const std::string prefix = sentence(name, "-");
  const char* const end = text.data() + text.size();
  int64_t given = 0;
  if (text.starts_with(prefix)) {
    const auto [stop, error] = std::from_chars(text.data() + prefix.size(), end, given);
    if (error == std::errc{} && stop == end && given > version) {
      format.fail(
          sentence("\"", text, "\" is of a later release; this one reads \"", accepted, "\""));
    }
  }
  format.fail(sentence("the format is not \"", accepted, "\""));
}

}  // namespace shardrec::core
