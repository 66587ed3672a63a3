// Lines of one file of a Criteo log that follow each other, and what each of them is. A reader fills them; as a job
// they check themselves; the reader takes the rows of its split in their order.
//
// Memory: kLines lines or kBytes of text, and one line.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

#include "data/criteo_files.h"
#include "data/line_reader.h"
#include "data/parse_threads.h"

namespace shardrec::cli {

class CriteoLines final : public ParseJob {
 public:
  static constexpr size_t kLines = 512;
  static constexpr size_t kBytes = size_t{1} << 20;

  CriteoLines(const CriteoFiles& files, Split split) : files_(files), split_(split) {}

  // Where the first line is.
  struct Start {
    size_t file = 0;
    int64_t number = 0;  // in the file, from 1
    int64_t row = 0;     // in the data, from 0
  };
  // Takes the place of the lines before. False: the file has ended. Throws what the reader throws; the lines
  // before are kept.
  bool fill(LineReader& reader, const Start& start);
  void run() noexcept override;
  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(rows_.lines.size()); }

  // What a line is, once the job is done. Throws what checking threw.
  enum class Kind : uint8_t { kOther, kReadable, kUnreadable };  // kOther: of the other split
  [[nodiscard]] Kind kind(int64_t index) const;
  void add_to(Rows& rows, int64_t index) const;
  [[nodiscard]] size_t file() const { return start_.file; }
  [[nodiscard]] int64_t number(int64_t index) const { return start_.number + index; }
  // Of an unreadable line: what is wrong with it.
  [[nodiscard]] std::string problem(int64_t index) const;

 private:
  [[nodiscard]] bool is_wanted(int64_t row) const;
  [[nodiscard]] const CriteoParser& parser() const { return files_.parsers[start_.file]; }

  const CriteoFiles& files_;
  Split split_;
  Start start_;
  Rows rows_;
  std::vector<Kind> kinds_;
  Sample sample_;
  std::exception_ptr error_;  // of checking
};

}  // namespace shardrec::cli
