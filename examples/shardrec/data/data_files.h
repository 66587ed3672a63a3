// Which files a log is in, and in which order.
#pragma once

#include <string>
#include <vector>

namespace shardrec::cli {

// given: files, patterns (*, ?, [...]) and directories, in the order in which they are read. Files that a
// pattern matches, and those of a directory but for hidden ones (also with '_') and descriptions (.json), follow
// by name, numbers in names by value: day_2 before day_10. UserError where one of them leads to no file.
std::vector<std::string> data_files(const std::vector<std::string>& given);

}  // namespace shardrec::cli
