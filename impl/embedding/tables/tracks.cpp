#include "embedding/tables/tracks.h"

#include "core/trace_source.h"

namespace shardrec::embedding {

void trace_as(Counters& counters, int32_t rank, uint32_t collection) noexcept {
  counters.track = {.rank = rank, .collection = collection};
  // A device's clock learns times for the trace, too.
  if (auto* const source = dynamic_cast<core::TraceSource*>(counters.clock)) {
    source->set_track(core::device_track(rank, core::DeviceRow::kTables, collection));
  }
}

}  // namespace shardrec::embedding
