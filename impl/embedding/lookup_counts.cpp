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

}  // namespace shardrec::embedding
