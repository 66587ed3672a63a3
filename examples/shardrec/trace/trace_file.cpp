// The file of --trace: opened before the run, written behind it, merged by rank 0 where ranks
// are processes.
#include "trace/trace_file.h"

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <vector>

#include "command/user_error.h"
#include "trace/trace_merge.h"

namespace shardrec::cli {
namespace {

// The last of so many: some 10 MB of memory and 40 MB of JSON.
constexpr int64_t kEvents = int64_t{1} << 18;

}  // namespace

TraceFile::TraceFile(std::string path, int rank) : path_(std::move(path)), rank_(rank) {
  if (path_.empty()) return;
  const std::string own = rank_ < 0 ? path_ : part_of(rank_);
  file_.open(own, std::ios::binary | std::ios::trunc);
  if (!file_) throw UserError(own + " cannot be written; --trace needs the path of a new file.");
  Trace::start(kEvents);
}

TraceFile::~TraceFile() {
  if (path_.empty()) return;
  Trace::stop();
  if (file_.is_open() && rank_ >= 0) std::remove(part_of(rank_).c_str());  // it was not written
}

std::string TraceFile::part_of(int rank) const { return path_ + ".rank" + std::to_string(rank); }

void TraceFile::save() {
  Trace::stop();
  file_ << Trace::json() << '\n';
  file_.close();
  if (!file_) throw UserError("The trace could not be written to " + path_ + ".");
}

void TraceFile::write(Comm& comm) {
  if (path_.empty() || rank_ < 0) return;
  save();
  comm.barrier();
  if (rank_ == 0) merge(comm.size());
}

void TraceFile::finish() {
  if (!path_.empty() && rank_ < 0) save();
}

void TraceFile::merge(int ranks) const {
  std::vector<std::string> parts;
  std::string absent;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(part_of(rank));
    if (!std::filesystem::exists(parts.back()))
      absent += (absent.empty() ? "" : ", ") + parts.back();
  }
  if (!absent.empty()) {
    std::cerr << "shardrec: " << absent << " is on another machine: bring the files together, and "
              << "use `shardrec trace merge " << path_ << " " << path_ << ".rank*`.\n";
    return;
  }
  merge_traces(path_, parts);
  for (const std::string& part : parts) std::remove(part.c_str());
}

}  // namespace shardrec::cli
