// The plan as aligned tables for people: one line per table, then one per rank, each bounded.
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/bytes.h"
#include "plan/cuts.h"
#include "plan/model/names.h"
#include "plan/plan.h"

namespace shardrec::plan {

namespace {

constexpr size_t kMostLines = 40;
constexpr size_t kMostNameLength = 40;
constexpr size_t kMostRankRanges = 6;

size_t letters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// At most kMostNameLength letters, the rest replaced by "...".
std::string shortened(const std::string& name) {
  if (letters(name) <= kMostNameLength) return name;
  size_t bytes = 0;
  for (size_t seen = 0; bytes < name.size(); ++bytes) {
    const bool begins = (static_cast<unsigned char>(name[bytes]) & 0xC0) != 0x80;
    if (begins && ++seen > kMostNameLength - 3) break;
  }
  return name.substr(0, bytes) + "...";
}

std::string fixed(double value, int decimals) {
  char digits[64];
  const auto result =
      std::to_chars(digits, digits + sizeof digits, value, std::chars_format::fixed, decimals);
  return {digits, result.ptr};
}

std::string size_text(int64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return std::to_string(bytes) + " B";
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return fixed(value, 1) + " " + kUnits[unit];
}

// "0-3, 7": the ranks that own boxes, in ranges.
std::string ranks_text(const TablePlan& plan) {
  if (plan.replicated) {
    return plan.replication == SHARDREC_REPLICATION_SAMPLES
               ? "all"
               : std::string("all, by ") + name_of(plan.replication);
  }
  std::vector<int32_t> ranks;
  ranks.reserve(plan.boxes.size());
  for (const Box& box : plan.boxes) ranks.push_back(box.rank);
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::string out;
  size_t ranges = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (++ranges > kMostRankRanges)
      return out + ", ... (" + std::to_string(ranks.size()) + " ranks)";
    if (!out.empty()) out += ", ";
    out += std::to_string(ranks[i]);
    if (last > i) out.append("-").append(std::to_string(ranks[last]));
    i = last + 1;
  }
  return out.empty() ? "none" : out;
}

// Lines of cells, columns padded to the widest cell; numbers stand right.
class Grid {
 public:
  explicit Grid(std::vector<bool> right) : right_(std::move(right)) {}

  void add(std::vector<std::string> cells) { lines_.push_back(std::move(cells)); }

  std::string str() const {
    std::vector<size_t> widths(right_.size(), 0);
    for (const auto& line : lines_) {
      for (size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], letters(line[i]));
    }
    std::string out;
    for (const auto& line : lines_) {
      for (size_t i = 0; i < line.size(); ++i) {
        const std::string padding(widths[i] - letters(line[i]), ' ');
        const bool last = i + 1 == line.size();
        if (i > 0) out += "  ";
        if (right_[i]) out += padding;
        out += line[i];
        if (!right_[i] && !last) out += padding;
      }
      out += '\n';
    }
    return out;
  }

 private:
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> lines_;
};

// Of all ranks together.
Bytes bytes_of_table(const Plan& plan, const Model& model, size_t table) {
  Bytes sum;
  if (plan.tables[table].replicated) {
    sum = bytes_of_whole(model, table);
    sum.weights *= plan.topology.ranks;
    sum.states *= plan.topology.ranks;
  }
  for (const Bytes& box : bytes_of_boxes(plan, model, table)) sum += box;
  return sum;
}

std::string tables_text(const Plan& plan, const Model& model) {
  Grid grid({false, true, true, true, true, true, false, true, false});
  grid.add({"table", "rows", "dim", "weights", "states", "total", "sharding", "boxes", "ranks"});
  const size_t shown = std::min(plan.tables.size(), kMostLines);
  Bytes total;
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const Table& table = model.tables[i];
    const Bytes bytes = bytes_of_table(plan, model, i);
    total += bytes;
    if (i >= shown) continue;
    const auto kind = recognise(plan.tables[i], table, plan.topology);
    grid.add({shortened(table.name), std::to_string(table.rows), std::to_string(table.dim),
              size_text(bytes.weights), size_text(bytes.states), size_text(bytes.total()),
              kind ? name_of(*kind) : "boxes", std::to_string(plan.tables[i].boxes.size()),
              ranks_text(plan.tables[i])});
  }
  std::string out = grid.str();
  if (shown < plan.tables.size()) {
    out += "... and " + std::to_string(plan.tables.size() - shown) + " more tables\n";
  }
  return out + std::to_string(plan.tables.size()) + " tables, " + size_text(total.weights) +
         " of weights, " + size_text(total.states) + " of optimizer states, on " +
         std::to_string(plan.topology.ranks) + " ranks, " +
         std::to_string(plan.topology.ranks_per_node) + " per node\n";
}

std::string ranks_table_text(const Plan& plan, const Model& model) {
  std::vector<Bytes> ranks(static_cast<size_t>(plan.topology.ranks));
  Bytes replicated;
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    if (plan.tables[i].replicated) replicated += bytes_of_whole(model, i);
    const std::vector<Bytes> boxes = bytes_of_boxes(plan, model, i);
    for (size_t box = 0; box < boxes.size(); ++box) {
      ranks[static_cast<size_t>(plan.tables[i].boxes[box].rank)] += boxes[box];
    }
  }
  Grid grid({true, true, true, true});
  grid.add({"rank", "weights", "states", "total"});
  const size_t shown = std::min(ranks.size(), kMostLines);
  double mean = 0;
  int64_t most = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    ranks[rank] += replicated;
    mean += static_cast<double>(ranks[rank].total()) / static_cast<double>(ranks.size());
    most = std::max(most, ranks[rank].total());
    if (rank >= shown) continue;
    grid.add({std::to_string(rank), size_text(ranks[rank].weights), size_text(ranks[rank].states),
              size_text(ranks[rank].total())});
  }
  std::string out = grid.str();
  if (shown < ranks.size()) {
    out += "... and " + std::to_string(ranks.size() - shown) + " more ranks\n";
  }
  out += "largest rank: " + size_text(most);
  if (mean > 0) out += ", " + fixed(static_cast<double>(most) / mean, 2) + " x the mean";
  if (replicated.total() > 0) {
    out += "; of each rank, " + size_text(replicated.total()) + " are of replicated tables";
  }
  return out + "\n";
}

}  // namespace

std::string plan_to_text(const Plan& plan, const Model& model) {
  return tables_text(plan, model) + "\n" + ranks_table_text(plan, model);
}

}  // namespace shardrec::plan
