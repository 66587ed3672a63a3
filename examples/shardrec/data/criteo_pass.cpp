// The ring of lines that a pass reads ahead.
#include "data/criteo_pass.h"

#include "command/user_error.h"

namespace shardrec::cli {
namespace {

// One is taken, each worker checks one and finds another when it has done so.
size_t ring_size(int threads) { return 2 * static_cast<size_t>(threads) - 1; }

}  // namespace

CriteoPass::CriteoPass(const CriteoFiles& files, Split split, BadLines* bad_lines,
                       ParseThreads& threads)
    : files_(files), split_(split), bad_lines_(bad_lines), threads_(threads) {
  ring_.resize(ring_size(threads.count()));
  for (Ahead& ahead : ring_) ahead.lines = std::make_shared<CriteoLines>(files, split);
  open(0);
}

void CriteoPass::open(size_t file) {
  file_ = file;
  number_ = 1;
  reader_.emplace(path(file));
  std::string_view header;
  if (!files_.layouts[file].header) return;
  reader_->next(header);
  ++number_;
}

double CriteoPass::fraction_read() const {
  double before = 0;
  double all = 0;
  for (size_t f = 0; f < files_.bytes.size(); ++f) {
    const auto bytes = static_cast<double>(files_.bytes[f]);
    all += bytes;
    if (f < file_) before += bytes;
    if (f == file_) before += bytes * reader_->fraction();
  }
  return all == 0 ? reader_->fraction() : before / all;
}

double CriteoPass::fraction() const {
  if (!taking_ || taken().lines->size() == 0) return fraction_;
  const double share = static_cast<double>(next_) / static_cast<double>(taken().lines->size());
  return fraction_ + (taken().fraction - fraction_) * share;
}

void CriteoPass::read_lines(Ahead& ahead) {
  ahead.error = nullptr;
  ahead.fraction = fraction_read();  // if filling them throws
  const bool has_more =
      ahead.lines->fill(*reader_, {.file = file_, .number = number_, .row = row_});
  number_ += ahead.lines->size();
  row_ += ahead.lines->size();
  ahead.fraction = fraction_read();
  if (has_more) return;
  if (file_ + 1 < files_.layouts.size()) {
    open(file_ + 1);
  } else {
    all_read_ = true;
  }
}

void CriteoPass::read_ahead() {
  while (!all_read_ && read_ - taken_ < ring_.size()) {
    Ahead& ahead = ring_[read_ % ring_.size()];
    try {
      read_lines(ahead);
    } catch (const std::exception&) {
      ahead.error = std::current_exception();
      all_read_ = true;
    }
    threads_.begin(ahead.lines, ParseStage::kLines);
    ++read_;
  }
}

// Waits until the lines at taken_ are checked. False: there are none.
bool CriteoPass::next_lines() {
  if (taking_) return true;
  read_ahead();
  if (taken_ == read_) return false;
  threads_.finish(*taken().lines, ParseStage::kLines);
  taking_ = true;
  next_ = 0;
  return true;
}

bool CriteoPass::read(Rows& out, int64_t limit) {
  int64_t added = 0;
  while (added < limit && next_lines()) {
    if (take(out)) ++added;
  }
  return added > 0;
}

// A line of those that are checked, or what is behind them. True: it is a row that `out` has now.
bool CriteoPass::take(Rows& out) {
  const Ahead& ahead = taken();
  const CriteoLines& lines = *ahead.lines;
  if (next_ == lines.size()) {
    if (ahead.error != nullptr) std::rethrow_exception(ahead.error);
    fraction_ = ahead.fraction;
    ++taken_;
    taking_ = false;
    if (all_read_ && taken_ == read_) finish();
    return false;
  }
  const int64_t line = next_++;
  const CriteoLines::Kind kind = lines.kind(line);
  if (kind == CriteoLines::Kind::kOther) return false;
  ++rows_of_split_;
  if (kind == CriteoLines::Kind::kReadable) {
    lines.add_to(out, line);
    return true;
  }
  if (bad_lines_ != nullptr) {
    bad_lines_->add(path(lines.file()), lines.number(line), rows_of_split_, lines.problem(line));
  }
  return false;
}

void CriteoPass::add(const Rows& rows, int64_t index, Sample& scratch, Samples& out) const {
  const Rows::Line& line = rows.lines[static_cast<size_t>(index)];
  files_.parsers[line.file].parse(rows.line(index), scratch);
  scratch.row = line.row;
  out.add(scratch);
}

void CriteoPass::finish() {
  if (finished_) return;
  finished_ = true;
  if (split_ == Split::kTrain && rows_of_split_ == 0) {
    throw UserError(path(file_) + " has no rows to train with.");
  }
  if (bad_lines_ != nullptr) bad_lines_->check(path(file_), rows_of_split_);
}

}  // namespace shardrec::cli
