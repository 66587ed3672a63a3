// What all formats of logs share: the split, and the list of unreadable lines.
#include "data/click_log.h"

#include <algorithm>

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/hash_number.h"

namespace shardrec::cli {

bool is_test_row(uint64_t seed, uint64_t row) { return hash_number(seed, row) % 5 == 0; }

void BadLines::add(const std::string& path, int64_t number, int64_t rows,
                   const std::string& reason) {
  if (tolerance_.strict) {
    throw UserError(path + ", line " + std::to_string(number) + ": " + reason +
                    " (--strict stops at the first unreadable line).");
  }
  ++count_;
  if (first_.size() < kShown) first_.push_back({path, number, reason});
  // A log that is not what it was taken for need not be read to its end.
  constexpr int64_t kSurely = 10000;
  if (count_ >= kSurely && too_many_of(rows_ + rows)) refuse(path, rows_ + rows);
}

void BadLines::check(const std::string& path, int64_t rows) {
  rows_ += rows;
  if (count_ != 0 && (count_ == rows_ || too_many_of(rows_))) refuse(path, rows_);
}

bool BadLines::too_many_of(int64_t rows) const {
  return static_cast<double>(count_) > tolerance_.share * static_cast<double>(rows);
}

void BadLines::refuse(const std::string& path, int64_t rows) const {
  constexpr size_t kNamed = 3;
  std::string text = path + ": " + with_separators(count_) + " of " + with_separators(rows) +
                     " lines are unreadable";
  if (count_ != rows) {
    text += ", more than " + fixed(100 * tolerance_.share, 2) + " % (--max-unreadable)";
  }
  text += ". The first ones:";
  for (size_t i = 0; i < std::min(first_.size(), kNamed); ++i) {
    text += "\n  " + first_[i].path + ", line " + std::to_string(first_[i].number) + ": " +
            first_[i].reason;
  }
  throw UserError(text);
}

}  // namespace shardrec::cli
