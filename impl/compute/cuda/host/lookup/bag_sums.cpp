#include "compute/cuda/host/lookup/bag_sums.h"

#include <utility>

namespace shardrec::compute::cuda::host {

BagSummation::BagSummation(std::shared_ptr<Stream> stream)
    : stream_(std::move(stream)), index_(stream_), lookups_(stream_), arguments_(stream_) {}

void BagSummation::run(std::span<const BagSums> blocks) {
  bags_.clear();
  for (const BagSums& block : blocks) {
    if (block.bags != nullptr) bags_.push_back(block.bags);
  }
  auto indexed = index_.run(bags_).begin();
  lookups_.clear();
  present_.clear();
  first_word_.assign(1, 0);
  for (const BagSums& block : blocks) {
    const IndexedBags bags = block.bags != nullptr ? *indexed++ : IndexedBags{};
    lookups_.add(block.table, {.ids = block.ids.data,
                               .weights = block.weights,
                               .first_id = bags.first_id,
                               .items = block.rows,
                               .out = block.out,
                               .out_stride = block.table.width,
                               .out_element = SHARDREC_CUDA_FLOAT32,
                               .ids_are_64 = block.ids.is_64});
    if (block.present.empty()) continue;
    present_.push_back({.sample = bags.sample,
                        .bags = block.bags->bags,
                        .bits = block.present.data(),
                        .words = std::ssize(block.present)});
    first_word_.push_back(first_word_.back() + std::ssize(block.present));
  }
  lookups_.run("sum bags");
  if (!present_.empty()) mark_present();
}

void BagSummation::mark_present() {
  arguments_.begin(Arguments::bytes_of<shardrec_cuda_bag_bits>(present_.size()) +
                   Arguments::bytes_of<int64_t>(first_word_.size()));
  const auto* const present = arguments_.add(std::span<const shardrec_cuda_bag_bits>(present_));
  const auto* const first_word = arguments_.add(std::span<const int64_t>(first_word_));
  arguments_.send();
  require(table().mark_bag_bits(stream_->handle(), present, first_word,
                                static_cast<int32_t>(present_.size()), first_word_.back()),
          "mark bags on device ", stream_->device());
}

}  // namespace shardrec::compute::cuda::host
