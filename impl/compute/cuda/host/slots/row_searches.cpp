#include "compute/cuda/host/slots/row_searches.h"

#include <algorithm>
#include <utility>

namespace shardrec::compute::cuda::host {

RowSearches::RowSearches(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_), results_(stream_) {}

void RowSearches::run(std::span<const RowSearch> searches) {
  bounds_.clear();
  for (const RowSearch& search : searches) {
    for (const int64_t bound : search.bounds) {
      bounds_.push_back({.rows = search.rows, .count = search.count, .bound = bound});
    }
  }
  if (bounds_.empty()) return;
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_row_bound>(bounds_.size()));
  const shardrec_cuda_row_search job{
      .bounds = arguments_.add(std::span<const shardrec_cuda_row_bound>(bounds_)),
      .count = std::ssize(bounds_),
      .before = results_.begin<int64_t>(bounds_.size(), 0)};
  arguments_.send();
  require(table().find_rows(stream_->handle(), &job), "search rows on device ", stream_->device());
  auto found = results_.fetch<int64_t>().begin();
  for (const RowSearch& search : searches) {
    const auto count = std::ssize(search.bounds);
    std::copy_n(found, count, search.before);
    found += count;
  }
}

}  // namespace shardrec::compute::cuda::host
