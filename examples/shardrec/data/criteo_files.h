// What all passes over a Criteo log share. Never changed; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "data/click_log.h"
#include "data/criteo_parser.h"

namespace shardrec::cli {

struct CriteoFiles {
  ClickLogOptions options;
  Schema schema;
  std::vector<CriteoLayout> layouts;  // of each file
  std::vector<CriteoParser> parsers;  // likewise
  std::vector<uint64_t> bytes;        // likewise

  // Reads the first line of each file. UserError where one is no click log, or only some have labels.
  explicit CriteoFiles(const ClickLogOptions& of_log);
  [[nodiscard]] bool labelled() const { return layouts.front().labelled; }
};

}  // namespace shardrec::cli
