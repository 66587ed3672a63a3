// How a trace file is read as a stream: SAX events, one value at a time in memory.
#include "trace/trace_reader.h"

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;

// Of one event, or of otherData; ours have 7 values and, at most, some 80.
constexpr int kMostValues = 1000;
constexpr size_t kMostTextBytes = size_t{1} << 16;
constexpr int kMostDepth = 16;
constexpr int64_t kMostRank = 65535;
constexpr int64_t kVersion = 1;

// Parts of the file that are wanted are built as values, one at a time; the rest is passed over.
class Parser final : public json::json_sax_t {
 public:
  using Take = std::function<void(json&)>;
  Parser(const std::string& path, std::ifstream& file, Take on_other, Take on_event)
      : path_(path), file_(file), on_other_(std::move(on_other)), on_event_(std::move(on_event)) {}

  bool has_other() const { return has_other_; }
  bool has_events() const { return has_events_; }

  [[noreturn]] void refuse(const std::string& complaint) {
    file_.clear();
    refuse_at(static_cast<int64_t>(file_.tellg()), complaint);
  }

  bool null() override { return value(json(nullptr)); }
  bool boolean(bool given) override { return value(json(given)); }
  bool number_integer(number_integer_t given) override { return value(json(given)); }
  bool number_unsigned(number_unsigned_t given) override { return value(json(given)); }
  bool number_float(number_float_t given, const string_t&) override { return value(json(given)); }
  bool string(string_t& given) override {
    check_text(given);
    return value(json(std::move(given)));
  }
  bool binary(binary_t&) override { return false; }  // JSON has none

  bool start_object(size_t) override {
    if (depth_ == 1 && in_events_) in_event_ = true;
    return open(json::object());
  }
  bool start_array(size_t) override {
    if (depth_ == 0) refuse("an array; an object with \"traceEvents\" is expected");
    return open(json::array());
  }
  bool key(string_t& given) override {
    check_text(given);
    if (depth_ == 1 && !in_events_) {
      top_ = given;
      if ((top_ == "otherData" && has_other_) || (top_ == "traceEvents" && has_events_)) {
        refuse("\"" + top_ + "\" for the second time");
      }
    }
    if (wanted()) key_ = std::move(given);
    return true;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    const std::string what = error.what();  // "[json.exception...] parse error at ...: <what>"
    const size_t colon = what.find(": ");
    refuse_at(static_cast<int64_t>(position),
              colon == std::string::npos ? what : what.substr(colon + 2));
  }

 private:
  [[noreturn]] void refuse_at(int64_t position, const std::string& complaint) const {
    throw UserError(path_ + ": byte " + std::to_string(position) + ": " + complaint +
                    (events_ > 0 ? " (after " + std::to_string(events_) + " events)" : "") + ".");
  }
  void check_text(const std::string& text) {
    if (text.size() > kMostTextBytes) {
      refuse("a text of " + std::to_string(text.size()) + " bytes; up to " +
             std::to_string(kMostTextBytes) + " are accepted");
    }
  }

  // Depth 0: before the file's object; 1: in it; 2: in one of its members. The list of events does
  // not count: an event is a member, too.
  bool wanted() const { return in_event_ || (depth_ >= 2 && top_ == "otherData"); }

  bool open(json container) {
    if (depth_ == 1 && !in_events_) {
      if (top_ == "traceEvents") {
        if (!container.is_array()) refuse("\"traceEvents\" is an object; an array is expected");
        in_events_ = has_events_ = true;
        return true;
      }
      if (top_ == "otherData" && !container.is_object()) {
        refuse("\"otherData\" is an array; an object is expected");
      }
    }
    if (depth_ == 1 && in_events_ && !container.is_object()) {
      refuse("an event that is an array; an object is expected");
    }
    if (++depth_ > kMostDepth) {
      refuse("nesting deeper than " + std::to_string(kMostDepth));
    }
    if (!wanted()) return true;
    if (stack_.empty()) {
      values_ = 0;
      part_ = std::move(container);
      stack_.push_back(&part_);
    } else {
      stack_.push_back(&add(std::move(container)));
    }
    return true;
  }

  bool close() {
    if (in_events_ && depth_ == 1) {  // the list ends
      in_events_ = false;
      return true;
    }
    const bool is_wanted = wanted();
    --depth_;
    if (!is_wanted) return true;
    stack_.pop_back();
    if (!stack_.empty()) return true;
    if (in_event_) {
      in_event_ = false;
      on_event_(part_);
      ++events_;
    } else {
      has_other_ = true;
      on_other_(part_);
    }
    return true;
  }

  bool value(json given) {
    if (depth_ == 0) refuse("one value; an object with \"traceEvents\" is expected");
    if (depth_ == 1 && in_events_) refuse("an event that is no object");
    if (depth_ == 1 && (top_ == "traceEvents" || top_ == "otherData")) {
      refuse("\"" + top_ + "\" is one value");
    }
    if (wanted()) add(std::move(given));
    return true;
  }

  json& add(json given) {
    if (++values_ > kMostValues) {
      refuse("more than " + std::to_string(kMostValues) + " values in one object");
    }
    json& parent = *stack_.back();
    if (parent.is_array()) {
      // An element of the array under construction is finished before the next one is added, so
      // that growth moves no value that the stack points to.
      parent.push_back(std::move(given));
      return parent.back();
    }
    if (parent.contains(key_)) refuse("the key \"" + key_ + "\" for the second time");
    return parent[key_] = std::move(given);
  }

