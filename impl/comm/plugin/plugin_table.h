// The table of transport_plugin.h over a class that sends and receives: what is the same in every
// plug-in. A plug-in adds how a transport is opened and closed, and what only it can do.
#pragma once

#include <cstdint>

#include "comm/plugin/plugin_side.h"
#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::plugin {

// Transport has rank, size, send, receive, wait, forget and cancel, as the table's functions; its
// requests are of type Request.
template <class Transport, class Request>
struct Calls {
  static Transport& of(void* transport) { return *static_cast<Transport*>(transport); }

  static int32_t rank(void* transport) { return of(transport).rank(); }
  static int32_t ranks(void* transport) { return of(transport).size(); }
  static int32_t send(void* transport, int32_t peer, uint32_t tag, const void* data, uint64_t bytes,
                      void** request, shardrec_transport_error* error) {
    return guarded(error, [&] {
      *request = of(transport).send(peer, tag, data, bytes);
      return SHARDREC_TRANSPORT_OK;
    });
  }
  static int32_t receive(void* transport, int32_t peer, uint32_t tag, void* data, uint64_t bytes,
                         void** request, shardrec_transport_error* error) {
    return guarded(error, [&] {
      *request = of(transport).receive(peer, tag, data, bytes);
      return SHARDREC_TRANSPORT_OK;
    });
  }
  static int32_t wait(void* transport, void* request, double seconds,
                      shardrec_transport_error* error) {
    return guarded(error,
                   [&] { return of(transport).wait(*static_cast<Request*>(request), seconds); });
  }
  static void forget(void* transport, void* request) {
    of(transport).forget(*static_cast<Request*>(request));
  }
  static void cancel(void* transport) { of(transport).cancel(); }
};

// Fills what Calls has. False: the library speaks another version of the table.
template <class Transport, class Request>
bool fill(shardrec_transport_table& table) {
  using Own = Calls<Transport, Request>;
  const bool same =
      table.abi == SHARDREC_TRANSPORT_ABI && table.size == sizeof(shardrec_transport_table);
  table.abi = SHARDREC_TRANSPORT_ABI;
  table.size = sizeof(shardrec_transport_table);
  if (!same) return false;
  table.rank = &Own::rank;
  table.ranks = &Own::ranks;
  table.send = &Own::send;
  table.receive = &Own::receive;
  table.wait = &Own::wait;
  table.forget = &Own::forget;
  table.cancel = &Own::cancel;
  return true;
}

}  // namespace shardrec::comm::plugin
