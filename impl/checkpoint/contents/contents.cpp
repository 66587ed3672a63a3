#include "checkpoint/contents/contents.h"

namespace shardrec::checkpoint {

std::vector<ManifestTable> manifest_tables(const plan::Model& model) {
  std::vector<ManifestTable> tables;
  for (size_t t = 0; t < model.tables.size(); ++t) {
    const plan::Table& table = model.tables[t];
    const plan::Optimizer& optimizer = model.optimizer_of(static_cast<int32_t>(t));
    tables.push_back(
        {table.name, table.rows, table.dim, table.dtype, optimizer.kind, optimizer.row_statistics});
  }
  return tables;
}

}  // namespace shardrec::checkpoint
