// A Criteo click log, streamed: every pass reads the file from its start, keeps the rows of its split
// as text, and parses those that are wanted.
#include <optional>

#include "command/user_error.h"
#include "data/click_log.h"
#include "data/criteo_parser.h"
#include "data/line_reader.h"
#include "data/planted_meta.h"

namespace shardrec::cli {
namespace {

constexpr int64_t kRowsPerTable = 65536;
// Values that share a row cannot be told apart: with 16 rows a value that costs 0.001 of AUC on
// generated data.
constexpr int64_t kRowsPerValue = 64;

Schema make_schema(const ClickLogOptions& options) {
  Schema schema;
  schema.dense_columns = kCriteoDense;
  const auto meta = read_planted_meta(options.path);
  for (int k = 0; k < kCriteoIds; ++k) {
    int64_t rows = kRowsPerTable;
    if (options.table_rows.size() == kCriteoIds) {
      rows = options.table_rows[static_cast<size_t>(k)];
    } else if (options.rows_per_table > 0) {
      rows = options.rows_per_table;
    } else if (meta) {
      rows = kRowsPerValue * meta->values[static_cast<size_t>(k)] +
             1;  // and the row of missing values
    }
    schema.features.push_back({"C" + std::to_string(k + 1), rows});
  }
  return schema;
}

class CriteoPass final : public Pass {
 public:
  CriteoPass(const std::string& path, uint64_t seed, Split split, const CriteoLayout& layout,
             const Schema& schema, BadLines* bad_lines)
      : path_(path),
        seed_(seed),
        split_(split),
        parser_(layout, schema),
        bad_lines_(bad_lines),
        reader_(path) {
    std::string_view header;
    if (layout.header) {
      reader_.next(header);
      ++line_number_;
    }
  }

  bool read(Rows& out, int64_t limit) override {
    int64_t added = 0;
    std::string_view line;
    while (added < limit && reader_.next(line)) {
      ++line_number_;
      const uint64_t row = row_++;
      if (is_test_row(seed_, row) != (split_ == Split::kTest)) continue;
      const std::string problem =
          parser_.is_plain(line) ? std::string() : parser_.parse(line, sample_);
      if (problem.empty()) {
        out.add(line, static_cast<int64_t>(row));
        ++added;
      } else if (bad_lines_ != nullptr) {
        bad_lines_->add(path_, line_number_, problem);
      }
    }
    return added > 0;
  }

  void add(const Rows& rows, int64_t index, Samples& out) override {
    parser_.parse(rows.line(index), sample_);
    sample_.row = rows.lines[static_cast<size_t>(index)].row;
    out.add(sample_);
  }

  [[nodiscard]] double fraction() const override { return reader_.fraction(); }

 private:
  std::string path_;
  uint64_t seed_;
  Split split_;
  CriteoParser parser_;
  BadLines* bad_lines_;  // null: this split's were counted by an earlier pass
  LineReader reader_;
  Sample sample_;
  uint64_t row_ = 0;
  int64_t line_number_ = 0;
};

class CriteoLog final : public ClickLog {
 public:
  explicit CriteoLog(const ClickLogOptions& options)
      : options_(options), schema_(make_schema(options)), bad_lines_(options.strict) {
    LineReader reader(options.path);
    std::string_view line;
    if (!reader.next(line)) throw UserError(options.path + " is empty.");
    layout_ = criteo_layout(options.path, line);
  }

  [[nodiscard]] const Schema& schema() const override { return schema_; }
  [[nodiscard]] const BadLines& bad_lines() const override { return bad_lines_; }
  [[nodiscard]] std::unique_ptr<Pass> open(Split split) override {
    bool& counted = split == Split::kTest ? test_counted_ : train_counted_;
    BadLines* bad_lines = counted ? nullptr : &bad_lines_;
    counted = true;
    return std::make_unique<CriteoPass>(options_.path, options_.seed, split, layout_, schema_,
                                        bad_lines);
  }

 private:
  ClickLogOptions options_;
  Schema schema_;
  BadLines bad_lines_;
  CriteoLayout layout_;
  bool train_counted_ = false;
  bool test_counted_ = false;
};

}  // namespace

std::unique_ptr<ClickLog> open_criteo(const ClickLogOptions& options) {
  return std::make_unique<CriteoLog>(options);
}

}  // namespace shardrec::cli
