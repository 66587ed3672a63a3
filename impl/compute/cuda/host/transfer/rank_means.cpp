#include "compute/cuda/host/transfer/rank_means.h"

#include <utility>

#include "core/error.h"

namespace shardrec::compute::cuda::host {

RankAverages::RankAverages(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RankAverages::run(const RankMeans& means) {
  if (means.count == 0) return;
  if (means.ranks.size() > SHARDREC_CUDA_SUM_RANKS) {
    core::fail(
        SHARDREC_UNSUPPORTED,
        core::sentence("the mean of ", means.ranks.size(), " ranks on device ", stream_->device(),
                       "; at most ", SHARDREC_CUDA_SUM_RANKS, " are accepted"),
        {.value = std::ssize(means.ranks), .limit = SHARDREC_CUDA_SUM_RANKS});
  }
  arguments_.begin(Arguments::bytes_of<const std::byte*>(means.ranks.size()));
  const auto* const ranks = arguments_.add(means.ranks);
  arguments_.send();
  const shardrec_cuda_rank_means job{
      .elements = static_cast<const void* const*>(static_cast<const void*>(ranks)),
      .means = means.means,
      .count = means.count,
      .element = static_cast<int32_t>(means.element),
      .ranks = static_cast<int32_t>(means.ranks.size())};
  require(table().average_ranks(stream_->handle(), &job), "average elements on device ",
          stream_->device());
}

}  // namespace shardrec::compute::cuda::host
