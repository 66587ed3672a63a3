#include "embedding/rows/row_marks.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "core/error.h"

namespace shardrec::embedding {
namespace {

// Rows that are listed at once where they are counted.
constexpr size_t kAtOnce = 4096;

// Of a shard that begins at this row of its table: rows of the table, from row `first` of it on.
size_t list_shard(std::span<const compute::RowWord> bits, int64_t begin, int64_t first,
                  std::span<int64_t> rows) {
  const int64_t from = std::max<int64_t>(first - begin, 0);
  if (from >= std::ssize(bits) * compute::kRowsOfAWord) return 0;
  const size_t count = compute::list_row_bits(bits, from, rows);
  for (int64_t& row : rows.first(count)) row += begin;
  return count;
}

// Shards of a table whose rows may be the same ones: the columns differ then, or they are states of these rows.
size_t list_marked(Collection& collection, const RowMark& mark, int32_t table, int64_t first,
                   std::span<int64_t> rows) {
  std::vector<int64_t> own(rows.size());
  std::vector<int64_t> listed;
  std::vector<int64_t> both;
  const std::span<Shard> shards = collection.shards();
  for (size_t s = 0; s < shards.size(); ++s) {
    if (shards[s].table() != table) continue;
    const Part& part = collection.layout().parts()[static_cast<size_t>(shards[s].part())];
    const size_t count = list_shard(mark.of(s), part.row, first, own);
    both.clear();
    std::set_union(listed.begin(), listed.end(), own.begin(),
                   own.begin() + static_cast<std::ptrdiff_t>(count), std::back_inserter(both));
    both.resize(std::min(both.size(), rows.size()));
    listed.swap(both);
  }
  std::ranges::copy(listed, rows.begin());
  return listed.size();
}

}  // namespace

int64_t RowMarks::make(Collection& collection) {
  if (marks_.size() >= kMost) {
    core::fail(SHARDREC_INVALID_STATE,
               core::sentence("the collection has ", kMost,
                              " marks already: release one with shardrec_collection_release_mark"),
               {.limit = static_cast<int64_t>(kMost)});
  }
  const auto place = marks_.emplace(made_ + 1, nullptr).first;
  try {
    place->second = collection.mark_rows();
  } catch (...) {
    marks_.erase(place);
    throw;
  }
  return ++made_;
}

void RowMarks::release(int64_t mark) {
  (void)find(mark);
  marks_.erase(mark);
}

const RowMark& RowMarks::find(int64_t mark) const {
  const auto found = marks_.find(mark);
  if (found == marks_.end()) {
    core::fail(
        SHARDREC_NOT_FOUND,
        core::sentence("the collection has no mark ", mark, ": shardrec_collection_mark makes one"),
        {.value = mark});
  }
  return *found->second;
}

size_t RowMarks::list(Collection& collection, int64_t mark, int32_t table, int64_t first,
                      std::span<int64_t> rows) {
  const RowMark& marked = find(mark);
  collection.gather_changed_rows();
  return list_marked(collection, marked, table, first, rows);
}

int64_t RowMarks::count(Collection& collection, int64_t mark, int32_t table, int64_t first) {
  const RowMark& marked = find(mark);
  collection.gather_changed_rows();
  std::vector<int64_t> rows(kAtOnce);
  int64_t total = 0;
  for (size_t count = rows.size(); count == rows.size();) {
    count = list_marked(collection, marked, table, first, rows);
    total += static_cast<int64_t>(count);
    if (count != 0) first = rows[count - 1] + 1;
  }
  return total;
}

}  // namespace shardrec::embedding
