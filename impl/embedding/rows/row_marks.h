// The marks of a collection's caller: numbers that are given once, and the rows that have changed since.
//
// Thread rule: the collection's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "embedding/collection.h"

namespace shardrec::embedding {

class RowMarks {
 public:
  static constexpr size_t kMost = 8;

  // The number of a new mark. Throws INVALID_STATE (there are kMost), and what Collection::mark_rows() does.
  int64_t make(Collection& collection);
  // Throws NOT_FOUND.
  void release(int64_t mark);
  // Rows of the table that this rank's boxes have, from row `first` on, that have changed since: their numbers,
  // ascending, each once, as many as there is room for. Returns how many. Throws NOT_FOUND (the mark), and what
  // Collection::gather_changed_rows() does.
  size_t list(Collection& collection, int64_t mark, int32_t table, int64_t first,
              std::span<int64_t> rows);
  // How many these are.
  int64_t count(Collection& collection, int64_t mark, int32_t table, int64_t first);

 private:
  const RowMark& find(int64_t mark) const;

  std::map<int64_t, std::shared_ptr<const RowMark>> marks_;
  int64_t made_ = 0;
};

}  // namespace shardrec::embedding
