#include "compute/cuda/host/routing/deduplication.h"

#include <utility>

namespace shardrec::compute::cuda::host {
namespace {

size_t bytes_of(const DeduplicatedBlocks& message) {
  size_t bytes = 0;
  for (const PlainBlock& block : message.blocks) {
    bytes += block.lengths_bytes + block.weights_bytes +
             id_section_bytes(static_cast<uint64_t>(block.ids), 0, block.is_64);
  }
  return bytes;
}

}  // namespace

Deduplication::Deduplication(std::shared_ptr<Stream> stream, RoutingOperations& host)
    : stream_(std::move(stream)), host_(host), here_(make_pinned_memory()) {}

void Deduplication::run(std::span<const DeduplicatedBlocks> messages) {
  size_t bytes = 0;
  for (const DeduplicatedBlocks& message : messages) bytes += bytes_of(message);
  std::byte* here = here_.resize(bytes);
  on_host_.assign(messages.begin(), messages.end());
  for (DeduplicatedBlocks& message : on_host_) {
    const size_t size = bytes_of(message);
    if (size != 0) stream_->copy(here, message.data, size);
    message.data = here;
    here += size;
  }
  stream_->wait();
  host_.deduplicate_ids(on_host_);
  for (size_t m = 0; m < messages.size(); ++m) {
    const size_t size = bytes_of(messages[m]);
    if (size != 0) stream_->copy(messages[m].data, on_host_[m].data, size);
  }
  stream_->wait();  // before the copy is written again
}

}  // namespace shardrec::compute::cuda::host
