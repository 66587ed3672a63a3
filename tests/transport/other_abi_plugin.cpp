// A transport plug-in of another release.
#include "comm/plugin/transport_plugin.h"

extern "C" __attribute__((visibility("default"))) int32_t
shardrec_transport_plugin(shardrec_transport_table* table, shardrec_transport_error* /*error*/) {
  table->abi = 1000;
  table->size = sizeof *table;
  return SHARDREC_TRANSPORT_ABI_MISMATCH;
}
