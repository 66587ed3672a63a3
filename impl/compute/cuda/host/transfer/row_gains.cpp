#include "compute/cuda/host/transfer/row_gains.h"

#include <utility>

namespace shardrec::compute::cuda::host {

RowGainSums::RowGainSums(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), arguments_(stream_) {}

void RowGainSums::run(std::span<const RowGains> gains) {
  for (const RowGains& each : gains) {
    if (each.count == 0 || each.width == 0) continue;
    const int64_t* numbers = nullptr;
    if (each.rows.numbers != nullptr) {
      const std::span<const int64_t> list(each.rows.numbers, static_cast<size_t>(each.count));
      arguments_.begin(Arguments::bytes_of<int64_t>(list.size()));
      numbers = arguments_.add(list);
      arguments_.send();
    }
    const shardrec_cuda_row_gains job{.rows = each.rows.data,
                                      .before = each.before,
                                      .after = each.after,
                                      .numbers = numbers,
                                      .stride = static_cast<int64_t>(each.rows.stride),
                                      .count = each.count,
                                      .width = each.width,
                                      .element = static_cast<int32_t>(each.rows.element),
                                      .at_least_zero = each.at_least_zero ? 1 : 0};
    require(table().add_row_gains(stream_->handle(), &job), "add gains of rows on device ",
            stream_->device());
  }
}

}  // namespace shardrec::compute::cuda::host
