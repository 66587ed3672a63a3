// Text inside XML and HTML.
#pragma once

#include <string>
#include <string_view>

namespace shardrec::cli {

// As content of an element or of an attribute between quotes. What XML cannot hold becomes '?': control characters but
// for tab and newline, U+FFFE and U+FFFF. text: UTF-8.
std::string escaped(std::string_view text);

}  // namespace shardrec::cli
