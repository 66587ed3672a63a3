// The token of a rendezvous as a file that all ranks reach, on a disk that they share: how they
// meet where nobody knows an address beforehand.
//
// Whoever may write the file says where the ranks connect to. So it counts only where it is a
// regular file (no link to one) of this process' user or of root, and nobody else may write to it.
#pragma once

#include <optional>
#include <string>

#include "comm/rendezvous/protocol/token.h"

namespace shardrec::comm::rendezvous {

class TokenFile {
 public:
  // Writes it, for its owner only, in place of what was there: readers find one or the other,
  // whole. Throws IO_ERROR, and INVALID_ARGUMENT where readers would refuse it, as on a disk that
  // keeps no owners.
  TokenFile(std::string path, const Token& token);
  // Removes it, where it is still the same.
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

 private:
  std::string path_;
  std::string text_;
};

// None: there is no such file yet. Throws IO_ERROR, and INVALID_ARGUMENT where it holds no token or
// is not to be trusted.
std::optional<Token> read_token_file(const std::string& path);

}  // namespace shardrec::comm::rendezvous
