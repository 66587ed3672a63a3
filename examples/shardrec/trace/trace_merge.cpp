// How traces of several processes become one: clocks compared, events shifted and written as
// they are read.
#include "trace/trace_merge.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "command/user_error.h"
#include "trace/trace_reader.h"

namespace shardrec::cli {
namespace {

using nlohmann::json;

struct Input {
  TraceReader reader;
  TraceHead head;
  const TraceClock* clock = nullptr;  // nullptr: by the wall clock
  int64_t start = 0;                  // in the common clock, nanoseconds
  std::set<int64_t> ranks{};
};

const TraceClock* find_clock(const TraceHead& head, const std::string& reference) {
  // The last one counts; several ranks of a process share its clock, and the surest is the best.
  const TraceClock* best = nullptr;
  for (const TraceClock& clock : head.clocks) {
    if (clock.reference != reference) continue;
    if (best == nullptr || clock.uncertainty < best->uncertainty) best = &clock;
  }
  return best;
}

// The latest measurement that all processes took part in; "" if there is none.
std::string common_reference(const std::vector<Input>& inputs) {
  const auto& candidates = inputs.front().head.clocks;
  for (auto candidate = candidates.rbegin(); candidate != candidates.rend(); ++candidate) {
    if (std::all_of(inputs.begin(), inputs.end(), [&](const Input& input) {
          return find_clock(input.head, candidate->reference) != nullptr;
        })) {
      return candidate->reference;
    }
  }
  return "";
}

std::vector<Input> open_all(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  for (const std::string& path : paths) {
    TraceReader reader(path);
    TraceHead head = reader.head();
    inputs.push_back({.reader = std::move(reader), .head = std::move(head)});
  }
  const std::string reference = common_reference(inputs);
  for (Input& input : inputs) {
    input.start = input.head.start_unix;
    if (reference.empty()) continue;
    input.clock = find_clock(input.head, reference);
    input.start = input.head.start_steady + input.clock->offset;
  }
  return inputs;
}

// A file beside the one that is wanted, which takes its place when it is whole.
class NewFile {
 public:
  explicit NewFile(std::string path) : path_(std::move(path)), part_(path_ + ".part") {
    file_.open(part_, std::ios::binary | std::ios::trunc);
    if (!file_) throw UserError(part_ + " cannot be written; the path of a new file is needed.");
  }
  ~NewFile() {
    if (part_.empty()) return;
    file_.close();
    std::remove(part_.c_str());
  }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void line(const json& value) {
    file_ << (first_ ? "\n" : ",\n") << value.dump(-1, ' ', false, json::error_handler_t::replace);
    first_ = false;
  }
  std::ofstream& stream() { return file_; }
  void finish() {
    file_.close();
    if (!file_ || std::rename(part_.c_str(), path_.c_str()) != 0) {
      throw UserError(path_ + " could not be written.");
    }
    part_.clear();
  }

 private:
  std::string path_;
  std::string part_;
  std::ofstream file_;
  bool first_ = true;
};

json head_of_all(const std::vector<Input>& inputs, int64_t start) {
  json clocks = json::array();
  int64_t dropped = 0;
  int64_t uncertainty = 0;
  const Input* earliest = &inputs.front();
  for (const Input& input : inputs) {
    dropped += std::min(input.head.dropped_events, INT64_MAX - dropped);
    if (input.start < earliest->start) earliest = &input;
    if (input.clock != nullptr) uncertainty = std::max(uncertainty, input.clock->uncertainty);
  }
  const bool compared = inputs.front().clock != nullptr;
  if (compared) {
    clocks.push_back({{"reference", inputs.front().clock->reference},
                      {"rank", 0},
                      {"offset_nanoseconds", 0},
                      {"uncertainty_nanoseconds", uncertainty}});
  }
  return {{"version", 1},
          {"dropped_events", dropped},
          {"start_unix_nanoseconds", earliest->head.start_unix},
          {"start_steady_nanoseconds", compared ? start : 0},
          {"clocks", std::move(clocks)}};
}

// Whose rank is whose: a rank that is in two files is two ranks, or one file twice.
class Owners {
 public:
  void claim(int64_t rank, const std::string& path) {
    const auto [owner, is_new] = owners_.emplace(rank, path);
    if (is_new || owner->second == path) return;
    throw UserError("Rank " + std::to_string(rank) + " is in " + owner->second + " and in " + path +
                    "; a file of each process of one group is accepted.");
  }

 private:
  std::map<int64_t, std::string> owners_;
};

void write_input(NewFile& file, Input& input, int64_t start, Owners& owners, Merged& merged) {
  const double shift = static_cast<double>(input.start - start) * 1e-3;  // microseconds
  input.reader.each_event([&](json& event) {
    const auto rank = event.at("pid").get<int64_t>();
    if (input.ranks.insert(rank).second) owners.claim(rank, input.reader.path());
    if (event.contains("ts")) event["ts"] = event["ts"].get<double>() + shift;
    file.line(event);
    ++merged.events;
  });
  if (input.clock == nullptr) return;
  const std::string label =
      "clock +-" + std::to_string((input.clock->uncertainty + 999) / 1000) + " us";
  for (const int64_t rank : input.ranks) {
    file.line(
        {{"ph", "M"}, {"name", "process_labels"}, {"pid", rank}, {"args", {{"labels", label}}}});
  }
}

void refuse_same_file(const std::string& output, const std::vector<std::string>& inputs) {
  for (const std::string& input : inputs) {
    std::error_code none;
    if (std::filesystem::equivalent(output, input, none)) {
      throw UserError(output + " is one of the files to merge; the path of a new file is needed.");
    }
  }
}

}  // namespace

Merged merge_traces(const std::string& output, const std::vector<std::string>& inputs) {
  refuse_same_file(output, inputs);
  std::vector<Input> all = open_all(inputs);
  const auto first = std::min_element(
      all.begin(), all.end(), [](const Input& a, const Input& b) { return a.start < b.start; });
  const int64_t start = first->start;
  Merged merged{.by_wall_clock = all.size() > 1 && all.front().clock == nullptr};
  NewFile file(output);
  file.stream() << "{\"displayTimeUnit\": \"ms\", \"otherData\": " << head_of_all(all, start).dump()
                << ",\n\"traceEvents\": [";
  Owners owners;
  for (Input& input : all) {
    write_input(file, input, start, owners, merged);
    if (input.clock != nullptr) {
      merged.uncertainty_us =
          std::max(merged.uncertainty_us, static_cast<double>(input.clock->uncertainty) * 1e-3);
    }
  }
  file.stream() << "\n]}\n";
  file.finish();
  return merged;
}

}  // namespace shardrec::cli
