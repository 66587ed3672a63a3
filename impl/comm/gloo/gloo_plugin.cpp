// The engine gloo: the table of transport_plugin.h over Gloo's TCP connections.
#include <cstdint>
#include <memory>

#include "comm/gloo/peer_memory.h"
#include "comm/gloo/transport_pair.h"
#include "comm/plugin/plugin_table.h"
#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::guarded;

int32_t open(const shardrec_transport_job* job, void** transport, shardrec_transport_error* error) {
  return guarded(error, [&] {
    if (job->size < 1 || job->rank < 0 || job->rank >= job->size)
      throw plugin::Failure(
          SHARDREC_TRANSPORT_UNUSABLE, -1,
          plugin::sentence("rank ", job->rank, " of ", job->size, " is no rank of a job"));
    if (job->size > 1 && (job->store_set == nullptr || job->store_get == nullptr))
      throw plugin::Failure(SHARDREC_TRANSPORT_UNUSABLE, -1, "Gloo needs a store to meet in");
    *transport = std::make_unique<TransportPair>(*job).release();
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t check_settings(shardrec_transport_error* error) {
  return guarded(error, [] {
    least_bytes_to_read();
    return SHARDREC_TRANSPORT_OK;
  });
}

void close(void* transport) {
  const std::unique_ptr<TransportPair> closed(static_cast<TransportPair*>(transport));
}

}  // namespace
}  // namespace shardrec::comm::gloo_plugin

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_transport_plugin(shardrec_transport_table* table, shardrec_transport_error* /*error*/) {
  namespace side = shardrec::comm::gloo_plugin;
  if (!shardrec::comm::plugin::fill<side::TransportPair, side::Request>(*table))
    return SHARDREC_TRANSPORT_ABI_MISMATCH;
  table->library = "Gloo";
  table->is_launched = 0;
  table->has_group_states = 0;
  table->check_settings = &side::check_settings;
  table->open = &side::open;
  table->announce = nullptr;
  table->close = &side::close;
  return SHARDREC_TRANSPORT_OK;
}
