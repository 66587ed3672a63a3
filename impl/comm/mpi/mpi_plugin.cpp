// The engine mpi: the table of transport_plugin.h over MPI.
#include <mpi.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>

#include "comm/mpi/mpi_transport.h"
#include "comm/plugin/plugin_table.h"
#include "comm/plugin/transport_plugin.h"

namespace shardrec::comm::mpi_plugin {
namespace {

using plugin::guarded;

Transport& of(void* transport) { return *static_cast<Transport*>(transport); }

int32_t open(const shardrec_transport_job* job, void** transport, shardrec_transport_error* error) {
  return guarded(error, [&] {
    *transport = Transport::open(*job).release();
    return SHARDREC_TRANSPORT_OK;
  });
}

int32_t announce(void* transport, const void* data, uint64_t bytes) {
  return guarded(nullptr, [&] {
    of(transport).announce(data, bytes);
    return SHARDREC_TRANSPORT_OK;
  });
}

void close(void* transport) { Transport::close(std::unique_ptr<Transport>(&of(transport))); }

// The first line of "Open MPI v4.1.4, package: ...".
const char* library() {
  static char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  static std::once_flag once;
  std::call_once(once, [] {
    int length = 0;
    MPI_Get_library_version(text, &length);  // may be called before MPI_Init
    text[std::string_view(text).find_first_of(",\n")] = '\0';
  });
  return text;
}

}  // namespace
}  // namespace shardrec::comm::mpi_plugin

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_transport_plugin(shardrec_transport_table* table, shardrec_transport_error* /*error*/) {
  namespace side = shardrec::comm::mpi_plugin;
  if (!shardrec::comm::plugin::fill<side::Transport, side::Request>(*table))
    return SHARDREC_TRANSPORT_ABI_MISMATCH;
  table->library = side::library();
  table->is_launched = 1;
  table->has_group_states = 1;
  table->check_settings = nullptr;
  table->open = &side::open;
  table->announce = &side::announce;
  table->close = &side::close;
  return SHARDREC_TRANSPORT_OK;
}
