// Lines of a Criteo log, filled, checked and taken.
#include "data/criteo_lines.h"

namespace shardrec::cli {

bool CriteoLines::fill(LineReader& reader, const Start& start) {
  start_ = start;
  rows_.clear();
  std::string_view line;
  while (rows_.lines.size() < kLines && rows_.text.size() < kBytes) {
    if (!reader.next(line)) return false;
    rows_.add(line, start.row + size(), start.file);
  }
  return true;
}

bool CriteoLines::is_wanted(int64_t row) const {
  return !files_.labelled() ||
         is_test_row(files_.options.seed, static_cast<uint64_t>(row)) == (split_ == Split::kTest);
}

void CriteoLines::run() noexcept {
  error_ = nullptr;
  try {
    kinds_.assign(rows_.lines.size(), Kind::kOther);
    for (size_t i = 0; i < kinds_.size(); ++i) {
      if (!is_wanted(rows_.lines[i].row)) continue;
      const std::string_view line = rows_.line(static_cast<int64_t>(i));
      const bool readable = parser().is_plain(line) || parser().parse(line, sample_).empty();
      kinds_[i] = readable ? Kind::kReadable : Kind::kUnreadable;
    }
  } catch (const std::exception&) {
    error_ = std::current_exception();
  }
}

CriteoLines::Kind CriteoLines::kind(int64_t index) const {
  if (error_ != nullptr) std::rethrow_exception(error_);
  return kinds_[static_cast<size_t>(index)];
}

void CriteoLines::add_to(Rows& rows, int64_t index) const {
  rows.add(rows_.line(index), rows_.lines[static_cast<size_t>(index)].row, start_.file);
}

std::string CriteoLines::problem(int64_t index) const {
  Sample sample;
  return parser().parse(rows_.line(index), sample);
}

}  // namespace shardrec::cli
