#include "compute/cuda/host/assembly/row_sums.h"

#include <span>
#include <utility>

#include "compute/cuda/host/vectors.h"

namespace shardrec::compute::cuda::host {
namespace {

bool all_in_vectors(const shardrec_cuda_row_sum& sum,
                    std::span<const shardrec_cuda_addend> addends) {
  const auto element = static_cast<Element>(sum.out_element);
  // Of 16 bits, four numbers are stored at once.
  if (!in_vectors(sum.out, static_cast<size_t>(sum.out_stride), sum.cols, element,
                  4 * element_bytes(element))) {
    return false;
  }
  for (const shardrec_cuda_addend& addend : addends) {
    if (!in_vectors(addend.rows, static_cast<size_t>(addend.stride), sum.cols, Element::kFloat32)) {
      return false;
    }
  }
  return true;
}

}  // namespace

RowSumLaunches::RowSumLaunches(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RowSumLaunches::clear() {
  addends_.clear();
  first_of_sum_ = 0;
  for (auto& first : first_addend_) first.clear();
  for (auto& sums : sums_) sums.clear();
}

void RowSumLaunches::add(const shardrec_cuda_addend& addend) { addends_.push_back(addend); }

void RowSumLaunches::end_sum(shardrec_cuda_row_sum sum) {
  const auto addends = std::span(addends_).subspan(first_of_sum_);
  const bool vectors = all_in_vectors(sum, addends);
  sum.addend_count = std::ssize(addends);
  sum.lanes = lanes_for(sum.cols, vectors ? 4 : 1);
  const int64_t items = kThreads / sum.lanes * SHARDREC_CUDA_SUMS_AT_ONCE;
  if (sum.items != 0) first_addend_[vectors ? 1 : 0].push_back(first_of_sum_);
  sums_[vectors ? 1 : 0].add(sum, (sum.items + items - 1) / items);
  first_of_sum_ = addends_.size();
}

void RowSumLaunches::run(std::string_view what) {
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_addend>(addends_.size()) + sums_[0].bytes() +
                   sums_[1].bytes());
  const auto* const addends = arguments_.add(std::span<const shardrec_cuda_addend>(addends_));
  for (size_t vectors = 0; vectors < 2; ++vectors) {
    const std::span<shardrec_cuda_row_sum> jobs = sums_[vectors].jobs();
    for (size_t j = 0; j < jobs.size(); ++j) jobs[j].addends = addends + first_addend_[vectors][j];
    sums_[vectors].send(arguments_);
  }
  arguments_.send();
  for (int32_t vectors = 0; vectors < 2; ++vectors) {
    const LaunchList<shardrec_cuda_row_sum>& sums = sums_[vectors];
    require(table().add_up_rows(stream_->handle(), vectors, sums.jobs_there(),
                                sums.first_unit_there(), sums.count(), sums.units()),
            what, " on device ", stream_->device());
  }
}

}  // namespace shardrec::compute::cuda::host
