// A pass over a Criteo log, streamed: reads the files from the start of the first one, keeps the readable rows of
// its split as text, and makes samples of those that are wanted.
//
// A ring of CriteoLines is read ahead; they are checked by the pass's ParseThreads while the reader goes on, and
// taken in the order of the file. So rows, unreadable lines and errors come as one thread would find them.
// Memory: 2 x threads - 1 times that of CriteoLines.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <vector>

#include "data/criteo_lines.h"

namespace shardrec::cli {

class CriteoPass final : public Pass {
 public:
  // bad_lines null: this split's were counted by an earlier pass. files and bad_lines outlive the pass; `threads` is
  // destroyed before it.
  CriteoPass(const CriteoFiles& files, Split split, BadLines* bad_lines, ParseThreads& threads);

  bool read(Rows& out, int64_t limit) override;
  void add(const Rows& rows, int64_t index, Sample& scratch, Samples& out) const override;
  [[nodiscard]] double fraction() const override;

 private:
  // Lines that were read, and what reading found behind them.
  struct Ahead {
    std::shared_ptr<CriteoLines> lines;
    double fraction = 0;       // of the files, behind them
    std::exception_ptr error;  // what reading ended with
  };

  [[nodiscard]] const std::string& path(size_t file) const { return files_.options.paths[file]; }
  void open(size_t file);
  [[nodiscard]] double fraction_read() const;
  void read_ahead();
  void read_lines(Ahead& ahead);
  [[nodiscard]] const Ahead& taken() const { return ring_[taken_ % ring_.size()]; }
  bool next_lines();
  bool take(Rows& out);
  void finish();

  const CriteoFiles& files_;
  Split split_;
  BadLines* bad_lines_;
  ParseThreads& threads_;

  // What is read next.
  size_t file_ = 0;
  int64_t number_ = 0;  // of the next line in its file, from 1
  int64_t row_ = 0;
  std::optional<LineReader> reader_;
  bool all_read_ = false;

  // What is taken next: line next_ of the ring's element taken_ % size. Elements [taken_, read_) hold lines.
  std::vector<Ahead> ring_;
  size_t taken_ = 0;
  size_t read_ = 0;
  bool taking_ = false;  // the lines at taken_ are checked
  int64_t next_ = 0;
  int64_t rows_of_split_ = 0;
  double fraction_ = 0;  // of the files, before the lines at taken_
  bool finished_ = false;
};

}  // namespace shardrec::cli
