// The error of arguments and files that cannot be used.
#pragma once

#include <stdexcept>

namespace shardrec::cli {

// The sentence says what the user gave and what would be accepted.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace shardrec::cli
