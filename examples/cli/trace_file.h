// --trace FILE: the phases of a run's steps, for ui.perfetto.dev.
#pragma once

#include <fstream>
#include <string>

namespace shardrec::cli {

class TraceFile {
 public:
  // Starts the trace; path empty: none is taken. Throws UserError when the file cannot be written.
  explicit TraceFile(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  // Ends the trace and writes it.
  void write();

 private:
  std::string path_;
  std::ofstream file_;
};

}  // namespace shardrec::cli
