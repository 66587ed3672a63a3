// --trace FILE: the phases of a run's steps, for ui.perfetto.dev. Ranks in several processes write
// a part each, which rank 0 makes one file of.
#pragma once

#include <fstream>
#include <shardrec/shardrec.hpp>
#include <string>

namespace shardrec::cli {

class TraceFile {
 public:
  // Starts the trace; path empty: none is taken. rank: of this process, -1: all ranks are in it.
  // Throws UserError when the file cannot be written.
  TraceFile(std::string path, int rank);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Ends the trace and writes it. Collective where ranks are in several processes; does nothing
  // where they are not (finish() does).
  void write(Comm& comm);
  void finish();

 private:
  std::string part_of(int rank) const;
  void save();
  void merge(int ranks) const;

  std::string path_;
  int rank_;
  std::ofstream file_;
};

}  // namespace shardrec::cli
