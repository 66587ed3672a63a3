// What `bench lookup` and `bench step` found, for people: what was measured, a table of the parts of a step, and on a
// device what a step calls.
#pragma once

#include <string>

namespace shardrec::cli {

// line: of bench_report().
std::string bench_text(const std::string& line);

}  // namespace shardrec::cli
