// What a Criteo log's files are, and the tables that they need.
#include "data/criteo_files.h"

#include <filesystem>

#include "command/user_error.h"
#include "data/line_reader.h"
#include "data/planted_meta.h"

namespace shardrec::cli {
namespace {

constexpr int64_t kRowsPerTable = 65536;
// Values that share a row cannot be told apart: with 16 rows a value that costs 0.001 of AUC on
// generated data.
constexpr int64_t kRowsPerValue = 64;

Schema make_schema(const ClickLogOptions& options) {
  Schema schema;
  schema.dense_columns = kCriteoDense;
  const auto meta = read_planted_meta(options.paths.front());
  for (int k = 0; k < kCriteoIds; ++k) {
    int64_t rows = kRowsPerTable;
    if (options.table_rows.size() == kCriteoIds) {
      rows = options.table_rows[static_cast<size_t>(k)];
    } else if (options.rows_per_table > 0) {
      rows = options.rows_per_table;
    } else if (meta) {
      rows = kRowsPerValue * meta->values[static_cast<size_t>(k)] +
             1;  // and the row of missing values
    }
    schema.features.push_back({"C" + std::to_string(k + 1), rows});
  }
  return schema;
}

CriteoLayout layout_of(const std::string& path) {
  LineReader reader(path);
  std::string_view line;
  if (!reader.next(line)) throw UserError(path + " is empty.");
  return criteo_layout(path, line);
}

}  // namespace

CriteoFiles::CriteoFiles(const ClickLogOptions& of_log)
    : options(of_log), schema(make_schema(of_log)) {
  for (const std::string& path : options.paths) {
    layouts.push_back(layout_of(path));
    parsers.emplace_back(layouts.back(), schema, options.labels);
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    bytes.push_back(error ? 0 : size);
    if (layouts.back().labelled == labelled()) continue;
    throw UserError(path + (labelled() ? " has no labels, and " : " has labels, and ") +
                    options.paths.front() + (labelled() ? " has." : " has none."));
  }
}

}  // namespace shardrec::cli
