// Lines of a text file (gzip too), one after another, without their "\n" or "\r\n", and without a byte
// order mark before the first one. Memory: one block.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/byte_source.h"

namespace shardrec::cli {

class LineReader {
 public:
  explicit LineReader(const std::string& path);  // UserError when it cannot be opened

  // The next line, valid until the next call; false at the end. UserError when reading fails or a
  // line is longer than a block, or the text is UTF-16.
  bool next(std::string_view& line);

  // Share of the file that has been handed out, 0 .. 1.
  [[nodiscard]] double fraction() const;

 private:
  static constexpr size_t kBlock = size_t{4} << 20;
  void fill();
  void skip_byte_order_mark(std::string_view& first_line);

  std::string path_;
  ByteSource source_;
  std::vector<char> block_;
  size_t begin_ = 0;  // unread bytes of the block: [begin_, end_)
  size_t end_ = 0;
  bool at_end_ = false;
  bool at_begin_ = true;
  uint64_t handed_out_ = 0;
};

}  // namespace shardrec::cli
