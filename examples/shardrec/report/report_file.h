// --report FILE: opened before the work, written at its end, complete or not there.
#pragma once

#include <fstream>
#include <memory>
#include <string>

#include "command/whole_file.h"

namespace shardrec::cli {

class ReportFile {
 public:
  // path empty: nothing is written. Throws UserError where the file cannot be written.
  explicit ReportFile(const std::string& path);

  // The last call; without it there is no file. Throws UserError.
  void write(const std::string& page);

 private:
  std::unique_ptr<WholeFile> file_;
  std::ofstream out_;
};

}  // namespace shardrec::cli
