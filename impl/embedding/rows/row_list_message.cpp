#include "embedding/rows/row_list_message.h"

#include <cstring>

#include "embedding/rows/row_values.h"

namespace shardrec::embedding {

ListReader::ListReader(const Collection& collection, comm::ConstBytes message, size_t rank,
                       const char* operation)
    : rest_(message), rank_(rank), operation_(operation) {
  std::memcpy(&header_, take(sizeof header_).data(), sizeof header_);
  if (header_.blocks < 1 || header_.ids < 0) throw_malformed(rank_, operation_);
  if (header_.ids == 0) return;
  const plan::Model& model = collection.model();
  if (header_.table < 0 || static_cast<size_t>(header_.table) >= model.tables.size() ||
      !values_exist(model, header_.table, header_.what)) {
    throw_malformed(rank_, operation_);
  }
}

comm::ConstBytes ListReader::take(size_t bytes) {
  if (bytes > rest_.size()) throw_malformed(rank_, operation_);
  const comm::ConstBytes taken = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return taken;
}

std::span<const int64_t> ListReader::take_ids(const Part& part) {
  int64_t count = 0;
  std::memcpy(&count, take(sizeof count).data(), sizeof count);
  if (count < 0 || count > header_.ids ||
      static_cast<size_t>(count) > rest_.size() / sizeof(int64_t)) {
    throw_malformed(rank_, operation_);
  }
  ids_.resize(static_cast<size_t>(count));
  const comm::ConstBytes ids = take(ids_.size() * sizeof(int64_t));
  if (!ids.empty()) std::memcpy(ids_.data(), ids.data(), ids.size());
  for (const int64_t id : ids_) {
    if (id < 0 || id >= part.rows) throw_malformed(rank_, operation_);
  }
  return ids_;
}

}  // namespace shardrec::embedding
