// What the NCCL plug-in and the library that it finds do on a machine without a device: the version, and why there is
// no communicator. Prints a line for each; built and run by nccl_library.
// Usage: nccl_calls PLUGIN
#include <dlfcn.h>

#include <cstdio>

#include "comm/nccl/nccl_plugin.h"

int main(int count, char** arguments) {
  void* const plugin = count == 2 ? dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  void* const function = plugin != nullptr ? dlsym(plugin, "shardrec_nccl_plugin") : nullptr;
  if (function == nullptr) {
    std::printf("there is no plug-in\n");
    return 1;
  }
  shardrec_nccl_table table{};
  table.size = sizeof table;
  table.abi = SHARDREC_NCCL_ABI;
  if (reinterpret_cast<shardrec_nccl_plugin_function>(function)(&table) != SHARDREC_NCCL_FILLED) {
    std::printf("refused: %s\n", table.reason);
    return 1;
  }
  std::printf("library: %s, %d\n", table.library, table.version);
  std::printf("in progress: %s\n", table.result_text(SHARDREC_NCCL_IN_PROGRESS));
  uint8_t id[SHARDREC_NCCL_ID_BYTES] = {};
  shardrec_nccl_result result = table.make_id(id);
  std::printf("id: %s\n", table.result_text(result));
  shardrec_nccl_comm* comm = nullptr;
  if (result == SHARDREC_NCCL_OK) result = table.create(id, 0, 1, 0, &comm);
  while (comm != nullptr && result == SHARDREC_NCCL_IN_PROGRESS) result = table.progress(comm);
  std::printf("communicator: %s: %s\n", table.result_text(result), table.last_error());
  if (comm != nullptr) table.abort(comm);
  return 0;
}
