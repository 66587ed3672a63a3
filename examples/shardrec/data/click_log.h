// A click log on disk: its schema, and passes over its training or its test rows in file order.
//
// Row i (counted from 0 over all files, without headers, unreadable rows included) is a test row when
// shardrec_hash64(seed, i as 8 bytes, lowest first) is a multiple of 5. Of a log without labels every row is.
// Thread rule: a pass is read by one thread, with the help of its ParseThreads, which are gone before the pass is;
// any threads make samples of what it has read. Passes of one log do not overlap.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/labels.h"
#include "data/parse_threads.h"
#include "data/samples.h"

namespace shardrec::cli {

enum class Split { kTrain, kTest };

bool is_test_row(uint64_t seed, uint64_t row);

// Which rows may be unreadable: those are left out.
struct Tolerance {
  bool strict = false;  // none: the first one is an error
  double share = 0.01;  // of the rows read so far, at most
};

// Rows that could not be read. Each is counted once: later passes over the same rows are silent.
class BadLines {
 public:
  struct Line {
    std::string path;
    int64_t number = 0;  // in the file, from 1
    std::string reason;
  };
  static constexpr size_t kShown = 5;

  explicit BadLines(const Tolerance& tolerance) : tolerance_(tolerance) {}
  // rows: read since the last check(), this one included. Throws UserError: strict; or so many are
  // unreadable that nobody need read on.
  void add(const std::string& path, int64_t number, int64_t rows, const std::string& reason);
  // So many rows have been read since the last one, readable or not. Throws UserError: too many were not,
  // or all.
  void check(const std::string& path, int64_t rows);
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] const std::vector<Line>& first() const { return first_; }

 private:
  [[nodiscard]] bool too_many_of(int64_t rows) const;
  [[noreturn]] void refuse(const std::string& path, int64_t rows) const;

  Tolerance tolerance_;
  int64_t rows_ = 0;
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
  // Appends a row that this pass has read, as a sample. Any thread. scratch: of the calling thread.
  virtual void add(const Rows& rows, int64_t index, Sample& /*scratch*/, Samples& out) const {
    out.add(rows.samples, index);
  }
  [[nodiscard]] virtual double fraction() const = 0;  // 0 .. 1
};

class ClickLog {
 public:
  ClickLog() = default;
  ClickLog(const ClickLog&) = delete;
  ClickLog& operator=(const ClickLog&) = delete;
  virtual ~ClickLog() = default;
  [[nodiscard]] virtual const Schema& schema() const = 0;
  [[nodiscard]] virtual std::unique_ptr<Pass> open(Split split, ParseThreads& threads) = 0;
  [[nodiscard]] virtual const BadLines& bad_lines() const = 0;
  // False: there is nothing to train with, and no quality of what is predicted.
  [[nodiscard]] virtual bool labelled() const { return true; }
};

struct ClickLogOptions {
  std::vector<std::string> paths{};  // read one after another (data_files.h); of MovieLens one
  uint64_t seed = 0;                 // of the split
  Tolerance tolerance{};
  Labels labels = Labels::kBinary;  // Criteo
  int64_t rows_per_table = 0;       // Criteo; 0: 64 x the values where they are known, else 65,536
  std::vector<int64_t> table_rows{};  // Criteo: of each table, as a checkpoint has them; or empty
};

// Both read text files and gzip files (byte_source.h).
//
// Criteo's Kaggle TSV (label, I1..I13, C1..C26), or a CSV with a header that names those columns; both also
// without labels.
std::unique_ptr<ClickLog> open_criteo(const ClickLogOptions& options);

// MovieLens (movielens_files.h).
std::unique_ptr<ClickLog> open_movielens(const ClickLogOptions& options);

}  // namespace shardrec::cli
