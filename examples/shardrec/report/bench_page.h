// The page of `shardrec bench lookup|step|dense --report`.
#pragma once

#include <string>

namespace shardrec::cli {

// title: what was measured. line: the benchmark's line of JSON, with "machine". All that the page shows is taken from
// it.
std::string bench_page(const std::string& title, const std::string& line);

}  // namespace shardrec::cli
