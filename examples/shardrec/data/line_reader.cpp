// Lines of a byte source, by blocks.
#include "data/line_reader.h"

#include <cstring>

#include "command/user_error.h"

namespace shardrec::cli {

LineReader::LineReader(const std::string& path) : path_(path), source_(path), block_(kBlock) {}

void LineReader::fill() {
  std::memmove(block_.data(), block_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  const size_t read = source_.read(block_.data() + end_, block_.size() - end_);
  end_ += read;
  at_end_ = read == 0;
}

void LineReader::skip_byte_order_mark(std::string_view& first_line) {
  at_begin_ = false;
  if (first_line.starts_with("\xFF\xFE") || first_line.starts_with("\xFE\xFF")) {
    throw UserError(path_ + " is UTF-16 text; UTF-8 is read (iconv -f UTF-16 -t UTF-8).");
  }
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (first_line.starts_with(kMark)) first_line.remove_prefix(kMark.size());
}

bool LineReader::next(std::string_view& line) {
  size_t searched = 0;
  for (;;) {
    const char* start = block_.data() + begin_;
    const void* newline = std::memchr(start + searched, '\n', end_ - begin_ - searched);
    size_t length = end_ - begin_;
    size_t used = length;
    if (newline != nullptr) {
      length = static_cast<size_t>(static_cast<const char*>(newline) - start);
      used = length + 1;
    } else if (!at_end_) {
      if (length == block_.size()) {
        throw UserError(path_ + " has a line of more than 4 MiB; it is not a click log.");
      }
      searched = length;
      fill();
      continue;
    } else if (length == 0) {
      return false;
    }
    begin_ += used;
    handed_out_ += used;
    if (length > 0 && start[length - 1] == '\r') --length;
    line = {start, length};
    if (at_begin_) skip_byte_order_mark(line);
    return true;
  }
}

// Of compressed lines: as if all that was read were compressed alike.
double LineReader::fraction() const {
  if (source_.file_size() == 0) return 0;
  const auto decompressed = static_cast<double>(handed_out_ + (end_ - begin_));
  if (decompressed == 0) return 0;
  const double share = static_cast<double>(handed_out_) / decompressed;
  return share * static_cast<double>(source_.position()) / static_cast<double>(source_.file_size());
}

}  // namespace shardrec::cli
