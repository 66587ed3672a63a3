// What all formats of logs share: the split, and the list of unreadable lines.
#include "data/click_log.h"

#include "command/numbers.h"
#include "command/user_error.h"
#include "data/hash_number.h"

namespace shardrec::cli {

bool is_test_row(uint64_t seed, uint64_t row) { return hash_number(seed, row) % 5 == 0; }

void BadLines::add(const std::string& path, int64_t number, const std::string& reason) {
  if (strict_) {
    throw UserError(path + ", line " + std::to_string(number) + ": " + reason +
                    " (--strict stops at the first unreadable line).");
  }
  ++count_;
  if (first_.size() < kShown) first_.push_back({number, reason});
}

}  // namespace shardrec::cli
