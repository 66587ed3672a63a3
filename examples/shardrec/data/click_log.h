// A click log on disk: its schema, and passes over its training or its test rows in file order.
//
// Row i (counted from 0, without a header, unreadable rows included) is a test row when
// shardrec_hash64(seed, i as 8 bytes, lowest first) is a multiple of 5.
// Thread rule: a pass is used by one thread; passes of one log do not overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/samples.h"

namespace shardrec::cli {

enum class Split { kTrain, kTest };

bool is_test_row(uint64_t seed, uint64_t row);

// Rows that could not be read. Each is counted once: later passes over the same rows are silent.
class BadLines {
 public:
  struct Line {
    int64_t number = 0;  // in the file, from 1
    std::string reason;
  };
  static constexpr size_t kShown = 5;

  explicit BadLines(bool strict) : strict_(strict) {}
  void add(const std::string& path, int64_t number,
           const std::string& reason);  // strict: UserError
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] const std::vector<Line>& first() const { return first_; }

 private:
  bool strict_;
  int64_t count_ = 0;
  std::vector<Line> first_;
};

class Pass {
 public:
  Pass() = default;
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;
  virtual ~Pass() = default;
  // Appends up to `limit` readable rows; false when none was left.
  virtual bool read(Rows& out, int64_t limit) = 0;
  // Appends a row that this pass has read, as a sample.
  virtual void add(const Rows& rows, int64_t index, Samples& out) { out.add(rows.samples, index); }
  [[nodiscard]] virtual double fraction() const = 0;  // 0 .. 1
};

class ClickLog {
 public:
  ClickLog() = default;
  ClickLog(const ClickLog&) = delete;
  ClickLog& operator=(const ClickLog&) = delete;
  virtual ~ClickLog() = default;
  [[nodiscard]] virtual const Schema& schema() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Pass> open(Split split) = 0;
  [[nodiscard]] virtual const BadLines& bad_lines() const = 0;
};

struct ClickLogOptions {
  std::string path;
  uint64_t seed = 0;           // of the split
  bool strict = false;         // an unreadable line is an error
  int64_t rows_per_table = 0;  // Criteo; 0: 64 x the values where they are known, else 65,536
  std::vector<int64_t> table_rows{};  // Criteo: of each table, as a checkpoint has them; or empty
};

// Both read text files and gzip files (byte_source.h).
//
// Criteo's Kaggle TSV (label, I1..I13, C1..C26), or a CSV with a header that names those columns.
std::unique_ptr<ClickLog> open_criteo(const ClickLogOptions& options);

// MovieLens in RecBole's .inter format, with the .user and .item files beside it where they exist.
std::unique_ptr<ClickLog> open_movielens(const ClickLogOptions& options);

}  // namespace shardrec::cli
