// One line of a Criteo click log into a sample.
//
// Thread rule: a parser is used by any number of threads at once.
//
// Numbers: sign(x) * log1p(|x|), a missing one is 0. Ids: hex of up to 64 bits; id v of column k (0
// .. 25) has row 1 + shardrec_hash64(k, v as 8 bytes, lowest first) % (rows - 1), a missing one row
// 0.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "data/labels.h"
#include "data/samples.h"

namespace shardrec::cli {

inline constexpr int kCriteoDense = 13;
inline constexpr int kCriteoIds = 26;

// Where a file has its columns.
struct CriteoLayout {
  char separator = '\t';
  size_t fields = 1 + kCriteoDense + kCriteoIds;
  bool labelled = true;  // Criteo's test files are not
  size_t label = 0;
  std::vector<size_t> dense;  // kCriteoDense of them
  std::vector<size_t> ids;    // kCriteoIds
  bool header = false;
};

// From the first line: a header names the columns; without one they are label, I1..I13, C1..C26,
// separated by tabs, or the same without the label. UserError when it is neither.
CriteoLayout criteo_layout(const std::string& path, std::string_view first_line);

class CriteoParser {
 public:
  CriteoParser(CriteoLayout layout, Schema schema, Labels labels = Labels::kBinary);
  // Empty: sample holds the line. Else what is wrong with it.
  std::string parse(std::string_view line, Sample& sample) const;
  // True for most lines that parse() takes, and only for such: whole numbers of up to 15 digits and
  // ids of up to 16. A fraction of what parse() costs.
  [[nodiscard]] bool is_plain(std::string_view line) const;

 private:
  enum class Column : uint8_t { kOther, kLabel, kDense, kId };
  // False: there are not as many fields as the layout has.
  bool cut(std::string_view line, std::vector<std::string_view>& fields) const;

  CriteoLayout layout_;
  Schema schema_;
  Labels labels_;
  std::vector<Column> columns_;
};

}  // namespace shardrec::cli