  const std::string& path_;
  std::ifstream& file_;
  Take on_other_;
  Take on_event_;
  int depth_ = 0;
  bool in_events_ = false;
  bool in_event_ = false;
  bool has_other_ = false;
  bool has_events_ = false;
  int64_t events_ = 0;
  int values_ = 0;
  std::string top_;
  std::string key_;
  json part_;
  std::vector<json*> stack_;
};

// The parser calls back: what is wrong there is said with the place.
class Members {
 public:
  Members(const json& object, const std::function<void(const std::string&)>& refuse)
      : object_(object), refuse_(refuse) {}

  int64_t integer(const char* key, int64_t least, int64_t most) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_number_integer()) {
      refuse_(std::string("\"") + key + "\" is missing or no integer");
      return 0;
    }
    // Unsigned ones above INT64_MAX would wrap around.
    const bool huge = found->is_number_unsigned() && found->get<uint64_t>() > INT64_MAX;
    const int64_t value = huge ? INT64_MAX : found->get<int64_t>();
    if (huge || value < least || value > most) {
      refuse_(std::string("\"") + key + "\" is " + found->dump() + "; " + std::to_string(least) +
              " to " + std::to_string(most) + " is accepted");
    }
    return value;
  }
  void check_number(const char* key) const {
    const auto found = object_.find(key);
    if (found != object_.end() && !found->is_number()) {
      refuse_(std::string("\"") + key + "\" is no number");
    }
  }
  std::string text(const char* key, size_t most) const {
    const auto found = object_.find(key);
    if (found == object_.end() || !found->is_string()) {
      refuse_(std::string("\"") + key + "\" is missing or no text");
      return "";
    }
    const auto value = found->get<std::string>();
    if (value.empty() || value.size() > most) {
      refuse_(std::string("\"") + key + "\" has " + std::to_string(value.size()) + " bytes; 1 to " +
              std::to_string(most) + " are accepted");
    }
    return value;
  }

 private:
  const json& object_;
  const std::function<void(const std::string&)>& refuse_;
};

TraceHead head_from(const json& other, const std::function<void(const std::string&)>& refuse) {
  // Sums and differences of two stay within 64 bits.
  constexpr int64_t kMost = int64_t{1} << 61;
  constexpr size_t kMostReferenceBytes = 64;
  const Members members(other, refuse);
  TraceHead head;
  // Traces of 0.1 have no version.
  if (other.contains("version") && members.integer("version", 1, INT64_MAX) > kVersion) {
    refuse("\"version\" is " + other.at("version").dump() + ", of a later release; up to " +
           std::to_string(kVersion) + " is read");
  }
  head.start_steady = members.integer("start_steady_nanoseconds", -kMost, kMost);
  head.start_unix = members.integer("start_unix_nanoseconds", -kMost, kMost);
  head.dropped_events = members.integer("dropped_events", 0, kMost);
  const auto clocks = other.find("clocks");
  if (clocks == other.end() || !clocks->is_array()) {
    refuse("\"clocks\" is missing or no array");
    return head;
  }
  for (const json& clock : *clocks) {
    if (!clock.is_object()) refuse("\"clocks\" holds what is no object");
    const Members of(clock, refuse);
    head.clocks.push_back({.reference = of.text("reference", kMostReferenceBytes),
                           .rank = of.integer("rank", 0, kMostRank),
                           .offset = of.integer("offset_nanoseconds", -kMost, kMost),
                           .uncertainty = of.integer("uncertainty_nanoseconds", 0, kMost)});
  }
  return head;
}

std::ifstream open(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw UserError(path + " cannot be read.");
  return file;
}

}  // namespace

TraceHead TraceReader::head() const {
  std::ifstream file = open(path_);
  TraceHead head;
  std::optional<Parser> parser;
  const std::function<void(const std::string&)> refuse = [&](const std::string& complaint) {
    parser->refuse(complaint);
  };
  parser.emplace(path_, file, [&](json& other) { head = head_from(other, refuse); }, [](json&) {});
  json::sax_parse(file, &*parser);
  if (file.bad()) throw UserError(path_ + " cannot be read to its end.");
  if (!parser->has_other() || !parser->has_events()) {
    parser->refuse("the end, and no \"otherData\" and \"traceEvents\" of a trace of shardrec");
  }
  return head;
}

void TraceReader::each_event(const std::function<void(json&)>& body) const {
  std::ifstream file = open(path_);
  std::optional<Parser> parser;
  const std::function<void(const std::string&)> refuse = [&](const std::string& complaint) {
    parser->refuse(complaint);
  };
  parser.emplace(
      path_, file, [](json&) {},
      [&](json& event) {
        const Members members(event, refuse);
        members.text("ph", 1);
        members.integer("pid", 0, kMostRank);
        members.check_number("ts");
        members.check_number("dur");
        body(event);
      });
  json::sax_parse(file, &*parser);
  if (file.bad()) throw UserError(path_ + " cannot be read to its end.");
}

}  // namespace shardrec::cli
