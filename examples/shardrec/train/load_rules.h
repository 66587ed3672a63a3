// --load-rules: what may differ from a checkpoint that a run starts from, and what was loaded of it.
#pragma once

#include <string>

namespace shardrec::cli {

// The rules in a file, which the library reads. Throws UserError where it is empty or cannot be read.
std::string load_rules(const std::string& path);

// The library's report (JSON) for people: a table of what was loaded, and lines of what was not.
std::string load_text(const std::string& report);

}  // namespace shardrec::cli
