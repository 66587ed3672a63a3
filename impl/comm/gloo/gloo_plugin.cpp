// The engine gloo: the table of transport_plugin.h over Gloo's TCP connections.
#include <cstdint>
#include <new>

#include "comm/gloo/gloo_transport.h"
#include "comm/plugin_side.h"
#include "comm/transport_plugin.h"

namespace shardrec::comm::gloo_plugin {
namespace {

using plugin::guarded;

Transport& of(void* transport) { return *static_cast<Transport*>(transport); }

int32_t open(const shardrec_transport_job* job, void** transport, shardrec_transport_error* error) {
  return guarded(error, [&] {
    if (job->size < 1 || job->rank < 0 || job->rank >= job->size)
      throw plugin::Failure(
          SHARDREC_TRANSPORT_UNUSABLE, -1,
          plugin::sentence("rank ", job->rank, " of ", job->size, " is no rank of a job"));
    if (job->size > 1 && (job->store_set == nullptr || job->store_get == nullptr))
      throw plugin::Failure(SHARDREC_TRANSPORT_UNUSABLE, -1, "Gloo needs a store to meet in");
    *transport = std::make_unique<Transport>(*job).release();
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t rank(void* transport) { return of(transport).rank(); }
int32_t ranks(void* transport) { return of(transport).size(); }

int32_t send(void* transport, int32_t peer, uint32_t tag, const void* data, uint64_t bytes,
             void** request, shardrec_transport_error* error) {
  return guarded(error, [&] {
    *request = of(transport).send(peer, tag, data, bytes);
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t receive(void* transport, int32_t peer, uint32_t tag, void* data, uint64_t bytes,
                void** request, shardrec_transport_error* error) {
  return guarded(error, [&] {
    *request = of(transport).receive(peer, tag, data, bytes);
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t wait(void* transport, void* request, double seconds, shardrec_transport_error* error) {
  return guarded(error,
                 [&] { return of(transport).wait(*static_cast<Request*>(request), seconds); });
}

void forget(void* transport, void* request) {
  of(transport).forget(*static_cast<Request*>(request));
}

void cancel(void* transport) { of(transport).cancel(); }

void close(void* transport) { const std::unique_ptr<Transport> closed(&of(transport)); }

}  // namespace
}  // namespace shardrec::comm::gloo_plugin

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_transport_plugin(shardrec_transport_table* table, shardrec_transport_error* /*error*/) {
  namespace side = shardrec::comm::gloo_plugin;
  const bool same =
      table->abi == SHARDREC_TRANSPORT_ABI && table->size == sizeof(shardrec_transport_table);
  table->abi = SHARDREC_TRANSPORT_ABI;
  table->size = sizeof(shardrec_transport_table);
  if (!same) return SHARDREC_TRANSPORT_ABI_MISMATCH;
  table->library = "Gloo";
  table->is_launched = 0;
  table->has_bulletins = 0;
  table->open = &side::open;
  table->rank = &side::rank;
  table->ranks = &side::ranks;
  table->send = &side::send;
  table->receive = &side::receive;
  table->wait = &side::wait;
  table->forget = &side::forget;
  table->announce = nullptr;
  table->cancel = &side::cancel;
  table->close = &side::close;
  return SHARDREC_TRANSPORT_OK;
}
