// What a lookup tells the counters of its collection.
#include "embedding/lookup.h"

namespace shardrec::embedding {

void Lookup::count_lookups() {
  const Layout& layout = collection_->layout();
  collection_->counters().ids_received.fetch_add(inbox_.ids_received(), std::memory_order_relaxed);
  const auto blocks = layout.blocks_of(layout.rank());
  for (int source = 0; source < layout.ranks(); ++source) {
    const auto received = inbox_.blocks(source);
    for (size_t b = 0; b < blocks.size(); ++b) {
      if (received[b].ids == 0) continue;
      const int32_t table = layout.parts()[static_cast<size_t>(blocks[b].part)].table;
      collection_->table_counters(table).ids_looked_up.fetch_add(received[b].ids,
                                                                 std::memory_order_relaxed);
    }
    if (source != layout.rank()) collection_->hear_looked_up(source, inbox_.looked_up(source));
  }
  collection_->hear_looked_up(layout.rank(), collection_->counters().ids_received);
}

void Lookup::count_bytes(std::span<const comm::ConstBytes> messages,
                         std::atomic<int64_t>& counter) const {
  size_t bytes = 0;
  for (int rank = 0; rank < collection_->layout().ranks(); ++rank) {
    if (rank != collection_->layout().rank()) bytes += messages[static_cast<size_t>(rank)].size();
  }
  counter.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
}

void Lookup::count_memory() {
  int64_t bytes = static_cast<int64_t>(
      batch_.memory() + routed_.memory() + inbox_.memory() + plan_.memory() +
      output_buffer_->capacity() + received_outputs_->capacity() + gradient_buffer_.capacity() +
      received_gradients_->capacity() + statistics_buffer_->capacity() + norms_buffer_->capacity() +
      replicas_buffer_->capacity() + replica_sums_buffer_->capacity());
  if (node_sums_ != nullptr) {
    bytes +=
        static_cast<int64_t>(node_sums_->buffer->capacity() + node_sums_->received->capacity());
  }
  if (output_codec_ != nullptr) bytes += static_cast<int64_t>(output_codec_->memory());
  if (gradient_codec_ != nullptr) bytes += static_cast<int64_t>(gradient_codec_->memory());
  if (weight_gradient_state_ != nullptr) {
    bytes += static_cast<int64_t>(weight_gradient_state_->buffer->capacity() +
                                  weight_gradient_state_->received->capacity() +
                                  weight_gradient_state_->memory.capacity());
  }
  bytes += static_cast<int64_t>(caller_output_.memory());
  for (const Gradient& gradient : gradients_) {
    bytes += static_cast<int64_t>(gradient.reached.memory());
  }
  for (const Outgoing& outgoing : outgoing_) {
    bytes += static_cast<int64_t>(outgoing.buffer->capacity());
  }
  collection_->counters().buffer_bytes.fetch_add(bytes - memory_, std::memory_order_relaxed);
  memory_ = bytes;
}

}  // namespace shardrec::embedding
