// The page of `shardrec train --report`.
#pragma once

#include <string>

namespace shardrec::cli {

// line: of --json, with the fields that it has with --report. All that the page shows is taken from it.
std::string train_page(const std::string& line);

}  // namespace shardrec::cli
